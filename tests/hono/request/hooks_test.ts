import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Hono } from "hono";
import { newCluster, silentLogger } from "@listwatch/cache";
import {
  allOf,
  allowNamespaces,
  type Authorize,
  bearerTokens,
  type ReadApiOptions,
  type RequestAttributes,
  subjectAccessReview,
  tokenReview,
} from "@listwatch/cache/hono";
import { PrometheusMetrics } from "@listwatch/cache/metrics";
import { FakeClock, InMemoryApiServer } from "@listwatch/cache/testing";
import { settle } from "../../../src/util/clock.ts";
import { FakeInformer, object } from "../fake_informer.ts";
import { names, WatchReader } from "../reading.ts";
import { readApi } from "../read_api.ts";

const SHOP = "a-token-for-the-shop-alone";
const ADMIN = "a-token-for-the-administrator";

function apiOf(options: Partial<ReadApiOptions>): Hono {
  const pods = FakeInformer.with(
    ["shop/web-1", "shop/web-2", "shop-2/web-3", "kube-system/dns-1", "kube-system/dns-2"]
      .map((name, i) => object(name, i + 1, { spec: { hostname: `in ${name}` } })),
    10,
  );
  const nodes = FakeInformer.with([object("node-1", 1)], 10);
  const namespaces = FakeInformer.with([object("shop", 1), object("kube-system", 2)], 10);
  return readApi({
    resources: [
      { informer: pods, resource: "v1/pods" },
      { informer: nodes, resource: "v1/nodes" },
      { informer: namespaces, resource: "v1/namespaces" },
    ],
    logger: silentLogger,
    ...options,
  });
}

/** Waits for what may take any number of turns. */
async function until(isSo: () => boolean): Promise<void> {
  for (let turn = 0; !isSo(); turn++) {
    assert.ok(turn < 500_000, `it does not come: ${isSo}`);
    await settle();
  }
}

const withToken = (token: string) => ({ headers: { Authorization: `Bearer ${token}` } });

describe("readApi while its hooks fail", () => {
  it("logs a few lines a minute, and says how many more requests were refused", async () => {
    const lines: string[] = [];
    const logger = { ...silentLogger, error: (message: string) => void lines.push(message) };
    const clock = new FakeClock();
    const away = () => Promise.reject(new Error("connection refused"));
    for (const hooks of [{ authenticate: away, authorize: () => true }, { authorize: away }]) {
      const api = apiOf({ ...hooks, clock, logger });
      const status = "authenticate" in hooks ? 401 : 500;
      for (let i = 0; i < 200; i++) assert.equal((await api.request(`/api/v1/pods/${i}`)).status, status);
      assert.equal(lines.length, 10);
      await clock.advance(60_000);
      await api.request("/api/v1/pods");
      assert.match(lines[10], /connection refused.*190 failures of requests before/);
      assert.equal(lines.splice(0).length, 11);
    }
  });
});

