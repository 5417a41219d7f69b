import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isNotFound, newCluster, SharedIndexInformer, StatusError } from "@listwatch/cache";
import { findResource, formatResource } from "@listwatch/cache/client";
import { answerStatus, FakeClock, InMemoryApiServer } from "@listwatch/cache/testing";
import { LogRecorder } from "../log_recorder.ts";
import { widgetDefinition } from "../widgets.ts";

const HINTS = [
  ["v1/pod", `did you mean "v1/pods"?`],
  ["v1/deployments", `did you mean "apps/v1/deployments"?`],
  ["apps/v1beta1/deployments", `did you mean "apps/v1/deployments"?`],
  ["apps/v1/po", `did you mean "v1/pods"?`],
  ["example.com/v1/widgets", `the server has no API group "example.com": is its definition (CRD) installed?`],
  ["apps/v2/widgets", `the server has "apps" in v1 only`],
  ["apps/v1/widgets", `the server has no resource of this name: is its definition (CRD) installed?`],
] as const;

describe("findResource", () => {
  for (
    const [name, found] of [
      ["pods", "v1/pods"],
      ["Pod", "v1/pods"],
      ["po", "v1/pods"],
      ["deploy", "apps/v1/deployments"],
      ["deployments.apps", "apps/v1/deployments"],
      ["deployments.v1.apps", "apps/v1/deployments"],
      ["apps/v1/deployments", "apps/v1/deployments"],
      ["v1/pods", "v1/pods"],
      ["pods.v1.", "v1/pods"],
    ]
  ) {
    it(`finds ${name}`, async () => {
      using server = new InMemoryApiServer();
      const cluster = newCluster({ server: "http://in-memory", fetch: server.fetch });
      const resource = await findResource(cluster, name);
      assert.equal(formatResource(resource), found);
      assert.equal((await cluster.resource(resource).list()).items.length, 0);
    });
  }

  it("fails if the server has none of the name", async () => {
    using server = new InMemoryApiServer();
    const cluster = newCluster({ server: "http://in-memory", fetch: server.fetch });
    await assert.rejects(findResource(cluster, "widgets"), (error) => {
      assert.ok(isNotFound(error) && error instanceof StatusError);
      assert.match(
        error.message,
        /^Cannot find the resource "widgets": http:\/\/in-memory has none of this name$/,
      );
      return true;
    });
    for (
      const name of [
        "deployments.batch",
        "deployments.v2.apps",
        "pods.v2.",
        "v1/deployments",
        "apps/v2/deployments",
      ]
    ) {
      await assert.rejects(findResource(cluster, name), isNotFound, name);
    }
  });

  it("takes the kind for a name where a resource has no other, and says which groups did not respond", async () => {
    const versions = [{
      version: "v1",
      resources: [{ resource: "widgets", responseKind: { kind: "Widget" } }],
    }];
    const items = [{ metadata: { name: "example.com" }, versions }, {
      metadata: { name: "metrics.k8s.io" },
      versions: [{ version: "v1beta1", freshness: "Stale" }],
    }];
    const fetch = (url: string) =>
      Response.json({ kind: "APIGroupDiscoveryList", items: url.endsWith("/apis") ? items : [] });
    const cluster = newCluster({ server: "http://in-memory", fetch });
    assert.equal((await findResource(cluster, "Widget")).resource, "widgets");
    await assert.rejects(
      findResource(cluster, "nodes"),
      /of this name \(metrics\.k8s\.io\/v1beta1 did not respond\)$/,
    );
  });
});

describe("ResourceClient.list", () => {
  for (const [resource, hint] of HINTS) {
    it(`says what the server has in place of ${resource}`, async () => {
      using server = new InMemoryApiServer();
      const cluster = newCluster({ server: "http://in-memory", fetch: server.fetch });
      for (
        const open of [() => cluster.resource(resource).list(), () => cluster.resource(resource).watch()]
      ) {
        await assert.rejects(open, (error) => {
          assert.ok(error instanceof StatusError);
          assert.equal(error.httpStatus, 404);
          assert.ok(error.message.endsWith(`; ${hint}`), error.message);
          return true;
        });
      }
    });
  }

  it("says nothing of it where the server does not say what it has", async () => {
    for (const status of [403, 404, 503]) {
      using server = new InMemoryApiServer();
      server.intercept(answerStatus(status), { match: ({ path }) => path === "/api" || path === "/apis" });
      server.intercept(answerStatus(404, { message: "not here" }), {
        match: ({ path }) => path.endsWith("/widgets"),
      });
      const cluster = newCluster({ server: "http://in-memory", fetch: server.fetch });
      const widgets = cluster.resource("example.com/v1/widgets");
      await assert.rejects(widgets.list(), /the server answered 404: not here$/);
    }
  });

  it("says nothing of it where the server has the resource, and answers 404 nevertheless", async () => {
    using server = new InMemoryApiServer();
    server.intercept(answerStatus(404, { message: "not here" }), {
      match: ({ path }) => path.endsWith("/pods"),
    });
    const cluster = newCluster({ server: "http://in-memory", fetch: server.fetch });
    await assert.rejects(cluster.resource("v1/pods").list(), /the server answered 404: not here$/);
  });

  it("fails as before if the server has no aggregated discovery", async () => {
    using server = new InMemoryApiServer();
    const fetch = (url: string, init?: RequestInit) =>
      server.fetch(url, { ...init, headers: { Accept: "application/json" } });
    const cluster = newCluster({ server: "http://in-memory", fetch });
    await assert.rejects(cluster.resource("v1/pod").list(), { message: /NotFound|could not find/ });
  });
});

describe("SharedIndexInformer.status", () => {
  it("says that retries cannot fix the name of a resource, until the server has it", async () => {
    const clock = new FakeClock();
    using server = new InMemoryApiServer({ clock });
    const log = new LogRecorder();
    const cluster = newCluster({ server: "http://in-memory", fetch: server.fetch, clock });
    const widgets = new SharedIndexInformer(cluster.resource("example.com/v1/widgets"), {
      clock,
      logger: log,
    });
    await using _running = widgets.start();
    await clock.advance(0);
    const { outage } = widgets.status();
    assert.match(outage?.permanent ?? "", /no API group "example.com"/);
    const warnings = log.of("warn");
    assert.equal(warnings.length, 1);
    assert.match(warnings[0], /but retries cannot fix it$/);
    server.create("apiextensions.k8s.io/v1/customresourcedefinitions", widgetDefinition());
    await clock.advance(60_000);
    assert.equal(widgets.hasSynced(), true);
    assert.equal(widgets.status().outage, undefined);
  });

  it("says nothing of the kind while the server is away", async () => {
    const clock = new FakeClock();
    const fetch = () => Promise.reject(new TypeError("fetch failed"));
    const cluster = newCluster({ server: "http://in-memory", fetch, clock });
    const pods = new SharedIndexInformer(cluster.resource("v1/pods"), { clock, logger: new LogRecorder() });
    await using _running = pods.start();
    await clock.advance(0);
    assert.equal(pods.status().outage?.permanent, undefined);
    assert.equal(pods.status().outage?.failedTries, 1);
  });
});
