import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type KubernetesObject, metaNamespaceKey } from "@listwatch/cache";
import { Projection } from "../../src/text/field_tree.ts";
import { TextHolding } from "../../src/store/text_holding.ts";
import { LazyOrigin, LazyText } from "../../src/text/lazy_object.ts";
import { ObjectText } from "../../src/text/object_text_reader.ts";
import { propertyOptions } from "../property.ts";
import { JsonWriter } from "./json_writer.ts";

type Loose = Record<string, unknown>;

function newHolding(options: { freeze?: <V>(value: V) => V } = {}): TextHolding<Loose> {
  return new TextHolding<Loose>(metaNamespaceKey, undefined, options);
}

/** What a store holds of a text that a watch has brought. */
function hold(holding: TextHolding<Loose>, text: string): LazyText {
  const read = holding.holdText.reader.read(text);
  assert.ok(read instanceof ObjectText, text);
  const held = holding.holdText.hold(read.text, read.head as KubernetesObject, read);
  assert.ok(held instanceof LazyText, text);
  return held;
}

/** How often something is parsed while `act` runs, as the texts that were parsed. */
function parsedBy(act: () => void): string[] {
  const { parse } = JSON;
  const parsed: string[] = [];
  JSON.parse = (text: string, ...rest) => {
    parsed.push(text);
    return parse(text, ...rest);
  };
  try {
    act();
  } finally {
    JSON.parse = parse;
  }
  return parsed;
}

const POD = {
  kind: "Pod",
  apiVersion: "v1",
  metadata: {
    name: "web-1",
    namespace: "shop",
    uid: "u-1",
    resourceVersion: "7",
    labels: { app: "web" },
    annotations: { note: "ü 😀 " + "x".repeat(300) },
  },
  spec: { nodeName: "node-1", containers: [{ name: "c", image: "i:1" }] },
  status: { phase: "Running", note: "x".repeat(300) },
};
const TEXT = JSON.stringify(POD);

