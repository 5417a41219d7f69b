import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type KubernetesObject, metaNamespaceKey, silentLogger } from "@listwatch/cache";
import { newStore } from "@listwatch/cache/store";
import type { WatchItem } from "../../src/meta/list_watch.ts";
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
import { momentOf } from "../../src/util/clock.ts";

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
function newWriter(position: Position) {
  const clock = new FakeClock(1_000_000);
  const store = newStore<KubernetesObject>(metaNamespaceKey);
  const applied: string[] = [];
  const contacts: number[] = [];
  const quarantine = new Quarantine({ name: "pods", logger: silentLogger });
  const state = { position };
  const writer = new StoreWriter<KubernetesObject>(store, {
    clock,
    keyFunc: metaNamespaceKey,
    neverGoesBack: true,
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

  it("has contact as of when the last bytes came, not when they are written", async () => {
    const { clock, writer, state } = newWriter({ ...AT_20, follows: true });
    const received = momentOf(clock);
    await clock.advance(5_000);
    writer.write([event("ADDED", named("a", "21"))], {
      received,
      receivedBytes: 0,
      expectBookmarks: () => {},
    });
    assert.deepEqual(state.position.contact, received);
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
