import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { blocksOf, readerOf, withChanges } from "../../../src/hono/content/states.ts";
import {
  nextRows,
  type RowChange,
  RowsState,
  type WindowRow,
} from "../../../src/hono/screens/row_changes.ts";
import { propertyOptions } from "../../property.ts";

/** A row, where it is, and what is shown of it: `b7` is at 7, `b7!` the same with other contents. */
interface Item {
  readonly id: string;
  readonly place: string;
  readonly json: string;
}

const itemOf = (text: string): Item => ({
  id: text[0],
  place: text.slice(1).replace("!", "").padStart(2, "0") + text[0],
  json: text.endsWith("!") ? "2" : "1",
});

/** Rows in their order. */
function stateOf(items: readonly Item[], version = "1"): RowsState<Item> {
  const byPlace = new Map(items.map((item) => [item.place, item]));
  return new RowsState(blocksOf([...byPlace.keys()].sort(), (place) => byPlace.get(place)), version);
}

type Place = readonly [from: number, to: number];

function shownIn(state: RowsState<Item>, [from, to]: Place): WindowRow[] {
  const rows: WindowRow[] = [];
  for (let i = from; i < Math.min(to, state.length); i++) rows.push(rowOf(state.value(i)));
  return rows;
}

const rowOf = ({ id, json }: Item): WindowRow => ({ id, json });

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

/** What leads from rows of one state to rows of another, and which rows were made for it. */
function step(before: RowsState<Item>, after: RowsState<Item>, [from, to]: Place, next: Place = [from, to]) {
  const made: string[] = [];
  const shown = { from: Math.min(from, before.length), rows: shownIn(before, [from, to]) };
  const start = Math.min(next[0], after.length);
  const { rows, changes } = nextRows(shown, {
    from: start,
    to: Math.min(next[1], after.length),
    row: (index) => {
      made.push(after.value(index).id);
      return rowOf(after.value(index));
    },
  }, after.differenceFrom(before));
  assert.deepEqual(rows, shownIn(after, next));
  assert.deepEqual(applied(shown.rows, changes), rows);
  return { changes, made: made.join("") };
}

describe("nextRows", () => {
  const of = (before: string, after: string, place?: Place, next?: Place) => {
    const items = new Map(before.split(" ").map((text) => [text, itemOf(text)]));
    const state = (text: string) => stateOf(text.split(" ").map((each) => items.get(each) ?? itemOf(each)));
    const { changes, made } = step(state(before), state(after), place ?? [0, 9], next);
    return [...short(changes), made];
  };

  it("is one change where one row comes, goes, moves or changes", () => {
    assert.deepEqual(of("a1 b2 c3 d4", "a1 b2 c3 d4"), [""]);
    assert.deepEqual(of("a1 b2 c3 d4", "b2 c3 d4 a5"), ["move 0 3", "a"]);
    assert.deepEqual(of("a1 b2 c3 d4", "d0 a1 b2 c3"), ["move 3 0", "d"]);
    assert.deepEqual(of("a1 b2 c3 d4", "a1 x1 b2 c3 d4"), ["insert 1", "x"]);
    assert.deepEqual(of("a1 b2 c3 d4", "a1 c3 d4"), ["remove 1", ""]);
    assert.deepEqual(of("a1 b2 c3", "a1 b2! c3"), ["update 1", "b"]);
    // Another state of the row shows the same, at its place or at another one.
    assert.deepEqual(of("a1 b3 c5", "a1 b4 c5"), ["b"]);
  });

  it("is what comes in at one end and leaves at the other where rows change outside", () => {
    const all = "a1 b2 c3 d4 e5 f6";
    assert.deepEqual(of(all, "f0 a1 b2 c3 d4 e5", [2, 5]), ["remove 2", "insert 0", "b"]);
    assert.deepEqual(of(all, "b2 c3 d4 e5 f6 a7", [2, 5]), ["remove 0", "insert 2", "f"]);
    assert.deepEqual(of(all, "a1! b2 c3 d4 e5 f6!", [2, 5]), [""]);
    assert.deepEqual(of(all, "b1 a2 c3 d4 e5 f6", [2, 5]), [""]);
  });

  it("keeps the rows that stay where the window itself moves", () => {
    const all = "a1 b2 c3 d4 e5 f6";
    assert.deepEqual(of(all, all, [1, 4], [2, 5]), ["remove 0", "insert 2", "e"]);
    assert.deepEqual(of(all, all, [0, 2], [4, 6]), ["remove 1", "remove 0", "insert 0", "insert 1", "ef"]);
  });

  it("leads from the rows of any state to those of any other, by few moves", () => {
    const change = fc.record({
      id: fc.constantFrom(..."abcdefghijklmnopqrstuvwxyz"),
      place: fc.option(fc.integer({ min: 0, max: 20 }), { nil: undefined }),
      isOther: fc.boolean(),
    });
    const place = fc.tuple(fc.integer({ min: 0, max: 12 }), fc.integer({ min: 1, max: 12 }));
    fc.assert(
      fc.property(fc.array(change, { maxLength: 60 }), fc.array(change, { maxLength: 12 }), place, place, (
        first,
        then,
        [from, limit],
        [nextFrom, nextLimit],
      ) => {
        const items = new Map<string, Item>();
        const apply = (changes: typeof first) => {
          const places = new Map<string, Item | undefined>();
          for (const { id, place, isOther } of changes) {
            const before = items.get(id);
            if (before !== undefined) places.set(before.place, undefined);
            items.delete(id);
            if (place === undefined) continue;
            const item = itemOf(`${id}${place}${isOther ? "!" : ""}`);
            places.set(item.place, item);
            items.set(id, item);
          }
          return places;
        };
        apply(first);
        const blocks = blocksOf(
          [...items.values()].map(({ place }) => place).sort(),
          (place) => [...items.values()].find((item) => item.place === place),
        );
        const before = new RowsState(blocks, "1");
        const places = apply(then);
        const after = new RowsState(withChanges(blocks, places.keys(), (place) => places.get(place)), "2");
        const window: Place = [from, from + limit];
        const next: Place = [nextFrom, nextFrom + nextLimit];
        for (const later of [window, next]) {
          // The differences are the same where all blocks are made again.
          for (const state of [after, stateOf([...items.values()])]) {
            const { changes } = step(before, state, window, later);
            const kept = shownIn(before, window)
              .filter(({ id }) => shownIn(state, later).some((row) => row.id === id)).length;
            const moves = changes.filter(({ op }) => op === "move").length;
            assert.ok(moves < Math.max(kept, 1), `${moves} of ${kept} rows move`);
          }
        }
        if (after.isSameIn(before, from, Math.min(from + limit, after.length))) {
          const { changes, made } = step(before, after, window);
          // Rows that are beyond the end are none of the window.
          if (before.length === after.length) assert.deepEqual([changes, made], [[], ""]);
        }
      }),
      propertyOptions(2_000),
    );
  });
});

