import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type KeyValueBinding, keyValueSnapshot, memorySnapshot } from "@listwatch/cache/snapshots";
import { change, changed, loadContent, loadOrRefusal, PODS, put } from "./saved.ts";

const WHOLE = change(1, {
  replaces: true,
  puts: Array.from({ length: 40 }, (_, i) => put(`shop/web-${i}`, { text: "x".repeat(50 * (i % 7)) })),
});
const NEXT = change(2, { puts: [put("shop/new")], deletes: ["shop/web-1"] });
const LAST = change(3, { replaces: true, puts: [put("shop/last")] });

/** As a KV namespace of Cloudflare: pages of a list, and values that readers see later. */
function namespace(): KeyValueBinding & { values: Map<string, Uint8Array>; hidden: Set<string> } {
  const values = new Map<string, Uint8Array>();
  const hidden = new Set<string>();
  return {
    values,
    hidden,
    get(key, type) {
      assert.equal(type, "arrayBuffer");
      assert.equal(this.values, values, "it is called as a method");
      return Promise.resolve(hidden.has(key) ? null : values.get(key)?.slice().buffer ?? null);
    },
    put: (key, value) => Promise.resolve(values.set(key, value.slice())),
    delete: (key) => Promise.resolve(values.delete(key)),
    list({ prefix, cursor = "0" }) {
      const all = [...values.keys()].filter((key) => key.startsWith(prefix)).sort();
      const keys = all.slice(Number(cursor), Number(cursor) + 3).map((name) => ({ name }));
      const next = Number(cursor) + 3;
      return Promise.resolve({ keys, list_complete: next >= all.length, cursor: String(next) });
    },
  };
}

/** As a bucket of R2. */
function bucket(): KeyValueBinding & { head(): void; values: Map<string, Uint8Array> } {
  const values = new Map<string, Uint8Array>();
  return {
    values,
    head() {},
    get(key, type) {
      assert.equal(type, undefined, "its second argument is an object");
      const value = values.get(key);
      const body = {
        value,
        arrayBuffer(this: { readonly value: Uint8Array }) {
          return Promise.resolve(this.value.slice().buffer);
        },
      };
      return Promise.resolve(value && body);
    },
    put: (key, value) => Promise.resolve(values.set(key, value.slice())),
    delete: (key) => Promise.resolve(values.delete(key)),
    list({ prefix, cursor = "0" }) {
      const all = [...values.keys()].filter((key) => key.startsWith(prefix)).sort();
      const objects = all.slice(Number(cursor), Number(cursor) + 4).map((key) => ({ key }));
      const next = Number(cursor) + 4;
      return Promise.resolve({ objects, truncated: next < all.length, cursor: String(next) });
    },
  };
}

function map(): KeyValueBinding & { values: Map<string, Uint8Array> } {
  const values = new Map<string, Uint8Array>();
  return {
    values,
    // A part of a larger buffer, as of a file that was read.
    get(key) {
      const value = values.get(key);
      if (value === undefined) return undefined;
      const larger = new Uint8Array(value.length + 20).fill(7);
      larger.set(value, 10);
      return larger.subarray(10, 10 + value.length);
    },
    put: (key, value) => values.set(key, value),
    delete: (key) => values.delete(key),
  };
}

