import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import {
  type KubernetesObject,
  labelIndexFunc,
  metaNamespaceIndex,
  metaNamespaceKey,
  shortTexts,
} from "@listwatch/cache";
import { pod } from "@listwatch/cache/testing";
import { newCache } from "../../src/store/cache.ts";
import { seededRandom } from "../../src/testing/seeded_random.ts";
import { finish } from "../../src/util/turns.ts";
import { TextCodec } from "../../src/store/text_codec.ts";
import { EncodedHolding } from "../../src/store/encoded_holding.ts";
import { TextObject } from "../../src/text/lazy_object.ts";
import type { ObjectText } from "../../src/text/object_text_reader.ts";
import { anyCharacter, propertyOptions } from "../property.ts";

const anyText = fc.string({ unit: anyCharacter, maxLength: 40 });
// Half of UTF-16 pairs, control characters, quotes and the like.
const anyUnits = fc.array(fc.nat(0xffff), { maxLength: 20 }).map((units) => String.fromCharCode(...units));
const anyString = fc.oneof(
  anyText,
  anyUnits,
  fc.constantFrom("__proto__", "", "toJSON", "\u2028", "\0\x1f\x7f"),
);
const anyNumber = fc.oneof(
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.constantFrom(1e21, -1e-7, Number.MAX_VALUE, Number.MIN_VALUE, 2 ** 53 + 2),
).map((value) => value === 0 ? 0 : value);
const { value: anyJson } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 5, withCrossShrink: true },
    anyString,
    anyNumber,
    fc.boolean(),
    fc.constant(null),
    fc.array(tie("value"), { maxLength: 6 }),
    fc.array(fc.tuple(anyString, tie("value")), { maxLength: 6 }).map(objectOf),
  ),
}));

/** As a parser makes it: `__proto__` is a field like any other. */
function objectOf(fields: [string, unknown][]): Record<string, unknown> {
  const object: Record<string, unknown> = {};
  for (const [name, value] of fields) {
    Object.defineProperty(object, name, { value, configurable: true, enumerable: true, writable: true });
  }
  return object;
}

const keyFunc = () => "key";

