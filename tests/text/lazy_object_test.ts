import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { inspect } from "node:util";
import { type KubernetesObject, metaNamespaceKey } from "@listwatch/cache";
import { Projection } from "../../src/text/field_tree.ts";
import { TextHolding } from "../../src/store/text_holding.ts";
import { LineCutter } from "../../src/text/line_cutter.ts";
import { LazyOrigin, LazyText } from "../../src/text/lazy_object.ts";
import { ObjectText } from "../../src/text/object_text_reader.ts";
import { propertyOptions } from "../property.ts";
import { JsonWriter } from "./json_writer.ts";
import { act, assertSame, type Loose, type Pair, textOf } from "./lazy_operations.ts";

function newHolding(options: { freeze?: <V>(value: V) => V } = {}): TextHolding<Loose> {
  return new TextHolding<Loose>(metaNamespaceKey, options);
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

  it("has the accessors of objects with other members, as V8 makes a dictionary where they differ", () => {
    const holding = newHolding();
    const gettersOf = (metadata: object) => {
      const object = hold(holding, JSON.stringify({ ...POD, metadata })).open() as Loose;
      const getters = new Map<string, unknown>();
      for (const owner of [object, object.metadata]) {
        for (const [name, { get }] of Object.entries(Object.getOwnPropertyDescriptors(owner as object))) {
          if (get !== undefined) getters.set(name, get);
        }
      }
      return getters;
    };
    const { name, ...rest } = POD.metadata;
    const getters = gettersOf({ name, ...rest });
    const others = gettersOf({ name, generateName: "web-", ...rest });
    assert.deepEqual([...getters.keys()], ["spec", "status", "labels", "annotations"]);
    assert.equal(others.size, 5);
    for (const [name, get] of getters) assert.equal(others.get(name), get, name);
  });

  it("is shown as any other, by itself and within others", () => {
    for (const show of [inspect, Deno.inspect] as ((value: unknown) => string)[]) {
      const object = hold(newHolding(), TEXT).open() as typeof POD;
      assert.equal(show(object.metadata), show(POD.metadata));
      assert.equal(show(object), show(POD));
      const within = { pods: [hold(newHolding(), TEXT).open()] };
      assert.equal(show(within), show({ pods: [POD] }));
      assert.equal(show(Object.freeze(hold(newHolding(), TEXT).open())), show(POD));
    }
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

  it("keeps nothing of what a reader aside reads after it has read another object aside", () => {
    const holding = newHolding();
    const [outer, inner] = [hold(holding, TEXT), hold(holding, TEXT)];
    outer.read((pod) => {
      inner.read((other) => (other as typeof POD).spec);
      assert.equal((pod as typeof POD).spec.nodeName, "node-1");
    });
    for (let i = 0; i < 200; i++) hold(holding, TEXT).read((pod) => (pod as typeof POD).spec);
    assert.deepEqual(
      parsedBy(() => assert.equal((outer.open() as typeof POD).spec.nodeName, "node-1")),
      [JSON.stringify(POD.spec)],
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

  it("keeps its text where a user has put other metadata into the object, however much of it is read", () => {
    const text = hold(newHolding(), TEXT);
    const pod = text.open() as Loose;
    const { annotations } = pod["metadata"] as Loose;
    assert.deepEqual(annotations, POD.metadata.annotations);
    pod["metadata"] = { name: "another" };
    JSON.stringify(pod);
    assert.equal(text.json, TEXT);
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

  it("is parsed at once also where an index function has read it, and may have kept what it received", () => {
    const holding = newHolding();
    const all = Array.from({ length: 3 }, () => {
      const held = hold(holding, TEXT);
      const index = (pod: object) => [pod, (pod as typeof POD).spec];
      return { held, kept: held.read(index)[0] as typeof POD };
    });
    for (let i = 0; i < 200; i++) hold(holding, TEXT).read((pod) => (pod as typeof POD).spec);
    for (let i = 0; i < 100; i++) JSON.stringify(holding.open(hold(holding, TEXT) as never));
    const parsed = parsedBy(() => {
      for (const { held, kept } of all) {
        const pod = holding.open(held as never) as typeof POD;
        assert.equal(kept.spec, pod.spec);
        assert.equal(kept.metadata.annotations, pod.metadata.annotations);
        assert.deepStrictEqual(kept, POD);
      }
    });
    assert.ok(parsed.filter((text) => text === TEXT).length >= 2, "one of them is read lazily");
  });

  it("comes as text again once texts are served, though users have read most of what they received", () => {
    const holding = newHolding();
    const events = holding.holdText.reader.events();
    const frame = new TextEncoder().encode(`{"type":"MODIFIED","object":${TEXT}}\n`);
    const come = () => Array.from({ length: 20 }, () => typeof new LineCutter(1e6, events).feed(frame));
    for (let i = 0; i < 100; i++) JSON.stringify(holding.open(hold(holding, TEXT) as never));
    assert.ok(come().includes("string"), "none is left to the parser");
    holding.keepTexts();
    assert.deepEqual(new Set(come()), new Set(["object"]));
    for (let i = 0; i < 100; i++) JSON.stringify(holding.open(hold(holding, TEXT) as never));
    assert.deepEqual(new Set(come()), new Set(["object"]));
  });

  it("has no more than is kept of its text, and the type of its list", () => {
    const projection = new Projection({
      drop: ["metadata.managedFields", "spec.containers[].image", "more"],
    });
    const more = { first: "ü", more: 1, ...POD, metadata: { managedFields: [{ a: 1 }], ...POD.metadata } };
    const { kind: _kind, apiVersion: _apiVersion, ...item } = more;
    const holding = newHolding();
    const { reader } = holding.holdText;
    const typeOf = () => ({ kind: "Pod", apiVersion: "v1" });
    const event = reader.events(projection).readEvent(JSON.stringify({ type: "ADDED", object: more }));
    const expected = { first: "ü", ...POD, spec: { nodeName: "node-1", containers: [{ name: "c" }] } };
    for (
      const [read, like] of [
        [(event as { object: ObjectText }).object, expected],
        [
          reader.items(typeOf, projection).readItem(JSON.stringify(item)) as ObjectText,
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

  it("has labels that objects with the same share, and its user does not", () => {
    const holding = newHolding();
    const [one, other] = [hold(holding, TEXT), hold(holding, TEXT)];
    const opened = holding.open(one as never) as typeof POD;
    assert.deepEqual(one.labels, { app: "web" });
    assert.equal(one.labels, other.labels);
    assert.notEqual(one.labels, opened.metadata.labels);
    const { labels: _, ...metadata } = POD.metadata;
    assert.equal(hold(holding, JSON.stringify({ ...POD, metadata })).labels, undefined);
  });

  it("shares labels with objects that came lately, however long the labels of others are", () => {
    const holding = newHolding();
    const labelsOf = (app: string) =>
      hold(holding, JSON.stringify({ ...POD, metadata: { ...POD.metadata, labels: { app } } })).labels;
    const [first, long] = [labelsOf("first"), labelsOf("x".repeat(1_000_000))];
    assert.equal(labelsOf("first"), first);
    assert.notEqual(labelsOf("x".repeat(1_000_000)), long);
    for (let i = 0; i < 1_100; i++) labelsOf(`${"x".repeat(1_000)}${i}`);
    const again = labelsOf("first");
    assert.deepEqual(again, first);
    assert.notEqual(again, first);
  });

  it("has a namespace only where its text has one, parsed as it is opened", () => {
    const { namespace: _, ...metadata } = POD.metadata;
    for (
      const object of [POD, { ...POD, metadata }, { ...POD, metadata: { name: "web-1", namespace: "" } }]
    ) {
      const holding = newHolding();
      for (let i = 0; i < 100; i++) JSON.stringify(holding.open(hold(holding, TEXT) as never));
      assert.ok(holding.origin.readWhole);
      assert.deepStrictEqual(holding.open(hold(holding, JSON.stringify(object)) as never), object);
    }
  });

  it("has its labels once its text was dropped", () => {
    const holding = newHolding();
    const held = hold(holding, TEXT);
    JSON.stringify(holding.open(held as never));
    assert.equal(held.text, "");
    assert.deepEqual(held.labels, { app: "web" });
  });

  it("has its labels where it is parsed as it is opened, whatever its user makes of them", () => {
    for (const keepsTexts of [true, false]) {
      const holding = newHolding();
      for (let i = 0; i < 100; i++) JSON.stringify(holding.open(hold(holding, TEXT) as never));
      if (keepsTexts) holding.keepTexts();
      const held = hold(holding, TEXT);
      const opened = holding.open(held as never) as typeof POD;
      assert.deepEqual(held.labels, { app: "web" });
      opened.metadata.labels.app = "changed";
      assert.deepEqual(held.labels, { app: keepsTexts ? "web" : "changed" });
    }
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

  it("can be read by a reader aside that has kept it, after its text was dropped", () => {
    const holding = newHolding();
    const held = hold(holding, TEXT);
    let kept: typeof POD | undefined;
    held.read((object) => void (kept = object as typeof POD));
    held.forgetAside();
    JSON.stringify(holding.open(held as never));
    assert.equal(held.json, undefined);
    assert.equal(kept!.spec.nodeName, "node-1");
    assert.equal(kept!.metadata.annotations.note, POD.metadata.annotations.note);
    assert.equal(JSON.stringify(kept), TEXT);
  });

  it("is frozen with everything in it, as it is read", () => {
    const freeze = <V>(value: V): V => {
      if (typeof value === "object" && value !== null) Object.values(Object.freeze(value)).forEach(freeze);
      return value;
    };
    const holding = newHolding({ freeze });
    const pod = holding.open(hold(holding, TEXT) as never) as typeof POD;
    assert.throws(() => pod.spec = { nodeName: "", containers: [] }, {
      name: "TypeError",
      message: "Cannot write spec: it is shared and frozen; copy it first: structuredClone",
    });
    assert.deepStrictEqual(structuredClone(pod), POD);
    assert.throws(() => pod.spec.nodeName = "", TypeError);
    assert.throws(() => pod.metadata.labels.app = "", TypeError);
    assert.throws(() => pod.metadata.name = "", TypeError);
    assert.equal(pod.spec, pod.spec);
    assert.deepStrictEqual(pod, POD);
  });

  it("is read and written through a Proxy that wraps all it reads, as of Vue and Svelte", () => {
    const reactive = (object: object): Loose =>
      new Proxy(object, {
        get(target, key, receiver) {
          const value = Reflect.get(target, key, receiver);
          return typeof value === "object" && value !== null ? reactive(value) : value;
        },
      }) as Loose;
    const pod = hold(newHolding(), TEXT).open() as typeof POD;
    const proxy = reactive(pod) as typeof POD;
    assert.equal(proxy.metadata.annotations.note, POD.metadata.annotations.note);
    assert.equal(proxy.spec.nodeName, POD.spec.nodeName);
    proxy.status = { phase: "Failed" } as typeof POD.status;
    assert.deepStrictEqual(pod, { ...POD, status: { phase: "Failed" } });
  });

  it("gives its values to a copy of its property descriptors", () => {
    const pod = hold(newHolding(), TEXT).open();
    const copy = Object.defineProperties({}, Object.getOwnPropertyDescriptors(pod)) as Loose;
    assert.deepEqual(copy["spec"], POD.spec);
    copy["spec"] = 1;
    assert.deepStrictEqual(pod, POD);
  });

  it("is read where each of its properties was made an accessor, symbols too, as by MobX", () => {
    const pod = hold(newHolding(), TEXT).open();
    const isWrapped = (value: unknown) =>
      typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;
    const wrapped = (object: object): Loose => {
      const result = {};
      for (
        const [key, { get, value, enumerable }] of Reflect.ownKeys(Object.getOwnPropertyDescriptors(object))
          .map((key) => [key, Object.getOwnPropertyDescriptor(object, key)!] as const)
      ) {
        const inside = isWrapped(value) ? wrapped(value) : value;
        Object.defineProperty(result, key, { get: get ?? (() => inside), enumerable });
      }
      return result;
    };
    assert.equal(JSON.stringify(wrapped(pod)), TEXT);
  });

  it("can be frozen with all that its keys lead to, symbols too", () => {
    const deepFreeze = <V extends object>(object: V): V => {
      for (const key of Reflect.ownKeys(object)) {
        const value: unknown = Reflect.get(object, key);
        if (typeof value === "object" && value !== null || typeof value === "function") deepFreeze(value);
      }
      return Object.freeze(object);
    };
    assert.deepStrictEqual(deepFreeze(hold(newHolding(), TEXT).open()), POD);
  });

  it("gives its values to a copy of all properties, in depth, of what says that it is a plain object", () => {
    const copyOf = (value: unknown): unknown => {
      if (Object.prototype.toString.call(value) !== "[object Object]") return value;
      const copy: unknown = Object.create(Object.getPrototypeOf(value));
      for (const key of Reflect.ownKeys(value as object)) {
        const property = Object.getOwnPropertyDescriptor(value, key)!;
        if (property.value !== undefined) property.value = copyOf(property.value);
        Object.defineProperty(copy, key, property);
      }
      return copy;
    };
    assert.equal(JSON.stringify(copyOf(hold(newHolding(), TEXT).open())), TEXT);
  });

  it("is shown where a copy has all of its properties, enumerable symbols too, as of MobX and Immutable", () => {
    const pod = hold(newHolding(), TEXT).open() as Loose;
    const copy = Object.fromEntries(Reflect.ownKeys(pod).map((key) => [key, pod[key as string]]));
    assert.equal(inspect(copy), inspect(POD));
  });

  it("gives what inherits it properties of its own, and stays as it is", () => {
    const pod = hold(newHolding(), TEXT).open();
    const child = Object.create(pod) as Loose;
    assert.deepEqual(child["spec"], POD.spec);
    child["spec"] = 1;
    assert.deepEqual(Object.getOwnPropertyDescriptor(child, "spec"), {
      value: 1,
      writable: true,
      enumerable: true,
      configurable: true,
    });
    assert.deepStrictEqual(pod, POD);
  });

  it("keeps what its user has read of it where it is frozen, whatever is read aside of others", () => {
    const holding = newHolding({ freeze: Object.freeze as <V>(value: V) => V });
    const text = hold(holding, TEXT);
    text.read((object) => (object as Loose)["status"]);
    const pod = text.open() as Loose;
    const { spec } = pod;
    for (let i = 0; i < 200; i++) hold(holding, TEXT).read((object) => (object as Loose)["spec"]);
    assert.equal(pod["spec"], spec);
  });

  it("keeps what is written to it, also once it cannot be extended or its properties are sealed", () => {
    for (const close of [(object: object) => object, Object.preventExtensions, Object.seal]) {
      const pod = hold(newHolding(), TEXT).open() as Loose;
      close(pod);
      pod["spec"] = 1;
      (pod["metadata"] as Loose)["annotations"] = { note: "short" };
      assert.equal(pod["spec"], 1);
      assert.deepEqual((pod["metadata"] as Loose)["annotations"], { note: "short" });
      assert.equal(Object.keys(pod).join(), Object.keys(POD).join());
    }
  });

  it("says what is wrong with its accessor on another object", () => {
    const { get } = Object.getOwnPropertyDescriptor(hold(newHolding(), TEXT).open(), "spec")!;
    assert.throws(() => get!.call({}), /Cannot read spec of another object/);
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
      const meanwhile = [
        ["aside", (key: string) => held.read((object) => void JSON.stringify((object as Loose)[key]))],
        ["forget", () => held.forgetAside()],
      ] as const;
      try {
        for (let i = writer.below(5); i >= 0; i--) act(pair, writer, done, meanwhile);
        assertSame(pair, writer);
      } catch (error) {
        throw new Error(`seed ${seed}: ${done.join(", ")} of ${text}`, { cause: error });
      }
    }
    assert.ok(lazy > numRuns / 3, `${lazy} of ${numRuns} were lazy`);
  });
});

/** How many objects are compared; tests/runtimes/lazy_objects_test.ts compares more. */
const RUNS = 20_000;
