import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Hono } from "hono";
import type { FetchOpenApi, ReadApiOptions } from "@listwatch/cache/hono";
import { FakeClock } from "../../../src/testing/fake_clock.ts";
import { seededRandom } from "../../../src/testing/seeded_random.ts";
import { FakeInformer } from "../fake_informer.ts";
import { cutOpenApi } from "../../../src/hono/upstream/open_api.ts";
import { readApi } from "../read_api.ts";

const gvk = (group: string, version: string, kind: string) => ({
  "x-kubernetes-group-version-kind": [{ group, version, kind }],
});
const ref = (name: string, root = "components/schemas") => ({ $ref: `#/${root}/${name}` });
const operation = (name: string) => ({
  responses: { 200: { content: { "application/json": { schema: ref(name) } } } },
});

/** A document of version 3, in short. */
const CORE = {
  openapi: "3.0.0",
  info: { title: "Kubernetes" },
  paths: {
    "/api/v1/": { get: operation("APIResourceList") },
    "/api/v1/pods": { get: operation("PodList"), parameters: [{ name: "watch" }] },
    "/api/v1/namespaces/{namespace}/pods": { get: operation("PodList"), post: operation("Pod") },
    "/api/v1/namespaces/{namespace}/pods/{name}": {
      get: operation("Pod"),
      patch: { ...operation("Pod"), parameters: [{ name: "fieldValidation" }], requestBody: ref("Patch") },
      delete: operation("Status"),
    },
    "/api/v1/namespaces/{namespace}/pods/{name}/log": { get: operation("Log") },
    "/api/v1/watch/pods": { get: operation("WatchEvent") },
    "/api/v1/secrets": { get: operation("SecretList") },
    "/api/v1/namespaces/{namespace}/bindings": { post: operation("Binding") },
  },
  components: {
    schemas: {
      APIResourceList: {},
      Pod: { ...gvk("", "v1", "Pod"), properties: { metadata: ref("Meta"), spec: ref("PodSpec") } },
      PodList: { properties: { items: { items: ref("Pod") } } },
      PodSpec: { properties: { self: ref("PodSpec") } },
      Meta: {},
      Status: {},
      Patch: {},
      Log: {},
      WatchEvent: {},
      Secret: gvk("", "v1", "Secret"),
      SecretList: { properties: { items: { items: ref("Secret") } } },
      Binding: {},
      // Named by nothing but its kind.
      ConfigMap: gvk("", "v1", "ConfigMap"),
    },
    securitySchemes: { BearerToken: {} },
  },
};

const V2 = {
  swagger: "2.0",
  paths: {
    "/api/v1/pods": {
      get: {
        responses: { 200: { schema: ref("Pod", "definitions") } },
        parameters: [ref("limit", "parameters")],
      },
    },
    "/apis/apps/v1/deployments": { get: { schema: ref("Deployment", "definitions") } },
  },
  definitions: {
    Pod: gvk("", "v1", "Pod"),
    Deployment: gvk("apps", "v1", "Deployment"),
  },
  parameters: { limit: {}, other: {} },
};

function upstream() {
  const requests: string[] = [];
  const documents: Record<string, unknown> = {
    "/openapi/v3": {
      paths: {
        "api": { serverRelativeURL: "/openapi/v3/api?hash=A" },
        "api/v1": { serverRelativeURL: "/openapi/v3/api/v1?hash=B" },
        "apis/apps/v1": { serverRelativeURL: "/openapi/v3/apis/apps/v1?hash=C" },
      },
    },
    "/openapi/v3/api/v1": CORE,
    "/openapi/v2": V2,
  };
  const state = {
    requests,
    documents,
    tag: '"B"',
    isDown: false,
    fetch: undefined as unknown as FetchOpenApi,
  };
  state.fetch = (path, { headers }) => {
    assert.equal(headers.Accept, "application/json");
    requests.push(headers["If-None-Match"] === undefined ? path : `${path} ${headers["If-None-Match"]}`);
    if (state.isDown) return Promise.reject(new Error("connection refused"));
    const document = documents[path];
    if (document === undefined) return Promise.resolve(new Response("no", { status: 404 }));
    if (headers["If-None-Match"] === state.tag) return Promise.resolve(new Response(null, { status: 304 }));
    return Promise.resolve(
      Response.json(document, { headers: path === "/openapi/v3" ? {} : { ETag: state.tag } }),
    );
  };
  return state;
}

