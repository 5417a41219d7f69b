import { type KubernetesObject, newCluster } from "@listwatch/cache";
import {
  type ControllerDefinition,
  type ControllerOptions,
  defineController,
  indexed,
  type Source,
  TerminalError,
} from "@listwatch/cache/controller";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { asResult, checkedKey, isTerminal } from "../../src/controller/definition.ts";
import { changeFilter } from "../../src/controller/change_filter.ts";
import { byBothStates, urgencyOf } from "../../src/controller/triggers.ts";

const cluster = newCluster({ server: "http://127.0.0.1:8001" });
const pods = cluster.resource<KubernetesObject>("v1/pods");

type Sources = Readonly<Record<string, Source<KubernetesObject, string>>>;
type Options = ControllerOptions<
  KubernetesObject,
  string,
  Sources,
  Readonly<Record<string, KubernetesObject>>
>;

const define = (options: Partial<Options> = {}): ControllerDefinition =>
  defineController({ name: "pods", for: pods, reconcile: () => {}, ...options } as Options);

const refuses = (
  options: Partial<Options>,
  error: { readonly name: string; readonly message: RegExp | string },
) => assert.throws(() => define(options), error);

describe("defineController", () => {
  it("has one worker, a minute for a reconcile, no resyncs and no finalizer by default", () => {
    const { name, parts } = define();
    const { workers, timeoutMs, resyncPeriodMs, finalizer, finalize, owns, watches } = parts;
    assert.deepEqual([name, parts.name, workers, timeoutMs, resyncPeriodMs], ["pods", "pods", 1, 60_000, 0]);
    assert.deepEqual([finalizer, finalize, owns, watches], [undefined, undefined, {}, {}]);
    assert.equal(parts.isChange({}, {}), true);
    assert.deepEqual(parts.for, { resource: pods, indexers: {} });
  });

  it("takes what it is given, with indices, and a whole number of workers", () => {
    const byName = (pod: KubernetesObject) => [pod.metadata?.name ?? ""];
    const source = indexed(pods, { byName });
    const reconcile = () => {};
    const { parts } = define({
      for: source,
      owns: { maps: source, secrets: pods },
      watches: { nodes: { resource: pods, keys: () => ["a"], when: "generation" } },
      reconcile,
      finalizer: "example.com/pods",
      finalize: reconcile,
      workers: 2.9,
      timeoutMs: Infinity,
      resyncPeriodMs: 5,
      when: () => false,
    });
    assert.deepEqual(parts.for, { resource: pods, indexers: { byName } });
    assert.deepEqual(parts.owns, { maps: source, secrets: { resource: pods, indexers: {} } });
    const { nodes } = parts.watches;
    assert.deepEqual([nodes.resource, nodes.keys({}, {})], [{ resource: pods, indexers: {} }, ["a"]]);
    const at = (generation: number) => ({ metadata: { generation, resourceVersion: String(generation) } });
    assert.deepEqual([nodes.isChange(at(1), at(2)), parts.isChange(at(1), at(2))], [true, false]);
    const { finalizer, finalize, workers, timeoutMs, resyncPeriodMs } = parts;
    assert.deepEqual([finalizer, finalize, parts.reconcile], ["example.com/pods", reconcile, reconcile]);
    assert.deepEqual([workers, timeoutMs, resyncPeriodMs], [2, Infinity, 5]);
  });

  it("takes names as the API server takes them for the reporter of events", () => {
    const name = `a${"-".repeat(61)}b`;
    for (const fine of ["a", "A", "9", "a.b_c-d", name]) assert.equal(define({ name: fine }).name, fine);
    for (const wrong of ["", "-a", "a-", "a b", ".a", "a_", `${name}b`, "a/b"]) {
      const text =
        `Cannot define the controller ${JSON.stringify(wrong)}: a name has up to 63 letters, digits, ` +
        '"-", "_" and ".", and ends with a letter or digit';
      refuses({ name: wrong }, { name: "TypeError", message: text });
    }
  });

  it("takes finalizers that are named as labels are, and only with what they are for", () => {
    const finalize = () => {};
    for (const finalizer of ["example.com/a", "a/b", "a.b-c/D.e_f-9"]) {
      assert.equal(define({ finalizer, finalize }).parts.finalizer, finalizer);
    }
    for (const finalizer of ["a", "/a", "a/", "A/b", "a/-b", "a/b/c", "", "-a/b"]) {
      const text =
        `Cannot define the controller "pods": ${JSON.stringify(finalizer)} is no name of a finalizer; ` +
        'write one such as "example.com/widget"';
      refuses({ finalizer, finalize }, { name: "TypeError", message: text });
    }
    const both =
      'Cannot define the controller "pods": `finalizer` and `finalize` go together; give both or neither';
    refuses({ finalizer: "a/b" }, { name: "TypeError", message: both });
    refuses({ finalize }, { name: "TypeError", message: both });
  });

  it("refuses numbers with which nothing would run", () => {
    const wrong = {
      timeoutMs: [-1, NaN],
      resyncPeriodMs: [-1, NaN, Infinity],
      workers: [0, 0.5, NaN, Infinity],
    };
    for (const [name, values] of Object.entries(wrong)) {
      for (const value of values) {
        const message = new RegExp(
          `^Cannot define the controller "pods" with a ${name} of ${value}: it must be`,
        );
        refuses({ [name]: value }, { name: "RangeError", message });
      }
    }
  });

  it("refuses resources of names that a reconcile has already", () => {
    const reserved = ["key", "cluster", "clusters", "self", "signal", "failures", "clock", "log", "events"];
    for (const name of [...reserved, "metrics"]) {
      const text =
        `Cannot define the controller "pods": a reconcile has "${name}" already; give the resource another name`;
      refuses({ owns: { [name]: pods } }, { name: "TypeError", message: text });
      refuses({ watches: { [name]: { resource: pods, keys: () => [] } } }, {
        name: "TypeError",
        message: text,
      });
    }
    const twice = { owns: { maps: pods }, watches: { maps: { resource: pods, keys: () => [] } } };
    refuses(twice, { name: "TypeError", message: /a reconcile has "maps" already/ });
  });
});

