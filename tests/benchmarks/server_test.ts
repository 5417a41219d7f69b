import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { encodeEvents, encodeList } from "../../benchmarks/server/answers.ts";
import { numbersByKey, podJson, populationOf } from "../../benchmarks/server/pods.ts";

interface Pod {
  kind?: string;
  metadata: {
    name: string;
    namespace: string;
    uid: string;
    resourceVersion: string;
    annotations: Record<string, string>;
    managedFields: unknown[];
  };
  spec: { nodeName: string };
}

interface PodList {
  metadata: { resourceVersion: string; continue?: string; remainingItemCount?: number };
  items: Pod[];
}

function text(blocks: Iterable<Uint8Array>): string {
  const decoder = new TextDecoder();
  return [...blocks].map((block) => decoder.decode(block, { stream: true })).join("");
}

/** The data of a chunked HTTP body. */
function unchunk(body: string): string[] {
  const chunks: string[] = [];
  while (body !== "") {
    const end = body.indexOf("\r\n");
    const length = parseInt(body.slice(0, end), 16);
    chunks.push(body.slice(end + 2, end + 2 + length));
    body = body.slice(end + 2 + length + 2);
  }
  return chunks;
}

describe("podJson", () => {
  const population = populationOf(1_000);
  const pods = Array.from({ length: 1_000 }, (_, i) => {
    const json = podJson(population, i, { resourceVersion: String(i), revision: 0, isTyped: false });
    return { json, pod: JSON.parse(json) as Pod };
  });

  it("makes pods of about 4.5 KB, of which managedFields are about 40 %", () => {
    const bytes = pods.reduce((sum, { json }) => sum + json.length, 0);
    const managed = pods.reduce((sum, { pod }) => sum + JSON.stringify(pod.metadata.managedFields).length, 0);
    assert.ok(bytes / 1_000 > 4_300 && bytes / 1_000 < 4_800, `${bytes / 1_000} bytes`);
    assert.ok(managed / bytes > 0.37 && managed / bytes < 0.43, `${managed / bytes}`);
  });

  it("gives pods names and uids of their own, and shared namespaces and nodes", () => {
    const distinct = (value: (pod: Pod) => string) => new Set(pods.map(({ pod }) => value(pod))).size;
    assert.equal(distinct(({ metadata: { namespace, name } }) => `${namespace}/${name}`), 1_000);
    assert.equal(distinct(({ metadata: { uid } }) => uid), 1_000);
    assert.equal(distinct(({ spec: { nodeName } }) => nodeName), population.nodes);
  });

  it("adds a last-applied annotation to pods that were applied", () => {
    const applied = pods.filter(({ pod }) =>
      "kubectl.kubernetes.io/last-applied-configuration" in pod.metadata.annotations
    );
    assert.equal(applied.length, 100);
  });

  it("writes JSON as Go does: metadata first, managedFields last in it, < > & escaped", () => {
    const [{ json, pod }] = pods;
    assert.deepEqual(Object.keys(pod), ["metadata", "spec", "status"]);
    assert.equal(Object.keys(pod.metadata).at(-1), "managedFields");
    assert.doesNotMatch(json, /[<>&]/);
    assert.match(json, /\\u0026/);
  });

  it("makes the same pods without managedFields, for clients that do not want them", () => {
    const bare = (pods: string) =>
      JSON.parse(pods, (key, value) => key === "managedFields" ? undefined : value);
    const version = { resourceVersion: "7", revision: 0, isTyped: true };
    const json = podJson(population, 7, { ...version, isBare: true });
    assert.deepEqual(JSON.parse(json), bare(podJson(population, 7, version)));
    const [whole, less] = [{ objects: 20 }, { objects: 20, isBare: true }].map((pods) => ({
      list: text(encodeList(pods).page(0, 20)),
      events: unchunk(text(encodeEvents(pods, 30, "event").blocks)),
    }));
    assert.deepEqual(JSON.parse(less.list), bare(whole.list));
    assert.deepEqual(less.events.map((event) => JSON.parse(event)), whole.events.map(bare));
    assert.notEqual(less.list, whole.list);
  });

  it("is listed by numbersByKey in the order of an API server", () => {
    const keyOf = (i: number) => `${pods[i].pod.metadata.namespace}/${pods[i].pod.metadata.name}`;
    const numbers = numbersByKey(population);
    assert.equal(new Set(numbers).size, 1_000);
    assert.deepEqual(numbers.map(keyOf), numbers.map(keyOf).sort());
  });

  it("makes the same pod every time", () => {
    assert.equal(podJson(population, 7, { resourceVersion: "7", revision: 0, isTyped: false }), pods[7].json);
  });
});

