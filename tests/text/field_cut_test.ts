import fc from "fast-check";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type KubernetesObject, metaNamespaceKey } from "@listwatch/cache";
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

/** What a store holds of a text that a watch has brought; `undefined` if it holds the object. */
function hold(text: string): LazyText | undefined {
  const { holdText } = new TextHolding<KubernetesObject>(metaNamespaceKey);
  const read = holdText.reader.read(text);
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
    fc.assert(
      fc.property(fc.nat(), (seed) => {
        const writer = new JsonWriter(seed);
        const metadata = `{"name":"web-1","uid":"u","resourceVersion":"7",${writer.object(1).slice(1)}`;
        const rest = writer.object(0).slice(1);
        const text = `{"metadata":${metadata.replace(/,\s*\}$/, "}")},${rest}`.replace(/,\s*\}$/, "}");
        const lazy = hold(text);
        if (lazy?.json === undefined) return;
        held++;
        const paths = [...randomPaths(writer), ["metadata", "uid"], ["kind"]];
        const fields = new FieldCut(paths);
        assert.deepEqual(JSON.parse(fields.textOf(lazy)!), fields.object(JSON.parse(lazy.json)), text);
        assert.deepEqual(JSON.parse(fields.textOf(lazy)!), JSON.parse(fields.text(lazy.json)!), text);
      }),
      propertyOptions(5_000),
    );
    assert.ok(held > propertyOptions(100).numRuns, `only ${held} were held as texts`);
  });
});
