import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  DeletedFinalStateUnknown,
  isOlder,
  isSameState,
  layoutOf,
  metaOf,
  resourceVersionOf,
} from "../../src/meta/object.ts";

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

describe("isSameState", () => {
  it("needs the same version, and the same content", () => {
    const state = (resourceVersion: string, content: string) => ({ metadata: { resourceVersion }, content });
    const holding = {
      isSameContent: (a: { content: string }, b: { content: string }) => a.content === b.content,
    };
    const one = state("1", "a");
    assert.ok(isSameState(holding, one, one));
    assert.ok(isSameState(holding, one, state("1", "a")));
    assert.ok(!isSameState(holding, one, state("2", "a")));
    assert.ok(
      !isSameState(holding, one, state("1", "b")),
      "a server that was restored gives a version twice",
    );
  });
});

describe("isOlder", () => {
  it("knows nothing of what is no number, or of another layout", () => {
    const merged = "1234567890123456789012345";
    const other = `${merged.slice(0, -1)}6`;
    assert.deepEqual([layoutOf(merged), layoutOf("18446744073709551615")], [merged.slice(-13), ""]);
    assert.equal(layoutOf("123456789012345678901"), "9012345678901");
    const older = [["9", "10"], ["1", merged.replace(/./, "2").slice(0, 20)]];
    for (const [version, than] of older) assert.ok(isOlder(version, than), `${version} ${than}`);
    const unknown = [["10", "10"], ["10", "9"], ["a", "10"], ["9", "ab"], ["", "1"], ["5", merged], [
      merged,
      other,
    ]];
    for (const [version, than] of unknown) assert.ok(!isOlder(version, than), `${version} ${than}`);
  });
});