describe("LazyText", () => {
  it("is an object like any other", () => {
    const object = hold(newHolding(), TEXT).open();
    assert.deepStrictEqual(Object.keys(object), Object.keys(POD));
    assert.deepStrictEqual({ ...object }, POD);
    assert.deepStrictEqual(structuredClone(object), POD);
    assert.deepStrictEqual(object, POD);
    assert.equal(JSON.stringify(object), TEXT);
    assert.equal(Object.getPrototypeOf(object), Object.prototype);
    assert.equal(Object.isFrozen(object), false);
  });

  it("parses the members that are read, each once, and is the same object at each read", () => {
    const holding = newHolding();
    const held = hold(holding, TEXT);
    const parsed = parsedBy(() => {
      const pod = holding.open(held as never) as typeof POD;
      assert.equal(pod, holding.open(held as never));
      assert.equal(pod.kind, "Pod");
      assert.equal(`${pod.metadata.namespace}/${pod.metadata.name}`, "shop/web-1");
      assert.equal(pod.spec.nodeName, "node-1");
      assert.equal(pod.spec, pod.spec);
      assert.equal(pod.metadata, pod.metadata);
      assert.equal(Object.getOwnPropertyDescriptor(pod, "spec")?.value, pod.spec);
    });
    assert.deepEqual(parsed, [JSON.stringify(POD.spec)]);
  });

  it("keeps what was read aside a short while, and not longer", () => {
    const holding = newHolding();
    const byNode = holding.heldIndex((pod) => [(pod as typeof POD).spec.nodeName]);
    const byImage = holding.heldIndex((pod) => [(pod as typeof POD).spec.containers[0].image]);
    const held = hold(holding, TEXT);
    const spec = JSON.stringify(POD.spec);
    assert.deepEqual(
      parsedBy(() => {
        assert.deepEqual(byNode(held as never), ["node-1"]);
        assert.deepEqual(byImage(held as never), ["i:1"]);
        assert.equal((holding.open(held as never) as typeof POD).spec.nodeName, "node-1");
      }),
      [spec],
    );
    const other = hold(holding, TEXT);
    assert.deepEqual(byNode(other as never), ["node-1"]);
    for (let i = 0; i < 200; i++) byNode(hold(holding, TEXT) as never);
    assert.deepEqual(
      parsedBy(() => assert.equal((holding.open(other as never) as typeof POD).spec.nodeName, "node-1")),
      [spec],
    );
  });

  it("has no text any more once most of it was read, unless the text is served", () => {
    for (const keeps of [false, true]) {
      const holding = newHolding();
      if (keeps) holding.keepTexts();
      const held = hold(holding, TEXT);
      const pod = holding.open(held as never) as typeof POD;
      assert.equal(pod.spec.nodeName, "node-1");
      assert.equal(holding.json(held as never), TEXT);
      assert.equal(pod.status.phase, "Running");
      assert.equal(pod.metadata.annotations.note.length, POD.metadata.annotations.note.length);
      assert.equal(holding.json(held as never), keeps ? TEXT : undefined);
      assert.deepStrictEqual(pod, POD);
      assert.equal(holding.isSameContent(held as never, hold(holding, TEXT) as never), true);
    }
  });

  it("serves its text whatever a user does to the object", () => {
    const holding = newHolding();
    holding.keepTexts();
    const held = hold(holding, TEXT);
    const pod = holding.open(held as never) as typeof POD;
    pod.spec.nodeName = "other";
    pod.metadata.labels = { app: "other" };
    assert.equal(holding.json(held as never), TEXT);
    assert.deepStrictEqual(holding.peek(held as never), POD);
    assert.equal((holding.open(held as never) as typeof POD).spec.nodeName, "other");
  });

  it("is parsed at once where users read most of what they receive", () => {
    const holding = newHolding();
    for (let i = 0; i < 100; i++) JSON.stringify(holding.open(hold(holding, TEXT) as never));
    const parsed = parsedBy(() => {
      for (let i = 0; i < 4; i++) JSON.stringify(holding.open(hold(holding, TEXT) as never));
    });
    assert.ok(parsed.filter((text) => text === TEXT).length >= 3, parsed.join("\n"));
    // Lazily again, a while after the last one who did.
    for (let i = 0; i < 1_000; i++) holding.open(hold(holding, TEXT) as never);
    assert.deepEqual(parsedBy(() => holding.open(hold(holding, TEXT) as never)), []);
  });

  it("has no more than is kept of its text, and the type of its list", () => {
    const projection = new Projection({
      drop: ["metadata.managedFields", "spec.containers[].image", "more"],
    });
    const more = { first: "ü", more: 1, ...POD, metadata: { managedFields: [{ a: 1 }], ...POD.metadata } };
    const { kind: _kind, apiVersion: _apiVersion, ...item } = more;
    const holding = newHolding();
    const { reader } = holding.holdText;
    const source = { typeOf: () => ({ kind: "Pod", apiVersion: "v1" }) };
    const event = reader.events(projection).readEvent(JSON.stringify({ type: "ADDED", object: more }));
    const expected = { first: "ü", ...POD, spec: { nodeName: "node-1", containers: [{ name: "c" }] } };
    for (
      const [read, like] of [
        [(event as { object: ObjectText }).object, expected],
        [
          reader.items(source, projection).readItem(JSON.stringify(item)) as ObjectText,
          Object.assign({ kind: "Pod", apiVersion: "v1" }, expected),
        ],
      ] as const
    ) {
      const held = holding.holdText.hold(read.text, read.head as KubernetesObject, read);
      assert.ok(held instanceof LazyText && held.shape);
      assert.deepStrictEqual(held.open(), like);
      assert.equal(JSON.stringify(held.open()), JSON.stringify(like));
    }
  });

  it("shares nothing with others that users can change", () => {
    const holding = newHolding();
    const [one, other] = [hold(holding, TEXT), hold(holding, TEXT)];
    (holding.open(one as never) as typeof POD).metadata.labels.app = "changed";
    assert.equal((holding.open(other as never) as typeof POD).metadata.labels.app, "web");
    assert.deepEqual(one.labels, { app: "web" });
  });

  it("is parsed lazily however much the library itself reads of others", () => {
    const holding = newHolding();
    for (let i = 0; i < 100; i++) JSON.stringify(holding.peek(hold(holding, TEXT) as never));
    assert.deepEqual(parsedBy(() => holding.open(hold(holding, TEXT) as never)), []);
  });

  it("walks a text that came without its members once, however often the library reads it", () => {
    const { reader } = newHolding().holdText;
    let walked = 0;
    const origin = new LazyOrigin({
      freeze: undefined,
      keysHaveNames: true,
      membersOf: (text) => (walked++, (reader.read(text) as ObjectText).members),
      decode: undefined,
    });
    const { uid, resourceVersion, namespace, labels } = POD.metadata;
    const live = { kind: "Pod", apiVersion: "v1", uid, resourceVersion, namespace, labels };
    const restored = new LazyText("shop/web-1", live, TEXT, origin);
    for (let i = 0; i < 3; i++) assert.deepStrictEqual(restored.peek(), POD);
    assert.deepStrictEqual(restored.open(), POD);
    assert.equal(walked, 1);
  });

  it("can be read by an index function that has kept it", () => {
    const holding = newHolding();
    const kept: (typeof POD)[] = [];
    const byNode = holding.heldIndex((pod) => {
      kept.push(pod as typeof POD);
      return [];
    });
    const held = hold(holding, TEXT);
    byNode(held as never);
    for (let i = 0; i < 200; i++) {
      const other = hold(holding, TEXT);
      byNode(other as never);
      JSON.stringify(holding.open(other as never));
    }
    assert.equal(JSON.stringify(holding.open(held as never)), TEXT);
    assert.equal(JSON.stringify(kept[0]), TEXT);
  });

  it("is frozen with everything in it, as it is read", () => {
    const freeze = <V>(value: V): V => {
      if (typeof value === "object" && value !== null) Object.values(Object.freeze(value)).forEach(freeze);
      return value;
    };
    const holding = newHolding({ freeze });
    const pod = holding.open(hold(holding, TEXT) as never) as typeof POD;
    assert.throws(() => pod.spec = { nodeName: "", containers: [] }, TypeError);
    assert.throws(() => pod.spec.nodeName = "", TypeError);
    assert.throws(() => pod.metadata.labels.app = "", TypeError);
    assert.throws(() => pod.metadata.name = "", TypeError);
    assert.equal(pod.spec, pod.spec);
    assert.deepStrictEqual(pod, POD);
  });

  it("says what to do with a copied accessor", () => {
    const pod = hold(newHolding(), TEXT).open();
    const copy = Object.defineProperties({}, Object.getOwnPropertyDescriptors(pod)) as Loose;
    assert.throws(() => copy["spec"], /copied from an object of a cache .* structuredClone/);
  });

  it("behaves as a parsed one, whatever is done to both", () => {
    const { numRuns, seed: first = 1 } = propertyOptions(RUNS);
    let lazy = 0;
    for (let seed = first; seed < first + numRuns; seed++) {
      const writer = new JsonWriter(seed);
      const text = textOf(writer);
      const holding = newHolding();
      if (writer.below(4) === 0) holding.keepTexts();
      const held = hold(holding, text);
      if (held.shape) lazy++;
      const pair: Pair = [holding.open(held as never), JSON.parse(text)];
      const done: string[] = [];
      try {
        for (let i = writer.below(5); i >= 0; i--) act(pair, held, writer, done);
        assertSame(pair, writer);
      } catch (error) {
        throw new Error(`seed ${seed}: ${done.join(", ")} of ${text}`, { cause: error });
      }
    }
    assert.ok(lazy > numRuns / 3, `${lazy} of ${numRuns} were lazy`);
  });
});

