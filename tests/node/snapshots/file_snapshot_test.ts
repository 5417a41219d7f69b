import assert from "node:assert/strict";
import { chmodSync, lstatSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import fc from "fast-check";
import type { SnapshotChange, SnapshotStorage } from "../../../src/informer/snapshot.ts";
import { type FileStorageOptions, newFileStorage } from "../../../src/node/snapshots/file_snapshot.ts";
import { realFiles } from "../../../src/node/snapshots/files.ts";
import type { SnapshotLock } from "../../../src/node/snapshots/snapshot_lock.ts";
import { crc32 } from "../../../src/snapshots/crc32.ts";
import { seededRandom } from "../../../src/util/seeded_random.ts";
import { propertyOptions } from "../../property.ts";
import {
  change,
  changed,
  type Content,
  loadContent,
  loadOrRefusal,
  PODS,
  put,
} from "../../snapshots/saved.ts";
import { Killed, MemoryFiles } from "./memory_files.ts";

const PATH = "/cache/pods.snap";
const NO_LOCK: SnapshotLock = { hold() {}, release() {} };

function storage(files: MemoryFiles, options: FileStorageOptions = {}): SnapshotStorage {
  let lineage = 0;
  return newFileStorage(PATH, {
    files,
    lock: NO_LOCK,
    checksum: crc32,
    newLineage: () => 7 + lineage++,
    ...options,
  });
}

/** Saves that append, and with a journal of 300 bytes at most, join. */
const CHANGES: readonly SnapshotChange[] = [
  change(1, {
    replaces: true,
    puts: [put("shop/web-1"), put("shop/web-2"), put("cart/api", { text: "ä€😀" })],
  }),
  change(2, { puts: [put("shop/web-3", { version: "2" })] }),
  change(3, { deletes: ["shop/web-1", "never/there"] }),
  change(4, { puts: [put("shop/web-1", { version: "4", labels: { new: "label" } })], deletes: ["cart/api"] }),
  change(5, { needsList: true }),
];

async function saveAll(
  into: SnapshotStorage,
  changes: readonly SnapshotChange[],
  onSaved: (content: Content) => void,
): Promise<void> {
  let content = await loadContent(into);
  for (const one of changes) {
    // The informer does the same: what is saved first replaces everything if nothing was loaded.
    const next = content === undefined ? { ...one, replaces: true } : one;
    await into.save(next);
    onSaved(content = changed(content, next));
  }
}

describe("fileSnapshot", () => {
  it("loads what was saved last, however it was saved", async () => {
    for (const minJournalBytes of [0, 300, 1 << 20]) {
      const files = new MemoryFiles();
      let last: Content | undefined;
      await saveAll(storage(files, { minJournalBytes }), CHANGES, (content) => last = content);
      for (const maxWholeBytes of [0, 1 << 20]) {
        assert.deepEqual(await loadContent(storage(files, { maxWholeBytes })), last);
      }
    }
  });

  it("has nothing to load where nothing was saved", async () => {
    assert.equal(await loadContent(storage(new MemoryFiles())), undefined);
  });

  it("keeps what was saved last, or is being saved, whenever it is killed, and can be saved to again", async () => {
    // With a journal that is joined at once, at times and never.
    for (const [minJournalBytes, stride] of [[0, 9], [500, 2], [1 << 20, 9]]) {
      const all = new MemoryFiles();
      await saveAll(storage(all, { minJournalBytes }), CHANGES, () => {});
      for (let steps = 0; steps < all.steps; steps += stride) {
        const files = new MemoryFiles({ steps });
        const contents: (Content | undefined)[] = [undefined];
        await assert.rejects(
          saveAll(storage(files, { minJournalBytes }), CHANGES, (content) => contents.push(content)),
          (error: Error) => error instanceof Killed || causeOf(error) instanceof Killed,
        );
        const saving = CHANGES[contents.length - 1];
        const last = contents.at(-1);
        const next = changed(last, { ...saving, replaces: last === undefined });
        const left = files.afterKill();
        const restarted = storage(left, { minJournalBytes });
        const loaded = await loadContent(restarted);
        assert.ok(isOneOf(loaded, [last, next]), `after ${steps} steps: ${JSON.stringify(loaded)}`);
        const again = change(9, { replaces: loaded === undefined, puts: [put("shop/after")] });
        await restarted.save(again);
        assert.deepEqual(await loadContent(storage(left)), changed(loaded, again), `after ${steps} steps`);
      }
    }
  });

  it("keeps what was saved last, whenever the power fails", async () => {
    for (const minJournalBytes of [0, 500, 1 << 20]) {
      const all = new MemoryFiles();
      await saveAll(storage(all, { minJournalBytes }), CHANGES, () => {});
      for (let steps = 0; steps < all.steps; steps += 11) {
        const files = new MemoryFiles({ steps });
        const contents: (Content | undefined)[] = [undefined];
        await saveAll(storage(files, { minJournalBytes }), CHANGES, (content) => contents.push(content))
          .catch(() => {});
        const last = contents.at(-1);
        const next = changed(last, { ...CHANGES[contents.length - 1], replaces: last === undefined });
        for (let seed = 1; seed <= 3; seed++) {
          const loaded = await loadContent(storage(files.afterPowerLoss(seededRandom(steps * 3 + seed))));
          assert.ok(isOneOf(loaded, [last, next]), `after ${steps} steps, seed ${seed}`);
        }
      }
    }
  });

  it("keeps what was saved when the disk is full, and needs everything in the next save", async () => {
    for (const minJournalBytes of [0, 1 << 20]) {
      const files = new MemoryFiles();
      const one = storage(files, { minJournalBytes });
      let last: Content | undefined;
      await saveAll(one, CHANGES.slice(0, 2), (content) => last = content);
      for (let room = 0; room < 100; room += 9) {
        files.room = room;
        await assert.rejects(
          async () => await one.save(CHANGES[2]),
          /Cannot save the snapshot .*no space left/,
        );
        files.room = Infinity;
        await assert.rejects(async () => await one.save(CHANGES[2]), /must have all objects/);
        assert.deepEqual(await loadContent(storage(files)), last);
        assert.equal(files.bytes(`${PATH}.new`), undefined);
        const whole = change(10 + room, { replaces: true, puts: [put("shop/whole")] });
        await one.save(whole);
        last = changed(undefined, whole);
        assert.deepEqual(await loadContent(storage(files)), last);
      }
    }
  });

  it("is refused, or is what some save left, whichever byte is changed", async () => {
    const { bytes, contents } = await savedFile();
    for (const maxWholeBytes of [0, 1 << 20]) {
      for (let at = 0; at < bytes.length; at++) {
        for (const bits of maxWholeBytes === 0 ? [1] : [0x80, 0xff]) {
          const other = bytes.slice();
          other[at] ^= bits;
          await assertNeverWrong(other, contents, { maxWholeBytes });
        }
      }
    }
  });

  it("is refused, or is what some save left, wherever it is cut off", async () => {
    const { bytes, contents } = await savedFile();
    for (let length = 0; length < bytes.length; length++) {
      const loaded = await assertNeverWrong(bytes.slice(0, length), contents);
      if (length === 0) assert.equal(loaded, "truncated");
    }
  });

  it("is never wrong, whatever happens to a larger file", async () => {
    const puts = Array.from({ length: 200 }, (_, i) => put(`ns-${i % 7}/pod-${i}`, { text: "y".repeat(i) }));
    const { bytes, contents } = await savedFile([change(1, { replaces: true, puts }), ...CHANGES.slice(1)]);
    const place = fc.nat(bytes.length - 1);
    const damage = fc.oneof(
      fc.record({ at: place, bytes: fc.uint8Array({ minLength: 1, maxLength: 40 }) }),
      fc.record({ at: place, length: fc.nat(2_000) }),
      fc.record({ at: place, from: place, length: fc.nat(200) }),
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(damage, { minLength: 1, maxLength: 4 }),
        fc.boolean(),
        async (all, isWhole) => {
          let other = bytes.slice();
          for (const one of all) {
            if (one.at >= other.length) continue;
            if ("bytes" in one) other.set(one.bytes.subarray(0, other.length - one.at), one.at);
            else if ("from" in one) other.copyWithin(one.at, one.from, one.from + one.length);
            else {other = Uint8Array.from([
                ...other.subarray(0, one.at),
                ...other.subarray(one.at + one.length),
              ]);}
          }
          await assertNeverWrong(other, contents, { maxWholeBytes: isWhole ? 1 << 20 : 0 });
        },
      ),
      propertyOptions(300),
    );
  });

  it("says why it is refused", async () => {
    const { bytes } = await savedFile();
    const refusal = async (path: Uint8Array, identity = PODS) => {
      const files = new MemoryFiles();
      files.set(PATH, path);
      return await loadOrRefusal(storage(files), identity);
    };
    assert.equal(await refusal(new TextEncoder().encode('{"kind":"PodList"}')), "foreign");
    assert.equal(await refusal(bytes, { ...PODS, source: "https://other.example" }), "other-identity");
    assert.equal(await refusal(bytes, { ...PODS, resource: "v1/nodes" }), "other-identity");
    assert.equal(await refusal(bytes.slice(0, 200)), "truncated");
    const newer = bytes.slice();
    newer[8] = 2;
    new DataView(newer.buffer).setUint32(60, crc32(newer.subarray(0, 60)), true);
    assert.equal(await refusal(newer), "newer-format");
    const torn = bytes.slice();
    torn[indexOf(bytes, new TextEncoder().encode("uid of shop/web-2"))] ^= 1;
    assert.equal(await refusal(torn), "corrupt");
    const files = new MemoryFiles();
    files.set(PATH, torn);
    await assert.rejects(
      async () => await storage(files).load(PODS),
      /Cannot use the snapshot: \/cache\/pods\.snap: the text of "[^"]*" has another checksum \(corrupt\)/,
    );
  });

  it("is refused where a record in the middle of its journal is damaged", async () => {
    const { bytes, contents } = await savedFile();
    const second = indexOf(bytes, new TextEncoder().encode("LWRC"));
    bytes[second + 40] ^= 1;
    assert.equal(await assertNeverWrong(bytes, contents), "corrupt");
  });

  it("keeps a file that is no snapshot, under another name", async () => {
    const files = new MemoryFiles();
    const text = new TextEncoder().encode("a user's work");
    files.set(PATH, text);
    const one = storage(files);
    assert.equal(await loadOrRefusal(one), "foreign");
    await one.save(CHANGES[0]);
    assert.deepEqual(files.bytes(`${PATH}.foreign`), text);
    assert.deepEqual(await loadContent(storage(files)), changed(undefined, CHANGES[0]));
  });

  it("does not append to a file that another process wrote", async () => {
    const files = new MemoryFiles();
    const [one, other] = [storage(files), storage(files)];
    await saveAll(one, CHANGES.slice(0, 2), () => {});
    await other.load(PODS);
    await other.save(change(20, { replaces: true, puts: [put("shop/other")] }));
    await assert.rejects(
      async () => await one.save(CHANGES[2]),
      /another process replaced or removed the file/,
    );
    assert.equal((await loadContent(storage(files)))?.resourceVersion, "20");
  });
});

