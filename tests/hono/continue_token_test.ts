import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { readApi, type ReadApiOptions } from "@listwatch/cache/hono";
import { FakeClock, realClock } from "../../src/util/clock.ts";
import { FakeInformer, object } from "./fake_informer.ts";
import { get, type Json, names } from "./reading.ts";

function apiOf(options: Partial<ReadApiOptions> = {}) {
  const clock = new FakeClock();
  const objects = ["a", "b", "c"].flatMap((namespace, n) =>
    Array.from(
      { length: 20 },
      (_, i) =>
        object(`${namespace}/p-${String(i).padStart(2, "0")}`, n * 20 + i + 1, {
          labels: { odd: String(i % 2) },
        }),
    )
  );
  const pods = FakeInformer.with(objects, 100);
  const configMaps = FakeInformer.with(objects, 100);
  const api = readApi({
    resources: [{ informer: pods, resource: "v1/pods" }, { informer: configMaps, resource: "v1/configmaps" }],
    authenticate: (c) => ({ name: c.req.header("X-User") ?? "jane" }),
    authorize: () => true,
    clock,
    ...options,
  });
  return { api, pods, clock };
}

describe("readApi, a page with a continue token", () => {
  it("returns every page of a store whose version is no number that a token can hold", async () => {
    const objects = ["a", "b", "c", "d", "e"].map((name, i) => object(name, i + 1));
    const api = readApi({
      resources: [{ informer: FakeInformer.with(objects, 0), resource: "v1/nodes" }],
      allowAnonymous: true,
    });
    const listed: string[] = [];
    for (let next: string | undefined = ""; next !== undefined;) {
      const page: Json = await get(api, `/api/v1/nodes?limit=2&continue=${next}`);
      listed.push(...names(page));
      next = page.metadata.continue;
    }
    assert.deepEqual(listed, ["a", "b", "c", "d", "e"]);
  });

  it("waits for the version of a token that a cache of the same API server has written, which has come further", async () => {
    const [first, second] = [apiOf(), apiOf()];
    first.pods.put(object("a/p-00", 101));
    const path = "/api/v1/pods?limit=30";
    const { metadata }: Json = await get(first.api, path);
    assert.equal(metadata.resourceVersion, "101");
    let isAnswered = false;
    const next = get(second.api, `${path}&continue=${metadata.continue}`).finally(() => (isAnswered = true));
    await second.clock.advance(1_000);
    assert.equal(isAnswered, false);
    second.pods.put(object("a/p-00", 101));
    const rest: Json = await next;
    assert.equal(rest.metadata.resourceVersion, "101");
    assert.equal(rest.items.length, 30);
  });

  it("continues its own list only: elsewhere it is 400 and no data", async () => {
    const { api } = apiOf();
    const lists = [
      "/api/v1/pods?limit=2",
      "/api/v1/namespaces/a/pods?limit=2",
      "/api/v1/namespaces/b/pods?limit=2",
      "/api/v1/configmaps?limit=2",
      "/api/v1/namespaces/a/configmaps?limit=2",
      "/api/v1/pods?limit=2&labelSelector=odd%3D1",
      "/api/v1/pods?limit=2&labelSelector=odd%3D0",
      "/api/v1/pods?limit=2&fieldSelector=metadata.name!%3Dp-05",
    ];
    const request = async (path: string, user: string) => {
      const response = await api.request(path, { headers: { "X-User": user } });
      return { status: response.status, body: await response.json() as Json };
    };
    const readers = lists.flatMap((path) => ["jane", "joe"].map((user) => ({ path, user })));
    for (const from of readers) {
      const { body } = await request(from.path, from.user);
      const token = encodeURIComponent(body.metadata.continue);
      for (const to of readers) {
        const answer = await request(`${to.path}&continue=${token}`, to.user);
        if (to === from) {
          assert.equal(answer.status, 200);
          assert.equal(answer.body.items.length, 2);
        } else {
          assert.equal(answer.status, 400, `${JSON.stringify(from)} at ${JSON.stringify(to)}`);
          assert.match(answer.body.message, /invalid continue token: it is of another list/);
        }
      }
    }
  });

  it("does not mind how a selector is written, nor another limit", async () => {
    const { api } = apiOf();
    const path = "/api/v1/pods?labelSelector=";
    const first = await get(api, `${path}odd+in+(1,0),x!%3Dy&limit=1`);
    const token = encodeURIComponent(first.metadata.continue);
    const next = await get(api, `${path}x!%3Dy,odd+in+(0,1)&limit=3&continue=${token}`);
    assert.deepEqual(names(next), ["a/p-01", "a/p-02", "a/p-03"]);
  });

  it("that a client made up gives what the request may have anyway", async () => {
    // A version from the future is waited for.
    const { api } = apiOf({ clock: realClock, freshnessTimeoutMs: 0 });
    const { metadata } = await get(api, "/api/v1/namespaces/b/pods?limit=1");
    const claims = JSON.parse(atob(metadata.continue.replaceAll("-", "+").replaceAll("_", "/")));
    // A JSON number of any length, which `JSON.stringify` cannot write.
    const forge = ({ start, rv }: Record<"start" | "rv", string>) =>
      btoa(JSON.stringify({ ...claims, start, rv: 0 }).replace('"rv":0', `"rv":${rv}`)).replace(/=+$/, "");
    for (const start of ["a/p-00", "a", "", "b/", "\0", "c/p-00", "~", "b/p-05/../../a/p-01"]) {
      for (const rv of ["100", "-1", "99", "1000000000000000000000"]) {
        const path = `/api/v1/namespaces/b/pods?continue=${encodeURIComponent(forge({ start, rv }))}`;
        const response = await api.request(path);
        const body = await response.json();
        if (response.status !== 200) assert.ok([400, 410].includes(response.status));
        else assert.ok(names(body).every((name) => name.startsWith("b/")), path);
      }
    }
  });

  it("of a list whose state was dropped is 410 with a token for the same list only", async () => {
    const { api, pods } = apiOf({ eventWindow: 2 });
    const { metadata } = await get(api, "/api/v1/namespaces/a/pods?limit=1");
    for (let version = 101; version < 110; version++) pods.put(object("a/p-00", version));
    const expired = await get(api, `/api/v1/namespaces/a/pods?continue=${metadata.continue}`, {
      status: 410,
    });
    const token = expired.metadata.continue;
    assert.equal((await get(api, `/api/v1/namespaces/a/pods?continue=${token}`)).items.length, 19);
    await get(api, `/api/v1/namespaces/b/pods?continue=${token}`, { status: 400 });
  });
});

