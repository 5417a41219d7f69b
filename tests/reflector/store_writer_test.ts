import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type KubernetesObject, metaNamespaceKey, silentLogger } from "@listwatch/cache";
import { newStore } from "@listwatch/cache/store";
import { AGE_ANNOTATION, type WatchItem } from "../../src/meta/list_watch.ts";
import { encodeMergedVersion, newLayout } from "../../src/meta/merged_version.ts";
import { Quarantine } from "../../src/reflector/quarantine.ts";
import {
  eventProblem,
  goesBack,
  hasReceived,
  listedAt,
  NO_POSITION,
  noteContact,
  type Position,
  provenAt,
  reach,
  StoreWriter,
  watchingFrom,
  watchVersion,
} from "../../src/reflector/store_writer.ts";
import { FakeClock } from "../../src/testing/fake_clock.ts";
import { before, momentOf } from "../../src/util/clock.ts";

const AT_20: Position = { ...NO_POSITION, resourceVersion: "20", completeVersion: "18" };
const moment = (ms: number) => ({ wallMs: 1_000_000 + ms, monotonicMs: ms });

function versions({ resourceVersion, watchedVersion, olderVersion }: Position) {
  return [resourceVersion, watchedVersion, olderVersion];
}

function reached(from: Partial<Position>, version: string, neverGoesBack = true) {
  const position = { ...AT_20, ...from };
  reach(position, version, neverGoesBack);
  return versions(position);
}

describe("reach", () => {
  it("moves to a later version, and forgets what was watched or older before", () => {
    assert.deepEqual(reached({ watchedVersion: "12", olderVersion: "11" }, "25"), ["25", "", undefined]);
    assert.deepEqual(reached({ watchedVersion: "12" }, "20"), ["20", "", undefined]);
  });

  it("stays where it is with an older version, and notes it, unless the server may go back", () => {
    assert.deepEqual(reached({}, "15"), ["20", "", "15"]);
    assert.deepEqual(reached({}, "15", false), ["15", "", undefined]);
  });

  it("moves the watch that a proof is ahead of, and that one never back either", () => {
    assert.deepEqual(reached({ watchedVersion: "12" }, "15"), ["20", "15", undefined]);
    assert.deepEqual(reached({ watchedVersion: "12" }, "11"), ["20", "12", "11"]);
    assert.deepEqual(reached({ watchedVersion: "12" }, "11", false), ["11", "", undefined]);
  });
});

describe("provenAt", () => {
  it("moves the content by a state, and leaves the watch where it was, at each proof", () => {
    const byState = { neverGoesBack: true, byState: true };
    const once = provenAt(AT_20, "30", byState);
    const twice = provenAt(once, "40", byState);
    assert.deepEqual([versions(once), versions(twice)], [["30", "20", undefined], ["40", "20", undefined]]);
    assert.deepEqual([once.provenVersion, twice.provenVersion, twice.completeVersion], ["30", "40", "18"]);
    assert.equal(watchVersion(twice), "20");
  });

  it("moves both by changes, and knows that everything is there", () => {
    const { provenVersion, completeVersion, ...rest } = provenAt(AT_20, "30", {
      neverGoesBack: true,
      byState: false,
    });
    assert.deepEqual([rest.resourceVersion, provenVersion, completeVersion], ["30", "30", "30"]);
    assert.equal(watchVersion(rest as Position), "30");
  });
});

describe("goesBack", () => {
  it("is true before what was complete, and before the version of the watch", () => {
    const back = (from: Partial<Position>) =>
      ["17", "19", "20"].map((version) => goesBack({ ...AT_20, ...from }, version));
    assert.deepEqual(back({}), [true, true, false]);
    assert.deepEqual(back({ watchedVersion: "12" }), [true, false, false]);
    assert.deepEqual(back({ resourceVersion: "", completeVersion: "" }), [false, false, false]);
  });
});

describe("watchingFrom", () => {
  it("follows from a version on, or after a streamed list, and counts from the start", () => {
    const before = { ...AT_20, events: 7, bookmarks: 3 };
    const follows = (resourceVersion: string, isFollowing: boolean) =>
      watchingFrom({ ...before, resourceVersion }, isFollowing).follows;
    assert.deepEqual(["", "0", "20"].map((version) => follows(version, false)), [false, false, true]);
    assert.deepEqual(["", "0", "20"].map((version) => follows(version, true)), [true, true, true]);
    const { events, bookmarks, resourceVersion } = watchingFrom(before, false);
    assert.deepEqual([events, bookmarks, resourceVersion], [0, 0, "20"]);
  });
});

