import fc from "fast-check";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { KubernetesObject } from "@listwatch/cache";
import { ObjectHolding } from "../../src/store/holding.ts";
import type { Notification } from "../../src/informer/events.ts";
import { ListNotifications } from "../../src/informer/list_application.ts";
import { Mailbox, type MailboxOptions } from "../../src/informer/mailbox.ts";
import { newCaller } from "../../src/informer/processor.ts";
import { finish } from "../../src/util/turns.ts";
import { DeletedFinalStateUnknown, metaNamespaceKey } from "../../src/meta/object.ts";
import { propertyOptions } from "../property.ts";
import { named, newRig, Recorder } from "./rig.ts";

interface Box {
  readonly mailbox: Mailbox<KubernetesObject>;
  initialMerged: number;
  removed: number;
}

function newBox(options: MailboxOptions = {}): Box {
  const box = { initialMerged: 0, removed: 0 } as Box & { mailbox: Mailbox<KubernetesObject> };
  box.mailbox = new Mailbox(options, metaNamespaceKey, {
    onInitialMerged: () => box.initialMerged++,
    onRemove: () => box.removed++,
  });
  return box;
}

/** Makes the notifications that an informer would, for changes to a store. */
class Changes {
  readonly store = new Map<string, KubernetesObject>();
  #version = 0;

  add(name: string, isInInitialList = false): Notification<KubernetesObject> {
    const object = this.#put(name);
    return { type: "add", object, isInInitialList };
  }

