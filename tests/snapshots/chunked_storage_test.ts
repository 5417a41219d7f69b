import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { SnapshotEntry } from "@listwatch/cache/informer";
import { ChunkedStorage, type ChunkStore, MANIFEST } from "../../src/snapshots/chunked_storage.ts";
import { crc32 } from "../../src/snapshots/saved_values.ts";
import { laterTurn } from "../../src/util/clock.ts";
import { change, changed, type Content, loadContent, loadOrRefusal, PODS, put } from "./saved.ts";

class Stopped extends Error {}

/** Chunks in memory, which fail after some operations. */
class MemoryChunks implements ChunkStore {
  readonly description = "the test's chunks";
  readonly chunkBytes: number;
  readonly values: Map<string, Uint8Array>;
  operations = 0;
  lists = 0;
  /** How many of them run at a time, at most. */
  most = 0;
  #running = 0;
  readonly #maxOperations: number;

  constructor(
    { chunkBytes = 100, operations = Infinity, before }: {
      chunkBytes?: number;
      operations?: number;
      before?: MemoryChunks;
    } = {},
  ) {
    this.chunkBytes = chunkBytes;
    this.#maxOperations = operations;
    this.values = new Map(before?.values);
  }

  /** The chunks without the manifest. */
  get chunks(): [name: string, bytes: Uint8Array][] {
    return [...this.values].filter(([name]) => name !== MANIFEST);
  }

  async get(name: string): Promise<Uint8Array | undefined> {
    await this.#run();
    return this.values.get(name);
  }

  async put(name: string, bytes: Uint8Array): Promise<void> {
    await this.#step();
    if (name !== MANIFEST) {
      assert.ok(bytes.length <= this.chunkBytes);
      assert.ok(!this.values.has(name), `the chunk ${name} is there`);
    }
    this.values.set(name, bytes);
  }

  async remove(name: string): Promise<void> {
    await this.#step();
    this.values.delete(name);
  }

  async list(): Promise<string[]> {
    this.lists++;
    await this.#step();
    return [...this.values.keys()];
  }

  async #run(): Promise<void> {
    this.most = Math.max(this.most, ++this.#running);
    await undefined;
    this.#running--;
  }

  async #step(): Promise<void> {
    await this.#run();
    if (this.operations >= this.#maxOperations) throw new Stopped();
    this.operations++;
  }
}

const CHANGES = [
  change(1, {
    replaces: true,
    puts: [put("shop/web-1"), put("shop/web-2"), put("cart/api", { text: "ä€😀" })],
  }),
  change(2, { puts: [put("shop/web-3", { version: "2", text: "z".repeat(300) })] }),
  change(3, { deletes: ["shop/web-1", "never/there"] }),
  change(4, {
    puts: [put("shop/web-1", { version: "4" }), put("shop/web-2", { version: "4" })],
    deletes: ["cart/api"],
  }),
  change(5, { needsList: true }),
  change(6, { puts: [put("shop/web-3", { version: "6", text: "z".repeat(900) })] }),
  change(7, { puts: [put("shop/web-3", { version: "7" })] }),
];

async function saveAll(chunks: ChunkStore, changes: typeof CHANGES): Promise<(Content | undefined)[]> {
  const storage = new ChunkedStorage(chunks);
  let content = await loadContent(storage);
  const contents: (Content | undefined)[] = [content];
  for (const one of changes) {
    const next = content === undefined ? { ...one, replaces: true } : one;
    try {
      await storage.save(next);
    } catch (error) {
      assert.ok((error as Error).cause instanceof Stopped, `${(error as Error).stack}`);
      return [...contents, changed(content, next)];
    }
    contents.push(content = changed(content, next));
  }
  return contents;
}

