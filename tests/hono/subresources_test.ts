import assert from "node:assert/strict";
import type { ApiResource, ReadApiOptions, RequestAttributes } from "@listwatch/cache/hono";
import { FakeInformer, object, type TestObject } from "./fake_informer.ts";
import { get } from "./reading.ts";
import { describe, it } from "./storages.ts";
// Objects, and the answers of kube-apiserver v1.36.3 to their `scale`.
import recorded from "./recorded/scale.json" with { type: "json" };
import { readApi } from "./read_api.ts";

const ODDS: ApiResource = {
  group: "proto.example.com",
  version: "v1",
  resource: "odds",
  kind: "Odd",
  namespaced: true,
  subresources: {
    status: true,
    scale: {
      specReplicasPath: ".spec.replicas",
      statusReplicasPath: ".status.replicas",
      labelSelectorPath: ".status.selector",
    },
  },
};

const RESOURCES: readonly (string | ApiResource)[] = [
  "apps/v1/deployments",
  "apps/v1/statefulsets",
  "v1/replicationcontrollers",
  "v1/pods",
  "certificates.k8s.io/v1/certificatesigningrequests",
  ODDS,
];

function apiOf(
  objects: readonly TestObject[],
  authorize?: (request: RequestAttributes) => boolean,
  options: Partial<ReadApiOptions> = {},
) {
  return readApi({
    resources: RESOURCES.map((resource) => ({ informer: FakeInformer.with(objects, 10), resource })),
    ...(authorize === undefined ? { allowAnonymous: true } : { authorize }),
    ...options,
  });
}

describe("readApi, GET of a scale,", () => {
  it("answers as kube-apiserver, by the selectors and numbers of each kind", async () => {
    for (const { path, object, status, scale } of recorded) {
      const api = apiOf([object as unknown as TestObject]);
      assert.deepEqual(await get(api, `${path}/scale`, { status }), scale, path);
    }
  });

  it("is a Table for kubectl, and 404 for an object that is not there", async () => {
    const { path, object: deployment } = recorded[3];
    const api = apiOf([deployment as unknown as TestObject]);
    const table = await get(api, `${path}/scale`, { accept: "application/json;as=Table;v=v1;g=meta.k8s.io" });
    assert.deepEqual(table.columnDefinitions.map(({ name }: { name: string }) => name), [
      "Name",
      "Desired",
      "Available",
      "Age",
    ]);
    assert.deepEqual(table.rows[0].cells.slice(0, 3), ["api", 10, 10]);
    const { message } = await get(api, `${path}-x/scale`, { status: 404 });
    assert.equal(message, 'deployments.apps "api-x" not found');
  });
});

describe("readApi, GET of a status,", () => {
  it("is the object, where the kind has one", async () => {
    const api = apiOf([object("shop/a", 5, { status: { phase: "Running" } })]);
    const path = "/api/v1/namespaces/shop/pods/a";
    assert.deepEqual(await get(api, `${path}/status`), await get(api, path));
    await get(api, "/apis/proto.example.com/v1/namespaces/shop/odds/a/status");
  });
});

