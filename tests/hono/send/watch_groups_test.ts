import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type KubernetesObject, metaNamespaceKey } from "@listwatch/cache";
import type { LogEntry } from "../../../src/hono/content/log_history.ts";
import {
  type Chunk,
  type EntryChange,
  EntryViews,
  type GroupKind,
  WatchGroups,
} from "../../../src/hono/send/watch_groups.ts";

import { ObjectHolding } from "../../../src/store/holding.ts";
import { newObjectView } from "../../../src/hono/send/view_text.ts";
import { OPEN_UNITS } from "../../../src/util/turns.ts";

type Entry = LogEntry<KubernetesObject>;

/** An entry, whose object is there unless it was deleted, and was there before unless it was added. */
function entry(type: Entry["type"], key: string, position: string, more: Partial<Entry> = {}): Entry {
  const object = type === "BOOKMARK" ? undefined : { metadata: { name: key } };
  return {
    type,
    key,
    position,
    isLate: false,
    object,
    oldObject: type === "ADDED" || type === "BOOKMARK" ? undefined : object,
    gapAfter: undefined,
    isPlaced: true,
    bytes: 0,
    atMs: 0,
    views: undefined,
    ...more,
  };
}

const KIND = { view: { sharedAs: "json" }, selection: undefined, allowBookmarks: false };

/** The groups of a log, whose events are a letter for the change, and the key: `Aweb` is web, added. */
function groupsOf(entries: Entry[], { ageMs = 0, eventBytes = 0 } = {}) {
  const state = { ageMs, tail: 0 };
  const atPosition: string[] = [];
  const content = {
    get ageMs() {
      return state.ageMs;
    },
    log: {
      window: {
        get tail() {
          return state.tail;
        },
        entries: {
          get length() {
            return entries.length;
          },
          at: (i: number) => entries[i],
        },
      },
    },
  };
  const views = {
    bytes: (entry: Entry, change: EntryChange, _: unknown, isAtPosition: boolean) => {
      if (isAtPosition) atPosition.push(entry.key);
      return new TextEncoder().encode(`${change[0]}${entry.key} `.padEnd(eventBytes));
    },
    showsNothingNew: ({ key }: Entry) => key.startsWith("same"),
    opened: (entry: Entry, which: "object" | "oldObject") =>
      entry.key.startsWith("held") ? { ...entry[which] } : entry[which],
  };
  const groups = new WatchGroups<KubernetesObject>(content, views as unknown as EntryViews<KubernetesObject>);
  const view = {
    sharedAs: "json",
    bookmark: (metadata: unknown) => metadata,
  };
  const join = (kind: Partial<GroupKind> = {}) =>
    groups.join({ ...KIND, ...kind, view: { ...view, ...kind.view } } as unknown as GroupKind);
  return { groups, join, state, atPosition };
}

