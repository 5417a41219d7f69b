import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { DeletedFinalStateUnknown, metaOf, resourceVersionOf } from "../../src/meta/object.ts";

describe("metaOf", () => {
  it("is the metadata of an object, and `undefined` for every other value", () => {
    const metadata = { name: "a" };
    assert.equal(metaOf({ metadata }), metadata);
    const tombstone = new DeletedFinalStateUnknown("a", { metadata });
    for (
      const value of [
        null,
        undefined,
        "text",
        7,
        true,
        {},
        [],
        { metadata: null },
        { metadata: "text" },
        tombstone,
      ]
    ) {
      assert.equal(metaOf(value), undefined);
    }
  });
});

describe("resourceVersionOf", () => {
  it("distinguishes metadata without a resourceVersion from no metadata", () => {
    assert.equal(resourceVersionOf({ metadata: { resourceVersion: "7" } }), "7");
    assert.equal(resourceVersionOf({ metadata: {} }), "");
    assert.equal(resourceVersionOf({}), undefined);
    assert.equal(resourceVersionOf("7"), undefined);
  });
});
