import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { afterValue } from "../../src/text/json_walk.ts";
import { KnownShapes } from "../../src/text/json_walk.ts";
import { seededRandom } from "../../src/testing/seeded_random.ts";
import { propertyOptions } from "../property.ts";

const MAX_DEPTH = 20;

function bytesOf(text: string): Uint8Array {
  return new TextEncoder().encode(`${text}\0`);
}

/** An array as managedFields are, with these strings in it. */
function managedFields(next: () => string): string {
  const entry = () =>
    `{"manager":${next()},"operation":"Update","time":${next()},"fieldsV1":{"f:status":{"f:conditions":{` +
    `${next()}:{".":{},"f:type":{}},${next()}:{ ".":{},"f:reason":{} }},"f:n":[1,-2.5e3,true,null,[],{}]}}}`;
  return `[${entry()},${entry()}]`;
}

const STRINGS = [
  "",
  "a",
  "kubelet",
  "kube-controller-manager",
  "ü",
  "𝒳",
  '\\"',
  "\\\\",
  "\\u0041",
  "x\\u0042\\n",
  "]}",
  '\\"}],[{',
  "/",
];
const WRONG = ["\\", "\\x", "\\u00g0", "\n", '"', '":{},"'];

describe("KnownShapes", () => {
  it("ends a value where a walk over all of it does, and refuses what that refuses", () => {
    const { numRuns = 0 } = propertyOptions(20_000);
    const seed = propertyOptions(1).seed ?? 1;
    const random = seededRandom(seed);
    const below = (n: number) => Math.floor(random() * n);
    const lasting = new KnownShapes();
    let shapes = lasting;
    let valid = 0;
    for (let run = 0; run < numRuns; run++) {
      const isWrong = below(4) === 0;
      let text = managedFields(() => {
        const strings = isWrong && below(8) === 0 ? WRONG : STRINGS;
        return `"${strings[below(strings.length)]}"`;
      });
      const at = below(text.length);
      const change = below(6);
      if (change === 0) text = text.slice(0, at);
      if (change === 1) text = text.slice(0, at) + '{}[],:"1 \\e'[below(11)] + text.slice(at + below(2));
      const bytes = bytesOf(" ".repeat(below(9)) + text + [",", "}", "]", ""][below(4)]);
      const start = bytes.indexOf("[".charCodeAt(0));
      if (start < 0) continue;
      const expected = afterValue(bytes, start, MAX_DEPTH);
      if (expected > 0) valid++;
      // Once most values are new, few are compared: a new one compares each.
      if (run % 4 === 0) shapes = new KnownShapes();
      for (const each of [shapes, lasting]) {
        const actual = each.afterValue(bytes, start, MAX_DEPTH);
        if (actual !== expected) {
          assert.equal(actual, expected, `seed ${seed}, run ${run}: ${JSON.stringify(text)}`);
        }
      }
    }
    assert.ok(valid > numRuns / 3);
  });

  it("knows every bracket, colon and comma: doubled, left out or another one, it is no longer the same shape", () => {
    const known = managedFields(() => '"a"');
    const marks = "{}[],:";
    for (let at = 0; at < known.length; at++) {
      if (!marks.includes(known[at])) continue;
      for (const mark of ["", known[at] + known[at], ...marks]) {
        const text = known.slice(0, at) + mark + known.slice(at + 1);
        // Also in strings of another length.
        for (const written of [text, text.replaceAll('"a"', '"kubelet"')]) {
          const shapes = new KnownShapes();
          shapes.afterValue(bytesOf(known), 0, MAX_DEPTH);
          const bytes = bytesOf(`${written},[]`);
          const expected = afterValue(bytes, 0, MAX_DEPTH);
          assert.equal(shapes.afterValue(bytes, 0, MAX_DEPTH), expected, written);
        }
      }
    }
  });

  it("walks values on as any other where most are new, and those that are alike again", () => {
    const shapes = new KnownShapes();
    for (let i = 0; i < 200; i++) {
      const text = managedFields(() => '"a"').slice(0, -1) + `,${"[".repeat(i + 1)}${"]".repeat(i + 1)}]`;
      for (let again = 0; again < (i > 100 ? 50 : 1); again++) {
        assert.equal(shapes.afterValue(bytesOf(text), 0, 1_000), text.length);
        assert.equal(shapes.afterValue(bytesOf(text.slice(0, -1)), 0, 1_000), -1);
      }
    }
  });

  it("ends a value at the end of its bytes, wherever it is cut short", () => {
    const shapes = new KnownShapes();
    const whole = managedFields(() => '"kubelet"');
    shapes.afterValue(bytesOf(whole), 0, MAX_DEPTH);
    for (let length = 0; length < whole.length; length++) {
      const bytes = bytesOf(whole + whole);
      bytes[length] = 0; // what an earlier chunk left behind follows
      assert.equal(shapes.afterValue(bytes, 0, MAX_DEPTH), -1);
    }
    assert.equal(shapes.afterValue(bytesOf(whole + whole), 0, MAX_DEPTH), whole.length);
  });
});
