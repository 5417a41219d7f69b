import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Utf8Stream } from "../../../src/hono/send/utf8_stream.ts";
import { seededRandom } from "../../../src/testing/seeded_random.ts";
import { propertyOptions } from "../../property.ts";

const CHARACTERS = ["a", "é", "€", "😀", "\ufeff", "\0"].map((text) => [...new TextEncoder().encode(text)]);
const FAULTS = [0x80, 0xbf, 0xc0, 0xc3, 0xe0, 0xe2, 0xed, 0xf0, 0xf4, 0xf5, 0xff];

describe("Utf8Stream, by single characters", () => {
  it("gives a character in the chunk that completes it", () => {
    for (const bytes of CHARACTERS) {
      const character = new TextDecoder("utf-8", { ignoreBOM: true }).decode(Uint8Array.from(bytes));
      for (let cut = 1; cut <= bytes.length; cut++) {
        const stream = new Utf8Stream();
        const first = stream.decode(Uint8Array.from([0x61, ...bytes.slice(0, cut)]));
        assert.equal(first, cut === bytes.length ? `a${character}` : "a");
        assert.equal(first + stream.decode(Uint8Array.from(bytes.slice(cut))), `a${character}`);
      }
    }
  });
});

describe("Utf8Stream", () => {
  const { numRuns, seed = Date.now() } = propertyOptions(20_000);

  it(`gives the text that a TextDecoder gives, wherever the chunks are split (seed ${seed})`, () => {
    const random = seededRandom(seed);
    const below = (limit: number) => Math.floor(random() * limit);
    for (let i = 0; i < numRuns; i++) {
      const chunks: Uint8Array[] = [];
      const all: number[] = [];
      for (let left = below(6); left > 0; left--) {
        const chunk: number[] = [];
        for (let more = below(5); more > 0; more--) {
          const bytes = below(4) === 0
            ? [FAULTS[below(FAULTS.length)]]
            : CHARACTERS[below(CHARACTERS.length)];
          chunk.push(...bytes.slice(0, 1 + below(4)));
        }
        chunks.push(Uint8Array.from(chunk));
        all.push(...chunk);
      }
      const stream = new Utf8Stream();
      const text = chunks.map((chunk) => stream.decode(chunk)).join("") + stream.end();
      const expected = new TextDecoder("utf-8", { ignoreBOM: true }).decode(Uint8Array.from(all));
      assert.equal(text, expected, `${all}`);
    }
  });

  it("holds back no more than a character that is not whole", () => {
    const stream = new Utf8Stream();
    assert.equal(stream.decode(Uint8Array.of(0x61, 0xf0, 0x9f)), "a");
    assert.equal(stream.decode(Uint8Array.of(0x98)), "");
    assert.equal(stream.decode(Uint8Array.of(0x80, 0x62)), "😀b");
    assert.equal(stream.end(), "");
    assert.equal(stream.decode(Uint8Array.of(0x61, 0xc3)), "a");
    assert.deepEqual([stream.end(), stream.end()], ["\ufffd", ""]);
    assert.equal(stream.decode(Uint8Array.of(0xe2, 0x82)), "");
    assert.equal(stream.decode(Uint8Array.of(0xac, 0xc3, 0xa9, 0xe2)), "€é");
  });
});