describe("encodeList and encodeEvents", () => {
  it("encodeList makes one whole list, or pages of the same list", () => {
    const list = encodeList({ objects: 25 });
    const body = text(list.page(0, Infinity));
    assert.equal(new TextEncoder().encode(body).length, list.bytes);
    const whole = JSON.parse(body) as PodList;
    assert.equal(whole.items.length, 25);
    assert.equal(whole.metadata.resourceVersion, list.resourceVersion);

    const pages = [[0, 10], [10, 20], [20, 30]].map(([from, to]) =>
      JSON.parse(text(list.page(from, to))) as PodList
    );
    assert.deepEqual(pages.map(({ metadata }) => metadata.continue), ["from-10", "from-20", undefined]);
    assert.deepEqual(pages.map(({ metadata }) => metadata.remainingItemCount), [15, 5, undefined]);
    assert.deepEqual(pages.flatMap(({ items }) => items), whole.items);
  });

  for (const framing of ["event", "block"] as const) {
    it(`is a burst over all objects in the order of resourceVersions, framed by ${framing}`, () => {
      const { blocks, lastResourceVersion } = encodeEvents({ objects: 20 }, 50, framing);
      const chunks = unchunk(text(blocks));
      const lines = chunks.join("").trimEnd().split("\n");
      const events = lines.map((line) => JSON.parse(line) as { type: string; object: Pod });
      assert.equal(events.length, 50);
      if (framing === "event") assert.equal(chunks.length, 50);
      else assert.ok(chunks.length < 10);
      assert.ok(events.every(({ type, object }) => type === "MODIFIED" && object.kind === "Pod"));
      const versions = events.map(({ object }) => Number(object.metadata.resourceVersion));
      assert.deepEqual(versions, versions.map((_, i) => versions[0] + i));
      assert.equal(events.at(-1)!.object.metadata.resourceVersion, lastResourceVersion);
      const listed = JSON.parse(text(encodeList({ objects: 20 }).page(0, Infinity))) as PodList;
      const names = (pods: Pod[]) =>
        new Set(pods.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`));
      assert.deepEqual(
        [...names(events.map(({ object }) => object))].sort(),
        [...names(listed.items)].sort(),
      );
      assert.ok(versions[0] > Number(listed.metadata.resourceVersion));
    });
  }

  it("has marks for screens: after its block, no pod was restarted more often than one", () => {
    const pods = { objects: 20, isForScreens: true };
    const { blocks, marks } = encodeEvents(pods, 1_000, "event");
    assert.equal(marks.size, 5);
    const marked = new Set<string>();
    const whole = text(blocks);
    for (const [block, restarts] of marks) {
      const before = text(blocks.slice(0, block + 1));
      const at = whole.indexOf(`"restartCount":${restarts},`);
      assert.ok(at >= 0 && at < before.length, `the mark ${restarts} is in block ${block} or before`);
      const event = whole.slice(whole.lastIndexOf('{"type":"MODIFIED"', at), whole.indexOf("\n", at));
      const { object } = JSON.parse(event) as { object: Pod };
      marked.add(object.metadata.name);
    }
    assert.equal(marked.size, 1);
    const all = [...whole.matchAll(/"restartCount":([0-9]+)/g)].map(([, count]) => Number(count));
    const others = all.filter((count) => ![...marks.values()].includes(count));
    assert.ok(Math.max(...others) < Math.min(...marks.values()));
  });
});
