import { type KubernetesObject, StatusError } from "@listwatch/cache";
import { newStatus } from "@listwatch/cache/client";
import { type Condition, ownedBy, retryOnConflict, withCondition } from "@listwatch/cache/controller";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { appliedConfig, isApplied } from "../../src/controller/applied_config.ts";
import { controllerOf, isPatched, mergePatch } from "../../src/controller/objects.ts";

describe("controllerOf", () => {
  it("is the owner that controls the object, if one does", () => {
    const owner = { apiVersion: "v1", kind: "Pod", metadata: { name: "p", uid: "u-1" } };
    const [reference] = ownedBy(owner).ownerReferences;
    const other = { ...reference, uid: "u-2", controller: false };
    assert.equal(controllerOf({ metadata: { ownerReferences: [other, reference] } }), reference);
    assert.equal(controllerOf({ metadata: { ownerReferences: [other] } }), undefined);
    assert.equal(controllerOf({ metadata: {} }), undefined);
    assert.equal(controllerOf({}), undefined);
  });
});

describe("ownedBy", () => {
  it("names what it refuses", () => {
    const text = (name: string) =>
      `Cannot make "${name}" an owner: apiVersion, kind, metadata.name and metadata.uid are needed; ` +
      "give the object as it was read";
    assert.throws(() => ownedBy({ metadata: { name: "p" } }), { name: "TypeError", message: text("p") });
    assert.throws(() => ownedBy({}), { name: "TypeError", message: text("") });
  });

  it("refuses an object of which only the metadata was read: its kind is not known", () => {
    const metadata = { name: "p", uid: "u-1" };
    const owner = { apiVersion: "meta.k8s.io/v1", kind: "PartialObjectMetadata", metadata };
    assert.throws(() => ownedBy(owner), {
      name: "TypeError",
      message:
        'Cannot make "p" an owner: only its metadata was read (metadataOnly), without its kind; give it with its ' +
        "own apiVersion and kind",
    });
  });
});

describe("withCondition", () => {
  const ready = { type: "Ready", status: "True", reason: "Made", message: "" } as const;
  const now = new Date(0);
  const time = now.toISOString();

  it("adds a condition, and replaces one in its place", () => {
    const other = { ...ready, type: "Other", lastTransitionTime: "2026-01-01T00:00:00Z" } as const;
    const first = withCondition(undefined, ready, { now });
    assert.deepEqual(first, [{ ...ready, lastTransitionTime: time }]);
    const two = withCondition(first, other);
    assert.deepEqual(two, [...first, other]);
    const failed = { ...ready, status: "False", reason: "No" } as const;
    const changed = withCondition(two, failed, { now: new Date(1_000) });
    assert.deepEqual(changed, [{ ...failed, lastTransitionTime: new Date(1_000).toISOString() }, other]);
  });

  it("has a time also where the present one has none", () => {
    const present: readonly Condition[] = [ready];
    assert.deepEqual(withCondition(present, ready, { now }), [{ ...ready, lastTransitionTime: time }]);
    assert.match(withCondition([], ready)[0].lastTransitionTime!, /^20\d\d-.*Z$/);
  });
});

describe("retryOnConflict", () => {
  it("returns what the write that succeeds returns, and ends at its signal", async () => {
    assert.equal(await retryOnConflict(() => Promise.resolve(5)), 5);
    const stop = new AbortController();
    let tries = 0;
    const failed = retryOnConflict(() => {
      tries++;
      stop.abort(new Error("stopped"));
      return Promise.reject(new StatusError(newStatus(409, "Conflict", "")));
    }, { signal: stop.signal });
    await assert.rejects(failed, /stopped/);
    assert.equal(tries, 1);
  });
});

const cases: readonly (readonly [from: unknown, to: unknown, patch: unknown])[] = [
  [{ a: 1 }, { a: 1 }, undefined],
  [{ a: 1 }, { a: 2 }, { a: 2 }],
  [{ a: 1 }, {}, { a: null }],
  [{ a: 1 }, { a: undefined }, { a: null }],
  [{ a: undefined }, {}, undefined],
  [{ a: undefined, b: 1 }, { b: 2 }, { b: 2 }],
  [{ b: 1 }, { b: 1, toString: 2 }, { toString: 2 }],
  [{}, { a: 1 }, { a: 1 }],
  [{ a: { b: 1, c: 2 } }, { a: { b: 1, c: 3 } }, { a: { c: 3 } }],
  [{ a: { b: 1 } }, { a: [1] }, { a: [1] }],
  [{ a: [1] }, { a: { b: 1 } }, { a: { b: 1 } }],
  [{ a: [1, 2] }, { a: [1] }, { a: [1] }],
  [{ a: 1 }, { a: null }, { a: null }],
  [1, { a: 1 }, { a: 1 }],
  [{ a: 1 }, 1, 1],
];

