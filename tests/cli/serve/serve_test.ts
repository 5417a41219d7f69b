import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  CommandError,
  serve,
  type Served,
  type ServeOptions,
  type ServeStep,
  UsageError,
} from "@listwatch/cache/cli";
import { answerStatus, configMap, FakeClock, hang, pod, secret } from "@listwatch/cache/testing";
import { stateCountsOf } from "../../../src/cli/dashboard/browser/kinds.ts";
import { parseSearch, wantedOf } from "../../../src/cli/dashboard/browser/search.ts";
import type { DashboardState } from "../../../src/cli/dashboard/dashboard_message.ts";
import { SCRIPT, STYLE } from "../../../src/cli/dashboard/page_bundle.ts";
import { parsePrometheusText } from "../../hono/prometheus_text.ts";
import { RealCluster } from "../real_cluster.ts";

const RESOURCES = [
  { name: "pods", namespaced: true, path: "/api/v1/pods" },
  { name: "nodes", namespaced: false, path: "/api/v1/nodes" },
  { name: "events", namespaced: true, path: "/api/v1/events" },
  { name: "deployments.apps", namespaced: true, path: "/apis/apps/v1/deployments" },
];

interface List {
  readonly items: readonly { readonly metadata: { readonly name: string; readonly namespace?: string } }[];
}

async function list(served: Served, path: string, headers: Record<string, string> = {}): Promise<List> {
  const response = await fetch(served.url + path, { headers });
  assert.equal(response.status, 200, await response.clone().text());
  return await response.json();
}

async function status(served: Served, path: string, headers: Record<string, string> = {}): Promise<number> {
  const response = await fetch(served.url + path, { headers });
  await response.body?.cancel();
  return response.status;
}

function on(cluster: RealCluster, options: ServeOptions = {}): ServeOptions {
  return { source: { kind: "kubeconfig", path: cluster.kubeconfig }, port: 0, ...options };
}

async function refuses(options: ServeOptions, message: RegExp, errorClass = CommandError): Promise<void> {
  await assert.rejects(serve({ port: 0, ...options }), (error) => {
    assert.ok(error instanceof errorClass, String(error));
    assert.match(error.message, message);
    assert.doesNotMatch(error.message, /\n/);
    return true;
  });
}

describe("`serve` of several namespaces", () => {
  it("reflects these, and names the one that it may not read", async () => {
    await using cluster = await RealCluster.start();
    for (const namespace of ["shop", "blog", "wiki"]) {
      cluster.server.create("v1/pods", pod("web", { namespace }));
    }
    cluster.server.intercept(answerStatus(403), { match: ({ path }) => path.includes("/namespaces/blog/") });
    const options = { resources: ["pods", "nodes"], namespace: ["shop", "blog"] };
    await using served = await serve(on(cluster, options));
    // The resource never syncs, as one is missing: each answer waits for a turn of the event loop.
    while (await status(served, "/api/v1/pods?partial=true") === 503);
    const shop = await list(served, "/api/v1/pods?partial=true");
    assert.deepEqual(shop.items.map(({ metadata }) => metadata.namespace), ["shop"]);
    const ready = await (await fetch(`${served.url}/readyz`)).text();
    assert.match(ready, /informer\/pods of blog/);
    assert.doesNotMatch(ready, /pods of shop failed/);
  });

  it("refuses what is no name of one, and a snapshot", async () => {
    await refuses({ namespace: ["Shop"] }, /namespace "Shop"/, UsageError);
    await refuses({ namespace: "a b" }, /namespace "a b"/, UsageError);
    const source = { kind: "kubeconfig", path: "/nowhere" } as const;
    await refuses({ source, namespace: ["a", "b"], snapshot: "/tmp" }, /--snapshot needs one/, UsageError);
  });
});

