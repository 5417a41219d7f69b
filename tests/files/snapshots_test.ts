import assert from "node:assert/strict";
import * as fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { fileSnapshot, SnapshotInUseError, sqliteSnapshot } from "@listwatch/cache/node";
import type { SnapshotStorage } from "@listwatch/cache/informer";
import { change, changed, type Content, loadContent, loadOrRefusal, PODS, put } from "../snapshots/saved.ts";

let folder = "";
before(() => {
  folder = fs.mkdtempSync(join(tmpdir(), "listwatch-snapshots-"));
});
after(() => fs.rmSync(folder, { recursive: true }));

const CHANGES = [
  change(1, {
    replaces: true,
    puts: [put("shop/web-1"), put("shop/web-2"), put("cart/api", { text: "ä€😀" })],
  }),
  change(2, { puts: [put("shop/web-3", { version: "2" })] }),
  change(3, { deletes: ["shop/web-1", "never/there"] }),
  change(4, { puts: [put("shop/web-1", { version: "4" }), put("shop/web-3", { version: "4" })] }),
  change(5, { needsList: true }),
];

/** Node 22.0 has no SQLite. */
const hasSqlite = await import("node:sqlite").then(() => true, () => false);

const KINDS: readonly [name: string, open: (path: string) => SnapshotStorage, works: boolean][] = [
  ["fileSnapshot", (path) => fileSnapshot(path).storage, true],
  ["sqliteSnapshot", (path) => sqliteSnapshot(path).storage, hasSqlite],
];

for (const [name, open, works] of KINDS) {
  describe(`${name} on a disk`, { skip: !works && "this runtime has no SQLite" }, () => {
    it("loads what was saved last, in the next process as well", async () => {
      const path = join(folder, name, "deep", "pods.snap");
      let content: Content | undefined;
      for (const next of CHANGES) {
        const one = open(path);
        assert.deepEqual(await loadContent(one), content);
        await one.save(next);
        content = changed(content, next);
        await one.close?.();
      }
      assert.deepEqual(await loadAndClose(open(path)), content);
    });

    it("can be read by its owner only", async () => {
      const path = join(folder, name, "private", "pods.snap");
      const one = open(path);
      await one.load(PODS);
      await one.save(CHANGES[0]);
      await one.save(CHANGES[1]);
      for (const file of fs.readdirSync(join(folder, name, "private"))) {
        assert.equal(fs.statSync(join(folder, name, "private", file)).mode & 0o777, 0o600, file);
      }
      assert.equal(fs.statSync(join(folder, name, "private")).mode & 0o777, 0o700);
      await one.close?.();
    });

    it("is refused while another informer has it, and is saved again when that one has stopped", async () => {
      const path = join(folder, name, "shared.snap");
      const [first, second] = [open(path), open(path)];
      await first.load(PODS);
      await first.save(CHANGES[0]);
      await assert.rejects(
        async () => await second.load(PODS),
        (error: Error) => error.cause instanceof SnapshotInUseError && /uses it/.test(error.message),
      );
      await assert.rejects(async () => await second.save(CHANGES[0]), /uses it; give each its own path/);
      await first.save(CHANGES[1]);
      await first.close?.();
      await second.save({ ...CHANGES[3], replaces: true });
      await second.close?.();
      assert.equal((await loadAndClose(open(path)))?.resourceVersion, "4");
    });

    it("is refused if it is of something else, and is replaced then", async () => {
      const path = join(folder, name, "other.snap");
      const first = open(path);
      await first.load({ ...PODS, source: "https://other.example" });
      await first.save(CHANGES[0]);
      await first.close?.();
      const second = open(path);
      assert.equal(await loadOrRefusal(second), "other-identity");
      await second.save({ ...CHANGES[1], replaces: true });
      await second.close?.();
      assert.equal((await loadAndClose(open(path)))?.resourceVersion, "2");
    });

    it("keeps a file that is no snapshot, under another name", async () => {
      const path = join(folder, name, "work.snap");
      fs.mkdirSync(join(folder, name), { recursive: true });
      const text = "a user's work ".repeat(100);
      fs.writeFileSync(path, text);
      const one = open(path);
      assert.equal(await loadOrRefusal(one), "foreign");
      await one.save(CHANGES[0]);
      await one.close?.();
      assert.equal(fs.readFileSync(`${path}.foreign`, "utf8"), text);
      assert.deepEqual(await loadAndClose(open(path)), changed(undefined, CHANGES[0]));
    });

    it("is refused, or is as it was saved, whatever is changed in it", async () => {
      const path = join(folder, name, "damaged.snap");
      const one = open(path);
      await one.load(PODS);
      const puts = Array.from({ length: 40 }, (_, i) => put(`shop/web-${i}`, { text: "x".repeat(i * 10) }));
      await one.save(change(1, { replaces: true, puts }));
      const contents: (Content | undefined)[] = [
        undefined,
        changed(undefined, change(1, { replaces: true, puts })),
      ];
      await one.save(CHANGES[1]);
      contents.push(changed(contents[1], CHANGES[1]));
      await one.close?.();
      const bytes = fs.readFileSync(path);
      const step = Math.ceil(bytes.length / 50);
      for (let at = 0; at < bytes.length; at += step) {
        const other = Uint8Array.from(bytes);
        other[at] ^= 0x55;
        await assertNeverWrong(open, join(folder, name, `damaged-${at}.snap`), other, contents);
        await assertNeverWrong(open, join(folder, name, `cut-${at}.snap`), bytes.subarray(0, at), contents);
      }
    });
  });
}