describe("allowNamespaces", () => {
  /** Every way around it that there is. */
  const ELSEWHERE = [
    "/api/v1/pods",
    "/api/v1/pods?watch=1",
    "/api/v1/pods?limit=1",
    "/api/v1/pods?fieldSelector=metadata.namespace%3Dkube-system",
    "/api/v1/pods?fieldSelector=metadata.namespace%3Dshop",
    "/api/v1/namespaces/kube-system/pods",
    "/api/v1/namespaces/kube-system/pods/dns-1",
    "/api/v1/namespaces/shop-2/pods",
    "/api/v1/namespaces/sho/pods",
    "/api/v1/namespaces/SHOP/pods",
    "/api/v1/namespaces/kube-system%00/pods",
    "/api/v1/nodes",
    "/api/v1/nodes/node-1",
    "/api/v1/namespaces",
    "/api/v1/namespaces/kube-system",
    "/api/v1/gizmos",
  ];

  it("shows what is in the namespaces, discovery, and nothing else", async () => {
    const api = apiOf({ authorize: allowNamespaces(["shop"]) });
    const list = await (await api.request("/api/v1/namespaces/shop/pods")).json();
    assert.deepEqual(names(list), ["shop/web-1", "shop/web-2"]);
    for (const path of ["/api", "/api/v1", "/api/v1/namespaces/shop", "/api/v1/namespaces/shop/pods/web-2"]) {
      assert.equal((await api.request(path)).status, 200, path);
    }
    for (const path of ELSEWHERE) {
      const response = await api.request(path);
      assert.equal(response.status, 403, path);
      assert.doesNotMatch(await response.text(), /in (kube-system|shop-2)/, path);
    }
    // A path in the namespace shop, which has no such resource.
    assert.equal((await api.request("/api/v1/namespaces/shop%2F..%2Fkube-system/pods")).status, 404);
  });

  it("shows the metrics to no one: they count what is in all namespaces", async () => {
    const metrics = new PrometheusMetrics();
    const asked = async (authorize: Authorize) =>
      (await apiOf({ authorize, metrics }).request("/metrics")).status;
    assert.equal(await asked(allowNamespaces(["shop"], { clusterResources: ["pods", "nodes"] })), 403);
    assert.equal(await asked(allOf(() => true, allowNamespaces(["shop"]))), 403);
    assert.equal(await asked(() => true), 200);
    for (const path of ["/metrics/", "/metrics/x", "/debug/pprof", "/", "/apix", "/api-x"]) {
      const request = {
        scope: "path",
        verb: "get",
        path,
        resource: "",
        group: "",
        version: "",
        name: "",
      } as const;
      const decide = allowNamespaces(["shop"]) as (asked: RequestAttributes) => unknown;
      assert.match(String(decide({ ...request, namespace: undefined, user: undefined })), /^only /, path);
    }
  });

  it("does not show another namespace by a token of this one, nor by a selector", async () => {
    const api = apiOf({ authorize: allowNamespaces(["shop"]) });
    const first = await (await api.request("/api/v1/namespaces/shop/pods?limit=1")).json();
    const token = encodeURIComponent(first.metadata.continue);
    for (const path of ["/api/v1/pods", "/api/v1/namespaces/kube-system/pods"]) {
      assert.equal((await api.request(`${path}?continue=${token}`)).status, 403);
    }
    const forged = btoa(JSON.stringify({ v: "meta.k8s.io/v1", rv: "10", start: "kube-system/" }));
    const answer = await api.request(`/api/v1/namespaces/shop/pods?continue=${forged}`);
    assert.equal(answer.status, 400);
    const selector = "fieldSelector=metadata.namespace%3Dkube-system";
    const selected = await (await api.request(`/api/v1/namespaces/shop/pods?${selector}`)).json();
    assert.deepEqual(selected.items, []);
  });

  it("narrows to resources and verbs, and opens whole resources, by name", async () => {
    const authorize = allowNamespaces(["shop"], {
      resources: ["pods"],
      verbs: ["get", "list"],
      clusterResources: ["nodes"],
    });
    const api = apiOf({ authorize });
    const statuses = async (...paths: string[]) =>
      await Promise.all(paths.map(async (path) => (await api.request(path)).status));
    assert.deepEqual(await statuses("/api/v1/namespaces/shop/pods", "/api/v1/nodes"), [200, 200]);
    assert.deepEqual(
      await statuses("/api/v1/namespaces/shop/pods?watch=1", "/api/v1/namespaces/shop", "/api/v1/pods"),
      [403, 403, 403],
    );
  });

  it("is refused names that are none", () => {
    // deno-lint-ignore no-explicit-any
    const untyped = allowNamespaces as any;
    for (const wrong of ["shop", undefined, [], [""], ["*"], ["shop*"], [" shop"], [undefined], [7]]) {
      assert.throws(() => untyped(wrong), TypeError, JSON.stringify(wrong));
    }
    assert.throws(() => untyped(["shop"], { verbs: ["delete"] }), /there are get, list and watch/);
    assert.throws(() => untyped(["shop"], { resources: "pods" }), TypeError);
  });

  it("joins with other rules by allOf: all of them must say true", async () => {
    const busy: Authorize = () => Promise.resolve("come back tomorrow");
    const path = "/api/v1/namespaces/shop/pods";
    assert.equal((await apiOf({ authorize: allOf(allowNamespaces(["shop"])) }).request(path)).status, 200);
    const refused = await apiOf({ authorize: allOf(allowNamespaces(["shop"]), busy) }).request(path);
    assert.match((await refused.json()).message, /come back tomorrow$/);
    // deno-lint-ignore no-explicit-any
    const odd = apiOf({ authorize: allOf((() => undefined) as any, () => true) });
    assert.equal((await odd.request(path)).status, 403);
    assert.throws(() => allOf(), TypeError);
  });
});

