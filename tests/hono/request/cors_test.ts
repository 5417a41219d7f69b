import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Hono } from "hono";
import type { CorsOptions, ReadApiOptions } from "@listwatch/cache/hono";
import { FakeInformer, object } from "../fake_informer.ts";
import { readApi } from "../read_api.ts";

const PATH = "/api/v1/pods";
const ORIGIN = "https://dashboard.example";

function apiOf(cors?: CorsOptions, options: Partial<ReadApiOptions> = {}) {
  const informer = FakeInformer.with([object("shop/web-1", 5)], 10);
  const resources = [{ informer, resource: "v1/pods" }];
  return readApi({ resources, allowAnonymous: true, ...(cors && { cors }), ...options });
}

async function ask(api: Hono, origin: string | undefined, init: RequestInit = {}): Promise<Headers> {
  const headers = { ...init.headers as Record<string, string>, ...(origin && { Origin: origin }) };
  const response = await api.request(PATH, { ...init, headers });
  await response.body?.cancel();
  return new Headers([...response.headers, ["status", String(response.status)]]);
}

const preflight = { method: "OPTIONS", headers: { "Access-Control-Request-Method": "GET" } };

describe("readApi({ cors })", () => {
  it("allows the named origins only, and says in Vary that the answer depends on it", async () => {
    const api = apiOf({ origins: [ORIGIN, "http://localhost:5173"] });
    for (const origin of [ORIGIN, "http://localhost:5173"]) {
      const headers = await ask(api, origin);
      assert.equal(headers.get("Access-Control-Allow-Origin"), origin);
      assert.equal(headers.get("Access-Control-Allow-Credentials"), null);
      assert.match(
        headers.get("Access-Control-Expose-Headers")!,
        /Age.*Cache-Synced.*ETag.*Resource-Version/,
      );
      assert.match(headers.get("Vary")!, /Accept, Accept-Encoding, Origin/);
      assert.equal(headers.get("Cross-Origin-Resource-Policy"), "same-origin");
      assert.equal(headers.get("X-Content-Type-Options"), "nosniff");
    }
    const others = [undefined, "https://evil.example", "https://dashboard.example.evil.example", "null", ""];
    for (const origin of [...others, "http://dashboard.example", `${ORIGIN}:444`]) {
      for (const init of [{}, preflight]) {
        const headers = await ask(api, origin, init);
        assert.equal(headers.get("Access-Control-Allow-Origin"), null, origin);
        assert.match(headers.get("Vary") ?? "", /Origin/);
      }
    }
  });

  it("answers preflight requests without a permission, and nothing else", async () => {
    const api = apiOf({ origins: [ORIGIN] }, { allowAnonymous: undefined, authorize: () => false });
    const headers = await ask(api, ORIGIN, preflight);
    assert.equal(headers.get("status"), "204");
    assert.match(headers.get("Access-Control-Allow-Headers")!, /Authorization.*If-None-Match.*Last-Event-ID/);
    assert.equal(headers.get("Access-Control-Allow-Methods"), "GET, HEAD, OPTIONS");
    assert.equal(headers.get("Access-Control-Max-Age"), "600");
    assert.equal((await ask(api, ORIGIN)).get("status"), "403");
    assert.equal((await ask(api, ORIGIN)).get("Access-Control-Allow-Origin"), ORIGIN);
    assert.equal((await ask(api, ORIGIN, { method: "OPTIONS" })).get("status"), "403");
    assert.equal((await ask(api, "https://evil.example", preflight)).get("status"), "403");
  });

  it("allows every origin only without credentials, and credentials only to named ones", async () => {
    const headers = await ask(apiOf({ origins: "*" }), "https://any.example");
    assert.equal(headers.get("Access-Control-Allow-Origin"), "*");
    assert.equal(headers.get("Access-Control-Allow-Credentials"), null);
    assert.throws(() => apiOf({ origins: "*", credentials: true }), /every origin with credentials/);
    const named = await ask(apiOf({ origins: [ORIGIN], credentials: true }), ORIGIN);
    assert.equal(named.get("Access-Control-Allow-Origin"), ORIGIN);
    assert.equal(named.get("Access-Control-Allow-Credentials"), "true");
  });

  it("refuses what is no origin", () => {
    const wrong = ["*", "null", "dashboard.example", `${ORIGIN}/`, `${ORIGIN}/path`, "file:///x", "", 1];
    for (const origin of wrong) {
      assert.throws(() => apiOf({ origins: [origin as string] }), /Cannot allow the origin/, String(origin));
    }
    assert.throws(() => apiOf({ origins: ORIGIN as "*" }), /must be an array, or "\*"/);
  });

  it("is about the paths of the API only, wherever it is mounted, and is off by default", async () => {
    const app = new Hono();
    app.route("/", apiOf({ origins: [ORIGIN] }));
    app.get("/private", (c) => c.text("private"));
    const headers = { Origin: ORIGIN };
    assert.equal(
      (await app.request("/private", { headers })).headers.get("Access-Control-Allow-Origin"),
      null,
    );
    assert.equal((await app.request(PATH, { headers })).headers.get("Access-Control-Allow-Origin"), ORIGIN);
    assert.equal(
      (await app.request("/readyz", { headers })).headers.get("Access-Control-Allow-Origin"),
      ORIGIN,
    );
    const off = await ask(apiOf(), ORIGIN);
    assert.equal(off.get("Access-Control-Allow-Origin"), null);
    assert.doesNotMatch(off.get("Vary") ?? "", /Origin/);
  });

  it("keeps the headers of watches and of 304s", async () => {
    const api = apiOf({ origins: [ORIGIN] });
    const tag = (await ask(api, ORIGIN)).get("ETag")!;
    const notModified = await ask(api, ORIGIN, { headers: { "If-None-Match": tag } });
    assert.equal(notModified.get("status"), "304");
    assert.equal(notModified.get("Access-Control-Allow-Origin"), ORIGIN);
    const watch = await api.request(`${PATH}?watch=1`, { headers: { Origin: ORIGIN } });
    assert.equal(watch.headers.get("Access-Control-Allow-Origin"), ORIGIN);
    assert.match(watch.headers.get("Cache-Control")!, /no-transform/);
    await watch.body?.cancel();
  });
});

