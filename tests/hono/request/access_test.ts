import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Hono } from "hono";
import { silentLogger } from "@listwatch/cache";
import type { ReadApiOptions, RequestAttributes } from "@listwatch/cache/hono";
import { PrometheusMetrics } from "@listwatch/cache/metrics";
import { FakeInformer, object } from "../fake_informer.ts";
import { PLAIN_ROUTES, READER_ROUTES } from "../../../src/hono/read_api.ts";
import { get, WatchReader } from "../reading.ts";
import { readApi } from "../read_api.ts";

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

  it("asks at an old path of a watch as for that watch, which has what the path names and no more", async () => {
    const objects = ["shop/web-1", "shop/web-2", "blog/web-1"].map((name) => object(name, 5));
    const cases:
      readonly (readonly [path: string, namespace: string | undefined, name: string, sent: string[]])[] = [
        ["pods", undefined, "", ["blog/web-1", "shop/web-1", "shop/web-2"]],
        ["namespaces/shop/pods", "shop", "", ["shop/web-1", "shop/web-2"]],
        ["namespaces/shop/pods/web-1", "shop", "web-1", ["shop/web-1"]],
      ];
    for (const [path, namespace, name, sent] of cases) {
      const { api, seen } = recorded({
        resources: [{ informer: FakeInformer.with(objects, 10), resource: "v1/pods" }],
      });
      const watch = await WatchReader.open(api, `/api/v1/watch/${path}`);
      assert.deepEqual(seen.map(({ verb, namespace, name }) => [verb, namespace, name]), [
        ["watch", namespace, name],
      ]);
      api.endWatches();
      assert.deepEqual(await watch.toEnd(), sent.map((key) => `ADDED ${key} 5`));
    }
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
    for (const noName of [".", "..", "a%2Fb", "a%25b"]) {
      // deno-lint-ignore no-await-in-loop -- one after the other
      await api.request(`/api/v1/namespaces/shop/pods?fieldSelector=metadata.name%3D${noName}`);
    }
    assert.deepEqual(seen.splice(0).map(({ name }) => name), ["web-1", "", "", "", "", ""]);
    for (const length of [2_048, 2_049]) {
      const name = "a".repeat(length);
      // deno-lint-ignore no-await-in-loop -- one after the other
      await api.request(`/api/v1/namespaces/shop/pods?fieldSelector=metadata.name%3D${name}`);
    }
    assert.deepEqual(seen.map(({ name }) => name.length), [2_048, 0]);
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

  it("asks for the watch, the list or the get that a malformed request wants: who may not do that reads no 400", async () => {
    for (const may of ["get", "list", "watch"]) {
      const api = readApi({ resources: [pods()], authorize: ({ verb }) => verb === may });
      for (
        const [verb, path] of [
          ["list", "/api/v1/pods?limit=ten"],
          ["list", "/api/v1/pods?watch=false&limit=ten"],
          ["watch", "/api/v1/pods?watch=true&limit=ten"],
          ["watch", "/api/v1/watch/pods?limit=ten"],
          ["watch", "/api/v1/watch/pods?watch=false&limit=ten"],
        ]
      ) {
        await get(api, path, { status: verb === may ? 400 : 403 });
      }
      const one = "/api/v1/namespaces/shop/pods/absent?watch=true&limit=ten";
      assert.equal((await api.request(one)).status === 403, may !== "get");
    }
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
    const newer = readApi({ resources: [], allowAnonymous: true, version: { minor: "40" } });
    assert.equal((await get(newer, "/version")).gitVersion, "v1.40.0");
  });
});

