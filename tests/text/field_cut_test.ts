import fc from "fast-check";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type KubernetesObject, metaNamespaceKey } from "@listwatch/cache";
import { Projection } from "@listwatch/cache/client";
import { TextHolding } from "../../src/store/text_holding.ts";
import { FieldCut } from "../../src/text/field_cut.ts";
import { EACH, type FieldPathSegment, parseFieldPath } from "../../src/text/field_path.ts";
import { LazyText } from "../../src/text/lazy_object.ts";
import { ObjectText } from "../../src/text/object_text_reader.ts";
import { propertyOptions } from "../property.ts";
import { JsonWriter } from "./json_writer.ts";

const POD = {
  kind: "Pod",
  apiVersion: "v1",
  metadata: {
    name: "web-1",
    namespace: "shop",
    uid: "u-1",
    resourceVersion: "7",
    labels: { app: "web", "example.com/team": "shop" },
    managedFields: [{ manager: "kubelet" }],
  },
  spec: {
    nodeName: "node-1",
    containers: [{ name: "app", image: "web:1", env: [{ name: "A" }] }, { image: "sidecar:2" }, null, 1],
  },
  status: { phase: "Running", conditions: [], podIP: null },
};

/** Cuts a text, and what it means, which must give the same. */
// deno-lint-ignore no-explicit-any -- of any shape
function cut(text: string, paths: readonly (readonly FieldPathSegment[])[]): any {
  const fields = new FieldCut(paths);
  const shown = fields.text(text);
  assert.ok(shown !== undefined, text);
  const value = JSON.parse(shown);
  assert.deepEqual(value, fields.object(JSON.parse(text)), text);
  return value;
}

// deno-lint-ignore no-explicit-any -- of any shape
function cutPod(...paths: readonly string[]): any {
  const parsed = paths.map((path) => parseFieldPath(path));
  const shown = cut(JSON.stringify(POD), parsed);
  // White space between the parts is none of the object.
  assert.deepEqual(cut(JSON.stringify(POD, undefined, "\t"), parsed), shown);
  return shown;
}

/** What a store holds of a text that a list has brought; `undefined` if it holds the object. */
function hold(text: string, projection?: Projection): LazyText | undefined {
  const { holdText } = new TextHolding<KubernetesObject>(metaNamespaceKey);
  const read = holdText.reader.items(() => undefined, projection).readItem(text);
  if (!(read instanceof ObjectText)) return undefined;
  const held = holdText.hold(read.text, read.head as KubernetesObject, read);
  return held instanceof LazyText ? held : undefined;
}

/** Random paths of fields that the objects of `JsonWriter` have. */
function randomPaths(writer: JsonWriter): FieldPathSegment[][] {
  const segment = (): FieldPathSegment => writer.below(4) === 0 ? EACH : writer.name();
  const rest = () => Array.from({ length: writer.below(4) }, segment);
  return Array.from({ length: 1 + writer.below(4) }, () => [
    writer.below(2) === 0 ? "metadata" : writer.name(),
    ...rest(),
    writer.name(),
  ]);
}

