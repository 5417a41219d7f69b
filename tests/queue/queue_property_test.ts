/**
 * Random sequences of writes and pops, compared with models that
 * say as plainly as possible what a queue must do.
 * @module
 */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { DeletedFinalStateUnknown, metaNamespaceKey } from "@listwatch/cache";
import { type Delta, DeltaFIFO, type Deltas, FIFO, type ObjectDelta, RealFIFO } from "@listwatch/cache/queue";
import { ErrRequeue } from "@listwatch/cache/compat";
import { propertyOptions } from "../property.ts";

interface Thing {
  metadata: { name: string };
  /** Different for each object that a sequence makes. */
  id: number;
}

type How = "ok" | "error" | "requeue";

type Step =
  | { op: "add" | "update" | "delete" | "addIfNotPresent" | "deleteTombstone"; name: string }
  | { op: "replace"; names: string[] }
  | { op: "resync" | "bookmark" | "popBatch" }
  | { op: "pop"; how: How }
  | { op: "known.set" | "known.delete"; name: string };

const name = fc.constantFrom("a", "b", "c", "d");
const writes = fc.record({ op: fc.constantFrom("add" as const, "update" as const, "delete" as const), name });
const rareWrites = fc.record({
  op: fc.constantFrom("addIfNotPresent" as const, "deleteTombstone" as const),
  name,
});
const lists = fc.record({ op: fc.constant("replace" as const), names: fc.array(name, { maxLength: 4 }) });
const resyncs = fc.record({ op: fc.constant("resync" as const) });
const pops = fc.record({
  op: fc.constant("pop" as const),
  how: fc.constantFrom<How[]>("ok", "ok", "ok", "error", "requeue"),
});
const knowns = fc.record({ op: fc.constantFrom("known.set" as const, "known.delete" as const), name });
const batches = fc.record({ op: fc.constantFrom("popBatch" as const, "bookmark" as const) });

function sequenceOf(...kinds: [weight: number, arbitrary: fc.Arbitrary<Step>][]): fc.Arbitrary<Step[]> {
  const step = fc.oneof(...kinds.map(([weight, arbitrary]) => ({ weight, arbitrary })));
  return fc.array(step, { maxLength: 25, size: "max" });
}

/** Makes objects that can be distinguished. */
function maker(): (name: string) => Thing {
  let id = 0;
  return (name) => ({ metadata: { name }, id: id++ });
}

/** What the consumer knows. */
function knownObjects(
  known: Map<string, Thing>,
): { listKeys(): string[]; getByKey(key: string): Thing | undefined } {
  return { listKeys: () => [...known.keys()], getByKey: (key) => known.get(key) };
}

/** A delta with nothing hidden, for comparing. */
function shown(delta: Delta<Thing>): unknown[] {
  const { object } = delta;
  if (object instanceof DeletedFinalStateUnknown) {
    return [delta.type, "tombstone", object.key, object.object?.id];
  }
  if (delta.type === "ReplacedAll") {
    return [delta.type, delta.object.resourceVersion, delta.object.objects.map(({ id }) => id)];
  }
  return "id" in object ? [delta.type, object.id] : [delta.type, object];
}

function nameOf(delta: Delta<Thing>): string | undefined {
  const { object } = delta;
  if (object instanceof DeletedFinalStateUnknown) return object.key;
  return "metadata" in object ? object.metadata.name : undefined;
}

/** Counts the items of the first list down, as every queue does. */
class Population {
  populated = false;
  left = 0;
  latched = false;

  populate(count = 0): void {
    if (!this.populated) this.left = count;
    this.populated = true;
    this.#latch();
  }

  popped(count: number): void {
    this.left = Math.max(0, this.left - count);
    this.#latch();
  }

  #latch(): void {
    if (this.populated && this.left === 0) this.latched = true;
  }
}

