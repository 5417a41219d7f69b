import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { objectLink, parseRoute, tableLink } from "../../../src/cli/dashboard/browser/route.ts";

const PODS = { name: "pods", path: "/api/v1/pods", namespaced: true };
const NODES = { name: "nodes", path: "/api/v1/nodes", namespaced: false };
const NAMESPACES = { name: "namespaces", path: "/api/v1/namespaces", namespaced: false };
const DEPLOYMENTS = { name: "deployments.apps", path: "/apis/apps/v1/deployments", namespaced: true };
const RESOURCES = [NAMESPACES, NODES, PODS, DEPLOYMENTS];

describe("parseRoute", () => {
  it("reads the links that tableLink writes", () => {
    for (const resource of RESOURCES) {
      for (const namespace of resource.namespaced ? [undefined, "shop", "ä%?#"] : [undefined]) {
        for (const search of ["", "not ready", "app=web ns:x &q=1#"]) {
          const route = { resource, namespace, search, sort: "Restarts:desc", isWide: true };
          assert.deepEqual(parseRoute(tableLink(resource, route), RESOURCES), { view: "table", ...route });
        }
      }
      const plain = { view: "table", resource, namespace: undefined, search: "", sort: "", isWide: false };
      assert.deepEqual(parseRoute(tableLink(resource), RESOURCES), plain);
    }
  });

  it("reads the links that objectLink writes, of any name", () => {
    for (const name of ["web-1", "system:node", "a/b", "ä%", "pods", "namespaces", "a?q=b"]) {
      for (const resource of RESOURCES) {
        const namespace = resource.namespaced ? "shop" : undefined;
        const link = objectLink(resource, { namespace, name });
        assert.deepEqual(parseRoute(link, RESOURCES), { view: "object", resource, namespace, name }, link);
      }
    }
  });

  it("is the beginning for everything that names nothing cached", () => {
    for (
      const hash of [
        "",
        "#",
        "#javascript:alert(1)",
        "#//evil.example/api/v1/pods",
        "#https://evil.example/api/v1/pods",
        "#/api/../dashboard/state/x",
        "#/api/v1/./pods",
        "#/api/v1/namespaces/../pods",
        "#/api/v1/pods/web-1",
        "#/api/v1/namespaces/shop/nodes",
        "#/api/v1/namespaces/shop/pods/web-1/log",
        "#/api/v1/secrets",
        "#/apix/v1/pods",
        "#/api/v1/namespaces//pods",
        "#/api/v1/%zz/pods",
        "#/dashboard/state",
      ]
    ) {
      assert.deepEqual(parseRoute(hash, RESOURCES), { view: "home" }, hash);
    }
  });

  it("has no namespace unless the fragment names one", () => {
    const route = parseRoute("#/api/v1/pods", RESOURCES);
    assert.ok(route.view === "table" && route.namespace === undefined);
  });
});
