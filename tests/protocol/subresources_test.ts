import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { ApiResource } from "../../src/protocol/api_resource.ts";
import { scaleOf } from "../../src/protocol/subresources.ts";

const DEPLOYMENTS: ApiResource = {
  group: "apps",
  version: "v1",
  resource: "deployments",
  kind: "Deployment",
  namespaced: true,
};

function widgets(
  scale: Partial<NonNullable<NonNullable<ApiResource["subresources"]>["scale"]>> = {},
): ApiResource {
  const paths = { specReplicasPath: ".spec.size", statusReplicasPath: ".status.size", ...scale };
  return {
    ...DEPLOYMENTS,
    group: "example.com",
    resource: "widgets",
    kind: "Widget",
    subresources: { scale: paths },
  };
}

// deno-lint-ignore no-explicit-any -- of any shape
function shown(resource: ApiResource, object: object): any {
  const metadata = {
    name: "web",
    namespace: "shop",
    creationTimestamp: "2026-01-01T00:00:00Z",
    labels: { a: "b" },
  };
  return scaleOf(resource, { metadata, ...object });
}

describe("scaleOf", () => {
  it("has of the object's metadata what a scale has, and no zero and no empty selector", () => {
    const own = {
      name: "web",
      namespace: "shop",
      uid: "u-1",
      resourceVersion: "7",
      creationTimestamp: "2026-01-01T00:00:00Z",
    };
    const metadata = { ...own, generation: 3, labels: { a: "b" } };
    assert.deepEqual(shown(DEPLOYMENTS, { metadata, spec: { replicas: 0 } }), {
      kind: "Scale",
      apiVersion: "autoscaling/v1",
      metadata: own,
      spec: {},
      status: { replicas: 0 },
    });
  });

  it("has one replica where the spec of a built-in kind says nothing", () => {
    const selector = { matchLabels: { app: "web" } };
    const { spec, status } = shown(DEPLOYMENTS, { spec: { selector }, status: { replicas: 2 } });
    assert.deepEqual([spec, status], [{ replicas: 1 }, { replicas: 2, selector: "app=web" }]);
    assert.equal(
      shown(DEPLOYMENTS, { spec: { selector: { matchExpressions: [{ key: "a", operator: "?" }] } } }).code,
      500,
    );
  });

  it("reads the selector of the core group as a set, and what is not there as nothing", () => {
    const controllers = { ...DEPLOYMENTS, group: "", resource: "replicationcontrollers" };
    assert.deepEqual(shown(controllers, { spec: { selector: { app: "web" } } }).status, {
      replicas: 0,
      selector: "app=web",
    });
    for (const resource of [controllers, DEPLOYMENTS]) {
      const { spec, status } = shown(resource, {});
      assert.deepEqual([spec, status], [{ replicas: 1 }, { replicas: 0 }]);
      assert.deepEqual((scaleOf(resource, {}) as { metadata?: object }).metadata, {});
    }
    assert.equal(shown({ ...widgets(), subresources: undefined }, { spec: { size: 3 } }).code, 500);
  });

  it("reads a custom resource at the paths of its definition, and is 500 without a number of replicas", () => {
    const resource = widgets({ labelSelectorPath: ".status.selector" });
    const { spec, status } = shown(resource, { spec: { size: 3 }, status: { size: 2, selector: "app=web" } });
    assert.deepEqual([spec, status], [{ replicas: 3 }, { replicas: 2, selector: "app=web" }]);
    assert.deepEqual(shown(resource, { spec: { size: 3 } }).status, { replicas: 0 });
    assert.deepEqual(shown(resource, { spec: { size: 3 }, status: { size: "2", selector: 1 } }).status, {
      replicas: 0,
    });
    for (const spec of [undefined, {}, { size: "3" }, { size: null }]) {
      assert.equal(shown(resource, { spec }).code, 500);
    }
    for (const specReplicasPath of ["spec.size", "x.spec.size"]) {
      const refused = shown(widgets({ specReplicasPath }), { spec: { size: 3 } });
      const message = `the spec replicas field "${specReplicasPath}" does not exist`;
      assert.deepEqual([refused.code, refused.message], [500, `Internal error occurred: ${message}`]);
      assert.deepEqual(refused.details, { causes: [{ message }] });
    }
    const size = { spec: { size: 3 }, status: { size: 2 } };
    assert.deepEqual(shown(widgets({ statusReplicasPath: "xstatus.size" }), size).status, { replicas: 0 });
  });
});
