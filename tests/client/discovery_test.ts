import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isForbidden, newCluster, SharedIndexInformer, StatusError } from "@listwatch/cache";
import { type ApiResource, readApi } from "@listwatch/cache/hono";
import { answerStatus, InMemoryApiServer, type Interceptor } from "@listwatch/cache/testing";
import { discover, type Discovery } from "../../src/client/discovery.ts";
import { WIDGET_RESOURCE } from "../widgets.ts";

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

  it("skips a group whose answer is no list of resources, and names it", async () => {
    for (const answer of [null, { resources: [null] }, { resources: [{}] }]) {
      const server = new InMemoryApiServer();
      server.intercept(plainOnly);
      server.intercept(() => Response.json(answer), { match: ({ path }) => path === "/apis/apps/v1" });
      // deno-lint-ignore no-await-in-loop -- one after the other
      const { resources, unavailable } = await ask(server);
      assert.deepEqual(unavailable, ["apps/v1"]);
      assert.ok(resources.some(({ resource }) => resource === "pods"));
    }
  });

  it("names the stale groups of an aggregated document", async () => {
    const items = [{
      metadata: { name: "metrics.k8s.io" },
      versions: [{ version: "v1beta1", freshness: "Stale" }],
    }, {
      // A group of a server that is away for a moment, with the resources that it had.
      metadata: { name: "example.com" },
      versions: [{ version: "v1", freshness: "Stale", resources: [{ resource: "widgets" }] }],
    }];
    const fetch = (url: string): Response =>
      Response.json({ kind: "APIGroupDiscoveryList", items: url.endsWith("/apis") ? items : [] });
    const { unavailable } = await discover(newCluster({ server: "http://in-memory", fetch }));
    assert.deepEqual(unavailable, ["metrics.k8s.io/v1beta1"]);
  });

  it("knows a subresource status only where it can be read", async () => {
    const statusOf = async (verbs: readonly string[], subresource = "status") => {
      const resources = [{
        resource: "widgets",
        responseKind: { kind: "Widget" },
        scope: "Namespaced",
        verbs: ["get", "list"],
        subresources: [{ subresource, verbs }],
      }];
      const items = [{ metadata: { name: "example.com" }, versions: [{ version: "v1", resources }] }];
      const fetch = (url: string): Response =>
        Response.json({ kind: "APIGroupDiscoveryList", items: url.endsWith("/apis") ? items : [] });
      const found = await discover(newCluster({ server: "http://in-memory", fetch }));
      return found.resources[0].subresources;
    };
    assert.deepEqual(await statusOf(["get", "patch"]), { status: true });
    assert.equal(await statusOf(["patch"]), undefined);
    assert.equal(await statusOf(["get"], "log"), undefined);
  });

  it("knows it without aggregated discovery, too", async () => {
    const widgets = { name: "widgets", kind: "Widget", namespaced: true, verbs: ["get", "list"] };
    const statusOf = async (verbs: readonly string[]) => {
      const answers: Record<string, unknown> = {
        "/api": { versions: [] },
        "/apis": { groups: [{ versions: [{ groupVersion: "example.com/v1" }] }] },
        "/apis/example.com/v1": { resources: [widgets, { ...widgets, name: "widgets/status", verbs }] },
      };
      const fetch = (url: string) => Response.json(answers[new URL(url).pathname]);
      const { resources } = await discover(newCluster({ server: "http://in-memory", fetch }));
      return resources.map(({ resource, subresources }) => [resource, subresources?.status]);
    };
    assert.deepEqual(await statusOf(["get"]), [["widgets", true]]);
    assert.deepEqual(await statusOf(["patch"]), [["widgets", undefined]]);
  });

  it("takes from a cache what definitions say of custom resources, which it has not", async () => {
    const widgets: ApiResource = {
      ...WIDGET_RESOURCE,
      printerColumns: [{ name: "Color", type: "string", jsonPath: ".spec.color" }],
      fieldSelectors: ["metadata.name", "spec.color"],
      subresources: { status: true, scale: { specReplicasPath: ".spec.n", statusReplicasPath: ".status.n" } },
      deprecationWarning: "use v2",
    };
    const informer = new SharedIndexInformer(newCluster({ server: "http://x" }).resource(widgets));
    const cache = readApi({ resources: [{ informer, resource: widgets }], allowAnonymous: true });
    const of = async (change: (text: string) => string) => {
      const fetch = async (url: string | URL | Request, init?: RequestInit) => {
        const answer = await cache.fetch(new Request(url, init));
        return new Response(change(await answer.text()), answer);
      };
      const { resources } = await discover(newCluster({ server: "http://cache", fetch }));
      const [{ printerColumns, fieldSelectors, subresources, deprecationWarning }] = resources;
      return { printerColumns, fieldSelectors, subresources, deprecationWarning };
    };
    const { printerColumns, fieldSelectors, subresources, deprecationWarning } = widgets;
    const expected = { printerColumns, fieldSelectors, subresources, deprecationWarning };
    assert.deepEqual(await of((text) => text), expected);
    // What has another form is left out.
    const odd = await of((text) =>
      text.replace('".spec.color"', "1").replace('["metadata.name","spec.color"]', '[{"a":1}]')
    );
    assert.deepEqual([odd.printerColumns, odd.fieldSelectors], [undefined, undefined]);
    const half = await of((text) =>
      text.replace('"statusReplicasPath":".status.n"', '"statusReplicasPath":1')
    );
    assert.deepEqual(half.subresources, { status: true });
  });

  it("does without the lists and groups that a server leaves out or has as null", async () => {
    const answers: Record<string, unknown> = {
      "/api": { kind: "APIVersions", versions: null },
      "/apis": {
        kind: "APIGroupList",
        groups: [
          { name: "empty.example.com", versions: null },
          { name: "example.com", versions: [{ groupVersion: "example.com/v1" }], preferredVersion: null },
        ],
      },
      "/apis/example.com/v1": {
        kind: "APIResourceList",
        resources: [{ name: "widgets", kind: "Widget", namespaced: true, verbs: null, shortNames: null }],
      },
    };
    const fetch = (url: string): Response => Response.json(answers[new URL(url).pathname]);
    const cluster = newCluster({ server: "http://in-memory", fetch });
    const { resources, unavailable } = await discover(cluster);
    assert.deepEqual(
      resources.map(({ group, resource, verbs, shortNames }) => [group, resource, verbs, shortNames]),
      [
        ["example.com", "widgets", [], []],
      ],
    );
    assert.deepEqual(unavailable, []);
    answers["/apis/example.com/v1"] = { kind: "APIResourceList", resources: null };
    assert.deepEqual((await discover(cluster)).resources, []);
    answers["/apis"] = { kind: "APIGroupList", groups: null };
    assert.deepEqual(await discover(cluster), { resources: [], unavailable: [] });
    const aggregated = [
      { kind: "APIGroupDiscoveryList", items: null },
      { kind: "APIGroupDiscoveryList", items: [{ metadata: null, versions: null }] },
      {
        kind: "APIGroupDiscoveryList",
        items: [{ metadata: { name: "example.com" }, versions: [{ version: "v1", resources: null }] }],
      },
    ];
    for (const document of aggregated) {
      answers["/api"] = answers["/apis"] = document;
      assert.deepEqual(await discover(cluster), { resources: [], unavailable: [] });
    }
  });

  it("takes a server without a core group for one that has the others, as client-go", async () => {
    for (const intercepted of [[], [plainOnly]]) {
      const server = new InMemoryApiServer();
      for (const each of intercepted) server.intercept(each);
      server.intercept(answerStatus(404), { match: ({ path }) => path === "/api" });
      // deno-lint-ignore no-await-in-loop -- one after the other
      const { resources, unavailable } = await ask(server);
      assert.deepEqual(unavailable, []);
      assert.ok(resources.some(({ resource }) => resource === "deployments"));
      assert.ok(!resources.some(({ group }) => group === ""));
    }
    const server = new InMemoryApiServer();
    server.intercept(answerStatus(404), { match: ({ path }) => path === "/apis" });
    await assert.rejects(ask(server), (error) => error instanceof StatusError && error.httpStatus === 404);
  });

  it("rejects with the error of the server", async () => {
    const server = new InMemoryApiServer();
    server.intercept(answerStatus(403));
    await assert.rejects(ask(server), isForbidden);
  });
});
