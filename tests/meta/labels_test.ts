import {
  type LabelOperator,
  LabelRequirement,
  LabelSelector,
  labelSelectorFromSet,
  labelSelectorFromSpec,
  type LabelSelectorSpec,
  labelsEverything,
  labelsNothing,
  parseLabelSelector,
  SelectorParseError,
} from "@listwatch/cache/selectors";
import fc from "fast-check";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { propertyOptions } from "../property.ts";

function refused(make: () => unknown): SelectorParseError {
  try {
    make();
  } catch (error) {
    assert.ok(error instanceof SelectorParseError, `threw ${error}`);
    assert.equal(error.code, "ParseError");
    return error;
  }
  throw new assert.AssertionError({ message: "nothing was thrown" });
}

describe("parseLabelSelector", () => {
  it("drops a NUL right after a token, and ends at any other, as Go's lexer does", () => {
    const texts = { "a\0,b": "a,b", "a=x\0,b": "a=x,b", "a \0,b": "a", "a,b\0": "a,b", "\0a": "" };
    for (const [text, canonical] of Object.entries(texts)) {
      assert.equal(`${parseLabelSelector(text)}`, canonical);
    }
  });

  it("says first, and where, what is wrong with a key", () => {
    assert.equal(refused(() => parseLabelSelector("!-a")).position, 1);
    assert.match(refused(() => parseLabelSelector("a/b/c in")).message, /more than one '\/'/);
  });

  it("sorts requirements by key and values in themselves, and writes blanks only around in and notin", () => {
    const selector = parseLabelSelector(" z>5 ,tier  notin( web,api ),!canary,\tapp == x,env");
    assert.equal(`${selector}`, "app==x,!canary,env,tier notin (api,web),z>5");
    assert.deepEqual(selector.requirements.map(({ operator }) => operator), [
      "==",
      "!",
      "exists",
      "notin",
      "gt",
    ]);
  });

  it("keeps requirements on the same key in the order of the text", () => {
    assert.equal(`${parseLabelSelector("b,a!=2,a=1")}`, "a!=2,a=1,b");
  });

  it("reads in and notin as words except right after a key", () => {
    assert.equal(`${parseLabelSelector("in in (notin,in),notin=in")}`, "in in (in,notin),notin=in");
  });

  it("reads nothing in a list or after an operator as the empty value", () => {
    for (const text of ["a in ()", "a in (,)", "a in (, ,)"]) {
      assert.deepEqual(parseLabelSelector(text).requirements[0].values, [""], text);
    }
    assert.ok(parseLabelSelector("a=,b=x").matches({ a: "", b: "x" }));
    assert.equal(parseLabelSelector("a=").matches({}), false, "an absent label has no value");
  });

  it("says what it found, where, and what it expected", () => {
    const error = refused(() => parseLabelSelector("app in web"));
    assert.equal(
      error.message,
      `Cannot use the label selector "app in web": found "web" at position 7, expected '('`,
    );
    assert.equal(error.selector, "app in web");
    assert.equal(error.position, 7);
    assert.match(refused(() => parseLabelSelector("app in (web")).message, /found the end at position 11/);
    assert.match(
      refused(() => parseLabelSelector("a=b,")).message,
      /found the end at position 4, expected '!' or a label key/,
    );
    const expected: [text: string, words: string][] = [
      ["a=b c", "found \"c\" at position 4, expected ',' or the end"],
      ["!", "found the end at position 1, expected a label key"],
      ["a b", "found \"b\" at position 2, expected one of 'in', 'notin', '=', '==', '!=', '>', '<'"],
      ["a=(", 'found "(" at position 2, expected a label value'],
      ["a in (b c)", "found \"c\" at position 8, expected ',' or ')'"],
      ["/a=b", 'the label key "/a" has an empty prefix'],
      ["a/=b", 'the label key "a/" has an empty name'],
    ];
    for (const [text, words] of expected) {
      assert.ok(refused(() => parseLabelSelector(text)).message.endsWith(words), text);
    }
  });

  it("refuses keys that are not qualified names", () => {
    for (const key of ["a/b/c", "/a", "a/", "-a", "a-", "é", "Upper.case/a", "a..b/c", "x".repeat(64)]) {
      refused(() => parseLabelSelector(key));
    }
    const subdomain = `${"x".repeat(63)}.`.repeat(3);
    assert.ok(parseLabelSelector(`${subdomain}${"x".repeat(61)}/${"y".repeat(63)}`), "253 + 63 characters");
    assert.match(
      refused(() => parseLabelSelector(`${subdomain}${"x".repeat(62)}/y`)).message,
      /longer than 253/,
    );
  });

  it("refuses values that no label can have", () => {
    assert.ok(parseLabelSelector(`a=${"v".repeat(63)}`));
    for (const value of ["v".repeat(64), "-v", "v-", "é", "a/b", '"a"']) {
      assert.equal(refused(() => parseLabelSelector(`a=${value}`)).position, 0);
    }
  });

  it("refuses to compare with anything but a 64-bit integer", () => {
    assert.ok(parseLabelSelector("a>9223372036854775807"));
    for (const bound of ["9223372036854775808", "1.5", "a", "", "+1", "-1"]) {
      refused(() => parseLabelSelector(`a>${bound}`));
    }
  });

  it("refuses a very long text fast, and does not repeat all of it", () => {
    assert.ok(refused(() => parseLabelSelector(`${"a-".repeat(200_000)}/x`)).message.length < 1_000);
    refused(() => parseLabelSelector(`a=${"a.".repeat(200_000)}`));
    refused(() => parseLabelSelector(`a in (${",".repeat(200_000)}`));
  });

  it("never throws anything but a parse error, and the canonical text of what it accepts parses to the same", () => {
    const piece = fc.constantFrom(..."x,y,in,notin,(,),=,==,!=,!,<,>, ,\t,a.b/c,5,-1,é,\0".split(","), ",");
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 14 }).map((pieces) => pieces.join("")), (text) => {
        let selector: LabelSelector;
        try {
          selector = parseLabelSelector(text);
        } catch (error) {
          return error instanceof SelectorParseError;
        }
        const again = parseLabelSelector(`${selector}`);
        assert.deepEqual(
          again.requirements.map(({ key, operator, values }) => ({ key, operator, values })),
          selector.requirements.map(({ key, operator, values }) => ({ key, operator, values })),
        );
        return true;
      }),
      propertyOptions(3_000),
    );
  });
});

