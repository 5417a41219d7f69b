import {
  escapeFieldValue,
  FieldSelector,
  parseFieldSelector,
  SelectorParseError,
  unescapeFieldValue,
} from "@listwatch/cache/selectors";
import fc from "fast-check";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { propertyOptions } from "../property.ts";

const parseError = (error: unknown) => error instanceof SelectorParseError && error.code === "ParseError";

describe("parseFieldSelector", () => {
  it("sorts its terms by their text and writes == as =", () => {
    const selector = parseFieldSelector("status.phase!=Failed,metadata.name==web-1");
    assert.equal(`${selector}`, "metadata.name=web-1,status.phase!=Failed");
    assert.deepEqual(selector.requirements, [
      { field: "metadata.name", operator: "=", value: "web-1" },
      { field: "status.phase", operator: "!=", value: "Failed" },
    ]);
  });

  it("sorts as Go does, by code point", () => {
    assert.equal(`${parseFieldSelector("\u{1d4b3}=1,\uffee=2")}`, "\uffee=2,\u{1d4b3}=1");
    // The first and the last of the surrogates that characters are made of.
    assert.equal(`${parseFieldSelector("\u{10000}=1,\uffee=2")}`, "\uffee=2,\u{10000}=1");
    assert.equal(`${parseFieldSelector("\u{103ff}=1,\u{103fe}=2")}`, "\u{103fe}=2,\u{103ff}=1");
    assert.equal(`${parseFieldSelector("\ue000=1,a=2")}`, "a=2,\ue000=1");
    assert.equal(`${parseFieldSelector("\u{1d4b3}=1,\ue000=2")}`, "\ue000=2,\u{1d4b3}=1");
    assert.equal(`${parseFieldSelector("a=12,a=1,a=123")}`, "a=1,a=12,a=123");
  });

  it("skips terms that are empty, or empty on both sides", () => {
    for (const text of ["", ",", ",,", "=", "==", "!=", "=,!="]) {
      const selector = parseFieldSelector(text);
      assert.ok(selector.empty, text);
      assert.ok(selector.matches({ a: "b" }), text);
    }
    assert.equal(`${parseFieldSelector(",=b,a=,")}`, "=b,a=");
  });

  it("splits a term at the first operator, and a selector at commas without a backslash", () => {
    assert.deepEqual(parseFieldSelector("a!b=x\\,y").requirements, [{
      field: "a!b",
      operator: "=",
      value: "x,y",
    }]);
    assert.deepEqual(parseFieldSelector("a\\,b=c").requirements, [{
      field: "a\\,b",
      operator: "=",
      value: "c",
    }]);
  });

  it("refuses a term without operator, naming it", () => {
    assert.throws(() => parseFieldSelector("a=b,spec.nodeName"), (error) => {
      assert.ok(error instanceof SelectorParseError);
      assert.match(error.message, /the term "spec.nodeName" has no operator/);
      assert.equal(error.position, 4);
      return true;
    });
    for (const [length, shown] of [[200, "a".repeat(200)], [201, `${"a".repeat(200)}...`]] as const) {
      assert.throws(
        () => parseFieldSelector("a".repeat(length)),
        (error) =>
          (error as Error).message.startsWith(`Cannot use the field selector "${shown}": the term "a`),
      );
    }
    for (const [text, position] of [["ba=1,a", 5], ["a,ba=1", 0], ["c=1,ba,a=1", 4]] as const) {
      assert.throws(() => parseFieldSelector(text), { position }, text);
    }
    assert.throws(() => parseFieldSelector("a in (b)"), parseError);
  });

  it("refuses wrong and missing escapes", () => {
    for (const text of ["a=b=c", "a===b", "a=b\\c", "a=b\\", "a\\=b=c", "a=b\\\\\\,c=d\\"]) {
      assert.throws(() => parseFieldSelector(text), parseError, text);
    }
    assert.throws(
      () => parseFieldSelector("a=b=c"),
      { reason: '"=" needs a backslash before it in the value "b=c"' },
    );
    assert.throws(
      () => parseFieldSelector("a=b\\"),
      { reason: 'a backslash must be before "\\", "," or "=" in the value "b\\\\"' },
    );
  });

  it("never throws anything but a parse error, and the canonical text of what it accepts parses to the same", () => {
    const piece = fc.constantFrom(
      "a",
      "b.c",
      "=",
      "==",
      "!=",
      "!",
      "\\",
      "\\\\",
      "\\,",
      "\\=",
      ",",
      " ",
      "é",
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join("")), (text) => {
        let requirements;
        try {
          requirements = parseFieldSelector(text).requirements;
        } catch (error) {
          return parseError(error);
        }
        const again = parseFieldSelector(`${parseFieldSelector(text)}`).requirements;
        const sorted = (of: typeof requirements) =>
          of.map((requirement) => JSON.stringify(requirement)).sort();
        assert.deepEqual(sorted(again), sorted(requirements));
        return true;
      }),
      propertyOptions(3_000),
    );
  });
});

describe("FieldSelector", () => {
  it("does not change with the requirements that it was made of", () => {
    const requirements = [{ field: "a", operator: "=", value: "1" }] as const;
    const given = requirements.slice();
    const selector = new FieldSelector(given);
    given.length = 0;
    assert.deepEqual(selector.requirements, requirements);
  });
});

describe("FieldSelector.matches", () => {
  it("reads an absent field as empty", () => {
    assert.ok(parseFieldSelector("spec.nodeName=").matches({}));
    assert.ok(parseFieldSelector("spec.nodeName!=n1").matches({}));
    assert.equal(parseFieldSelector("spec.nodeName!=").matches({}), false);
    assert.ok(parseFieldSelector("constructor=").matches({}), "only own properties count");
    assert.ok(parseFieldSelector("spec.nodeName=").matches(() => undefined));
    assert.equal(parseFieldSelector("spec.nodeName!=").matches(() => undefined), false);
  });

  it("calls a getter in the order of the requirements, up to the first that fails", () => {
    const asked: string[] = [];
    const get = (field: string) => {
      asked.push(field);
      return field === "a" ? "1" : undefined;
    };
    assert.equal(parseFieldSelector("c=3,b=2,a=1").matches(get), false);
    assert.deepEqual(asked, ["a", "b"]);
  });

  it("requires the value of the first equality on a field", () => {
    assert.equal(parseFieldSelector("a!=2,a=1").requiresExactMatch("a"), "1");
    assert.equal(parseFieldSelector("a!=2").requiresExactMatch("a"), undefined);
    assert.equal(parseFieldSelector("a=").requiresExactMatch("a"), "");
    assert.equal(parseFieldSelector("a=1,b=2").requiresExactMatch("b"), "2");
    assert.equal(parseFieldSelector("a=1").requiresExactMatch("b"), undefined);
  });

  it("selects by fields, with any text as value", () => {
    fc.assert(fc.property(fc.dictionary(fc.stringMatching(/^[a-z.]+$/), fc.string()), (fields) => {
      const selector = new FieldSelector(
        Object.entries(fields).map(([field, value]) => ({ field, operator: "=", value })),
      );
      assert.ok(selector.matches(fields));
      assert.ok(parseFieldSelector(`${selector}`).matches((field) => fields[field]));
    }));
  });
});

describe("escapeFieldValue", () => {
  it("is undone by unescapeFieldValue", () => {
    assert.equal(escapeFieldValue("a\\,="), "a\\\\\\,\\=");
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom("\\", ",", "=", "a", "é", "\u{1f600}", "\ud83d") }),
        (value) => unescapeFieldValue(escapeFieldValue(value)) === value,
      ),
    );
  });
});
