import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { kubernetesVersionOf } from "../../scripts/lib/cluster_build.ts";

describe("kubernetesVersionOf", () => {
  it("is the version that go.mod requires, also of a pre-release, and none of its replacements", () => {
    const goMod = (version: string) =>
      `require (
\tk8s.io/kubectl v0.0.0
\tk8s.io/kubernetes ${version}
)

replace k8s.io/kubectl => k8s.io/kubectl v0.37.2
`;
    assert.equal(kubernetesVersionOf(goMod("v1.37.2")), "1.37.2");
    assert.equal(kubernetesVersionOf(goMod("v1.38.0-beta.0")), "1.38.0-beta.0");
    assert.equal(kubernetesVersionOf(goMod("master")), undefined);
  });
});
