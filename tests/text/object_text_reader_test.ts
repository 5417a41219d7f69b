import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { fieldIndex, metaNamespaceKey } from "@listwatch/cache";
import type { ObjectMeta } from "../../src/meta/object.ts";
import { TextFields } from "../../src/text/field_tree.ts";
import { ObjectText, ObjectTextReader } from "../../src/text/object_text_reader.ts";
import type { LiveMetadata } from "../../src/text/object_reader.ts";
import { LazyOrigin, LazyText } from "../../src/text/lazy_object.ts";
import { isOrdinaryObject } from "../../src/schema/checks.ts";
import { propertyOptions } from "../property.ts";
import { JsonWriter } from "./json_writer.ts";

const reader = new ObjectTextReader();

const PATHS = [
  "spec",
  "spec.name",
  "spec[].uid",
  "metadata.name",
  'metadata.labels["métadata"]',
  'metadata.annotations["métadata"]',
  "metadata.items[]",
  "items[].spec",
  "kind",
] as const;
const indexFuncs = PATHS.map((path) => fieldIndex<unknown>(path));
const fields = new TextFields();
for (const path of PATHS) fields.add(path);
const fieldReader = new ObjectTextReader(fields);

/** The part of the metadata that is always read. */
function core(metadata: unknown): unknown {
  if (typeof metadata !== "object" || metadata === null || Array.isArray(metadata)) return metadata;
  const { name, namespace, uid, resourceVersion, labels } = metadata as Record<string, unknown>;
  return { name, namespace, uid, resourceVersion, labels };
}

/**
 * What `read` must return, by the runtime's parser: the text, the head
 * and the fields; the value if it is no object.
 */
function expected(text: string): unknown {
  const value = JSON.parse(text);
  if (typeof value !== "object" || value === null || Array.isArray(value)) return { value };
  const { kind, apiVersion, metadata } = value;
  return {
    text: text.trim(),
    head: [kind, apiVersion, core(metadata)],
    fields: indexFuncs.map((indexFunc) => indexFunc(value)),
  };
}

const origin = new LazyOrigin({
  freeze: undefined,
  keysHaveNames: true,
  membersOf: () => assert.fail("its members are known"),
  decode: undefined,
});

/** Adds the labels whose place in the text was noted: they are read there. */
function withLabels(metadata: unknown, { text, members }: ObjectText): unknown {
  if (!members) return metadata;
  const live = { ...metadata as LiveMetadata, apiVersion: undefined, kind: undefined };
  assert.equal(live.labels, undefined);
  const { labels } = new LazyText("", { ...live, labels: undefined }, text, origin, members);
  return { ...metadata as object, labels };
}

function outcomeOf(read: () => unknown): string {
  try {
    return JSON.stringify(read());
  } catch (error) {
    return (error as Error).name;
  }
}

function actual(text: string): unknown {
  const read = fieldReader.read(text);
  if (!(read instanceof ObjectText)) return { value: read };
  const { head, key, isOrdinary } = read;
  if (key !== undefined) assert.equal(key, metaNamespaceKey(head));
  if (isOrdinary) assert.ok(isOrdinaryObject(JSON.parse(text)), text);
  return {
    text: read.text,
    head: [head.kind, head.apiVersion, withLabels(core(head.metadata), read)],
    fields: read.fields,
  };
}

function assertSame(text: string, note: string): void {
  const [is, should] = [outcomeOf(() => actual(text)), outcomeOf(() => expected(text))];
  if (is !== should) assert.equal(is, should, `${note}: ${JSON.stringify(text)}`);
}

const OBJECT =
  ' {"kind":"Pod", "apiVersion":"v1","metadata":{"managedFields":[{"f:a":{"k:{\\"b\\":1}":[]}}],"name":"ü\\ud800","labels":{"a":"b"}},"spec":{"n":[-1.5e+3,0,true,false,null,""],"s":"\\u00e9\\n}"}} ';
const CHARACTERS = [...'"\\{}[]:,0 -+.eEtfnu\0\n\tü'];