/** The events of a chunk in a line; a bookmark is its version, with an age behind it. */
function shown({ bytes }: Chunk): string {
  return new TextDecoder().decode(bytes)
    .replace(
      /\{"type":"BOOKMARK","object":\{"resourceVersion":"(\d+)"(?:,"annotations":\{"[^"]*":"(\d+)"\})?\}\}\n/g,
      "$1($2) ",
    )
    .trim();
}

const ALL = { length: 1_000_000, skipThrough: "" };

describe("WatchGroup.chunk", () => {
  it("ends where it is long enough, and says how far its reader has come", () => {
    const { join } = groupsOf([
      entry("ADDED", "a", "11"),
      entry("MODIFIED", "b", "12"),
      entry("DELETED", "c", "13"),
    ]);
    const group = join();
    const first = group.chunk(0, { length: 1, skipThrough: "" });
    assert.deepEqual([shown(first), first.from, first.to, first.resourceVersion], ["Aa", 0, 1, "11"]);
    assert.deepEqual([first.isFull, first.isTooLong, first.units], [true, false, 0]);
    const rest = group.chunk(1, ALL);
    assert.deepEqual([shown(rest), rest.to, rest.resourceVersion, rest.isFull], ["Mb Dc", 3, "13", false]);
    // Exactly long enough is long enough.
    assert.equal(shown(join({ allowBookmarks: true }).chunk(0, { length: 3, skipThrough: "" })), "Aa");
  });

  it("says how far its reader has come, also where it is not continued", () => {
    const entries = [entry("ADDED", "a", "11")];
    const group = groupsOf(entries).join();
    const chunk = () => group.chunk(0, { length: 1, skipThrough: "" });
    assert.deepEqual([chunk().isFull, chunk().resourceVersion], [false, "11"]);
    entries.push(entry("ADDED", "b", "12"));
    assert.deepEqual([shown(chunk()), chunk().isFull, chunk().resourceVersion], ["Aa", true, "11"]);
  });

  it("has a relist as a whole, its deletes first, and no version in its middle", () => {
    const step = { gapAfter: "10" };
    const { join } = groupsOf([
      entry("ADDED", "a", "20", step),
      entry("DELETED", "b", "20", step),
      entry("DELETED", "c", "20", step),
      entry("BOOKMARK", "", "20", step),
      entry("ADDED", "d", "21"),
    ]);
    for (const [allowBookmarks, events] of [[false, "Db Dc Aa"], [true, "Db Dc Aa 20()"]] as const) {
      const chunk = join({ allowBookmarks }).chunk(0, { length: 1, skipThrough: "" });
      assert.deepEqual([shown(chunk), chunk.to, chunk.resourceVersion], [events, 4, "20"]);
    }
    const middle = groupsOf([entry("ADDED", "a", "20", step), entry("ADDED", "b", "20", step)]);
    const all = middle.join().chunk(0, { length: 1, skipThrough: "" });
    assert.deepEqual([shown(all), all.resourceVersion], ["Aa Ab", "20"]);
    const two = groupsOf([entry("ADDED", "a", "20", step), entry("ADDED", "b", "30", step)]);
    assert.equal(two.join().chunk(0, { length: 1, skipThrough: "" }).to, 1);
  });

  it("has changes without a place as they came, and one bookmark behind them", () => {
    const step = { gapAfter: "10", isPlaced: false };
    const { join } = groupsOf([
      entry("ADDED", "a", "20", step),
      entry("DELETED", "b", "20", step),
      entry("BOOKMARK", "", "20", step),
    ]);
    assert.equal(shown(join({ allowBookmarks: true }).chunk(0, ALL)), "Aa Db 20()");
  });

  it("has two relists at one version one after the other: what the second deletes is not deleted before", () => {
    const step = { gapAfter: "20", isLate: true };
    const { join } = groupsOf([
      entry("ADDED", "a", "20", step),
      entry("BOOKMARK", "", "20", step),
      entry("DELETED", "a", "20", step),
      entry("BOOKMARK", "", "20", step),
    ]);
    assert.equal(shown(join().chunk(0, ALL)), "Aa Da");
    assert.equal(shown(join({ allowBookmarks: true }).chunk(0, ALL)), "Aa 20() Da 20()");
  });

  it("is too long with a relist of more than 4 MiB", () => {
    const step = { gapAfter: "10" };
    const relist = (keys: string) => Array.from(keys, (key) => entry("ADDED", key, "20", step));
    const cases = [[1024 * 1024, "abcd", false], [1024 * 1024, "abcde", false], [
      1024 * 1024 + 400_000,
      "abcd",
      true,
    ]] as const;
    for (const [eventBytes, keys, isTooLong] of cases) {
      const group = groupsOf(relist(keys), { eventBytes }).join();
      const chunk = group.chunk(0, ALL);
      assert.deepEqual([chunk.isTooLong, chunk.isFull], [isTooLong, isTooLong]);
      assert.equal(group.chunk(0, ALL), chunk);
      const large = groupsOf([entry("ADDED", "a", "11")], { eventBytes: 5 * eventBytes }).join();
      assert.equal(large.chunk(0, ALL).isTooLong, false, "one event of any length");
      assert.equal(chunk.resourceVersion, isTooLong ? "" : "20");
    }
  });

  it("leaves out what a reader from the future has seen, but for what is late", () => {
    const { join, groups } = groupsOf([
      entry("ADDED", "a", "11"),
      entry("ADDED", "late", "11", { isLate: true }),
      entry("BOOKMARK", "", "11", { isLate: true }),
      entry("ADDED", "b", "12"),
    ]);
    const group = join({ allowBookmarks: true });
    const chunk = group.chunk(0, { length: 1_000, skipThrough: "11" });
    assert.deepEqual([shown(chunk), chunk.resourceVersion], ["Alate Ab", "12"]);
    assert.equal(group.chunk(0, { length: 1_000, skipThrough: "99" }).resourceVersion, "");
    // It is no chunk of the group.
    assert.equal(groups.used.size, 0);
    assert.notEqual(group.chunk(0, { length: 1_000, skipThrough: "11" }), chunk);
    assert.equal(shown(group.chunk(0, ALL)), "Aa Alate 11() Ab");
  });

  it("ends with a bookmark where its objects do not show where they lead, and says an age of a second", () => {
    for (const [ageMs, place] of [[0, "12()"], [999, "12()"], [1_000, "12(1000)"]] as const) {
      const { join } = groupsOf([
        entry("DELETED", "a", "11"),
        entry("DELETED", "b", "12", { isPlaced: false }),
      ], { ageMs });
      const [plain, withBookmarks] = [false, true].map((allowBookmarks) =>
        join({ allowBookmarks }).chunk(0, ALL)
      );
      assert.equal(shown(plain), "Da Db");
      assert.equal(shown(withBookmarks), `Da Db ${place}`);
    }
    const { join } = groupsOf([entry("ADDED", "a", "11", { isPlaced: false }), entry("BOOKMARK", "", "12")]);
    assert.equal(shown(join({ allowBookmarks: true }).chunk(0, ALL)), "Aa 12()");
  });

  it("ends after much work on its selection, and has what enters, stays in and leaves it", () => {
    const is = (object: unknown) => (object as { readonly in?: boolean })?.in === true;
    const selection = {
      name: "in",
      units: 20_000,
      mayHave: (key: string) => key !== "elsewhere",
      hasHead: is,
      hasFields: undefined,
    } as unknown as GroupKind["selection"];
    const [inside, outside] = [{ in: true }, { in: false }] as unknown as KubernetesObject[];
    const states = [
      entry("MODIFIED", "enters", "11", { object: inside, oldObject: outside }),
      entry("MODIFIED", "stays", "12", { object: inside, oldObject: inside }),
      entry("MODIFIED", "leaves", "13", { object: outside, oldObject: inside }),
      entry("MODIFIED", "out", "14", { object: outside, oldObject: outside }),
      entry("DELETED", "ends", "15", { object: inside, oldObject: inside }),
      entry("DELETED", "was-out", "16", { object: outside, oldObject: outside }),
      entry("ADDED", "elsewhere", "17", { object: inside }),
    ];
    const group = groupsOf(states).join({ selection });
    const chunks = states.map((_, i) => group.chunk(i, ALL));
    assert.deepEqual(chunks.map(shown), ["Aenters", "Mstays", "Lleaves", "", "Dends", "", ""]);
    assert.deepEqual(chunks.map(({ to }) => to), [1, 2, 3, 4, 5, 6, 7]);
    assert.deepEqual(chunks.map(({ units }) => units), Array(7).fill(40_000));
    assert.equal(chunks[5].resourceVersion, "16");
  });

  it("has the positions in its events where there are no bookmarks, but for the middle of a step", () => {
    const step = { gapAfter: "11" };
    const entries = [
      entry("ADDED", "a", "11"),
      entry("ADDED", "b", "20", step),
      entry("ADDED", "c", "20", step),
      entry("ADDED", "d", "21"),
    ];
    const { join, atPosition } = groupsOf(entries);
    join({ allowBookmarks: true }).chunk(0, ALL);
    assert.deepEqual(atPosition, []);
    join().chunk(0, ALL);
    assert.deepEqual(atPosition, ["a", "c", "d"]);
  });

  it("leaves out what shows nothing new, where bookmarks show the position of a reader that has come from here", () => {
    const shownFields = { sharedAs: "fields", shown: {} } as unknown as GroupKind["view"];
    const selection = {
      name: "in",
      units: 0,
      mayHave: () => true,
      hasHead: (object: unknown) => object !== undefined,
      hasFields: undefined,
    } as unknown as GroupKind["selection"];
    const entries = [
      entry("MODIFIED", "same", "11"),
      entry("MODIFIED", "new", "12"),
      entry("ADDED", "same-added", "13"),
      entry("DELETED", "same-deleted", "14"),
    ];
    const { join } = groupsOf(entries);
    const of = (kind: Partial<GroupKind>, skipThrough = "") =>
      shown(join({ selection, ...kind }).chunk(0, { ...ALL, skipThrough }));
    const all = "Msame Mnew Asame-added Dsame-deleted";
    assert.equal(of({ allowBookmarks: true, view: shownFields }), "Mnew Asame-added Dsame-deleted");
    assert.equal(of({ view: shownFields }), all);
    assert.equal(of({ allowBookmarks: true }), all);
    assert.equal(of({ allowBookmarks: true, view: shownFields }, "10"), all);
  });

  it("counts each object that it opens to select by fields", () => {
    const selection = {
      name: "fields",
      units: 0,
      mayHave: () => true,
      hasHead: undefined,
      hasFields: (object: unknown) => object !== undefined,
    } as unknown as GroupKind["selection"];
    const { join } = groupsOf([entry("MODIFIED", "plain", "11"), entry("MODIFIED", "held", "12")]);
    assert.equal(join({ selection }).chunk(0, ALL).units, 2 * OPEN_UNITS);
  });

  it("is made once, is continued while the log grows, and is kept with the last three others", () => {
    const entries = [entry("ADDED", "a", "11"), entry("ADDED", "b", "12")];
    const { join, groups } = groupsOf(entries);
    const group = join();
    const first = group.chunk(0, ALL);
    assert.equal(group.chunk(0, ALL), first);
    assert.deepEqual([...groups.used], [group]);
    entries.push(entry("ADDED", "c", "13"));
    const longer = group.chunk(0, ALL);
    assert.deepEqual([shown(longer), longer.from, longer.to, longer.resourceVersion], [
      "Aa Ab Ac",
      0,
      3,
      "13",
    ]);
    assert.equal(group.chunk(0, ALL), longer);
    const others = [1, 2, 3].map((from) => group.chunk(from, ALL));
    assert.equal(group.chunk(0, ALL), longer);
    assert.deepEqual(others.map((chunk, i) => group.chunk(i + 1, ALL) === chunk), [true, true, true]);
    group.chunk(4, ALL);
    assert.equal(group.chunk(3, ALL), others[2]);
    const again = group.chunk(0, ALL);
    assert.notEqual(again, longer);
    groups.clear();
    assert.equal(groups.used.size, 0);
    assert.notEqual(group.chunk(0, ALL), again);
  });
});

describe("WatchGroups.join", () => {
  it("gives one group to watches that send the same, until all of them have left", () => {
    const { join, groups } = groupsOf([entry("ADDED", "a", "11")]);
    const selection = { name: "in" } as unknown as GroupKind["selection"];
    const one = join();
    assert.equal(join(), one);
    const others = [
      join({ allowBookmarks: true }),
      join({ selection }),
      join({ view: { sharedAs: "yaml" } as never }),
    ];
    assert.equal(new Set([one, ...others]).size, 4);
    assert.equal(groups.size, 4);
    const own = join({ view: { sharedAs: undefined } as never });
    assert.notEqual(join({ view: { sharedAs: undefined } as never }), own);
    assert.equal(groups.size, 4);
    one.chunk(0, ALL);
    groups.leave(one);
    assert.equal(join(), one);
    groups.leave(one);
    groups.leave(one);
    assert.deepEqual([groups.size, groups.used.size], [3, 0]);
    assert.notEqual(join(), one);
    for (const group of [...others, own]) groups.leave(group);
    assert.equal(groups.size, 1);
  });

  it("makes the bookmark of a version once for a group, but none with an age", () => {
    const { join } = groupsOf([]);
    const group = join();
    const bytes = group.bookmark("11");
    assert.equal(group.bookmark("11"), bytes);
    assert.notEqual(group.bookmark("12"), bytes);
    assert.notEqual(group.bookmark("12", { age: "1000" }), group.bookmark("12"));
    assert.match(new TextDecoder().decode(group.bookmark("12", { age: "1000" })), /"age":"1000"/);
    assert.doesNotMatch(new TextDecoder().decode(group.bookmark("12")), /annotations/);
    const own = join({ view: { sharedAs: undefined } as never });
    assert.notEqual(own.bookmark("11"), own.bookmark("11"));
  });
});

describe("EntryViews.bytes", () => {
  const resource = { group: "", version: "v1", resource: "pods", kind: "Pod", namespaced: true };
  const view = newObjectView(resource);
  const at = (resourceVersion: string | undefined, state: string) =>
    ({ metadata: { name: "web", ...(resourceVersion && { resourceVersion }) }, state }) as KubernetesObject;
  const newViews = () =>
    new EntryViews<KubernetesObject>(new ObjectHolding<KubernetesObject>(metaNamespaceKey));

  it("show versions from which a reader resumes without going back, and the state that is to be shown", () => {
    const event = (of: Entry, change: EntryChange, showsPosition = false) => {
      const { type, object } = JSON.parse(
        new TextDecoder().decode(newViews().bytes({ ...of, views: undefined }, change, view, showsPosition)),
      );
      return `${type} ${object.state} ${object.metadata.resourceVersion}`;
    };
    const states = { object: at("12", "now"), oldObject: at("5", "before") };
    const changed = entry("MODIFIED", "web", "20", states);
    for (const change of ["ADDED", "MODIFIED"] as const) {
      assert.equal(event(changed, change), `${change} now 12`);
      assert.equal(event(changed, change, true), `${change} now 12`);
      const unplaced = { ...changed, isPlaced: false };
      assert.equal(event(unplaced, change), `${change} now 12`);
      assert.equal(event(unplaced, change, true), `${change} now 20`);
    }
    const cases: readonly (readonly [entry: Partial<Entry>, left: string, deleted: string])[] = [
      // Older than the log was before it.
      [{ position: "20" }, "20", "20"],
      [{ position: "12" }, "12", "12"],
      [{ position: "11" }, "12", "12"],
      // A relist: after the position before it, whatever the object has.
      [{ position: "20", gapAfter: "10" }, "10", "10"],
      [{ position: "20", gapAfter: "15" }, "15", "15"],
      [{ position: "20", gapAfter: "10", isLate: true }, "20", "20"],
      [{ position: "20", isPlaced: false }, "12", "12"],
    ];
    for (const [more, left, deleted] of cases) {
      const of = entry("MODIFIED", "web", "20", { ...states, ...more });
      assert.equal(event(of, "LEFT"), `DELETED before ${left}`, JSON.stringify(more));
      assert.equal(
        event({ ...of, type: "DELETED" }, "DELETED"),
        `DELETED now ${deleted}`,
        JSON.stringify(more),
      );
    }
    const unplaced = entry("DELETED", "web", "20", { ...states, isPlaced: false });
    assert.equal(event(unplaced, "LEFT", true), "DELETED before 20");
    assert.equal(event(unplaced, "DELETED", true), "DELETED now 20");
    const without = entry("DELETED", "web", "20", {
      object: at(undefined, "now"),
      oldObject: at("5", "before"),
    });
    assert.equal(event(without, "LEFT"), "DELETED before 20");
  });

  it("are made once for all watches of a view, and by themselves for those that show positions, or share nothing", () => {
    const views = newViews();
    const of = entry("ADDED", "web", "20", { object: at("12", "now"), isPlaced: false });
    const bytes = views.bytes(of, "ADDED", view);
    assert.equal(views.bytes(of, "ADDED", view), bytes);
    assert.notEqual(views.bytes(of, "ADDED", view, true), bytes);
    assert.notEqual(views.bytes(of, "MODIFIED", view), bytes);
    const own = { ...view, sharedAs: undefined };
    assert.notEqual(views.bytes(of, "ADDED", own), views.bytes(of, "ADDED", own));
    assert.equal(of.views!.encoded.size, 3);
    views.forget(of);
    assert.equal(of.views, undefined);
    assert.notEqual(views.bytes(of, "ADDED", view), bytes);
  });

  it("are kept of the last 256 entries, and of all of them while many watches read the same", () => {
    const views = newViews();
    const all = Array.from(
      { length: 300 },
      (_, i) => entry("ADDED", `${i}`, "20", { object: at("12", `${i}`) }),
    );
    const kept = () => all.filter(({ views }) => views !== undefined).length;
    for (const one of all) views.bytes(one, "ADDED", view);
    assert.equal(kept(), 256);
    assert.deepEqual([all[43].views, all[44].views !== undefined], [undefined, true]);
    views.isPass = true;
    for (const one of all) views.bytes(one, "ADDED", view);
    assert.equal(kept(), 300);
    views.passEnds();
    assert.deepEqual([kept(), views.isPass], [256, false]);
    // Eight MiB, and the last one in any case.
    const large = Array.from(
      { length: 3 },
      (_, i) => entry("ADDED", `${i}`, "20", { object: at("12", "x".repeat(5e6)) }),
    );
    for (const one of large) views.bytes(one, "ADDED", view);
    assert.deepEqual([kept(), ...large.map(({ views }) => views !== undefined)], [0, false, false, true]);
    for (const one of all.slice(0, 5)) views.bytes(one, "ADDED", view);
    assert.equal(kept(), 5);
  });
});