describe("FieldCut", () => {
  it("keeps nothing but the fields at its paths", () => {
    assert.deepEqual(cutPod("metadata.name", "status.phase", "spec.nodeName"), {
      metadata: { name: "web-1" },
      spec: { nodeName: "node-1" },
      status: { phase: "Running" },
    });
    assert.deepEqual(cutPod('metadata.labels["example.com/team"]'), {
      metadata: { labels: { "example.com/team": "shop" } },
    });
    assert.deepEqual(cutPod("status"), { status: POD.status });
    assert.deepEqual(cutPod("spec.none.of.them", "none"), { spec: {} });
    assert.equal(new FieldCut([["none"]]).text(" { } "), "{}");
  });

  it("keeps fields of every element of an array, and elements of other types as they are", () => {
    assert.deepEqual(cutPod("spec.containers[].image"), {
      spec: { containers: [{ image: "web:1" }, { image: "sidecar:2" }, null, 1] },
    });
    assert.deepEqual(cutPod("spec.containers[].env[].name", "status.conditions[].type"), {
      spec: { containers: [{ env: [{ name: "A" }] }, {}, null, 1] },
      status: { conditions: [] },
    });
  });

  it("keeps a value as it is where the path expects another type", () => {
    assert.deepEqual(cutPod("status.phase.x", "status.podIP.y"), {
      status: { phase: "Running", podIP: null },
    });
    assert.deepEqual(cutPod("spec.containers.image", "status[].phase"), {
      spec: { containers: POD.spec.containers },
      status: POD.status,
    });
  });

  it("keeps every digit of a number, and every letter of a text", () => {
    const text = '{"a":12345678901234567890.10,"b":"\\u0041\\/","c":{"d":1}}';
    assert.equal(
      new FieldCut([["a"], ["b"]]).text(text),
      '{"a":12345678901234567890.10,"b":"\\u0041\\/"}',
    );
  });

  it("knows a key that is written with escapes, and one that is a name of JavaScript's own", () => {
    assert.deepEqual(cut('{"\\u0061":{"b":1,"c":2}}', [["a", "b"]]), { a: { b: 1 } });
    assert.deepEqual(cut('{"a\\"b":1,"a":2}', [['a"b']]), { 'a"b': 1 });
    const shown = cut('{"__proto__":{"polluted":1,"x":2},"constructor":3}', [["__proto__", "polluted"]]);
    assert.equal(JSON.stringify(shown), '{"__proto__":{"polluted":1}}');
    assert.equal(({} as { polluted?: unknown }).polluted, undefined);
    const lazy = hold('{"metadata":{"name":"web-1","uid":"u"},"spec":{"__proto__":{"polluted":1},"a":2}}')!;
    assert.ok(lazy.members);
    const value = new FieldCut([["spec", "__proto__"]]).objectOf(lazy);
    assert.equal(JSON.stringify(value), '{"spec":{"__proto__":{"polluted":1}}}');
  });

  it("has the last value of a field that comes twice, as a parser", () => {
    for (
      const spec of [
        '{"a":1,"b":2,"a":3}',
        '{"a":1,"a":3,"b":2}',
        '{"b":"\\n","a":1,"\\u0061":3}',
        '{"a":{"a":1},"b":["a"],"c":{"a":1},"a":3}',
        '{"b":1,"a":3}',
        '{"c":1}',
      ]
    ) {
      const lazy = hold(`{"metadata":{"name":"web-1","uid":"u"},"spec":${spec}}`)!;
      for (const paths of [[["spec", "a"]], [["spec", "a"], ["spec", "b"]]]) {
        const fields = new FieldCut(paths);
        assert.deepEqual(JSON.parse(fields.textOf(lazy)!), fields.object(JSON.parse(lazy.json!)), spec);
        assert.deepEqual(fields.objectOf(lazy), fields.object(JSON.parse(lazy.json!)), spec);
      }
    }
  });

  it("is undefined for what is no JSON", () => {
    const fields = new FieldCut([["a", "b"], ["c", EACH, "d"]]);
    for (
      const text of [
        "",
        "{",
        '{"a"',
        '{"a":',
        '{"a":{"b":1',
        '{"a":{"b":1}',
        '{"a":{"b":1]}',
        '{"c":[{"d":1}',
        '{"c":[{"d":1}}',
        '{"c":[1 2]}',
        '{"x":"',
        "{a:1}",
      ]
    ) {
      assert.equal(fields.text(text), undefined, text);
    }
  });

  it("gives the same for texts and objects, however a text is written", () => {
    fc.assert(
      fc.property(fc.nat(), (seed) => {
        const writer = new JsonWriter(seed);
        const text = writer.object(0);
        cut(text, randomPaths(writer));
      }),
      propertyOptions(5_000),
    );
  });

  it("gives the same for a text that is held with the places of its members", () => {
    let held = 0;
    let withKeys = 0;
    fc.assert(
      fc.property(fc.nat(), (seed) => {
        const writer = new JsonWriter(seed);
        const metadata = `{"name":"web-1","uid":"u","resourceVersion":"7",${writer.object(1).slice(1)}`;
        const rest = writer.object(0).slice(1);
        const text = `{"metadata":${metadata.replace(/,\s*\}$/, "}")},${rest}`.replace(/,\s*\}$/, "}");
        const lazy = hold(text);
        if (lazy?.json === undefined) return;
        held++;
        if (lazy.members && lazy.members.places.length > 2 * lazy.members.shape.size) withKeys++;
        const names = Object.entries(JSON.parse(lazy.json)).filter(([name]) => name !== "metadata")
          .flatMap(([name, value]) =>
            typeof value === "object" && value !== null
              ? Object.keys(value).map((inner) => [name, inner])
              : []
          );
        const some = names.filter(() => writer.below(2) === 0);
        for (const paths of [[...randomPaths(writer), ["metadata", "uid"], ["kind"]], [...some, ["kind"]]]) {
          const fields = new FieldCut(paths);
          const expected = fields.object(JSON.parse(lazy.json));
          assert.deepEqual(JSON.parse(fields.textOf(lazy)!), expected, text);
          assert.deepEqual(JSON.parse(fields.textOf(lazy)!), JSON.parse(fields.text(lazy.json)!), text);
          assert.deepEqual(fields.objectOf(lazy), expected, text);
        }
      }),
      propertyOptions(5_000),
    );
    assert.ok(held > propertyOptions(100).numRuns, `only ${held} were held as texts`);
    assert.ok(withKeys > propertyOptions(50).numRuns, `only ${withKeys} have places of keys in members`);
  });

  it("keeps the whole metadata, and members of any name, of a text that is held", () => {
    const text = JSON.stringify(POD).replace('"nodeName"', '"__proto__":{"a":1},"nodeName"');
    const held = hold(text)!;
    assert.ok(held.members);
    for (
      const path of [["metadata"], ["spec", "__proto__"], ["spec", "__proto__", "a"], [
        "metadata",
        "generation",
      ]]
    ) {
      const fields = new FieldCut([path, ["kind"]]);
      const expected = fields.object(JSON.parse(text));
      assert.deepEqual(JSON.parse(fields.textOf(held)!), expected);
      assert.deepEqual(fields.objectOf(held), expected);
    }
  });

  it("finds members of members in texts of any length, with white space and in any alphabet", () => {
    const data = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, i) => [`key-${i}`, `wert-ü-${i}`]));
    for (const indent of [undefined, 1, "\t"]) {
      for (const count of [1, 2, 300, 5_000]) {
        const object = {
          metadata: { name: "web-1", namespace: "shop", uid: "u", labels: { app: "ü", "key-0": "no" } },
          data: data(count),
          none: {},
          spec: {
            a: { data: { "key-0": "no" } },
            "key-0": "x".repeat(count * 30),
            list: [{ n: 1, m: 2 }, 3],
          },
        };
        const lazy = hold(JSON.stringify(object, undefined, indent))!;
        const last = `key-${count - 1}`;
        const cuts: FieldPathSegment[][][] = [
          [["data", last], ["spec", "key-0"]],
          [["data", "key-0"], ["data", "none"], ["none", "x"], ["spec", "list", EACH, "n"]],
          [["metadata", "labels", "key-0"], ["spec", "a"]],
          [["metadata", "labels", "app"], ["spec", "list"], ["spec", "none", "x"]],
        ];
        for (const paths of cuts) {
          const fields = new FieldCut(paths);
          assert.deepEqual(JSON.parse(fields.textOf(lazy)!), fields.object(object));
          assert.deepEqual(fields.objectOf(lazy), fields.object(object));
        }
      }
    }
  });

  it("finds members of members where others were cut out", () => {
    const cut = new Projection({ drop: ["spec.b", "status", "spec.d", "x.first", "x.last"] });
    const object = {
      metadata: { name: "web-1", uid: "u" },
      spec: { a: "1", b: { c: 1 }, c: "ü", d: 4 },
      status: { a: 1 },
      x: { first: 1, a: [{ b: 1 }], last: 2 },
      y: { first: 1 },
    };
    for (const indent of [undefined, 2]) {
      const lazy = hold(JSON.stringify(object, undefined, indent), cut)!;
      const kept = JSON.parse(lazy.json!);
      assert.deepEqual(kept.x, { a: [{ b: 1 }] });
      const fields = new FieldCut([["spec", "a"], ["spec", "c"], ["x", "a"], ["x", "last"], ["y", "first"]]);
      assert.deepEqual(fields.objectOf(lazy), fields.object(kept));
      assert.deepEqual(JSON.parse(fields.textOf(lazy)!), fields.object(kept));
    }
  });
});
