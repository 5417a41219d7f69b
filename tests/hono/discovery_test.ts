import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { FakeInformer } from "./fake_informer.ts";
import { get, type Json } from "./reading.ts";
import { readApi } from "./read_api.ts";
import { WIDGET_RESOURCE } from "../widgets.ts";

const AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const KUBECTL =
  `${AGGREGATED},application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json`;

const widgets = (version: string) => ({
  ...WIDGET_RESOURCE,
  version,
  shortNames: ["wd"],
  categories: ["all"],
});

const SCREENS = ["fields", "filter", "sortBy", "offset", "around", "groupBy", "sum"];

function api() {
  const informer = () => FakeInformer.with([], 1);
  return readApi({
    resources: [
      { informer: informer(), resource: "v1/pods" },
      { informer: informer(), resource: "v1/nodes" },
      { informer: informer(), resource: "apps/v1/deployments" },
      { informer: informer(), resource: widgets("v1beta1") },
      { informer: informer(), resource: widgets("v1") },
    ],
    allowAnonymous: true,
  });
}

describe("readApi discovery, plain", () => {
  it("lists the core version and the groups, the preferred version first", async () => {
    const versions = await get(api(), "/api");
    assert.deepEqual([versions.kind, versions.versions], ["APIVersions", ["v1"]]);
    const { groups } = await get(api(), "/apis");
    assert.deepEqual(groups.map(({ name }: Json) => name), ["apps", "example.com"]);
    assert.deepEqual(groups[1].versions.map(({ version }: Json) => version), ["v1", "v1beta1"]);
    assert.deepEqual(groups[1].preferredVersion, { groupVersion: "example.com/v1", version: "v1" });
    assert.deepEqual(await get(api(), "/apis/example.com"), {
      kind: "APIGroup",
      apiVersion: "v1",
      ...groups[1],
    });
  });

  it("describes the resources of a group version, which can be read only", async () => {
    const core = await get(api(), "/api/v1");
    assert.equal(core.groupVersion, "v1");
    assert.deepEqual(core.resources, [
      {
        name: "pods",
        singularName: "pod",
        namespaced: true,
        kind: "Pod",
        verbs: ["get", "list", "watch"],
        shortNames: ["po"],
        categories: ["all"],
      },
      ...["ephemeralcontainers", "resize", "status"].map((name) => (
        { name: `pods/${name}`, singularName: "", namespaced: true, kind: "Pod", verbs: ["get"] }
      )),
      {
        name: "nodes",
        singularName: "node",
        namespaced: false,
        kind: "Node",
        verbs: ["get", "list", "watch"],
        shortNames: ["no"],
      },
      { name: "nodes/status", singularName: "", namespaced: false, kind: "Node", verbs: ["get"] },
    ]);
    assert.equal((await get(api(), "/apis/example.com/v1beta1")).resources.length, 1);
  });

  it("is there when nothing of the core group, or no group, is served", async () => {
    const only = (resource: string) =>
      readApi({ resources: [{ informer: FakeInformer.with([], 1), resource }], allowAnonymous: true });
    assert.deepEqual((await get(only("v1/pods"), "/apis")).groups, []);
    assert.deepEqual((await get(only("apps/v1/deployments"), "/api")).versions, ["v1"]);
    assert.deepEqual((await get(only("apps/v1/deployments"), "/api/v1")).resources, []);
  });

  it("is 404 for groups and versions that are not served", async () => {
    for (const path of ["/api/v2", "/apis/batch", "/apis/apps/v2"]) await get(api(), path, { status: 404 });
  });

  it("takes a slash at the end of a path", async () => {
    for (const path of ["/api/", "/apis/", "/api/v1/", "/apis/apps/v1/"]) await get(api(), path);
  });
});