/** How many objects are compared, on each runtime. */
const RUNS = 20_000;

/** A lazy object, and the same parsed. */
type Pair = readonly [lazy: Loose, plain: Loose];

/** An object with metadata that a cache can hold, mostly as API servers write it. */
function textOf(writer: JsonWriter): string {
  const member = (): string => `${writer.key(writer.name())}:${writer.value(2)}`;
  const metadata = ['"name":"web-1"', '"namespace":"shop"', '"uid":"u-1"', '"resourceVersion":"7"']
    .filter((_, i) => i === 0 || writer.below(4) > 0);
  for (let i = writer.below(3); i > 0; i--) metadata.splice(writer.below(metadata.length + 1), 0, member());
  if (writer.below(2) === 0) metadata.push(`"annotations":{${writer.below(2) === 0 ? '"a":"𝒳"' : ""}}`);
  const members = [`"metadata":{${metadata}}`, '"kind":"Pod"', '"apiVersion":"v1"'];
  for (let i = writer.below(4); i > 0; i--) members.splice(writer.below(members.length + 1), 0, member());
  const text = `{${members}}`;
  // Where a name comes twice its last value counts: no such metadata can be held.
  const { metadata: parsed, kind, apiVersion } = JSON.parse(text);
  const isHeld = typeof parsed?.name === "string" && parsed.name !== "" &&
    ["namespace", "uid", "resourceVersion"].every((name) =>
      /^(string|undefined)$/.test(typeof parsed[name])
    ) &&
    typeof kind === "string" && typeof apiVersion === "string";
  return isHeld ? text : textOf(writer);
}