/** Pops once without waiting; what was thrown must be what the callback was to throw. */
function tryPop<I>(
  queue: { tryPop(process: (item: I, isInInitialList: boolean) => void): boolean },
  how: How,
  seen: (item: I, isInInitialList: boolean) => void,
): boolean {
  const thrown = how === "error" ? new Error("is to fail") : new ErrRequeue();
  let processed = false;
  try {
    const popped = queue.tryPop((item, isInInitialList) => {
      processed = true;
      seen(item, isInInitialList);
      if (how !== "ok") throw thrown;
    });
    assert.equal(popped, processed);
    assert.ok(!processed || how !== "error");
  } catch (error) {
    if (error !== thrown) throw error;
  }
  return processed;
}

class FIFOModel {
  items = new Map<string, Thing>();
  /** Holds the places of deleted items too. */
  places: string[] = [];
  population = new Population();

  put(object: Thing): void {
    this.population.populate();
    if (!this.items.has(object.metadata.name)) this.places.push(object.metadata.name);
    this.items.set(object.metadata.name, object);
  }

  putIfNotPresent(object: Thing): void {
    this.population.populate();
    if (!this.items.has(object.metadata.name)) this.put(object);
  }

  replace(objects: Thing[]): void {
    this.items = new Map(objects.map((object) => [object.metadata.name, object]));
    this.places = [...this.items.keys()];
    this.population.populate(this.items.size);
  }

  resync(): void {
    for (const name of this.items.keys()) if (!this.places.includes(name)) this.places.push(name);
  }

  pop(): Thing | undefined {
    while (this.places.length > 0) {
      const name = this.places.shift()!;
      const item = this.items.get(name);
      this.items.delete(name);
      this.population.popped(1);
      if (item !== undefined) return item;
    }
    return undefined;
  }
}

class DeltaFIFOModel {
  queue: { name: string; deltas: ObjectDelta<Thing>[] }[] = [];
  population = new Population();
  known: Map<string, Thing>;

  constructor(known: Map<string, Thing>) {
    this.known = known;
  }

  find(name: string): { name: string; deltas: ObjectDelta<Thing>[] } | undefined {
    return this.queue.find((entry) => entry.name === name);
  }

  push(name: string, delta: ObjectDelta<Thing>): void {
    const deltas = this.find(name)?.deltas;
    if (deltas === undefined) {
      this.queue.push({ name, deltas: [delta] });
      return;
    }
    const last = deltas[deltas.length - 1];
    if (delta.type !== "Deleted" || last.type !== "Deleted") deltas.push(delta);
    else if (last.object instanceof DeletedFinalStateUnknown) deltas.splice(-1, 1, delta);
  }

  delete(name: string, object: Thing | DeletedFinalStateUnknown<Thing>): void {
    this.population.populate();
    if (this.find(name) !== undefined || this.known.has(name)) this.push(name, { type: "Deleted", object });
  }

  replace(objects: Thing[]): void {
    const names = new Set(objects.map((object) => object.metadata.name));
    for (const object of objects) this.push(object.metadata.name, { type: "Replaced", object });
    const missing = [
      ...this.queue.map((entry) => entry.name),
      ...[...this.known.keys()].filter((name) => this.find(name) === undefined),
    ].filter((name) => !names.has(name));
    for (const name of missing) {
      const last = this.find(name)?.deltas.at(-1)?.object ?? this.known.get(name);
      const object = last instanceof DeletedFinalStateUnknown ? last.object : last;
      this.push(name, { type: "Deleted", object: new DeletedFinalStateUnknown(name, object) });
    }
    this.population.populate(names.size + missing.length);
  }

  resync(): void {
    for (const [name, object] of this.known) {
      if (this.find(name) === undefined) this.push(name, { type: "Sync", object });
    }
  }
}