describe("keyValueSnapshot", () => {
  for (const [name, newBinding] of Object.entries({ namespace, bucket, map })) {
    it(`loads what was saved last, from a ${name}`, async () => {
      const binding = newBinding();
      const options = { prefix: "pods/", chunkBytes: 1_000 };
      const first = keyValueSnapshot(binding, options).storage;
      assert.equal(await loadContent(first), undefined);
      await first.save(WHOLE);
      await first.save(NEXT);
      assert.ok([...binding.values].every(([key, { length }]) => key.startsWith("pods/") && length <= 1_000));
      const expected = changed(changed(undefined, WHOLE), NEXT);
      assert.deepEqual(await loadContent(keyValueSnapshot(binding, options).storage), expected);
      assert.equal(await loadContent(keyValueSnapshot(binding).storage), undefined);
    });
  }

  for (const [name, newBinding] of Object.entries({ namespace, bucket })) {
    it(`removes what a kill has left, from every page that a ${name} lists, and nothing of others`, async () => {
      const binding = newBinding();
      const left = Array.from({ length: 10 }, (_, i) => `pods/chunks/left-${i}`);
      for (const key of [...left, "nodes/manifest"]) binding.values.set(key, new Uint8Array(1));
      const { storage } = keyValueSnapshot(binding, { prefix: "pods/" });
      await loadContent(storage);
      await storage.save(WHOLE);
      assert.deepEqual([...binding.values.keys()].filter((key) => /left|nodes/.test(key)), [
        "nodes/manifest",
      ]);
      assert.deepEqual(await loadContent(storage), changed(undefined, WHOLE));
    });
  }

  it("is refused where the manifest is seen before a value that it names, and is right afterwards", async () => {
    const binding = namespace();
    const storage = keyValueSnapshot(binding).storage;
    await storage.load(PODS);
    await storage.save(WHOLE);
    const before = new Set(binding.values.keys());
    await storage.save(NEXT);
    for (const key of binding.values.keys()) if (!before.has(key)) binding.hidden.add(key);
    assert.equal(await loadOrRefusal(keyValueSnapshot(binding).storage), "torn");
    binding.hidden.clear();
    const expected = changed(changed(undefined, WHOLE), NEXT);
    assert.deepEqual(await loadContent(keyValueSnapshot(binding).storage), expected);
  });

  it("can still be loaded where the manifest before is seen", async () => {
    const binding = namespace();
    const storage = keyValueSnapshot(binding).storage;
    await storage.load(PODS);
    await storage.save(WHOLE);
    const before = binding.values.get("listwatch/manifest")!;
    await storage.save(LAST);
    binding.values.set("listwatch/manifest", before);
    assert.deepEqual(await loadContent(keyValueSnapshot(binding).storage), changed(undefined, WHOLE));
  });

  it("fails to save where a value cannot be written, and removes later what it could not remove", async () => {
    const binding = namespace();
    binding.values.set("listwatch/chunks/left", new Uint8Array(1));
    const { put: write, delete: remove } = binding;
    const fail = () => Promise.reject(new Error("too many writes"));
    const storage = keyValueSnapshot(binding).storage;
    await storage.load(PODS);
    binding.put = (key, value) => key.endsWith("manifest") ? write(key, value) : fail();
    await assert.rejects(async () => await storage.save(WHOLE), /too many writes/);
    assert.equal(binding.values.has("listwatch/manifest"), false);
    Object.assign(binding, { put: write, delete: fail });
    await storage.save(WHOLE);
    assert.ok(binding.values.has("listwatch/chunks/left"));
    binding.delete = remove;
    await storage.save(NEXT);
    assert.equal(binding.values.has("listwatch/chunks/left"), false);
  });

  it("removes what it does not need any more also where nothing can be listed", async () => {
    const binding = map();
    const storage = keyValueSnapshot(binding).storage;
    await storage.load(PODS);
    for (let i = 0; i < 10; i++) await storage.save(LAST);
    assert.equal(binding.values.size, 3); // the manifest, its chunk, and that of the one before
  });

  it("refuses a value that is none", async () => {
    const binding = { ...map(), get: () => 42 };
    assert.equal(await loadOrRefusal(keyValueSnapshot(binding).storage), "unreadable");
  });

  it("saves every ten seconds by default, as a namespace takes one write per second and key", () => {
    assert.equal(keyValueSnapshot(map()).options.intervalMs, 10_000);
    assert.equal(keyValueSnapshot(map(), { intervalMs: 1 }).options.intervalMs, 1);
  });

  it("refuses a size of values that is none", () => {
    assert.throws(() => keyValueSnapshot(map(), { chunkBytes: 0 }), RangeError);
  });
});

describe("memorySnapshot", () => {
  it("saves nothing before it was loaded, as it is of nothing then", () => {
    assert.throws(() => memorySnapshot().storage.save(WHOLE), /was not loaded before/);
  });

  it("has objects as they were when they were saved, whatever is done to them later", async () => {
    let text = "before";
    const web = put("shop/web");
    const json = () => JSON.stringify({ ...JSON.parse(web.json()), text });
    const { storage } = memorySnapshot();
    await storage.load(PODS);
    await storage.save(change(1, { replaces: true, puts: [{ ...web, json }] }));
    const expected = json();
    text = "after";
    assert.deepEqual((await loadContent(storage))?.texts, { "shop/web": expected });
  });

  it("loads what the informer before has saved", async () => {
    const first = memorySnapshot();
    assert.equal(await loadContent(first.storage), undefined);
    await first.storage.save(WHOLE);
    await first.storage.save(NEXT);
    const next = memorySnapshot({ after: first });
    assert.deepEqual(await loadContent(next.storage), changed(changed(undefined, WHOLE), NEXT));
    await next.storage.save(LAST);
    assert.deepEqual(await loadContent(memorySnapshot({ after: next }).storage), changed(undefined, LAST));
    assert.equal(await loadOrRefusal(next.storage, { ...PODS, source: "other" }), "other-identity");
  });
});
