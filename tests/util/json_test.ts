import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { metaNamespaceKey } from "@listwatch/cache";
import { TextHolding } from "../../src/store/text_holding.ts";
import { isSameJson, jsonOf, memorySize } from "../../src/util/json.ts";

function nested(levels: number): unknown {
  let value: unknown = 1;
  for (let i = 0; i < levels; i++) value = [value];
  return value;
}

describe("isSameJson", () => {
  const same: [a: unknown, b: unknown][] = [
    [1, 1],
    [null, null],
    ["a", "a"],
    [{ a: 1, b: [1, { c: null }] }, { b: [1, { c: null }], a: 1 }],
    [{ a: undefined, b: 1 }, { b: 1 }],
    [{}, { a: undefined }],
    [JSON.parse('{"__proto__":{"a":1}}'), JSON.parse('{"__proto__":{"a":1}}')],
    [nested(400), nested(400)],
  ];
  const different: [a: unknown, b: unknown][] = [
    [1, 2],
    [1, "1"],
    [null, {}],
    [undefined, null],
    [0, false],
    [[], {}],
    [{}, []],
    [[1, 2], [1]],
    [[1], [1, 2]],
    [{ a: 1 }, { a: 1, b: 1 }],
    [{ a: 1, b: 1 }, { a: 1 }],
    [{ a: 1, b: undefined }, { a: 1, c: null }],
    [{ toString: 1 }, { a: 1 }],
    [JSON.parse('{"__proto__":{}}'), { a: {} }],
    [{ a: { b: [1, { c: 1 }] } }, { a: { b: [1, { c: 2 }] } }],
    [new Date(1), new Date(1)],
    [new Map(), new Map()],
    [NaN, NaN],
    [nested(600), nested(600)],
  ];
  it("is true for the same content, in any order of properties", () => {
    for (const [a, b] of same) {
      assert.ok(isSameJson(a, b), `${JSON.stringify(a)} ${JSON.stringify(b)}`);
      assert.ok(isSameJson(b, a));
    }
  });

  it("is false for different content, and for values that are not JSON", () => {
    for (const [a, b] of different) {
      assert.ok(!isSameJson(a, b), `${JSON.stringify(a)} ${JSON.stringify(b)}`);
      assert.ok(!isSameJson(b, a));
    }
    const date = new Date(1);
    assert.ok(isSameJson({ date }, { date }));
  });

  it("is false beyond the depth that is compared, however deep they are", () => {
    const holdingItself = (value: object): unknown => Object.assign(value, { 0: value });
    for (const make of [() => nested(100_000), () => holdingItself([]), () => holdingItself({})]) {
      assert.equal(isSameJson(make(), make()), false);
    }
  });
});

describe("memorySize", () => {
  it("of an object that is held as text is about the length of the text", () => {
    const metadata = { name: "web-1", namespace: "shop", resourceVersion: "5" };
    const text = JSON.stringify({ metadata, spec: { text: "x".repeat(4_000) } });
    const holding = new TextHolding(metaNamespaceKey);
    const bytes = memorySize(holding.holdText.hold(text, { metadata }));
    assert.ok(bytes > 4_000 && bytes < 5_000, `${bytes} bytes`);
  });

  it("counts strings, buffers, elements and properties", () => {
    const [empty, full] = [{ a: "", b: [""] }, { a: "four", b: ["five "] }].map(memorySize);
    assert.equal(full - empty, 9);
    assert.ok(memorySize([new Uint8Array(1_000)]) >= 1_000);
  });
});

describe("jsonOf", () => {
  it("writes a value of any depth as JSON.stringify writes one of few levels", () => {
    const inner = { a: [1, "\n\u2028\ud800", null, true, {}, []], 'b"': undefined, c: { d: -0, e: "" } };
    const text = JSON.stringify(inner);
    assert.equal(jsonOf(inner), text);
    const depth = 100_000;
    let value: unknown = inner;
    for (let i = 0; i < depth; i++) value = Object.freeze([{ x: value, none: undefined }, 1]);
    assert.throws(() => JSON.stringify(value), RangeError);
    assert.equal(jsonOf(value), `${'[{"x":'.repeat(depth)}${text}${"},1]".repeat(depth)}`);
  });

  it("throws what JSON.stringify throws for a value that is no JSON", () => {
    const circle: Record<string, unknown> = {};
    circle.self = circle;
    for (const value of [circle, 1n]) assert.throws(() => jsonOf(value), TypeError);
  });
});
