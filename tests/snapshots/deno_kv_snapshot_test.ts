import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type DenoKv, type DenoKvOperation, denoKvSnapshot } from "@listwatch/cache/snapshots";
import { change, changed, loadContent, loadOrRefusal, put } from "./saved.ts";

const PODS = Array.from(
  { length: 40 },
  (_, i) => put(`shop/web-${i}`, { text: "x".repeat(5_000 * (i % 7)) }),
);
const WHOLE = change(1, { replaces: true, puts: PODS });
const NEXT = change(2, { puts: [put("shop/new")], deletes: ["shop/web-1"] });

async function keysIn(kv: Deno.Kv): Promise<number> {
  let keys = 0;
  for await (const _ of kv.list({ prefix: [] })) keys++;
  return keys;
}

describe("denoKvSnapshot", () => {
  it("loads what was saved last, from values of 64 KiB at most", async () => {
    using kv = await Deno.openKv(":memory:");
    const prefix = ["prod", "pods"];
    const first = denoKvSnapshot(kv, { prefix }).storage;
    assert.equal(await loadContent(first), undefined);
    await first.save(WHOLE);
    await first.save(NEXT);
    const expected = changed(changed(undefined, WHOLE), NEXT);
    const next = denoKvSnapshot(kv, { prefix }).storage;
    assert.deepEqual(await loadContent(next), expected);
    await next.save(change(3));
    assert.equal((await loadContent(denoKvSnapshot(kv, { prefix }).storage))?.resourceVersion, "3");
    assert.equal(await loadContent(denoKvSnapshot(kv, { prefix: ["prod", "nodes"] }).storage), undefined);
  });

  it("fails to save where another informer has saved, and replaces that with everything", async () => {
    using kv = await Deno.openKv(":memory:");
    const [one, other] = [denoKvSnapshot(kv).storage, denoKvSnapshot(kv).storage];
    await loadContent(one);
    await loadContent(other);
    await one.save(WHOLE);
    await assert.rejects(
      async () => await other.save(WHOLE),
      /another informer has saved its snapshot there/,
    );
    await other.save({ ...NEXT, replaces: true });
    const loaded = await loadContent(denoKvSnapshot(kv).storage);
    assert.deepEqual(loaded, changed(undefined, { ...NEXT, replaces: true }));
  });

  it("fails to save where a chunk cannot be written", async () => {
    using kv = await Deno.openKv(":memory:");
    const failing: DenoKv = {
      get: (key) => kv.get(key),
      list: (selector) => kv.list(selector),
      atomic: () => {
        const operation = kv.atomic();
        const { set } = operation;
        operation.set = (key, value) => {
          if (key.at(-1) !== "manifest") {
            operation.commit = () => Promise.reject(new Error("too many writes"));
          }
          return set.call(operation, key, value);
        };
        return operation as DenoKvOperation;
      },
    };
    const { storage } = denoKvSnapshot(failing);
    await loadContent(storage);
    await assert.rejects(async () => await storage.save(WHOLE), /too many writes/);
    assert.equal(await keysIn(kv), 0);
  });

  it("removes what it does not need any more", async () => {
    using kv = await Deno.openKv(":memory:");
    const one = denoKvSnapshot(kv).storage;
    await loadContent(one);
    const counts: number[] = [];
    for (let version = 1; version < 12; version++) {
      await one.save(change(version, { replaces: true, puts: PODS }));
      counts.push(await keysIn(kv));
    }
    assert.equal(counts.at(-1), counts[2]);
  });

  it("removes what a kill has left, and nothing of others", async () => {
    using kv = await Deno.openKv(":memory:");
    const left = Array.from({ length: 10 }, (_, i) => ["pods", "chunks", `left-${i}`]);
    const others = [["pods-2", "chunks", "left"], ["pods", "other"]];
    for (const key of [...left, ...others]) await kv.set(key, new Uint8Array(1));
    const { storage } = denoKvSnapshot(kv, { prefix: ["pods"] });
    await loadContent(storage);
    await storage.save(WHOLE);
    for (const key of left) assert.equal((await kv.get(key)).value, null, key.join("/"));
    for (const key of others) assert.notEqual((await kv.get(key)).value, null, key.join("/"));
  });

  it("refuses another program's value", async () => {
    using kv = await Deno.openKv(":memory:");
    await kv.set(["listwatch", "manifest"], { of: "another program" });
    assert.equal(await loadOrRefusal(denoKvSnapshot(kv).storage), "foreign");
  });
});
