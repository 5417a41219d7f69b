import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { newCluster, SharedIndexInformer, silentLogger } from "@listwatch/cache";
import { defineController, Manager, TerminalError } from "@listwatch/cache/controller";
import { allowNamespaces, type ReadApiOptions } from "@listwatch/cache/hono";
import { PrometheusMetrics } from "@listwatch/cache/metrics";
import { FakeClock, InMemoryApiServer, pod } from "@listwatch/cache/testing";
import { WorkQueue } from "@listwatch/cache/workqueue";
import { ReadMetrics } from "../../../src/hono/health/health.ts";
import type { Asked } from "../../../src/hono/request/gate.ts";
import type { Readers } from "../../../src/hono/request/readers.ts";
import type { ListBodies } from "../../../src/hono/send/kept_bodies.ts";
import { describedResource } from "../../../src/protocol/builtin_resources.ts";
import { FakeInformer, object } from "../fake_informer.ts";
import { type ParsedFamily, parsePrometheusText } from "../prometheus_text.ts";
import { readApi } from "../read_api.ts";

type Families = Map<string, ParsedFamily>;

/** The value of one sample. */
function valueOf(families: Families, name: string, labels: Record<string, string> = {}): number | undefined {
  const family = families.get(name) ?? families.get(name.replace(/_(bucket|sum|count)$/, ""));
  return family?.samples.find((sample) =>
    sample.name === name && sample.labels.size === Object.keys(labels).length &&
    Object.entries(labels).every(([label, value]) => sample.labels.get(label) === value)
  )?.value;
}