describe("RowsState.isSameIn", () => {
  it("says whether a window has the rows that it had, wherever others have come, left or changed", () => {
    const state = (text: string) => stateOf(text.split(" ").map((each) => before.get(each) ?? itemOf(each)));
    const all = "a1 b2 c3 d4 e5";
    const before = new Map(all.split(" ").map((text) => [text, itemOf(text)]));
    const cases: readonly (readonly [after: string, from: number, to: number, isSame: boolean])[] = [
      ["a1 b2 c3 d4! e5", 0, 3, true],
      ["a1 b2 c3 d4! e5", 3, 4, false],
      // One comes in, and one leaves behind the window, or before it.
      ["a1 x1 b2 c3 d4", 0, 3, false],
      ["a1 b2 c3 d4 x4", 0, 4, true],
      ["x0 b2 c3 d4 e5", 1, 5, true],
      ["x0 b2 c3 d4 e5", 0, 2, false],
      ["b2 c3 d4 e5 f6", 0, 2, false],
      ["b2 c3 d4 x4 e5", 2, 4, false],
      ["a1 c3 d4 e5 f6", 0, 1, true],
    ];
    for (const [after, from, to, isSame] of cases) {
      assert.equal(state(after).isSameIn(state(all), from, to), isSame, `${after} ${from} ${to}`);
    }
  });
});

describe("RowsState.differenceFrom", () => {
  it("has what differs, whatever blocks are shared", () => {
    const places = fc.array(fc.integer({ min: 0, max: 4_000 }), { maxLength: 40 });
    const keyOf = (number: number) => String(number).padStart(4, "0");
    fc.assert(
      fc.property(places, places, places, (less, more, others) => {
        const keys = Array.from({ length: 2_000 }, (_, i) => keyOf(2 * i));
        const blocks = blocksOf(keys, (key) => key);
        const values = new Map<string, string | undefined>();
        for (const number of others) values.set(keyOf(number & ~1), `other ${number}`);
        for (const number of more) values.set(keyOf(number | 1), "new");
        for (const number of less) values.set(keyOf(number & ~1), undefined);
        const next = withChanges(blocks, values.keys(), (key) => values.get(key));
        const before = new RowsState(blocks, "1");
        const there = new Set(keys);
        const { key, value } = readerOf(next);
        const all = new Map(Array.from({ length: next.length }, (_, i) => [key(i), value(i)]));
        // Blocks that begin at other keys have the same rows.
        for (const other of [next, blocksOf([...all.keys()], (key) => all.get(key))]) {
          const after = new RowsState(other, "2");
          const { removed, inserted, changed } = after.differenceFrom(before);
          assert.deepEqual(removed.map((at) => keys[at]), keys.filter((key) => !all.has(key)));
          const keysAfter = [...all.keys()];
          assert.deepEqual(inserted.map((at) => keysAfter[at]), keysAfter.filter((key) => !there.has(key)));
          const isOther = (key: string) => there.has(key) && all.get(key) !== key;
          assert.deepEqual(changed.map((at) => keysAfter[at]), keysAfter.filter(isOther));
          assert.equal(after.differenceFrom(before), after.differenceFrom(before));
        }
      }),
      propertyOptions(200),
    );
  });
});