describe("fileSnapshot", () => {
  it("takes the lock of a process that has ended, and of one whose number another process has now", async () => {
    const path = join(folder, "ended.snap");
    const first = fileSnapshot(path).storage;
    await first.load(PODS);
    const lock = JSON.parse(fs.readFileSync(`${path}.lock`, "utf8"));
    const others = [{ ...lock, token: "t", pid: 2 ** 22 + 1 }];
    if (lock.started !== "") others.push({ ...lock, token: "t", started: `${lock.started}9` });
    for (const other of others) {
      fs.writeFileSync(`${path}.lock`, JSON.stringify(other));
      const next = fileSnapshot(path).storage;
      assert.equal(await next.load(PODS), undefined);
      await assert.rejects(
        async () => await first.save(CHANGES[0]),
        /another informer of this process uses it/,
      );
      await next.close?.();
    }
  });

  it("leaves a lock of another host alone, until it is two minutes old", async () => {
    const path = join(folder, "host.snap");
    fs.writeFileSync(`${path}.lock`, JSON.stringify({ host: "elsewhere", pid: 1, started: "", token: "t" }));
    assert.equal(await loadOrRefusal(fileSnapshot(path).storage), "unreadable");
    const past = Date.now() / 1_000 - 121;
    fs.utimesSync(`${path}.lock`, past, past);
    const next = fileSnapshot(path).storage;
    assert.equal(await next.load(PODS), undefined);
    await next.close?.();
    assert.ok(!fs.existsSync(`${path}.lock`));
  });
});

describe("sqliteSnapshot", () => {
  it(
    "says what it needs where the runtime has no SQLite",
    { skip: hasSqlite && "this one has" },
    async () => {
      await assert.rejects(
        async () => await sqliteSnapshot(join(folder, "none.sqlite")).storage.load(PODS),
        /this runtime has no SQLite .*it needs Node 22\.13 or later, Deno 2\.2 or Bun; or use fileSnapshot/,
      );
    },
  );
});

async function loadAndClose(storage: SnapshotStorage): Promise<Content | undefined> {
  const content = await loadContent(storage);
  await storage.close?.();
  return content;
}

async function assertNeverWrong(
  open: (path: string) => SnapshotStorage,
  path: string,
  bytes: Uint8Array,
  contents: readonly (Content | undefined)[],
): Promise<void> {
  fs.writeFileSync(path, bytes);
  const one = open(path);
  const loaded = await loadOrRefusal(one);
  const isSaved = contents.some((content) => JSON.stringify(content) === JSON.stringify(loaded));
  assert.ok(typeof loaded === "string" || isSaved, `${path}: ${JSON.stringify(loaded)}`);
  const whole = { ...CHANGES[0], replaces: true };
  await one.save(whole);
  await one.close?.();
  assert.deepEqual(await loadAndClose(open(path)), changed(undefined, whole));
}
