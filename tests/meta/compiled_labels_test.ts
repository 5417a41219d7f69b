import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import {
  type LabelOperator,
  LabelRequirement,
  LabelSelector,
  type LabelSet,
} from "@listwatch/cache/selectors";
import { propertyOptions } from "../property.ts";

const KEYS = ["a", "b", "constructor", "toString", "c", "d", "e/f", "g", "__proto__"];
const VALUES = [
  "",
  "x",
  "y",
  "z",
  "5",
  "05",
  "99999999999999999999",
  "9223372036854775807",
  "1000000000000000",
];
const BOUNDS = ["5", "0", "9223372036854775807", "999999999999999", "1000000000000000"];
const LABELS = [...VALUES, "-1", "+6", "-9223372036854775808", "-9223372036854775809", "1e3", "-"];

const requirement = fc.oneof(
  fc.record({
    key: fc.constantFrom(...KEYS.slice(0, -1)),
    operator: fc.constantFrom<LabelOperator>("in", "notin"),
    values: fc.uniqueArray(fc.constantFrom(...VALUES), { minLength: 1, maxLength: 4 }),
  }),
  fc.record({
    key: fc.constantFrom(...KEYS.slice(0, -1)),
    operator: fc.constantFrom<LabelOperator>("=", "==", "!="),
    values: fc.tuple(fc.constantFrom(...VALUES)),
  }),
  fc.record({
    key: fc.constantFrom(...KEYS.slice(0, -1)),
    operator: fc.constantFrom<LabelOperator>("gt", "lt"),
    values: fc.tuple(fc.constantFrom(...BOUNDS)),
  }),
  fc.record({
    key: fc.constantFrom(...KEYS.slice(0, -1)),
    operator: fc.constantFrom<LabelOperator>("exists", "!"),
    values: fc.constant<string[]>([]),
  }),
).map(({ key, operator, values }) => new LabelRequirement(key, { operator, values }));

const labelSet: fc.Arbitrary<LabelSet | undefined> = fc.option(
  fc.array(fc.tuple(fc.constantFrom(...KEYS), fc.constantFrom(...LABELS)), { maxLength: 8 })
    // As JSON makes objects, with a `__proto__` of their own.
    .map((entries) =>
      JSON.parse(`{${entries.map(([k, v]) => `${JSON.stringify(k)}:${JSON.stringify(v)}`)}}`)
    ),
  { nil: undefined },
);

describe("compileLabels", () => {
  it("agrees with its requirements one by one, however many there are of a key", () => {
    fc.assert(
      fc.property(
        fc.array(requirement, { maxLength: 12 }),
        fc.array(labelSet, { maxLength: 8 }),
        (all, sets) => {
          const selector = new LabelSelector(all);
          for (const labels of sets) {
            assert.equal(selector.matches(labels), all.every((one) => one.matches(labels)), `${selector}`);
          }
        },
      ),
      propertyOptions(3_000),
    );
  });

  it("ignores inherited labels, with few keys and with many", () => {
    const inherited = Object.create({ a: "x" }) as LabelSet;
    const a = new LabelRequirement("a", { operator: "=", values: ["x"] });
    const others = KEYS.slice(0, -1).map((key) =>
      new LabelRequirement(key, { operator: "!=", values: ["y"] })
    );
    const [few, many] = [new LabelSelector([a]), new LabelSelector([a, ...others])];
    assert.deepEqual([few.matches(inherited), many.matches(inherited)], [false, false]);
    assert.deepEqual([few.matches({ a: "x" }), many.matches({ a: "x" })], [true, true]);
  });

  it("looks up each label once, not once per requirement", () => {
    const keys = Array.from({ length: 1_000 }, (_, i) => `key-${i}`);
    const selector = new LabelSelector(
      keys.map((key) => new LabelRequirement(key, { operator: "!=", values: ["x"] })),
    );
    let looks = 0;
    const labels = new Proxy<Record<string, string>>({ "key-7": "y", app: "web" }, {
      get: (target, key) => (looks++, target[key as string]),
      getOwnPropertyDescriptor: (target, key) => (looks++, Object.getOwnPropertyDescriptor(target, key)),
    });
    assert.equal(selector.matches(labels), true);
    assert.ok(looks <= 6, `${looks} looks`);
  });
});
