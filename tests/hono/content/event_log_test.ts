import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Content } from "../../../src/hono/content/content.ts";
import { EventLog } from "../../../src/hono/content/event_log.ts";
import type {
  KeptEntry,
  KeptLog,
  LogEntry,
  LogFollower,
  LogHistory,
  LogStart,
} from "../../../src/hono/content/log_history.ts";
import { type KubernetesObject, resourceVersionOf } from "../../../src/meta/object.ts";
import { heldStoreOf } from "../../../src/store/holding.ts";
import { encodeMergedVersion, newLayout } from "../../../src/meta/merged_version.ts";
import { FakeClock } from "../../../src/testing/fake_clock.ts";
import { FakeInformer, object, type TestObject } from "../fake_informer.ts";

interface LogOptions {
  readonly capacity?: number;
  readonly capacityBytes?: number;
  readonly history?: LogHistory;
}

function newLog(
  informer: FakeInformer,
  { capacity = 100, capacityBytes = Infinity, history }: LogOptions = {},
) {
  const store = heldStoreOf<TestObject, FakeInformer["indexer"]>(informer.indexer) as never;
  return new EventLog<TestObject>(informer as never, store, {
    clock: new FakeClock(),
    capacity,
    capacityBytes,
    history,
  });
}

/** A history in memory, which outlives its logs. */
class MemoryHistory implements LogHistory {
  #tail = 0;
  #entries: KeptEntry<never>[] = [];
  #base = "";
  #lastLateEvicted = "";
  #resumeFrom: LogStart | undefined;

