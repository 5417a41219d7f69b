import fc from "fast-check";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Projection, type ProjectionOptions } from "@listwatch/cache/client";
import { ObjectParser } from "../../src/text/object_reader.ts";
import { ObjectText, ObjectTextReader } from "../../src/text/object_text_reader.ts";
import { propertyOptions } from "../property.ts";

const texts = new ObjectTextReader();
const parser = new ObjectParser();
const encoder = new TextEncoder();

/** Reads a text in each way in which a list or a watch reads it, which must all give the same. */
// deno-lint-ignore no-explicit-any -- of any shape
function parse(text: string, projection: Projection): any {
  const values: unknown[] = [];
  for (const reader of [parser, texts]) {
    const items = reader.items(() => undefined, projection);
    values.push(items.readItem(text));
    // Inside of a longer text, as the items of a list are.
    const bytes = encoder.encode(`${" ".repeat(items.room)}${text.trim()},{\0`);
    values.push(items.readItemAt?.(bytes, items.room) ?? values[0]);
  }
  const [value, ...others] = values.map((value) =>
    value instanceof ObjectText ? JSON.parse(value.text) : value
  );
  for (const other of others) assert.deepEqual(other, value);
  return value;
}

/** Reads an event as a watch does, in each way. */
function parseEvent(frame: string, projection: Projection): unknown {
  const [value, ...others] = [parser, texts].flatMap((reader) => {
    const events = reader.events(projection);
    return [
      events.readLineAt?.(encoder.encode(`${frame}\n\0`), 0) ?? events.readEvent(frame),
      events.readEvent(frame),
    ];
  }).map((event) => {
    const { type, object } = event as { readonly type: string; readonly object: unknown };
    return object instanceof ObjectText ? { type, object: JSON.parse(object.text) } : event;
  });
  for (const other of others) assert.deepEqual(other, value);
  return value;
}

// deno-lint-ignore no-explicit-any -- of any shape
function project(value: unknown, options: ProjectionOptions, indent?: number | string): any {
  return parse(JSON.stringify(value, undefined, indent), new Projection(options));
}

const POD = {
  metadata: {
    name: "web-1",
    annotations: { "example.com/notes": 'a "long" text', team: "shop" },
    managedFields: [{ manager: "kubelet", fieldsV1: { "f:status": { 'k:{"type":"Ready"}': {} } } }],
  },
  spec: {
    nodeName: "node-1",
    containers: [{ name: "app", image: "web:1", env: [{ name: "A" }] }, { name: "sidecar", env: [] }],
  },
  status: { phase: "Running", conditions: [] },
};