const OPEN = ["/healthz", "/livez", "/readyz", "/version"];
const ENDINGS: Readonly<Record<string, readonly string[]>> = {
  "/api/*": [
    "",
    "/v1",
    "/v1/pods",
    "/v1/pods?watch=1",
    "/v1/pods?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
    "/v1/pods?labelSelector=!!",
    "/v1/pods?continue=x",
    "/v1/watch/pods",
    "/v1/namespaces/shop/pods/web-1",
    "/v1/namespaces/shop/pods/web-1/status",
    "/v1/namespaces/shop/pods/web-1/exec",
    "/v1/namespaces/shop/pods/web-1/nothing",
    "/v1/namespaces/shop/pods/%2E",
    "/v1/secrets",
    "/v1/%",
    `/v1/${"x".repeat(3_000)}`,
    "/v2/pods",
  ],
  "/apis/*": ["", "/apps", "/apps/v1", "/apps/v1/deployments", "/example.com/v1/widgets/a", "//", "/%"],
  "/openapi/*": ["", "/v2", "/v3", "/v3/api/v1", "/v3/apis/apps/v1", "/v4"],
  "/indices/*": [
    "",
    "/pods",
    "/pods/",
    "/pods/byApp",
    "/pods/byApp/",
    "/pods/byApp/web",
    "/pods/nothing/web",
    "/pods?limit=x",
    "/nodes?namespace=shop",
    "/nothing",
    "/%",
  ],
  "/metrics": [""],
};

describe("readApi, at every route,", () => {
  const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
  const app = (options: Partial<ReadApiOptions>) =>
    readApi({
      resources: ["v1/pods", "v1/nodes"].map((resource) => {
        const one = object(resource === "v1/pods" ? "shop/web-1" : "node-1", 5, { spec: { text: "s3cret" } });
        const informer = FakeInformer.with([one], 10, { byApp: () => ["web", "s3cret"] });
        return { informer, resource };
      }),
      metrics: new PrometheusMetrics(),
      openApi: () => Promise.reject(new Error("it must not be called")),
      logger: silentLogger,
      ...options,
    });
  const isOpen = (pattern: string) => OPEN.some((path) => `${pattern}/`.startsWith(`${path}/`));

  async function answersOf(api: ReturnType<typeof readApi>, headers: Record<string, string> = {}) {
    const statuses = new Set<number>();
    for (const pattern of [...Object.keys(PLAIN_ROUTES), ...Object.keys(READER_ROUTES)]) {
      if (isOpen(pattern)) continue;
      assert.ok(pattern in ENDINGS, `${pattern} has no paths here`);
      for (const ending of ENDINGS[pattern]) {
        const path = pattern.replace(/\/\*$/, "") + ending;
        for (const method of METHODS) {
          // Not a path of the app, which has one method there.
          if (path === "/metrics" && method !== "GET" && method !== "HEAD") continue;
          const response = await api.request(path, { method, headers });
          const text = await response.text();
          assert.ok([401, 403].includes(response.status), `${method} ${path}: ${response.status} ${text}`);
          assert.doesNotMatch(text, /s3cret/, path);
          statuses.add(response.status);
        }
      }
    }
    return [...statuses];
  }

  it("answers nothing but 403 where authorize refuses, whatever is wrong with the request", async () => {
    for (const authorize of [() => false, () => "not you", () => undefined as unknown as boolean]) {
      assert.deepEqual(await answersOf(app({ authorize })), [403]);
    }
  });

  it("answers nothing but 401 where authenticate knows no user", async () => {
    assert.deepEqual(await answersOf(app({ authenticate: () => undefined, allowAnonymous: true })), [401]);
  });

  it("answers nothing but 401 and 403 where the API server refuses what is passed through", async () => {
    const sent: string[] = [];
    const passThrough = {
      server: "https://upstream",
      writes: true,
      fetch: (input: string | URL | Request) => {
        sent.push(String(input));
        return Promise.resolve(new Response("{}", { status: 403 }));
      },
    };
    const api = app({ authorize: () => false, passThrough });
    assert.deepEqual(new Set(await answersOf(api)), new Set([401, 403]));
    assert.deepEqual(sent, []);
  });

  it("has no other routes, and open ones that name nothing of what is served", async () => {
    const api = app({ authorize: () => false });
    const paths = new Set(api.routes.map(({ path }) => path));
    assert.deepEqual([...paths], [...Object.keys(PLAIN_ROUTES), ...Object.keys(READER_ROUTES)]);
    const unsynced = app({
      authorize: () => false,
      resources: [{ informer: new FakeInformer(), resource: "v1/pods" }],
    });
    for (const pattern of Object.keys(PLAIN_ROUTES).filter(isOpen)) {
      for (const one of [api, unsynced]) {
        const path = pattern.replace("*", "informer-pods");
        for (const query of ["", "?verbose"]) {
          const text = await (await one.request(path + query)).text();
          assert.doesNotMatch(text, /pods|nodes|web-1/, path);
        }
      }
    }
  });
});