function apiOf(options: Partial<ReadApiOptions> = {}) {
  const clock = new FakeClock();
  const informer = FakeInformer.with([object("shop/web-1", 5)], 10);
  const metrics = new PrometheusMetrics();
  const api = readApi({
    resources: [{ informer, resource: "v1/pods" }],
    allowAnonymous: true,
    metrics,
    clock,
    ...options,
  });
  const page = async () => {
    const response = await api.request("/metrics");
    assert.equal(response.status, 200);
    assert.equal(response.headers.get("Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
    return parsePrometheusText(await response.text());
  };
  return { api, informer, metrics, clock, page };
}

describe("PrometheusMetrics.text", () => {
  it("has counters, gauges and cumulative histograms with help texts and types", () => {
    const metrics = new PrometheusMetrics();
    assert.equal(metrics.text(), "");
    metrics.count("reflector_lists_total", 1, { name: "pods" });
    metrics.count("reflector_lists_total", 2, { name: "pods" });
    metrics.gauge("informer_objects", 7, { name: "pods" });
    for (const seconds of [0.0004, 0.0005, 0.3, 1e9]) {
      metrics.observe("read_api_request_duration_seconds", seconds, { verb: "list", resource: "pods" });
    }
    const families = parsePrometheusText(metrics.text());
    assert.equal(valueOf(families, "reflector_lists_total", { name: "pods" }), 3);
    assert.equal(valueOf(families, "informer_objects", { name: "pods" }), 7);
    const labels = { verb: "list", resource: "pods" };
    const bucket = (le: string) =>
      valueOf(families, "read_api_request_duration_seconds_bucket", { ...labels, le });
    assert.deepEqual([bucket("0.0005"), bucket("0.25"), bucket("0.5"), bucket("60"), bucket("+Inf")], [
      2,
      2,
      3,
      3,
      4,
    ]);
    assert.equal(valueOf(families, "read_api_request_duration_seconds_count", labels), 4);
    assert.equal(families.get("reflector_lists_total")?.type, "counter");
    assert.match(families.get("reflector_lists_total")!.help, /Lists that were started/);
  });

  it("escapes names and values, whatever they are", () => {
    const metrics = new PrometheusMetrics();
    const odd = 'a "quoted" \\ back\nslash\\n é';
    metrics.count("9 odd.name-é", 1, { "9 label": odd, "le": "x", "__name__": "y" });
    metrics.count("_9 odd.name_é", 1, { "9 label": odd, "le": "x", "__name__": "y" });
    metrics.observe("my_seconds", 0.2, { le: "mine", b: "2", a: "1" });
    metrics.observe("my_seconds", 0.2, { a: "1", b: "2", le: "mine" });
    metrics.gauge("big", 1e21, {});
    metrics.gauge("small", -1.5e-7, {});
    const families = parsePrometheusText(metrics.text());
    assert.equal(
      valueOf(families, "_9_odd_name__", { "_9_label": odd, "le": "x", "label___name__": "y" }),
      2,
    );
    assert.equal(valueOf(families, "my_seconds_count", { a: "1", b: "2", label_le: "mine" }), 2);
    assert.equal(valueOf(families, "big"), 1e21);
    assert.equal(valueOf(families, "small"), -1.5e-7);
  });

  it("takes any name, also that of a member of objects, or none, and has all buckets of each", () => {
    const metrics = new PrometheusMetrics();
    for (const name of ["constructor", "__proto__", ""]) metrics.gauge(name, 1, {});
    metrics.observe("my-seconds", 0.2, { "": "x" });
    metrics.gauge("job:sum", 2, { "a:b": "c" });
    const families = parsePrometheusText(metrics.text());
    for (const name of ["constructor", "__proto__", "_"]) {
      assert.equal(valueOf(families, name), 1);
      assert.equal(families.get(name)?.type, "gauge");
    }
    assert.equal(valueOf(families, "job:sum", { a_b: "c" }), 2); // only names of metrics may have a colon
    const bucket = (le: string) => valueOf(families, "my_seconds_bucket", { _: "x", le });
    assert.deepEqual([bucket("0.1"), bucket("0.25")], [0, 1]);
  });

  it("writes what has become infinite as Prometheus reads it, and nothing of a name of another type", () => {
    const metrics = new PrometheusMetrics();
    metrics.gauge("reflector_lists_total", 1, {});
    assert.equal(metrics.text(), "");
    for (let i = 0; i < 2; i++) {
      metrics.count("a_total", 1.7e308, {});
      metrics.observe("h", -1.7e308, {});
    }
    assert.match(metrics.text(), /^a_total \+Inf$/m);
    assert.match(metrics.text(), /^h_sum -Inf$/m);
  });

  it("skips what a name of another type, a number that is none or too many labels would make wrong", () => {
    const metrics = new PrometheusMetrics();
    metrics.count("a_total", 1, {});
    metrics.gauge("a_total", 50, {});
    metrics.observe("a_total", 50, {});
    for (const value of [-1, NaN, Infinity]) metrics.count("a_total", value, {});
    metrics.gauge("g", 3, {});
    for (const value of [NaN, Infinity, -Infinity]) metrics.gauge("g", value, {});
    metrics.observe("h", NaN, {});
    for (let i = 0; i < 3_000; i++) metrics.count("many_total", 1, { id: String(i) });
    const families = parsePrometheusText(metrics.text());
    assert.equal(valueOf(families, "a_total"), 1);
    assert.equal(valueOf(families, "g"), 3);
    assert.equal(valueOf(families, "h_count"), 0);
    assert.equal(families.get("many_total")?.samples.length, 2_000);
  });

  it("has the measurements of a work queue under client-go's names", async () => {
    const metrics = new PrometheusMetrics();
    const clock = new FakeClock();
    const queue = new WorkQueue<string>({ name: "pods", metricsProvider: metrics, clock });
    queue.add("a");
    queue.add("b");
    const item = await queue.get();
    await clock.advance(2_000);
    assert.ok(!item.shutdown);
    queue.done(item.item);
    const families = parsePrometheusText(metrics.text());
    const labels = { name: "pods" };
    assert.equal(valueOf(families, "workqueue_adds_total", labels), 2);
    assert.equal(valueOf(families, "workqueue_depth", labels), 1);
    assert.equal(valueOf(families, "workqueue_work_duration_seconds_sum", labels), 2);
    queue.shutDown();
  });
});

describe("PrometheusMetrics of a Manager", () => {
  it("describes all that it measures, with controller-runtime's buckets", async () => {
    using server = new InMemoryApiServer();
    server.create("v1/configmaps", { metadata: { name: "a", namespace: "shop" } });
    const metrics = new PrometheusMetrics();
    const cluster = newCluster({ server: "http://in-memory", fetch: server.fetch });
    const reconciled = Promise.withResolvers<void>();
    const controller = defineController({
      name: "maps",
      for: cluster.resource("v1/configmaps"),
      reconcile() {
        reconciled.resolve();
        throw new TerminalError("not this one");
      },
    });
    const manager = new Manager(cluster, {
      controllers: [controller],
      leader: { lease: "maps", namespace: "shop" },
      logger: silentLogger,
      metrics,
    });
    const stop = new AbortController();
    const running = manager.run(stop.signal);
    await reconciled.promise;
    stop.abort();
    await running;
    const families = parsePrometheusText(metrics.text());
    assert.ok(families.has("leader_election_master_status"));
    assert.ok(families.has("controller_runtime_terminal_reconcile_errors_total"));
    for (const [name, { help }] of families) assert.doesNotMatch(help ?? "", /no description/, name);
    const times = families.get("controller_runtime_reconcile_time_seconds")!;
    const bounds = times.samples.flatMap(({ labels }) => labels.get("le") ?? []);
    assert.equal(bounds.length, 41);
    assert.ok(bounds.includes("0.15") && bounds.includes("40"), "dashboards ask for these");
  });
});

describe("readApi({ metrics })", () => {
  it("measures requests by verb, resource and code, readers, watches and kept lists", async () => {
    const { api, page, informer } = apiOf();
    informer.lag = 1_500;
    await (await api.request("/api/v1/pods")).text();
    const tag = (await api.request("/api/v1/pods")).headers.get("ETag")!;
    await api.request("/api/v1/pods", { headers: { "If-None-Match": tag } });
    await api.request("/api/v1/namespaces/shop/pods/absent");
    await api.request("/api/v1/unknown-1");
    await api.request("/api/v1/unknown-2");
    await api.request("/apis/other.example/v1/pods");
    await api.request("/api");
    const watch = await api.request("/api/v1/pods?watch=1");
    const families = await page();
    const requests = (verb: string, code: number, resource = "pods") =>
      valueOf(families, "read_api_requests_total", { verb, resource, code: String(code) });
    assert.deepEqual([requests("list", 200), requests("list", 304), requests("get", 404)], [2, 1, 1]);
    assert.deepEqual([requests("watch", 200), requests("list", 404, "")], [1, 3]);
    const listed = { verb: "list", resource: "pods" };
    assert.equal(valueOf(families, "read_api_request_duration_seconds_count", listed), 3);
    assert.equal(valueOf(families, "read_api_readers"), 1);
    assert.equal(valueOf(families, "read_api_watches", { resource: "pods" }), 1);
    assert.equal(valueOf(families, "read_api_synced", { resource: "pods" }), 1);
    assert.equal(valueOf(families, "read_api_lag_seconds", { resource: "pods" }), 1.5);
    assert.equal(valueOf(families, "read_api_list_bodies"), 1);
    assert.ok(valueOf(families, "read_api_list_body_bytes")! > 50);
    await watch.body?.cancel();
    assert.equal(valueOf(await page(), "read_api_watches", { resource: "pods" }), 0);
  });

  it("serves the measurements of informers that have the same metrics", async () => {
    const clock = new FakeClock();
    const server = new InMemoryApiServer({ clock });
    server.create("v1/pods", pod("web-1", { namespace: "shop" }));
    const metrics = new PrometheusMetrics();
    const cluster = newCluster({ server: "http://in-memory", fetch: server.fetch, clock });
    const informer = new SharedIndexInformer(cluster.resource("v1/pods"), { name: "pods", metrics, clock });
    const api = readApi({
      resources: [{ informer, resource: "v1/pods" }],
      allowAnonymous: true,
      metrics,
      clock,
    });
    const running = informer.start();
    while (!informer.hasSynced()) await clock.advance(1);
    const families = parsePrometheusText(await (await api.request("/metrics")).text());
    const names = ["reflector_lists_total", "informer_objects", "reflector_last_contact_timestamp_seconds"];
    assert.deepEqual(names.filter((name) => !families.has(name)), []);
    assert.equal(valueOf(families, "informer_objects", { name: "pods" }), 1);
    const stopped = running.stop();
    await clock.advance(0);
    await stopped;
    server.close();
  });

  it("is for users that may read the path, and is not there without the option", async () => {
    const refusing = apiOf({ allowAnonymous: undefined, authorize: ({ path }) => path !== "/metrics" });
    assert.equal((await refusing.api.request("/metrics")).status, 403);
    const unknown = apiOf({ authenticate: () => undefined });
    assert.equal((await unknown.api.request("/metrics")).status, 401);
    const asked: string[] = [];
    const seen = apiOf({
      allowAnonymous: undefined,
      authorize: (request) => (asked.push(`${request.verb} ${request.scope} ${request.path}`), true),
    });
    await seen.page();
    assert.deepEqual(asked, ["get path /metrics"]);
    assert.equal((await apiOf({ metrics: undefined }).api.request("/metrics")).status, 404);
    const ofSome = apiOf({ allowAnonymous: undefined, authorize: allowNamespaces(["shop"]) });
    assert.equal((await ofSome.api.request("/metrics")).status, 403);
  });

  it("is served also when there are too many readers", async () => {
    const { api, page } = apiOf({ maxWatches: 1 });
    const watch = await api.request("/api/v1/pods?watch=1");
    assert.equal((await api.request("/api/v1/pods?watch=1")).status, 429);
    const labels = { verb: "watch", resource: "pods", code: "429" };
    assert.equal(valueOf(await page(), "read_api_requests_total", labels), 1);
    await watch.body?.cancel();
  });
});

describe("ReadMetrics", () => {
  const resource = describedResource("v1/pods", "test");

  function recorded() {
    const lines: string[] = [];
    const record = (name: string, value: number, labels?: object) =>
      void lines.push(`${name} ${value} ${JSON.stringify(labels)}`);
    const metrics = {
      count: record,
      gauge: record,
      observe: record,
      contentType: "text/x",
      text: () => "all",
    };
    const clock = new FakeClock();
    return { metrics: new ReadMetrics(metrics, clock), clock, lines: () => lines.splice(0) };
  }

  it("counts each request and how long it took, by the names of served resources only", async () => {
    const { metrics, clock, lines } = recorded();
    await clock.advance(1_000);
    const end = metrics.begin();
    await clock.advance(1_500);
    const asked = { scope: "all", verb: "list", group: "", version: "v1", resource: "pods" } as const;
    for (const [of, name] of [[asked, "pods"], [{ ...asked, resource: "secrets" }, ""]] as const) {
      end(of as unknown as Asked, [resource], 200);
      assert.deepEqual(lines(), [
        `read_api_request_duration_seconds 1.5 {"verb":"list","resource":"${name}"}`,
        `read_api_requests_total 1 {"verb":"list","resource":"${name}","code":"200"}`,
      ]);
    }
    end(undefined, [resource], 429);
    assert.equal(lines()[1], 'read_api_requests_total 1 {"verb":"","resource":"","code":"429"}');
  });

  it("has a page of what there is: readers, bytes, bodies, and the state of each resource", async () => {
    const { metrics, lines } = recorded();
    const state = (lag: number | undefined, synced: boolean) => {
      const informer = FakeInformer.with([], 10);
      Object.assign(informer, { lag, synced });
      return {
        served: [{ resource, informer, watchers: { size: 3 } }],
        readers: { count: 1, heldBytes: 64 } as Readers,
        bodies: { kept: { size: 2 }, bytes: 9 } as unknown as ListBodies,
      };
    };
    const all = [
      "read_api_readers 1 {}",
      "read_api_buffered_bytes 64 {}",
      "read_api_list_bodies 2 {}",
      "read_api_list_body_bytes 9 {}",
      'read_api_watches 3 {"resource":"pods"}',
    ];
    const response = await metrics.page(state(2_500, true));
    assert.deepEqual(lines(), [
      ...all,
      'read_api_synced 1 {"resource":"pods"}',
      'read_api_lag_seconds 2.5 {"resource":"pods"}',
    ]);
    assert.equal(await response.text(), "all");
    assert.deepEqual(
      ["Content-Type", "Cache-Control", "X-Content-Type-Options"].map((name) => response.headers.get(name)),
      ["text/x", "no-cache, private", "nosniff"],
    );
    metrics.measure(state(undefined, false));
    assert.deepEqual(lines(), [...all, 'read_api_synced 0 {"resource":"pods"}']);
  });
});
