import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type IndexFunc, type KubernetesObject, metaNamespaceKey } from "@listwatch/cache";
import { newCache } from "../../src/store/cache.ts";
import type { Held, Holding } from "../../src/store/holding.ts";
import { TextCodec } from "../../src/store/text_codec.ts";
import { EncodedHolding } from "../../src/store/encoded_holding.ts";
import { TextHolding } from "../../src/store/text_holding.ts";
import { ObjectText } from "../../src/text/object_text_reader.ts";
import { finish } from "../../src/util/turns.ts";
import { propertyOptions } from "../property.ts";
import { JsonWriter } from "../text/json_writer.ts";

interface Pod extends KubernetesObject {
  spec?: { nodeName?: string; hostNetwork?: boolean; containers?: { image?: string }[] };
  status?: { phase?: string };
}

/** What a store holds of the text of an object. */
function held({ holdText }: Pick<Holding<Pod>, "holdText">, text: string): Held<Pod> {
  const read = holdText!.reader.read(text);
  assert.ok(read instanceof ObjectText, text);
  return holdText!.hold(read.text, read.head as KubernetesObject, read) as Held<Pod>;
}

/** An index of a store, and how often its function was called, with which objects. */
function newIndex(indexFunc: IndexFunc<Pod>, form?: TextCodec) {
  const holding = form
    ? new EncodedHolding<Pod>(metaNamespaceKey, form)
    : new TextHolding<Pod>(metaNamespaceKey);
  const objects: Pod[] = [];
  const byValue = holding.heldIndex((pod) => {
    objects.push(pod);
    return indexFunc(pod);
  });
  holding.indexersAdded({ byValue });
  return {
    objects,
    hold: (text: string) => held(holding, text),
    holding,
    byValue,
    /** The values of a text that an event has brought. */
    valuesOf(text: string): readonly string[] {
      return byValue(this.hold(text));
    },
  };
}

function podText(i: number, more: Record<string, unknown> = { spec: { nodeName: `node-${i % 3}` } }): string {
  return JSON.stringify({ kind: "Pod", apiVersion: "v1", metadata: { name: `web-${i}` }, ...more });
}

const byNode = (pod: Pod) => [pod.spec?.nodeName ?? ""];
/** More than are needed to learn what a function reads. */
const SOME = 1_100;

for (
  const [name, newForm] of [["as they came", () => undefined], ["short", () => new TextCodec()]] as const
) {
  describe(`LearntIndex of texts ${name}`, () => {
    it("calls a function no more for fields that it knows", () => {
      const index = newIndex(byNode, newForm());
      for (let i = 0; i < SOME; i++) assert.deepEqual(index.valuesOf(podText(i)), [`node-${i % 3}`]);
      const called = index.objects.length;
      assert.ok(called < SOME + 10, `called ${called} times`);
      for (let i = 0; i < 50; i++) assert.deepEqual(index.valuesOf(podText(i)), [`node-${i % 3}`]);
      assert.equal(index.objects.length, called);
      assert.deepEqual(index.valuesOf(podText(1, { spec: { nodeName: "another" } })), ["another"]);
      assert.deepEqual(index.valuesOf(podText(1, { spec: {} })), [""]);
      assert.deepEqual(index.valuesOf(podText(1, { spec: { nodeName: 7 } })), [7]);
      assert.ok(index.objects.length > called);
    });

    it("learns from a list before it is stored", () => {
      const index = newIndex(byNode, newForm());
      const held = [];
      for (let i = 0; i < 2 * SOME; i++) held.push(index.holding.holdEarly(index.hold(podText(i))));
      held.forEach((one, i) => assert.deepEqual(index.byValue(one), [`node-${i % 3}`]));
      index.holding.listStored();
      assert.ok(index.objects.length < SOME + 10, `called ${index.objects.length} times`);
    });
  });
}

