import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Hono } from "hono";
import { silentLogger } from "@listwatch/cache";
import { readApi, type ReadApiOptions, type RequestAttributes } from "@listwatch/cache/hono";
import { FakeInformer, object } from "./fake_informer.ts";
import { get } from "./reading.ts";

const pods = () => ({ informer: FakeInformer.with([object("shop/web-1", 5)], 10), resource: "v1/pods" });
const secrets = () => ({ informer: FakeInformer.with([object("shop/key", 5)], 10), resource: "v1/secrets" });

describe("readApi at construction", () => {
  it("refuses to serve anything without authorize or allowAnonymous, and says what to do", () => {
    assert.throws(() => readApi({ resources: [pods()] }), {
      name: "TypeError",
      message: /give readApi an `authorize` hook .* or say `allowAnonymous: true`/,
    });
    assert.throws(() => readApi({ resources: [pods()], allowAnonymous: false }), TypeError);
  });

  it("refuses authorize together with allowAnonymous", () => {
    assert.throws(
      () => readApi({ resources: [pods()], allowAnonymous: true, authorize: () => true }),
      /leave one out/,
    );
  });

  it("refuses Secrets without allowSecrets, even with authorize", () => {
    assert.throws(() => readApi({ resources: [secrets()], authorize: () => true }), /allowSecrets: true/);
    assert.throws(() => readApi({ resources: [secrets()], allowAnonymous: true }), /allowSecrets: true/);
    readApi({ resources: [secrets()], authorize: () => true, allowSecrets: true });
  });

  it("attaches to no informer when it refuses", () => {
    const { informer, resource } = secrets();
    assert.throws(() => readApi({ resources: [{ informer, resource }], allowAnonymous: true }));
    assert.equal(informer.observers.size, 0);
  });

  it("refuses a resource twice, and a name that is not known", () => {
    assert.throws(() => readApi({ resources: [pods(), pods()], allowAnonymous: true }), /twice/);
    const widgets = { ...pods(), resource: "example.com/v1/widgets" };
    assert.throws(() => readApi({ resources: [widgets], allowAnonymous: true }), /describe it/);
    assert.throws(
      () => readApi({ resources: [{ ...pods(), resource: "pods" }], allowAnonymous: true }),
      TypeError,
    );
  });
});

describe("readApi's numbers", () => {
  it("are refused where nothing could work with them", () => {
    for (
      const wrong of [{ eventWindow: -1 }, { eventWindow: NaN }, { watchBufferBytes: 0 }, {
        bookmarkIntervalMs: 0,
      }]
    ) {
      assert.throws(() => readApi({ resources: [pods()], allowAnonymous: true, ...wrong }), RangeError);
    }
  });
});