describe("asResult", () => {
  it("has what was returned, and nothing else", () => {
    for (const nothing of [undefined, null, {}]) {
      assert.deepEqual(asResult(nothing).requeueAfterMs, undefined);
    }
    assert.deepEqual(asResult({ status: { a: 1 }, requeueAfterMs: 5 }), {
      status: { a: 1 },
      requeueAfterMs: 5,
    });
    assert.deepEqual(asResult({ requeueAfterMs: Infinity }).requeueAfterMs, Infinity);
    assert.equal("requeueAfterMs" in asResult({ status: {} }), false);
    assert.throws(() => asResult({ status: null }), /it returned a status that is null; return an object$/);
  });
});

describe("checkedKey", () => {
  it("is a text", () => {
    assert.equal(checkedKey("a"), "a");
    assert.throws(() => checkedKey(undefined), { name: "TypeError", message: "undefined is no key" });
  });
});

describe("TerminalError", () => {
  it("is found as a cause, and has one", () => {
    const cause = new Error("why");
    const error = new TerminalError("never", { cause });
    assert.deepEqual([error.code, error.message, error.cause], ["Terminal", "never", cause]);
    assert.equal(isTerminal(error), true);
    assert.equal(isTerminal(new Error("wrapped", { cause: error })), true);
    assert.equal(isTerminal(cause), false);
    assert.equal(isTerminal(undefined), false);
  });
});

const meta = (metadata: KubernetesObject["metadata"]): KubernetesObject => ({ metadata });

