import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { InMemoryApiServer } from "@listwatch/cache/testing";
import { call, type Json, patch, summary, watch, withServer } from "./helpers.ts";
import { widgetDefinition } from "../widgets.ts";

const AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

describe("InMemoryApiServer: discovery", () => {
  it("lists resources with all verbs, names and scopes", () =>
    withServer({}, async (server) => {
      const { body } = await call(server, "GET", "/api/v1");
      const pods = body.resources.find(({ name }: Json) => name === "pods");
      assert.deepEqual(pods, {
        name: "pods",
        singularName: "pod",
        namespaced: true,
        kind: "Pod",
        verbs: ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
        shortNames: ["po"],
        categories: ["all"],
      });
      const groups = (await call(server, "GET", "/apis")).body.groups.map(({ name }: Json) => name);
      assert.ok(groups.includes("apps") && groups.includes("batch"));
      assert.equal((await call(server, "GET", "/apis/apps/v1")).body.groupVersion, "apps/v1");
      assert.equal((await call(server, "GET", "/apis/apps/v9")).status, 404);
    }));

  it("is aggregated on request, and answers 304 without a Content-Type if nothing changed", () =>
    withServer({}, async (server) => {
      const first = await server.fetch("http://in-memory/apis", { headers: { Accept: AGGREGATED } });
      assert.equal(first.headers.get("Content-Type"), AGGREGATED);
      const { items } = await first.json();
      assert.ok(items.some(({ metadata }: Json) => metadata.name === "apps"));
      const etag = first.headers.get("ETag")!;
      const second = await server.fetch("http://in-memory/apis", {
        headers: { Accept: AGGREGATED, "If-None-Match": etag },
      });
      assert.deepEqual([second.status, second.headers.get("Content-Type"), await second.text()], [
        304,
        null,
        "",
      ]);
    }));

  it("has custom resources", () =>
    withServer({
      customResources: [{
        group: "x.io",
        version: "v1",
        resource: "dials",
        kind: "Dial",
        namespaced: false,
        shortNames: ["dl"],
      }],
    }, async (server) => {
      const { body } = await call(server, "GET", "/apis/x.io/v1");
      assert.deepEqual(body.resources.map(({ name, shortNames }: Json) => [name, shortNames]), [["dials", [
        "dl",
      ]]]);
      assert.equal((await call(server, "GET", "/apis/x.io/v1/gizmos")).body, "404 page not found\n");
    }));

  it("is served beside version and health", () =>
    withServer({}, async (server) => {
      assert.equal((await call(server, "GET", "/version")).body.gitVersion, "v1.36.3");
      for (const path of ["/healthz", "/livez", "/readyz"]) {
        // deno-lint-ignore no-await-in-loop
        const { status, body } = await call(server, "GET", path);
        assert.deepEqual([path, status, body], [path, 200, "ok"]);
      }
    }));
});

const DEFINITION = widgetDefinition({
  names: { shortNames: ["wd"], categories: ["gear"] },
  version: { subresources: { status: {} }, selectableFields: [{ jsonPath: ".spec.color" }] },
});
const DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS = "/apis/example.com/v1/namespaces/shop/widgets";