async function savedFile(
  changes = CHANGES,
): Promise<{ bytes: Uint8Array<ArrayBuffer>; contents: Content[] }> {
  const files = new MemoryFiles();
  const contents: Content[] = [];
  await saveAll(storage(files), changes, (content) => contents.push(content));
  return { bytes: files.bytes(PATH)!, contents };
}

/** Loads damaged bytes: they are refused, or they are a content that was saved. */
async function assertNeverWrong(
  bytes: Uint8Array,
  contents: readonly Content[],
  options: FileStorageOptions = {},
): Promise<Content | string | undefined> {
  const files = new MemoryFiles();
  files.set(PATH, bytes);
  const loaded = await loadOrRefusal(storage(files, options));
  assert.ok(typeof loaded === "string" || isOneOf(loaded, contents), `loaded ${JSON.stringify(loaded)}`);
  return loaded;
}

function isOneOf(loaded: Content | undefined, contents: readonly (Content | undefined)[]): boolean {
  return contents.some((content) => JSON.stringify(content) === JSON.stringify(loaded));
}

function causeOf(error: Error): unknown {
  return error.cause;
}

function indexOf(bytes: Uint8Array, part: Uint8Array): number {
  for (let at = 0; at + part.length <= bytes.length; at++) {
    if (part.every((byte, i) => bytes[at + i] === byte)) return at;
  }
  return -1;
}

describe("realFiles", () => {
  it("creates a file of its owner's in place of a link, and leaves what the link leads to alone", async () => {
    const folder = mkdtempSync(join(tmpdir(), "listwatch-files-"));
    try {
      const [victim, path] = [join(folder, "victim"), join(folder, "pods.snap.new")];
      writeFileSync(victim, "precious", { mode: 0o644 });
      symlinkSync(victim, path);
      for (let i = 0; i < 2; i++) {
        const file = await realFiles.create(path);
        await file.write(new TextEncoder().encode("own"), 0);
        await file.close();
        assert.equal(readFileSync(path, "utf8"), "own");
        assert.equal(lstatSync(path).mode & 0o777, 0o600);
        chmodSync(path, 0o644);
      }
      assert.equal(readFileSync(victim, "utf8"), "precious");
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