describe("listedAt", () => {
  it("begins again, and still knows when the last event and bookmark came", () => {
    const before = { ...AT_20, quarantinedVersion: "19", lastEventTimeMs: 5, lastBookmarkTimeMs: 4 };
    assert.deepEqual(listedAt(before, "30", moment(9)), {
      ...NO_POSITION,
      resourceVersion: "30",
      completeVersion: "30",
      contact: moment(9),
      lastEventTimeMs: 5,
      lastBookmarkTimeMs: 4,
    });
  });
});

describe("noteContact", () => {
  it("is as old as the news, and never older than what was known before", () => {
    const position: Position = { ...AT_20 };
    noteContact(position, moment(1_000), 300);
    assert.deepEqual(position.contact, moment(700));
    noteContact(position, moment(1_100), 500);
    assert.deepEqual(position.contact, moment(700));
    noteContact(position, moment(1_200), 500);
    assert.deepEqual(position.contact, moment(700));
    noteContact(position, moment(1_201), 500);
    assert.deepEqual(position.contact, moment(701));
    noteContact(position, moment(600), 0);
    assert.deepEqual(position.contact, moment(600), "something came just then");
  });

  it("is none while the content is that of a snapshot, which the server has not confirmed", () => {
    const position: Position = { ...AT_20, isConfirmed: false };
    noteContact(position, moment(1_000), 0);
    assert.equal(position.contact, undefined);
  });
});

/** A writer of a plain store, from a position on. */
function newWriter(position: Position, { neverGoesBack = true } = {}) {
  const clock = new FakeClock(1_000_000);
  const store = newStore<KubernetesObject>(metaNamespaceKey);
  const applied: string[] = [];
  const contacts: number[] = [];
  const quarantine = new Quarantine({ name: "pods", logger: silentLogger });
  const state = { position };
  const writer = new StoreWriter<KubernetesObject>(store, {
    clock,
    keyFunc: metaNamespaceKey,
    neverGoesBack,
    quarantine,
    record: { state },
    measured: {
      contact: (wallMs) => void contacts.push(wallMs),
      eventApplied: (type) => void applied.push(type),
    },
    warn: () => {},
  });
  let expected = 0;
  const watch = { received: undefined, receivedBytes: 0, expectBookmarks: () => void expected++ };
  const write = (...batch: readonly WatchItem<KubernetesObject>[]) => writer.write(batch, watch);
  return { clock, store, writer, state, applied, contacts, write, quarantine, expected: () => expected };
}

