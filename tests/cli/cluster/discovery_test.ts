import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isForbidden, newCluster } from "@listwatch/cache";
import { answerStatus, InMemoryApiServer, type Interceptor } from "@listwatch/cache/testing";
import { discover, type Discovery } from "../../../src/cli/cluster/discovery.ts";

function ask(server: InMemoryApiServer): Promise<Discovery> {
  return discover(newCluster({ server: "http://in-memory", fetch: server.fetch }));
}

/** Like a server without aggregated discovery: it ignores the first types of the Accept header. */
const plainOnly: Interceptor = (request, next) => {
  const headers = new Headers(request.headers);
  headers.set("Accept", "application/json");
  return next(new Request(request.url, { headers, signal: request.signal }));
};

describe("discover", () => {
  it("sends two requests to a server with aggregated discovery", async () => {
    const server = new InMemoryApiServer();
    const { resources, unavailable } = await ask(server);
    assert.equal(server.requests.length, 2);
    assert.deepEqual(unavailable, []);
    const pods = resources.find(({ resource }) => resource === "pods");
    assert.equal(pods?.kind, "Pod");
    assert.equal(pods?.singularName, "pod");
    assert.equal(pods?.namespaced, true);
    assert.deepEqual(pods?.shortNames, ["po"]);
    assert.ok(pods?.verbs.includes("watch"));
  });

  it("finds the same resources in the same order without aggregated discovery", async () => {
    const server = new InMemoryApiServer();
    const aggregated = await ask(server);
    server.intercept(plainOnly);
    server.clearRequests();
    const plain = await ask(server);
    assert.ok(server.requests.length > 4);
    assert.deepEqual(plain, aggregated);
  });

  it("skips a group that does not respond, and names it", async () => {
    const server = new InMemoryApiServer();
    server.intercept(plainOnly);
    server.intercept(answerStatus(503), { match: ({ path }) => path === "/apis/apps/v1" });
    const { resources, unavailable } = await ask(server);
    assert.deepEqual(unavailable, ["apps/v1"]);
    assert.ok(resources.some(({ resource }) => resource === "pods"));
    assert.ok(!resources.some(({ group }) => group === "apps"));
  });

  it("names the stale groups of an aggregated document", async () => {
    const items = [{
      metadata: { name: "metrics.k8s.io" },
      versions: [{ version: "v1beta1", freshness: "Stale" }],
    }];
    const fetch = (url: string): Response =>
      Response.json({ kind: "APIGroupDiscoveryList", items: url.endsWith("/apis") ? items : [] });
    const { unavailable } = await discover(newCluster({ server: "http://in-memory", fetch }));
    assert.deepEqual(unavailable, ["metrics.k8s.io/v1beta1"]);
  });

  it("rejects with the error of the server", async () => {
    const server = new InMemoryApiServer();
    server.intercept(answerStatus(403));
    await assert.rejects(ask(server), isForbidden);
  });
});
