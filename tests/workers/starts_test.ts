import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createTables, SAVED, writeState } from "../../src/workers/sql_database.ts";
import { waitBeforeStart } from "../../src/workers/starts.ts";
import { NodeSql } from "./node_sql.ts";

describe("waitBeforeStart", () => {
  const newDatabase = () => {
    const sql = new NodeSql();
    createTables(sql);
    return sql;
  };

  it("doubles the time between starts that save nothing, after the first two, up to 30 s", () => {
    const sql = newDatabase();
    let nowMs = 1_000_000;
    const waits = Array.from({ length: 10 }, () => {
      const waitMs = waitBeforeStart(sql, nowMs);
      nowMs += waitMs;
      return waitMs;
    });
    assert.deepEqual(waits, [0, 0, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]);
  });

  it("counts the time that has passed since the last start, and forgets all once something is saved", () => {
    const sql = newDatabase();
    for (let start = 0; start < 2; start++) waitBeforeStart(sql, 1_000_000);
    assert.equal(waitBeforeStart(sql, 1_000_400), 600);
    assert.equal(waitBeforeStart(sql, 1_010_000), 0, "two seconds are long over");
    writeState(sql, SAVED, { resourceVersion: "7" });
    assert.equal(waitBeforeStart(sql, 1_010_000), 0);
    assert.equal(waitBeforeStart(sql, 1_010_000), 0);
    assert.equal(waitBeforeStart(sql, 1_010_000), 1_000);
  });

  it("waits no longer because it ends while it waits", () => {
    const sql = newDatabase();
    for (let start = 0; start < 2; start++) waitBeforeStart(sql, 1_000_000);
    assert.equal(waitBeforeStart(sql, 1_000_000), 1_000);
    for (let atMs = 0; atMs < 1_000; atMs += 100) {
      assert.equal(waitBeforeStart(sql, 1_000_000 + atMs), 1_000 - atMs);
    }
    assert.equal(waitBeforeStart(sql, 1_001_000), 2_000);
  });

  it("waits 30 s at most where the clock was set back", () => {
    const sql = newDatabase();
    for (let start = 0; start < 20; start++) waitBeforeStart(sql, 1_000_000_000 + start * 30_000);
    assert.equal(waitBeforeStart(sql, 5_000), 30_000);
    assert.equal(waitBeforeStart(sql, 35_000), 30_000);
  });

  it("waits 30 s where nothing can be written: then nothing can be saved", () => {
    const sql = newDatabase();
    sql.failsWith = (query) => query.startsWith("INSERT") ? new Error("the disk is full") : undefined;
    assert.equal(waitBeforeStart(sql, 1_000_000), 30_000);
  });
});
