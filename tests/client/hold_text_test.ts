import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type KubernetesObject, newCluster, type ResourceOptions } from "@listwatch/cache";
import type { Schema } from "@listwatch/cache/client";
import { type HoldText, ObjectTextReader } from "../../src/text/object_text_reader.ts";
import type { ObjectHead, Quarantined, WatchItem } from "@listwatch/cache/reflector";

/** Fields in no usual order, a number that a double cannot hold, a key that objects have by themselves. */
const REST = '"status":{"n":9007199254740993,"__proto__":{"a":1}},"spec":{"nodeName":"n1","s":"\\u0041ü"}';
const METADATA =
  '"metadata":{"name":"web-1","namespace":"shop","managedFields":[{"f":{}}],"resourceVersion":"5"}';
const SHORT_METADATA = '"metadata":{"name":"web-1","namespace":"shop","resourceVersion":"5"}';
const TYPE = '"kind":"Pod","apiVersion":"v1",';

function clusterWith(items: readonly string[]) {
  return newCluster({
    server: "http://127.0.0.1:8001",
    fetch: (url) =>
      new Response(
        new URL(String(url)).searchParams.has("watch")
          ? items.map((item) => `{"type":"ADDED","object":{${TYPE}${item.slice(1)}}\n`).join("")
          : `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[${items}]}`,
      ),
  });
}

interface HeldPod {
  readonly text: string;
  readonly head: ObjectHead;
}

const holdText: HoldText = {
  reader: new ObjectTextReader(),
  // What the metadata lacks may be a property that is undefined.
  hold: (text, head): HeldPod => ({ text, head: JSON.parse(JSON.stringify(head)) }),
};

type Options = ResourceOptions<KubernetesObject>;

async function listed(items: readonly string[], options: Options = {}) {
  const page = await clusterWith(items).resource("v1/pods", options as never).list({}, { holdText });
  return { held: page.items as unknown as HeldPod[], quarantined: page.quarantined ?? [] };
}

async function watched(items: readonly string[], options: Options = {}) {
  const pods = clusterWith(items).resource("v1/pods", options as never);
  const held: HeldPod[] = [];
  const quarantined: Quarantined[] = [];
  for await (const batch of await pods.watch({}, { holdText })) {
    for (const item of batch as readonly WatchItem<unknown>[]) {
      if (item.type === "QUARANTINED") quarantined.push(item.quarantined);
      else held.push(item.object as HeldPod);
    }
  }
  return { held, quarantined };
}

for (const [verb, read] of [["list", listed], ["watch", watched]] as const) {
  describe(`ResourceClient.${verb} with holdText`, () => {
    it("hands on the text that the server sent, with the type in front", async () => {
      const { held: [{ text, head }] } = await read([`{${METADATA},${REST}}`], { keep: "everything" });
      assert.equal(text, `{${TYPE}${METADATA},${REST}}`);
      assert.deepEqual(head, {
        kind: "Pod",
        apiVersion: "v1",
        metadata: { name: "web-1", namespace: "shop", resourceVersion: "5" },
      });
    });

    it("cuts the text by keep and drop", async () => {
      const dropped = await read([`{${METADATA},${REST}}`]);
      assert.equal(dropped.held[0].text, `{${TYPE}${SHORT_METADATA},${REST}}`);
      const kept = await read([`{${METADATA},${REST}}`], { keep: ["spec.nodeName"] });
      assert.equal(kept.held[0].text, `{${TYPE}${SHORT_METADATA},"spec":{"nodeName":"n1"}}`);
    });

    it("quarantines as it does objects, and gives onInvalid the whole value", async () => {
      const items = [
        `{"spec":{"a":1},"metadata":{"name":"","resourceVersion":"5"}}`,
        `{${METADATA},${REST}}`,
        `{"spec":{"a":1},"metadata":{"name":"a","labels":{"b":1}}}`,
      ];
      const values: unknown[] = [];
      const onInvalid = (_: Quarantined, value: unknown) => values.push(value);
      const { held, quarantined } = await read(items, { onInvalid });
      assert.equal(held.length, 1);
      const at = (index: number) => verb === "list" ? `items[${index}]` : "object";
      assert.deepEqual(quarantined.map(({ path, key }) => ({ path, key })), [
        { path: `${at(0)}.metadata.name`, key: undefined },
        { path: `${at(2)}.metadata.labels.b`, key: "a" },
      ]);
      const wanted = items.map((item) => ({ kind: "Pod", apiVersion: "v1", ...JSON.parse(item) }));
      const objects = values.map((value) => verb === "list" ? value : (value as { object: unknown }).object);
      assert.deepEqual(objects, [wanted[0], wanted[2]]);
    });

    it("opens each object once for a schema", async () => {
      const seen: unknown[] = [];
      const schema: Schema<KubernetesObject> = {
        "~standard": {
          version: 1,
          vendor: "test",
          validate: (value) => {
            seen.push(value);
            return (value as { spec?: unknown }).spec === undefined
              ? { issues: [{ message: "must be there", path: ["spec"] }] }
              : { value: value as KubernetesObject };
          },
        },
      };
      const { held, quarantined } = await read([`{${METADATA},${REST}}`, `{${METADATA}}`], { schema });
      assert.deepEqual([held.length, quarantined.length, seen.length], [1, 1, 2]);
      assert.equal(quarantined[0].path, verb === "list" ? "items[1].spec" : "object.spec");
    });

    it("leaves out everything but the metadata for metadataOnly", async () => {
      const { held: [{ text, head }] } = await read([`{${METADATA},${REST}}`], { metadataOnly: true });
      const type = { kind: "PartialObjectMetadata", apiVersion: "meta.k8s.io/v1" };
      const metadata = { name: "web-1", namespace: "shop", resourceVersion: "5" };
      assert.deepEqual(JSON.parse(text), { ...type, metadata });
      assert.deepEqual(head, { ...type, metadata });
      const partial = `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1",${SHORT_METADATA}}`;
      if (verb === "list") {
        assert.equal((await read([partial], { metadataOnly: true })).held[0].text, partial);
      }
    });
  });
}
