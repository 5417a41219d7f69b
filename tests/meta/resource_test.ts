import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { parseResource, resourceOf } from "@listwatch/cache";
import { formatResource, groupVersion, resourcePath } from "@listwatch/cache/client";
import { formatGroupResource } from "../../src/meta/resource.ts";

describe("parseResource", () => {
  it("reads resources of the core group and of others", () => {
    assert.deepEqual(parseResource("v1/pods"), { group: "", version: "v1", resource: "pods" });
    assert.deepEqual(parseResource("apps/v1/deployments"), {
      group: "apps",
      version: "v1",
      resource: "deployments",
    });
    assert.deepEqual(parseResource("gateway.networking.k8s.io/v1beta1/http-routes"), {
      group: "gateway.networking.k8s.io",
      version: "v1beta1",
      resource: "http-routes",
    });
  });

  it("says of a name alone who finds it", () => {
    const hint = "; findResource of ./client finds it by such a name";
    const hasHint = (text: string) => {
      try {
        parseResource(text);
      } catch (error) {
        return (error as Error).message.endsWith(hint);
      }
      return assert.fail("it was read");
    };
    assert.deepEqual(["pods", "v1/Pods", "a/b/c/d"].map(hasHint), [true, false, false]);
  });

  it("is what resourceOf reads, too", () => {
    assert.deepEqual(resourceOf("apps/v1/deployments"), parseResource("apps/v1/deployments"));
    assert.equal(formatGroupResource(resourceOf("apps/v1/deployments")), "deployments.apps");
    assert.equal(formatGroupResource(resourceOf("v1/pods")), "pods");
  });

  it("is undone by formatResource", () => {
    for (const text of ["v1/pods", "apps/v1/deployments", "a.b.c/v2/things"]) {
      assert.equal(formatResource(parseResource(text)), text);
    }
  });

  it("refuses every other text, with the form that it accepts", () => {
    for (
      const text of [
        "",
        "pods",
        "/v1/pods",
        "v1/",
        "v1/Pods",
        "apps/v1/deployments/scale",
        "apps//deployments",
        "../v1/pods",
        "v1/pods?watch=1",
        "v1/po ds",
        "-apps/v1/deployments",
        "apps./v1/deployments",
      ]
    ) {
      assert.throws(() => parseResource(text), (error) => {
        assert.ok(error instanceof TypeError);
        assert.ok(error.message.includes(JSON.stringify(text)));
        assert.match(error.message, /v1\/pods.*apps\/v1\/deployments/);
        return true;
      }, text);
    }
  });
});

describe("resourcePath", () => {
  it("is under /api for the core group and under /apis for others", () => {
    assert.equal(resourcePath(parseResource("v1/pods")), "/api/v1/pods");
    assert.equal(resourcePath(parseResource("apps/v1/deployments")), "/apis/apps/v1/deployments");
  });

  it("accepts a namespace and a name, and ignores empty ones", () => {
    const deployments = parseResource("apps/v1/deployments");
    assert.equal(
      resourcePath(deployments, { namespace: "shop", name: "web" }),
      "/apis/apps/v1/namespaces/shop/deployments/web",
    );
    assert.equal(resourcePath(deployments, { namespace: "", name: "" }), "/apis/apps/v1/deployments");
    assert.equal(resourcePath(parseResource("v1/nodes"), { name: "node-1" }), "/api/v1/nodes/node-1");
  });

  it("refuses a namespace or name that would change the rest of the path", () => {
    const pods = parseResource("v1/pods");
    assert.equal(resourcePath(pods, { name: "x?watch=1#y" }), "/api/v1/pods/x%3Fwatch%3D1%23y");
    for (const text of [".", "..", "a/b", "../nodes", "%2e%2e"]) {
      assert.throws(() => resourcePath(pods, { namespace: text }), (error) => {
        assert.ok(error instanceof TypeError);
        assert.ok(error.message.includes(`namespace ${JSON.stringify(text)}`));
        return true;
      });
      assert.throws(() => resourcePath(pods, { name: text }), /the name /);
    }
  });
});

describe("groupVersion", () => {
  it("is the apiVersion of objects", () => {
    assert.equal(groupVersion({ group: "", version: "v1" }), "v1");
    assert.equal(groupVersion({ group: "apps", version: "v1" }), "apps/v1");
  });
});
