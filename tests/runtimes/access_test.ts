/**
 * The ready-made hooks of the read API, on every runtime.
 * @module
 */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { newCluster, SharedIndexInformer } from "@listwatch/cache";
import {
  allowNamespaces,
  bearerTokens,
  readApi,
  subjectAccessReview,
  tokenReview,
} from "@listwatch/cache/hono";
import { InMemoryApiServer, pod } from "@listwatch/cache/testing";

const TOKEN = "a-token-of-sufficient-length";
const headers = { Authorization: `Bearer ${TOKEN}` };

function newServer(): InMemoryApiServer {
  const server = new InMemoryApiServer();
  server.create("v1/pods", pod("web-1", { namespace: "shop" }));
  server.create("v1/pods", pod("dns-1", { namespace: "kube-system" }));
  return server;
}

describe("readApi with ready-made hooks", () => {
  it("identifies readers by their tokens, and shows them the allowed namespaces", async () => {
    const server = newServer();
    const cluster = newCluster({ server: "http://in-memory", fetch: server.fetch });
    const informer = new SharedIndexInformer(cluster.resource("v1/pods"));
    const running = informer.start();
    await informer.synced();
    const api = readApi({
      resources: [{ informer, resource: "v1/pods" }],
      authenticate: bearerTokens([{ token: TOKEN, user: { name: "reader" } }]),
      authorize: allowNamespaces(["shop"]),
    });
    const status = async (path: string, init = {}) => (await api.request(path, init)).status;
    assert.equal(await status("/api/v1/namespaces/shop/pods"), 401);
    assert.equal(await status("/api/v1/namespaces/shop/pods", { headers }), 200);
    assert.equal(await status("/api/v1/namespaces/kube-system/pods", { headers }), 403);
    assert.equal(await status("/api/v1/pods", { headers }), 403);
    const watch = await api.request("/api/v1/namespaces/shop/pods?watch=1", { headers });
    assert.equal(api.endWatches((user) => user?.name === "reader"), 1);
    await watch.text();
    await running.stop();
    server.close();
  });

  it("asks the cluster who a reader is, and what they may read", async () => {
    const server = newServer();
    server.intercept(async (request) => {
      const { kind, spec } = await request.json();
      return Response.json(
        kind === "TokenReview"
          ? { status: { authenticated: spec.token === TOKEN, user: { username: "jane", groups: ["ops"] } } }
          : { status: { allowed: spec.user === "jane" && spec.resourceAttributes?.namespace === "shop" } },
      );
    }, { match: ({ path }) => path.endsWith("reviews") });
    const cluster = newCluster({ server: "http://in-memory", fetch: server.fetch });
    const informer = new SharedIndexInformer(cluster.resource("v1/pods"));
    const running = informer.start();
    await informer.synced();
    const api = readApi({
      resources: [{ informer, resource: "v1/pods" }],
      authenticate: tokenReview(cluster),
      authorize: subjectAccessReview(cluster),
    });
    const status = async (path: string, init = {}) => (await api.request(path, init)).status;
    assert.equal(await status("/api/v1/namespaces/shop/pods", { headers }), 200);
    assert.equal(await status("/api/v1/namespaces/kube-system/pods", { headers }), 403);
    assert.equal(
      await status("/api/v1/namespaces/shop/pods", { headers: { Authorization: "Bearer no user" } }),
      401,
    );
    await running.stop();
    server.close();
  });
});
