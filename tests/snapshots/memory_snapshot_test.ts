import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { memorySnapshot } from "@listwatch/cache/snapshots";
import { change, loadContent, PODS, put } from "./saved.ts";

describe("memorySnapshot", () => {
  it("has all of a change, or nothing of it", async () => {
    const { storage } = memorySnapshot();
    assert.equal(await storage.load(PODS), undefined);
    await storage.save(change(1, { replaces: true, puts: [put("shop/a"), put("shop/b")] }));
    const before = await loadContent(storage);
    const broken = {
      ...put("shop/c"),
      json: () => {
        throw new Error("no text");
      },
    };
    for (const replaces of [true, false]) {
      const next = change(2, { replaces, puts: [put("shop/d"), broken], deletes: ["shop/a"] });
      await assert.rejects(async () => await storage.save(next), /no text/);
      assert.deepEqual(await loadContent(storage), before);
    }
  });

  it("keeps nothing before it was loaded, and has nothing of another source", async () => {
    const first = memorySnapshot();
    await assert.rejects(async () => await first.storage.save(change(1)), /was not loaded before/);
    await first.storage.load(PODS);
    await first.storage.save(change(1, { replaces: true, puts: [put("shop/a")] }));
    const { storage } = memorySnapshot({ after: first });
    await assert.rejects(
      async () => await storage.load({ ...PODS, source: "https://other.example" }),
      /the snapshot in memory: its source is/,
    );
    assert.deepEqual(Object.keys((await loadContent(storage))!.texts), ["shop/a"]);
  });
});
