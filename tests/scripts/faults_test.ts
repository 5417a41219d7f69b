import assert from "node:assert/strict";
import { join } from "node:path";
import process from "node:process";
import { describe, it } from "node:test";
import { newCluster } from "@listwatch/cache";
import { InMemoryApiServer, seededRandom } from "@listwatch/cache/testing";
import { NAMESPACE, type Seen, type ValueObject, Writer } from "../../scripts/faults/history.ts";
import { faultSection, summary } from "../../scripts/faults/page.ts";
import { FAULTS } from "../../scripts/faults/faults.ts";
import { merged, type Outcome } from "../../scripts/faults/world.ts";
import { run, runDeno } from "../../scripts/lib/process.ts";

describe("deno task faults", () => {
  const faults = (...args: string[]) => runDeno(["run", "-A", "--no-check", "scripts/faults.ts", ...args]);

  it("lets a fault happen to this library, which misses nothing", async () => {
    const { code, stdout, output } = await faults("--only", "cut,listwatch-deno");
    assert.equal(code, 0, output);
    assert.match(stdout, /^### connection cut in mid-event \(`cut`\)$/m);
    const row = stdout.split("\n").find((line) => line.includes("@listwatch/cache, Deno"));
    assert.ok(row, output);
    const [, , missed, impossible, notice, recover, , requests] = row.split("|").map((cell) => cell.trim());
    assert.deepEqual([missed, impossible], ["0", "0"]);
    for (const time of [notice, recover]) assert.match(time, /^\d+\.\d s$/);
    assert.ok(Number(requests) >= 1, requests);
  });

  it("ends with 2 for names that it does not know, and an update of a part", async () => {
    const { code, stderr } = await faults("--only", "flood");
    assert.equal(code, 2);
    assert.match(stderr, /--only names flood, which is no fault and no client/);
    assert.equal((await faults("--only", "cut", "--update")).code, 2);
  });

  it("ends with 1 where a client cannot be run", async () => {
    // Without a path, Go is not found; only what was built with it has a new cache folder.
    const home = await Deno.makeTempDir();
    const { HOME = "", XDG_CACHE_HOME = join(HOME, ".cache") } = process.env;
    const { DENO_DIR = join(XDG_CACHE_HOME, "deno") } = process.env;
    try {
      const { code, stderr } = await run(Deno.execPath(), [
        "run",
        "-A",
        "--no-check",
        "scripts/faults.ts",
        "--only=cut,client-go",
      ], { env: { PATH: home, XDG_CACHE_HOME: home, DENO_DIR } });
      assert.equal(code, 1);
      assert.match(stderr, /without client-go: Go is needed/);
    } finally {
      await Deno.remove(home, { recursive: true });
    }
  });

  it("--help lists faults and clients", async () => {
    const { code, stdout } = await faults("--help");
    assert.equal(code, 0);
    for (const { name } of FAULTS) assert.match(stdout, new RegExp(`\\b${name}\\b`));
  });
});

describe("Writer.countImpossible", () => {
  it("counts states that never were, older ones after newer ones, and deletes of what exists", async () => {
    using server = new InMemoryApiServer();
    const cluster = newCluster({ server: "http://in-memory", fetch: server.fetch });
    const writer = new Writer(cluster.resource<ValueObject>("v1/configmaps"), seededRandom(1));
    await writer.fill();
    const objects = server.list<ValueObject>("v1/configmaps", { namespace: NAMESPACE }).items;
    const seen = objects.map(({ metadata, data }): Seen => [
      "set",
      `${NAMESPACE}/${metadata!.name}`,
      metadata!.resourceVersion!,
      data!.value,
    ]);
    assert.equal(writer.countImpossible(seen), 0);
    const [[what, key, version, value]] = seen;
    assert.equal(writer.countImpossible([[what, key, version, "never written"]]), 1);
    assert.equal(writer.countImpossible([[what, key, "999999", value]]), 1);
    assert.equal(writer.countImpossible([seen[0], ["delete", key, version, value]]), 1);
    await writer.deleteSome(25);
    assert.equal(writer.countImpossible([seen[0], ["delete", key, version, value]]), 0);

    await writer.burst(200);
    const { items } = server.list<ValueObject>("v1/configmaps", { namespace: NAMESPACE });
    const later = items.map(({ metadata, data }): Seen => [
      "set",
      `${NAMESPACE}/${metadata!.name}`,
      metadata!.resourceVersion!,
      data!.value,
    ]);
    assert.equal(writer.countImpossible([...seen, ...later]), 0);
    const both = later.filter(([, key]) => seen.some((other) => other[1] === key)).length;
    assert.ok(both > 5);
    assert.equal(writer.countImpossible([...later, ...seen]), both);
  });
});

const outcome: Outcome = {
  client: "one",
  version: "1",
  missed: 0,
  impossible: 0,
  noticeMs: 40,
  recoverMs: 1_250,
  requests: 3,
  memoryBytes: 20 * 2 ** 20,
};

describe("Writer.version", () => {
  it("is that of the last write, also if it was a delete", async () => {
    using server = new InMemoryApiServer();
    const cluster = newCluster({ server: "http://in-memory", fetch: server.fetch });
    const writer = new Writer(cluster.resource<ValueObject>("v1/configmaps"), seededRandom(1));
    await writer.fill();
    for (let i = 0; i < 50; i++) {
      await writer.write();
      assert.equal(await writer.version(), Number(server.resourceVersion));
    }
  });
});

describe("merged", () => {
  it("is the median of times and requests, the slowest, and the worst of the rest", () => {
    const rounds = [
      [outcome],
      [{ ...outcome, recoverMs: 9_000, requests: 1, impossible: 2 }],
      [{ ...outcome, recoverMs: 2_000, requests: 8, missed: 1, memoryBytes: 1 }],
    ];
    const expected = { ...outcome, recoverMs: 2_000, slowestMs: 9_000, missed: 1, impossible: 2 };
    assert.deepEqual(merged(rounds), [expected]);
  });

  it("has no recovery if one round has none, and has ended if one has", () => {
    const rounds = [[outcome], [{ ...outcome, recoverMs: undefined, ended: "it crashed" }]];
    assert.deepEqual(merged(rounds), [{ ...outcome, recoverMs: undefined, ended: "it crashed" }]);
  });
});

describe("faultSection", () => {
  const fault = FAULTS[0];

  it("says when a client did not recover, or only by later changes, and when it ended", () => {
    const { recoverMs: _, ...never } = outcome;
    const outcomes: Outcome[] = [
      outcome,
      { ...never, client: "two", recoverMs: undefined, missed: 4 },
      { ...never, client: "three", recoverMs: undefined, impossible: 1 },
      { ...outcome, client: "four", ended: "it crashed" },
    ];
    const cells = faultSection(fault, outcomes).split("\n").slice(-4).map((line) =>
      line.split("|").slice(1, -1).map((cell) => cell.trim())
    );
    assert.deepEqual(cells, [
      ["one", "0", "0", "0.0 s", "1.3 s", "-", "3", "20 MiB"],
      ["two", "4", "0", "0.0 s", "not after 90 s", "-", "3", "20 MiB"],
      ["three", "0", "1", "0.0 s", "only after 90 s", "-", "3", "20 MiB"],
      ["four", "ended", "", "", "", "", "3", "20 MiB"],
    ]);
    const row = summary([{ fault, outcomes }]).split("\n").at(-1)!.split("|").map((cell) => cell.trim());
    assert.deepEqual(row.slice(2, -1), [
      "1.3 s",
      "not after 90 s, 4 missed",
      "only after 90 s, 1 never were",
      "ended",
    ]);
  });
});