function apiOf(openApi?: FetchOpenApi, options: Partial<ReadApiOptions> = {}) {
  const clock = new FakeClock();
  const informer = () => FakeInformer.with([], 1);
  const api = readApi({
    resources: [
      { informer: informer(), resource: "v1/pods" },
      { informer: informer(), resource: "v1/configmaps" },
    ],
    allowAnonymous: true,
    clock,
    ...(openApi && { openApi }),
    ...options,
  });
  return { api, clock };
}

describe("readApi({ openApi })", () => {
  it("lists the group versions that are served, with the hash that the document has as its ETag", async () => {
    const { api } = apiOf(upstream().fetch);
    const { paths } = await (await api.request("/openapi/v3")).json();
    assert.deepEqual(Object.keys(paths), ["api/v1"]);
    const url = paths["api/v1"].serverRelativeURL;
    assert.match(url, /^\/openapi\/v3\/api\/v1\?hash=[0-9A-F]{16}$/);
    const response = await api.request(url);
    assert.equal(response.headers.get("ETag"), `"${url.split("=")[1]}"`);
    assert.match(response.headers.get("Cache-Control") ?? "", /immutable/);
    const expires = Date.parse(response.headers.get("Expires")!) - new FakeClock().now();
    assert.equal(Math.round(expires / 86_400_000), 365);
  });

  it("has another tag where other resources are served", async () => {
    const resources = [{ informer: FakeInformer.with([], 1), resource: "v1/pods" }];
    const both = [upstream().fetch, upstream().fetch].map((fetch, i) =>
      apiOf(fetch, i ? { resources } : {}).api
    );
    for (const path of ["/openapi/v2", "/openapi/v3/api/v1"]) {
      const tags = await Promise.all(both.map(async (api) => (await api.request(path)).headers.get("ETag")));
      assert.notEqual(tags[0], tags[1], path);
    }
  });

  it("cuts a document of version 3 to what can be read, and to the schemas that it needs", async () => {
    const { api } = apiOf(upstream().fetch);
    const document = await (await api.request("/openapi/v3/api/v1")).json();
    assert.deepEqual(Object.keys(document.paths), [
      "/api/v1/",
      "/api/v1/pods",
      "/api/v1/namespaces/{namespace}/pods",
      "/api/v1/namespaces/{namespace}/pods/{name}",
      "/api/v1/watch/pods",
    ]);
    assert.deepEqual(Object.keys(document.paths["/api/v1/namespaces/{namespace}/pods"]), ["get"]);
    // kubectl looks there for `fieldValidation`, and sends no write without it.
    const one = document.paths["/api/v1/namespaces/{namespace}/pods/{name}"];
    assert.deepEqual(Object.keys(one), ["get", "patch"]);
    assert.deepEqual(document.paths["/api/v1/pods"].parameters, [{ name: "watch" }]);
    assert.deepEqual(Object.keys(document.components.schemas), [
      "APIResourceList",
      "Pod",
      "PodList",
      "PodSpec",
      "Meta",
      "Patch",
      "WatchEvent",
      "ConfigMap",
    ]);
    assert.deepEqual([document.openapi, document.components.securitySchemes], ["3.0.0", { BearerToken: {} }]);
  });

  it("makes of a large document a piece at a time, as its reader reads", async () => {
    const Large = { ...gvk("", "v1", "Pod"), description: "é".repeat(1_000_000) };
    const { api } = apiOf(() => Promise.resolve(Response.json({ ...V2, definitions: { Large } })));
    const whole = await (await api.request("/openapi/v2")).arrayBuffer();
    assert.ok(whole.byteLength > 2_000_000);
    for (const encoding of ["identity", "gzip"]) {
      const { body } = await api.request("/openapi/v2", { headers: { "Accept-Encoding": encoding } });
      const unread = body!.getReader();
      assert.ok((await unread.read()).value!.byteLength <= 64 * 1024);
      await unread.cancel();
    }
    assert.deepEqual(await (await api.request("/openapi/v2")).arrayBuffer(), whole);
  });

  it("counts no compressed form of a document that gives way to it", async () => {
    const Large = { ...gvk("", "v1", "Pod"), description: "x".repeat(1_000_000) };
    const fetch = () => Promise.resolve(Response.json({ ...V2, definitions: { Large } }));
    const { byteLength } = await (await apiOf(fetch).api.request("/openapi/v2")).arrayBuffer();
    const { api } = apiOf(fetch, { maxReaderBytes: byteLength + 64 * 1024 + 10 });
    for (const encoding of ["identity", "gzip", "identity"]) {
      const response = await api.request("/openapi/v2", { headers: { "Accept-Encoding": encoding } });
      assert.equal(response.headers.get("Content-Encoding"), encoding === "gzip" ? encoding : null);
      await response.arrayBuffer();
    }
  });

  it("cuts a document of version 2", async () => {
    const document = await (await apiOf(upstream().fetch).api.request("/openapi/v2")).json();
    assert.deepEqual(Object.keys(document.paths), ["/api/v1/pods"]);
    assert.deepEqual(document.definitions, { Pod: V2.definitions.Pod });
    assert.deepEqual(document.parameters, { limit: {} });
  });

  it("fetches a document once for all readers, and revalidates it after 10 s", async () => {
    const server = upstream();
    const { api, clock } = apiOf(server.fetch);
    const read = async () => (await api.request("/openapi/v3/api/v1")).headers.get("ETag");
    const [tag, other] = await Promise.all([read(), read()]);
    assert.equal(tag, other);
    await clock.advance(9_999);
    assert.equal(await read(), tag);
    assert.deepEqual(server.requests.splice(0), ["/openapi/v3/api/v1"]);
    await clock.advance(1);
    assert.equal(await read(), tag);
    assert.deepEqual(server.requests.splice(0), ['/openapi/v3/api/v1 "B"']);
    assert.equal(await read(), tag);
    assert.deepEqual(server.requests, [], "it was confirmed just now");
    server.tag = '"B2"';
    await clock.advance(10_000);
    assert.notEqual(await read(), tag);
  });

  it("has another tag for another document, also of a server without tags, and for weak ones that of the index", async () => {
    const server = upstream();
    const { api, clock } = apiOf((path, init) =>
      Promise.resolve(server.fetch(path, init)).then(async (answer) =>
        new Response(await answer.text(), { status: answer.status })
      )
    );
    const tagOf = async (path: string) => (await api.request(path)).headers.get("ETag");
    const tag = await tagOf("/openapi/v2");
    server.documents["/openapi/v2"] = { ...V2, info: { title: "other" } };
    await clock.advance(10_000);
    assert.notEqual(await tagOf("/openapi/v2"), tag);
    const weak = upstream();
    weak.tag = 'W/"B"';
    const { api: ofWeak } = apiOf(weak.fetch);
    const { paths } = await (await ofWeak.request("/openapi/v3")).json();
    const document = await ofWeak.request("/openapi/v3/api/v1");
    assert.equal(document.headers.get("ETag"), `"${paths["api/v1"].serverRelativeURL.split("=")[1]}"`);
  });

  it("says of no document but the one of its hash that it never changes, and compresses no small one", async () => {
    const { api } = apiOf(upstream().fetch);
    const gzip = { headers: { "Accept-Encoding": "gzip" } };
    const isImmutable = async (path: string) => {
      const { status, headers } = await api.request(path, gzip);
      assert.deepEqual([status, headers.get("Content-Encoding")], [200, null]);
      return headers.get("Cache-Control")!.includes("immutable");
    };
    const tag = (await api.request("/openapi/v2")).headers.get("ETag")!.slice(1, -1);
    assert.equal(await isImmutable(`/openapi/v2?hash=${tag}`), true);
    for (const path of ["/openapi/v2", "/openapi/v2?hash=OLD", "/openapi/v3?hash=OLD"]) {
      assert.equal(await isImmutable(path), false, path);
    }
  });

  it("gives up the body of an answer that is no document", async () => {
    for (const status of [404, 500]) {
      let isGivenUp = false;
      const body = () => new ReadableStream({ cancel: () => void (isGivenUp = true) });
      const { api } = apiOf(() => Promise.resolve(new Response(body(), { status })));
      assert.equal((await api.request("/openapi/v2")).status, status === 404 ? 404 : 503);
      assert.ok(isGivenUp);
    }
  });

  it("keeps one state of a document: those before it take no bytes", async () => {
    const server = upstream();
    const size = (await (await apiOf(server.fetch).api.request("/openapi/v3/api/v1")).text()).length;
    const { api, clock } = apiOf(server.fetch, { maxReaderBytes: 8 * size });
    for (let i = 0; i < 30; i++) {
      server.tag = `"${i}"`;
      assert.equal((await api.request("/openapi/v3/api/v1")).status, 200);
      await clock.advance(10_000);
    }
    server.requests.length = 0;
    await api.request("/openapi/v3/api/v1");
    assert.deepEqual(server.requests, ['/openapi/v3/api/v1 "29"'], "it is kept");
  });

  it("keeps the documents that were read last, as many as there are bytes for", async () => {
    const server = upstream();
    const description = "x".repeat(20_000);
    const Deployment = { ...gvk("apps", "v1", "Deployment"), description };
    server.documents["/openapi/v2"] = {
      ...V2,
      definitions: { Pod: { ...gvk("", "v1", "Pod"), description } },
    };
    server.documents["/openapi/v3/apis/apps/v1"] = { ...CORE, components: { schemas: { Deployment } } };
    server.documents["/openapi/v3/api/v1"] = { ...CORE, info: { description } };
    const resources = ["v1/pods", "apps/v1/deployments"].map((resource) => ({
      informer: FakeInformer.with([], 1),
      resource,
    }));
    // Two documents, and the one that is being sent.
    const { api } = apiOf(server.fetch, { resources, maxReaderBytes: 65_000 });
    const fetched = async (...paths: string[]) => {
      for (const path of paths) {
        const response = await api.request(path);
        assert.equal(response.status, 200);
        await response.text();
      }
      return server.requests.splice(0);
    };
    const [v2, core, apps] = ["/openapi/v2", "/openapi/v3/api/v1", "/openapi/v3/apis/apps/v1"];
    assert.deepEqual(await fetched(v2, core, v2), [v2, core]);
    assert.deepEqual(await fetched(apps, v2, apps), [apps], "the other one was read longer ago");
    assert.deepEqual(await fetched(core), [core]);
  });

  it("keeps no document for which there are no bytes, and sends none that is longer than all of them", async () => {
    const Pod = { ...gvk("", "v1", "Pod"), description: "x".repeat(20_000) };
    let count = 0;
    const fetch = () => Promise.resolve(Response.json((count++, { ...V2, definitions: { Pod } })));
    const { api } = apiOf(fetch, { maxReaderBytes: 20_000 });
    for (let i = 1; i < 4; i++) {
      assert.equal((await api.request("/openapi/v2")).status, 429);
      assert.equal(count, i);
    }
  });

  it("counts the compressed form of a document as long as it is kept, and no longer", async () => {
    const random = seededRandom(1);
    const description = Array.from({ length: 2_000 }, () => random().toString(36).slice(2)).join(" ");
    const Pod = { ...gvk("", "v1", "Pod"), description };
    const requests: string[] = [];
    let tag = 0;
    const fetch: FetchOpenApi = (path) => {
      requests.push(path);
      return Promise.resolve(
        Response.json({ ...V2, definitions: { Pod } }, { headers: { ETag: `"${tag++}"` } }),
      );
    };
    const size = (await (await apiOf(fetch).api.request("/openapi/v2")).arrayBuffer()).byteLength;
    // Beside the answer that is being sent, room for both forms of it, or for one.
    for (const maxReaderBytes of [3 * size, Math.ceil(2.3 * size)]) {
      const { api, clock } = apiOf(fetch, { maxReaderBytes });
      const read = async (encoding: string) => {
        const response = await api.request("/openapi/v2", { headers: { "Accept-Encoding": encoding } });
        assert.equal(response.status, 200);
        return (await response.arrayBuffer()).byteLength;
      };
      for (let i = 0; i < 20; i++) {
        await read("gzip");
        await clock.advance(10_000);
      }
      await read("identity");
      requests.length = 0;
      await read("identity");
      assert.deepEqual(requests, [], "it is kept");
    }
  });

  it("answers 304 for a tag that the reader has, and redirects from an outdated hash", async () => {
    const { api } = apiOf(upstream().fetch);
    const tag = (await api.request("/openapi/v2")).headers.get("ETag")!;
    const again = await api.request("/openapi/v2", { headers: { "If-None-Match": tag } });
    assert.deepEqual([again.status, again.headers.get("Content-Type")], [304, null]);
    assert.deepEqual([again.headers.get("ETag"), again.headers.get("Vary")], [
      tag,
      "Accept, Accept-Encoding",
    ]);
    const moved = await api.request("/openapi/v3/api/v1?hash=OLD");
    const { paths } = await (await api.request("/openapi/v3")).json();
    assert.deepEqual([moved.status, moved.headers.get("Location")], [301, paths["api/v1"].serverRelativeURL]);
  });

  it("names paths below the one that it is mounted at", async () => {
    const app = new Hono().route("/cluster", apiOf(upstream().fetch).api);
    const index = await app.request("/cluster/openapi/v3");
    assert.equal(index.headers.get("Content-Type"), "application/json");
    const { paths } = await index.json();
    const url = paths["api/v1"].serverRelativeURL;
    assert.match(url, /^\/cluster\/openapi\/v3\/api\/v1\?hash=/);
    assert.equal((await app.request(url)).status, 200);
    const moved = await app.request("/cluster/openapi/v3/api/v1?hash=OLD");
    assert.equal(moved.headers.get("Location"), url);
  });

  it("serves the last known document while the API server does not answer, else 503", async () => {
    const server = upstream();
    const { api, clock } = apiOf(server.fetch);
    assert.equal((await api.request("/openapi/v2")).status, 200);
    server.isDown = true;
    await clock.advance(60_000);
    assert.equal((await api.request("/openapi/v2")).status, 200);
    const none = await api.request("/openapi/v3");
    assert.deepEqual([none.status, none.headers.get("Retry-After")], [503, "1"]);
    assert.match((await none.json()).message, /\/openapi\/v3 cannot be fetched: connection refused/);
  });

  it("is 503 where the API server sends nothing, or more than fits", async () => {
    const piece = new Uint8Array(8 * 1024 * 1024).fill(0x20);
    let pieces = 0;
    const endless = () => new ReadableStream({ pull: (c) => (pieces++, c.enqueue(piece)) });
    const bodies = { "Unexpected end of JSON": () => null, "more than 67108864 bytes": endless };
    for (const [why, body] of Object.entries(bodies)) {
      const answer = await apiOf(() => Promise.resolve(new Response(body()))).api.request("/openapi/v2");
      assert.equal(answer.status, 503);
      assert.match((await answer.json()).message, new RegExp(why));
    }
    assert.ok(pieces <= 10, `${pieces} pieces were read`);
  });

  it("waits 30 s for an API server that is silent, or stops in the middle, and then not again for 10 s", async () => {
    const silent: FetchOpenApi = () => new Promise(() => {});
    const half: FetchOpenApi = () => {
      const body = new ReadableStream<Uint8Array>({
        start: (controller) => controller.enqueue(new TextEncoder().encode('{"paths":')),
      });
      return Promise.resolve(new Response(body));
    };
    for (const fetch of [silent, half]) {
      const server = upstream();
      let current: FetchOpenApi = fetch;
      let count = 0;
      let last!: Parameters<FetchOpenApi>[1];
      const { api, clock } = apiOf((path, init) => {
        count++;
        last = init;
        return current(path, init);
      });
      const request = api.request("/openapi/v2");
      await clock.advance(30_000);
      const refused = await request;
      assert.equal(refused.status, 503);
      assert.match((await refused.json()).message, /cannot be fetched: no answer within 30 s/);
      assert.equal(last.signal.aborted, true);
      current = server.fetch;
      assert.equal((await api.request("/openapi/v2")).status, 200);
      current = fetch;
      await clock.advance(10_000);
      const kept = api.request("/openapi/v2");
      await clock.advance(30_000);
      assert.equal((await kept).status, 200);
      assert.equal(count, 3);
      assert.equal((await api.request("/openapi/v2")).status, 200);
      assert.equal(count, 3);
    }
  });

  it("is 404 with the reason where there is no document", async () => {
    const server = upstream();
    delete server.documents["/openapi/v2"];
    const cases: [FetchOpenApi | undefined, string, RegExp][] = [
      [undefined, "/openapi/v3", /not given a source/],
      [undefined, "/openapi/v2", /not given a source/],
      [server.fetch, "/openapi/v2", /API server has no OpenAPI document at \/openapi\/v2/],
      [server.fetch, "/openapi/v3/apis/apps/v1", /nothing of "apis\/apps\/v1" is served/],
    ];
    for (const [fetch, path, message] of cases) {
      // kubectl explain accepts protobuf only for /openapi/v2.
      for (const Accept of ["*/*", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"]) {
        const response = await apiOf(fetch).api.request(path, { headers: { Accept } });
        const { kind, reason, message: text } = await response.json();
        assert.deepEqual([response.status, kind, reason], [404, "Status", "NotFound"]);
        assert.match(text, message);
      }
    }
  });

  it("is at no path with a slash at its end, as by kube-apiserver", async () => {
    const { api } = apiOf(upstream().fetch);
    for (const path of ["/openapi/v2", "/openapi/v3", "/openapi/v3/api/v1"]) {
      assert.equal((await api.request(path)).status, 200, path);
      for (const slashes of ["/", "//"]) {
        assert.equal((await api.request(path + slashes)).status, 404, path + slashes);
      }
    }
  });

  it("is 406 for readers that accept protobuf only, but its index, and JSON for readers that accept both", async () => {
    const { api } = apiOf(upstream().fetch);
    const protobuf = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    for (
      const [path, status] of [["/openapi/v2", 406], ["/openapi/v3/api/v1", 406], [
        "/openapi/v3",
        200,
      ]] as const
    ) {
      assert.equal((await api.request(path, { headers: { Accept: protobuf } })).status, status, path);
    }
    const accept = { Accept: `${protobuf},application/json` };
    assert.equal(
      (await api.request("/openapi/v2", { headers: accept })).headers.get("Content-Type"),
      "application/json",
    );
  });
});

describe("cutOpenApi", () => {
  it("keeps the parts of a resource that can be read, and what they refer to, whatever its name", () => {
    const deployments = "/apis/apps/v1/namespaces/{namespace}/deployments";
    const kept = {
      [`${deployments}/{name}/status`]: { get: {} },
      [`${deployments}/{name}/scale`]: { get: { schema: { $ref: "#/definitions/odd~1name~01" } } },
    };
    const paths = { ...kept, [deployments]: { post: {} }, [`${deployments}/{name}/log`]: { get: {} } };
    const needed = { "odd/name~1": { items: { $ref: "#/definitions/inner" } }, inner: {} };
    const definitions = { ...needed, other: {} };
    const resource = {
      group: "apps",
      version: "v1",
      resource: "deployments",
      kind: "Deployment",
      namespaced: true,
    };
    assert.deepEqual(cutOpenApi({ paths, definitions }, [resource]), {
      paths: kept,
      definitions: needed,
    });
  });
});
