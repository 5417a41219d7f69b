import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { newCluster } from "@listwatch/cache";
import { defineController, Manager } from "@listwatch/cache/controller";
import { PrometheusMetrics } from "@listwatch/cache/metrics";
import { configMap, FakeClock, InMemoryApiServer } from "@listwatch/cache/testing";

const counted = (metrics: PrometheusMetrics) =>
  metrics.text().split("\n").filter((line) => line.startsWith("rest_client_requests_total"));

describe("RestConfig.metrics", () => {
  it("counts requests by code, method and host, as client-go does", async () => {
    const metrics = new PrometheusMetrics();
    await using server = new InMemoryApiServer();
    let isAway = false;
    const cluster = newCluster({
      server: "http://in-memory:6443/prefix",
      fetch: async (url, init) => {
        if (isAway) throw new Error("connection refused");
        return await server.fetch(url.replace("/prefix", ""), init);
      },
      metrics,
    });
    const configMaps = cluster.resource("v1/configmaps", { namespace: "default" });
    await configMaps.create(configMap("a"));
    await configMaps.get("a");
    await configMaps.get("a");
    await assert.rejects(configMaps.get("b"));
    isAway = true;
    await assert.rejects(configMaps.get("a"));
    await assert.rejects(configMaps.get("a", { signal: AbortSignal.abort() }));
    assert.deepEqual(counted(metrics).sort(), [
      'rest_client_requests_total{code="200",host="in-memory:6443",method="GET"} 2',
      'rest_client_requests_total{code="201",host="in-memory:6443",method="POST"} 1',
      'rest_client_requests_total{code="404",host="in-memory:6443",method="GET"} 1',
      'rest_client_requests_total{code="<error>",host="in-memory:6443",method="GET"} 1',
    ]);
  });

  it("are in a manager's /metrics, and end no request when they throw", async () => {
    const clock = new FakeClock();
    await using server = new InMemoryApiServer({ clock });
    const metrics = new PrometheusMetrics();
    const all = [
      metrics,
      {
        ...{ gauge() {}, observe() {} },
        count() {
          throw new Error("disk full");
        },
      },
    ];
    for (const one of all) {
      const logger = { debug() {}, info() {}, warn() {}, error() {} };
      const options = { fetch: server.fetch, clock, metrics: one, logger };
      const cluster = newCluster({ server: "http://in-memory", ...options });
      let reconciled = 0;
      const controller = defineController({
        name: "maps",
        for: cluster.resource("v1/configmaps"),
        reconcile: () => void reconciled++,
      });
      await using manager = new Manager(cluster, { controllers: [controller], clock, metrics, logger });
      const stop = new AbortController();
      const ended = manager.run(stop.signal);
      if (one === metrics) server.create("v1/configmaps", configMap("a"));
      await clock.advance(1_000);
      assert.equal(reconciled, 1);
      const page = await (await manager.fetch(new Request("http://localhost/metrics"))).text();
      assert.match(page, /^rest_client_requests_total\{code="200",host="in-memory",method="GET"\} [1-9]/m);
      stop.abort();
      await clock.advance(1_000);
      await ended;
    }
  });
});
