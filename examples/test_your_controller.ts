// Tests of the controller in reconcile_loop.ts, against an in-memory API server, with a clock that the test moves:
// no cluster, no port, no waiting. deno test -A examples/test_your_controller.ts
import assert from "node:assert/strict";
import { test } from "node:test";
import { newCluster } from "@listwatch/cache";
import { answerStatus, FakeClock, InMemoryApiServer, node, pod } from "@listwatch/cache/testing";
import { NODE_LABEL, runController } from "./reconcile_loop.ts";

/** A controller that runs against its own server. */
function setUp() {
  const clock = new FakeClock();
  const server = new InMemoryApiServer({ clock });
  const cluster = newCluster({ server: "http://in-memory", fetch: server.fetch, clock });
  const stop = new AbortController();
  const running = runController(cluster, stop.signal, clock);
  return {
    server,
    clock,
    /** The label of a pod. */
    label: (key: string) => server.get("v1/pods", key)?.metadata?.labels?.[NODE_LABEL],
    /** The number of its writes. */
    writes: () => server.requests.filter(({ method }) => method === "PATCH").length,
    /** Moves the clock in small steps until the condition holds, for at most a minute of the controller's time. */
    async until(isSo: () => boolean): Promise<void> {
      for (let i = 0; i < 60_000 && !isSo(); i++) await clock.advance(1);
      assert.ok(isSo(), `not within a minute: ${isSo}`);
    },
    async [Symbol.asyncDispose](): Promise<void> {
      stop.abort();
      await running; // everything that the controller started has ended
      server.close();
    },
  };
}

test("runController labels existing and new pods with their node", async () => {
  await using controller = setUp();
  const { server, until, label, writes } = controller;
  server.create("v1/nodes", node("node-1"));
  server.create("v1/pods", pod("web-1", { nodeName: "node-1" }));
  server.create("v1/pods", pod("pending"));
  await until(() => label("default/web-1") === "node-1");

  server.create("v1/pods", pod("web-2", { nodeName: "node-2" }));
  await until(() => label("default/web-2") === "node-2");
  assert.equal(label("default/pending"), undefined);
  assert.equal(writes(), 2); // its own writes came back as events, and caused no others
});

test("runController restores a label that another client removes", async () => {
  await using controller = setUp();
  const { server, until, label } = controller;
  server.create("v1/pods", pod("web-1", { nodeName: "node-1", labels: { [NODE_LABEL]: "wrong" } }));
  await until(() => label("default/web-1") === "node-1");
  server.patch("v1/pods", "default/web-1", { metadata: { labels: { [NODE_LABEL]: null } } });
  await until(() => label("default/web-1") === "node-1");
});

test("runController retries a failed write at growing intervals", async () => {
  await using controller = setUp();
  const { server, until, label } = controller;
  const isWrite = ({ method }: { readonly method: string }) => method === "PATCH";
  server.intercept(answerStatus(500), { match: isWrite, times: 5 });
  server.create("v1/pods", pod("web-1", { nodeName: "node-1" }));
  await until(() => label("default/web-1") === "node-1");
  const times = server.requests.filter(isWrite).map(({ timeMs }) => timeMs);
  const waits = times.slice(1).map((timeMs, i) => timeMs - times[i]);
  assert.deepEqual(waits.map((waitMs, i) => waitMs >= 5 * 2 ** i), [true, true, true, true, true]);
});

test("runController loses no change when its watch breaks", async () => {
  await using controller = setUp();
  const { server, until, label } = controller;
  await until(() => server.openWatches === 1);
  server.closeWatches({ reset: true });
  server.create("v1/pods", pod("web-1", { nodeName: "node-1" }));
  server.compact(); // so that the watch cannot be resumed
  await until(() => label("default/web-1") === "node-1");
});