describe("LabelSelector.matches", () => {
  it("needs every bound of a number", () => {
    for (const text of ["a<5,a<3", "a<3,a<5", "a>0,a>1,a<3", "a in (2,4),a<3"]) {
      const selector = parseLabelSelector(text);
      assert.deepEqual(["2", "4"].map((a) => selector.matches({ a })), [true, false], text);
    }
    const above = parseLabelSelector("a>1,a>3,a>2");
    assert.deepEqual(["2", "3", "4"].map((a) => above.matches({ a })), [false, false, true]);
  });

  it("counts no inherited label, whatever else is required", () => {
    const labels = Object.create({ app: "web" }, { tier: { value: "db", enumerable: true } });
    const others = ["", ",b!=x", ",b!=x,c!=x,d!=x,e!=x"]; // with many keys the labels are looked up
    for (const more of others) {
      for (const text of ["app!=web", "!app", "app notin (web,api)", "tier=db", "tier!=web"]) {
        assert.ok(parseLabelSelector(text + more).matches(labels), text + more);
      }
      for (const text of ["app=web", "app", "app in (web,api)", "app!=api,app"]) {
        assert.ok(!parseLabelSelector(text + more).matches(labels), text + more);
      }
    }
  });

  it("is true of an absent label for !=, notin and !, and false for every other operator", () => {
    const passing = ["a!=1", "a notin (1)", "!a"];
    const failing = ["a=1", "a==1", "a in (1)", "a", "a>0", "a<9"];
    for (const text of passing) assert.ok(parseLabelSelector(text).matches(undefined), text);
    for (const text of failing) assert.equal(parseLabelSelector(text).matches({}), false, text);
  });

  it("ignores inherited properties", () => {
    for (const key of ["constructor", "toString", "hasOwnProperty", "valueOf"]) {
      assert.equal(parseLabelSelector(key).matches({}), false, key);
      assert.ok(parseLabelSelector(`!${key}`).matches({ a: "b" }), key);
      assert.ok(parseLabelSelector(`${key}=x`).matches({ [key]: "x" }), key);
    }
    assert.equal(parseLabelSelector("a").matches(Object.create({ a: "x" })), false);
    refused(() => parseLabelSelector("__proto__"));
  });

  it("compares whole 64-bit integers, with a sign if there is one", () => {
    const above = parseLabelSelector("v>9007199254740992");
    assert.ok(above.matches({ v: "9007199254740993" }), "beyond the precision of a double");
    assert.equal(above.matches({ v: "9223372036854775808" }), false, "out of range");
    const small = parseLabelSelector("v<5");
    for (const v of ["4", "+4", "-9223372036854775808", "004"]) {
      assert.ok(small.matches({ v }), v);
    }
    for (const v of ["5", "", "x", "1.0", "1_0", " 1", "0x1", "-9223372036854775809"]) {
      assert.equal(small.matches({ v }), false, JSON.stringify(v));
    }
  });

  it("is true of the set of labels that it was made from", () => {
    const word = fc.stringMatching(/^[a-z]([a-z0-9.-]{0,5}[a-z0-9])?$/);
    fc.assert(fc.property(fc.dictionary(word, word), fc.dictionary(word, word), (wanted, more) => {
      const selector = labelSelectorFromSet(wanted);
      assert.ok(selector.matches({ ...more, ...wanted }));
      for (const key of Object.keys(wanted)) {
        const { [key]: _, ...rest } = wanted;
        assert.equal(selector.matches(rest), false);
        assert.equal(selector.requiresExactMatch(key), wanted[key]);
      }
    }));
  });
});