describe("InMemoryApiServer: a CustomResourceDefinition", () => {
  it("is established at once, and adds its resource", () =>
    withServer({}, async (server) => {
      assert.equal((await call(server, "GET", WIDGETS)).status, 404);
      const { body } = await call(server, "POST", DEFINITIONS, { body: DEFINITION });
      assert.ok(
        body.status.conditions.some(({ type, status }: Json) => type === "Established" && status === "True"),
      );
      const created = await call(server, "POST", WIDGETS, {
        body: {
          apiVersion: "example.com/v1",
          kind: "Widget",
          metadata: { name: "w" },
          spec: { color: "red" },
        },
      });
      assert.deepEqual([created.status, created.body.metadata.generation], [201, 1]);
      const found = await call(server, "GET", `${WIDGETS}?fieldSelector=spec.color%3Dred`);
      assert.equal(found.body.items.length, 1);
      assert.deepEqual(
        (await call(server, "GET", "/apis/example.com/v1")).body.resources[0].categories,
        ["gear"],
      );
    }));

  it("adds the version that is stored, if it is served", () =>
    withServer({}, async (server) => {
      const { spec, ...rest } = DEFINITION;
      const [stored] = spec.versions;
      const older = { ...stored, name: "v1alpha1", storage: false };
      server.create("apiextensions.k8s.io/v1/customresourcedefinitions", {
        ...rest,
        spec: { ...spec, versions: [older, stored] },
      });
      assert.equal((await call(server, "GET", WIDGETS)).status, 200);
      server.update("apiextensions.k8s.io/v1/customresourcedefinitions", {
        ...rest,
        spec: { ...spec, versions: [{ ...stored, served: false }] },
      });
      assert.equal((await call(server, "GET", WIDGETS)).status, 404);
      server.update("apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION);
      assert.equal((await call(server, "GET", WIDGETS)).status, 200);
      server.update("apiextensions.k8s.io/v1/customresourcedefinitions", {
        ...rest,
        spec: { ...spec, versions: [{ ...stored, name: "v2" }] },
      });
      assert.equal((await call(server, "GET", WIDGETS)).status, 404);
      assert.equal((await call(server, "GET", WIDGETS.replace("/v1/", "/v2/"))).status, 200);
    }));

  it("deletes its objects with itself, and ends their watches", () =>
    withServer({}, async (server) => {
      server.create("apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION);
      server.create("example.com/v1/widgets", { metadata: { name: "w", namespace: "shop" } });
      const reader = await watch(server, `${WIDGETS}?watch=1&resourceVersion=3`);
      assert.equal((await call(server, "DELETE", `${DEFINITIONS}/widgets.example.com`)).status, 200);
      assert.deepEqual(summary(await reader.take(2)), ["DELETED shop/w 4"]);
      assert.equal(server.openWatches, 0);
      assert.equal((await call(server, "GET", WIDGETS)).status, 404);
    }));

  it("stays, and takes no new objects, until finalizers hold none of its objects", () =>
    withServer({}, async (server) => {
      server.create("apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION);
      const held = { name: "held", namespace: "shop", finalizers: ["a.b/c"] };
      server.create("example.com/v1/widgets", { metadata: held });
      server.create("example.com/v1/widgets", { metadata: { name: "w", namespace: "shop" } });
      const reader = await watch(server, `${WIDGETS}?watch=1&resourceVersion=4`);
      const definition = `${DEFINITIONS}/widgets.example.com`;
      for (const version of ["7", "7"]) {
        const { body } = await call(server, "DELETE", definition);
        assert.deepEqual(body.metadata.finalizers, ["customresourcecleanup.apiextensions.k8s.io"]);
        assert.equal(body.metadata.resourceVersion, version);
      }
      assert.deepEqual(summary(await reader.take(2)), ["MODIFIED shop/held 5", "DELETED shop/w 6"]);
      const widget = { apiVersion: "example.com/v1", kind: "Widget", metadata: { name: "new" } };
      const refused = await call(server, "POST", WIDGETS, { body: widget });
      assert.deepEqual([refused.status, refused.body.message, refused.body.details], [
        403,
        'widgets.example.com "new" is forbidden: create not allowed while custom resource definition is terminating',
        { name: "new", group: "example.com", kind: "widgets" },
      ]);
      await patch(server, `${WIDGETS}/held`, { metadata: { finalizers: null } });
      assert.deepEqual(summary(await reader.take(1)), ["DELETED shop/held 8"]);
      assert.equal((await call(server, "GET", definition)).status, 404);
      assert.equal((await call(server, "GET", WIDGETS)).status, 404);
    }));

  it("stays where it has a finalizer of its own, also when its objects are deleted", () =>
    withServer({}, async (server) => {
      const metadata = { ...DEFINITION.metadata, finalizers: ["a.b/own"] };
      server.create("apiextensions.k8s.io/v1/customresourcedefinitions", { ...DEFINITION, metadata });
      const held = { name: "held", namespace: "shop", finalizers: ["a.b/c"] };
      server.create("example.com/v1/widgets", { metadata: held });
      await call(server, "DELETE", `${DEFINITIONS}/widgets.example.com`);
      await patch(server, `${WIDGETS}/held`, { metadata: { finalizers: null } });
      const { body } = await call(server, "GET", `${DEFINITIONS}/widgets.example.com`);
      assert.deepEqual(body.metadata.finalizers, ["a.b/own"]);
    }));

  it("requires a kind on creation and a resourceVersion on update, and refuses strategic patches", () =>
    withServer({}, async (server) => {
      server.create("apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION);
      const kindless = await call(server, "POST", WIDGETS, { body: { metadata: { name: "w" } } });
      assert.match(kindless.body.message, /Object 'Kind' is missing in/);
      const otherKind = await call(server, "POST", WIDGETS, {
        body: { apiVersion: "example.com/v1", kind: "Gadget", metadata: { name: "w" } },
      });
      assert.deepEqual([otherKind.status, otherKind.body.message], [
        422,
        'Gadget.example.com "w" is invalid: kind: Invalid value: "Gadget": must be Widget',
      ]);
      const widget = { apiVersion: "example.com/v1", kind: "Widget", metadata: { name: "w" } };
      await call(server, "POST", WIDGETS, { body: widget });
      const blind = await call(server, "PUT", `${WIDGETS}/w`, { body: widget });
      assert.deepEqual([blind.status, blind.body.message], [
        422,
        'widgets.example.com "w" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an ' +
        "update",
      ]);
      assert.equal((await patch(server, `${WIDGETS}/w`, { spec: {} }, "strategic-merge")).status, 415);
      const missing = await call(server, "GET", `${WIDGETS}/unknown`);
      assert.deepEqual(missing.body.details, { name: "unknown", group: "example.com", kind: "widgets" });
      assert.equal(missing.body.message, 'widgets.example.com "unknown" not found');
    }));

  it("keeps labels out of a status update, as kube-apiserver does for custom resources", () =>
    withServer({}, async (server) => {
      server.create("apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION);
      server.create("example.com/v1/widgets", { metadata: { name: "w", namespace: "shop" } });
      const { body } = await patch(server, `${WIDGETS}/w/status`, {
        metadata: { labels: { a: "b" } },
        status: { phase: "Ready" },
      });
      assert.deepEqual([body.metadata.labels, body.status], [undefined, { phase: "Ready" }]);
    }));
});

describe("InMemoryApiServer: a namespace", () => {
  it("stays as long as it has a finalizer of its own", () =>
    withServer({}, async (server) => {
      server.create("v1/namespaces", { metadata: { name: "shop", finalizers: ["a.b/c"] } });
      server.create("v1/pods", { metadata: { name: "p", namespace: "shop" } });
      await call(server, "DELETE", "/api/v1/namespaces/shop");
      assert.equal(server.list("v1/pods").items.length, 0);
      assert.notEqual(server.get("v1/namespaces", "shop"), undefined);
    }));

  it("has its name as a label, and is Active", () =>
    withServer({}, async (server) => {
      const { body } = await call(server, "POST", "/api/v1/namespaces", {
        body: { metadata: { name: "shop" } },
      });
      assert.deepEqual([body.metadata.labels, body.status], [
        { "kubernetes.io/metadata.name": "shop" },
        { phase: "Active" },
      ]);
    }));

  it("has its name as that label whatever a client writes", () =>
    withServer({}, async (server) => {
      const labels = { "kubernetes.io/metadata.name": "other", team: "a" };
      const { body } = await call(server, "POST", "/api/v1/namespaces", {
        body: { metadata: { name: "shop", labels } },
      });
      assert.deepEqual(body.metadata.labels, { "kubernetes.io/metadata.name": "shop", team: "a" });
      for (const labels of [undefined, { "kubernetes.io/metadata.name": "other" }]) {
        // deno-lint-ignore no-await-in-loop -- one after the other
        const { body } = await call(server, "PUT", "/api/v1/namespaces/shop", {
          body: { metadata: { name: "shop", labels } },
        });
        assert.deepEqual(body.metadata.labels, { "kubernetes.io/metadata.name": "shop" });
      }
    }));

  it("is Terminating first, then loses its objects, and then is deleted", () =>
    withServer({}, async (server) => {
      server.create("v1/namespaces", { metadata: { name: "shop" } });
      server.create("v1/pods", { metadata: { name: "p", namespace: "shop" } });
      server.create("v1/pods", { metadata: { name: "p", namespace: "shop-2" } });
      const reader = await watch(server, "/api/v1/namespaces?watch=1&resourceVersion=4");
      const { body } = await call(server, "DELETE", "/api/v1/namespaces/shop");
      assert.equal(body.status.phase, "Terminating");
      assert.deepEqual(summary(await reader.take(2)), ["MODIFIED shop 5", "DELETED shop 7"]);
      assert.deepEqual(server.list("v1/pods").items.map(({ metadata }) => metadata?.namespace), ["shop-2"]);
    }));

  it("stays as long as a finalizer keeps an object in it, and refuses new objects", () =>
    withServer({}, async (server) => {
      server.create("v1/namespaces", { metadata: { name: "shop" } });
      server.create("v1/pods", { metadata: { name: "p", namespace: "shop", finalizers: ["a.b/c"] } });
      await call(server, "DELETE", "/api/v1/namespaces/shop");
      const terminating = server.get("v1/namespaces", "shop");
      assert.notEqual(terminating, undefined);
      await call(server, "DELETE", "/api/v1/namespaces/shop");
      assert.deepEqual(server.get("v1/namespaces", "shop"), terminating, "a second delete changes nothing");
      const late = await call(server, "POST", "/api/v1/namespaces/shop/pods", {
        body: { metadata: { name: "q" } },
      });
      assert.deepEqual([late.status, late.body.reason], [403, "Forbidden"]);
      server.patch("v1/pods", "shop/p", { metadata: { finalizers: null } });
      assert.equal(server.get("v1/namespaces", "shop"), undefined);
    }));
});

it("InMemoryApiServer.close refuses later connections", async () => {
  const server = new InMemoryApiServer();
  const hanging = server.fetch("http://in-memory/api/v1/pods?resourceVersion=99");
  server.close();
  await assert.rejects(hanging, TypeError);
  await assert.rejects(
    server.fetch("http://in-memory/api"),
    (error: Error) =>
      error instanceof TypeError && (error.cause as { code?: string }).code === "ECONNREFUSED",
  );
});