describe("ObjectTextReader.read", () => {
  const { numRuns, seed = 1 } = propertyOptions(100_000);

  it(`returns the head that JSON.parse returns, or refuses as it does (seeds from ${seed})`, () => {
    for (let i = 0; i < numRuns; i++) {
      const writer = new JsonWriter(seed + i);
      const text = writer.space() + (writer.below(50) === 0 ? writer.value(0) : writer.object(0)) +
        writer.space();
      assertSame(text, `seed ${seed + i}`);
      if (i % 4 === 0) {
        const at = writer.below(text.length);
        const corrupt = text.slice(0, at) + writer.of(CHARACTERS) + text.slice(at + writer.below(3));
        if (corrupt.isWellFormed()) assertSame(corrupt, `seed ${seed + i}, corrupt at ${at}`);
      }
    }
  });

  it("takes no other member of six letters for the labels", () => {
    // With a name that begins with a digit the members have no known places: labels are read at once.
    assertSame('{"metadata":{"name":"a","labels":{"a":"b"},"origin":{"c":"d"},"1":{}}}', "six letters");
  });

  it("knows which heads are those of objects that a cache can hold", () => {
    const isOrdinary = (fields: object, metadata: object = {}) => {
      const text = JSON.stringify({ ...fields, metadata: { name: "a", namespace: "shop", ...metadata } });
      return (reader.read(text) as ObjectText).isOrdinary;
    };
    const times = { creationTimestamp: null, deletionTimestamp: "2026-01-01T00:00:00Z" };
    assert.ok(
      isOrdinary({ kind: "Pod", apiVersion: "v1" }, { labels: { a: 'a "b"' }, annotations: {}, ...times }),
    );
    assert.ok(isOrdinary({}, { namespace: "" }));
    assert.equal(isOrdinary({ kind: "Table", apiVersion: "example.com/v1" }), false); // as good as no answer
    assert.equal(isOrdinary({ kind: "Table", apiVersion: "meta.k8s.io/v1" }), false);
    assert.equal(isOrdinary({ kind: 1 }), false);
    assert.equal(isOrdinary({ apiVersion: null }), false);
    for (
      const metadata of [
        { name: "" },
        { name: 1 },
        { uid: 1 },
        { resourceVersion: null },
        { labels: null },
        { labels: { a: 1 } },
        { annotations: [] },
        { creationTimestamp: 1 },
      ]
    ) {
      assert.equal(isOrdinary({}, metadata), false, JSON.stringify(metadata));
    }
  });

  it("refuses a text that is cut anywhere", () => {
    for (let end = 0; end < OBJECT.length; end++) assertSame(OBJECT.slice(0, end), `cut at ${end}`);
  });

  it("sees each character that is wrong, missing or too much", () => {
    for (let at = 0; at < OBJECT.length; at++) {
      assertSame(OBJECT.slice(0, at) + OBJECT.slice(at + 1), `without character ${at}`);
      for (const character of CHARACTERS) {
        assertSame(OBJECT.slice(0, at) + character + OBJECT.slice(at), `${character} before ${at}`);
        assertSame(OBJECT.slice(0, at) + character + OBJECT.slice(at + 1), `${character} at ${at}`);
      }
    }
  });

  it("sees the same in a value that is like those of the objects before", () => {
    const before = '{"kind":"Pod","metadata":{"name":"a"},"spec":{"containers":';
    const value =
      '[{"name":"web","ports":[{"port":80,"protocol":"TCP"}],"limits":{"cpu":"1","memory":"1Gi"},' +
      '"args":["a","\\"b"],"tty":false,"stdin":null,"n":-1.5e+3}]';
    const textOf = (changed: string) => `${before}${changed}},"status":{"conditions":${value}}}`;
    for (let at = 0; at < value.length; at++) {
      assertSame(textOf(value), "as it was");
      assertSame(textOf(value.slice(0, at) + value.slice(at + 1)), `without character ${at}`);
      for (const character of CHARACTERS) {
        assertSame(textOf(value.slice(0, at) + character + value.slice(at)), `${character} before ${at}`);
        assertSame(textOf(value.slice(0, at) + character + value.slice(at + 1)), `${character} at ${at}`);
      }
    }
  });

  it("knows metadata that are not as usual: of other types, or with a key twice, in any order", () => {
    const keys = [
      ...["uid", "name", "namespace", "resourceVersion", "creationTimestamp", "deletionTimestamp"],
      ...["labels", "annotations", "managedFields"],
      // as long as those
      ...["uix", "namx", "labelx", "namespacx", "annotationx", "managedFieldx", "resourceVersiox"],
      "creationTimestamx",
    ];
    const objects = ['{"a":"b"}', '{"a":5}', "{}", '{"métadata":"x"}'];
    const values = ['"b"', '"\\u0062"', "5", "null", ...objects, '[{"f":"g"}]'];
    const members = keys.flatMap((key) => values.map((value) => `"${key}":${value}`));
    for (const first of members) {
      for (const second of members) {
        assertSame(`{"kind":"Pod","metadata":{"name":"a",${first},${second}},"n":1}`, "two members");
      }
    }
  });

  it("takes the last of the keys that are written twice", () => {
    const text =
      '{"metadata":{"name":"a","name":"b"},"kind":"A","kind":"B","metadata":{"uid":"c","managedFields":1,"managedFields":2}}';
    assert.equal(JSON.stringify(actual(text)), JSON.stringify(expected(text)));
  });

  it("knows keys that are written with escapes", () => {
    const text = '{"met\\u0061data":{"n\\u0061me":"a","m\\u0061nagedFields":[]}}';
    assert.equal(JSON.stringify(actual(text)), JSON.stringify(expected(text)));
  });

  it("knows one number from another", () => {
    for (
      const number of [
        "1",
        "-0",
        "0.5",
        "1e5",
        "1E-5",
        "01",
        "-",
        "1.",
        ".5",
        "1e",
        "1e+",
        "+1",
        "0x1",
        "NaN",
        "1_0",
      ]
    ) {
      assertSame(`{"metadata":{},"a":${number}}`, number);
      assertSame(`{"metadata":{},"a":[${number},1]}`, number);
    }
  });

  it("reads objects of any depth and length", () => {
    for (const depth of [999, 1000, 1001, 1002, 3000]) {
      assertSame(`{"metadata":{},"a":${"[".repeat(depth)}${"]".repeat(depth)}}`, `depth ${depth}`);
      assertSame(`{"metadata":{},"a":${"[".repeat(depth)}`, `depth ${depth}, open`);
    }
    for (const length of [16_300, 16_384, 16_385, 100_000]) {
      assertSame(`{"metadata":{"name":"a"},"a":"${"x".repeat(length)}"}`, `length ${length}`);
      assertSame(`{"metadata":{"name":"a"},"a":"${"ü".repeat(length)}"}`, `length ${length}`);
    }
    assertSame('{"metadata":{"name":"a"', "a part of what was read before");
  });

  it("writes a type into objects that have none", () => {
    const type = { kind: "Pod", apiVersion: "v1" };
    const read = (text: string, of = type) => reader.read(text, of) as ObjectText;
    const { text, head } = read(' {"metadata":{"name":"a"}}');
    assert.equal(text, '{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}');
    assert.deepEqual(JSON.parse(JSON.stringify(head)), {
      kind: "Pod",
      apiVersion: "v1",
      metadata: { name: "a" },
    });
    for (const typed of ['{"kind":null,"metadata":{}}', '{"apiVersion":"v2","metadata":{}}', "{}"]) {
      assert.equal(read(typed).text, typed);
    }
    const long = { kind: "K".repeat(1000), apiVersion: "v1" };
    assert.equal(JSON.parse(read('{"metadata":{}}', long).text).kind, long.kind);
    assert.equal(read('{"metadata":{}}').text, '{"kind":"Pod","apiVersion":"v1","metadata":{}}');
  });
});

