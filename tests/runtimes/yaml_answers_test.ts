import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { newCluster, SharedIndexInformer } from "@listwatch/cache";
import { readApi } from "@listwatch/cache/hono";
import { InMemoryApiServer, pod } from "@listwatch/cache/testing";

describe("readApi in YAML", () => {
  it("loads the library and answers", async () => {
    const server = new InMemoryApiServer();
    server.create("v1/pods", pod("web-1", { namespace: "shop" }));
    const cluster = newCluster({ server: "http://in-memory", fetch: server.fetch });
    const pods = new SharedIndexInformer(cluster.resource("v1/pods"));
    const api = readApi({ resources: [{ informer: pods, resource: "v1/pods" }], allowAnonymous: true });
    const running = pods.start();
    await pods.synced();
    const response = await api.request("/api/v1/pods", { headers: { Accept: "application/yaml" } });
    assert.equal(response.headers.get("Content-Type"), "application/yaml");
    assert.match(await response.text(), /^apiVersion: v1\nitems:\n- metadata:\n(.*\n)*kind: PodList\n/);
    await running.stop();
    server.close();
  });
});