describe("TextCodec", () => {
  it("restores every JSON text, after whatever it was given before", () => {
    fc.assert(
      fc.property(
        fc.array(fc.array(anyJson, { maxLength: 30 }), { minLength: 1, maxLength: 8 }),
        (values) => {
          const codec = new TextCodec();
          const shortened = values.map((value) => codec.encode(JSON.stringify(value)));
          for (let i = 0; i < values.length; i++) {
            assert.equal(codec.decode(shortened[i]), JSON.stringify(values[i]));
            assert.match(shortened[i], /^[\0-\xff]*$/);
          }
        },
      ),
      propertyOptions(300),
    );
  });

  it("restores a text that has one character more than fits its bytes", () => {
    for (const length of [4_095, 4_096, 4_097, 4_098]) {
      const codec = new TextCodec();
      const text = JSON.stringify("a".repeat(length - 3) + "é").slice(0, -1);
      assert.equal(codec.decode(codec.encode(text)), text);
    }
  });

  it("indexes no labels where those are null", () => {
    assert.deepEqual(labelIndexFunc()({ metadata: { name: "a", labels: null } }), []);
  });

  it("restores escapes as they are written, and white space between tokens", () => {
    const codec = new TextCodec();
    const texts = [
      '{"a":"\\u00e9é\\\\x00e9 \\\\\\\\x00e9日本 \ud83d\ude00 \\ud83d \u2028\u007f"}',
      '{\n\t"é" : "\\n" ,\r\n "b":[ ]\n}\n',
      '{"a":"\\\\x0041"}',
      '{"a":"\ud800 alone"}',
    ];
    for (const text of [...texts, ...texts]) {
      const short = codec.encode(text);
      assert.match(short, /^[\0-\xff]*$/);
      assert.equal(codec.decode(short), text);
    }
  });

  it("restores texts of every length and every rhythm", () => {
    const part = fc.record({
      unit: fc.string({ unit: fc.constantFrom("a", "b", "{", '"', "~"), minLength: 1, maxLength: 9 }),
      times: fc.oneof(fc.nat(40), fc.nat(20_000)),
    });
    fc.assert(
      fc.property(fc.array(fc.array(part, { maxLength: 5 }), { maxLength: 6 }), (texts) => {
        const codec = new TextCodec();
        const written = texts.map((parts) => parts.map(({ unit, times }) => unit.repeat(times)).join(""));
        const shortened = written.map((text) => codec.encode(text));
        assert.deepEqual(shortened.map((short) => codec.decode(short)), written);
        for (let i = 0; i < written.length; i++) assert.ok(shortened[i].length <= written[i].length);
      }),
      propertyOptions(150),
    );
  });

  it("writes what is beyond ASCII as UTF-8, not as escapes, and no replacement runs for each character", () => {
    const random = seededRandom(3);
    const units = Array.from({ length: 100_000 }, () => 0x4e00 + Math.floor(random() * 20_000));
    const text = JSON.stringify({ text: String.fromCharCode(...units) + "\ufeff\u2028😀" });
    const codec = new TextCodec();
    const { replace } = String.prototype;
    let replacements = 0;
    String.prototype.replace = function (this: string, ...args: Parameters<typeof replace>) {
      replacements++;
      return replace.apply(this, args);
    } as typeof replace;
    try {
      const short = codec.encode(text);
      assert.ok(short.length <= 3 * text.length, `${short.length} of ${text.length}`);
      assert.equal(codec.decode(short), text);
      assert.equal(codec.decode(codec.encode(text.slice(0, 3_000))), text.slice(0, 3_000));
      assert.equal(codec.decode(codec.encode(text.slice(0, 3_000))), text.slice(0, 3_000));
      assert.ok(codec.encode(text.slice(0, 3_000)).length < 10, "it was learned");
    } finally {
      String.prototype.replace = replace;
    }
    assert.equal(replacements, 0);
  });

  it("makes the same short forms of the same texts in the same order", () => {
    const texts = Array.from(
      { length: 50 },
      (_, i) => JSON.stringify(pod(`web-${i}`, { labels: { i: `${i}` } })),
    );
    const [one, other] = [new TextCodec(), new TextCodec()];
    assert.deepEqual(texts.map((text) => one.encode(text)), texts.map((text) => other.encode(text)));
  });

  it("takes a fraction of the space once it has seen one like it", () => {
    const codec = new TextCodec();
    codec.encode(JSON.stringify(pod("web-1", { namespace: "shop", labels: { app: "web" } })));
    const text = JSON.stringify(pod("api-27", { namespace: "shop", labels: { app: "api" } }));
    const short = codec.encode(text);
    assert.equal(codec.decode(short), text);
    assert.ok(short.length < text.length / 3, `${short.length} of ${text.length}`);
  });

  it("stays exact when there is no more room for what is new", () => {
    const codec = new TextCodec();
    const texts = Array.from({ length: 40 }, (_, i) => {
      let state = i + 1;
      const units = Array.from({ length: 4_000 }, () => 97 + (state = (state * 48_271) % 0x7fffffff) % 26);
      return JSON.stringify([String.fromCharCode(...units)]);
    });
    const shortened = texts.map((text) => codec.encode(text));
    assert.ok(shortened[0].length < 10, "the first is a reference to what was learned");
    assert.ok(shortened[39].length > 2_000, "the last was not learned");
    assert.deepEqual(shortened.map((short) => codec.decode(short)), texts);
  });
});

