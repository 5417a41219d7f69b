import { describe, it } from "node:test";
import assert from "node:assert/strict";
import { type KubernetesObject, metaNamespaceKey, silentLogger } from "@listwatch/cache";
import { pod } from "@listwatch/cache/testing";
import { DiskObjects } from "@listwatch/cache/workers";
import type { KeptEntry, KeptLog, LogHistory } from "../../src/hono/content/log_history.ts";
import type { Held, Holding } from "../../src/store/holding.ts";
import { LogRecorder } from "../log_recorder.ts";
import { readState, SAVED, writeState } from "../../src/workers/sql_database.ts";
import { NodeSql } from "./node_sql.ts";

const IDENTITY = { resource: "v1/pods", source: "http://server" };

/** One process: what it has loaded, and its history. */
class Process {
  readonly disk: DiskObjects;
  readonly history: LogHistory;
  readonly holding: Holding<KubernetesObject>;

  constructor(readonly sql: NodeSql, { source = IDENTITY.source, logger = silentLogger } = {}) {
    this.disk = new DiskObjects(sql, { logger });
    this.holding = this.disk.texts<KubernetesObject>(metaNamespaceKey);
    this.history = this.disk.history;
    try {
      this.disk.load({ ...IDENTITY, source });
    } catch {
      // The history is of another source.
    }
  }

  /** The content is saved at a version. */
  saved(resourceVersion: string, deletes: readonly string[] = [], replaces = false): void {
    this.disk.save({
      resourceVersion,
      savedAtMs: 1,
      needsList: false,
      replaces,
      puts: [],
      deletes,
    });
  }

  entry(position: string, fields: Partial<KeptEntry<KubernetesObject>> = {}): KeptEntry<KubernetesObject> {
    return {
      type: "MODIFIED",
      key: "shop/web",
      position,
      isLate: false,
      object: this.held(position),
      oldObject: this.held(`${position} before`),
      gapAfter: undefined,
      ...fields,
    };
  }

  held(text: string): Held<KubernetesObject> {
    return this.holding.hold(pod("web", { namespace: "shop", labels: { text } }));
  }

  restored(position: string, capacity = 100) {
    const kept = this.history.restore<KubernetesObject>(position, { capacity, held: () => undefined });
    return kept && this.#shown(kept);
  }

  #shown({ entries, ...kept }: KeptLog<KubernetesObject>) {
    const text = (held: Held<KubernetesObject> | undefined) =>
      held && this.holding.peek(held).metadata?.labels?.text;
    return {
      ...kept,
      entries: entries.map(({ type, key, position, isLate, object, oldObject, gapAfter }) =>
        [type, key, position, isLate, text(object), text(oldObject), gapAfter ?? `${gapAfter}`].join(" ")
      ),
    };
  }
}

/** A process with a history from version 10 on, that has appended an entry for each of some versions. */
function begun(sql: NodeSql, versions: readonly number[] = []): Process {
  const first = new Process(sql);
  first.saved("10");
  assert.equal(first.restored("10"), undefined);
  first.history.begin({ position: "10", sequence: 0 });
  versions.forEach((version, sequence) => {
    first.history.append(sequence, first.entry(`${version}`));
    first.saved(`${version}`);
  });
  return first;
}

const positions = (entries: readonly string[] | undefined) =>
  entries?.map((entry) => Number(entry.split(" ")[2]));

