/** Streamed lists that a server compresses although it was to leave them as they are. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { newCluster, SharedIndexInformer, silentLogger } from "@listwatch/cache";
import { InMemoryApiServer, pod } from "@listwatch/cache/testing";

// Pages leave out the header that a request has for it.
const isPage = "document" in globalThis;

/** The requests of an informer until it has synced, where `changed` makes the answers to streamed lists. */
async function requestsUntilSynced(changed: (response: Response) => Response): Promise<string[]> {
  const server = new InMemoryApiServer();
  server.create("v1/pods", pod("web-1", { namespace: "shop" }));
  const requests: string[] = [];
  const fetch = async (url: string | URL | Request, init?: RequestInit) => {
    const { searchParams } = new URL(String(url));
    const isStreamed = searchParams.has("sendInitialEvents");
    requests.push(isStreamed ? "streamed list" : searchParams.has("watch") ? "watch" : "list");
    const response = await server.fetch(url, init);
    return isStreamed ? changed(response) : response;
  };
  const cluster = newCluster({ server: "http://in-memory", fetch, logger: silentLogger });
  const informer = new SharedIndexInformer(cluster.resource("v1/pods"), { logger: silentLogger });
  const running = informer.start();
  await informer.synced();
  assert.deepEqual(informer.indexer.listKeys(), ["shop/web-1"]);
  await running.stop();
  return requests.filter((kind) => kind !== "watch");
}

describe("RestResource.watch of a streamed list", () => {
  const inPages = isPage ? ["streamed list", "list"] : ["streamed list"];

  it("is read", async () => {
    assert.deepEqual(await requestsUntilSynced((response) => response), ["streamed list"]);
  });

  it("that is compressed is replaced by a list in pages, which may read only its beginning", async () => {
    const compressed = ({ body, headers }: Response) =>
      new Response(body, { headers: { ...Object.fromEntries(headers), "Content-Encoding": "gzip" } });
    assert.deepEqual(await requestsUntilSynced(compressed), inPages);
  });

  it("of another origin, which hides whether it is compressed, is replaced by a list in pages", async () => {
    const hidden = (response: Response) => Object.defineProperty(response, "type", { value: "cors" });
    assert.deepEqual(await requestsUntilSynced(hidden), inPages);
  });
});