describe("FIFO under random writes and pops", () => {
  it("does what its model does", () => {
    const sequence = sequenceOf([8, writes], [2, rareWrites], [2, lists], [1, resyncs], [6, pops]);
    fc.assert(
      fc.property(sequence, (steps) => {
        const make = maker();
        const queue = new FIFO<Thing>(metaNamespaceKey);
        const model = new FIFOModel();
        for (const step of steps) {
          switch (step.op) {
            case "add":
            case "update": {
              const object = make(step.name);
              queue[step.op](object);
              model.put(object);
              break;
            }
            case "addIfNotPresent": {
              const object = make(step.name);
              queue.addIfNotPresent(object);
              model.putIfNotPresent(object);
              break;
            }
            case "delete":
              queue.delete(make(step.name));
              model.population.populate();
              model.items.delete(step.name);
              break;
            case "replace": {
              const objects = step.names.map(make);
              queue.replace(objects);
              model.replace(objects);
              break;
            }
            case "resync":
              queue.resync();
              model.resync();
              break;
            case "pop": {
              const wasSynced = model.population.latched;
              const expected = model.pop();
              const processed = tryPop(queue, step.how, (item, isInInitialList) => {
                assert.equal(item, expected);
                assert.equal(isInInitialList, !wasSynced);
              });
              assert.equal(processed, expected !== undefined);
              if (processed && step.how === "requeue") model.putIfNotPresent(expected!);
            }
          }
          assert.deepEqual(queue.listKeys().sort(), [...model.items.keys()].sort());
          for (const [name, item] of model.items) assert.equal(queue.getByKey(name), item);
          assert.equal(queue.hasSynced(), model.population.latched);
        }
      }),
      propertyOptions(3_000),
    );
  });
});

describe("DeltaFIFO under random writes and pops", () => {
  it("does what its model does", () => {
    const sequence = sequenceOf([10, writes], [2, rareWrites], [3, lists], [1, resyncs], [5, pops], [
      2,
      knowns,
    ]);
    fc.assert(
      fc.property(sequence, (steps) => {
        const make = maker();
        const known = new Map<string, Thing>();
        const queue = new DeltaFIFO<Thing>({
          knownObjects: knownObjects(known),
          emitDeltaTypeReplaced: true,
        });
        const model = new DeltaFIFOModel(known);
        for (const step of steps) {
          switch (step.op) {
            case "add":
            case "update": {
              const object = make(step.name);
              queue[step.op](object);
              model.population.populate();
              model.push(step.name, { type: step.op === "add" ? "Added" : "Updated", object });
              break;
            }
            case "addIfNotPresent": {
              const deltas: ObjectDelta<Thing>[] = [{ type: "Updated", object: make(step.name) }];
              queue.addIfNotPresent(deltas);
              model.population.populate();
              if (model.find(step.name) === undefined) model.queue.push({ name: step.name, deltas });
              break;
            }
            case "delete":
            case "deleteTombstone": {
              const object = step.op === "delete"
                ? make(step.name)
                : new DeletedFinalStateUnknown(step.name, make("another"));
              queue.delete(object);
              model.delete(step.name, object);
              break;
            }
            case "replace": {
              const objects = step.names.map(make);
              queue.replace(objects);
              model.replace(objects);
              break;
            }
            case "resync":
              queue.resync();
              model.resync();
              break;
            case "known.set":
              known.set(step.name, make(step.name));
              break;
            case "known.delete":
              known.delete(step.name);
              break;
            case "pop": {
              const wasSynced = model.population.latched;
              const expected = model.queue.shift();
              const processed = tryPop(
                queue,
                step.how,
                (deltas: readonly ObjectDelta<Thing>[], isInInitialList) => {
                  assert.deepEqual(deltas.map(shown), expected!.deltas.map(shown));
                  assert.equal(isInInitialList, !wasSynced);
                },
              );
              assert.equal(processed, expected !== undefined);
              if (!processed) break;
              model.population.popped(1);
              if (step.how !== "requeue") break;
              model.population.populate();
              model.queue.push(expected!);
            }
          }
          assert.deepEqual(queue.listKeys(), model.queue.map((entry) => entry.name));
          for (const { name, deltas } of model.queue) {
            assert.deepEqual(queue.getByKey(name)!.map(shown), deltas.map(shown));
          }
          assert.equal(queue.hasSynced(), model.population.latched);
        }
      }),
      propertyOptions(10_000),
    );
  });
});