describe("ObjectTextReader.read", () => {
  it("reads the fields kind and apiVersion of a type that it writes, and of an object that has them", () => {
    const fields = new TextFields();
    for (const path of ["kind", "metadata.name", "apiVersion", "kind"]) fields.add(path);
    const typed = new ObjectTextReader(fields);
    const read = (text: string) => (typed.read(text, { kind: "Pod", apiVersion: "v1" }) as ObjectText).fields;
    assert.deepEqual(read('{"metadata":{"name":"a"}}'), [["Pod"], ["a"], ["v1"], ["Pod"]]);
    // Written twice: that is parsed.
    assert.deepEqual(read('{"metadata":{},"metadata":{"name":"a"}}'), [["Pod"], ["a"], ["v1"], ["Pod"]]);
    assert.deepEqual(read('{"kind":"Job","metadata":{"name":"a"}}'), [["Job"], ["a"], [], ["Job"]]);
  });
});

describe("EventReader.readEvent", () => {
  const object =
    '{"kind":"Pod","metadata":{"name":"ü","resourceVersion":"9007199254740993"},"n":9007199254740993}';

  it("returns the object's text, however the event is written", () => {
    for (
      const frame of [
        `{"type":"ADDED","object":${object}}`,
        `{"type":"ADDED","object":${object}}\r`,
        ` { "type" : "ADDED" , "object" : ${object} } `,
        `{"object":${object},"type":"ADDED"}`,
        `{"type":"DELETED","object":{},"x":[{"object":1}],"obj\\u0065ct":${object},"type":"ADDED"}`,
      ]
    ) {
      const event = reader.events().readEvent(frame) as { type: string; object: ObjectText };
      assert.equal(event.type, "ADDED", frame);
      assert(event.object instanceof ObjectText, frame);
      assert.equal(event.object.text, object, frame);
      const { name, resourceVersion } = event.object.head.metadata as ObjectMeta;
      assert.deepEqual([name, resourceVersion], ["ü", "9007199254740993"]);
    }
  });

  it("parses all other events", () => {
    for (
      const frame of [
        `{"type":"BOOKMARK","object":${object}}`,
        `{"type":"ERROR","object":${object}}`,
        `{"type":"SYNC","object":${object}}`,
        '{"type":"ADDED","object":[]}',
        '{"type":"ADDED"}',
        "[1]",
        "null",
      ]
    ) assert.deepEqual(reader.events().readEvent(frame), JSON.parse(frame));
  });

  it("refuses what is no JSON", () => {
    const frame = `{"type":"MODIFIED","object":${object}}`;
    for (let end = 0; end < frame.length; end++) {
      assert.throws(() => reader.events().readEvent(frame.slice(0, end)), SyntaxError, frame.slice(0, end));
    }
    for (const rest of ["}", ",", "1", "\0"]) {
      assert.throws(() => reader.events().readEvent(frame + rest), SyntaxError);
    }
  });
});