describe("LabelSelector", () => {
  it("of everything and of nothing differ in `selectable`, not in their text", () => {
    const everything = labelsEverything();
    const nothing = labelsNothing();
    assert.deepEqual([`${everything}`, everything.empty, everything.selectable], ["", true, true]);
    assert.deepEqual([`${nothing}`, nothing.empty, nothing.selectable], ["", false, false]);
    assert.ok(everything.matches(undefined));
    assert.equal(nothing.matches({ a: "b" }), false);
  });

  it("refuses a set with an invalid key or value, naming it", () => {
    assert.match(refused(() => labelSelectorFromSet({ "bad key": "v" })).message, /"bad key"/);
    assert.match(refused(() => labelSelectorFromSet({ a: "bad value" })).message, /"bad value"/);
    assert.match(
      refused(() => labelSelectorFromSet({ a: 1 as unknown as string })).message,
      /must be a string/,
    );
  });

  it("refuses a requirement whose number of values does not fit the operator", () => {
    for (
      const [operator, values] of [["in", []], ["=", []], ["=", ["a", "b"]], ["exists", ["a"]], ["gt", [
        "1",
        "2",
      ]]] as const
    ) {
      refused(() => new LabelRequirement("a", { operator, values }));
    }
    refused(() => new LabelRequirement("a", { operator: "~" as "=", values: ["b"] }));
    for (const operator of ["gt", "lt"] as const) {
      for (const value of ["x", "1.5", "", "9".repeat(19)]) {
        refused(() => new LabelRequirement("a", { operator, values: [value] }));
      }
      assert.ok(new LabelRequirement("a", { operator, values: ["42"] }));
    }
  });

  it("says what is wrong with a requirement", () => {
    const reason = (operator: LabelOperator, values: string[], key = "a") =>
      refused(() => new LabelRequirement(key, { operator, values })).reason;
    assert.equal(reason("in", []), '"in" needs at least one value');
    assert.equal(reason("exists", ["x"]), '"exists" takes no values');
    assert.equal(reason("~" as LabelOperator, ["x"]), 'unknown operator "~"');
    assert.equal(reason("=", ["x", "y"]), '"=" needs exactly one value, not 2');
    assert.equal(reason("gt", ["x"]), '"gt" needs a 64-bit signed integer, not "x"');
    assert.match(
      reason("exists", [], "A.b/c"),
      /^the prefix of the label key "A\.b\/c" must consist of lower/,
    );
    assert.match(
      reason("exists", [], "a".repeat(64)),
      /^the name of the label key "a{64}" is longer than 63$/,
    );
    assert.match(
      refused(() => labelSelectorFromSpec({ matchExpressions: [{ key: "a", operator: "=" as "In" }] }))
        .message,
      /^Cannot use the label selector .*: "=" is no operator of matchExpressions; /,
    );
    assert.equal(new LabelSelector([], { selectable: false }).empty, false);
    assert.equal(parseLabelSelector("a").empty, false);
  });

  it("leaves the order of the requirements that it is made of", () => {
    const of = (key: string) => new LabelRequirement(key, { operator: "exists", values: [] });
    const given = [of("b"), of("a"), of("c")];
    assert.equal(`${new LabelSelector(given)}`, "a,b,c");
    assert.deepEqual(given.map(({ key }) => key), ["b", "a", "c"]);
  });

  it("has one exact value only if the first requirement on the key has one", () => {
    const exact = (text: string) => parseLabelSelector(text).requiresExactMatch("a");
    assert.equal(exact("a=1"), "1");
    assert.equal(exact("a==1"), "1");
    assert.equal(exact("a in (1)"), "1");
    assert.equal(exact("a="), "");
    for (const text of ["", "b=1", "a!=1", "a", "a in (1,2)", "a>1", "a in (1,2),a=1"]) {
      assert.equal(exact(text), undefined, text);
    }
  });
});

