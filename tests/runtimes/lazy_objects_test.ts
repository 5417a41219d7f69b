/**
 * The objects of a cache behave as `JSON.parse`'s, however they are written and whatever is
 * done to them, on every runtime. They come as from an API server: half of them in a list, half
 * by a watch; index functions read of them first.
 *
 * @module
 */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type KubernetesObject, newCluster, SharedIndexInformer, silentLogger } from "@listwatch/cache";
import { JsonWriter } from "../text/json_writer.ts";
import { act, assertSame, type Loose, textOf } from "../text/lazy_operations.ts";

/** Compared are at least 100,000: 5,000 in each test, as one in nine is quarantined. */
const TESTS = 20;
const AT_ONCE = 5_800;
const LEAST_HELD = 5_000;
const LIST_VERSION = 1_000_000_000;
/** The name of the last object of a watch. */
const LAST = "last";

/** Answers a list of some texts, and a watch that brings the others. */
function serverOf(listed: readonly string[], watched: readonly string[]): typeof fetch {
  const encoder = new TextEncoder();
  return (input) => {
    const url = new URL(input instanceof Request ? input.url : input);
    const headers = { "Content-Type": "application/json" };
    if (url.searchParams.has("sendInitialEvents")) {
      const status = { kind: "Status", apiVersion: "v1", status: "Failure", reason: "Invalid", code: 422 };
      return Promise.resolve(new Response(JSON.stringify(status), { status: 422, headers }));
    }
    if (!url.searchParams.has("watch")) {
      const metadata = `{"resourceVersion":"${LIST_VERSION}"}`;
      const list = `{"kind":"PodList","apiVersion":"v1","metadata":${metadata},"items":[${listed}]}`;
      return Promise.resolve(new Response(list, { headers }));
    }
    const events = watched.map((text) => `{"type":"ADDED","object":${text}}\n`).join("");
    const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
      start: (controller) => controller.enqueue(encoder.encode(events)),
    });
    return Promise.resolve(new Response(body, { headers }));
  };
}

/**
 * Holds the objects of some seeds in a cache, and compares each
 * with the same parsed. Returns how many it held.
 */
async function compare(first: number): Promise<number> {
  const texts = new Map<string, string>();
  const [listed, watched]: [string[], string[]] = [[], []];
  for (let seed = first; seed < first + AT_ONCE; seed++) {
    const name = `web-${seed}`;
    const resourceVersion = String(LIST_VERSION + seed);
    const text = textOf(new JsonWriter(seed), { name, resourceVersion });
    texts.set(name, text);
    // The events of a watch end at a line break.
    (seed % 2 === 0 || text.includes("\n") ? listed : watched).push(text);
  }
  watched.push(JSON.stringify({
    kind: "Pod",
    apiVersion: "v1",
    metadata: { name: LAST, namespace: "shop", resourceVersion: String(2 * LIST_VERSION) },
  }));
  const cluster = newCluster({ server: "http://in-memory", fetch: serverOf(listed, watched) });
  const informer = new SharedIndexInformer<KubernetesObject, string>(
    cluster.resource("v1/pods", { keep: "everything" }),
    {
      logger: silentLogger,
      indexers: {
        read: (object) => [String((object as Loose)["spec"]).slice(0, 1)],
        keys: (object) => Object.keys(object.metadata?.labels ?? {}).slice(0, 1),
      },
    },
  );
  const last = Promise.withResolvers<void>();
  informer.addEventHandler({
    onAdd: ({ metadata }) => {
      if (metadata?.name === LAST) last.resolve();
    },
  });
  const running = informer.start();
  await last.promise;
  let held = 0;
  for (const object of informer.indexer.list()) {
    const lazy = object as Loose;
    const name = object.metadata?.name ?? "";
    if (name === LAST) continue;
    const plain = JSON.parse(texts.get(name)!);
    const writer = new JsonWriter(-1 - Number(name.slice("web-".length)));
    const done: string[] = [];
    held++;
    try {
      for (let i = writer.below(5); i >= 0; i--) act([lazy, plain], writer, done);
      assertSame([lazy, plain], writer);
    } catch (error) {
      throw new Error(`${name}: ${done.join(", ")} of ${texts.get(name)}`, { cause: error });
    }
  }
  await running.stop();
  return held;
}

describe("SharedIndexInformer", () => {
  for (let first = 1; first < TESTS * AT_ONCE; first += AT_ONCE) {
    it(`has objects that behave as parsed ones, of the seeds from ${first} on`, async () => {
      assert.ok(await compare(first) >= LEAST_HELD);
    });
  }
});
