import assert from "node:assert/strict";
import * as fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { SnapshotChange } from "@listwatch/cache/informer";
import { loadSqlite, type OpenSqlite, type SqliteDatabase } from "../../src/node/sqlite_tables.ts";
import { SqliteStorage } from "../../src/node/sqlite_snapshot.ts";
import { change, changed, type Content, loadContent, loadOrRefusal, PODS, put } from "../snapshots/saved.ts";

let folder = "";
before(() => {
  folder = fs.mkdtempSync(join(tmpdir(), "listwatch-sqlite-"));
});
after(() => fs.rmSync(folder, { recursive: true }));

const SUFFIXES = ["", "-wal", "-journal"];

class Killed extends Error {}

/** A database that does some statements, and then is as a kill leaves it, in another place. */
function mortal(statements: number, path: string, left: string): () => Promise<OpenSqlite> {
  let done = 0;
  const step = () => {
    if (done++ < statements) return;
    for (const suffix of SUFFIXES) {
      if (fs.existsSync(path + suffix) && !fs.existsSync(left + suffix)) {
        fs.copyFileSync(path + suffix, left + suffix);
      }
    }
    throw new Killed("killed");
  };
  return async () => {
    const open = await loadSqlite();
    return (path): SqliteDatabase => {
      const database = open(path);
      return {
        exec: (sql) => (step(), database.exec(sql)),
        close: () => database.close(),
        prepare: (sql) => {
          const statement = database.prepare(sql);
          return {
            run: (...values) => (step(), statement.run(...values)),
            all: (...values) => (step(), statement.all(...values)),
          };
        },
      };
    };
  };
}

/** One that has only so many pages. */
function small(limit: { pages: number | undefined; database?: SqliteDatabase }): () => Promise<OpenSqlite> {
  return async () => {
    const open = await loadSqlite();
    return (path) => limit.database = open(path);
  };
}

const many = (version: number, count: number) =>
  Array.from(
    { length: count },
    (_, i) => put(`shop/web-${i}`, { version: String(version), text: "x".repeat(i) }),
  );

const CHANGES: readonly SnapshotChange[] = [
  change(1, { replaces: true, puts: many(1, 450) }),
  change(2, { puts: many(2, 3), deletes: ["shop/web-7", "never/there"] }),
  change(3, { replaces: true, puts: many(3, 250) }),
  change(4, { puts: [put("shop/new")] }),
  change(5, { needsList: true }),
];

describe("SqliteStorage", () => {
  it("has what was saved last, or is being saved, when it is killed before any of its statements", async () => {
    let kills = 0;
    for (let statements = 0;; statements += statements < 20 ? 1 : 37) {
      const path = join(folder, `alive-${statements}.sqlite`);
      const left = join(folder, `left-${statements}.sqlite`);
      const storage = new SqliteStorage(path, mortal(statements, path, left));
      const contents: (Content | undefined)[] = [undefined];
      await loadOrRefusal(storage);
      for (const next of CHANGES) {
        try {
          await storage.save(next);
          contents.push(changed(contents.at(-1), next));
        } catch {
          contents.push(changed(contents.at(-1), next));
          break;
        }
      }
      storage.close();
      if (!fs.existsSync(left)) break;
      kills++;
      const next = new SqliteStorage(left);
      const loaded = await loadContent(next);
      const isSaved = contents.slice(-2).some((content) =>
        JSON.stringify(content) === JSON.stringify(loaded)
      );
      assert.ok(isSaved, `after ${statements} statements: ${loaded?.resourceVersion}`);
      const last = change(9, { replaces: true, puts: many(9, 3) });
      await next.save(last);
      next.close();
      const again = new SqliteStorage(left);
      assert.deepEqual(await loadContent(again), changed(undefined, last));
      again.close();
      assert.ok(
        fs.statSync(left).size < 60_000,
        `${fs.statSync(left).size} bytes are left of what was replaced after ${statements}`,
      );
    }
    assert.ok(kills > 30, `${kills} kills`);
  });

  it("says that the disk is full, keeps what was saved, gives the room back, and saves when there is room again", async () => {
    const path = join(folder, "full.sqlite");
    const limit: { pages: number | undefined; database?: SqliteDatabase } = { pages: undefined };
    const storage = new SqliteStorage(path, small(limit));
    await storage.load(PODS);
    await storage.save(CHANGES[0]);
    const pages = () => {
      const [row] = limit.database!.prepare("PRAGMA page_count").all() as { page_count: number }[];
      return row.page_count;
    };
    const before = pages();
    limit.database!.exec(`PRAGMA max_page_count = ${before + 150}`);
    const large = { ...CHANGES[2], puts: many(3, 1_500) };
    await assert.rejects(
      () => storage.save({ ...large, replaces: false }),
      /full\.sqlite: .*disk is full/,
    );
    await assert.rejects(() => storage.save(large), /full\.sqlite: .*disk is full/);
    assert.ok(pages() <= before + 1, `${pages()} pages instead of ${before}`);
    const copy = join(folder, "copy.sqlite");
    for (const suffix of SUFFIXES) {
      if (fs.existsSync(path + suffix)) fs.copyFileSync(path + suffix, copy + suffix);
    }
    const other = new SqliteStorage(copy);
    assert.deepEqual(await loadContent(other), changed(undefined, CHANGES[0]));
    other.close();
    limit.database!.exec("PRAGMA max_page_count = 1000000");
    await storage.save(large);
    storage.close();
    const next = new SqliteStorage(path);
    assert.deepEqual(await loadContent(next), changed(undefined, large));
    next.close();
  });

  it("gives others turns of the event loop while it saves and loads many objects", async () => {
    const path = join(folder, "many.sqlite");
    const storage = new SqliteStorage(path);
    await storage.load(PODS);
    let turns = 0;
    const count = () => void (turns++, timer = setTimeout(count, 0));
    let timer = setTimeout(count, 0);
    await storage.save(change(1, { replaces: true, puts: many(1, 3_000) }));
    const whole = turns;
    await storage.save(change(2, { puts: many(2, 3_000) }));
    clearTimeout(timer);
    assert.ok(whole >= 10 && turns - whole >= 10, `${whole} turns, and ${turns - whole}`);
    storage.close();
    const next = new SqliteStorage(path);
    const loaded = await next.load(PODS);
    const sizes: number[] = [];
    for await (const batch of loaded!.entries()) sizes.push(batch.length);
    next.close();
    assert.ok(sizes.length >= 10 && Math.max(...sizes) <= 300, `${sizes}`);
  });
});