const named = (name: string, resourceVersion: string): KubernetesObject => ({
  metadata: { name, resourceVersion },
});
const event = (type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK", object: KubernetesObject) =>
  ({ type, object }) as WatchItem<KubernetesObject>;

describe("StoreWriter.replace", () => {
  it("leaves in a plain store the last state of what is quarantined, unless the list has another one", () => {
    const { store, writer, quarantine } = newWriter({ ...NO_POSITION });
    quarantine.lost();
    for (const name of ["a", "b", "c"]) store.add(named(name, "5"));
    const quarantined = ["a", "b", "unknown"].map((key) => ({ reason: "it is odd", path: "items[0]", key }));
    writer.replace([named("b", "7")], quarantined, "7");
    const stored = store.list().map(({ metadata }) => `${metadata?.name}@${metadata?.resourceVersion}`);
    assert.deepEqual(stored.sort(), ["a@5", "b@7"]);
    assert.ok(quarantine.isRepaired);
  });
});

describe("StoreWriter.write", () => {
  it("releases what is quarantined once a later state of it is accepted", () => {
    for (const type of ["ADDED", "MODIFIED"] as const) {
      const { writer, write, quarantine } = newWriter({ ...AT_20, follows: true });
      writer.replace([], [{ reason: "it is odd", path: "items[0]", key: "a" }], "20");
      assert.ok(quarantine.keys.has("a"));
      write(event(type, named("a", "21")));
      assert.equal(quarantine.keys.has("a"), false, type);
    }
  });

  it("deletes by its key only what is quarantined, which is released then", () => {
    const { store, writer, write, quarantine } = newWriter({ ...AT_20, follows: true });
    const deletedKeys: string[] = [];
    Object.assign(store, { deleteKey: (key: string) => void deletedKeys.push(key) });
    store.add(named("b", "19"));
    writer.replace([named("b", "19")], [{ reason: "it is odd", path: "items[0]", key: "a" }], "20");
    write(event("DELETED", named("b", "21")));
    assert.deepEqual([deletedKeys, store.listKeys()], [[], []]);
    write(event("DELETED", named("a", "22")));
    assert.deepEqual([deletedKeys, [...quarantine.keys]], [["a"], []]);
  });

  it("has contact as of when the last bytes came, not when they are written", async () => {
    const { clock, writer, state } = newWriter({ ...AT_20, follows: true });
    const received = momentOf(clock);
    await clock.advance(5_000);
    const watch = { received, receivedBytes: 0, expectBookmarks: () => {} };
    writer.write([event("ADDED", named("a", "21"))], watch);
    assert.deepEqual(state.position.contact, received);
    state.position.contact = undefined;
    const annotations = { [AGE_ANNOTATION]: "300" };
    writer.write([event("BOOKMARK", { metadata: { resourceVersion: "25", annotations } })], watch);
    assert.deepEqual(state.position.contact, before(received, 300), "a bookmark of a cache is older");
  });

  it("follows a server that goes back, where it may: one loss, and bookmarks from there on are in order", () => {
    const { state, write, quarantine } = newWriter({ ...AT_20, follows: true }, { neverGoesBack: false });
    for (const resourceVersion of ["15", "16"]) write(event("BOOKMARK", { metadata: { resourceVersion } }));
    assert.deepEqual([state.position.resourceVersion, quarantine.losses], ["16", 1]);
  });

  it("remembers the latest version that was quarantined, as far as it is beyond the position", () => {
    const { state, write } = newWriter({ ...AT_20, follows: true });
    for (const resourceVersion of ["25", "15"]) {
      const quarantined = { reason: "it is odd", path: "", eventType: "MODIFIED", key: "a", resourceVersion };
      write({ type: "QUARANTINED", quarantined });
      assert.equal(state.position.quarantinedVersion, "25");
    }
  });

  it("moves the position with the first event that is no ADDED, where the watch began at no version", () => {
    const { state, applied, write } = newWriter({ ...NO_POSITION });
    write(event("ADDED", named("a", "9")), event("ADDED", named("b", "3")));
    assert.equal(state.position.resourceVersion, "");
    write(event("MODIFIED", named("b", "10")));
    write(event("ADDED", named("c", "11")));
    assert.equal(state.position.resourceVersion, "11");
    assert.equal(state.position.events, 4);
    assert.deepEqual(applied, ["ADDED", "ADDED", "MODIFIED", "ADDED"]);
  });

  it("notes when something came, and bookmarks apart, and measures the contact where that is another one", async () => {
    const { clock, state, contacts, write, expected } = newWriter({ ...AT_20, follows: true });
    write(event("ADDED", named("a", "21")));
    await clock.advance(1_000);
    write(event("BOOKMARK", { metadata: { resourceVersion: "25" } }));
    const { lastBookmarkTimeMs, lastEventTimeMs, completeVersion, bookmarks } = state.position;
    assert.deepEqual([lastBookmarkTimeMs, completeVersion, bookmarks, expected()], [1_001_000, "25", 1, 1]);
    assert.equal(lastEventTimeMs, 1_001_000);
    await clock.advance(1_000);
    write(event("ADDED", named("b", "26")));
    assert.deepEqual([state.position.lastBookmarkTimeMs, state.position.lastEventTimeMs], [
      1_001_000,
      1_002_000,
    ]);
    assert.deepEqual(contacts, [1_000_000, 1_001_000, 1_002_000]);
    state.position.isConfirmed = false;
    write(event("ADDED", named("c", "27")));
    assert.equal(contacts.length, 3);
  });
});

describe("StoreWriter.write with a batch that ends with a bookmark", () => {
  const layout = newLayout(["west", "east"]);
  const merged = (west: number, east: number) =>
    encodeMergedVersion({ layout, parts: [String(west), String(east)] });
  const bookmark = (resourceVersion: string) => event("BOOKMARK", { metadata: { resourceVersion } });

  /** Writes changes and a bookmark: how many losses that makes, what is stored, and the position then. */
  function written(from: Partial<Position>, version: string, changes = [event("ADDED", named("a", "9"))]) {
    const { write, quarantine, store, state } = newWriter({ ...AT_20, ...from, follows: true });
    const again = () => (write(...changes, bookmark(version)), quarantine.losses);
    const losses = again();
    return { losses, stored: store.listKeys(), position: state.position, again };
  }

  it("does not apply changes of a merged resource that a list has passed: they are lost", () => {
    const list = merged(5, 5);
    const position = { resourceVersion: list, watchedVersion: merged(3, 3), provenVersion: list };
    const before = written(position, merged(4, 5));
    assert.deepEqual([before.losses, before.stored], [1, []]);
    assert.equal(before.position.watchedVersion, merged(4, 5));
    const exactly = written(position, list);
    assert.deepEqual([exactly.losses, exactly.stored, exactly.position.watchedVersion], [1, [], ""]);
    assert.equal(exactly.again(), 1, "the watch has come to what was proven");
    const partly = written(position, merged(4, 6));
    assert.deepEqual([partly.losses, partly.stored], [0, ["a"]]);
  });

  it("applies those up to the position, unless that was proven by a list", () => {
    const version = merged(5, 5);
    const { losses, stored } = written({ resourceVersion: version, completeVersion: version }, version);
    assert.deepEqual([losses, stored], [0, ["a"]]);
  });

  it("has as old news as the bookmark says, events or not, if the resource is merged", () => {
    for (const [version, ageMs] of [[merged(5, 6), 300], ["25", 0]] as const) {
      const { clock, write, state } = newWriter({ ...AT_20, follows: true });
      const metadata = { resourceVersion: version, annotations: { [AGE_ANNOTATION]: "300" } };
      write(event("ADDED", named("a", "9")), event("BOOKMARK", { metadata }));
      assert.deepEqual(state.position.contact, before(momentOf(clock), ageMs));
    }
  });

  it("loses nothing by a bookmark alone, nor by changes of a resource that is not merged", () => {
    const list = merged(5, 5);
    const position = { resourceVersion: list, watchedVersion: merged(3, 3), provenVersion: list };
    assert.equal(written({ ...position, completeVersion: "" }, list, []).losses, 0);
    const plain = { resourceVersion: "30", watchedVersion: "20", provenVersion: "30" };
    const { losses, stored } = written(plain, "30", [event("ADDED", named("a", "25"))]);
    assert.deepEqual([losses, stored], [0, ["a"]]);
  });
});

describe("hasReceived", () => {
  it("counts what was quarantined", () => {
    const position = { ...AT_20, quarantinedVersion: "25" };
    assert.deepEqual(["20", "25", "26"].map((version) => hasReceived(position, version)), [
      true,
      true,
      false,
    ]);
  });
});

describe("eventProblem", () => {
  it("says what is wrong with an object: no metadata, a Table, another kind or version", () => {
    const expected = { group: "apps", version: "v1", kind: "Deployment" };
    const problem = (apiVersion?: string, kind?: string) =>
      eventProblem({ metadata: {}, ...(apiVersion && { apiVersion }), ...(kind && { kind }) }, expected);
    assert.equal(problem("apps/v1", "Deployment"), undefined);
    assert.match(
      problem("apps/v1", "StatefulSet") ?? "",
      /expected apps\/v1 Deployment, got apps\/v1 StatefulSet/,
    );
    assert.match(problem("apps/v2", "Deployment") ?? "", /got apps\/v2 Deployment/);
    assert.match(problem() ?? "", /got no apiVersion and no kind/);
    for (const version of ["v1", "v1beta1"]) {
      assert.match(
        eventProblem({ metadata: {}, apiVersion: `meta.k8s.io/${version}`, kind: "Table" }, undefined) ?? "",
        /Table/,
      );
    }
    assert.match(eventProblem({}, undefined) ?? "", /no metadata/);
    assert.equal(eventProblem({ metadata: {} }, undefined), undefined);
  });
});
