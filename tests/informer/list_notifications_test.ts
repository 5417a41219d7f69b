import type { KubernetesObject } from "@listwatch/cache";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { DeletedFinalStateUnknown, metaNamespaceKey } from "../../src/meta/object.ts";
import { ObjectHolding } from "../../src/store/holding.ts";
import { type ListCursor, ListNotifications } from "../../src/informer/list_application.ts";
import { newCaller, Processor } from "../../src/informer/processor.ts";
import { settle } from "../../src/util/clock.ts";
import { silentLogger } from "../../src/util/logger.ts";
import { finish } from "../../src/util/turns.ts";
import { FakeClock } from "../../src/testing/fake_clock.ts";
import { named, Recorder } from "./rig.ts";

function versioned(name: string, version: number): KubernetesObject {
  return { metadata: { ...named(name).metadata, resourceVersion: String(version) } };
}

/** A list that brings two unchanged objects, a changed one, a new one, and lacks one. */
function newList(options: { isInInitialList?: boolean; skipsUnchanged?: boolean } = {}) {
  const list = new ListNotifications<KubernetesObject>({ isInInitialList: false, ...options });
  for (const unchanged of [versioned("same", 1), versioned("again", 2)]) list.push(unchanged, unchanged);
  list.push(versioned("changed", 4), versioned("changed", 3));
  list.push(versioned("new", 5), undefined);
  list.deleted.push(new DeletedFinalStateUnknown("missing", versioned("missing", 1)));
  return list;
}

function drain(cursor: ListCursor<KubernetesObject>): string[] {
  const recorder = new Recorder();
  for (let left = cursor.length; left > 0; left--) {
    assert.equal(cursor.length, left);
    newCaller(recorder, new ObjectHolding(metaNamespaceKey))(cursor.shift()!);
  }
  assert.equal(cursor.shift(), undefined);
  return recorder.calls;
}

describe("ListNotifications", () => {
  it("are deletes, then adds and updates in the order of the list", () => {
    assert.deepEqual(drain(newList().cursor(true)), [
      "tombstone missing@1",
      "update same@1>1",
      "update again@2>2",
      "update changed@3>4",
      "add new@5",
    ]);
  });

  it("leave out updates that say nothing new for those whose resync is not due", () => {
    assert.deepEqual(drain(newList().cursor(false)), [
      "tombstone missing@1",
      "update changed@3>4",
      "add new@5",
    ]);
  });

  it("leave them out for everyone where that is wanted", () => {
    const list = newList({ skipsUnchanged: true });
    for (const isSyncing of [true, false]) {
      assert.deepEqual(drain(list.cursor(isSyncing)), [
        "tombstone missing@1",
        "update changed@3>4",
        "add new@5",
      ]);
    }
  });

  it("say that the adds are of the initial list, and how many there are", () => {
    const list = newList({ isInInitialList: true });
    assert.equal(list.initialAdds, 1);
    assert.equal(drain(list.cursor(false)).at(-1), "add new@5 initial");
    assert.equal(newList().initialAdds, 0);
  });

  it("can be taken by several handlers, each in its own time", () => {
    const list = newList();
    const [one, other] = [list.cursor(false), list.cursor(false)];
    one.shift();
    assert.equal(one.length, 2);
    assert.equal(drain(other).length, 3);
    assert.equal(drain(one).length, 2);
  });
});

describe("Processor.dropPrepared", () => {
  it("hands out what waits, also where handlers looked for it while the list was prepared", async () => {
    const processor = new Processor<KubernetesObject>({
      holding: new ObjectHolding(metaNamespaceKey),
      resyncCheckPeriodMs: 0,
      clock: new FakeClock(),
      logger: silentLogger,
      name: "pods",
    });
    const recorder = new Recorder();
    processor.add(recorder, { resyncPeriodMs: 0, mailbox: { limit: 1 } });
    for (const name of ["a", "b"]) {
      processor.distribute({ type: "add", object: versioned(name, 1), isInInitialList: false }, false);
    }
    finish(processor.prepareList(newList(), 1));
    await settle();
    assert.deepEqual(recorder.calls, []);
    processor.dropPrepared();
    await settle();
    assert.deepEqual(recorder.calls, ["add a@1", "add b@1"]);
  });
});
