import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import {
  type LabelOperator,
  LabelRequirement,
  LabelSelector,
  type LabelSet,
  parseLabelSelector,
} from "@listwatch/cache/selectors";
import { parseInt64 } from "../../src/meta/compiled_labels.ts";
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

/** What Kubernetes' documentation says of one requirement, without any preparation. */
function fulfils({ key, operator, values }: LabelRequirement, labels: LabelSet | undefined): boolean {
  const value = labels !== undefined && Object.hasOwn(labels, key) ? labels[key] : undefined;
  switch (operator) {
    case "exists":
      return value !== undefined;
    case "!":
      return value === undefined;
    case "!=":
    case "notin":
      return value === undefined || !values.includes(value);
    case "gt":
    case "lt": {
      const number = int64(value);
      if (number === undefined) return false;
      return operator === "gt" ? number > BigInt(values[0]) : number < BigInt(values[0]);
    }
    default:
      return value !== undefined && values.includes(value);
  }
}

function int64(value: string | undefined): bigint | undefined {
  if (value === undefined || !/^[+-]?[0-9]+$/.test(value)) return undefined;
  const number = BigInt(value);
  return BigInt.asIntN(64, number) === number ? number : undefined;
}

describe("parseInt64", () => {
  it("reads what Go reads, and nothing else", () => {
    const texts = [
      ...LABELS,
      "+",
      "0",
      "-0",
      "00",
      "123456789012345",
      "-123456789012345",
      "9007199254740993",
    ];
    for (const text of texts) {
      const parsed = parseInt64(text);
      assert.equal(parsed === undefined ? undefined : BigInt(parsed), int64(text), text);
    }
    assert.equal(typeof parseInt64("123456789012345"), "number");
    assert.equal(parseInt64("0".repeat(62) + "7"), 7n);
    assert.equal(parseInt64("0".repeat(63) + "7"), undefined, "no label is that long");
    assert.equal(parseInt64(7 as unknown as string), undefined);
  });
});

describe("compileLabels", () => {
  it("takes no labels at all for none, also where they are null", () => {
    const texts = ["a=x", "a!=x", "a", "!a", "a in (x,y)", "a notin (x,y)", "a>5", "a=x,b!=y,c,d!=z,e"];
    for (const text of texts) {
      const selector = parseLabelSelector(text);
      const expected = selector.matches({});
      assert.equal(selector.matches(undefined), expected, text);
      assert.equal(selector.matches(null as unknown as undefined), expected, text);
    }
  });

  it("takes requirements of one key together", () => {
    const selects = (selector: string, labels: LabelSet) => parseLabelSelector(selector).matches(labels);
    assert.deepEqual([selects("!a,a!=x", { a: "y" }), selects("!a,a!=x", {})], [false, true]);
    assert.deepEqual([selects("!a,a", { a: "y" }), selects("!a,a", {})], [false, false]);
    assert.deepEqual([selects("a=x,a=y", { a: "x" }), selects("a=x,a=y", {})], [false, false]);
    const twice = "a in (x,y),a in (y,z)";
    assert.deepEqual([..."xyz"].map((a) => selects(twice, { a })), [false, true, false]);
    assert.deepEqual(["4", "5", "6", "7"].map((a) => selects("a>3,a>4,a<7,a<8,a!=6", { a })), [
      false,
      true,
      false,
      false,
    ]);
    assert.deepEqual(["6", "7"].map((a) => selects("a>1,a!=6", { a })), [false, true]);
  });

  it("agrees with its requirements one by one, however many there are of a key", () => {
    fc.assert(
      fc.property(
        fc.array(requirement, { maxLength: 12 }),
        fc.array(labelSet, { maxLength: 8 }),
        (all, sets) => {
          const selector = new LabelSelector(all);
          for (const labels of sets) {
            const expected = all.map((one) => fulfils(one, labels));
            assert.equal(selector.matches(labels), expected.every(Boolean), `${selector}`);
            assert.deepEqual(all.map((one) => one.matches(labels)), expected);
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