describe("EventLog.stateAt", () => {
  /** Counts the walks over all keys, by the keys that a snapshot reads. */
  async function walksOf(work: (chain: ReturnType<typeof apiOf>) => Promise<unknown>) {
    const chain = apiOf();
    for (let version = 101; version <= 140; version++) chain.pods.put(object(`a/p-${version}`, version));
    const { has } = Map.prototype;
    let looks = 0;
    Map.prototype.has = function (key) {
      if (typeof key === "string" && /^[abc]\/p-/.test(key)) looks++;
      return has.call(this, key);
    };
    try {
      await work(chain);
    } finally {
      Map.prototype.has = has;
    }
    return looks;
  }

  it("is computed once for repeated reads, page by page or at its resourceVersion", async () => {
    const once = await walksOf(({ api }) => get(api, "/api/v1/pods?resourceVersion=110&limit=5"));
    assert.ok(once >= 60, `${once} keys`);
    const pages = await walksOf(async ({ api }) => {
      let path = "/api/v1/pods?resourceVersion=110&limit=5";
      let items = 0;
      for (;;) {
        const page = await get(api, path);
        items += page.items.length;
        assert.equal(page.metadata.resourceVersion, "110");
        if (page.metadata.continue === undefined) break;
        path = `/api/v1/pods?limit=5&continue=${encodeURIComponent(page.metadata.continue)}`;
      }
      assert.equal(items, 70);
    });
    assert.equal(pages, once);
    const exact = await walksOf(async ({ api, pods }) => {
      for (let i = 0; i < 50; i++) {
        const list = await get(api, "/api/v1/pods?resourceVersion=110&resourceVersionMatch=Exact");
        assert.equal(list.items.length, 70);
        pods.put(object("b/p-00", 200 + i));
      }
    });
    assert.equal(exact, once);
  });

  it("is dropped after a while, of few versions, and never another version's", async () => {
    const { api, pods, clock } = apiOf();
    for (let version = 101; version <= 130; version++) pods.put(object(`a/p-${version}`, version));
    for (let round = 0; round < 3; round++) {
      for (let version = 130; version >= 100; version--) {
        const path = `/api/v1/pods?resourceVersion=${version}&resourceVersionMatch=Exact`;
        const list = await get(api, path);
        assert.equal(list.items.length, 60 + version - 100);
        assert.equal(list.metadata.resourceVersion, String(version));
      }
      await clock.advance(31_000);
    }
    // A restored server has another past under the same versions.
    pods.relist([object("a/other", 50)], 90);
    pods.put(object("a/new", 110));
    await get(api, "/api/v1/pods?resourceVersion=100&resourceVersionMatch=Exact");
    const restored = await get(api, "/api/v1/pods?resourceVersion=105&resourceVersionMatch=Exact");
    assert.deepEqual(names(restored), ["a/other"]);
  });
});