describe("changeFilter", () => {
  const never = changeFilter<KubernetesObject>(() => false);
  const at = (version: string, more: KubernetesObject["metadata"] = {}) =>
    meta({ resourceVersion: version, uid: "u", generation: 1, ...more });

  it("lets a resync, another object of the name and the beginning of a deletion through, whatever the filter says", () => {
    assert.equal(never(at("1"), at("2")), false);
    assert.equal(never(at("1"), at("1")), true);
    assert.equal(never(at("1"), at("2", { uid: "v" })), true);
    assert.equal(never(at("1"), at("2", { deletionTimestamp: "2026-01-01T00:00:00Z" })), true);
    const deleted = { deletionTimestamp: "2026-01-01T00:00:00Z" };
    assert.equal(never(at("1", deleted), at("2", deleted)), false);
    const noDeletion = { deletionTimestamp: null as unknown as undefined };
    assert.equal(never(at("1"), at("2", noDeletion)), false);
    assert.equal(never({}, {}), true);
    assert.equal(never({}, at("1")), true);
    assert.equal(never(at("1"), {}), true);
  });

  it("compares what it is named for, also where it is missing", () => {
    const decides = (filter: "generation" | "labels" | "metadata" | "generationOrMetadata") => {
      const isChange = changeFilter<KubernetesObject>(filter);
      const changes: KubernetesObject["metadata"][] = [
        {},
        { generation: 2 },
        { labels: { a: "1" } },
        { annotations: { a: "1" } },
        { finalizers: ["a/b"] },
        { ownerReferences: [] },
      ];
      return changes.map((change) => isChange(at("1"), at("2", change)));
    };
    assert.deepEqual(decides("generation"), [false, true, false, false, false, false]);
    assert.deepEqual(decides("labels"), [false, false, true, false, false, false]);
    assert.deepEqual(decides("metadata"), [false, false, true, true, true, true]);
    assert.deepEqual(decides("generationOrMetadata"), [false, true, true, true, true, true]);
    for (const wrong of ["spec", "toString"]) {
      const text = `Cannot filter changes by "${wrong}": write one of generation, labels, metadata, ` +
        "generationOrMetadata, or a function";
      assert.throws(() => changeFilter(wrong as never), { name: "TypeError", message: text });
    }
    assert.equal(changeFilter()({}, {}), true);
    assert.equal(changeFilter<KubernetesObject>()(at("1"), at("2")), true);
  });
});

describe("urgencyOf", () => {
  it("is that of a resync where nothing has changed", () => {
    const at = (resourceVersion: string) => meta({ resourceVersion });
    assert.deepEqual([urgencyOf(at("1"), at("1")), urgencyOf(at("1"), at("2"))], ["resync", "change"]);
    assert.deepEqual([urgencyOf({}, {}), urgencyOf({}, at("1")), urgencyOf(at("1"), {})], [
      "resync",
      "change",
      "change",
    ]);
  });
});

describe("byBothStates", () => {
  const named = (name: string, resourceVersion = "1") => meta({ name, resourceVersion });

  it("enqueues the keys of an add, of both states of a change, and of a delete whose object is known", () => {
    const enqueued: string[] = [];
    const handler = byBothStates(
      ({ metadata }) => ["all", metadata?.name ?? "", "all"],
      (key, urgency) => void enqueued.push(`${key} ${urgency}`),
      (_, after) => after.metadata?.name !== "same",
    );
    const after = (act: () => void) => {
      enqueued.length = 0;
      act();
      return [...enqueued];
    };
    assert.deepEqual(after(() => handler.onAdd?.(named("a"), true)), ["all resync", "a resync"]);
    assert.deepEqual(after(() => handler.onAdd?.(named("a"), false)), ["all change", "a change"]);
    assert.deepEqual(after(() => handler.onUpdate?.(named("a"), named("b", "2"))), [
      "all change",
      "a change",
      "b change",
    ]);
    assert.deepEqual(after(() => handler.onUpdate?.(named("a"), named("a"))), ["all resync", "a resync"]);
    assert.deepEqual(after(() => handler.onUpdate?.(named("a"), named("same", "2"))), []);
    const deleted = { key: "shop/a", object: named("a"), finalStateUnknown: false } as const;
    assert.deepEqual(after(() => handler.onDelete?.(deleted)), ["all change", "a change"]);
    const unknown = { key: "shop/a", object: undefined, finalStateUnknown: true } as const;
    assert.deepEqual(after(() => handler.onDelete?.(unknown)), []);
  });

  it("takes every change for one by default", () => {
    const enqueued: string[] = [];
    const handler = byBothStates(() => ["a"], (key) => void enqueued.push(key));
    handler.onUpdate?.(named("a"), named("a", "2"));
    assert.deepEqual(enqueued, ["a"]);
  });
});