describe("readApi discovery, aggregated", () => {
  it("has a page that says 404 below a group without a name, as by kube-apiserver", async () => {
    for (const path of ["/apis//", "/apis//apps", "/apis//apps/v1/deployments", "/apis/%2Fapps/v1"]) {
      const answer = await api().request(path);
      assert.deepEqual([path, answer.status, await answer.text()], [path, 404, "404 page not found\n"]);
    }
  });

  it("is not at /apis/, and no document is at /apis//, as by kube-apiserver", async () => {
    const accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
    const paths = ["/apis", "/apis/", "/api", "/api/", "/api//"];
    const request = (path: string) => api().request(path, { headers: { Accept: accept } });
    const kinds = await Promise.all(paths.map(async (path) => (await (await request(path)).json()).kind));
    const aggregated = "APIGroupDiscoveryList";
    assert.deepEqual(kinds, [aggregated, "APIGroupList", aggregated, aggregated, aggregated]);
    assert.equal((await request("/apis//")).status, 404);
  });

  it("names the parameters of screens where they are taken", async () => {
    const forwarded = { fetch: () => new Response() };
    const some = readApi({
      resources: [
        { informer: FakeInformer.with([], 1), resource: "v1/pods" },
        { ...forwarded, resource: "v1/nodes" },
        { ...forwarded, resource: "v1/events", takesScreens: true },
      ],
      allowAnonymous: true,
    });
    const { items } = await (await some.request("/api", { headers: { Accept: AGGREGATED } })).json();
    const { resources } = items[0].versions[0];
    assert.deepEqual(resources.map((each: Json) => [each.resource, each["x-listwatch"]]), [
      ["pods", { parameters: SCREENS }],
      ["nodes", undefined],
      ["events", { parameters: SCREENS }],
    ]);
    const query = SCREENS.map((name) => `${name}=%5B`).join("&");
    const { details } = await get(some, `/api/v1/pods?${query}`, { status: 400 });
    assert.deepEqual(
      new Set(details.causes.map(({ field }: Json) => field)),
      new Set(SCREENS.filter((name) => name !== "around")),
    );
  });

  it("has the Content-Type by which clients know it", async () => {
    for (const [path, accept] of [["/api", AGGREGATED], ["/apis", KUBECTL]]) {
      const response = await api().request(path, { headers: { Accept: accept } });
      assert.equal(response.headers.get("Content-Type"), AGGREGATED);
      assert.equal((await response.json()).apiVersion, "apidiscovery.k8s.io/v2");
    }
  });

  it("describes every resource", async () => {
    const response = await api().request("/apis", { headers: { Accept: KUBECTL } });
    const { items } = await response.json();
    assert.deepEqual(items.map(({ metadata }: Json) => metadata.name), ["apps", "example.com"]);
    assert.deepEqual(items[1].versions[0], {
      version: "v1",
      resources: [{
        resource: "widgets",
        responseKind: { group: "example.com", version: "v1", kind: "Widget" },
        scope: "Namespaced",
        singularResource: "widget",
        verbs: ["get", "list", "watch"],
        shortNames: ["wd"],
        categories: ["all"],
        "x-listwatch": { parameters: SCREENS },
      }],
      freshness: "Current",
    });
    // An API server leaves group and version of its own kinds empty.
    assert.deepEqual(items[0].versions[0].resources[0].responseKind, {
      group: "",
      version: "",
      kind: "Deployment",
    });
  });

  it("that has not changed is 304 without a Content-Type, which would overwrite the one that clients keep", async () => {
    const first = await api().request("/api", { headers: { Accept: AGGREGATED } });
    const etag = first.headers.get("ETag") ?? "";
    assert.match(etag, /^"[0-9A-F]{16}"$/);
    for (const tag of [etag, `W/${etag}`, `"x", ${etag}`]) {
      const again = await api().request("/api", { headers: { "Accept": AGGREGATED, "If-None-Match": tag } });
      assert.equal(again.status, 304);
      assert.equal(again.headers.get("Content-Type"), null);
      assert.equal(again.headers.get("ETag"), etag);
      assert.equal(await again.text(), "");
    }
    const other = await api().request("/apis", { headers: { "Accept": AGGREGATED, "If-None-Match": etag } });
    assert.equal(other.status, 200);
  });
});

describe("/version", () => {
  it("is the one given, or the Kubernetes that this is made for", async () => {
    assert.equal((await get(api(), "/version")).gitVersion, "v1.36.0");
    const version = { major: "1", minor: "34", gitVersion: "v1.34.2+edge" };
    const given = readApi({ resources: [], allowAnonymous: true, version });
    assert.deepEqual({ ...await get(given, "/version"), ...version }, await get(given, "/version"));
  });

  it("is there with slashes at the end of its path, and nothing is below it", async () => {
    for (const slashes of ["", "/", "//", "///"]) {
      assert.equal((await api().request(`/version${slashes}`)).status, 200, slashes);
    }
    for (const path of ["/version/x", "/version//x", "/version/x/", "/version/x/version/"]) {
      assert.equal((await api().request(path)).status, 404, path);
    }
  });

  it("passes on everything that the API server says", async () => {
    const version = {
      major: "1",
      minor: "36",
      emulationMajor: "1",
      emulationMinor: "35",
      minCompatibilityMajor: "1",
      minCompatibilityMinor: "34",
      gitVersion: "v1.36.3",
      gitCommit: "c",
      gitTreeState: "clean",
      buildDate: "2026-01-01T00:00:00Z",
      goVersion: "go1.26",
      compiler: "gc",
      platform: "linux/arm64",
    };
    const given = readApi({ resources: [], allowAnonymous: true, version });
    assert.equal(JSON.stringify(await get(given, "/version")), JSON.stringify(version));
  });
});