describe("ChunkedStorage", () => {
  it("loads what was saved last, in chunks of any size", async () => {
    for (const chunkBytes of [1, 7, 100, 1_000_000]) {
      const chunks = new MemoryChunks({ chunkBytes });
      const contents = await saveAll(chunks, CHANGES);
      assert.deepEqual(await loadContent(new ChunkedStorage(chunks)), contents.at(-1));
    }
  });

  it("has nothing to load where nothing was saved", async () => {
    assert.equal(await loadContent(new ChunkedStorage(new MemoryChunks())), undefined);
  });

  it("keeps what was saved last, or is being saved, whenever it is stopped, and can be saved to again", async () => {
    const all = new MemoryChunks();
    await saveAll(all, CHANGES);
    for (let operations = 0; operations <= all.operations; operations++) {
      const chunks = new MemoryChunks({ operations });
      const contents = await saveAll(chunks, CHANGES);
      const loaded = await loadContent(new ChunkedStorage(chunks));
      const isExpected = contents.slice(-2).some((one) => JSON.stringify(one) === JSON.stringify(loaded));
      assert.ok(isExpected, `after ${operations} operations: ${JSON.stringify(loaded)}`);
      const after = new MemoryChunks({ before: chunks });
      const last = (await saveAll(after, [change(8, { puts: [put("shop/after")] })])).at(-1);
      assert.deepEqual(await loadContent(new ChunkedStorage(after)), last);
    }
  });

  it("removes what no manifest names, also what a stopped save has left", async () => {
    const chunks = new MemoryChunks();
    await saveAll(chunks, CHANGES);
    const stopped = new MemoryChunks({ before: chunks, operations: 2 });
    await saveAll(stopped, [
      change(8, { replaces: true, puts: [put("shop/left", { text: "l".repeat(900) })] }),
    ]);
    const after = new MemoryChunks({ before: stopped });
    const whole = (version: number) => change(version, { replaces: true, puts: [put("shop/one")] });
    await saveAll(after, [whole(9), whole(10), whole(11)]);
    const [now, before] = [9, 10].map(() => Math.ceil(length(put("shop/one").json()) / 100) + 5);
    assert.ok(after.chunks.length <= now + before, `${after.chunks.length} chunks are left`);
  });

  it("leaves out what is deleted by the save that makes one record of all", async () => {
    const chunks = new MemoryChunks();
    const contents = await saveAll(chunks, [
      change(1, { replaces: true, puts: [put("shop/web-1"), put("shop/web-2")] }),
      change(2, { puts: [put("shop/web-3", { text: "z".repeat(2_000) })] }),
      change(3, { deletes: ["shop/web-1"] }),
    ]);
    assert.deepEqual(Object.keys(contents.at(-1)!.texts), ["shop/web-2", "shop/web-3"]);
    assert.deepEqual(await loadContent(new ChunkedStorage(chunks)), contents.at(-1));
  });

  it("keeps the chunks of the manifest before, also those of an earlier process, and lists them once", async () => {
    const chunks = new MemoryChunks();
    const before = (await saveAll(chunks, CHANGES)).at(-1);
    const manifest = chunks.values.get(MANIFEST)!;
    const storage = new ChunkedStorage(chunks);
    await storage.load(PODS);
    const whole = (version: number) => change(version, { replaces: true, puts: [put("shop/one")] });
    await storage.save(whole(8));
    const seen = new MemoryChunks({ before: chunks });
    seen.values.set(MANIFEST, manifest);
    assert.deepEqual(await loadContent(new ChunkedStorage(seen)), before);
    const { lists } = chunks;
    for (const version of [9, 10]) await storage.save(whole(version));
    assert.equal(chunks.lists, lists);
  });

  it("joins its records before they are more than 64, or changes more than all objects have", async () => {
    const savedWith = async (base: string, text: string) => {
      const chunks = new MemoryChunks({ chunkBytes: 1_000_000 });
      const storage = new ChunkedStorage(chunks);
      await storage.load(PODS);
      await storage.save(change(1, { replaces: true, puts: [put("shop/base", { text: base })] }));
      let most = 0;
      for (let version = 2; version < 200; version++) {
        await storage.save(change(version, { puts: [put("shop/web-1", { version: `${version}`, text })] }));
        most = Math.max(most, chunks.chunks.length);
      }
      const { texts } = (await loadContent(new ChunkedStorage(chunks)))!;
      assert.equal(JSON.parse(texts["shop/web-1"]).metadata.resourceVersion, "199");
      return most;
    };
    // The chunks of the manifest before are still there.
    assert.equal(await savedWith("b".repeat(100_000), "x"), 65);
    assert.ok(await savedWith("b", "x".repeat(1_000)) <= 6);
  });

  it("writes no chunk where nothing but the version has changed", async () => {
    const chunks = new MemoryChunks();
    const storage = new ChunkedStorage(chunks);
    await storage.load(PODS);
    await storage.save(CHANGES[0]);
    const { operations } = chunks;
    await storage.save(change(2));
    assert.equal(chunks.operations, operations + 1);
    assert.equal((await loadContent(new ChunkedStorage(chunks)))?.resourceVersion, "2");
  });

  it("writes and reads six chunks at a time", async () => {
    const chunks = new MemoryChunks({ chunkBytes: 10 });
    const contents = await saveAll(chunks, CHANGES);
    assert.equal(chunks.most, 6);
    const again = new MemoryChunks({ before: chunks });
    assert.deepEqual(await loadContent(new ChunkedStorage(again)), contents.at(-1));
    assert.equal(again.most, 6);
  });

  it("removes later what it could not remove", async () => {
    const chunks = new MemoryChunks();
    chunks.values.set("left-0", new Uint8Array(10));
    const remove = chunks.remove.bind(chunks);
    let isAway = true;
    chunks.remove = (name) => isAway ? Promise.reject(new Stopped()) : remove(name);
    const storage = new ChunkedStorage(chunks);
    await storage.load(PODS);
    await storage.save(CHANGES[0]);
    assert.ok(chunks.values.has("left-0"));
    isAway = false;
    await storage.save(CHANGES[1]);
    assert.equal(chunks.values.has("left-0"), false);
  });

  for (const canList of [true, false]) {
    it(`removes what saves that failed have left, where it can${canList ? "" : "not"} list it`, async () => {
      const chunks = new MemoryChunks();
      if (!canList) Object.assign(chunks, { list: undefined });
      const storage = new ChunkedStorage(chunks);
      await storage.load(PODS);
      let version = 10;
      const save = () => storage.save(change(version++, { replaces: true, puts: [put("shop/one")] }));
      const [write, remove] = [chunks.put.bind(chunks), chunks.remove.bind(chunks)];
      for (let i = 0; i < 3; i++) await save();
      const { length } = chunks.chunks;
      for (const fails of [(name: string) => name === MANIFEST, (name: string) => name !== MANIFEST]) {
        chunks.put = (name, bytes) => fails(name) ? Promise.reject(new Stopped()) : write(name, bytes);
        for (let i = 0; i < 3; i++) await assert.rejects(save());
        chunks.put = write;
        await assert.rejects(
          storage.save(change(version, { deletes: ["shop/one"] })),
          /must have all objects/,
        );
        const before = [...chunks.values];
        await save();
        // A reader may see the manifest before for a while.
        const seen = new MemoryChunks();
        for (const [name, bytes] of [...chunks.values, ...before]) {
          if (chunks.values.has(name)) seen.values.set(name, bytes);
        }
        assert.ok(await loadContent(new ChunkedStorage(seen)));
        await save();
        assert.equal(chunks.chunks.length, length);
      }
      chunks.remove = () => Promise.reject(new Stopped());
      for (let i = 0; i < 3; i++) await save();
      chunks.remove = remove;
      for (let i = 0; i < 2; i++) await save();
      assert.equal(chunks.chunks.length, length);
    });
  }

  it("is refused where a chunk is missing, cut off or changed, and where the manifest is", async () => {
    const chunks = new MemoryChunks();
    const contents = await saveAll(chunks, CHANGES);
    const refusalWith = async (damage: (chunks: MemoryChunks) => void) => {
      const damaged = new MemoryChunks({ before: chunks });
      damage(damaged);
      return await loadOrRefusal(new ChunkedStorage(damaged));
    };
    const allowed = JSON.stringify(contents.at(-1));
    for (const [name, bytes] of chunks.chunks) {
      const missing = await refusalWith((damaged) => damaged.values.delete(name));
      const isNamed = missing === "torn";
      assert.ok(isNamed || JSON.stringify(missing) === allowed);
      if (!isNamed) continue;
      assert.equal(await refusalWith((damaged) => damaged.values.set(name, bytes.slice(1))), "truncated");
      for (let at = 0; at < bytes.length; at++) {
        const other = bytes.slice();
        other[at] ^= 0x21;
        assert.equal(await refusalWith((damaged) => damaged.values.set(name, other)), "corrupt");
      }
    }
    const manifest = chunks.values.get(MANIFEST)!;
    for (let at = 0; at < manifest.length; at++) {
      const other = manifest.slice();
      other[at] ^= 1;
      assert.equal(
        typeof await refusalWith((damaged) => damaged.values.set(MANIFEST, other)),
        "string",
        `byte ${at}`,
      );
      assert.equal(
        typeof await refusalWith((damaged) => damaged.values.set(MANIFEST, manifest.slice(0, at))),
        "string",
      );
    }
  });

  it("says why it is refused", async () => {
    const chunks = new MemoryChunks();
    await saveAll(chunks, CHANGES);
    for (const other of [{ source: "other" }, { resource: "v1/nodes" }]) {
      assert.equal(await loadOrRefusal(new ChunkedStorage(chunks), { ...PODS, ...other }), "other-identity");
    }
    const text = new TextDecoder().decode(chunks.values.get(MANIFEST));
    const set = (text: string) => chunks.values.set(MANIFEST, new TextEncoder().encode(text));
    set(text.replace("listwatch snapshot 2 ", "listwatch snapshot 3 "));
    assert.equal(await loadOrRefusal(new ChunkedStorage(chunks)), "newer-format");
    set("something else");
    assert.equal(await loadOrRefusal(new ChunkedStorage(chunks)), "foreign");
  });

  it("needs everything in the first save, and in the one after a failure", async () => {
    const chunks = new MemoryChunks({ operations: 3 });
    const storage = new ChunkedStorage(chunks);
    await storage.load(PODS);
    await assert.rejects(() => storage.save(CHANGES[1]), /must have all objects/);
    await assert.rejects(() => storage.save(CHANGES[0]), (error: Error) => error.cause instanceof Stopped);
    await assert.rejects(() => storage.save(CHANGES[1]), /must have all objects/);
  });

  it("needs everything after a failure also where saves before that were there", async () => {
    const chunks = new MemoryChunks();
    const storage = new ChunkedStorage(chunks);
    await storage.load(PODS);
    await storage.save(CHANGES[0]);
    const { put: write } = chunks;
    chunks.put = () => Promise.reject(new Stopped());
    await assert.rejects(() => storage.save(CHANGES[1]), (error: Error) => error.cause instanceof Stopped);
    chunks.put = write;
    await assert.rejects(() => storage.save(CHANGES[2]), /must have all objects/);
    await storage.save({ ...CHANGES[2], replaces: true });
    await storage.save(CHANGES[3]);
  });

  it("writes no manifest where one of its chunks could not be written", async () => {
    const all = new MemoryChunks();
    await saveAll(all, CHANGES.slice(0, 1));
    for (let lost = 0; lost < all.chunks.length; lost++) {
      const chunks = new MemoryChunks();
      const storage = new ChunkedStorage(chunks);
      await storage.load(PODS);
      const write = chunks.put.bind(chunks);
      chunks.put = (name, bytes) =>
        name.endsWith(`-${lost}`) ? Promise.reject(new Stopped()) : write(name, bytes);
      await assert.rejects(() => storage.save(CHANGES[0]), (error: Error) => error.cause instanceof Stopped);
      assert.equal(chunks.values.has(MANIFEST), false);
    }
  });

  it("gives others turns of the event loop while it saves and loads many objects", async () => {
    const chunks = new MemoryChunks({ chunkBytes: 10_000 });
    const storage = new ChunkedStorage(chunks);
    await storage.load(PODS);
    let turns = 0;
    let isOver = false;
    const counting = (async () => {
      for (; !isOver; turns++) await laterTurn();
    })();
    const puts = Array.from({ length: 4_000 }, (_, i) => put(`shop/web-${i}`));
    await storage.save(change(1, { replaces: true, puts }));
    const saving = turns;
    await new ChunkedStorage(chunks).load(PODS);
    isOver = true;
    await counting;
    assert.ok(saving >= 10 && turns - saving >= 10, `${saving} turns, and ${turns - saving}`);
  });

  it("has all objects with their heads, two hundred at a time", async () => {
    const chunks = new MemoryChunks({ chunkBytes: 10_000 });
    const storage = new ChunkedStorage(chunks);
    await storage.load(PODS);
    const keys = Array.from({ length: 450 }, (_, i) => `shop/web-${i}`);
    await storage.save(change(1, { replaces: true, puts: keys.map((key) => put(key)) }));
    const batches = [
      ...(await new ChunkedStorage(chunks).load(PODS))!.entries() as Iterable<SnapshotEntry[]>,
    ];
    assert.deepEqual(batches.map(({ length }) => length), [200, 200, 50]);
    assert.deepEqual(batches.flat().map(({ key }) => key), keys);
    assert.ok(batches.flat().every(({ key, head }) => `shop/${head?.metadata?.name}` === key));
  });

  it("refuses a record that is none, though it has the checksum that its manifest says", async () => {
    for (const record of ["[]", "[]x", "{}\n", '[]\n"text"\n', "[]\n[\n"]) {
      const chunks = new MemoryChunks({ chunkBytes: 10_000 });
      await saveAll(chunks, CHANGES.slice(0, 1));
      const bytes = new TextEncoder().encode(record);
      const [[name]] = chunks.chunks;
      chunks.values.set(name, bytes);
      const manifest = JSON.parse(new TextDecoder().decode(chunks.values.get(MANIFEST)).split("\n")[1]);
      Object.assign(manifest.records[0], { length: bytes.length, checksum: crc32(bytes) });
      const body = JSON.stringify(manifest);
      const line = `listwatch snapshot 2 ${crc32(new TextEncoder().encode(body))}\n`;
      chunks.values.set(MANIFEST, new TextEncoder().encode(line + body));
      assert.equal(await loadOrRefusal(new ChunkedStorage(chunks)), "corrupt", record);
    }
  });

  it("saves nothing before it was loaded, as it is of nothing then", async () => {
    const chunks = new MemoryChunks();
    await assert.rejects(() => new ChunkedStorage(chunks).save(CHANGES[0]), /it was not loaded before/);
    assert.equal(chunks.values.size, 0);
  });
});

function length(text: string): number {
  return new TextEncoder().encode(text).length;
}
