import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { newCluster } from "@listwatch/cache";
import { InMemoryApiServer } from "@listwatch/cache/testing";
import { discover, type Discovery } from "../../../src/client/discovery.ts";
import { UsageError } from "../../../src/cli/errors.ts";
import { defaultResources, resolveResources } from "../../../src/cli/cluster/select_resources.ts";
import { formatGroupResource } from "../../../src/meta/resource.ts";

const certificates = {
  group: "cert-manager.io",
  version: "v1",
  resource: "certificates",
  kind: "Certificate",
  namespaced: true,
  shortNames: ["cert", "certs"],
};
// The same plural in another group, in two versions.
const otherServices = {
  group: "example.com",
  version: "v1",
  resource: "services",
  kind: "Service",
  namespaced: true,
};
const olderOtherServices = { ...otherServices, version: "v1beta1" };

async function discovered(): Promise<Discovery> {
  const server = new InMemoryApiServer({
    customResources: [certificates, otherServices, olderOtherServices],
  });
  return await discover(newCluster({ server: "http://in-memory", fetch: server.fetch }));
}

const discovery = await discovered();

function resolve(...names: string[]): string[] {
  return resolveResources(names, discovery).map(({ group, version, resource }) =>
    `${group}/${version}/${resource}`
  );
}

function refuses(name: string, message: RegExp): void {
  assert.throws(() => resolveResources([name], discovery), (error) => {
    assert.ok(error instanceof UsageError);
    assert.match(error.message, message);
    return true;
  });
}

describe("resolveResources", () => {
  it("accepts plurals, singulars, short names and kinds, in any case", () => {
    for (const name of ["pods", "pod", "po", "Pod", "PODS"]) assert.deepEqual(resolve(name), ["/v1/pods"]);
    assert.deepEqual(resolve("deploy"), ["apps/v1/deployments"]);
    assert.deepEqual(resolve("cert"), ["cert-manager.io/v1/certificates"]);
  });

  it("accepts a group, a version and group, or a path", () => {
    const deployments = ["apps/v1/deployments"];
    for (const name of ["deployments.apps", "deploy.apps", "deployment.v1.apps", "apps/v1/deployments"]) {
      assert.deepEqual(resolve(name), deployments);
    }
    assert.deepEqual(resolve("certificates.v1.cert-manager.io"), ["cert-manager.io/v1/certificates"]);
    assert.deepEqual(resolve("v1/pods"), ["/v1/pods"]);
  });

  it("prefers the core group, then the preferred version of another group", () => {
    assert.deepEqual(resolve("services"), ["/v1/services"]);
    assert.deepEqual(resolve("services.example.com"), ["example.com/v1/services"]);
    assert.deepEqual(resolve("services.v1beta1.example.com"), ["example.com/v1beta1/services"]);
  });

  it("returns each resource once, in the order of the names", () => {
    assert.deepEqual(resolve("nodes", "po", "pods", "no"), ["/v1/nodes", "/v1/pods"]);
  });

  it("accepts a category", () => {
    const all = resolve("all");
    assert.ok(all.includes("/v1/pods") && all.includes("apps/v1/deployments"));
    assert.ok(!all.includes("/v1/configmaps"));
  });

  it("throws for an unknown name, with the nearest names", () => {
    refuses("pdos", /^Cannot reflect "pdos": the server has no such resource; did you mean pods/);
    refuses(
      "deployment.extensions",
      /"deployment.extensions": the server has no such resource; did you mean deployments.apps/,
    );
    refuses("certificate.acme.io", /did you mean certificates.cert-manager.io/);
    refuses("ing.v2", /did you mean ingresses.networking.k8s.io/);
    refuses("zzzzzzzz", /`kubectl api-resources --verbs=list,watch` lists its resources/);
  });

  it("throws for Secrets unless they are allowed", () => {
    refuses("secrets", /Secrets are refused by default: pass --allow-secrets/);
    refuses("v1/secrets", /Secrets are refused by default/);
    assert.equal(resolveResources(["secret"], discovery, { allowSecrets: true }).length, 1);
  });

  it("throws for a resource that cannot be watched", () => {
    const reviews = {
      ...certificates,
      resource: "reviews",
      singularName: "review",
      kind: "Review",
      verbs: ["create"],
    };
    const narrow: Discovery = { resources: [{ ...reviews, categories: [] }], unavailable: [] };
    assert.throws(
      () => resolveResources(["reviews"], narrow),
      /cannot be listed and watched: its verbs are create/,
    );
  });

  it("names the API groups that did not respond, which may have the name", () => {
    const partial: Discovery = { ...discovery, unavailable: ["metrics.k8s.io/v1beta1"] };
    assert.throws(
      () => resolveResources(["qqqqqqq"], partial),
      /\(metrics.k8s.io\/v1beta1 did not respond\)/,
    );
  });
});

describe("defaultResources", () => {
  it("returns the common resources that the server has, and never Secrets", () => {
    const names = defaultResources(discovery).map(formatGroupResource);
    assert.deepEqual(names.slice(0, 4), ["namespaces", "nodes", "pods", "deployments.apps"]);
    assert.ok(!names.includes("secrets"));
    const bare: Discovery = { ...discovery, resources: discovery.resources.filter((r) => r.group === "") };
    assert.deepEqual(defaultResources(bare).map(formatGroupResource), [
      "namespaces",
      "nodes",
      "pods",
      "services",
      "configmaps",
    ]);
  });
});
