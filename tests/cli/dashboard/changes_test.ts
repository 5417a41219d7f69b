import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { changesBetween } from "../../../src/cli/dashboard/browser/changes.ts";

describe("changesBetween", () => {
  const conditions = (
    ready: string,
  ) => [{ type: "Ready", status: ready }, { type: "Initialized", status: "True" }];

  it("names each field that is different, with both values", () => {
    const before = {
      metadata: { resourceVersion: "1", managedFields: [1], labels: { "a.b/c": "x" } },
      status: { phase: "Pending", conditions: conditions("False") },
    };
    const after = {
      metadata: { resourceVersion: "2", managedFields: [2], labels: {} },
      spec: { nodeName: "n1" },
      status: { phase: "Running", conditions: [...conditions("True")].reverse() },
    };
    assert.deepEqual(changesBetween(before, after), [
      { path: 'metadata.labels["a.b/c"]', before: "x", after: undefined },
      { path: "status.phase", before: "Pending", after: "Running" },
      { path: "status.conditions[type=Ready].status", before: "False", after: "True" },
      { path: "spec", before: undefined, after: '{"nodeName":"n1"}' },
    ]);
  });

  it("compares elements without an identity by their places", () => {
    assert.deepEqual(changesBetween({ args: ["a", "b"] }, { args: ["a", "c", "d"] }), [
      { path: "args[1]", before: "b", after: "c" },
      { path: "args[2]", before: undefined, after: "d" },
    ]);
    const same = [{ name: "x" }, { name: "x" }];
    assert.deepEqual(changesBetween({ a: same }, { a: [same[0], { name: "y" }] }), [
      { path: "a[1].name", before: "x", after: "y" },
    ]);
  });

  it("has no more than 50 fields, and none of equal objects", () => {
    const many = (value: number) =>
      Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`f${i}`, value]));
    assert.equal(changesBetween(many(1), many(2)).length, 50);
    assert.deepEqual(changesBetween(many(1), many(1)), []);
  });
});