describe("LabelRequirement", () => {
  it("does not change the values that it is given", () => {
    const values = ["b", "a"];
    assert.deepEqual(new LabelRequirement("tier", { operator: "in", values }).values, ["a", "b"]);
    assert.deepEqual(values, ["b", "a"]);
  });
});

describe("labelSelectorFromSpec", () => {
  it("selects nothing when absent and everything when empty", () => {
    assert.equal(labelSelectorFromSpec(undefined).selectable, false);
    assert.equal(labelSelectorFromSpec(null).selectable, false);
    assert.ok(labelSelectorFromSpec({}).empty);
    assert.ok(labelSelectorFromSpec({ matchLabels: null, matchExpressions: [] }).empty);
  });

  it("has the labels and the expressions", () => {
    const spec: LabelSelectorSpec = {
      matchLabels: { app: "web" },
      matchExpressions: [
        { key: "tier", operator: "In", values: ["b", "a"] },
        { key: "env", operator: "NotIn", values: ["dev"] },
        { key: "canary", operator: "DoesNotExist" },
        { key: "team", operator: "Exists", values: [] },
        { key: "zone", operator: "Exists", values: null },
      ],
    };
    assert.equal(`${labelSelectorFromSpec(spec)}`, "app=web,!canary,env notin (dev),team,tier in (a,b),zone");
  });

  it("refuses operators of the text form", () => {
    const spec = {
      matchExpressions: [{ key: "a", operator: "in", values: ["b"] }],
    } as unknown as LabelSelectorSpec;
    assert.match(
      refused(() => labelSelectorFromSpec(spec)).message,
      /use "In", "NotIn", "Exists" or "DoesNotExist"/,
    );
  });
});