  update(name: string): Notification<KubernetesObject> {
    const oldObject = this.store.get(name)!;
    return { type: "update", oldObject, object: this.#put(name) };
  }

  /** A list of all objects that there are; only the stored ones in `changed` have changed. */
  list(names: readonly string[], changed: readonly string[] = names): ListNotifications<KubernetesObject> {
    const list = new ListNotifications<KubernetesObject>({ isInInitialList: false });
    for (const [name, object] of this.store) {
      if (names.includes(name)) continue;
      this.store.delete(name);
      list.deleted.push(new DeletedFinalStateUnknown(name, object));
    }
    for (const name of names) {
      const oldObject = this.store.get(name);
      const isChanged = oldObject === undefined || changed.includes(name);
      list.push(isChanged ? this.#put(name) : oldObject, oldObject);
    }
    return list;
  }

  delete(name: string): Notification<KubernetesObject> {
    const oldObject = this.store.get(name)!;
    this.store.delete(name);
    const object = versioned(name, ++this.#version);
    return { type: "delete", deleted: { finalStateUnknown: false, key: name, object }, oldObject };
  }

  #put(name: string): KubernetesObject {
    const object = versioned(name, ++this.#version);
    this.store.set(name, object);
    return object;
  }
}

function versioned(name: string, version: number): KubernetesObject {
  return { metadata: { ...named(name).metadata, resourceVersion: String(version) } };
}

const HOLDING = new ObjectHolding<KubernetesObject>(metaNamespaceKey);

function drain(mailbox: Mailbox<KubernetesObject>): string[] {
  const recorder = new Recorder();
  for (let next = mailbox.shift(); next !== undefined; next = mailbox.shift()) {
    newCaller(recorder, HOLDING)(next);
  }
  return recorder.calls;
}

describe("Mailbox", () => {
  it("keeps every notification in order while no more wait than may", () => {
    const { mailbox } = newBox({ limit: 4 });
    const changes = new Changes();
    for (const n of [changes.add("a"), changes.add("b"), changes.update("a"), changes.delete("a")]) {
      mailbox.push(n);
    }
    assert.equal(mailbox.length, 4);
    assert.deepEqual(drain(mailbox), ["add a@1", "add b@2", "update a@1>3", "delete a@4"]);
  });

  it("merges those of one object once more wait, at the place of the first", () => {
    const { mailbox } = newBox({ limit: 3 });
    const changes = new Changes();
    for (
      const n of [
        changes.add("a"),
        changes.add("b"),
        changes.update("b"),
        changes.update("a"),
        changes.update("b"),
      ]
    ) {
      mailbox.push(n);
    }
    assert.equal(mailbox.length, 2);
    assert.deepEqual(drain(mailbox), ["add a@4", "add b@5"]);
  });

  it("keeps the state that the handler saw last as the old one of merged updates", () => {
    const { mailbox } = newBox({ limit: 1 });
    const changes = new Changes();
    changes.add("a");
    for (let i = 0; i < 3; i++) mailbox.push(changes.update("a"));
    assert.deepEqual(drain(mailbox), ["update a@1>4"]);
  });

  it("says nothing of an object that came and went unseen, and counts it as handled", () => {
    const box = newBox({ limit: 2 });
    const changes = new Changes();
    const all = [changes.add("a", true), changes.add("b", true), changes.delete("a"), changes.update("b")];
    for (const n of all) box.mailbox.push(n);
    assert.deepEqual(drain(box.mailbox), ["add b@4 initial"]);
    assert.equal(box.initialMerged, 1);
  });

  it("makes an update of a delete and an add of an object that the handler knows", () => {
    const { mailbox } = newBox({ limit: 1 });
    const changes = new Changes();
    changes.add("a");
    for (const n of [changes.update("a"), changes.delete("a"), changes.add("a")]) mailbox.push(n);
    assert.deepEqual(drain(mailbox), ["update a@1>4"]);
  });

  it("adds an object after a delete of one of its name that the handler never knew", () => {
    const { mailbox } = newBox({ limit: 1 });
    const changes = new Changes();
    mailbox.push(changes.delete("a"));
    for (const n of [changes.add("a"), changes.update("a")]) mailbox.push(n);
    assert.deepEqual(drain(mailbox), ["add a@3"]);
  });

  it("deletes the object that the handler knows, where another of its name came and went unseen", () => {
    const { mailbox } = newBox({ limit: 1 });
    const of = (uid: string, resourceVersion: string) => ({ metadata: { name: "a", uid, resourceVersion } });
    const deleted = (object: KubernetesObject) => ({ finalStateUnknown: false, key: "a", object }) as const;
    mailbox.push({ type: "update", oldObject: of("1", "1"), object: of("1", "2") });
    mailbox.push({ type: "delete", deleted: deleted(of("1", "3")), oldObject: of("1", "2") });
    mailbox.push({ type: "add", object: of("2", "4"), isInInitialList: false });
    mailbox.push({ type: "delete", deleted: deleted(of("2", "5")), oldObject: of("2", "4") });
    assert.deepEqual(drain(mailbox), ["tombstone a@1"]);
  });

  it("keeps single notifications again when the merged ones were taken", () => {
    const { mailbox } = newBox({ limit: 1 });
    const changes = new Changes();
    for (const n of [changes.add("a"), changes.update("a"), changes.update("a")]) mailbox.push(n);
    assert.deepEqual(drain(mailbox), ["add a@3"]);
    mailbox.push(changes.update("a"));
    assert.deepEqual(drain(mailbox), ["update a@3>4"]);
  });

  it("does not merge a first list, which has each object once", () => {
    const { mailbox } = newBox({ limit: 2 });
    const changes = new Changes();
    for (const name of ["a", "b", "c", "d"]) mailbox.push(changes.add(name, true));
    assert.equal(mailbox.length, 4);
    assert.deepEqual(drain(mailbox), [
      "add a@1 initial",
      "add b@2 initial",
      "add c@3 initial",
      "add d@4 initial",
    ]);
  });

  it("grows without end where that is wanted", () => {
    const { mailbox } = newBox({ limit: 2, onOverflow: "grow" });
    const changes = new Changes();
    mailbox.push(changes.add("a"));
    for (let i = 0; i < 10; i++) mailbox.push(changes.update("a"));
    assert.equal(mailbox.length, 11);
  });

  it("asks for the handler to be taken away where every notification is wanted and too many wait", () => {
    const box = newBox({ limit: 2, onOverflow: "remove" });
    const changes = new Changes();
    for (const name of ["a", "b"]) box.mailbox.push(changes.add(name));
    assert.equal(box.removed, 0);
    box.mailbox.push(changes.add("c"));
    assert.equal(box.removed, 1);
  });

  it("holds a list as one, and merges it once something waits behind it and more wait than may", () => {
    const { mailbox } = newBox({ limit: 3 });
    const changes = new Changes();
    mailbox.pushList(changes.list(["a", "b", "c", "d"]).cursor(true));
    assert.equal(mailbox.length, 4);
    const first = mailbox.shift();
    assert.equal(first?.type === "add" && first.object.metadata!.name, "a");
    assert.equal(mailbox.length, 3);
    mailbox.push(changes.update("c"));
    assert.equal(mailbox.length, 3);
    assert.deepEqual(drain(mailbox), ["add b@2", "add c@5", "add d@4"]);
    assert.equal(mailbox.length, 0);
  });

  it("merges a list that is not the first that waits, once more wait than may", () => {
    const { mailbox } = newBox({ limit: 4 });
    const changes = new Changes();
    mailbox.push(changes.add("a"));
    mailbox.pushList(changes.list(["a", "b", "c"], ["b", "c"]).cursor(false));
    mailbox.push(changes.update("b"));
    mailbox.push(changes.update("a"));
    assert.equal(mailbox.length, 3);
    assert.deepEqual(drain(mailbox), ["add a@5", "add b@4", "add c@3"]);
  });

  it("takes what comes after all that was merged has come to nothing", () => {
    const { mailbox } = newBox({ limit: 1 });
    const changes = new Changes();
    for (const name of ["a", "b"]) mailbox.push(changes.add(name));
    for (const name of ["a", "b"]) mailbox.push(changes.delete(name));
    assert.equal(mailbox.length, 0);
    mailbox.push(changes.add("c"));
    assert.deepEqual(drain(mailbox), ["add c@5"]);
    for (const name of ["d", "e"]) mailbox.push(changes.add(name));
    assert.deepEqual(drain(mailbox), ["add d@6", "add e@7"]);
  });

  it("merges changes behind a list into what the list says when that is taken, and walks the list for none of them", () => {
    const { mailbox } = newBox({ limit: 3 });
    const changes = new Changes();
    for (const name of ["removed", "known", "changed", "twice"]) changes.add(name);
    const names = ["known", "changed", "twice", "new", "short"];
    const list = changes.list(names, ["changed", "twice", "new", "short"]);
    const asked: number[] = [];
    const at = list.at.bind(list);
    list.at = (place) => {
      asked.push(place);
      return at(place);
    };
    mailbox.pushList(list.cursor(false)); // "known" is unchanged, and not among them
    mailbox.push(changes.delete("changed"));
    mailbox.push(changes.delete("short"));
    mailbox.push(changes.add("removed"));
    mailbox.push(changes.update("new"));
    mailbox.push(changes.delete("twice"));
    mailbox.push(changes.add("twice"));
    mailbox.push(changes.add("late"));
    mailbox.push(changes.update("known"));
    assert.deepEqual(asked, []);
    assert.equal(mailbox.length, 7);
    assert.deepEqual(
      drain(mailbox),
      [
        "update removed@1>11",
        "delete changed@9",
        "update twice@4>14",
        "add new@12",
        "add late@15",
        "update known@2>16",
      ],
    );
    assert.equal(mailbox.length, 0);
  });

  it("counts the objects of a first list as handled that are deleted before it is taken", () => {
    const box = newBox({ limit: 1 });
    const changes = new Changes();
    const list = new ListNotifications<KubernetesObject>({ isInInitialList: true });
    for (const name of ["a", "b", "c"]) {
      const { object } = changes.add(name) as { object: KubernetesObject };
      list.push(object, undefined);
    }
    box.mailbox.pushList(list.cursor(true));
    box.mailbox.push(changes.delete("b"));
    box.mailbox.push(changes.delete("c"));
    assert.deepEqual(drain(box.mailbox), ["add a@1 initial"]);
    assert.equal(box.initialMerged, 2);
  });

  it("hands out nothing while a list is prepared, and then what was merged; or what waited, where it is dropped", () => {
    for (const isDropped of [false, true]) {
      const box = newBox({ limit: 1 });
      const changes = new Changes();
      box.mailbox.pushList(changes.list(["a", "b", "c"]).cursor(true));
      box.mailbox.push(changes.update("b"));
      const cursor = changes.list(["a", "c", "d"], ["c", "d"]).cursor(false);
      assert.equal(box.mailbox.mergesWith(cursor), true);
      const steps = box.mailbox.prepareList(cursor);
      steps.next();
      assert.equal(box.mailbox.shift(), undefined);
      finish(steps);
      assert.equal(box.mailbox.shift(), undefined);
      if (isDropped) box.mailbox.resume();
      else box.mailbox.pushList(cursor);
      assert.deepEqual(
        drain(box.mailbox),
        isDropped ? ["add a@1", "add b@4", "add c@3"] : ["add a@1", "add c@5", "add d@6"],
      );
    }
  });

  it("says of the objects of an initial list that it was merged with which of them are deleted later", () => {
    const box = newBox({ limit: 1 });
    const changes = new Changes();
    box.mailbox.push(changes.add("x"));
    const list = new ListNotifications<KubernetesObject>({ isInInitialList: true });
    for (const name of ["a", "b"]) {
      changes.store.set(name, versioned(name, 10));
      list.push(versioned(name, 10), undefined);
    }
    box.mailbox.pushList(list.cursor(true));
    assert.equal(box.initialMerged, 0);
    box.mailbox.push(changes.delete("a"));
    assert.equal(box.initialMerged, 1);
    assert.deepEqual(drain(box.mailbox), ["add x@1", "add b@10 initial"]);
  });

  it("hands out what was merged before as it was, where a list that was prepared for it is dropped", () => {
    const box = newBox({ limit: 1 });
    const changes = new Changes();
    for (const name of ["a", "b"]) box.mailbox.push(changes.add(name));
    finish(box.mailbox.prepareList(changes.list(["a"]).cursor(true)));
    box.mailbox.resume();
    assert.deepEqual(drain(box.mailbox), ["add a@1", "add b@2"]);
  });

  it("takes no handler away for one long list, but for a second one behind it", () => {
    const box = newBox({ limit: 2, onOverflow: "remove" });
    const changes = new Changes();
    box.mailbox.pushList(changes.list(["a", "b", "c", "d"]).cursor(true));
    for (const name of ["a", "b"]) box.mailbox.push(changes.update(name));
    assert.equal(box.removed, 0);
    box.mailbox.pushList(changes.list(["a", "b"]).cursor(true));
    assert.equal(box.removed, 1);
  });

  it("loses nothing that comes between the preparation of a list and the list", () => {
    const { mailbox } = newBox({ limit: 1 });
    const changes = new Changes();
    for (const name of ["a", "b"]) mailbox.push(changes.add(name));
    const cursor = changes.list(["a", "b"]).cursor(true);
    finish(mailbox.prepareList(cursor));
    mailbox.push(changes.add("c"));
    mailbox.pushList(cursor);
    assert.deepEqual(drain(mailbox).map((line) => line.slice(0, 5)), ["add a", "add b", "add c"]);
  });

  it("takes the list that is pushed, and not another one that was prepared", () => {
    const { mailbox } = newBox({ limit: 1 });
    const changes = new Changes();
    for (const name of ["a", "b"]) mailbox.push(changes.add(name));
    finish(mailbox.prepareList(changes.list(["a", "b"]).cursor(true)));
    mailbox.pushList(changes.list(["a", "b"]).cursor(true));
    assert.deepEqual(drain(mailbox), ["add a@5", "add b@6"]);
  });

  it("counts the objects of a first list as handled that another list deletes before it is taken", () => {
    const box = newBox({ limit: 1 });
    const changes = new Changes();
    const list = new ListNotifications<KubernetesObject>({ isInInitialList: true });
    for (const name of ["a", "b"]) {
      list.push((changes.add(name) as { object: KubernetesObject }).object, undefined);
    }
    box.mailbox.pushList(list.cursor(true));
    box.mailbox.pushList(changes.list(["a"]).cursor(true));
    assert.equal(box.initialMerged, 1);
    assert.deepEqual(drain(box.mailbox), ["add a@3 initial"]);
  });

  it("counts an object of a first list as handled that is an update to the handler", () => {
    const box = newBox({ limit: 1 });
    const changes = new Changes();
    changes.add("a");
    for (const name of ["a", "b"]) {
      box.mailbox.push(name === "a" ? changes.delete(name) : changes.add(name));
    }
    box.mailbox.push(changes.add("a", true));
    assert.equal(box.initialMerged, 1);
    assert.deepEqual(drain(box.mailbox), ["update a@1>4", "add b@3"]);
  });

  it("deletes an object in the end of which no state before was stored", () => {
    const { mailbox } = newBox({ limit: 1 });
    const changes = new Changes();
    for (const n of [changes.delete("a"), changes.add("a"), changes.delete("a")]) mailbox.push(n);
    assert.deepEqual(drain(mailbox), ["delete a@3"]);
  });

  it("takes no handler away for a long first list that comes object by object, nor for two short ones", () => {
    const box = newBox({ limit: 4, onOverflow: "remove" });
    const changes = new Changes();
    for (let i = 0; i < 2; i++) box.mailbox.pushList(changes.list(["a"]).cursor(true));
    drain(box.mailbox);
    for (const name of ["a", "b", "c", "d", "e"]) box.mailbox.push(changes.add(name, true));
    assert.equal(box.removed, 0);
  });

  it("refuses a limit below 1", () => {
    assert.throws(() => newBox({ limit: 0 }), RangeError);
  });

  it("never holds more than the limit or one an object, and its fold is always the store", () => {
    const names = ["a", "b", "c", "d", "e"];
    const action = fc.record({
      name: fc.constantFrom(...names),
      remove: fc.boolean(),
      takes: fc.nat(3),
      list: fc.option(
        fc.record({ names: fc.subarray(names), changed: fc.subarray(names), syncs: fc.boolean() }),
        {
          freq: 5,
        },
      ),
    });
    fc.assert(
      fc.property(fc.array(action, { maxLength: 60 }), fc.integer({ min: 1, max: 8 }), (actions, limit) => {
        const { mailbox } = newBox({ limit });
        const changes = new Changes();
        const seen = new Map<string, string>();
        const take = () => {
          const next = mailbox.shift();
          if (next === undefined) return false;
          fold(seen, next);
          return true;
        };
        for (const { name, remove, takes, list } of actions) {
          const exists = changes.store.has(name);
          if (list !== null) mailbox.pushList(changes.list(list.names, list.changed).cursor(list.syncs));
          else if (remove && exists) mailbox.push(changes.delete(name));
          else if (exists) mailbox.push(changes.update(name));
          else mailbox.push(changes.add(name));
          assert.ok(mailbox.length <= Math.max(limit, names.length), `${mailbox.length} wait`);
          for (let i = 0; i < takes; i++) take();
        }
        while (take());
        const stored = [...changes.store].map(([name, object]) => [name, object.metadata!.resourceVersion]);
        assert.deepEqual([...seen].sort(), stored.sort());
      }),
      propertyOptions(2_000),
    );
  });
});

/** Takes a notification into what a handler has seen; throws where its history makes no sense. */
function fold(seen: Map<string, string>, notification: Notification<KubernetesObject>): void {
  const known = (name: string) => seen.get(name);
  switch (notification.type) {
    case "add": {
      const { name, resourceVersion } = notification.object.metadata!;
      assert.equal(known(name!), undefined, `${name} was added twice`);
      seen.set(name!, resourceVersion!);
      return;
    }
    case "update": {
      const { name, resourceVersion } = notification.object.metadata!;
      assert.equal(
        known(name!),
        notification.oldObject.metadata!.resourceVersion,
        `${name}: not what was seen before`,
      );
      seen.set(name!, resourceVersion!);
      return;
    }
    case "delete":
      assert.notEqual(
        known(notification.deleted.key),
        undefined,
        `${notification.deleted.key} was not there`,
      );
      seen.delete(notification.deleted.key);
  }
}

describe("MailboxOptions of a handler that does not keep up", () => {
  it("holds one notification an object, however many changes there are, and catches up", async () => {
    await using rig = newRig();
    let release = () => {};
    const gate = new Promise<void>((resolve) => (release = resolve));
    const seen = new Map<string, string>();
    const registration = rig.informer.addEventHandler({
      onAdd: async (object) => {
        await gate;
        seen.set(object.metadata!.name!, object.metadata!.resourceVersion!);
      },
      onUpdate: (_old, object) => void seen.set(object.metadata!.name!, object.metadata!.resourceVersion!),
    }, { mailbox: { limit: 10 } });
    for (let i = 0; i < 10; i++) rig.source.add(named(`o${i}`));
    await rig.start();
    for (let round = 0; round < 50; round++) {
      for (let i = 0; i < 10; i++) rig.source.modify(named(`o${i}`));
      await rig.settle();
      assert.ok(registration.backlog <= 10, `${registration.backlog} wait`);
    }
    release();
    await rig.settle();
    assert.equal(registration.backlog, 0);
    assert.equal(registration.hasSynced(), true);
    const stored = rig.informer.indexer.list().map((
      object,
    ) => [object.metadata!.name, object.metadata!.resourceVersion]);
    assert.deepEqual([...seen].sort(), stored.sort());
  });

  it("remove the handler with an error in the log if it needs every change, and the others continue", async () => {
    await using rig = newRig();
    let release = () => {};
    const gate = new Promise<void>((resolve) => (release = resolve));
    const stalled = rig.informer.addEventHandler({ onAdd: () => gate }, {
      name: "stalled",
      mailbox: { limit: 3, onOverflow: "remove" },
    });
    const { recorder } = rig.record();
    await rig.start();
    for (let i = 0; i < 6; i++) rig.source.add(named(`o${i}`));
    await rig.settle();
    assert.equal(stalled.isRemoved, true);
    assert.equal(recorder.calls.length, 6);
    assert.match(rig.log.of("error")[0], /stalled was removed/);
    release();
  });
});

describe("newCaller", () => {
  it("opens no object for a method that the handler does not have", () => {
    const opened: string[] = [];
    const holding = { open: (held: string) => (opened.push(held), held) };
    const notify = newCaller<string>({ onDelete: () => {} }, holding);
    notify({ type: "add", object: "new", isInInitialList: false });
    notify({ type: "update", oldObject: "before", object: "after" });
    assert.deepEqual(opened, []);
    notify({
      type: "delete",
      oldObject: undefined,
      deleted: { finalStateUnknown: false, key: "a", object: "last" },
    });
    assert.deepEqual(opened, ["last"]);
  });
});