describe("RealFIFO under random writes and pops", () => {
  const sequence = sequenceOf([10, writes], [3, lists], [1, resyncs], [3, pops], [3, batches], [2, knowns]);

  for (const isAtomic of [true, false]) {
    it(`hands out everything once and in order, ${isAtomic ? "atomic" : "with known objects"}`, () => {
      fc.assert(
        fc.property(sequence, fc.integer({ min: 1, max: 4 }), (steps, batchSize) => {
          const make = maker();
          const known = new Map<string, Thing>();
          const queue = isAtomic
            ? new RealFIFO<Thing>({ atomicEvents: true, emitDeltaTypeBookmark: true, batchSize })
            : new RealFIFO<Thing>({ knownObjects: knownObjects(known), batchSize });
          const expected: Delta<Thing>[] = [];
          const population = new Population();
          let bookmarks = 0;

          function check(deltas: Deltas<Thing>, isInInitialList: boolean): void {
            assert.deepEqual(deltas.map(shown), expected.splice(0, deltas.length).map(shown));
            assert.equal(isInInitialList, !population.latched);
            if (population.left > 0) {
              assert.ok(deltas.length <= population.left, "first list and later mixed");
            }
            population.popped(deltas.length);
          }

          for (const step of steps) {
            switch (step.op) {
              case "add":
              case "update":
              case "delete": {
                const object = make(step.name);
                queue[step.op](object);
                population.populate();
                expected.push({
                  type: ({ add: "Added", update: "Updated", delete: "Deleted" } as const)[step.op],
                  object,
                });
                break;
              }
              case "replace": {
                const objects = step.names.map(make);
                const resourceVersion = String(expected.length);
                queue.replace(objects, resourceVersion);
                if (isAtomic) expected.push({ type: "ReplacedAll", object: { resourceVersion, objects } });
                else expected.push(...replacedEach(objects, expected, known));
                population.populate(expected.length);
                break;
              }
              case "resync":
                queue.resync();
                if (isAtomic) expected.push({ type: "SyncAll", object: {} });
                else {
                  const queued = new Set(expected.map(nameOf));
                  for (const [name, object] of known) {
                    if (!queued.has(name)) expected.push({ type: "Sync", object });
                  }
                }
                break;
              case "bookmark": {
                const object = { resourceVersion: String(bookmarks++) };
                queue.bookmark(object.resourceVersion);
                if (isAtomic) expected.push({ type: "Bookmark", object });
                break;
              }
              case "known.set":
                known.set(step.name, make(step.name));
                break;
              case "known.delete":
                known.delete(step.name);
                break;
              case "pop": {
                const had = expected.length;
                // Here nothing is requeued: an error of any kind loses the item.
                const how = step.how === "requeue" ? "error" : step.how;
                assert.equal(tryPop(queue, how, check), had > 0);
                break;
              }
              case "popBatch": {
                const had = expected.length;
                const popped = queue.tryPopBatch((deltas, isInInitialList) => {
                  assert.ok(deltas.length > 1 && deltas.length <= batchSize);
                  const names = deltas.map(nameOf);
                  assert.ok(!names.includes(undefined), "a delta of all objects comes alone");
                  assert.equal(new Set(names).size, names.length, "a key comes once");
                  check(deltas, isInInitialList);
                }, (deltas, isInInitialList) => {
                  assert.equal(deltas.length, 1);
                  check(deltas, isInInitialList);
                });
                assert.equal(popped, had > 0);
              }
            }
            assert.equal(queue.length, expected.length);
            assert.equal(queue.hasSynced(), population.latched);
          }
          while (queue.tryPop(check));
          assert.equal(expected.length, 0);
        }),
        propertyOptions(3_000),
      );
    });
  }
});

/** What a list adds to a queue that works deletes out itself. */
function replacedEach(objects: Thing[], queued: Delta<Thing>[], known: Map<string, Thing>): Delta<Thing>[] {
  const listed = new Set(objects.map((object) => object.metadata.name));
  const added: Delta<Thing>[] = [];
  const last = new Map(queued.map((delta) => [nameOf(delta)!, delta]));
  for (const [name, { type, object }] of last) {
    if (listed.has(name) || type === "Deleted") continue;
    added.push({ type: "Deleted", object: new DeletedFinalStateUnknown(name, object as Thing) });
  }
  for (const [name, object] of known) {
    if (listed.has(name) || last.has(name)) continue;
    added.push({ type: "Deleted", object: new DeletedFinalStateUnknown(name, object) });
  }
  for (const object of objects) added.push({ type: "Replaced", object });
  return added;
}