/** Does the same to both, and compares what comes of it. */
function act([lazy, plain]: Pair, held: LazyText, writer: JsonWriter, done: string[]): void {
  const name = writer.of(Object.keys(plain).concat("absent"));
  const isInMetadata = writer.below(3) === 0 && isObject(lazy["metadata"]) && isObject(plain["metadata"]);
  const [a, b] = (isInMetadata ? [lazy["metadata"], plain["metadata"]] : [lazy, plain]) as Pair;
  const key = isInMetadata ? writer.of(Object.keys(b).concat("absent")) : name;
  const same = (what: string, make: (object: Loose) => unknown) => {
    done.push(`${what} ${isInMetadata ? "metadata." : ""}${key}`);
    const outcome = (object: Loose) => {
      try {
        return { value: JSON.stringify(make(object)) };
      } catch (error) {
        return { error: (error as Error).name };
      }
    };
    assert.deepEqual(outcome(a), outcome(b));
  };
  switch (writer.below(22)) {
    case 0:
      return same("keys", Object.keys);
    case 1:
      return same("entries", Object.entries);
    case 2:
      return same("values", Object.values);
    case 3:
      return same("spread", (object) => ({ ...object, more: 1 }));
    case 4:
      return same("assign", (object) => Object.assign({ first: 1 }, object));
    case 5:
      return same("stringify", (object) => JSON.stringify(object));
    case 6:
      return same("clone", (object) => structuredClone(object));
    case 7:
      return same("set", (object) => {
        object[key] = { set: true };
        return object[key];
      });
    case 8:
      return same("delete", (object) => [delete object[key], key in object]);
    case 9:
      return same("in", (object) => [key in object, Object.hasOwn(object, key)]);
    case 10:
      return same("for in", (object) => {
        const names = [];
        for (const each in object) if (Object.hasOwn(object, each)) names.push(each);
        return names;
      });
    case 11:
      return same("freeze", (object) => [Object.isFrozen(Object.freeze(object)), object[key]]);
    case 12:
      return same("own keys", (object) => [Reflect.ownKeys(object), Object.getOwnPropertyNames(object)]);
    case 13:
      return same("read", (object) => {
        const value = object[key];
        return [value, Object.is(object[key], value)];
      });
    case 14:
      return same("inherit", (object) => {
        const heir = Object.create(object);
        const before = heir[key];
        heir[key] = "own";
        return [before, Object.keys(heir), object[key]];
      });
    case 15:
      return same("seal", (object) => [Object.isSealed(Object.seal(object)), object[key]]);
    case 16:
      return same(
        "prevent",
        (object) => [Object.isExtensible(Object.preventExtensions(object)), object[key]],
      );
    case 17:
      return same("define", (object) => {
        Object.defineProperty(object, key, {
          value: "defined",
          writable: true,
          enumerable: true,
          configurable: true,
        });
        return object[key];
      });
    case 18:
      return same("enumerable", (object) => Object.prototype.propertyIsEnumerable.call(object, key));
    case 19:
      return same("change inside", (object) => {
        const value = object[key];
        if (isObject(value)) (value as Loose)["inside"] = 1;
        return object[key];
      });
    case 20:
      done.push("aside");
      held.read((object) => JSON.stringify((object as Loose)[key]));
      return;
    default:
      done.push("forget");
      held.forgetAside();
  }
}

function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null;
}

function assertSame([lazy, plain]: Pair, writer: JsonWriter): void {
  if (writer.below(10) === 0) assert.deepStrictEqual(lazy, plain);
  assert.equal(JSON.stringify(lazy), JSON.stringify(plain));
  assert.deepEqual(Object.keys(lazy), Object.keys(plain));
}