describe("Authorize", () => {
  function recorded(options: Partial<ReadApiOptions> = {}) {
    const seen: RequestAttributes[] = [];
    const api = readApi({
      resources: [pods()],
      authorize: (attributes) => {
        seen.push(attributes);
        return true;
      },
      ...options,
    });
    return { api, seen };
  }

  it("asks with Kubernetes' attributes for get, list and watch", async () => {
    const { api, seen } = recorded();
    await api.request("/api/v1/namespaces/shop/pods/web-1");
    await api.request("/api/v1/pods");
    await (await api.request("/api/v1/namespaces/shop/pods?watch=1")).body?.cancel();
    const common = { group: "", version: "v1", resource: "pods", user: undefined };
    assert.deepEqual(seen, [
      {
        ...common,
        verb: "get",
        scope: "namespace",
        namespace: "shop",
        name: "web-1",
        path: "/api/v1/namespaces/shop/pods/web-1",
      },
      { ...common, verb: "list", scope: "cluster", namespace: undefined, name: "", path: "/api/v1/pods" },
      {
        ...common,
        verb: "watch",
        scope: "namespace",
        namespace: "shop",
        name: "",
        path: "/api/v1/namespaces/shop/pods",
      },
    ]);
  });

  it("says that a namespace is in itself, as an API server does, and that all of them are the cluster's", async () => {
    const namespaces = { informer: FakeInformer.with([object("shop", 5)], 10), resource: "v1/namespaces" };
    const { api, seen } = recorded({ resources: [namespaces] });
    await api.request("/api/v1/namespaces/shop");
    await api.request("/api/v1/namespaces?fieldSelector=metadata.name%3Dshop");
    assert.deepEqual(seen.map(({ scope, namespace, name }) => ({ scope, namespace, name })), [
      { scope: "namespace", namespace: "shop", name: "shop" },
      { scope: "cluster", namespace: undefined, name: "shop" },
    ]);
  });

  it("names the object when a field selector names it", async () => {
    const { api, seen } = recorded();
    await api.request("/api/v1/namespaces/shop/pods?fieldSelector=metadata.name%3Dweb-1");
    await api.request("/api/v1/namespaces/shop/pods?fieldSelector=metadata.name!%3Dweb-1");
    assert.deepEqual(seen.map(({ name }) => name), ["web-1", ""]);
  });

  it("asks for discovery by its path, wherever the app is mounted", async () => {
    const { api, seen } = recorded();
    const app = new Hono().route("/clusters/:cluster", api);
    await get(app, "/clusters/prod/apis");
    assert.deepEqual(seen.map(({ verb, scope, resource, path }) => ({ verb, scope, resource, path })), [
      { verb: "get", scope: "path", resource: "", path: "/apis" },
    ]);
  });

  it("answers 403 as an API server writes it when the hook says false", async () => {
    const api = readApi({ resources: [pods()], authorize: () => false });
    const one = await get(api, "/api/v1/namespaces/shop/pods/web-1", { status: 403 });
    assert.deepEqual(one, {
      kind: "Status",
      apiVersion: "v1",
      metadata: {},
      status: "Failure",
      message:
        'pods "web-1" is forbidden: User "system:anonymous" cannot get resource "pods" in API group "" in the namespace "shop"',
      reason: "Forbidden",
      details: { name: "web-1", kind: "pods" },
      code: 403,
    });
    const list = await get(api, "/api/v1/pods", { status: 403 });
    assert.match(
      list.message,
      /^pods is forbidden: .* cannot list resource "pods" in API group "" at the cluster scope$/,
    );
    const discovery = await get(api, "/api", { status: 403 });
    assert.equal(discovery.message, 'forbidden: User "system:anonymous" cannot get path "/api"');
  });

  it("adds the reason that the hook gives", async () => {
    const api = readApi({ resources: [pods()], authorize: () => "only the day shift may" });
    assert.match((await get(api, "/api/v1/pods", { status: 403 })).message, /: only the day shift may$/);
  });

  it("says nothing of what is there to one who may not read: 403 before 404 and before 400", async () => {
    const api = readApi({ resources: [pods()], authorize: () => Promise.resolve(false) });
    await get(api, "/api/v1/namespaces/shop/pods/absent", { status: 403 });
    await get(api, "/api/v1/pods?limit=ten", { status: 403 });
    await get(api, "/api/v1/gizmos", { status: 403 });
    await get(api, "/api/v1/pods?watch=1", { status: 403 });
  });

  it("answers 401 to one whom the authenticate hook does not know, and hands on one it knows", async () => {
    const users: unknown[] = [];
    const api = readApi({
      resources: [pods()],
      authenticate: (c) => {
        const name = c.req.header("Authorization")?.replace("Bearer ", "");
        return name === "ann" ? { name, groups: ["ops"] } : undefined;
      },
      authorize: ({ user, verb }) => {
        users.push(user);
        return verb === "get";
      },
    });
    const unknown = await get(api, "/api/v1/pods", { status: 401 });
    assert.equal(unknown.reason, "Unauthorized");
    assert.deepEqual(users, []);
    const headers = { Authorization: "Bearer ann" };
    assert.equal((await api.request("/api/v1/namespaces/shop/pods/web-1", { headers })).status, 200);
    assert.deepEqual(users, [{ name: "ann", groups: ["ops"] }]);
    const list = await api.request("/api/v1/pods", { headers });
    assert.match(await list.text(), /User \\"ann\\" cannot list/);
  });

  it("calls authenticate even if every known user may read everything", async () => {
    const api = readApi({ resources: [pods()], authenticate: () => undefined, allowAnonymous: true });
    await get(api, "/api/v1/pods", { status: 401 });
  });

  it("serves nothing when a hook throws: 500, without the reason", async () => {
    const api = readApi({
      resources: [pods()],
      authorize: () => Promise.reject(new Error("the database at 10.0.0.1 is down")),
      logger: silentLogger,
    });
    const status = await get(api, "/api/v1/pods", { status: 500 });
    assert.equal(status.reason, "InternalError");
    assert.doesNotMatch(JSON.stringify(status), /10\.0\.0\.1/);
  });

  it("leaves health and version open", async () => {
    const api = readApi({ resources: [pods()], authorize: () => false, authenticate: () => undefined });
    for (const path of ["/healthz", "/livez", "/readyz"]) {
      const response = await api.request(path);
      assert.equal(response.status, 200);
      assert.equal(await response.text(), "ok");
    }
    assert.equal((await get(api, "/version")).minor, "36");
  });
});