describe("bearerTokens", () => {
  const tokens = [{ token: SHOP, user: { name: "shop" } }, { token: ADMIN, user: { name: "admin" } }];

  it("knows each user by its token, and no other", async () => {
    const seen: (string | undefined)[] = [];
    const authorize: Authorize = ({ user }) => {
      seen.push(user?.name);
      return true;
    };
    const api = apiOf({ authenticate: bearerTokens(tokens), authorize });
    // As an API server, it ignores what comes behind a space.
    for (
      const header of [`Bearer ${SHOP}`, `bearer ${ADMIN}`, `Bearer ${SHOP} `, `Bearer ${SHOP} ${ADMIN}`]
    ) {
      assert.equal((await api.request("/api", { headers: { Authorization: header } })).status, 200);
    }
    assert.deepEqual(seen.splice(0), ["shop", "admin", "shop", "shop"]);
    const others = ["", "Bearer", "Bearer ", SHOP, `Basic ${btoa(`:${SHOP}`)}`, `Bearer ${SHOP}x`];
    others.push(`Bearer ${SHOP.slice(1)}`, `Bearer ${SHOP.toUpperCase()}`, `Bearer ${SHOP}\t${SHOP}`);
    // An API server ignores them, with a warning.
    others.push(`Bearer  ${SHOP}`, `Bearer \t${SHOP}`);
    others.push(`Bearer ${"x".repeat(100_000)}`, "Bearer tökén-tökén-tökén");
    for (const header of others) {
      assert.equal((await api.request("/api", { headers: { Authorization: header } })).status, 401, header);
    }
    assert.equal((await api.request("/api")).status, 401);
    assert.deepEqual(seen, []);
  });

  it("refuses tokens that can be guessed or not be sent, without quoting them", () => {
    for (
      const token of [
        "short-password",
        "",
        "two words of a token",
        "with\nline breaks in it",
        "mit-ümlauten-darin",
      ]
    ) {
      assert.throws(() => bearerTokens([{ token, user: { name: "x" } }]), (error: Error) => {
        assert.ok(error instanceof TypeError);
        return token === "" || !error.message.includes(token);
      });
    }
    assert.throws(() => bearerTokens([]), /no token/);
    assert.throws(() => bearerTokens([...tokens, tokens[0]]), /index 2: it is there twice/);
    assert.throws(() => bearerTokens([{ token: SHOP, user: { name: "" } }]), /no name/);
  });
});