describe("DiskHistory", () => {
  it("has the states before its events, too, after what a crash has left was swept", () => {
    const sql = new NodeSql();
    const first = new Process(sql);
    first.history.begin({ position: "1", sequence: 0 });
    first.history.append(0, first.entry("2"));
    first.saved("2");
    first.held("of a list that was not stored");
    const second = new Process(sql);
    while (second.disk.reclaim({ isListing: true }));
    assert.deepEqual(second.restored("2")?.entries, ["MODIFIED shop/web 2 false 2 2 before undefined"]);
  });

  it("has after a restart all that each entry had", () => {
    const sql = new NodeSql();
    const first = begun(sql);
    const object = first.held("a");
    const entries = [
      first.entry("11", { type: "ADDED", object, oldObject: undefined }),
      first.entry("12", { object: first.held("b"), oldObject: object }),
      first.entry("12", { key: "shop/late", isLate: true }),
      first.entry("13", { type: "DELETED", object: first.held("c"), gapAfter: "12" }),
      first.entry("14", { type: "BOOKMARK", key: "", object: undefined, oldObject: undefined }),
    ];
    entries.forEach((entry, sequence) => first.history.append(sequence, entry));
    first.history.resumeFrom({ position: "13", sequence: 4 });
    first.saved("14");
    assert.deepEqual(new Process(sql).restored("14"), {
      tail: 0,
      base: "10",
      lastLateEvicted: "",
      resumeFrom: { position: "13", sequence: 4 },
      entries: [
        "ADDED shop/web 11 false a  undefined",
        "MODIFIED shop/web 12 false b a undefined",
        "MODIFIED shop/late 12 true 12 12 before undefined",
        "DELETED shop/web 13 false c 13 before 12",
        "BOOKMARK  14 false   undefined",
      ],
    });
  });

  it("has the last entries, and the position of the ones before them", () => {
    const sql = new NodeSql();
    const first = begun(sql, [11, 12]);
    first.history.append(2, first.entry("12", { isLate: true }));
    for (const [i, version] of [13, 14, 15].entries()) first.history.append(3 + i, first.entry(`${version}`));
    first.saved("15");
    const { entries, ...kept } = new Process(sql).restored("15", 2)!;
    assert.deepEqual(positions(entries), [14, 15]);
    assert.deepEqual(kept, {
      tail: 4,
      base: "13",
      lastLateEvicted: "12",
      resumeFrom: { position: "10", sequence: 0 },
    });
  });

  it("knows the position before its entries when rows were deleted", () => {
    const sql = new NodeSql();
    const first = begun(sql, [11, 12]);
    first.history.append(2, first.entry("12", { isLate: true }));
    first.history.append(3, first.entry("13"));
    first.history.append(4, first.entry("14"));
    first.saved("14");
    first.history.evicted(4);
    const reclaimed = first.disk.history as unknown as { reclaim(row: number, limit: number): number };
    assert.equal(reclaimed.reclaim(4, 3), 3);
    assert.equal(reclaimed.reclaim(4, 3), 1);
    assert.equal(reclaimed.reclaim(4, 3), 0);
    const { entries, tail, base, lastLateEvicted } = new Process(sql).restored("14")!;
    assert.deepEqual([positions(entries), tail, base, lastLateEvicted], [[14], 4, "13", "12"]);
  });

  it("continues after a restart, and after the next one", () => {
    const sql = new NodeSql();
    begun(sql, [11, 12]);
    const second = new Process(sql);
    const { tail, entries } = second.restored("12")!;
    second.history.append(tail + entries.length, second.entry("13"));
    second.saved("13");
    assert.deepEqual(positions(new Process(sql).restored("13")?.entries), [11, 12, 13]);
  });

  it("has nothing of the history before a new one, whose numbers may begin anywhere", () => {
    const sql = new NodeSql();
    const first = begun(sql, [11, 12]);
    first.history.begin({ position: "20", sequence: 1 });
    first.history.append(1, first.entry("21"));
    first.history.append(2, first.entry("22"));
    first.history.resumeFrom({ position: "21", sequence: 2 });
    first.saved("22");
    const { tail, base, resumeFrom, entries } = new Process(sql).restored("22")!;
    assert.deepEqual([positions(entries), base], [[21, 22], "20"]);
    assert.equal(resumeFrom.sequence, tail + 1);
    const reclaimed = first.disk.history as unknown as { reclaim(row: number, limit: number): number };
    assert.equal(reclaimed.reclaim(tail, 1), 1);
    assert.deepEqual(positions(new Process(sql).restored("22")?.entries), [21, 22]);
  });

  it("has nothing of a list before a new history, of whose changes there is one save", () => {
    const sql = new NodeSql();
    const first = begun(sql, [11]);
    first.saved("14", ["shop/a", "shop/b", "shop/c"]);
    for (const [i, version] of [12, 13, 14].entries()) first.history.append(1 + i, first.entry(`${version}`));
    first.history.begin({ position: "20", sequence: 4 });
    first.history.append(4, first.entry("21"));
    first.saved("21");
    assert.deepEqual(positions(new Process(sql).restored("21")?.entries), [21]);
  });

  it("continues in a log that restores it in the same process, whatever the numbers were before", () => {
    const sql = new NodeSql();
    const first = begun(sql, [11, 12]);
    first.history.begin({ position: "20", sequence: 7 });
    first.history.append(7, first.entry("21"));
    first.saved("21");
    first.disk.load(IDENTITY);
    const { tail, entries } = first.restored("21")!;
    first.history.append(tail + entries.length, first.entry("22"));
    first.saved("22");
    assert.deepEqual(positions(new Process(sql).restored("22")?.entries), [21, 22]);
  });

  it("has nothing where the content is of another source, or is older than the last entry", () => {
    const sql = new NodeSql();
    const first = begun(sql, [11, 12]);
    assert.equal(new Process(sql, { source: "http://other" }).restored("12"), undefined);
    first.history.append(2, first.entry("13"));
    assert.equal(new Process(sql).restored("12"), undefined);
    assert.deepEqual(positions(new Process(sql).restored("13")?.entries), [11, 12, 13]);
  });

  it("begins again after an entry that could not be written", () => {
    const sql = new NodeSql();
    const first = begun(sql, [11]);
    const entries = [12, 13, 14, 15].map((version) => first.entry(`${version}`));
    sql.failsWith = (query) => /INSERT INTO listwatch_events/.test(query) ? new Error("full") : undefined;
    first.history.append(1, entries[0]);
    first.saved("12");
    assert.equal(new Process(sql).restored("12"), undefined);
    sql.failsWith = undefined;
    for (let i = 1; i < 4; i++) first.history.append(1 + i, entries[i]);
    first.saved("15");
    const { entries: kept, base, tail, resumeFrom } = new Process(sql).restored("15")!;
    assert.deepEqual([positions(kept), base], [[14, 15], "13"]);
    assert.deepEqual(resumeFrom, { position: "13", sequence: tail });
  });

  it("has nothing where a list ends after an entry that could not be written, and deletes its rows in time", () => {
    const sql = new NodeSql();
    const first = begun(sql, [11]);
    const entry = first.entry("12");
    sql.failsWith = (query) => /INSERT INTO listwatch_events/.test(query) ? new Error("full") : undefined;
    first.saved("12");
    first.history.append(1, entry);
    sql.failsWith = undefined;
    first.history.resumeFrom({ position: "12", sequence: 2 });
    assert.equal(new Process(sql).restored("12"), undefined);
    const reclaimed = first.disk.history as unknown as { reclaim(row: number, limit: number): number };
    assert.equal(reclaimed.reclaim(1, 100), 1);
    assert.equal(new Process(sql).restored("12"), undefined);
  });

  it("writes once the final state of an object that is not held as text", () => {
    const sql = new NodeSql();
    const first = begun(sql, [11]);
    const object = { ...pod("web", { namespace: "shop" }), at: new Date(0) } as Held<KubernetesObject>;
    const deleted = (version: string) => first.entry(version, { type: "DELETED", object, oldObject: object });
    const entries = [deleted("12"), deleted("13")];
    first.history.append(1, entries[0]);
    let written = 0;
    sql.failsWith = (query) => void (written += Number(/INSERT INTO listwatch_bodies/.test(query)));
    first.history.append(2, entries[1]);
    assert.equal(written, 0);
  });

  it("says once that entries cannot be written, and continues from the first one that can be", () => {
    const sql = new NodeSql();
    const logger = new LogRecorder();
    begun(sql, [11]);
    const second = new Process(sql, { logger });
    const { tail, entries } = second.restored("11")!;
    sql.failsWith = (query) => /INSERT INTO listwatch_events/.test(query) ? new Error("full") : undefined;
    const next = [12, 13, 14].map((version) => second.entry(`${version}`));
    const append = (i: number) => second.history.append(tail + entries.length + i, next[i]);
    append(0);
    // Nothing of the state can be written, for a while.
    sql.failsWith = (query) => /INSERT/.test(query) ? new Error("full") : undefined;
    append(1);
    assert.equal(logger.of("error").length, 1);
    sql.failsWith = undefined;
    second.saved("14", ["shop/a"]);
    append(2);
    const kept = new Process(sql).restored("14");
    assert.deepEqual([kept?.entries, kept?.base], [[], "14"]);
  });

  it("has nothing where neither an entry nor the end of the history could be written, and content was saved later", () => {
    const sql = new NodeSql();
    const first = begun(sql, [11]);
    const entry = first.entry("12");
    sql.failsWith = (query) =>
      /^(INSERT INTO listwatch_events|DELETE FROM listwatch_state)/.test(query)
        ? new Error("full")
        : undefined;
    first.saved("12", [], true);
    first.history.append(1, entry);
    assert.equal(new Process(sql).restored("12"), undefined);
    sql.failsWith = undefined;
    first.saved("13");
    assert.equal(new Process(sql).restored("13"), undefined);
  });

  it("has nothing where the final state of an object could not be written", () => {
    const sql = new NodeSql();
    const first = begun(sql, [11]);
    // No JSON, and so not held as text.
    const object = { ...pod("web", { namespace: "shop" }), at: new Date(0) } as Held<KubernetesObject>;
    const deleted = first.entry("12", { type: "DELETED", object, oldObject: object });
    sql.failsWith = (query) => /INSERT INTO listwatch_bodies/.test(query) ? new Error("full") : undefined;
    first.history.append(1, deleted);
    sql.failsWith = undefined;
    assert.equal(new Process(sql).restored("12"), undefined);
    first.history.append(2, first.entry("13", { type: "DELETED", object, oldObject: object }));
    first.history.append(3, first.entry("14", { type: "DELETED", object, oldObject: object }));
    first.saved("14");
    assert.deepEqual(positions(new Process(sql).restored("14")?.entries), [14]);
  });

  it("has one object for each state, and of a present one that of the store", () => {
    const sql = new NodeSql();
    const first = begun(sql);
    const [before, between, present] = ["a", "b", "c"].map((text) => first.held(text));
    first.history.append(0, first.entry("11", { oldObject: before, object: between }));
    first.history.append(1, first.entry("12", { oldObject: between, object: present }));
    first.saved("12");
    const { history } = new Process(sql);
    const { entries } = history.restore<KubernetesObject>("12", { capacity: 9, held: () => present })!;
    assert.equal(entries[0].object, entries[1].oldObject);
    assert.notEqual(entries[0].object, present);
    assert.equal(entries[1].object, present);
  });

  it("begins again after a list or a new history that could not be written", () => {
    for (const write of ["resumeFrom", "begin"] as const) {
      const sql = new NodeSql();
      const first = begun(sql, [11]);
      const entries = [13, 14].map((version) => first.entry(`${version}`));
      sql.failsWith = (query) => /INSERT INTO listwatch_state/.test(query) ? new Error("full") : undefined;
      first.history[write]({ position: "12", sequence: 1 });
      sql.failsWith = undefined;
      first.saved("12");
      assert.equal(new Process(sql).restored("12"), undefined);
      entries.forEach((entry, i) => first.history.append(1 + i, entry));
      first.saved("14");
      const { entries: kept, base } = new Process(sql).restored("14")!;
      assert.deepEqual([positions(kept), base], [[14], "13"]);
    }
  });

  it("continues where the content was saved without the row that leads to it", () => {
    const sql = new NodeSql();
    begun(sql, [11, 12]);
    const { rowsLeadTo, ...saved } = readState<Record<string, unknown>>(sql, SAVED)!;
    assert.equal(rowsLeadTo, 2);
    writeState(sql, SAVED, saved);
    assert.deepEqual(positions(new Process(sql).restored("12")?.entries), [11, 12]);
  });

  it("continues after a restart where all of its rows were deleted", () => {
    const sql = new NodeSql();
    const first = begun(sql, [11, 12]);
    first.history.evicted(2);
    const reclaimed = first.disk.history as unknown as { reclaim(row: number, limit: number): number };
    assert.equal(reclaimed.reclaim(2, 100), 2);
    const second = new Process(sql);
    const { tail, entries, base } = second.restored("12")!;
    assert.deepEqual([entries, base], [[], "12"]);
    second.history.append(tail, second.entry("13"));
    second.saved("13");
    const third = new Process(sql).restored("13");
    assert.deepEqual([positions(third?.entries), third?.base], [[13], "12"]);
  });

  it("has nothing where the entry of an object that was added could be neither written nor refused", () => {
    const sql = new NodeSql();
    const first = begun(sql, [11]);
    const entry = first.entry("12");
    first.disk.save({
      resourceVersion: "12",
      savedAtMs: 1,
      needsList: false,
      replaces: false,
      puts: [{ key: entry.key, held: entry.object, head: {}, json: () => "{}" }],
      deletes: [],
    });
    sql.failsWith = (query) => /^(INSERT|DELETE)/.test(query) ? new Error("full") : undefined;
    first.history.append(1, entry);
    sql.failsWith = undefined;
    assert.equal(new Process(sql).restored("12"), undefined);
  });

  it("has nothing where the entry of the last change, or the rest of a list, could be neither written nor refused", () => {
    const isFull = (query: string) => /^(INSERT|DELETE)/.test(query) ? new Error("full") : undefined;
    for (const written of [0, 1, 2, 3]) {
      const sql = new NodeSql();
      const first = begun(sql, [11]);
      first.saved("13", ["shop/a", "shop/b"]);
      const changes = ["shop/a", "shop/b"].map((key) => first.entry("13", { key, gapAfter: "11" }));
      const end = {
        type: "BOOKMARK",
        key: "",
        gapAfter: "11",
        object: undefined,
        oldObject: undefined,
      } as const;
      const entries = [...changes, first.entry("13", end)];
      for (const [i, entry] of entries.entries()) {
        if (i === written) sql.failsWith = isFull;
        first.history.append(1 + i, entry);
      }
      sql.failsWith ??= isFull;
      first.history.resumeFrom({ position: "13", sequence: 4 });
      sql.failsWith = undefined;
      assert.equal(new Process(sql).restored("13"), undefined, `${written} entries were written`);
    }
  });
});