// `CertificateSigningRequest.approval` and the like: for writes of a part, and their GET is the object.
describe("readApi, GET of a subresource for writes of a part,", () => {
  const POD = "/api/v1/namespaces/shop/pods/a";
  const REQUEST = "/apis/certificates.k8s.io/v1/certificatesigningrequests/joe";
  const paths = [`${POD}/resize`, `${POD}/ephemeralcontainers`, `${REQUEST}/approval`];
  const newApi = (authorize?: (request: RequestAttributes) => boolean) =>
    apiOf([object("shop/a", 5), object("joe", 6)], authorize);

  it("is the object, or 404 if there is none", async () => {
    for (const path of paths) {
      const api = newApi();
      const objectPath = path.slice(0, path.lastIndexOf("/"));
      assert.deepEqual(await get(api, path), await get(api, objectPath), path);
      const accept = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
      assert.equal((await get(api, path, { accept })).kind, "PartialObjectMetadata");
      const none = path.replace(/\/(a|joe)\//, "/none/");
      assert.match((await get(api, none, { status: 404 })).message, / "none" not found$/);
    }
  });

  // kubectl get --subresource=resize makes its own.
  it("has no Table, as that of kube-apiserver", async () => {
    const table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    for (const path of paths) {
      const api = newApi();
      const { message } = await get(api, path, { accept: table, status: 406 });
      assert.match(message, /^only the following media types are accepted: application\/json/);
      const accept = `${table},application/json`;
      assert.deepEqual(await get(api, path, { accept }), await get(api, path), path);
    }
  });

  it("needs the permission to get the subresource", async () => {
    const api = newApi(({ subresource }) => subresource === undefined);
    await get(api, POD);
    assert.match(
      (await get(api, `${POD}/resize`, { status: 403 })).message,
      /cannot get resource "pods\/resize" in API group ""/,
    );
    assert.match((await get(api, `${REQUEST}/approval`, { status: 403 })).message, /requests\/approval"/);
  });

  it("is 405 for other methods, and 404 of a resource that has none", async () => {
    const api = newApi();
    for (const path of paths) {
      for (const method of ["HEAD", "POST", "PUT", "PATCH", "DELETE"]) {
        assert.equal((await api.request(path, { method })).status, 405, `${method} ${path}`);
      }
    }
    for (const subresource of ["resize", "exec", "approval"]) {
      await get(api, `/apis/apps/v1/namespaces/shop/deployments/a/${subresource}`, { status: 404 });
    }
    await get(api, `${POD}/approval`, { status: 404 });
  });
});

describe("readApi discovery", () => {
  it("lists status and scale as subresources that can be read", async () => {
    const api = apiOf([]);
    const { resources } = await get(api, "/apis/proto.example.com/v1");
    assert.deepEqual(resources.slice(1), [
      { name: "odds/status", singularName: "", namespaced: true, kind: "Odd", verbs: ["get"] },
      {
        name: "odds/scale",
        singularName: "",
        namespaced: true,
        group: "autoscaling",
        version: "v1",
        kind: "Scale",
        verbs: ["get"],
      },
    ]);
    const accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    const aggregated = await (await api.request("/apis", { headers: { Accept: accept } })).json();
    assert.deepEqual(aggregated.items[0].versions[0].resources[0].subresources, [
      {
        subresource: "scale",
        responseKind: { group: "autoscaling", version: "v1", kind: "Scale" },
        verbs: ["get"],
      },
      { subresource: "status", responseKind: { group: "", version: "", kind: "Deployment" }, verbs: ["get"] },
    ]);
    const core = await get(api, "/api/v1");
    assert.deepEqual(
      core.resources.filter(({ kind }: { kind: string }) => kind === "Pod").map((r: { name: string }) =>
        r.name
      ),
      ["pods", "pods/ephemeralcontainers", "pods/resize", "pods/status"],
    );
  });
});

describe("Authorize", () => {
  it("receives the subresource of a request", async () => {
    const asked: (string | undefined)[][] = [];
    const api = apiOf([object("shop/a", 5)], (request) => {
      asked.push([request.verb, request.resource, request.subresource, request.name]);
      return false;
    });
    const path = "/apis/apps/v1/namespaces/shop/deployments/a";
    const { message } = await get(api, `${path}/scale`, { status: 403 });
    assert.match(message, /cannot get resource "deployments\/scale" in API group "apps"/);
    await get(api, path, { status: 403 });
    assert.deepEqual(asked, [["get", "deployments", "scale", "a"], ["get", "deployments", undefined, "a"]]);
  });
});

describe("readApi, requests that a read-only cache does not serve,", () => {
  const POD = "/api/v1/namespaces/shop/pods/a";
  const cases: [method: string, path: string, message: RegExp][] = [
    [
      "POST",
      `${POD}/exec`,
      /read-only cache of pods: "exec" \(kubectl exec\) is not served here; send it to the API server itself/,
    ],
    ["GET", `${POD}/exec`, /kubectl exec/],
    ["GET", `${POD}/attach`, /kubectl attach/],
    ["GET", `${POD}/portforward`, /kubectl port-forward/],
    ["GET", `${POD}/log`, /kubectl logs/],
    ["PATCH", `${POD}/ephemeralcontainers`, /kubectl debug/],
    ["POST", `${POD}/eviction`, /kubectl drain/],
    ["POST", `${POD}/binding`, /"binding" is not served here/],
    ["PATCH", `${POD}/status`, /read-only cache of pods: get, list and watch are served here; send writes/],
    ["PATCH", "/apis/apps/v1/namespaces/shop/deployments/a/scale", /read-only cache of deployments.apps/],
    ["PUT", "/apis/apps/v1/namespaces/shop/deployments/a/scale", /read-only cache of deployments.apps/],
    ["DELETE", POD, /read-only cache of pods/],
    [
      "POST",
      "/api/v1/namespaces/shop/serviceaccounts/default/token",
      /does not hold serviceaccounts; send the request/,
    ],
    [
      "POST",
      "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
      /read-only cache.* create selfsubjectaccessreviews.authorization.k8s.io .*--pass-through/,
    ],
    [
      "POST",
      "/apis/authorization.k8s.io/v1/namespaces/shop/localsubjectaccessreviews",
      /create localsubjectaccessreviews.authorization.k8s.io .*`passThrough`/,
    ],
  ];
  for (const [method, path, message] of cases) {
    it(`are 405 and say why: ${method} ${path}`, async () => {
      const response = await apiOf([object("shop/a", 5)]).request(path, {
        method,
        ...(method !== "GET" && { body: "{}" }),
      });
      const status = await response.json();
      assert.deepEqual([response.status, status.reason], [405, "MethodNotAllowed"]);
      assert.match(status.message, message);
    });
  }

  it("are 404 with the object's name, where the resource is a custom one, as by kube-apiserver", async () => {
    const api = apiOf([object("shop/a", 5)]);
    for (const subresource of ["log", "exec", "finalize", "eviction", "binding", "token", "other"]) {
      for (const method of ["GET", "POST", "PATCH"]) {
        const path = `/apis/proto.example.com/v1/namespaces/shop/odds/a/${subresource}`;
        const response = await api.request(path, { method, ...(method !== "GET" && { body: "{}" }) });
        const { code, reason, message } = await response.json();
        assert.deepEqual(
          [code, reason, message],
          [404, "NotFound", 'odds.proto.example.com "a" not found'],
          path,
        );
      }
    }
  });

  // `kubectl auth can-i`, of a reader who may list pods and nothing else.
  it("are 405 also for who may not list reviews, and 401 for strangers", async () => {
    const path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    const reader = ({ resource }: RequestAttributes) => resource === "pods";
    const review = await apiOf([], reader).request(path, { method: "POST", body: "{}" });
    assert.equal(review.status, 405);
    assert.match((await review.json()).message, /create selfsubjectaccessreviews.*--pass-through/);
    const list = await apiOf([], reader).request(path);
    assert.equal(list.status, 403);
    const stranger = await apiOf([], reader, { authenticate: () => undefined }).request(path, {
      method: "POST",
      body: "{}",
    });
    assert.equal(stranger.status, 401);
  });
});
