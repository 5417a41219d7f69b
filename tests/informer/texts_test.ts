import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  type KubernetesObject,
  newCluster,
  SharedIndexInformer,
  shortTexts,
  silentLogger,
} from "@listwatch/cache";
import type { NewHolding } from "../../src/store/holding.ts";
import { heldStoreOf } from "../../src/store/holding.ts";
import { TextObject } from "../../src/text/lazy_object.ts";

const REST = '"status":{"n":9007199254740993,"__proto__":{"a":1}},"spec":{"nodeName":"n1"}}';

function podText(name: string, resourceVersion: string, isTyped: boolean): string {
  const metadata = `"metadata":{"name":"${name}","namespace":"shop","resourceVersion":"${resourceVersion}"}`;
  return `{${isTyped ? '"kind":"Pod","apiVersion":"v1",' : ""}${metadata},${REST}`;
}

/** Lists `a` and `b`, then changes `b` and adds `c`; streams the first two if it can. */
function fetchPods(requests: string[]) {
  return (url: string): Promise<Response> => {
    const { searchParams } = new URL(url);
    const isWatch = searchParams.has("watch");
    const streams = searchParams.get("sendInitialEvents") === "true";
    requests.push(isWatch ? "watch" : "list");
    if (!isWatch) {
      const items = [podText("a", "1", false), podText("b", "2", false)];
      return Promise.resolve(
        new Response(
          `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[${items}]}`,
        ),
      );
    }
    const event = (type: string, object: string) => `{"type":"${type}","object":${object}}\n`;
    const end =
      '{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"5","annotations":{"k8s.io/initial-events-end":"true"}}}';
    const lines = [
      ...(streams
        ? [
          event("ADDED", podText("a", "1", true)),
          event("ADDED", podText("b", "2", true)),
          event("BOOKMARK", end),
        ]
        : []),
      event("MODIFIED", podText("b", "6", true)),
      event("ADDED", podText("c", "7", true)),
    ];
    const body = new ReadableStream({
      start: (controller) => controller.enqueue(new TextEncoder().encode(lines.join(""))),
    });
    return Promise.resolve(new Response(body));
  };
}

async function run(
  storage: NewHolding | undefined,
  useWatchList: boolean,
  transform?: (pod: KubernetesObject) => KubernetesObject,
) {
  const requests: string[] = [];
  const cluster = newCluster({ server: "http://127.0.0.1:8001", fetch: fetchPods(requests) });
  const source = cluster.resource<KubernetesObject>("v1/pods", { keep: "everything" });
  const informer = new SharedIndexInformer<KubernetesObject>(source, {
    storage,
    logger: silentLogger,
    reflector: { useWatchList },
    ...(transform && { transform }),
  });
  const changed = new Promise<void>((resolve) =>
    informer.addEventHandler({
      onAdd: (pod) => {
        if (pod.metadata?.name === "c") resolve();
      },
    })
  );
  const stop = new AbortController();
  const running = informer.run(stop.signal);
  await changed;
  const { holding, held } = heldStoreOf<KubernetesObject, typeof informer.indexer>(informer.indexer);
  const kept = ["a", "b", "c"].map((name) => held.getByKey(`shop/${name}`));
  const json = kept.map((one) => holding.json(one as never));
  const opened = informer.indexer.getByKey("shop/b");
  stop.abort();
  await running;
  return { kept, json, opened, requests };
}

for (const useWatchList of [false, true]) {
  describe(`SharedIndexInformer with texts, ${useWatchList ? "streaming" : "listing"}`, () => {
    it("stores the text that the server sent, letter for letter, and opens it for readers", async () => {
      const { kept, json, opened, requests } = await run(undefined, useWatchList);
      assert.equal(requests[0], useWatchList ? "watch" : "list");
      assert(kept.every((one) => one instanceof TextObject));
      assert.deepEqual(json, [podText("a", "1", true), podText("b", "6", true), podText("c", "7", true)]);
      assert.deepEqual(opened, JSON.parse(podText("b", "6", true)));
    });

    it("makes short texts of what the server sent, without an object in between", async () => {
      const { kept, json } = await run(shortTexts(), useWatchList);
      assert(kept.every((one) => one instanceof TextObject));
      // What an object in between would have rounded is there.
      assert.deepEqual(json, [podText("a", "1", true), podText("b", "6", true), podText("c", "7", true)]);
    });

    it("gives a transform the object, and stores its result", async () => {
      const { kept, opened } = await run(
        shortTexts({ hotObjects: 0 }),
        useWatchList,
        (pod) => ({ ...pod, status: undefined }),
      );
      assert(kept.every((one) => one instanceof TextObject));
      assert.deepEqual(Object.keys(opened!).sort(), ["apiVersion", "kind", "metadata", "spec"]);
    });
  });
}