describe("LearntIndex", () => {
  it("of an index that was added in steps is learnt from the next list, too", () => {
    const cache = newCache<Pod, string>(metaNamespaceKey, {}, {});
    let calls = 0;
    const counted = (pod: Pod) => {
      calls++;
      return byNode(pod);
    };
    finish(cache.addIndexersSteps({ byNode: counted }));
    const { holding } = cache;
    const list = Array.from({ length: 2 * SOME }, (_, i) => holding.holdEarly(held(holding, podText(i))));
    for (const one of list) cache.held.add(holding.keyFunc(one), one);
    assert.equal(cache.countByIndex("byNode", "node-0"), Math.ceil(list.length / 3));
    assert.ok(calls < SOME + 10, `called ${calls} times`);
  });

  it("asks again where what is read depends on what was read", () => {
    const index = newIndex((pod) =>
      pod.status?.phase === "Running" ? [pod.spec?.nodeName ?? ""] : [pod.status?.phase ?? "none"]
    );
    for (let i = 0; i < SOME; i++) index.valuesOf(podText(i, { status: { phase: "Pending" } }));
    for (let i = 0; i < 2 * SOME; i++) {
      const phase = ["Running", "Pending", "Failed"][i % 3];
      const text = podText(i, { spec: { nodeName: `node-${i % 7}` }, status: { phase } });
      assert.deepEqual(index.valuesOf(text), [phase === "Running" ? `node-${i % 7}` : phase]);
    }
    assert.ok(index.objects.length < SOME + 100, `called ${index.objects.length} times`);
  });

  for (
    const [what, indexFunc] of Object.entries<IndexFunc<Pod>>({
      "asks for keys": (pod) => Object.keys(pod.spec ?? {}),
      "looks whether there is a field": (pod) => "nodeName" in pod.spec! ? ["yes"] : ["no"],
      "writes JSON": (pod) => [JSON.stringify(pod.spec)],
      "clones": (pod) => [structuredClone(pod).spec!.nodeName!],
      "reads elements": (pod) => [pod.spec?.containers?.[0]?.image ?? ""],
      "asks whether there is an object": (pod) => [pod.spec?.containers ? "yes" : "no", pod.spec!.nodeName!],
      "asks whether there is another object": (pod) => [pod.status ? "yes" : "no", pod.spec!.nodeName!],
      "catches what it throws": (pod) => {
        try {
          if ("containers" in pod.spec!) return ["some"];
        } catch {
          // it reads on
        }
        return [pod.spec!.nodeName!];
      },
      "compares objects": (pod) => ((spec) => spec === pod.spec ? ["same"] : ["another"])(pod.spec),
      "asks for what is inherited": (pod) => [String(pod.spec?.toString === Object.prototype.toString)],
    })
  ) {
    it(`gives the values of a function that ${what}`, () => {
      const index = newIndex(indexFunc);
      for (let i = 0; i < 2 * SOME; i++) {
        const text = podText(i, {
          spec: {
            nodeName: `node-${i % 2}`,
            ...(i > SOME && i % 5 === 0 && { containers: [{ image: "i" }] }),
          },
          ...((i < SOME || i % 7 > 0) && { status: {} }),
        });
        assert.deepEqual(index.valuesOf(text), indexFunc(JSON.parse(text)), text);
      }
    });
  }

  it("changes no object when it looks at a function that does", () => {
    const index = newIndex((pod) => {
      pod.spec!.nodeName += "!";
      return [pod.spec!.nodeName!];
    });
    for (let i = 0; i < 2 * SOME; i++) {
      assert.deepEqual(index.valuesOf(podText(i)), [`node-${i % 3}!`]);
    }
  });

  it("forgets what it knew of fewer fields once it has learnt of another one", () => {
    const index = newIndex((pod) => [pod.status?.phase === "Running" ? pod.spec!.nodeName! : "none"]);
    const running = (nodeName: string) => podText(1, { spec: { nodeName }, status: { phase: "Running" } });
    const written = "7:Running6:node-1"; // as the two fields together
    for (let i = 0; i < SOME; i++) index.valuesOf(podText(i, { status: { phase: written } }));
    for (const nodeName of ["node-2", "node-1"]) {
      for (let i = 0; i < SOME; i++) assert.deepEqual(index.valuesOf(running(nodeName)), [nodeName]);
    }
  });

  it("knows the values as they were returned, whatever the function does to its array later", () => {
    const values = [""];
    const index = newIndex((pod) => {
      values[0] = pod.spec?.nodeName ?? "";
      return values;
    });
    for (let i = 0; i < 2 * SOME; i++) assert.deepEqual(index.valuesOf(podText(i)), [`node-${i % 3}`]);
  });

  it("leaves an object readable that a function has kept", () => {
    const index = newIndex(byNode);
    for (let i = 0; i < SOME; i++) index.valuesOf(podText(i));
    for (const pod of index.objects.slice(-5)) {
      assert.equal(JSON.parse(JSON.stringify(pod)).spec.nodeName, pod.spec?.nodeName);
      pod.status = { phase: "set" };
      assert.equal(pod.status.phase, "set");
    }
  });

  it("calls a function once with each object whose fields no other one has", () => {
    const index = newIndex((pod) => [pod.metadata!.name!]);
    for (let i = 0; i < 4 * SOME; i++) index.valuesOf(podText(i));
    const called = index.objects.length;
    for (let i = 0; i < 100; i++) index.valuesOf(podText(4 * SOME + i));
    assert.equal(index.objects.length, called + 100);
  });

  it("throws what a function throws, for each object that it refuses", () => {
    const index = newIndex((pod) => {
      if (pod.spec?.nodeName === "bad") throw new RangeError("refused");
      return byNode(pod);
    });
    for (let i = 0; i < 2 * SOME; i++) {
      index.valuesOf(podText(i));
      const bad = podText(i, { spec: { nodeName: "bad" } });
      if (i % 10 === 0) assert.throws(() => index.valuesOf(bad), RangeError);
    }
  });

  it("gives the values of any function, whatever the objects are", () => {
    const { numRuns, seed: first = 1 } = propertyOptions(25);
    let learnt = 0;
    for (let seed = first; seed < first + numRuns; seed++) {
      const writer = new JsonWriter(seed);
      const indexFunc = functionOf(writer);
      const index = newIndex(indexFunc);
      for (let i = 0; i < 3 * SOME; i++) {
        const text = textOf(writer, i);
        assert.deepEqual(index.valuesOf(text), indexFunc(JSON.parse(text)), `seed ${seed}: ${text}`);
      }
      if (index.objects.length < 3 * SOME - 100) learnt++;
    }
    assert.ok(learnt > numRuns / 5, `${learnt} of ${numRuns} were learnt`);
  });
});

