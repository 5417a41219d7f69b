import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { metaNamespaceKey } from "@listwatch/cache";
import { TextHolding } from "../../src/store/text_holding.ts";
import {
  defined,
  isPlainJson,
  isRecord,
  isSameJson,
  jsonFault,
  jsonOf,
  memorySize,
} from "../../src/util/json.ts";

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
    [nested(501), nested(501)],
    [Object.assign(Object.create(null), { a: 1 }), { a: 1 }],
  ];
  const different: [a: unknown, b: unknown][] = [
    [1, 2],
    [1, "1"],
    [null, {}],
    [undefined, null],
    [0, false],
    [[], {}],
    [{}, []],
    [[], { length: 0 }],
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
    [nested(502), nested(502)],
    [new Date(1), {}],
    [{ toString: Object.prototype.toString }, { a: 1 }],
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

describe("isPlainJson", () => {
  it("is true for what JSON.parse of its text is the same as", () => {
    const plain = [null, true, "", 0, -1.5, [], {}, [[{ a: [1, null] }]], { a: undefined }, nested(501)];
    for (const value of plain) assert.ok(isPlainJson(value), JSON.stringify(value));
    const circle: unknown[] = [];
    circle.push(circle);
    class Point {
      x = 1;
    }
    assert.ok(!isPlainJson(nested(502)));
    const others = [NaN, Infinity, -0, 1n, undefined, () => {}, new Date(1), new Map(), new Point(), circle];
    for (const value of others) {
      assert.ok(!isPlainJson(value), String(value));
      assert.ok(!isPlainJson([value]));
      if (value !== undefined) assert.ok(!isPlainJson({ value }));
    }
    assert.ok(!isPlainJson(Object.create(null)));
  });
});

describe("isRecord", () => {
  it("is true for objects that are no arrays", () => {
    assert.deepEqual([{}, [], null, "a", new Date(1)].map(isRecord), [true, false, false, false, true]);
    assert.deepEqual(Object.keys(defined({ a: 1, b: undefined, c: null })), ["a", "c"]);
  });
});

describe("jsonFault", () => {
  it("says where a text is broken, or that it ends, in no words of the text", () => {
    assert.equal(
      jsonFault(new SyntaxError("Unexpected token 's', at position 12")),
      "it is broken at position 12",
    );
    for (
      const text of [
        "Unexpected end of JSON input",
        "JSON Parse error: Unexpected EOF",
        "Unterminated string",
      ]
    ) {
      assert.equal(jsonFault(new SyntaxError(text)), "it ends too early");
    }
    assert.equal(jsonFault(new SyntaxError("secret")), "it cannot be parsed");
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
    assert.equal(memorySize([new Uint8Array(1_000)]), 1_032);
    assert.deepEqual(["abc", null, 5, [], [1, [2]], { a: 1, b: null }].map(memorySize), [
      19,
      16,
      16,
      16,
      64,
      48,
    ]);
  });
});

describe("jsonOf", () => {
  it("writes a value of any depth as JSON.stringify writes one of few levels", () => {
    const inner = { a: [1, "\n\u2028\ud800", null, true, {}, []], 'b"': undefined, 'c"\n': { d: -0, e: "" } };
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