describe("mergePatch", () => {
  it("has what differs, and null for what is not there any more", () => {
    for (const [from, to, patch] of cases) {
      assert.deepEqual(mergePatch(from, to), patch, JSON.stringify([from, to]));
    }
  });
});

describe("isPatched", () => {
  it("is true where the patch would change nothing", () => {
    for (
      const [patch, value] of [
        [{}, undefined],
        [{}, {}],
        [{ a: 1 }, { a: 1, b: 2 }],
        [{ a: null }, {}],
        [{ a: null }, { a: null }],
        [{ a: null }, undefined],
        [{ a: { b: null } }, {}],
        [{ a: undefined }, { a: 1 }],
        [{ a: [1] }, { a: [1] }],
        [null, undefined],
        [null, null],
        [1, 1],
      ]
    ) assert.equal(isPatched(patch, value), true, JSON.stringify([patch, value]));
  });

  it("is false where it would", () => {
    for (
      const [patch, value] of [
        [{ a: 1 }, {}],
        [{ a: 1 }, undefined],
        [{ a: 1, b: null }, undefined],
        [{ a: 1 }, { a: 2 }],
        [{ a: 1, b: 2 }, { a: 1 }],
        [{ a: null }, { a: 1 }],
        [{}, [1]],
        [{}, null],
        [{ a: [1] }, { a: [1, 2] }],
        [{ toString: 1 }, {}],
        [{ a: { b: 1 } }, { a: "b" }],
        [null, 1],
        [1, 2],
      ]
    ) assert.equal(isPatched(patch, value), false, JSON.stringify([patch, value]));
  });
});

describe("isApplied, by managed fields", () => {
  type Value = unknown;

  /** Whether a value of `spec` is applied that has these fields, and is so on the server. */
  const isSo = (config: Value, fields: Value, live: Value, more: Partial<KubernetesObject> = {}): boolean =>
    isApplied(
      { apiVersion: "v1", kind: "Thing", metadata: { name: "m", namespace: "shop" }, spec: config } as never,
      {
        metadata: {
          name: "m",
          managedFields: [{ manager: "x", operation: "Apply", fieldsV1: { "f:spec": fields } }],
        },
        spec: live,
        ...more,
      } as never,
      { manager: "x", remembered: undefined },
    );

  it("compares a value that is a leaf as a whole", () => {
    assert.equal(isSo(1, {}, 1), true);
    assert.equal(isSo(1, {}, 2), false);
    assert.equal(isSo([1, 2], {}, [1, 2]), true);
    assert.equal(isSo([1, 2], {}, [2, 1]), false);
    assert.equal(isSo({ a: 1 }, {}, { a: 1, b: 2 }), false);
    assert.equal(isSo({}, { ".": {} }, {}), true);
  });

  it("compares the fields of an object, of which it has each and no others", () => {
    assert.equal(isSo({ a: 1 }, { ".": {}, "f:a": {} }, { a: 1, theirs: 2 }), true);
    assert.equal(isSo({ a: 1, b: undefined }, { "f:a": {} }, { a: 1 }), true);
    assert.equal(isSo({ a: 1, b: 2 }, { "f:a": {} }, { a: 1, b: 2 }), false);
    assert.equal(isSo({ a: 1 }, { "f:a": {}, "f:b": {} }, { a: 1, b: 2 }), false);
    assert.equal(isSo({ a: 1 }, { "f:a": 5 }, { a: 1 }), false);
    assert.equal(isSo({ a: { b: 1 } }, { "f:a": { "f:b": {} } }, { a: { b: 1, c: 2 } }), true);
    assert.equal(isSo({ a: { b: 1 } }, { "f:a": { "f:b": {} } }, { a: { b: 2 } }), false);
    assert.equal(isSo({ a: { b: 1 } }, { "f:a": { "f:b": {} } }, { a: "text" }), false);
    assert.equal(isSo("text", { "f:a": {} }, { a: 1 }), false);
    assert.equal(isSo({ a: 1 }, { "f:a": {} }, undefined), false);
    assert.equal(isSo({ a: null }, { "f:a": { "f:b": {} } }, { a: { b: 1 } }), false);
  });

  it("compares the elements of a list by their keys", () => {
    const key = (name: string, port: number) => `k:${JSON.stringify({ name, port })}`;
    const inside = { ".": {}, "f:name": {}, "f:port": {}, "f:size": {} };
    const one = { name: "a", port: 1, size: 5 };
    const two = { name: "a", port: 2, size: 6 };
    const fields = { [key("a", 1)]: inside, [key("a", 2)]: inside };
    assert.equal(isSo([one, two], fields, [{ name: "b", port: 1 }, two, one]), true);
    assert.equal(isSo([two, one], { ".": {}, ...fields }, [one, two]), true);
    assert.equal(isSo([one, two], fields, [one]), false);
    assert.equal(isSo([one], fields, [one, two]), false);
    assert.equal(isSo([one, two, { name: "c", port: 3 }], fields, [one, two]), false);
    assert.equal(isSo([one, { ...two, port: 3 }], fields, [one, two]), false);
    assert.equal(isSo([one, { ...two, size: 7 }], fields, [one, two]), false);
    assert.equal(isSo([one, "text"], fields, [one, two]), false);
    assert.equal(isSo([one], { [key("a", 1)]: inside }, [null, one]), true);
    assert.equal(isSo([one], { [key("a", 1)]: inside }, { 0: one }), false);
    assert.equal(isSo([null], { [key("a", 1)]: inside }, [one]), false);
    assert.equal(isSo([one], { [key("a", 1)]: 5 }, [one]), false);
    assert.equal(isSo([one], { "k:5": inside }, [one]), false);
    assert.equal(isSo([one], { "i:0": inside }, [one]), false);
    assert.equal(isSo([one], { "f:name": {} }, { name: "a" }), false);
    assert.equal(isSo([one], { "f:name": {} }, [one]), false);
  });

  it("compares the elements of a set by their values", () => {
    assert.equal(isSo(["a", 2], { 'v:"a"': {}, "v:2": {} }, [2, "theirs", "a"]), true);
    assert.equal(isSo(["a"], { 'v:"a"': 5 }, ["a"]), true);
    assert.equal(isSo(["a"], { 'v:"a"': {} }, ["b"]), false);
    assert.equal(isSo(["b"], { 'v:"a"': {} }, ["a", "b"]), false);
    assert.equal(isSo([{ name: "a" }], { 'v:"a"': {} }, ["a"]), false);
  });

  it("compares labels, but not what says which object it is", () => {
    const of = (labels: unknown, fields: unknown, live: unknown) =>
      isApplied(
        { apiVersion: "v1", kind: "Thing", metadata: { name: "m", namespace: "shop", labels } } as never,
        {
          metadata: {
            name: "m",
            labels: live,
            managedFields: ["no entry", null, { manager: "x", operation: "Apply", fieldsV1: fields }],
          },
        } as never,
        { manager: "x", remembered: undefined },
      );
    const fields = { "f:metadata": { "f:labels": { ".": {}, "f:a": {} } } };
    assert.equal(of({ a: "1" }, fields, { a: "1", b: "2" }), true);
    assert.equal(of({ a: "1" }, fields, { a: "2" }), false);
    assert.equal(of({ a: "1" }, undefined, { a: "1" }), false);
    assert.equal(of({ a: "1" }, "text", { a: "1" }), false);
    const live: KubernetesObject = {
      metadata: { name: "m", managedFields: [{ manager: "x", operation: "Apply", fieldsV1: {} }] },
    };
    const bare = { apiVersion: "v1", kind: "Thing" };
    assert.equal(isApplied(bare, {}, { manager: "x", remembered: undefined }), false);
    assert.equal(
      isApplied({ ...bare, metadata: { name: "m" } }, live, { manager: "x", remembered: undefined }),
      false,
    );
  });
});

