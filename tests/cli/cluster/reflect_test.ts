import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { reflectedIndexers } from "../../../src/cli/cluster/select_resources.ts";
import type { ApiResource } from "../../../src/protocol/api_resource.ts";

describe("reflectedIndexers", () => {
  it("have the nodes of pods, and of nothing else that is called so", () => {
    const pod = { metadata: { name: "a", namespace: "shop" }, spec: { nodeName: "n-1" } };
    const nodesOf = (group: string) => {
      const resource: ApiResource = { group, version: "v1", resource: "pods", kind: "Pod", namespaced: true };
      return reflectedIndexers({ resource }).byNode(pod);
    };
    assert.deepEqual([nodesOf(""), nodesOf("metrics.k8s.io")], [["n-1"], []]);
  });
});