describe("`serve` of the embedded cluster", () => {
  it("serves its objects at the paths of Kubernetes", async () => {
    await using served = await serve({ port: 0 });
    await served.synced();
    assert.deepEqual(served.resources.slice(0, 4), ["namespaces", "nodes", "pods", "deployments.apps"]);
    const pods = await list(served, "/api/v1/pods");
    assert.ok(pods.items.length > 60);
    const shop = await list(served, "/api/v1/namespaces/shop/pods");
    assert.ok(shop.items.length > 5 && shop.items.every(({ metadata }) => metadata.namespace === "shop"));
    assert.equal((await list(served, "/api/v1/nodes")).items.length, 6);
    assert.ok((await list(served, "/apis/apps/v1/deployments")).items.length > 10);
    assert.equal(await status(served, "/readyz"), 200);
    assert.equal(await status(served, "/api/v1/secrets"), 404);
    const root = await (await fetch(`${served.url}/`)).json();
    assert.ok(root.paths.includes("/api/v1"));
  });

  it("is not ready beyond the maximum lag, and says of which resource, and by how much", async () => {
    await refuses({ maxLagMs: -1 }, /maxLagMs of -1/, UsageError);
    await using served = await serve({ port: 0, maxLagMs: 0 });
    await served.synced();
    const response = await fetch(`${served.url}/readyz`);
    assert.equal(response.status, 503);
    assert.match(
      await response.text(),
      /informer\/nodes failed: no news from the API server for [0-9.]+ s, [0-9.]+ s more than the maximum of 0 s; /,
    );
  });

  it("serves metrics of its informers and requests, with the option `metrics`", async () => {
    await using plain = await serve({ port: 0 });
    assert.equal(await status(plain, "/metrics"), 404);
    await using served = await serve({ port: 0, metrics: true });
    await served.synced();
    await list(served, "/api/v1/nodes");
    const families = parsePrometheusText(await (await fetch(`${served.url}/metrics`)).text());
    const count = families.get("read_api_requests_total")?.samples.find(({ labels }) =>
      labels.get("resource") === "nodes" && labels.get("verb") === "list"
    );
    assert.equal(count?.value, 1);
    assert.equal(families.get("informer_objects")?.samples.length, served.resources.length);
    assert.ok((families.get("read_api_watches")?.samples.length ?? 0) > 0);
  });

  it("answers pages of the origins that it is given, and of no other one", async () => {
    await refuses({ corsOrigins: ["*"] }, /--cors-origin '\*' needs --token-file/, UsageError);
    await refuses({ corsOrigins: ["a.example"] }, /Cannot allow the origin "a.example"/, UsageError);
    await using served = await serve({ port: 0, corsOrigins: ["https://a.example"] });
    await served.synced();
    const ask = (origin: string) =>
      fetch(`${served.url}/api/v1/nodes`, { headers: { "Origin": origin, "Sec-Fetch-Site": "cross-site" } });
    const allowed = await ask("https://a.example");
    assert.equal(allowed.headers.get("Access-Control-Allow-Origin"), "https://a.example");
    assert.equal(allowed.headers.get("Cache-Synced"), "true");
    assert.equal((await allowed.json()).kind, "NodeList");
    const refused = await ask("https://b.example");
    assert.equal(refused.status, 403);
    await refused.body?.cancel();
  });

  it("answers pages of every origin where it may, and as many watches as it may have", async () => {
    const token = "a-token-of-some-length";
    await using served = await serve({ port: 0, corsOrigins: ["*"], token, maxWatchesPerClient: 1 });
    await served.synced();
    const headers = { Origin: "https://a.example", Authorization: `Bearer ${token}` };
    const path = `${served.url}/api/v1/nodes?watch=true`;
    const watch = await fetch(path, { headers });
    assert.equal(watch.headers.get("Access-Control-Allow-Origin"), "*");
    const another = await fetch(path, { headers });
    for (const { body } of [watch, another]) await body?.cancel();
    assert.equal(another.status, 429);
  });

  it("refuses the page, in plain words, to a browser that may not read everything", async () => {
    await using served = await serve({ port: 0, readerNamespaces: ["shop"] });
    const page = await fetch(served.url, { headers: { Accept: "text/html" } });
    const text = await page.text();
    assert.equal(page.status, 403);
    assert.match(text, /^This page shows everything .*: only the namespace "shop" may be read\.\n$/);
    const answer = await fetch(served.url);
    assert.equal((await answer.json()).reason, "Forbidden");
  });

  it("refuses values that are none of an option", async () => {
    const [freshness, storage] = ["now", "files"] as never[];
    await refuses(
      { freshness },
      /^freshness must be consistent, stale-if-error, as-is, not "now"$/,
      UsageError,
    );
    await refuses({ storage }, /^storage must be texts, short-texts, not "files"$/, UsageError);
    const corsOrigins = ["*", "https://a.example"];
    await refuses({ corsOrigins }, /--cors-origin '\*' allows every origin: remove the others/, UsageError);
  });

  it("serves a page with a strict content security policy, and its state", async () => {
    await using served = await serve({ port: 0 });
    await served.synced();
    const page = await fetch(`${served.url}/`, { headers: { Accept: "text/html,*/*;q=0.8" } });
    assert.equal(page.headers.get("Content-Type"), "text/html; charset=utf-8");
    assert.match(page.headers.get("Content-Security-Policy") ?? "", /default-src 'none'/);
    assert.ok((await page.text()).includes('<h1><a href="#">listwatch</a></h1>'));
    for (const [file, type, text] of [["style.css", "css", STYLE], ["script.js", "javascript", SCRIPT]]) {
      const response = await fetch(`${served.url}/dashboard/${file}`);
      assert.equal(response.headers.get("Content-Type"), `text/${type}; charset=utf-8`);
      assert.match(response.headers.get("Content-Security-Policy") ?? "", /default-src 'none'/);
      assert.equal(await response.text(), text);
    }

    const state = await fetch(`${served.url}/dashboard/state`);
    assert.equal(state.headers.get("Content-Type"), "application/json");
    assert.match(state.headers.get("Content-Security-Policy") ?? "", /default-src 'none'/);
    const { cluster, resources } = await state.json() as DashboardState;
    assert.equal(cluster.name, "embedded cluster");
    assert.ok(resources.every(({ synced }) => synced));
    const pods = resources.find(({ name }) => name === "pods");
    assert.deepEqual([pods?.path, pods?.kind, pods?.namespaced], ["/api/v1/pods", "Pod", true]);
    assert.ok(pods?.shortNames.includes("po"));
  });

  it("answers what the page asks of the read API", async () => {
    await using served = await serve({ port: 0 });
    await served.synced();
    const read = async (path: string, query: Record<string, string>) =>
      await (await fetch(`${served.url}${path}?${new URLSearchParams(query)}`)).json();
    for (const { name, namespaced, path } of RESOURCES) {
      for (const groupBy of stateCountsOf(name)?.groupBy ?? []) {
        assert.equal((await read(path, { groupBy: groupBy.join() })).kind, "GroupList", name);
      }
      for (
        const text of ["not ready", "crash web", "node=worker-1 app=web", "owner=x warning", "terminating"]
      ) {
        const wanted = wantedOf(parseSearch(text), { name, namespaced });
        if (wanted === undefined) continue;
        const { filter = "", labelSelector = "" } = wanted;
        const { window } = await read(path, { sortBy: "metadata.name", limit: "1", filter, labelSelector });
        assert.equal(typeof window?.total, "number", `${name}: ${text}`);
      }
    }
    const yaml = await fetch(`${served.url}/api/v1/namespaces/shop/services/web`, {
      headers: { Accept: "application/yaml, application/json;q=0.5" },
    });
    assert.match(yaml.headers.get("Content-Type") ?? "", /yaml/);
    assert.match(await yaml.text(), /^kind: Service$/m);
  });

  it("has the groups in the API server's order in discovery, whatever the order of the names", async () => {
    await using cluster = await RealCluster.start();
    const groups = async (url: string) => {
      const { groups } = await (await fetch(`${url}/apis`)).json() as { groups: { name: string }[] };
      return groups.map(({ name }) => name);
    };
    const resources = ["crd", "leases", "deployments", "pods", "jobs"];
    await using served = await serve(on(cluster, { resources }));
    const expected = ["apiextensions.k8s.io", "coordination.k8s.io", "apps", "batch"];
    const order = await groups(cluster.url);
    assert.deepEqual(await groups(served.url), order.filter((name) => expected.includes(name)));
    assert.deepEqual(served.resources[0], "customresourcedefinitions.apiextensions.k8s.io");
  });

  it("reports its steps in order", async () => {
    const steps: ServeStep[] = [];
    await using served = await serve({ port: 0, onStep: (step) => steps.push(step) });
    await served.synced();
    await served.stop();
    const types = steps.map(({ type }) => type).filter((type, i, all) => type !== all[i - 1]);
    assert.deepEqual(types, ["connected", "listening", "syncing", "synced"]);
  });

  it("ends streams and closes the socket when its signal is aborted", async () => {
    const stop = new AbortController();
    const served = await serve({ port: 0, signal: stop.signal });
    await served.synced();
    const watch = await fetch(`${served.url}/api/v1/pods?watch=1`);
    const window = await fetch(`${served.url}/api/v1/pods?watch=1&sortBy=metadata.name&limit=5`);
    const ended = Promise.allSettled([watch.text(), window.text()]);
    stop.abort();
    await served.finished;
    await ended;
    await assert.rejects(fetch(`${served.url}/readyz`));
  });

  it("resolves resource names, and refuses unknown ones", async () => {
    await using served = await serve({ port: 0, resources: ["po", "deploy"] });
    assert.deepEqual(served.resources, ["pods", "deployments.apps"]);
    await refuses(
      { resources: ["pdos"] },
      /"pdos": the server has no such resource; did you mean pods/,
      UsageError,
    );
    await refuses({ resources: ["secrets"] }, /--allow-secrets/, UsageError);
  });

  it("requires the token everywhere except for health checks", async () => {
    await using served = await serve({ port: 0, token: "a-token-of-some-length" });
    await served.synced();
    for (
      const path of [
        "/",
        "/api",
        "/api/v1/pods",
        "/dashboard/script.js",
        "/dashboard/state",
      ]
    ) {
      assert.equal(await status(served, path), 401, path);
      assert.equal(await status(served, path, { Authorization: "Bearer a-token-of-some-length" }), 200, path);
    }
    assert.equal(await status(served, "/readyz"), 200);
    await assert.rejects(serve({ port: 0, token: "s3cret" }), /The token is shorter than 16 characters/);
  });

  it("refuses a port in use, a foreign address, and a public host without a token", async () => {
    await using served = await serve({ port: 0 });
    const port = Number(new URL(served.url).port);
    await refuses(
      { port },
      new RegExp(`^Cannot listen on 127.0.0.1:${port}: the port is in use; choose another with --port`),
    );
    await refuses({ host: "192.0.2.1", allowAnonymous: true }, /^Cannot listen on 192\.0\.2\.1/);
    await refuses({ host: "0.0.0.0" }, /^Cannot listen on 0\.0\.0\.0: every client/, UsageError);
  });
});

