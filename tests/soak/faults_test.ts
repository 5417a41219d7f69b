import assert from "node:assert/strict";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { describe, it } from "node:test";
import { seededRandom } from "../../src/testing/seeded_random.ts";
import { FaultProxy } from "./fault_proxy.ts";
import { FAULT_KINDS, newFaultCounts, planFaults, type PlannedFault, runFaults } from "./faults.ts";

describe("planFaults", () => {
  const take = (seed: number, count: number): PlannedFault[] => {
    const plan = planFaults(seededRandom(seed), 100);
    return Array.from({ length: count }, () => plan.next().value);
  };

  it("repeats the plan of a seed", () => {
    assert.deepEqual(take(5, 200), take(5, 200));
    assert.notDeepEqual(take(5, 200), take(6, 200));
  });

  it("has every kind of fault", () => {
    const kinds = new Set(take(1, 500).map(({ kind }) => kind));
    assert.deepEqual([...kinds].sort(), [...FAULT_KINDS].sort());
  });

  it("ends with a healed network: held bytes arrive, new connections are accepted", async () => {
    const sockets = new Set<Socket>();
    const echo = createServer((socket) => {
      sockets.add(socket);
      socket.pipe(socket);
      socket.on("error", () => {});
    });
    await new Promise<void>((resolve) => echo.listen(0, "127.0.0.1", resolve));
    const proxy = await FaultProxy.start({ port: (echo.address() as AddressInfo).port });
    const client = connect(proxy.port, "127.0.0.1");
    sockets.add(client);
    const received = new Promise<string>((resolve) => client.once("data", (data) => resolve(String(data))));
    try {
      await new Promise<void>((resolve) => client.once("connect", () => resolve()));
      while (proxy.connections.length === 0) await new Promise((resolve) => setTimeout(resolve));
      const counts = newFaultCounts();
      const abort = new AbortController();
      const running = runFaults(proxy, lasting("blackHole", "refuse"), { counts, signal: abort.signal });
      while (!proxy.isRefusing) await new Promise((resolve) => setTimeout(resolve));
      client.write("late");
      abort.abort();
      await running;
      assert.equal(await received, "late");
      assert.equal(proxy.isRefusing, false);
      assert.deepEqual([counts.blackHole, counts.refuse], [1, 1]);
    } finally {
      for (const socket of sockets) socket.destroy();
      await proxy[Symbol.asyncDispose]();
      await new Promise((resolve) => echo.close(resolve));
    }
  });
});

/** These faults at once, each for an hour, and then nothing for an hour. */
function* lasting(...kinds: PlannedFault["kind"][]): Generator<PlannedFault, never> {
  const hourMs = 3_600_000;
  const fault = { pick: 0, bytes: 0, delayMs: 0, lastsMs: hourMs, endsInReset: false };
  for (const kind of kinds) yield { ...fault, kind, afterMs: 0 };
  for (;;) yield { ...fault, kind: "cut", afterMs: hourMs };
}