  restore<T>(): KeptLog<T> | undefined {
    if (this.#resumeFrom === undefined) return undefined;
    return {
      tail: this.#tail,
      entries: this.#entries as unknown as KeptEntry<T>[],
      base: this.#base,
      lastLateEvicted: this.#lastLateEvicted,
      resumeFrom: this.#resumeFrom,
    };
  }

  begin(start: LogStart): void {
    [this.#tail, this.#entries, this.#base, this.#lastLateEvicted] = [start.sequence, [], start.position, ""];
    this.#resumeFrom = start;
  }

  append<T>(sequence: number, entry: KeptEntry<T>): void {
    assert.equal(sequence, this.#tail + this.#entries.length);
    this.#entries.push(entry as unknown as KeptEntry<never>);
  }

  resumeFrom(start: LogStart): void {
    this.#resumeFrom = start;
  }

  evicted(tail: number): void {
    for (; this.#tail < tail; this.#tail++) {
      const { position, isLate } = this.#entries.shift()!;
      this.#base = position;
      if (isLate) this.#lastLateEvicted = position;
    }
  }
}

/** A log at version 10, of an informer with one object. */
function begun(options: LogOptions = {}) {
  const informer = FakeInformer.with([object("shop/web-1", 5)], 10);
  return { informer, log: newLog(informer, options) };
}

describe("EventLog.resume", () => {
  it("begins with the late entries of the position that a reader is at, and with no others", () => {
    const { informer, log } = begun();
    informer.put(object("shop/web-2", 11));
    informer.put(object("shop/late", 7));
    assert.equal(log.resume("11"), 1);
    informer.bookmark(15);
    assert.equal(log.resume("15"), 2);
    assert.equal(log.resume("12"), 2);
    assert.equal(log.resume("10"), 0);
    assert.equal(log.resume("9"), undefined);
    assert.equal(log.resume("99"), 2);
  });

  it("begins with what a list of the position that a reader is at has brought", () => {
    const { informer, log } = begun();
    informer.put(object("shop/web-2", 11));
    informer.relist([object("shop/web-2", 11)], 11);
    assert.equal(log.resume("11"), 1);
    const { type, key } = log.window.entries.at(1)!;
    assert.deepEqual([type, key], ["DELETED", "shop/web-1"]);
  });

  it("refuses a reader behind a late entry that was dropped, and none who is at the present position", () => {
    const { informer, log } = begun({ capacity: 1 });
    informer.put(object("shop/web-2", 11));
    informer.put(object("shop/late-1", 7));
    informer.put(object("shop/late-2", 8));
    assert.equal(log.resume("11"), 2);
    informer.bookmark(15);
    assert.equal(log.resume("11"), undefined);
    assert.equal(log.resume("12"), 3);
  });
});

describe("EventLog.resume, in the history of a restored server", () => {
  it("refuses nothing for what an earlier history has dropped", () => {
    const { informer, log } = begun({ capacity: 1 });
    informer.put(object("shop/web-2", 11));
    for (const name of ["late-1", "late-2"]) informer.put(object(`shop/${name}`, 7));
    informer.relist([], 4);
    informer.put(object("shop/web-3", 6));
    assert.deepEqual([log.resume("3"), log.resume("4"), log.resume("6")], [
      undefined,
      log.head - 1,
      log.head,
    ]);
  });
});

describe("EventLog.eventsThrough", () => {
  it("comes to a version that was proven by state with the events up to it, and never goes back", () => {
    const { informer, log } = begun();
    informer.bookmark(20, { byState: true });
    assert.deepEqual([log.resourceVersion, log.eventsThrough], ["20", "10"]);
    const versions = ["9", "10", "15", "20", "25"];
    const mayLack = versions.map((version) => log.mayLackEvents(version));
    assert.deepEqual(mayLack, [false, false, true, false, false]);
    informer.bookmark(20);
    assert.deepEqual([log.eventsThrough, log.mayLackEvents("15")], ["20", false]);
    informer.put(object("shop/late", 7));
    assert.equal(log.eventsThrough, "20");
  });

  it("is followed by the last thousand versions that were proven by state", () => {
    const { informer, log } = begun();
    for (let version = 11; version <= 1_011; version++) informer.bookmark(version, { byState: true });
    assert.deepEqual(["11", "12", "1010"].map((version) => log.mayLackEvents(version)), [true, false, false]);
  });
});

describe("EventLog.firstAfter", () => {
  it("seeks from an entry on, if one is given", () => {
    const { informer, log } = begun();
    for (const version of [11, 12, 13]) informer.put(object("shop/web-2", version));
    assert.deepEqual(["10", "12", "13"].map((version) => log.firstAfter(version)), [0, 2, 3]);
    assert.equal(log.firstAfter("10", 2), 2);
  });
});

describe("EventLog.reaches", () => {
  it("says at once that an informer that has stopped reaches nothing more", async () => {
    const informer = FakeInformer.with([], 10);
    informer.phase = "stopped";
    assert.equal(await newLog(informer).reaches("11", { timeoutMs: 60_000 }), false);
  });

  it("says at once that a list has brought it", async () => {
    const { informer, log } = begun();
    const reached = log.reaches("20", { timeoutMs: 60_000 });
    informer.relist([], 20);
    assert.equal(await reached, true);
  });
});

describe("EventLog.window", () => {
  it("counts as rewritten what a list brings under versions that were reached before", () => {
    const { informer, log } = begun();
    const [first, second] = [object("shop/web-1", 5), object("shop/web-2", 11)];
    informer.put(second);
    assert.equal(log.window.rewrites, 0);
    informer.relist([first, second, object("shop/web-3", 15)], 20);
    assert.equal(log.window.rewrites, 0);
    informer.relist([first, second, object("shop/web-4", 7)], 30);
    assert.equal(log.window.rewrites, 1);
  });

  it("counts late events as rewritten, but for deletes, and deletes of what was not there", () => {
    const { informer, log } = begun();
    informer.put(object("shop/web-2", 11));
    informer.put(object("shop/late", 7));
    assert.equal(log.window.rewrites, 1);
    informer.remove("shop/late", 8);
    informer.remove("shop/web-2", 12);
    assert.equal(log.window.rewrites, 1);
    informer.remove("shop/none", 13);
    assert.equal(log.window.rewrites, 2);
  });

  it("counts a list of the version that the log is at as rewritten if it brings changes, and has another revision", () => {
    const { informer, log } = begun();
    const { revision } = log.window;
    informer.relist([object("shop/web-1", 5)], 10);
    assert.equal(log.window.rewrites, 0);
    assert.notEqual(log.window.revision, revision);
    informer.relist([], 10);
    assert.equal(log.window.rewrites, 1);
    informer.relist([object("shop/web-2", 20)], 20);
    assert.equal(log.window.rewrites, 1);
  });

  it("numbers the entries of a new history behind those of the old one, and counts no bytes of them", () => {
    const one = begun();
    one.informer.put(object("shop/web-2", 11));
    const { bytes } = one.log.window.entries.at(0)!;
    const { informer, log } = begun({ capacityBytes: 2 * bytes });
    for (const version of [11, 12]) informer.put(object("shop/web-2", version));
    informer.bookmark(25, { byState: true });
    informer.relist([], 4);
    assert.deepEqual([log.window.tail, log.head, log.window.rewrites], [2, 2, 1]);
    for (const version of [15, 16]) informer.put(object("shop/web-2", version));
    assert.deepEqual([log.window.tail, log.head], [2, 4]);
    // What was proven in the old history is not in this one.
    informer.bookmark(40, { byState: true });
    assert.deepEqual(["25", "40"].map((version) => log.mayLackEvents(version)), [true, false]);
  });

  it("has the last state of what was deleted, the time of each entry, and whether its object has a place", () => {
    const { informer, log } = begun();
    informer.remove("shop/none", 11);
    const { type, oldObject, object: last, atMs, isPlaced } = log.window.entries.at(0)!;
    assert.deepEqual([type, atMs, isPlaced], ["DELETED", 0, true]);
    assert.equal(oldObject, last);
    assert.notEqual(last, undefined);
  });

  it("notes the key of another copy of what the store has, which is no entry", () => {
    const informer = FakeInformer.with([object("shop/web-1", 5)], 5);
    const log = newLog(informer);
    informer.put(object("shop/web-1", 5));
    assert.deepEqual([[...log.changedKeys], log.head, log.window.revision], [["shop/web-1"], 0, 1]);
  });

  it("notes few keys, however many have changed since the content was read", () => {
    const informer = FakeInformer.with([], 10);
    const options = { clock: new FakeClock(), capacity: 100, capacityBytes: 1e9 };
    const { log, states } = new Content<KubernetesObject>(informer, options);
    for (const from of [10, 5_010, 100]) {
      if (from === 5_010) states.snapshot();
      if (from === 100) informer.relist([], 100); // a restored server, of which no state is kept
      for (let i = 0; i < 5_000; i++) informer.put(object(`shop/web-${i}`, from + 1 + i));
      assert.ok(log.changedKeys.size < 4_096, `${log.changedKeys.size}`);
    }
    const { length, key, object: objectAt } = states.snapshot();
    assert.equal(length, 5_000);
    for (let i = 0; i < length; i++) {
      assert.equal(
        resourceVersionOf(objectAt(i)),
        informer.indexer.getByKey(key(i))!.metadata!.resourceVersion,
      );
    }
  });
});

describe("EventLog, of a server that merges others,", () => {
  const layout = newLayout(["any", "a", "b"]);
  const at = (...parts: number[]) => encodeMergedVersion({ layout, parts: parts.map(String) });
  const entriesOf = ({ window }: EventLog<TestObject>) =>
    Array.from({ length: window.entries.length }, (_, i) => {
      const { type, key, position, isLate, gapAfter } = window.entries.at(i)!;
      return [type, key, position, isLate, gapAfter];
    });

  /** A log at 10 of one server and 20 of the other. */
  function merged() {
    const informer = FakeInformer.with([object("shop/web-1", 5)], 0);
    informer.relist([object("shop/web-1", 5)], at(10, 20));
    const log = newLog(informer);
    assert.notEqual(log.window.layout, "");
    return { informer, log };
  }

  it("gives changes their place with the bookmark behind them, all of them as one step", () => {
    const { informer, log } = merged();
    informer.put(object("shop/web-2", 11));
    informer.put(object("shop/web-3", 22));
    assert.deepEqual([log.head, log.resourceVersion], [0, at(10, 20)]);
    assert.deepEqual([...log.changedKeys], ["shop/web-2", "shop/web-3"]);
    informer.bookmark(at(11, 22));
    assert.equal(log.window.entries.at(0)!.isPlaced, false);
    assert.deepEqual(entriesOf(log), [
      ["ADDED", "shop/web-2", at(11, 22), false, at(10, 20)],
      ["ADDED", "shop/web-3", at(11, 22), false, at(10, 20)],
    ]);
    const places = [at(10, 20), at(11, 20), at(11, 22)].map((version) => log.resume(version));
    assert.deepEqual(places, [0, undefined, 2]);
  });

  it("gives a change with a merged version its place at once: to a watch without bookmarks it comes so", () => {
    const { informer, log } = merged();
    const { metadata, ...rest } = object("shop/web-2", 0);
    informer.put({ ...rest, metadata: { ...metadata, resourceVersion: at(11, 20) } });
    assert.deepEqual(entriesOf(log), [["ADDED", "shop/web-2", at(11, 20), false, undefined]]);
    assert.deepEqual([log.resourceVersion, log.window.entries.at(0)!.isPlaced], [at(11, 20), true]);
  });

  it("gives changes that a bookmark brings no further a place at the end, as late ones", () => {
    const { informer, log } = merged();
    informer.put(object("shop/late", 7));
    informer.bookmark(at(10, 20));
    assert.deepEqual(entriesOf(log), [["ADDED", "shop/late", at(10, 20), true, undefined]]);
    assert.equal(log.resume(at(10, 20)), 0);
    assert.equal(log.window.rewrites, 1);
    informer.bookmark(at(11, 20));
    assert.equal(log.head, 1);
    informer.put(object("shop/later", 8));
    informer.bookmark(at(11, 20));
    assert.equal(log.resume(at(10, 20)), 0);
    assert.equal(log.resume(at(11, 20)), 1);
  });

  it("knows the versions that are between two entries, for each of the servers, and no others", () => {
    const { informer, log } = merged();
    informer.put(object("shop/web-2", 12));
    informer.bookmark(at(12, 22));
    informer.bookmark(at(13, 25));
    informer.put(object("shop/web-3", 14));
    informer.bookmark(at(14, 25));
    const places: readonly (readonly [version: string, sequence: number | undefined])[] = [
      [at(10, 20), 0],
      [at(11, 22), undefined],
      [at(12, 22), 1],
      [at(13, 23), 1],
      [at(13, 21), undefined],
      [at(13, 26), undefined],
      [at(14, 25), 2],
      [at(14, 24), undefined],
      ["12", undefined],
    ];
    for (const [version, sequence] of places) assert.equal(log.resume(version), sequence);
  });

  it("gives changes a place before a list that comes before their bookmark, and watches have them first", () => {
    for (const [version, isNewHistory] of [[at(12, 30), false], [at(9, 20), true]] as const) {
      const { informer, log } = merged();
      const seen: unknown[] = [];
      log.follow({
        interrupted: (isNew) => {
          seen.push(["interrupted", isNew, log.head]);
          return () => void seen.push(["after", log.resourceVersion]);
        },
        isSending: true,
        grown: () => void seen.push(["grown", log.head]),
        heard: () => {},
        forget: () => {},
        trimmed: () => {},
        end: () => {},
      });
      informer.put(object("shop/web-2", 11));
      informer.relist([object("shop/web-2", 11)], version);
      assert.deepEqual(seen.slice(0, 3), [
        ["grown", 1],
        ["interrupted", isNewHistory, 1],
        ["after", version],
      ]);
      const entries = entriesOf(log);
      if (isNewHistory) assert.deepEqual(entries, []);
      else {
        assert.deepEqual(entries, [
          ["ADDED", "shop/web-2", at(10, 20), true, undefined],
          ["DELETED", "shop/web-1", version, false, at(10, 20)],
          ["BOOKMARK", "", version, false, at(10, 20)],
        ]);
        assert.equal(log.resume(at(10, 20)), undefined);
      }
      informer.bookmark(at(13, 31));
      assert.equal(log.head, isNewHistory ? 1 : 3);
    }
  });
});

describe("EventLog.close", () => {
  it("leaves neither an observer nor a listener on its informer", () => {
    const listeners = new Set<unknown>();
    const informer = Object.assign(FakeInformer.with([], 10), {
      onStatus: (listener: unknown) => {
        listeners.add(listener);
        return () => void listeners.delete(listener);
      },
    });
    const log = newLog(informer);
    assert.deepEqual([informer.observers.size, listeners.size], [1, 1]);
    log.close();
    assert.deepEqual([informer.observers.size, listeners.size], [0, 0]);
  });

  it("leaves the informer, ends its follower once, and what waits", async () => {
    const { informer, log } = begun();
    let ends = 0;
    log.follow({
      interrupted: () => () => {},
      isSending: false,
      grown: () => {},
      heard: () => {},
      forget: () => {},
      trimmed: () => {},
      end: () => void ends++,
    });
    const reached = log.reaches("11", { timeoutMs: 60_000 });
    assert.equal(log.isClosed, false);
    for (let i = 0; i < 2; i++) log.close();
    assert.deepEqual([log.isClosed, ends, informer.observers.size], [true, 1, 0]);
    assert.equal(await reached, false);
  });
});

describe("EventLog.along", () => {
  it("calls its followers for each entry, before it is dropped", () => {
    const { informer, log } = begun({ capacity: 1 });
    const seen: unknown[] = [];
    log.along.add({ grown: () => void seen.push([log.window.tail, log.head]) });
    for (const version of [11, 12, 13]) informer.put(object("shop/web-2", version));
    assert.deepEqual(seen, [[0, 1], [0, 2], [1, 3]]);
  });
});

describe("EventLog, after another one with the same history", () => {
  const steps: Readonly<Record<string, (informer: FakeInformer) => void>> = {
    "events": (informer) => {
      for (const version of [11, 12, 13]) informer.put(object("shop/web-2", version));
    },
    "late events, of which some were dropped": (informer) => {
      informer.put(object("shop/web-2", 11));
      for (const name of ["a", "b", "c", "d"]) informer.put(object(`shop/late-${name}`, 7));
      informer.bookmark(15);
    },
    "a list": (informer) => {
      informer.put(object("shop/web-2", 11));
      informer.relist([object("shop/web-2", 11), object("shop/web-3", 18)], 20);
      informer.put(object("shop/web-4", 21));
    },
    "a list of the same version": (informer) => {
      informer.put(object("shop/web-2", 11));
      informer.relist([object("shop/web-3", 9)], 11);
    },
    "a restored server": (informer) => {
      for (const version of [11, 12, 13]) informer.put(object("shop/web-2", version));
      informer.relist([object("shop/web-3", 3)], 4);
      informer.put(object("shop/web-4", 6));
    },
  };
  for (const [what, step] of Object.entries(steps)) {
    it(`lets watches resume where the one before it did, after ${what}`, () => {
      for (const capacity of [3, 100]) {
        const history = new MemoryHistory();
        const { informer, log } = begun({ capacity, history });
        step(informer);
        log.close();
        const before = answersOf(log);
        assert.deepEqual(answersOf(newLog(informer, { capacity, history })), before, `of ${capacity}`);
      }
    });
  }

  it("gives its history the bounds that it has, and the objects that are there", () => {
    const history = new MemoryHistory();
    const given: unknown[] = [];
    history.restore = (<T>(
      position: string,
      { capacity, held }: { readonly capacity: number; readonly held: (key: string) => T | undefined },
    ) => {
      given.push([position, capacity, held("shop/web-1") !== undefined, held("shop/none")]);
      return undefined;
    }) as LogHistory["restore"] as MemoryHistory["restore"];
    begun({ capacity: 7, history });
    assert.deepEqual(given, [["10", 7, true, undefined]]);
  });

  it("keeps no more bytes than it may", () => {
    const history = new MemoryHistory();
    const { informer, log } = begun({ history });
    for (const version of [11, 12, 13]) informer.put(object("shop/web-2", version));
    log.close();
    const later = newLog(informer, { history, capacityBytes: 1 });
    assert.deepEqual([later.window.tail, later.head, later.oldestState], [3, 3, "13"]);
  });

  /** Where a watch from each version resumes. */
  function answersOf(log: EventLog<TestObject>) {
    const versions = Array.from({ length: 26 }, (_, version) => String(version));
    return {
      version: log.resourceVersion,
      resume: versions.map((version) => log.resume(version)),
      oldest: [log.oldestResourceVersion, log.oldestState],
      entries: [log.window.tail, log.head],
    };
  }
});

describe("EventLog.isReady", () => {
  it("begins the log with the first list, and not once more when the informer says that it has synced", () => {
    const informer = new FakeInformer();
    const log = newLog(informer);
    assert.equal(log.isReady(), false);
    informer.relist([object("shop/web-1", 5)], 10);
    informer.put(object("shop/web-2", 11));
    assert.equal(log.isReady(), true);
    assert.deepEqual([log.resume("10"), log.head], [0, 1]);
  });

  it("needs no more of an informer than its events as objects", () => {
    const informer = FakeInformer.with([object("shop/web-1", 5)], 10);
    const log = newLog(
      {
        indexer: informer.indexer,
        hasSynced: () => true,
        status: () => ({ phase: "watching" }),
        observe: informer.observe.bind(informer),
      } as unknown as FakeInformer,
    );
    informer.put(object("shop/web-2", 11));
    assert.deepEqual([log.head, log.resourceVersion], [1, "11"]);
    log.close();
    assert.equal(informer.observers.size, 0);
  });
});

describe("EventLog.trim", () => {
  it("keeps as many bytes as it may, and says to its history what it has dropped", () => {
    const one = begun();
    one.informer.put(object("shop/web-2", 11));
    const { bytes } = one.log.window.entries.at(0)!;
    assert.ok(bytes > 0);
    const history = new MemoryHistory();
    const { informer, log } = begun({ capacityBytes: 2 * bytes, history });
    for (const version of [11, 12, 13, 14]) {
      informer.put(object("shop/web-2", version));
      assert.equal(log.head - log.window.tail, Math.min(2, version - 10));
    }
    assert.equal(history.restore()!.tail, 2);
  });

  it("gives up what was made of the entries that it drops, and of no others", () => {
    const { informer, log } = begun({ capacity: 2 });
    const forgotten: string[] = [];
    const trimmed: number[] = [];
    const follower: LogFollower<TestObject> = {
      interrupted: () => () => {},
      isSending: true,
      grown: () => log.trim(),
      heard: () => {},
      forget: ({ position }: LogEntry<TestObject>) => void forgotten.push(position),
      trimmed: (tail) => void trimmed.push(tail),
      end: () => {},
    };
    log.follow(follower);
    informer.put(object("shop/web-2", 11));
    log.window.entries.at(0)!.views = { encoded: new Map(), bytes: 0 };
    for (const version of [12, 13, 14]) informer.put(object("shop/web-2", version));
    assert.deepEqual(forgotten, ["11"]);
    assert.deepEqual(trimmed, [1, 2]);
    assert.deepEqual([log.window.tail, log.head, log.oldestResourceVersion], [2, 4, "12"]);
    assert.equal(log.oldestState, "12");
  });
});