describe("appliedConfig", () => {
  const config = {
    metadata: { name: "m" },
    data: { a: "1" },
    list: [1],
    none: undefined,
  } as KubernetesObject;
  const answer = {
    metadata: { name: "m", uid: "u" },
    data: { a: "1", b: "2" },
    list: [1],
  } as KubernetesObject;

  it("has the values of the answer where the configuration has some, and lists as a whole", () => {
    const same = { ...answer, data: { a: "1", b: "3" }, none: 5 } as KubernetesObject;
    assert.equal(appliedConfig(config, answer), appliedConfig(config, same));
    for (const data of [{ a: "2" }, {}, undefined, "text"]) {
      const other = { ...answer, data } as KubernetesObject;
      assert.notEqual(appliedConfig(config, answer), appliedConfig(config, other), JSON.stringify(data));
    }
    assert.notEqual(
      appliedConfig(config, answer),
      appliedConfig(config, { ...answer, list: [1, 2] } as KubernetesObject),
    );
    assert.notEqual(appliedConfig(config, answer), appliedConfig({ ...config, kind: "K" }, answer));
    const scalar = { ...config, data: "text" } as KubernetesObject;
    const other = { ...answer, data: { a: "2" } } as KubernetesObject;
    assert.notEqual(appliedConfig(scalar, answer), appliedConfig(scalar, other));
    assert.notEqual(
      appliedConfig(config, answer),
      appliedConfig(config, { ...answer, metadata: { uid: "v" } }),
    );
    assert.equal(
      appliedConfig(config, {}),
      appliedConfig(config, { metadata: {} }).replace('"metadata":{}', ""),
    );
  });
});
