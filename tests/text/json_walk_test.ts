import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { afterPlainString, afterString, afterStrings, afterValue } from "../../src/text/json_walk.ts";
import { seededRandom } from "../../src/testing/seeded_random.ts";
import { propertyOptions } from "../property.ts";

function bytesOf(text: string): Uint8Array {
  return new TextEncoder().encode(`${text}\0`);
}

/** Brackets of so many levels: `[` or `{"a":` by turns of a random number, and what closes them. */
function nested(levels: number, random: () => number): { readonly text: string; readonly closing: string } {
  let text = "";
  let closing = "";
  for (let i = 0; i < levels; i++) {
    const isArray = random() < 0.5;
    text += isArray ? "[" : '{"a":';
    closing = (isArray ? "]" : "}") + closing;
  }
  return { text: `${text}1`, closing };
}

describe("afterValue", () => {
  it("ends any number of brackets where they are closed as they were opened, and refuses all others", () => {
    const random = seededRandom(propertyOptions(1).seed ?? 1);
    for (const levels of [1, 2, 1023, 1024, 1025, 2049, 5_000]) {
      const { text, closing } = nested(levels, random);
      const whole = text + closing;
      assert.equal(afterValue(bytesOf(`${whole},`), 0, Infinity), whole.length, `${levels} levels`);
      assert.equal(afterValue(bytesOf(whole), 0, levels - 2), -1, `${levels} levels, fewer allowed`);
      for (const at of [0, 1, Math.floor(levels / 2), levels - 1]) {
        if (at >= levels) continue;
        const wrong = closing.slice(0, at) + (closing[at] === "]" ? "}" : "]") + closing.slice(at + 1);
        assert.equal(afterValue(bytesOf(text + wrong), 0, Infinity), -1, `${levels} levels, wrong at ${at}`);
      }
      assert.equal(
        afterValue(bytesOf(text + closing.slice(1)), 0, Infinity),
        -1,
        `${levels} levels, one open`,
      );
    }
  });
});

describe("afterValue, of one number or word", () => {
  it("ends where the text ends that JSON.parse accepts, and nowhere else", () => {
    const right = [
      "0",
      "-0",
      "7",
      "10",
      "-10",
      "1.5",
      "-0.25",
      "1e3",
      "1E+3",
      "1.5e-30",
      "true",
      "false",
      "null",
    ];
    for (const text of right) {
      JSON.parse(text);
      for (const after of ["", ",", "]", "}", " ", "\n"]) {
        assert.equal(afterValue(bytesOf(text + after), 0, 10), text.length, text + after);
      }
    }
    const wrong = ["", "-", "+1", "01", "-01", ".5", "1.", "-.5", "1.e3", "1e", "1e+", "1E-", "-a", "e3"];
    for (const text of [...wrong, "tru", "truE", "truth", "fals", "falsE", "nul", "nulL", "None", "x"]) {
      assert.throws(() => JSON.parse(text));
      assert.notEqual(afterValue(bytesOf(text), 0, 10), text.length, text);
      assert.equal(afterValue(bytesOf(`[${text}]`), 0, 10), text === "" ? 2 : -1, text);
    }
  });
});

describe("afterStrings", () => {
  it("ends an object of strings, and nothing else", () => {
    for (const text of ["{}", "{ }", '{"a":"b"}', '{"":""}', '{ "a" : "b" , "c\\"" : "d" }']) {
      for (const after of ["", ",", "}"]) {
        assert.equal(afterStrings(bytesOf(text + after), 0), text.length, text);
      }
    }
    const wrong = [
      ...["", "[]", '"a"', "{", "{,}", '{"a', '{"a"', '{"a"}', '{"a":', '{"a":}', '{"a" "b"}', '{"a":"b'],
      ...[
        '{"a":"b"',
        '{"a":"b",',
        '{"a":"b",}',
        '{"a":"b";"c":"d"}',
        '{"a":"b" "c":"d"}',
        '{a:"b"}',
        '{"a":1}',
      ],
      ...[
        '{"a":null}',
        '{"a":{}}',
        '{"a":"b","c":1}',
        '{"a":"b",c:"d"}',
        '{"a":b"}',
        '{a":"b"}',
        '["a":"b"}',
        '{:"b"}',
        '{"a"x"b"}',
      ],
    ];
    for (const text of wrong) assert.equal(afterStrings(bytesOf(text), 0), -1, text);
  });
});

describe("afterString", () => {
  it("ends at the quote wherever it is, behind any letters, and refuses control characters", () => {
    const random = seededRandom(propertyOptions(1).seed ?? 1);
    const letters = ["a", "!", "~", "#", "]", "[", "\x7f", "é", "€", "𝒳", "\u0080", "\ua222"];
    const pick = (from: readonly string[]) => from[Math.floor(random() * from.length)];
    for (let run = 0; run < 20_000; run++) {
      const before = " ".repeat(run % 5);
      const length = Math.floor(random() * 14);
      const parts = Array.from(
        { length },
        () => random() < 0.1 ? pick(['\\"', "\\\\", "\\u00e9"]) : pick(letters),
      );
      const text = parts.join("");
      const bytes = bytesOf(`${before}${text}"${pick(["", ",", '""""', "\\\\\\\\", "\n\n\n\n"])}`);
      const end = bytesOf(before + text).length;
      assert.equal(afterString(bytes, before.length), end, JSON.stringify(text));
      assert.equal(
        afterPlainString(bytes, before.length),
        text.includes("\\") ? -1 : end,
        JSON.stringify(text),
      );
      const at = Math.floor(random() * (length + 1));
      const wrong = [
        ...parts.slice(0, at),
        pick(["\0", "\x01", "\n", "\x1f", "\\a", "\\u12g4"]),
        ...parts.slice(at),
      ];
      assert.equal(
        afterString(bytesOf(`${before}${wrong.join("")}"`), before.length),
        -1,
        JSON.stringify(wrong),
      );
    }
  });
});