describe("tokenReview and subjectAccessReview", () => {
  /** An API server with two users, of whom one may read the namespace shop. */
  function cluster(clock = new FakeClock()) {
    const server = new InMemoryApiServer({ clock });
    const reviews: unknown[] = [];
    const control = {
      allowed: true as unknown,
      waiting: undefined as Promise<void> | undefined,
      down: false,
    };
    server.intercept(async (request) => {
      if (control.down) throw new TypeError("connection refused");
      const review = await request.json();
      reviews.push(review);
      await control.waiting;
      if (review.kind === "TokenReview") {
        const known = review.spec.token === SHOP || review.spec.token.startsWith("ey");
        const user = { username: "jane", uid: "7", groups: ["developers"], extra: { scopes: ["read"] } };
        return Response.json({ ...review, status: { authenticated: known, ...(known && { user }) } });
      }
      const { resourceAttributes, nonResourceAttributes } = review.spec;
      const allowed = nonResourceAttributes !== undefined || resourceAttributes.namespace === "shop";
      return Response.json({
        ...review,
        status: { allowed: allowed && control.allowed, ...(!allowed && { reason: "RBAC: no rule" }) },
      });
    }, { match: ({ path }) => path.endsWith("reviews") });
    const client = newCluster({ server: "http://in-memory", fetch: server.fetch, logger: silentLogger });
    const api = apiOf({
      authenticate: tokenReview(client, { clock }),
      authorize: subjectAccessReview(client, { clock }),
      clock,
    });
    return { api, reviews, control, clock, client };
  }

  it("let each reader see what the cluster lets them see", async () => {
    const { api, reviews } = cluster();
    assert.equal((await api.request("/api/v1/namespaces/shop/pods")).status, 401);
    assert.equal((await api.request("/api/v1/namespaces/shop/pods", withToken(ADMIN))).status, 401);
    assert.equal((await api.request("/api/v1/namespaces/shop/pods", withToken(SHOP))).status, 200);
    const refused = await api.request("/api/v1/pods?watch=1", withToken(SHOP));
    assert.equal(refused.status, 403);
    assert.match((await refused.json()).message, /User "jane" cannot watch .* cluster scope: RBAC: no rule$/);
    assert.equal((await api.request("/apis", withToken(SHOP))).status, 200);
    // deno-lint-ignore no-explicit-any
    const [, known, list, watch, path] = reviews.map((review: any) => review.spec);
    assert.deepEqual(known, { token: SHOP });
    const who = { user: "jane", groups: ["developers"], uid: "7", extra: { scopes: ["read"] } };
    const attributes = { group: "", version: "v1", resource: "pods", name: "" };
    assert.deepEqual(list, {
      ...who,
      resourceAttributes: { namespace: "shop", verb: "list", ...attributes },
    });
    assert.deepEqual(watch, { ...who, resourceAttributes: { namespace: "", verb: "watch", ...attributes } });
    assert.deepEqual(path, { ...who, nonResourceAttributes: { path: "/apis", verb: "get" } });
  });

  it("ask once for many requests, and again when an answer is old", async () => {
    const { api, reviews, control, clock } = cluster();
    const read = async () => (await api.request("/api/v1/namespaces/shop/pods", withToken(SHOP))).status;
    assert.deepEqual(await Promise.all(Array.from({ length: 20 }, read)), Array(20).fill(200));
    assert.equal(reviews.length, 2);
    control.allowed = false;
    await clock.advance(59_999);
    assert.equal(await read(), 200);
    await clock.advance(1);
    assert.equal(await read(), 403);
    control.allowed = true;
    await clock.advance(9_999);
    assert.equal(await read(), 403);
    await clock.advance(1);
    assert.equal(await read(), 200);
  });

  it("permit only what the API server clearly permits", async () => {
    const { api, control, clock } = cluster();
    for (const answer of ["true", 1, null, undefined, {}]) {
      control.allowed = answer;
      assert.equal((await api.request("/api/v1/namespaces/shop/pods", withToken(SHOP))).status, 403);
      await clock.advance(10_000);
    }
    const odd = [null, {}, { status: {} }, { status: { authenticated: true } }];
    const user = { username: "jane" };
    odd.push({ status: { authenticated: "true", user } } as never);
    odd.push({ status: { authenticated: true, user, error: "signature" } } as never);
    odd.push({ status: { authenticated: true, user: { username: "" } } } as never);
    for (const review of odd) {
      const authenticate = tokenReview({ request: () => Promise.resolve(review) });
      const answer = await apiOf({ authenticate, authorize: () => true }).request("/api", withToken(SHOP));
      assert.equal(answer.status, 401, JSON.stringify(review));
    }
  });

  it("refuse while the API server does not answer, and keep no failure", async () => {
    const { api, control, clock, reviews } = cluster();
    control.down = true;
    assert.equal((await api.request("/api", withToken(SHOP))).status, 401);
    control.down = false;
    assert.equal((await api.request("/api", withToken(SHOP))).status, 200);
    control.waiting = new Promise(() => {});
    const asked = reviews.length;
    const answer = api.request("/api/v1/namespaces/shop/pods", withToken(SHOP));
    await until(() => reviews.length > asked);
    await clock.advance(5_000);
    assert.equal((await answer).status, 500);
    control.waiting = undefined;
    assert.equal((await api.request("/api/v1/namespaces/shop/pods", withToken(SHOP))).status, 200);
    assert.equal(clock.pendingTimers, 0);
  });

  it("ask few questions at a time, and send readers away with 429 when too many wait", async () => {
    const { client, control, reviews, clock } = cluster();
    let release = () => {};
    control.waiting = new Promise((resolve) => release = resolve);
    const limits = { maxInFlight: 2, maxWaiting: 3, clock };
    const api = apiOf({ authorize: subjectAccessReview(client, limits), clock });
    const answers = Array.from(
      { length: 8 },
      (_, i) => api.request(`/api/v1/namespaces/shop/pods/web-${i}`),
    );
    await until(() => reviews.length === 2);
    await settle();
    assert.equal(reviews.length, 2);
    release();
    const statuses = (await Promise.all(answers)).map(({ status }) => status);
    assert.deepEqual(statuses, [404, 200, 200, 404, 404, 429, 429, 429]);
    const late = await api.request("/api/v1/namespaces/shop/pods/web-1");
    assert.equal(late.status, 200);
    assert.equal((await answers[7]).headers.get("Retry-After"), "1");
  });

  it("never have more questions in flight than they may, however many wait", async () => {
    let [inFlight, most, asked] = [0, 0, 0];
    const client = {
      request: async () => {
        most = Math.max(most, ++inFlight);
        asked++;
        await settle();
        inFlight--;
        return { status: { allowed: true } };
      },
    };
    const api = apiOf({ authorize: subjectAccessReview(client, { maxInFlight: 3 }) });
    for (let round = 0; round < 3; round++) {
      const paths = Array.from({ length: 20 }, (_, i) => `/api/v1/namespaces/shop/pods/${round}-${i}`);
      await Promise.all(paths.map((path) => api.request(path)));
    }
    assert.deepEqual([most, inFlight, asked], [3, 0, 60]);
  });

  it("ask for a subresource as such: who may read an object may not read its scale", async () => {
    const specs: unknown[] = [];
    const client = {
      request: (_: string, { body }: { readonly body: unknown }) => {
        const { spec } = body as { spec: { resourceAttributes: { subresource?: string } } };
        specs.push(spec.resourceAttributes);
        return Promise.resolve({ status: { allowed: spec.resourceAttributes.subresource === undefined } });
      },
    };
    const deployments = FakeInformer.with([object("shop/web", 5, { spec: { replicas: 1 } })], 10);
    const api = readApi({
      resources: [{ informer: deployments, resource: "apps/v1/deployments" }],
      authorize: subjectAccessReview(client),
    });
    const path = "/apis/apps/v1/namespaces/shop/deployments/web";
    assert.equal((await api.request(path)).status, 200);
    for (const subresource of ["scale", "status"]) {
      assert.equal((await api.request(`${path}/${subresource}`)).status, 403);
      const asked = { namespace: "shop", verb: "get", group: "apps", version: "v1", resource: "deployments" };
      assert.deepEqual(specs.pop(), { ...asked, subresource, name: "web" });
    }
  });

  describe("while strangers send one random token after the other", () => {
    const from = (address: string) => ({ incoming: { socket: { remoteAddress: address } } });
    const random = (i: number | string) => withToken(`a-random-token-${i}`);

    /** A cluster that answers a TokenReview when a test says so. */
    function flooded() {
      const clock = new FakeClock();
      const asked: { readonly token: string; answer(): void }[] = [];
      const known = new Set([SHOP, ADMIN]);
      const control = { isQuick: true };
      const client = {
        request: (_: string, { body }: { readonly body: unknown }) => {
          const { token } = (body as { spec: { token: string } }).spec;
          return new Promise<unknown>((resolve) => {
            const isKnown = known.has(token);
            const user = { username: token === SHOP ? "jane" : "admin" };
            const answer = () => resolve({ status: { authenticated: isKnown, ...(isKnown && { user }) } });
            asked.push({ token, answer });
            if (control.isQuick) answer();
          });
        },
      };
      // The API server may take its time here.
      const limits = { clock, timeoutMs: Infinity };
      const api = apiOf({
        authenticate: tokenReview(client, limits),
        authorize: () => true,
        hookTimeoutMs: Infinity,
        clock,
      });
      /** Resolves when all but so many are refused. */
      const flood = async (count: number, waiting: number, address: string) => {
        let refused = 0;
        const answers = Array.from({ length: count }, async (_, i) => {
          const { status } = await api.request("/api", random(`${address}-${i}`), from(address));
          if (status === 429) refused++;
          return status;
        });
        await until(() => refused === count - waiting);
        return answers;
      };
      return { api, clock, asked, control, known, flood };
    }

    it("readers that were known are reviewed at once, and keep their watches", async () => {
      const { api, clock, asked, control, known, flood } = flooded();
      const status = async () => (await api.request("/api", withToken(SHOP), from("10.0.0.1"))).status;
      const path = "/api/v1/namespaces/shop/pods?watch=1&resourceVersion=10";
      const watch = new WatchReader(await api.request(path, withToken(SHOP), from("10.0.0.1")));
      assert.equal(await status(), 200);
      const ended = watch.toEnd();
      await clock.advance(290_000);
      control.isQuick = false;
      asked.length = 0;
      // From the same address, too.
      const answers = await flood(2_000, 12 + 64, "10.0.0.1");
      assert.equal(asked.length, 12);
      const again = status();
      await until(() => asked.length > 12);
      assert.equal(asked.at(-1)!.token, SHOP);
      asked.at(-1)!.answer();
      assert.equal(await again, 200);
      await clock.advance(100_000);
      assert.equal(asked.at(-1)!.token, SHOP, "the watch asks again");
      asked.at(-1)!.answer();
      await clock.advance(0);
      assert.equal(await Promise.race([ended.then(() => "ended"), settle().then(() => "open")]), "open");
      known.clear();
      await clock.advance(400_000);
      asked.at(-1)!.answer();
      assert.deepEqual(await ended, []);
      control.isQuick = true;
      for (let i = 0; i < asked.length; i++) asked[i].answer();
      const statuses = await Promise.all(answers);
      assert.equal(statuses.filter((status) => status === 401).length, 12 + 64);
    });

    it("a new reader of another address is the next but few", async () => {
      const { api, asked, control, flood } = flooded();
      control.isQuick = false;
      const answers = [...await flood(500, 12 + 64, "10.0.0.1"), ...await flood(500, 64, "10.0.0.2")];
      let reads = 0;
      const socket = {
        get remoteAddress() {
          reads++;
          return "10.0.0.3";
        },
      };
      const answer = api.request("/api", withToken(ADMIN), { incoming: { socket } });
      // The address is read when the request is counted, and when the question is put.
      await until(() => reads > 1);
      let count = 0;
      while (!asked.some(({ token }) => token === ADMIN)) {
        asked[count++].answer();
        await until(() => asked.length === 12 + count);
      }
      assert.ok(count <= 8, `after ${count} of 140 others`);
      asked.find(({ token }) => token === ADMIN)!.answer();
      assert.equal((await answer).status, 200);
      control.isQuick = true;
      for (let i = 0; i < asked.length; i++) asked[i].answer();
      await Promise.all(answers);
    });

    it("the tokens that were refused are known for a while, and take no reader's place", async () => {
      const { api, clock, asked } = flooded();
      const status = async (init: RequestInit) => (await api.request("/api", init)).status;
      assert.equal(await status(withToken(SHOP)), 200);
      for (let i = 0; i < 5_000; i++) assert.equal(await status(random(i)), 401);
      assert.equal(asked.length, 5_001);
      for (let i = 4_000; i < 5_000; i++) assert.equal(await status(random(i)), 401);
      assert.equal(await status(withToken(SHOP)), 200);
      assert.equal(asked.length, 5_001);
      await clock.advance(10_000);
      assert.equal(await status(random(4_999)), 401);
      assert.equal(asked.length, 5_002);
    });
  });

  it("keep a bounded number of answers, those that are used", async () => {
    let asked = 0;
    const client = {
      request: () => {
        asked++;
        return Promise.resolve({ status: { allowed: true } });
      },
    };
    const api = apiOf({ authorize: subjectAccessReview(client, { maxEntries: 2 }) });
    const read = (name: string) => api.request(`/api/v1/namespaces/shop/pods/${name}`);
    for (const name of ["a", "b", "a", "c", "a"]) await read(name);
    assert.equal(asked, 3);
    await read("b");
    assert.equal(asked, 4);
  });

  it("end a watch with the JSON web token that it was opened with", async () => {
    const clock = new FakeClock(1_700_000_000_000);
    const { api } = cluster(clock);
    const claims = btoa(JSON.stringify({ sub: "jane", exp: 1_700_000_600 }));
    const token = withToken(`eyJhbGciOiJSUzI1NiJ9.${claims}.c2lnbmF0dXJl`);
    const response = await api.request("/api/v1/namespaces/shop/pods?watch=1&resourceVersion=10", token);
    const watch = new WatchReader(response);
    await clock.advance(599_000);
    assert.equal((await api.request("/api", token)).status, 200);
    await clock.advance(1_000);
    assert.deepEqual(await watch.toEnd(), []);
    assert.equal((await api.request("/api", token)).status, 401);
  });
});
