/**
 * Objects of more levels than the runtime's own `JSON.stringify` takes, on every runtime.
 * @module
 */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { newCluster, SharedIndexInformer } from "@listwatch/cache";
import { readApi } from "@listwatch/cache/hono";

// An API server takes 10,000.
const DEPTH = 9_900;
const PATH = "/api/v1/configmaps";
const DEEP = [
  `${'{"a":'.repeat(DEPTH)}1${"}".repeat(DEPTH)}`,
  `${"[".repeat(DEPTH)}${"]".repeat(DEPTH)}`,
  `${'{"0":'.repeat(DEPTH)}1${"}".repeat(DEPTH)}`,
  `${'[0,{"a":[],"b\\n":"\\n","c":'.repeat(DEPTH / 2)}null${',"d":true},{}]'.repeat(DEPTH / 2)}`,
];

const shown = (name: string, resourceVersion: number, data: string) =>
  `{"metadata":{"name":"${name}","namespace":"shop","resourceVersion":"${resourceVersion}"},"data":${data}}`;

/** What a server answers that lists two objects, and then has one more state of the first one. */
function answer(url: string, deep: string): Response {
  const headers = { "Content-Type": "application/json" };
  if (new URL(url).searchParams.get("watch") === "true") {
    return new Response(`{"type":"MODIFIED","object":${shown("a", 3, deep)}}\n`, { headers });
  }
  const items = [shown("a", 1, deep), shown("b", 2, "{}")];
  const metadata = { resourceVersion: "2" };
  const list = JSON.stringify({ kind: "ConfigMapList", apiVersion: "v1", metadata, items: [] });
  return new Response(list.replace("[]", `[${items}]`), { headers });
}

describe("readApi", () => {
  it("serves objects of 9,900 levels that a transform has had, and what is beside them", async () => {
    for (const deep of DEEP) {
      const cluster = newCluster({
        server: "http://in-memory",
        fetch: (input) => Promise.resolve(answer(String(input), deep)),
      });
      const informer = new SharedIndexInformer(cluster.resource("v1/configmaps"), {
        transform: (object) => object,
        reflector: { useWatchList: false },
      });
      const api = readApi({
        resources: [{ informer, resource: "v1/configmaps" }],
        allowAnonymous: true,
        freshness: "as-is",
      });
      const running = informer.start();
      try {
        await informer.synced();
        const watch = await api.request(`${PATH}?watch=1&resourceVersion=2`);
        const reader = watch.body!.getReader();
        let event = "";
        for (let done: boolean | undefined = false; !done && !event.endsWith("\n");) {
          const read = await reader.read(); // in pieces, on workerd
          done = read.done;
          event += new TextDecoder().decode(read.value);
        }
        assert.equal(event.includes(`"data":${deep}`), true);
        await reader.cancel();
        for (const path of [PATH, "/api/v1/namespaces/shop/configmaps/a"]) {
          const response = await api.request(path);
          const text = await response.text();
          assert.equal(response.status, 200, text.slice(0, 1_000));
          assert.equal(text.includes(`"data":${deep}`), true);
          assert.equal(text.includes('"data":{}'), path === PATH);
        }
      } finally {
        await running.stop();
      }
    }
  });
});