describe("EncodedHolding, its index functions,", () => {
  interface Pod extends KubernetesObject {
    readonly node: string;
  }
  const pods = Array.from({ length: 300 }, (_, i): Pod => ({
    metadata: { namespace: "shop", name: `web-${i}`, labels: { app: i % 2 === 0 ? "web" : "api" } },
    node: `node-${i % 3}`,
  }));

  it("are dropped if addIndexers fails, and are not called from then on", () => {
    const indexer = newCache<Pod, never>(metaNamespaceKey, {}, { storage: shortTexts() });
    const { held, holding } = indexer;
    indexer.replace(pods, "1");
    let asked = 0;
    const throwing = (pod: Pod) => {
      asked++;
      if (pod.metadata!.name === "web-200") throw new Error("not this one");
      return [pod.node];
    };
    assert.throws(() => indexer.addIndexers({ throwing }), { code: "IndexFunc" });
    assert.throws(
      () =>
        finish(
          held.addIndexersSteps({ throwing: throwing as never }),
        ),
      {
        code: "IndexFunc",
      },
    );
    asked = 0;
    held.update(
      "shop/late",
      holding.holdEarly({ metadata: { namespace: "shop", name: "late" }, node: "node-1" }),
    );
    assert.equal(asked, 0);
    const wider = indexer.addIndexers({ byNode: (pod) => [pod.node] });
    held.update(
      "shop/later",
      holding.holdEarly({ metadata: { namespace: "shop", name: "later" }, node: "node-9" }),
    );
    assert.deepEqual(wider.indexKeys("byNode", "node-9"), ["shop/later"]);
    assert.equal(indexer.countByIndex("byNode" as never, "node-0"), 100);
  });

  it("decode an object once for several of them, and not at all for namespace and labels", () => {
    let decoded = 0;
    const indexer = newCache<Pod, never>(metaNamespaceKey, {}, {
      storage: shortTexts({ hotObjects: 0 }),
      freeze: (value) => (decoded++, value),
    });
    indexer.replace(pods, "1");
    decoded = 0;
    const labelled = indexer.addIndexers({ namespace: metaNamespaceIndex, labels: labelIndexFunc() });
    assert.equal(decoded, 0);
    assert.equal(labelled.countByIndex("labels", "app=web"), 150);
    assert.equal(labelled.countByIndex("namespace", "shop"), 300);
    const wider = indexer.addIndexers({
      byNode: (pod) => [pod.node],
      byName: (pod) => [pod.metadata!.name!],
    });
    assert.equal(decoded, 300);
    assert.equal(wider.countByIndex("byNode", "node-2"), 100);
    assert.equal(indexer.getIndexers()["labels" as never], labelled.getIndexers().labels);
  });
});