const PATHS = ["spec.a", "spec.b", "spec.b.a", "a", "a.b", "metadata.name", "metadata.labels.a", "kind", "b"];

/** A function that reads some fields, each where the one before has one value or another. */
function functionOf(writer: JsonWriter): IndexFunc<Pod> {
  const paths = Array.from({ length: 1 + writer.below(4) }, () => writer.of(PATHS).split("."));
  const pivot = writer.of(["x", "y", "1", "undefined"]);
  return (pod) => {
    const values: string[] = [];
    for (const path of paths) {
      // deno-lint-ignore no-explicit-any -- it reads whatever is there
      let value: any = pod;
      for (const name of path) value = value?.[name];
      values.push(typeof value === "object" ? "object" : `${typeof value} ${value}`);
      if (String(value) === pivot) return values.reverse();
    }
    return values;
  };
}

/** An object with few different values. */
function textOf(writer: JsonWriter, i: number): string {
  const value = (depth: number): string => {
    if (depth > 0 && writer.below(4) > 0) {
      return `{${
        Array.from({ length: 1 + writer.below(4) }, () => `"${writer.of(["a", "b"])}":${value(depth - 1)}`)
      }}`;
    }
    return writer.below(8) > 0
      ? writer.of(['"x"', '"y"', '"\\u0078"', '"1"', '""'])
      : writer.of(["1", "true", "null", "[]", '["x"]']);
  };
  const labels = writer.below(2) === 0 ? `,"labels":{"a":"${writer.of(["x", "y"])}"}` : "";
  return `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web-${i % 5}"${labels}},` +
    `"spec":${value(2)},"a":${value(1)}}`;
}