describe("`serve` of the cluster of a kubeconfig", () => {
  it("serves its objects and their changes", async () => {
    await using cluster = await RealCluster.start();
    cluster.server.create("v1/pods", pod("web-1", { namespace: "shop" }));
    await using served = await serve(on(cluster));
    await served.synced();
    assert.ok(served.resources.includes("statefulsets.apps") && !served.resources.includes("secrets"));
    assert.deepEqual((await list(served, "/api/v1/pods")).items.map(({ metadata }) => metadata.name), [
      "web-1",
    ]);
    const { metadata } = cluster.server.create("v1/pods", pod("web-2", { namespace: "shop" }));
    const fresh =
      `/api/v1/pods?resourceVersion=${metadata.resourceVersion}&resourceVersionMatch=NotOlderThan`;
    assert.equal((await list(served, fresh)).items.length, 2);
  });

  it("serves Secrets only if they are named and allowed", async () => {
    await using cluster = await RealCluster.start();
    cluster.server.create("v1/secrets", secret("s", { namespace: "shop" }));
    await using served = await serve(on(cluster, { resources: ["secrets"], allowSecrets: true }));
    await served.synced();
    assert.equal((await list(served, "/api/v1/secrets")).items.length, 1);
  });

  it("reflects one namespace, and refuses requests for others", async () => {
    await using cluster = await RealCluster.start();
    for (const namespace of ["shop", "other"]) {
      cluster.server.create("v1/configmaps", configMap("c", { namespace }));
    }
    await using served = await serve(on(cluster, { namespace: "shop", resources: ["configmaps", "nodes"] }));
    await served.synced();
    const seen = await list(served, "/api/v1/configmaps");
    assert.deepEqual(seen.items.map(({ metadata }) => metadata.namespace), ["shop"]);
    assert.equal(await status(served, "/api/v1/namespaces/other/configmaps"), 403);
    assert.equal(await status(served, "/api/v1/nodes"), 200);
    assert.ok(!cluster.server.requests.some(({ path }) => path === "/api/v1/configmaps"));
  });

  it("skips a default resource that it may not list, and rejects for a named one", async () => {
    await using cluster = await RealCluster.start();
    cluster.server.intercept(answerStatus(403, { message: "not you" }), {
      match: ({ path }) => path === "/api/v1/configmaps",
    });
    const steps: ServeStep[] = [];
    await using served = await serve(on(cluster, { onStep: (step) => steps.push(step) }));
    assert.ok(!served.resources.includes("configmaps") && served.resources.includes("pods"));
    assert.deepEqual(steps.find(({ type }) => type === "skipped"), {
      type: "skipped",
      resources: ["configmaps"],
    });
    await refuses(
      on(cluster, { resources: ["pods", "configmaps"] }),
      /^Cannot list configmaps at .*403 Forbidden: .*not you/,
    );
  });

  it("rejects with one line for a refusal and for an unknown context", async () => {
    await using cluster = await RealCluster.start();
    const unauthorized = cluster.server.intercept(answerStatus(401));
    await refuses(
      on(cluster),
      /^Cannot discover the resources at .*context "test".*401 Unauthorized.*log in again/,
    );
    unauthorized();
    const forbidden = cluster.server.intercept(answerStatus(403));
    await refuses(on(cluster), /403 Forbidden/);
    forbidden();
    const steps: ServeStep[] = [];
    const unlisted = cluster.server.intercept(answerStatus(403, { message: "not you" }), {
      match: ({ query }) => query.limit === "1",
    });
    await refuses(
      on(cluster, { onStep: (step) => steps.push(step) }),
      /^Cannot list \S+ at .*403 Forbidden: not you/,
    );
    assert.deepEqual(steps, []);
    unlisted();
    const missing = { kind: "kubeconfig" as const, path: cluster.kubeconfig, context: "prod" };
    await assert.rejects(serve({ port: 0, source: missing }), /prod/);
  });

  it("rejects at once when the connection is refused", async () => {
    await using cluster = await RealCluster.start();
    await cluster.stopListening();
    await refuses(on(cluster), /^Cannot reach http:.*context "test".*: connection refused/);
  });

  it("serves the last known state during an outage, and reports its begin and end", async () => {
    await using cluster = await RealCluster.start();
    cluster.server.create("v1/pods", pod("web-1", { namespace: "shop" }));
    const clock = new FakeClock(Date.now());
    const steps: string[] = [];
    await using served = await serve(on(cluster, {
      resources: ["pods", "nodes", "services"],
      clock,
      onStep: ({ type }) => void (/trouble|recovered/.test(type) && steps.push(type)),
    }));
    await served.synced();
    const restore = cluster.server.intercept(answerStatus(500));
    cluster.server.closeWatches();
    while (steps.length === 0) await clock.advance(500);
    assert.equal((await list(served, "/api/v1/pods")).items.length, 1);
    assert.equal(await status(served, "/readyz"), 200);
    restore();
    // The clock may overtake answers on the sockets: then an outage
    // has a second error code, and is reported again.
    while (!steps.includes("recovered")) await clock.advance(500);
    assert.equal(steps[0], "trouble");
    await served.stop();
    assert.equal(clock.pendingTimers, 0);
  });

  it("stops while its first lists are missing", async () => {
    await using cluster = await RealCluster.start();
    const never = cluster.server.intercept(hang(), { match: ({ isWatch }) => isWatch });
    await using served = await serve(on(cluster, { resources: ["pods"] }));
    await served.stop();
    never();
    const stop = new AbortController();
    cluster.server.intercept((request, next, context) => {
      stop.abort();
      return hang()(request, next, context);
    });
    await assert.rejects(
      serve(on(cluster, { signal: stop.signal })),
      (error) => error === stop.signal.reason,
    );
  });
});