describe("EncodedHolding", () => {
  /** Encodes and decodes, with nothing hot. */
  function again(object: unknown): unknown {
    const holding = new EncodedHolding<unknown>(keyFunc, new TextCodec());
    const held = holding.hold(object);
    for (let i = 0; i < 200; i++) holding.hold({ i });
    return holding.open(held);
  }

  it("gives back an equal object for every JSON object", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(anyString, anyJson), { maxLength: 10 }).map(objectOf), (object) => {
        assert.deepEqual(again(object), object);
        assert.equal(JSON.stringify(again(object)), JSON.stringify(object));
      }),
      propertyOptions(200),
    );
  });

  it("encodes what is deeply nested, and keeps what is too deep, or holds itself, as it is", () => {
    let nested: unknown = 1;
    for (let i = 0; i < 400; i++) nested = i % 2 ? [nested] : { nested };
    assert.deepEqual(again({ nested }), { nested });
    assert.notEqual(again({ nested }), { nested });
    for (let i = 0; i < 200; i++) nested = [nested];
    const deep = { nested };
    assert.equal(again(deep), deep);
    const circle: { self?: unknown; other?: unknown } = {};
    circle.self = circle;
    circle.other = circle;
    assert.equal(again(circle), circle);
  });

  it("keeps what is no plain JSON value as it is", () => {
    const values: Record<string, unknown> = {
      "a string": "text",
      "a number": 1,
      "nothing": undefined,
      "null": null,
      "a function": () => {},
      "a class": new (class Pod {
        metadata = { name: "a" };
      })(),
      "an object without a prototype": Object.create(null),
      "a Date inside": { spec: { at: new Date(0) } },
      "a Map inside": { spec: [new Map()] },
      "a function inside": { toJSON: () => 1 },
      "a symbol inside": { spec: Symbol("s") },
      "a bigint inside": { spec: 1n },
      "NaN inside": { spec: NaN },
      "an infinity inside": { spec: -Infinity },
      "-0 inside": { spec: [-0] },
      "a hole inside": { spec: new Array(1) },
      "undefined in an array": { spec: [undefined] },
      "a uid that is no text": { metadata: { uid: { of: 1 } } },
      "a resourceVersion that is no text": { metadata: { resourceVersion: 7 } },
    };
    for (const [name, value] of Object.entries(values)) assert.equal(again(value), value, name);
  });

  it("leaves out properties that are undefined", () => {
    const object = { metadata: { name: "a", managedFields: undefined }, spec: undefined };
    assert.deepStrictEqual(again(object), { metadata: { name: "a" } });
  });

  it("keeps key, uid and resourceVersion at hand", () => {
    const holding = new EncodedHolding<KubernetesObject>(metaNamespaceKey, new TextCodec());
    const held = holding.hold({
      metadata: { namespace: "shop", name: "web", uid: "u1", resourceVersion: "7" },
    });
    assert.ok(held instanceof TextObject);
    assert.equal(holding.keyFunc(held), "shop/web");
    assert.equal(held.metadata?.uid, "u1");
    assert.equal(held.metadata?.resourceVersion, "7");
    const bare = new EncodedHolding<KubernetesObject>(keyFunc, new TextCodec()).hold({});
    assert.ok(bare instanceof TextObject);
    assert.equal(bare.metadata, undefined);
  });

  it("keeps namespace and labels at hand, once for objects that have the same", () => {
    const holding = new EncodedHolding<KubernetesObject>(metaNamespaceKey, new TextCodec());
    const encoded = (name: string, labels: Record<string, string> | undefined, namespace = "shop") => {
      const held = holding.hold({ metadata: { name, namespace, ...(labels && { labels }) } });
      assert.ok(held instanceof TextObject);
      return held;
    };
    const one = encoded("a", { app: "web", tier: "front" });
    assert.equal(encoded("b", { app: "web", tier: "front" }).labels, one.labels);
    const others: (Record<string, string> | undefined)[] = [
      undefined,
      { app: "web" },
      { app: "web", tier: "back" },
      { app: "web", tier: "front", a: "" },
    ];
    for (const labels of others) {
      const other = encoded("c", labels, "blog");
      assert.deepEqual([other.namespace, other.labels], ["blog", labels]);
    }
    assert.deepEqual([one.namespace, one.labels], ["shop", { app: "web", tier: "front" }]);
  });

  it("does not decode an old state that a handler receives and leaves unread, whatever it reads of the new", () => {
    const codec = new TextCodec();
    let decoded = 0;
    const form = {
      encode: (json: string) => codec.encode(json),
      decode: (text: string) => (decoded++, codec.decode(text)),
    };
    const holding = new EncodedHolding<KubernetesObject>(metaNamespaceKey, form, { hotObjects: 8 });
    const newState = (i: number) => {
      const text = `{"metadata":{"name":"pod-${i % 100}","resourceVersion":"${i}"},"spec":{"n":[${i}],"is":"${
        "long ".repeat(40)
      }"}}`;
      const read = holding.holdText.reader.read(text) as ObjectText;
      return holding.holdText.hold(read.text, read.head as KubernetesObject, read) as KubernetesObject;
    };
    const states = Array.from({ length: 100 }, (_, i) => newState(i));
    for (const state of states) JSON.stringify(holding.open(state)); // as a handler that reads what is added
    holding.listStored();
    for (let i = 100; i < 1_000; i++) {
      holding.open(states[i % 100]);
      const object = holding.open(states[i % 100] = newState(i));
      assert.equal(JSON.stringify([object, object.metadata]).includes(`[${i}]`), true);
    }
    assert.equal(decoded, 0);
  });

  it("has the key that it is given, where the key function says another or none", () => {
    const holding = new EncodedHolding<KubernetesObject>(metaNamespaceKey, new TextCodec());
    for (const object of [pod("web-1", { namespace: "shop" }), { metadata: { labels: { app: "web" } } }]) {
      const held = holding.hold(object, "given");
      assert.ok(held instanceof TextObject);
      assert.equal(held.key, "given");
    }
  });

  it("keeps an object without a key as it is, so that the key function throws", () => {
    const holding = new EncodedHolding<KubernetesObject>(metaNamespaceKey, new TextCodec());
    const keyless = { kind: "Pod" };
    assert.equal(holding.hold(keyless), keyless);
    assert.throws(() => holding.keyFunc(holding.hold(keyless)), /metadata/);
  });

  it("takes two texts for the same content only if no digit is lost by parsing them", () => {
    const holding = new EncodedHolding<KubernetesObject>(metaNamespaceKey, new TextCodec());
    const held = (json: string) => {
      const text = `{"metadata":{"name":"a"},${json}}`;
      return holding.holdText.hold(text, JSON.parse(text)) as KubernetesObject;
    };
    const cases: [one: string, other: string, isSame: boolean][] = [
      ['"n":9007199254740993', '"n":9007199254740993', true],
      ['"n":9007199254740993', '"n":9007199254740992', false],
      ['"n":9007199254740993.0', '"n":9007199254740993', false],
      ['"n":0.10000000000000001', '"n":0.1', false],
      ['"n":1e400', '"n":1e401', false],
      ['"n":-1e-400', '"n":0', false],
      ['"n":1.50', '"n":15e-1', true],
      ['"a":1,"b":2', '"b":2, "a":1', true],
      ['"a":"9007199254740993","b":"1e400"', '"b":"1e400","a":"9007199254740993"', true],
      ['"a":"\\u0041"', '"a":"A"', true],
      ['"a":"\\"9007199254740993","b":1', '"b":1,"a":"\\"9007199254740993"', true],
    ];
    for (const [one, other, isSame] of cases) {
      for (const isHot of [false, true]) {
        const [a, b] = [held(one), held(other)];
        if (isHot) holding.open(a);
        assert.equal(holding.isSameContent(a, b), isSame, `${one} and ${other}`);
        assert.equal(holding.isSameContent(b, a), isSame, `${other} and ${one}`);
      }
    }
  });

  it("opens nothing to compare texts that are the same", () => {
    let [opened, decoded] = [0, 0];
    const freeze = <V>(value: V): V => (opened++, value);
    const codec = new TextCodec();
    const form = {
      encode: (json: string) => codec.encode(json),
      decode: (text: string) => (decoded++, codec.decode(text)),
    };
    const holding = new EncodedHolding<KubernetesObject>(metaNamespaceKey, form, { freeze });
    const held = (note: string) => {
      const object = { metadata: { name: "a", annotations: { note } } };
      return holding.holdText.hold(JSON.stringify(object), object) as KubernetesObject;
    };
    const [one, again, two] = ["one", "one", "two"].map(held);
    holding.listStored();
    assert.equal(holding.isSameContent(one, again), true);
    assert.deepEqual([opened, decoded], [0, 0]);
    assert.equal(holding.isSameContent(one, two), false);
    assert.ok(opened > 0);
  });

  it("takes an object and a text for the same content only if parsing the text loses no digit", () => {
    const holding = new EncodedHolding<KubernetesObject>(metaNamespaceKey, new TextCodec());
    const cases: [json: string, isSame: boolean][] = [
      ['{"metadata":{"name":"a"},"n":1}', true],
      ['{"n":1.0,"metadata":{"name":"a"}}', true],
      ['{"n":9007199254740993,"metadata":{"name":"a"}}', false],
    ];
    for (const [json, isSame] of cases) {
      const object = JSON.parse(json);
      const held = holding.holdText.hold(json, object) as KubernetesObject;
      assert.equal(holding.isSameContent(object, held), isSame, json);
      assert.equal(holding.isSameContent(held, object), isSame, json);
    }
  });

  it("returns the same object twice, as long as it is hot", () => {
    const holding = new EncodedHolding<KubernetesObject>(metaNamespaceKey, new TextCodec());
    const object = pod("web");
    const held = holding.hold(object);
    assert.equal(holding.open(held), object, "what was written is hot");
    for (let i = 0; i < 127; i++) {
      holding.hold(pod(`p-${i}`));
      if (i === 64) holding.open(held); // used in between
    }
    assert.equal(holding.open(held), object);
    for (let i = 0; i < 128; i++) holding.hold(pod(`q-${i}`));
    const decoded = holding.peek(held);
    assert.notEqual(decoded, object, "it went cold");
    assert.deepEqual(decoded, object);
    assert.notEqual(holding.peek(held), decoded, "a peek does not warm it");
    const warm = holding.open(held);
    assert.equal(holding.open(held), warm);
    assert.equal(holding.peek(held), warm);
  });
});
