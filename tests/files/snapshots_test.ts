import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { after, before, describe, it } from "node:test";
import { type KubernetesObject, newCluster, SharedIndexInformer, silentLogger } from "@listwatch/cache";
import { sqliteSnapshot } from "@listwatch/cache/node";
import { InMemoryApiServer, pod } from "@listwatch/cache/testing";
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

const open = (path: string): SnapshotStorage => sqliteSnapshot(path).storage;

describe("sqliteSnapshot", () => {
  it("loads what was saved last, in the next process as well", async () => {
    const path = join(folder, "deep", "pods.sqlite");
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
    const path = join(folder, "private", "pods.sqlite");
    const one = open(path);
    await one.load(PODS);
    await one.save(CHANGES[0]);
    await one.save(CHANGES[1]);
    for (const file of fs.readdirSync(join(folder, "private"))) {
      assert.equal(fs.statSync(join(folder, "private", file)).mode & 0o777, 0o600, file);
    }
    assert.equal(fs.statSync(join(folder, "private")).mode & 0o777, 0o700);
    await one.close?.();
  });

  it("is refused while another informer has it, and is saved again when that one has stopped", async () => {
    const path = join(folder, "shared.sqlite");
    const [first, second] = [open(path), open(path)];
    await first.load(PODS);
    await first.save(CHANGES[0]);
    await assert.rejects(
      async () => await second.load(PODS),
      /sqlite: another informer uses it, .*\(in-use\)/,
    );
    await assert.rejects(async () => await second.save(CHANGES[0]), /another informer uses it/);
    await first.save(CHANGES[1]);
    await first.close?.();
    await second.save({ ...CHANGES[3], replaces: true });
    await second.close?.();
    assert.equal((await loadAndClose(open(path)))?.resourceVersion, "4");
  });

  it("is refused if it is of something else, and is replaced then", async () => {
    const path = join(folder, "other.sqlite");
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
    const path = join(folder, "work.sqlite");
    fs.mkdirSync(folder, { recursive: true });
    const text = "a user's work ".repeat(100);
    fs.writeFileSync(path, text);
    const one = open(path);
    assert.equal(await loadOrRefusal(one), "foreign");
    await one.save(CHANGES[0]);
    await one.close?.();
    assert.equal(fs.readFileSync(`${path}.foreign`, "utf8"), text);
    assert.deepEqual(await loadAndClose(open(path)), changed(undefined, CHANGES[0]));
    fs.writeFileSync(path, "more work");
    const next = open(path);
    assert.equal(await loadOrRefusal(next), "foreign");
    await next.save(CHANGES[0]);
    await next.close?.();
    assert.equal(fs.readFileSync(`${path}.foreign`, "utf8"), text);
    assert.equal(fs.readFileSync(`${path}.foreign.2`, "utf8"), "more work");
  });

  it("leaves the database of another program as it is, and moves it away with what belongs to it", async () => {
    const path = join(folder, "program.sqlite");
    const { DatabaseSync } = await import("node:sqlite");
    const own = new DatabaseSync(path);
    own.exec("PRAGMA application_id = 7; CREATE TABLE work (text); INSERT INTO work VALUES ('a user''s')");
    own.close();
    fs.chmodSync(path, 0o644);
    const bytes = fs.readFileSync(path);
    const one = open(path);
    assert.equal(await loadOrRefusal(one), "foreign");
    assert.deepEqual(fs.readFileSync(path), bytes);
    assert.equal(fs.statSync(path).mode & 0o777, 0o644);
    await one.save(CHANGES[0]);
    await one.close?.();
    assert.deepEqual(fs.readFileSync(`${path}.foreign`), bytes);
    assert.equal(fs.statSync(path).mode & 0o777, 0o600);
  });

  it("is refused, or is as it was saved, whatever is changed in it", async () => {
    const path = join(folder, "damaged.sqlite");
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
      await assertNeverWrong(join(folder, `damaged-${at}.sqlite`), other, contents);
      await assertNeverWrong(join(folder, `cut-${at}.sqlite`), bytes.subarray(0, at), contents);
    }
  });

  it("takes a file, and SQLite's files beside it, away from other readers before it writes", async () => {
    const first = join(folder, "first.sqlite");
    const one = open(first);
    await one.load(PODS);
    await one.save(CHANGES[0]);
    const path = join(folder, "readable.sqlite");
    for (const suffix of ["", "-wal"]) fs.copyFileSync(first + suffix, path + suffix);
    await one.close?.();
    for (const suffix of ["", "-wal"]) fs.chmodSync(path + suffix, 0o644);
    const modes = () => ["", "-wal"].map((suffix) => (fs.statSync(path + suffix).mode & 0o777).toString(8));
    const two = open(path);
    await two.load(PODS);
    assert.deepEqual(modes(), ["600", "600"]);
    await two.save(CHANGES[1]);
    assert.deepEqual(modes(), ["600", "600"]);
    await two.close?.();
  });

  for (const what of ["a device", "a folder", "a link", "a link to nothing"] as const) {
    it(`leaves ${what} at its path alone, and at the paths of SQLite's files`, async () => {
      for (const suffix of ["", "-wal"]) {
        const path = join(folder, `${what} ${suffix}.sqlite`);
        const victim = join(folder, `victim of ${what}${suffix}`);
        if (what !== "a link to nothing") fs.writeFileSync(victim, "precious");
        if (what === "a device") makeDevice(path + suffix);
        else if (what === "a folder") fs.mkdirSync(path + suffix);
        else fs.symlinkSync(victim, path + suffix);
        const before = fs.lstatSync(path + suffix);
        const one = open(path);
        assert.equal(await loadOrRefusal(one), "unreadable");
        await assert.rejects(async () => await one.save(CHANGES[0]), /is no regular file, and is left alone/);
        await one.close?.();
        const after = fs.lstatSync(path + suffix);
        assert.deepEqual([after.ino, after.mode], [before.ino, before.mode]);
        assert.equal(
          fs.existsSync(victim) ? fs.readFileSync(victim, "utf8") : undefined,
          what === "a link to nothing" ? undefined : "precious",
        );
      }
    });
  }

  it("can be opened by others after a close at any moment of a load, of a save and of a refusal", async () => {
    const path = join(folder, "closed.sqlite");
    const filled = open(path);
    await filled.load(PODS);
    await filled.save(CHANGES[0]);
    await filled.close?.();
    const moments: Record<string, (storage: SnapshotStorage) => Promise<unknown>> = {
      "before the load": async () => {},
      "while the load begins": (storage) => Promise.resolve(void settled(storage.load(PODS))),
      "after a turn of the load": async (storage) => {
        void settled(storage.load(PODS));
        await undefined;
      },
      "after the load": async (storage) => await storage.load(PODS),
      "while the objects are read": async (storage) => {
        const loaded = await storage.load(PODS);
        for await (const _ of loaded!.entries()) return;
      },
      "after a refusal": (storage) => settled(storage.load({ ...PODS, source: "other" })),
      "while a save begins": async (storage) => {
        await storage.load(PODS);
        void settled(storage.save({ ...CHANGES[0], replaces: true }));
      },
      "while a change is saved": async (storage) => {
        await storage.load(PODS);
        const puts = Array.from({ length: 1_000 }, (_, i) => put(`shop/web-${i}`));
        void settled(storage.save(change(2, { puts })));
        await new Promise((resolve) => setTimeout(resolve, 0));
      },
    };
    for (const [moment, until] of Object.entries(moments)) {
      const one = open(path);
      await until(one);
      await one.close?.();
      const content = await loadAndClose(open(path));
      assert.deepEqual(content, changed(undefined, CHANGES[0]), moment);
    }
  });

  it("is free for the next informer however early the one before stops", async () => {
    const path = join(folder, "stopped.sqlite");
    const server = new InMemoryApiServer();
    for (let i = 0; i < 500; i++) server.create("v1/pods", pod(`web-${i}`, { namespace: "shop" }));
    const cluster = newCluster({ server: "http://in-memory", fetch: server.fetch });
    const run = () => {
      const snapshot = sqliteSnapshot(path);
      const pods = cluster.resource<KubernetesObject>("v1/pods");
      const informer = new SharedIndexInformer(pods, { snapshot, logger: silentLogger });
      return { informer, running: informer.start() };
    };
    for (let turns = 0; turns < 40; turns++) {
      const { running } = run();
      for (let turn = 0; turn < turns; turn++) {
        if (turns % 2 === 0) await undefined;
        else await new Promise((resolve) => setTimeout(resolve, 0));
      }
      await running.stop();
      const { informer, running: next } = run();
      await informer.synced();
      const { snapshot } = informer.status();
      await next.stop();
      assert.ok(["none", "restored"].includes(snapshot!.load), `after ${turns}: ${snapshot?.refusal}`);
    }
    server.close();
  });

  // A name with a colon is no file's on Windows.
  it("is the file of its path, whatever SQLite reads in that, and wherever the program goes", {
    skip: process.platform === "win32",
  }, async () => {
    const start = process.cwd();
    try {
      for (const path of [":memory:", "file:pods.sqlite?mode=memory", `file://${folder}/url.sqlite`]) {
        process.chdir(folder);
        const one = open(path);
        assert.equal(await one.load(PODS), undefined, path);
        process.chdir(start);
        await one.save(CHANGES[0]);
        await one.close?.();
        const content = await loadAndClose(open(join(folder, path)));
        assert.deepEqual(content, changed(undefined, CHANGES[0]), path);
      }
    } finally {
      process.chdir(start);
    }
  });

  it("says so when its file was removed or replaced, and writes a new one", async () => {
    const path = join(folder, "removed.sqlite");
    const one = open(path);
    await one.load(PODS);
    await one.save(CHANGES[0]);
    for (const suffix of ["", "-wal"]) fs.rmSync(path + suffix);
    await assert.rejects(async () => await one.save(CHANGES[1]), /the file was removed or replaced/);
    await one.save({ ...CHANGES[3], replaces: true });
    await one.close?.();
    assert.equal((await loadAndClose(open(path)))?.resourceVersion, "4");
  });
});

/** A device, or where only an administrator may make one, a pipe. */
function makeDevice(path: string): void {
  try {
    execFileSync("mknod", [path, "c", "1", "3"], { stdio: "ignore" });
  } catch {
    execFileSync("mkfifo", [path]);
  }
}

async function settled(work: unknown): Promise<void> {
  await Promise.resolve(work).catch(() => {});
}

async function loadAndClose(storage: SnapshotStorage): Promise<Content | undefined> {
  const content = await loadContent(storage);
  await storage.close?.();
  return content;
}

async function assertNeverWrong(
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
