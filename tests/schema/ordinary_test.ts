import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { bookmarkSchema, objectSchema } from "../../src/schema/kubernetes_schemas.ts";
import { isOrdinaryBookmark, isOrdinaryObject } from "../../src/schema/checks.ts";
import { issuesOf, type Schema } from "../../src/schema/schema.ts";
import { propertyOptions } from "../property.ts";

// Mostly right, so that a single wrong field is what decides; wrong values of every JSON type.
const wrong = fc.constantFrom<unknown>(null, true, 0, 42, "", [], ["a"], {}, { a: 1 }, { a: "b" }, {
  a: null,
});
const maybe = (right: fc.Arbitrary<unknown>) =>
  fc.oneof({ weight: 8, arbitrary: right }, { weight: 1, arbitrary: wrong }, {
    weight: 1,
    arbitrary: fc.constant(undefined),
  });
const texts = fc.dictionary(fc.string().filter((key) => key !== "__proto__"), fc.string(), { maxKeys: 3 });
const metadata = fc.record({
  name: maybe(fc.string({ minLength: 1 })),
  namespace: maybe(fc.string()),
  uid: maybe(fc.uuid()),
  resourceVersion: maybe(fc.nat().map(String)),
  creationTimestamp: maybe(fc.constant("2026-11-21T00:00:00Z")),
  deletionTimestamp: maybe(fc.constant(null)),
  labels: maybe(texts),
  annotations: maybe(texts),
  managedFields: wrong,
}, { requiredKeys: [] });
const object = fc.record({
  apiVersion: maybe(fc.constant("v1")),
  kind: maybe(fc.constant("Pod")),
  metadata: maybe(metadata),
  spec: wrong,
}, { requiredKeys: [] });
const value = fc.oneof({ weight: 20, arbitrary: object }, { weight: 1, arbitrary: wrong }, {
  weight: 1,
  arbitrary: fc.jsonValue(),
});

function agree(isOrdinary: (value: unknown) => boolean, schema: Schema<unknown>): void {
  let accepted = 0;
  let refused = 0;
  fc.assert(
    fc.property(value, (value) => {
      const parsed: unknown = JSON.parse(JSON.stringify(value) ?? "null");
      const issues = issuesOf(schema, parsed);
      assert.equal(isOrdinary(parsed), issues === undefined, JSON.stringify({ parsed, issues }));
      if (issues === undefined) accepted++;
      else refused++;
    }),
    propertyOptions(5_000),
  );
  const least = propertyOptions(100).numRuns;
  assert.ok(accepted > least && refused > least, `both were tried: ${accepted} accepted, ${refused} refused`);
}

describe("isOrdinaryObject", () => {
  it("of an object says what its schema says", () => agree(isOrdinaryObject, objectSchema()));
  it("of a bookmark says what its schema says", () => agree(isOrdinaryBookmark, bookmarkSchema()));

  it("takes names and versions of one character", () => {
    assert.equal(issuesOf(objectSchema(), { metadata: { name: "a" } }), undefined);
    assert.equal(issuesOf(bookmarkSchema(), { metadata: { resourceVersion: "1" } }), undefined);
  });

  it("looks at every label, and at none that is inherited", () => {
    const labels = Object.create({ inherited: 1 }, { own: { value: "x", enumerable: true } });
    assert.ok(isOrdinaryObject({ metadata: { name: "a", labels } }));
    assert.equal(isOrdinaryObject({ metadata: { name: "a", labels: { a: "x", b: 1 } } }), false);
  });
});