describe("readApi, the headers of the cache", () => {
  it("show whether it has synced, the age of its last contact, and its resourceVersion", async () => {
    const informer = new FakeInformer();
    const api = readApi({ resources: [{ informer, resource: "v1/pods" }], allowAnonymous: true });
    const shown = async (path = PATH) => {
      const { headers, body } = await api.request(path);
      await body?.cancel();
      return ["Cache-Synced", "Age", "Resource-Version"].map((name) => headers.get(name));
    };
    assert.deepEqual(await shown(), ["false", null, null]);
    informer.relist([object("shop/web-1", 5)], 10);
    assert.deepEqual(await shown(), ["true", null, "10"]);
    informer.lag = 12_900;
    const paths = ["?limit=1", "?watch=1", "/absent", "?resourceVersion=x"];
    for (
      const path of paths.map((rest) => rest === "/absent" ? "/api/v1/namespaces/shop/pods/x" : PATH + rest)
    ) {
      assert.deepEqual(await shown(path), ["true", "12", "10"], path);
    }
    informer.bookmark(44);
    assert.deepEqual(await shown(), ["true", "12", "44"]);
    informer.lag = Infinity;
    assert.deepEqual(await shown(), ["true", null, "44"]);
  });

  it("are not shown to readers who are refused", async () => {
    const api = apiOf(undefined, { allowAnonymous: undefined, authorize: () => false });
    const { headers, status } = await api.request(PATH);
    assert.equal(status, 403);
    for (const name of ["Cache-Synced", "Age", "Resource-Version", "ETag"]) {
      assert.equal(headers.get(name), null);
    }
  });
});
