import assert from "node:assert/strict";
import * as fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { crc32 } from "node:zlib";
import { type SnapshotChange, SnapshotRefusedError } from "@listwatch/cache/informer";
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

  it("loads what is left after each of many saves that only delete", async () => {
    const path = join(folder, "deletes.sqlite");
    const keys = Array.from({ length: 12 }, (_, i) => `shop/web-${i}`);
    let next = change(1, { replaces: true, puts: keys.map((key) => put(key)) });
    for (let version = 2; keys.length > 0; version++) {
      const writer = new SqliteStorage(path);
      await loadContent(writer);
      await writer.save(next);
      writer.close();
      const reader = new SqliteStorage(path);
      assert.deepEqual(Object.keys((await loadContent(reader))!.texts).sort(), keys.toSorted());
      reader.close();
      next = change(version, { deletes: [keys.shift()!] });
    }
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

  it("takes little more of the disk than its content, once a save with many changes is over", async () => {
    const path = join(folder, "changed_much.sqlite");
    const storage = new SqliteStorage(path);
    await storage.load(PODS);
    const large = (version: number) =>
      Array.from({ length: 16 }, (_, i) => put(`shop/web-${i}`, { text: `${version}`.repeat(1 << 20) }));
    await storage.save(change(1, { replaces: true, puts: large(1) }));
    await storage.save(change(2, { puts: large(2) }));
    for (let i = 3; i < 6; i++) await storage.save(change(i, { puts: many(i, 1) }));
    const sizes = SUFFIXES.map((suffix) => fs.statSync(path + suffix, { throwIfNoEntry: false })?.size ?? 0);
    storage.close();
    assert.ok(sizes[0] + sizes[1] < (16 + 5) * 2 ** 20, `${sizes}`);
    assert.equal(sizes[2], 0);
  });

  it("refuses what was changed in its tables, says what, and replaces it then", async () => {
    const key = "key = 'shop/web-2'";
    const changes: Readonly<Record<string, readonly [reason: string, detail: RegExp]>> = {
      "UPDATE meta SET json = replace(json, '\"1\"', '\"9\"')": [
        "corrupt",
        /its version has another checksum/,
      ],
      "UPDATE meta SET json = NULL, checksum = 0": ["corrupt", /its version has another checksum/],
      "UPDATE meta SET json = CAST(json AS BLOB)": ["corrupt", /its version has another checksum/],
      [`UPDATE objects SET json = replace(json, 'x', 'y') WHERE ${key}`]: [
        "corrupt",
        /"shop\/web-2" has another/,
      ],
      [`UPDATE objects SET json = NULL WHERE ${key}`]: ["corrupt", /"shop\/web-2" has another/],
      [`UPDATE objects SET json = CAST(json AS BLOB) WHERE ${key}`]: ["corrupt", /"shop\/web-2" has another/],
      [`UPDATE objects SET head = NULL WHERE ${key}`]: ["corrupt", /"shop\/web-2" has another/],
      [`UPDATE objects SET key = NULL WHERE ${key}`]: ["corrupt", /null has another/],
      [`UPDATE objects SET key = 'shop/other' WHERE ${key}`]: ["corrupt", /"shop\/other" has another/],
      [`UPDATE objects SET head = replace(head, 'web', 'api') WHERE ${key}`]: [
        "corrupt",
        /"shop\/web-2" has/,
      ],
      [`DELETE FROM objects WHERE ${key}`]: ["corrupt", /it has 2 rows that are not the 3 that were saved/],
      // As many rows as were saved, each with its own checksum.
      [`UPDATE objects SET generation = 0 WHERE ${key}; UPDATE objects SET generation = 1 WHERE key = 'shop/past'`]:
        ["corrupt", /it has 3 rows that are not the 3 that were saved/],
      "UPDATE objects SET generation = 1 WHERE key = 'shop/past'": ["corrupt", /it has 4 rows/],
      "DROP TABLE objects": ["corrupt", /no such table/],
      "PRAGMA user_version = 3": ["newer-format", /its format is 3/],
      "PRAGMA user_version = 1": ["corrupt", /its format is 1/],
      "PRAGMA application_id = 7": ["foreign", /no snapshot of/],
    };
    const open = await loadSqlite();
    for (const [i, [sql, [reason, detail]]] of Object.entries(changes).entries()) {
      const path = join(folder, `changed-${i}.sqlite`);
      const first = new SqliteStorage(path);
      await first.load(PODS);
      await first.save(change(1, { replaces: true, puts: ["1", "2", "3"].map((n) => put(`shop/web-${n}`)) }));
      first.close();
      const database = open(path);
      database.exec(
        "INSERT INTO objects (generation, key, checksum, head, json) SELECT 0, 'shop/past', checksum, head, json " +
          "FROM objects WHERE key = 'shop/web-1'",
      );
      // The checksum of that row under its own key.
      const [row] = database.prepare("SELECT head, json FROM objects WHERE generation = 0").all() as {
        readonly head: string;
        readonly json: string;
      }[];
      database.prepare("UPDATE objects SET checksum = ? WHERE generation = 0").run(
        crc32(`shop/past\0${row.head}\0${row.json}`),
      );
      database.exec(sql);
      database.close();
      const second = new SqliteStorage(path);
      await assert.rejects(() => loadContent(second), (error) => {
        assert.ok(error instanceof SnapshotRefusedError, String(error));
        assert.equal(error.reason, reason, sql);
        assert.match(error.message, detail, sql);
        return true;
      });
      await second.save(change(2, { replaces: true, puts: [put("shop/first")] }));
      const next = change(3, { replaces: true, puts: [put("shop/new")] });
      await second.save(next);
      second.close();
      const third = new SqliteStorage(path);
      assert.deepEqual(await loadContent(third), changed(undefined, next), sql);
      third.close();
      // Nothing was written to the damaged one, and the new one was replaced by nothing.
      const replaced = open(path);
      const generations = replaced.prepare("SELECT generation FROM objects").all() as {
        generation: number;
      }[];
      assert.deepEqual(generations.map(({ generation }) => generation), [2], sql);
      replaced.close();
    }
  });

  it("saves nothing before it was loaded, and no part where it has no whole; the next whole is saved", async () => {
    const path = join(folder, "whole.sqlite");
    const storage = new SqliteStorage(path);
    const whole = change(1, { replaces: true, puts: [put("shop/web")] });
    await assert.rejects(() => storage.save(whole), /whole\.sqlite: it was not loaded before/);
    await storage.load(PODS);
    await assert.rejects(
      () => storage.save(change(1, { puts: [put("shop/web")] })),
      /the save before failed/,
    );
    await storage.save(whole);
    await storage.save(change(2, { deletes: ["shop/web"] }));
    storage.close();
    await assert.rejects(() => storage.save(whole), /its informer has stopped/);
    await assert.rejects(() => storage.load(PODS), /its informer has stopped/);
  });

  it("needs everything in the save after one that failed in its middle, and takes it then", async () => {
    const path = join(folder, "failing.sqlite");
    const storage = new SqliteStorage(path);
    await storage.load(PODS);
    const whole = change(1, { replaces: true, puts: [put("shop/web-1")] });
    await storage.save(whole);
    const json = () => {
      throw new Error("it has no text");
    };
    const puts = [put("shop/web-2"), { ...put("shop/web-3"), json }];
    await assert.rejects(() => storage.save(change(2, { puts })), /it has no text/);
    await assert.rejects(
      () => storage.save(change(3, { puts: [put("shop/web-4")] })),
      /must have all objects/,
    );
    assert.deepEqual(await loadContent(storage), changed(undefined, whole));
    await assert.rejects(() => storage.save(change(4, { replaces: true, puts })), /it has no text/);
    const last = change(5, { replaces: true, puts: [put("shop/web-5")] });
    await storage.save(last);
    storage.close();
    const next = new SqliteStorage(path);
    assert.deepEqual(await loadContent(next), changed(undefined, last));
    next.close();
  });

  it("removes its files, unless another informer uses them", async () => {
    const path = join(folder, "removed.sqlite");
    const [one, other] = [new SqliteStorage(path), new SqliteStorage(path)];
    await one.load(PODS);
    await one.save(CHANGES[0]);
    await assert.rejects(() => other.remove(), (error) => {
      assert.ok(error instanceof SnapshotRefusedError);
      assert.equal(error.reason, "in-use");
      return true;
    });
    assert.deepEqual(SUFFIXES.filter((suffix) => fs.existsSync(path + suffix)), ["", "-wal"]);
    one.close();
    await other.remove();
    await assert.rejects(() => other.load(PODS), /its informer has stopped/);
    assert.deepEqual(fs.readdirSync(folder).filter((name) => name.startsWith("removed")), []);
  });

  it("loads about a megabyte of text at a time, however long the objects are", async () => {
    const path = join(folder, "long.sqlite");
    const storage = new SqliteStorage(path);
    await storage.load(PODS);
    const long = (i: number, length: number) => put(`shop/web-${i}`, { text: "x".repeat(length) });
    const lengths = [
      ...Array.from({ length: 20 }, () => 300_000),
      ...Array.from({ length: 6 }, () => 3_000_000),
      ...Array.from({ length: 400 }, () => 10),
    ];
    const puts = lengths.map((length, i) => long(i, length));
    await storage.save(change(1, { replaces: true, puts }));
    storage.close();
    const next = new SqliteStorage(path);
    const loaded = await next.load(PODS);
    const sizes: number[] = [];
    for await (const batch of loaded!.entries()) sizes.push(batch.length);
    next.close();
    assert.deepEqual(sizes, [20, 3, 1, 1, 1, 1, 200, 199]);
  });
});
