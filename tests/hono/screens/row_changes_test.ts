import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import {
  type RowChange,
  rowChanges,
  rowsOf as rowsBy,
  type WindowRow,
} from "../../../src/hono/screens/row_changes.ts";
import { propertyOptions } from "../../property.ts";

const rowsOf = (text: string): WindowRow[] => [...text].map((id) => ({ id, json: `"${id}"` }));

/** The rows after some changes. */
function applied(rows: readonly WindowRow[], changes: readonly RowChange[]): WindowRow[] {
  const result = [...rows];
  for (const change of changes) {
    if (change.op === "remove") result.splice(change.at, 1);
    else if (change.op === "insert") result.splice(change.at, 0, change.row);
    else if (change.op === "move") result.splice(change.to, 0, ...result.splice(change.from, 1));
    else result[change.at] = change.row;
  }
  return result;
}

const short = (changes: readonly RowChange[]) =>
  changes.map((change) =>
    change.op === "move" ? `move ${change.from} ${change.to}` : `${change.op} ${change.at}`
  );

describe("rowChanges", () => {
  it("is one change where one row comes, goes, moves or changes", () => {
    const of = (before: string, after: string) => short(rowChanges(rowsOf(before), rowsOf(after)));
    assert.deepEqual(of("abcd", "abcd"), []);
    assert.deepEqual(of("abcd", "bcda"), ["move 0 3"]);
    assert.deepEqual(of("abcd", "dabc"), ["move 3 0"]);
    assert.deepEqual(of("abcd", "axbcd"), ["insert 1"]);
    assert.deepEqual(of("abcd", "acd"), ["remove 1"]);
    // A row comes in at the beginning, and the last one leaves the window.
    assert.deepEqual(of("abcd", "xabc"), ["remove 3", "insert 0"]);
    const updated = rowsOf("abc").with(1, { id: "b", json: "2" });
    assert.deepEqual(short(rowChanges(rowsOf("abc"), updated)), ["update 1"]);
  });

  it("takes the rows that are a few places from where they were, and makes the others", () => {
    const before = { states: [1, 2, 3, 4], rows: rowsOf("abcd") };
    const made: number[] = [];
    const rows = rowsBy([9, 1, 2, 4, 8], before, (i) => (made.push(i), { id: `${i}`, json: "" }));
    assert.deepEqual(rows.map(({ id }) => id), ["0", "a", "b", "d", "4"]);
    assert.deepEqual(made, [0, 4]);
  });

  it("leads from any rows to any others", () => {
    const rows = fc.uniqueArray(
      fc.record({ id: fc.constantFrom(..."abcdefghijkl"), json: fc.constantFrom("1", "2") }, {
        noNullPrototype: true,
      }),
      {
        selector: ({ id }) => id,
      },
    );
    fc.assert(
      fc.property(rows, rows, (before, after) => {
        const changes = rowChanges(before, after);
        assert.deepEqual(applied(before, changes), after);
        const kept = before.filter(({ id }) => after.some((row) => row.id === id)).length;
        const moves = changes.filter(({ op }) => op === "move").length;
        assert.ok(moves < Math.max(kept, 1), `${moves} of ${kept} rows move`);
      }),
      propertyOptions(2_000),
    );
  });
});
