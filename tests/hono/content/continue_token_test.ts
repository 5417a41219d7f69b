import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { ReadApiOptions } from "@listwatch/cache/hono";
import { Content } from "../../../src/hono/content/content.ts";
import { type ListRequest, stillPlaced } from "../../../src/hono/content/selection.ts";
import { isStatus } from "../../../src/protocol/statuses.ts";
import { FakeClock } from "../../../src/testing/fake_clock.ts";
import { nextTurn, realClock } from "../../../src/util/clock.ts";
import { seededRandom } from "../../../src/testing/seeded_random.ts";
import { FakeInformer, object } from "../fake_informer.ts";
import { get, type Json, names } from "../reading.ts";
import { readApi } from "../read_api.ts";

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

  it("has the version of the token, also where that passes while the page is cut", async () => {
    const objects = Array.from(
      { length: 60_000 },
      (_, i) => object(`p-${i}`, i + 1, { labels: { odd: `${i % 2}` } }),
    );
    const informer = FakeInformer.with(objects, 100_000);
    const api = readApi({ resources: [{ informer, resource: "v1/nodes" }], allowAnonymous: true });
    const path = "/api/v1/nodes?labelSelector=odd%3D1&limit=10";
    const first: Json = await get(api, path);
    let version = 100_000;
    const next = `/api/v1/nodes?labelSelector=odd%3D1&limit=29000&continue=${first.metadata.continue}`;
    const second = get(api, next);
    let isAnswered = false;
    second.then(() => (isAnswered = true));
    while (!isAnswered) {
      await nextTurn();
      informer.bookmark(++version);
    }
    assert.ok(version > 100_001, "it is cut in several turns");
    assert.equal((await second).metadata.resourceVersion, "100000");
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

  it("is answered 504 where the cache does not come to its version, as by an API server", async () => {
    const [first, second] = [apiOf(), apiOf({ clock: realClock, freshnessTimeoutMs: 0 })];
    first.pods.put(object("a/p-00", 101));
    const { metadata }: Json = await get(first.api, "/api/v1/pods?limit=30");
    const late = await get(second.api, `/api/v1/pods?limit=30&continue=${metadata.continue}`, {
      status: 504,
    });
    assert.equal(late.message, "Timeout: Too large resource version: 101, current: 100");
  });

  it("is answered with its state, whenever during the request a change comes", async () => {
    for (let turns = 0; turns < 60; turns++) {
      const { api, pods } = apiOf();
      const { metadata } = await get(api, "/api/v1/pods?limit=10");
      const next = get(api, `/api/v1/pods?limit=20&continue=${metadata.continue}`);
      for (let turn = 0; turn < turns; turn++) await null;
      pods.put(object("a/p-29", 101));
      const page = await next;
      assert.equal(page.metadata.resourceVersion, metadata.resourceVersion, `after ${turns} turns`);
      assert.ok(page.items.every((item: Json) => item.metadata.resourceVersion !== "101"));
    }
  });

  it("is 410 where a list has brought another content of the same version: the API server was restored", async () => {
    for (
      const [name, relisted] of [["changed", [object("a/p-00", 1), object("a/p-30", 99)]], [
        "less",
        [],
      ]] as const
    ) {
      const { api, pods } = apiOf();
      const { metadata } = await get(api, "/api/v1/pods?limit=10");
      const exact = await get(api, "/api/v1/pods?limit=10&resourceVersion=100");
      pods.relist(relisted, 100);
      for (const token of [metadata.continue, exact.metadata.continue]) {
        const answer = await api.request(`/api/v1/pods?limit=10&continue=${token}`);
        const { reason, metadata: { continue: rest } } = await answer.json() as Json;
        assert.deepEqual([answer.status, reason], [410, "Expired"], name);
        const next = await get(api, `/api/v1/pods?limit=10&continue=${rest}`);
        assert.deepEqual(names(next), relisted.slice(1).map(({ metadata }) => `a/${metadata?.name}`), name);
      }
    }
  });

  it("is 410 and not 504 where the version of a restored API server is before that of the token", async () => {
    const { api, pods } = apiOf({ clock: realClock, freshnessTimeoutMs: 0 });
    const { metadata } = await get(api, "/api/v1/pods?limit=10");
    pods.relist([object("a/p-00", 1)], 90);
    const answer = await api.request(`/api/v1/pods?limit=10&continue=${metadata.continue}`);
    assert.equal(answer.status, 410);
  });

  it("is 410 where the version of a restored API server has come to that of the token", async () => {
    const { api, pods } = apiOf();
    const { metadata } = await get(api, "/api/v1/pods?limit=10");
    pods.relist([object("a/p-00", 1)], 90);
    pods.put(object("a/p-30", 100));
    const answer = await api.request(`/api/v1/pods?limit=10&continue=${metadata.continue}`);
    assert.equal(answer.status, 410);
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
        if (response.status !== 200) assert.ok([400, 410, 504].includes(response.status));
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

/** A token as an API server writes it: without the list that it is of. */
function tokenOfApiServer(rv: number, start: string): string {
  return btoa(JSON.stringify({ v: "meta.k8s.io/v1", rv, start })).replace(/=+$/, "");
}

describe("readApi, a page with a continue token of the API server", () => {
  // With the slash, as kube-apiserver 1.36 writes them, and without it, as older ones do.
  const pages = ["", "/"].flatMap((slash) =>
    [
      ["/api/v1/pods?limit=4", `${slash}b/p-03\0`, 60 - 24],
      ["/api/v1/namespaces/b/pods?limit=4", `${slash}p-03\0`, 16],
      ["/api/v1/pods?limit=4&labelSelector=odd%3D1", `${slash}b/p-03\0`, 18],
    ] as const
  );

  /** All that follows a token. */
  async function listOn(
    api: ReturnType<typeof apiOf>["api"],
    path: string,
    token: string,
  ): Promise<string[]> {
    const listed: string[] = [];
    for (let next: string | undefined = token; next !== undefined && listed.length < 100;) {
      const page: Json = await get(api, `${path}&continue=${encodeURIComponent(next)}`);
      assert.equal(page.metadata.resourceVersion, "100");
      listed.push(...names(page));
      next = page.metadata.continue;
    }
    return listed;
  }

  for (const [path, start, rest] of pages) {
    it(`is of the state that the token names: ${path}, from ${JSON.stringify(start)}`, async () => {
      const { api, pods } = apiOf();
      pods.put(object("b/p-10", 101));
      pods.remove("c/p-10", 102);
      const listed = await listOn(api, path, tokenOfApiServer(100, start));
      assert.equal(listed.length, rest);
      assert.equal(new Set(listed).size, rest);
      assert.ok(listed.every((name) => name > "b/p-03" && (path.includes("/b/") || name < "d")));
    });

    it(`is 410 with a token for the rest where the state is lost: ${path}, from ${JSON.stringify(start)}`, async () => {
      const { api } = apiOf();
      const token = tokenOfApiServer(95, start);
      const expired = await get(api, `${path}&continue=${token}`, { status: 410 });
      assert.equal(expired.reason, "Expired");
      const listed = await listOn(api, path, expired.metadata.continue);
      assert.equal(listed.length, rest);
      assert.ok(listed.every((name) => name > "b/p-03" && (path.includes("/b/") || name < "d")));
    });
  }

  it("is of the present state for a token without a version", async () => {
    const { api, pods } = apiOf();
    pods.put(object("b/p-10", 101));
    const page: Json = await get(
      api,
      `/api/v1/namespaces/b/pods?continue=${tokenOfApiServer(-1, "/p-03\0")}`,
    );
    assert.equal(page.metadata.resourceVersion, "101");
    assert.equal(page.items.length, 16);
  });

  it("has a token that the API server can continue, too: the key begins after the namespace", async () => {
    const { api } = apiOf();
    for (const [path, start] of [["/api/v1/pods", "/a/p-03\0"], ["/api/v1/namespaces/b/pods", "/p-03\0"]]) {
      const { metadata } = await get(api, `${path}?limit=4`);
      const token = JSON.parse(atob(metadata.continue.replaceAll("-", "+").replaceAll("_", "/")));
      assert.deepEqual([token.v, token.rv, token.start], ["meta.k8s.io/v1", 100, start]);
    }
  });

  it("stays in the namespace of its path, whatever its key", async () => {
    const { api } = apiOf();
    const path = "/api/v1/namespaces/b/pods?limit=100&continue=";
    for (const start of ["\0", "a/p-00"]) {
      const page = await get(api, path + encodeURIComponent(tokenOfApiServer(100, start)));
      assert.ok(names(page).every((name) => name.startsWith("b/")));
    }
    for (const start of ["../a/p-00", "/", "../../a", "//a/p-00"]) {
      await get(api, path + encodeURIComponent(tokenOfApiServer(100, start)), { status: 400 });
    }
  });
});

describe("readApi, a state of the past", () => {
  it("is 410 five minutes after it was the present one, as on an API server, which compacts", async () => {
    const { api, pods, clock } = apiOf();
    const { metadata } = await get(api, "/api/v1/pods?limit=50");
    const next = `/api/v1/pods?limit=50&continue=${metadata.continue}`;
    const exact = "/api/v1/pods?resourceVersion=100&resourceVersionMatch=Exact";
    await clock.advance(600_000);
    assert.equal((await get(api, next)).items.length, 10, "it is the present one");
    pods.put(object("a/p-00", 101));
    await clock.advance(299_000);
    assert.equal((await get(api, next)).items.length, 10);
    assert.equal((await get(api, exact)).items.length, 60);
    await clock.advance(1_000);
    const expired = await get(api, next, { status: 410 });
    assert.equal((await get(api, `/api/v1/pods?continue=${expired.metadata.continue}`)).items.length, 10);
    await get(api, exact, { status: 410 });
  });

  it("is 429 while the lists of too many states are not read, and not when they are", async () => {
    const objects = Array.from({ length: 20_000 }, (_, i) => object(`a/p-${i}`, i + 1));
    const pods = FakeInformer.with(objects, 20_000);
    const api = readApi({
      resources: [{ informer: pods, resource: "v1/pods" }],
      allowAnonymous: true,
      writeTimeoutMs: Infinity,
      maxReaderBytes: 8 * 1024 * 1024,
    });
    const bodies: ReadableStream[] = [];
    let refused: Response | undefined;
    for (let version = 20_001; refused === undefined && version < 20_101; version++) {
      pods.put(object("a/p-1", version));
      const response = await api.request(
        `/api/v1/pods?resourceVersion=${version}&resourceVersionMatch=Exact`,
      );
      if (response.status === 429) refused = response;
      else bodies.push(response.body!);
    }
    assert.equal(refused?.headers.get("Retry-After"), "1");
    assert.ok(bodies.length >= 8);
    for (const body of bodies) await body.cancel();
    const { items } = await get(api, "/api/v1/pods?resourceVersion=20008&resourceVersionMatch=Exact");
    assert.equal(items.length, 20_000);
  });
});

describe("ContentStates.stateAt", () => {
  /** Counts the keys that are looked at, in all and in the turn of the event loop with the most. */
  async function looksOf(
    work: (api: ReturnType<typeof readApi>, pods: FakeInformer) => Promise<unknown>,
    { objects = 4_000, changes = 100, put = (i: number) => i } = {},
  ) {
    const name = (i: number) => `a/p-${String(i).padStart(6, "0")}`;
    const pods = FakeInformer.with(Array.from({ length: objects }, (_, i) => object(name(i), 1)), objects);
    const api = readApi({
      resources: [{ informer: pods, resource: "v1/pods" }],
      allowAnonymous: true,
    });
    // The present state is made before the changes.
    await get(api, "/api/v1/pods?resourceVersion=0");
    for (let i = 1; i <= changes; i++) pods.put(object(name(put(i)), objects + i));
    const { has } = Map.prototype;
    let [all, most, before] = [0, 0, 0];
    Map.prototype.has = function (key) {
      if (typeof key === "string" && key.startsWith("a/p-")) all++;
      return has.call(this, key);
    };
    let isDone = false;
    try {
      const done = work(api, pods).finally(() => isDone = true);
      while (!isDone) {
        before = all;
        await nextTurn();
        most = Math.max(most, all - before);
      }
      await done;
    } finally {
      Map.prototype.has = has;
    }
    return { all, most };
  }

  const exact = (version: number) => `/api/v1/pods?resourceVersion=${version}&resourceVersionMatch=Exact`;

  it("looks at the keys that have changed since, and not at every other one", async () => {
    const { all } = await looksOf(async (api) => {
      for (const version of [4_010, 4_050, 4_090]) {
        const { items } = await get(api, `/api/v1/pods?limit=3&resourceVersion=${version}`);
        assert.equal(items.length, 3);
      }
    });
    assert.ok(all <= 300, `${all} keys`);
  });

  it("looks at no key for a page of a state that was read before, though the present one was read since", async () => {
    const { all } = await looksOf(async (api, pods) => {
      const tokens: string[] = [];
      for (let list = 0; list < 3; list++) {
        tokens.push((await get(api, "/api/v1/pods?limit=3")).metadata.continue);
        for (let i = 1; i <= 50; i++) {
          pods.put(object(`a/p-${String(i).padStart(6, "0")}`, 5_000 + 50 * list + i));
        }
      }
      await get(api, "/api/v1/pods?limit=3");
      for (const token of tokens) {
        const { items } = await get(api, `/api/v1/pods?limit=3&continue=${token}`);
        assert.deepEqual(items.map(({ metadata }: Json) => metadata.name), [
          "p-000003",
          "p-000004",
          "p-000005",
        ]);
      }
    });
    assert.equal(all, 0);
  });

  it("reads what has changed, and the others as they were", async () => {
    let reads = 0;
    await looksOf(async (api) => {
      const { get: read } = Map.prototype;
      Map.prototype.get = function (key) {
        if (typeof key === "string" && key.startsWith("a/p-")) reads++;
        return read.call(this, key);
      };
      try {
        const { items } = await get(api, "/api/v1/pods?limit=3");
        assert.equal(items[1].metadata.resourceVersion, "4001");
      } finally {
        Map.prototype.get = read;
      }
    });
    assert.ok(reads > 0 && reads < 1_000, `${reads} of 4,000 objects`);
  });

  it("gives way while many lists ask for many states at once", async () => {
    const changes = 4_000;
    const { most } = await looksOf(async (api) => {
      const versions = Array.from({ length: 100 }, (_, i) => 4_001 + i);
      await Promise.all(versions.map(async (version) => {
        const response = await api.request(`${exact(version)}&limit=1`);
        assert.equal(response.status, 200);
        await response.body!.cancel();
      }));
    }, { changes });
    assert.ok(most < 10 * changes, `${most} keys in one turn, of ${100 * changes}`);
  });

  it("has objects that came, changed and went since, each in its place", async () => {
    const pods = FakeInformer.with([], 0);
    const api = readApi({ resources: [{ informer: pods, resource: "v1/pods" }], allowAnonymous: true });
    const states: Map<string, number>[] = [new Map()];
    const random = seededRandom(7);
    for (let version = 1; version <= 300; version++) {
      const state = new Map(states.at(-1));
      const name = `a/p-${Math.floor(random() * 40)}`;
      if (state.has(name) && random() < 0.4) {
        pods.remove(name, version);
        state.delete(name);
      } else {
        pods.put(object(name, version));
        state.set(name, version);
      }
      states.push(state);
      if (random() < 0.2) await get(api, "/api/v1/pods?resourceVersion=0");
    }
    for (const [version, state] of states.entries()) {
      if (version === 0) continue;
      const sorted = Array.from(state).sort(([a], [b]) => a < b ? -1 : 1);
      const list = await get(api, exact(version));
      const versions = list.items.map(({ metadata }: Json) => Number(metadata.resourceVersion));
      assert.deepEqual(names(list), sorted.map(([name]) => name), `at ${version}`);
      assert.deepEqual(versions, sorted.map(([, at]) => at), `at ${version}`);
      const [from] = sorted[Math.floor(sorted.length / 2)] ?? [""];
      const page = await get(api, `/api/v1/pods?resourceVersion=${version}&limit=5`);
      assert.deepEqual(names(page), sorted.slice(0, 5).map(([name]) => name));
      assert.equal(page.metadata.remainingItemCount, sorted.length > 5 ? sorted.length - 5 : undefined, from);
    }
  });

  it("is never another history's: a restored server has another past under the same versions", async () => {
    const { api, pods } = apiOf();
    for (let version = 101; version <= 130; version++) pods.put(object(`a/p-${version}`, version));
    await get(api, exact(110));
    pods.relist([object("a/other", 50)], 90);
    pods.put(object("a/new", 110));
    await get(api, exact(100));
    assert.deepEqual(names(await get(api, exact(105))), ["a/other"]);
  });
});

describe("stillPlaced", () => {
  it("is 410 where a content of the same version has taken the place of the one that was placed", () => {
    const informer = FakeInformer.with([object("a", 1), object("b", 2)], 10);
    const content = new Content(informer, { clock: new FakeClock(), capacity: 10, capacityBytes: 1_000 });
    const request = { identity: () => "list" } as ListRequest;
    const place = { past: undefined, at: "10", start: "b", limit: 1, rewrites: content.log.window.rewrites };
    assert.equal(stillPlaced(content, request, place), place);
    informer.relist([object("c", 3)], 10);
    assert.equal(content.log.resourceVersion, "10");
    const status = stillPlaced(content, request, place);
    assert.equal(isStatus(status) && status.code, 410);
  });
});