describe("Projection", () => {
  it("leaves out the fields that are dropped, and keeps the others as they are", () => {
    const { managedFields: _, ...metadata } = POD.metadata;
    assert.deepEqual(project(POD, { drop: ["metadata.managedFields"] }), { ...POD, metadata });
    assert.deepEqual(project(POD, { drop: ["spec", "status.conditions"] }), {
      metadata: POD.metadata,
      status: { phase: "Running" },
    });
    assert.deepEqual(project(POD, {}), POD);
  });

  it("leaves out fields of every element of an array", () => {
    assert.deepEqual(project(POD, { drop: ["spec.containers[].env"] }), {
      ...POD,
      spec: { nodeName: "node-1", containers: [{ name: "app", image: "web:1" }, { name: "sidecar" }] },
    });
  });

  it("leaves out keys that are no names", () => {
    const { annotations } = project(POD, { drop: ['metadata.annotations["example.com/notes"]'] }).metadata;
    assert.deepEqual(annotations, { team: "shop" });
  });

  it("keeps nothing but what is requested, the type and the metadata", () => {
    const options = { keep: ["spec.nodeName", "spec.containers[].name"], drop: ["metadata.managedFields"] };
    const { managedFields: _, ...metadata } = POD.metadata;
    assert.deepEqual(project({ apiVersion: "v1", kind: "Pod", ...POD }, options), {
      apiVersion: "v1",
      kind: "Pod",
      metadata,
      spec: { nodeName: "node-1", containers: [{ name: "app" }, { name: "sidecar" }] },
    });
  });

  it("keeps nothing for a path that is dropped of a field that is not kept", () => {
    assert.deepEqual(
      project({ spec: { a: 1, b: 2 }, status: { a: 1, b: 2 } }, {
        keep: ["status"],
        drop: ["spec.a", "spec.c.d", "status.a"],
      }),
      { status: { b: 2 } },
    );
    assert.deepEqual(project({ spec: { a: { b: 1 } }, status: 1 }, { drop: ["spec", "spec.a.b"] }), {
      status: 1,
    });
  });

  it("takes a value that is of another shape than a path says as it is", () => {
    for (const spec of [null, 7, "text", [], [{ volumes: 1 }], {}]) {
      assert.deepEqual(project({ spec }, { drop: ["spec.volumes"] }), { spec });
      assert.deepEqual(project({ spec }, { drop: ["spec[].other"] }), { spec });
    }
  });

  it("finds a key that is written with escapes", () => {
    const text = '{"sp\\u0065c":1,"status":2}';
    assert.deepEqual(parse(text, new Projection({ drop: ["spec"] })), { status: 2 });
  });

  it("is not misled by a text that looks like the end of an array", () => {
    for (const text of ["]", "}]", '}],"spec":{', "[", '\\"]']) {
      const object = {
        metadata: { name: "a", managedFields: [{ [text]: text }], labels: { text } },
        spec: [text],
      };
      assert.deepEqual(project(object, { drop: ["metadata.managedFields"] }), {
        metadata: { name: "a", labels: { text } },
        spec: [text],
      });
    }
  });

  it("is not misled by two texts that hide each other", () => {
    const container = { args: ["]},{", ":["], name: "app" };
    const object = { metadata: { name: "web-1" }, spec: { containers: [container, { name: "side" }] } };
    assert.deepEqual(project(object, { keep: ["spec.containers[].name"] }), {
      metadata: { name: "web-1" },
      spec: { containers: [{ name: "app" }, { name: "side" }] },
    });
    assert.deepEqual(project(object, { drop: ["spec.containers[].args"] }), {
      metadata: { name: "web-1" },
      spec: { containers: [{ name: "app" }, { name: "side" }] },
    });
  });

  it("takes no half of a value for a whole one in what it skips", () => {
    const projection = new Projection({ keep: ["spec"], drop: ["metadata.managedFields"] });
    for (const value of ['te":"x"', "tru", "nulll", "1.", "-", "01", "1e", "'a'", "undefined", "\u0001"]) {
      for (
        const text of [
          `{"metadata":{"name":"a","managedFields":${value}},"spec":{"value":1}}`,
          `{"status":${value},"spec":{"value":1}}`,
        ]
      ) assert.throws(() => parse(text, projection), SyntaxError, text);
    }
    for (const value of ["true", "false", "null", "0", "-1.5", "1e9", "2.5E-3", "[]", '""']) {
      const text = `{"status":${value} ,"spec":{"value":1}}`;
      assert.deepEqual(parse(text, projection), { spec: { value: 1 } });
    }
  });

  it("distinguishes a quote that ends a text from one that is in it, however many backslashes are before it", () => {
    for (
      const text of ['"', "\\", '\\"', '\\\\"', '"\\', "\\\\", '"}', '\\"},"b":{"', '","a":"', '\\","a":0,"']
    ) {
      const value = { text, list: [text], two: { text } };
      const object = { x: text, a: text, y: [text, value], b: { a: text, c: value, d: 1 } };
      assert.deepEqual(project(object, { drop: ["a", "b.c"] }), {
        x: text,
        y: [text, value],
        b: { a: text, d: 1 },
      });
    }
  });

  it("drops a field where the path leads only, wherever else its name is", () => {
    const options = { drop: ["metadata.managedFields"] };
    for (const value of [0, "0", [], ["]"], [[1]], {}, null, '"managedFields":[]']) {
      const elsewhere = { managedFields: value, spec: { template: { metadata: { managedFields: value } } } };
      const labels = { text: '"managedFields":[1]', managedFields: "x" };
      assert.deepEqual(project({ ...elsewhere, metadata: { labels, managedFields: value } }, options), {
        ...elsewhere,
        metadata: { labels },
      });
      assert.deepEqual(project({ metadata: { managedFields: value, labels }, ...elsewhere }, options), {
        ...elsewhere,
        metadata: { labels },
      });
    }
  });

  it("finds a key that is written with escapes among keys that are shorter and longer", () => {
    const text = '{"\\u0061":1,"b":{"\\/":1,"\\u002f\\u002f":2,"c":3,"lo\\u006eger":5}}';
    const projection = new Projection({ drop: ["a", 'b["/"]', 'b["//"]', "b.longer"] });
    assert.deepEqual(parse(text, projection), { b: { c: 3 } });
  });

  it("takes a backslash in a path for a character of the key, and one in the text for an escape", () => {
    const projection = new Projection({ drop: ['metadata["a\\\\b"]'] });
    const text = '{"metadata":{"a\\b":1,"a\\\\b":2}}';
    assert.deepEqual(parse(text, projection), { metadata: { "a\b": 1 } });
  });

  it("leaves what a bookmark or an error holds as it is", () => {
    const projection = new Projection({ drop: ["metadata.annotations"] });
    const object = {
      metadata: { resourceVersion: "7", annotations: { "k8s.io/initial-events-end": "true" } },
    };
    for (const type of ["BOOKMARK", "ERROR"]) {
      assert.deepEqual(parseEvent(JSON.stringify({ type, object }), projection), { type, object });
      assert.deepEqual(parseEvent(JSON.stringify({ object, type }), projection), { type, object });
    }
    assert.deepEqual(parseEvent(JSON.stringify({ type: "ADDED", object }), projection), {
      type: "ADDED",
      object: { metadata: { resourceVersion: "7" } },
    });
  });

  it("says what is wrong with a text as the JSON parser does", () => {
    const projection = new Projection({ drop: ["a"], keep: ["b"] });
    for (
      const text of [
        "",
        "{",
        '{"a"',
        '{"a":',
        '{"a":}',
        '{"b":1,}',
        '{"b":1 "c":2}',
        '{"a":[1,2}',
        "[",
        "{]",
        '{"b":"',
      ]
    ) {
      assert.throws(() => parse(text, projection), SyntaxError, text);
    }
  });

  it("cuts the object of every event that has one, wherever the object is in it", () => {
    const projection = new Projection({ drop: ["spec"] });
    const { spec: _, ...rest } = POD;
    for (const type of ["ADDED", "MODIFIED", "DELETED"]) {
      for (const frame of [{ type, object: POD }, { object: POD, type }, { type, more: [1], object: POD }]) {
        const event = parseEvent(JSON.stringify(frame), projection) as { readonly object: unknown };
        assert.deepEqual(event.object, rest, JSON.stringify(frame).slice(0, 40));
      }
    }
  });

  it("accepts no text that has more behind an object", () => {
    const projection = new Projection({ drop: ["spec"] });
    for (
      const text of [
        '{"metadata":{}}',
        '{"metadata":{},"\\u0061":1}',
        '{"metadata":{},"a":1,"a":2}',
        "[1]",
        "1",
      ]
    ) {
      for (const more of ["x", "}", ",", " {}", "1"]) {
        if (text === "1" && more === "1") continue; // that is another number
        for (const reader of [parser, texts]) {
          const items = reader.items(() => undefined, projection);
          assert.throws(() => items.readItem(text + more), SyntaxError, text + more);
        }
      }
    }
  });

  it("refuses paths that cannot be read", () => {
    for (const path of ["", ".a", "a.", "a..b", "[]", "a[]", "a[].", "a[0].b", 'a["b]', "a b", "a.[]"]) {
      assert.throws(() => new Projection({ drop: [path] }), /Cannot read the path/, path);
    }
  });

  it("refuses to drop what a cache cannot do without", () => {
    for (const path of ["metadata", "metadata.name", "metadata.uid", "metadata.resourceVersion", "kind"]) {
      assert.throws(() => new Projection({ drop: [path] }), /a cache needs/, path);
    }
  });

  it("does what dropping from the parsed object does, for any object, paths and white space", () => {
    const key = fc.constantFrom("a", "b", "c", "d-e", "é");
    const value = fc.letrec((tie) => ({
      any: fc.oneof(
        { maxDepth: 5 },
        fc.string(),
        fc.double({ noNaN: true }),
        fc.constant(null),
        tie("object"),
        tie("array"),
      ),
      object: fc.dictionary(key, tie("any"), { maxKeys: 4 }),
      array: fc.array(tie("any"), { maxLength: 3 }),
    }));
    const segment = fc.oneof(fc.constantFrom(".a", ".b", ".c", ".d-e"), fc.constant("[]"));
    const path = fc.array(segment, { minLength: 1, maxLength: 4 }).map((segments) =>
      segments.join("").replace(/^\./, "")
    )
      .filter((path) => !/^\[\]|\[\]$/.test(path));
    const drop = fc.array(path, { maxLength: 4 });
    fc.assert(
      fc.property(value.object, drop, fc.constantFrom(undefined, 1), (object, drop, indent) => {
        const plain = JSON.parse(JSON.stringify(object));
        const expected = JSON.parse(JSON.stringify(object));
        for (const path of drop) remove(expected, path.match(/\[\]|[\w-]+/g)!);
        assert.deepEqual(project(plain, { drop }, indent), expected);
      }),
      propertyOptions(3_000),
    );
  });

  it("does so when texts and keys are full of quotes, backslashes, brackets and the names that are dropped", () => {
    const piece = fc.constantFrom(
      '"',
      "\\",
      "[",
      "]",
      "{",
      "}",
      ",",
      ":",
      "\n",
      "m",
      "é",
      '"m":',
      '"m":[1]',
      "a/b",
    );
    const text = fc.oneof(
      fc.array(piece, { maxLength: 6 }).map((pieces) => pieces.join("")),
      fc.constantFrom("m", "n", "a/b"),
    );
    // V8's own JSON.parse may take two keys of one length for each other where both are written with escapes.
    const key = fc.constantFrom("m", "n", "a/b", "]", "}{", '"m":[', "\\]xy");
    const { any } = fc.letrec((tie) => ({
      any: fc.oneof({ maxDepth: 4 }, text, fc.integer(), fc.constant(null), tie("object"), tie("array")),
      object: fc.dictionary(key, tie("any"), { maxKeys: 4, noNullPrototype: true }),
      array: fc.array(tie("any"), { maxLength: 3 }),
    }));
    const object = fc.dictionary(key, any, { maxKeys: 4, noNullPrototype: true });
    const paths = [["m"], ["n", "m"], ["n", "a/b"], ["n", "n", "m"], ["n", '"m":['], ["a/b", "[]", "m"]];
    const drops = fc.subarray(paths);
    fc.assert(
      fc.property(
        object,
        object,
        object,
        drops,
        fc.constantFrom(undefined, 1, "\t"),
        (a, n, nn, paths, indent) => {
          const object = { ...a, n: { ...n, n: nn } };
          const expected = JSON.parse(JSON.stringify({ type: "ADDED", object }));
          for (const path of paths) remove(expected.object, path);
          const drop = paths.map((path) =>
            path.map((segment) => segment === "[]" ? segment : `[${JSON.stringify(segment)}]`).join("")
          );
          assert.deepEqual(project(object, { drop }, indent), expected.object);
          const frame = JSON.stringify({ type: "ADDED", object }, undefined, indent);
          assert.deepEqual(parseEvent(frame, new Projection({ drop })), expected);
        },
      ),
      propertyOptions(3_000),
    );
  });

  it("keeps what keeping from the parsed object does, when texts look like what is between values", () => {
    const piece = fc.constantFrom("]", "[", "]},{", ":[", "],", '"', "\\", "{", "}", ",", "x");
    const text = fc.array(piece, { maxLength: 3 }).map((pieces) => pieces.join(""));
    const container = fc.record(
      { args: fc.array(text, { maxLength: 3 }), name: text, env: fc.array(fc.record({ name: text })) },
      { requiredKeys: [] },
    );
    const object = fc.record({
      apiVersion: fc.constant("v1"),
      spec: fc.record({
        containers: fc.array(container, { maxLength: 3 }),
        nodes: fc.array(text),
        node: text,
      }),
    });
    const paths = [["spec", "containers", "[]", "name"], ["spec", "containers", "[]", "args"], [
      "spec",
      "node",
    ]];
    fc.assert(
      fc.property(object, fc.subarray(paths), fc.constantFrom(undefined, 1), (object, paths, indent) => {
        const keep = paths.map((path) => path.join(".").replaceAll(".[]", "[]"));
        const expected = kept(object, [["apiVersion"], ...paths]);
        assert.deepEqual(project(object, { keep }, indent), expected);
      }),
      propertyOptions(3_000),
    );
  });
});

/** What is kept of a value by paths. */
function kept(value: unknown, paths: readonly (readonly string[])[]): unknown {
  if (paths.some((path) => path.length === 0)) return value;
  if (typeof value !== "object" || value === null) return value;
  const under = (segment: string) => paths.filter(([first]) => first === segment).map(([, ...rest]) => rest);
  if (Array.isArray(value)) {
    const rest = under("[]");
    return rest.length === 0 ? value : value.map((element) => kept(element, rest));
  }
  const named = paths.filter(([first]) => first !== "[]");
  if (named.length === 0) return value;
  const left: Record<string, unknown> = {};
  for (const [key, member] of Object.entries(value)) {
    const rest = under(key);
    if (rest.length > 0) left[key] = kept(member, rest);
  }
  return left;
}

function remove(value: unknown, [segment, ...rest]: readonly string[]): void {
  if (typeof value !== "object" || value === null) return;
  if (segment === "[]") {
    if (Array.isArray(value)) { for (const element of value) remove(element, rest); }
  } else if (!Array.isArray(value)) {
    const object = value as Record<string, unknown>;
    if (rest.length === 0) delete object[segment];
    else remove(object[segment], rest);
  }
}
