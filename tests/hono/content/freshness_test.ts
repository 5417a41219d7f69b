import assert from "node:assert/strict";
import { type KubernetesObject, newCluster, SharedIndexInformer, silentLogger } from "@listwatch/cache";
import type { ReadApiOptions } from "@listwatch/cache/hono";
import {
  answerStatus,
  configMap,
  hang,
  InMemoryApiServer,
  pod,
  type RecordedRequest,
} from "@listwatch/cache/testing";
import { FakeClock } from "../../../src/testing/fake_clock.ts";
import { FakeInformer, object } from "../fake_informer.ts";
import { get, names, WatchReader } from "../reading.ts";
import { describe, it, storage } from "../storages.ts";
import { readApi } from "../read_api.ts";
import { LogRecorder } from "../../log_recorder.ts";

const isQuestion = ({ isWatch, query }: RecordedRequest) => !isWatch && query.limit === "1";

/** Caches one above the other, above an API server in memory. */
class Tower {
  readonly clock = new FakeClock();
  readonly server = new InMemoryApiServer({ clock: this.clock });

  level(
    fetch: (request: Request) => Response | Promise<Response>,
    options: Partial<ReadApiOptions> = {},
  ) {
    const cluster = newCluster({
      server: "http://in-memory",
      fetch: async (input, init) => await fetch(new Request(input, init)),
    });
    const informer = new SharedIndexInformer<KubernetesObject>(cluster.resource("v1/pods"), {
      clock: this.clock,
      logger: silentLogger,
      storage: storage(),
    });
    const api = readApi({
      resources: [{ informer, resource: "v1/pods" }],
      allowAnonymous: true,
      clock: this.clock,
      logger: silentLogger,
      ...options,
    });
    return { informer, api };
  }

  /** Starts a level whose watches can be delayed. */
  async delayedLevel(options: Parameters<Tower["level"]>[1] = {}) {
    const delayed = delayedWatches(this.server.fetch);
    const { api, informer } = this.level(delayed.fetch, options);
    const running = informer.start();
    await this.clock.advance(0);
    return { api, informer, delayed, running };
  }

  /** Advances until a promise has settled; fails after so many milliseconds. */
  async settled<R>(promise: Promise<R>, withinMs: number): Promise<R> {
    let isDone = false;
    const mark = () => void (isDone = true);
    promise.then(mark, mark);
    for (let ms = 0; ms <= withinMs && !isDone; ms += 5) await this.clock.advance(5);
    assert.ok(isDone, `nothing within ${withinMs} ms`);
    return await promise;
  }

  questions(): number {
    return this.server.requests.filter(isQuestion).length;
  }
}

/** Delays what a watch brings, until it is released, or the connection breaks. */
function delayedWatches(fetch: (request: Request) => Promise<Response>) {
  const { promise: released, resolve: release, reject } = Promise.withResolvers<void>();
  let isHeld = false;
  return {
    hold: () => (isHeld = true),
    release: () => release(),
    cut: () => {
      isHeld = false;
      reject(new TypeError("connection reset by peer"));
    },
    fetch: async (request: Request): Promise<Response> => {
      const response = await fetch(request);
      const url = new URL(request.url);
      if (!url.searchParams.has("watch") || url.searchParams.get("timeoutSeconds") === "3") return response;
      const body = response.body!.pipeThrough(
        new TransformStream<Uint8Array, Uint8Array>({
          async transform(chunk, controller) {
            if (isHeld) await released;
            controller.enqueue(chunk);
          },
        }),
      );
      return new Response(body, response);
    },
  };
}

describe("readApi", () => {
  it("ends a watch from the future with 410 once the API server says that it never was there", async () => {
    const tower = new Tower();
    const { server, clock } = tower;
    server.create("v1/pods", pod("web-1", { namespace: "shop" }));
    const { api, informer } = tower.level(server.fetch, { freshness: "as-is" });
    await using _running = informer.start();
    await informer.synced();
    // A server that was restored from a backup knows nothing of the reader's version.
    const lost = await WatchReader.open(api, "/api/v1/pods?watch=true&resourceVersion=1000");
    let hasEnded = false;
    const end = lost.toEnd().finally(() => (hasEnded = true));
    await clock.advance(4_900);
    assert.equal(hasEnded, false, "kube-apiserver holds it open, and mostly the content follows");
    await clock.advance(200);
    assert.deepEqual(await end, ["ERROR 410 Expired"]);
    const present = await WatchReader.open(api, "/api/v1/pods?watch=true&resourceVersion=2");
    server.create("v1/pods", pod("web-2", { namespace: "shop" }));
    await clock.advance(50);
    assert.deepEqual(await present.lines(1), ["ADDED shop/web-2 3"]);
  });

  it("opens the watch again that brings nothing of what the API server has: its connection is dead", async () => {
    const tower = new Tower();
    const { server, clock } = tower;
    server.create("v1/pods", pod("web-1", { namespace: "shop" }));
    let deadThrough = 0;
    let opened = 0;
    const { api, informer } = tower.level(async (request) => {
      const response = await server.fetch(request);
      if (!new URL(request.url).searchParams.has("watch")) return response;
      const own = ++opened;
      const transform = (chunk: Uint8Array, controller: TransformStreamDefaultController<Uint8Array>) => {
        if (own > deadThrough) controller.enqueue(chunk);
      };
      return new Response(response.body!.pipeThrough(new TransformStream({ transform })), response);
    });
    await using _running = informer.start();
    await informer.synced();
    await clock.advance(30_000);
    deadThrough = opened;
    server.create("v1/pods", pod("web-2", { namespace: "shop" }));
    const answer = await tower.settled(Promise.resolve(api.request("/api/v1/pods")), 3_000);
    assert.equal(answer.status, 200, "the read has waited for the next watch");
    assert.deepEqual(names(await answer.json()), ["shop/web-1", "shop/web-2"]);
    assert.equal(informer.status().lastError?.code, "DeadPeer");
  });

  it("answers no read as fresh once it has ended", async () => {
    const tower = new Tower();
    const { server, clock } = tower;
    server.create("v1/pods", pod("web-1", { namespace: "shop" }));
    const ending = new AbortController();
    const { api, informer } = tower.level(server.fetch, { signal: ending.signal });
    await using _running = informer.start();
    await informer.synced();
    const before = api.request("/api/v1/pods");
    await clock.advance(2_000);
    assert.equal((await before).status, 200);
    ending.abort();
    server.create("v1/pods", pod("web-2", { namespace: "shop" }));
    const answer = api.request("/api/v1/pods");
    await clock.advance(20_000);
    assert.equal((await answer).status, 504, "a server that stops still answers for a moment");
    assert.equal((await api.request("/api/v1/pods?resourceVersion=0")).status, 200);
  });

  it("counts the time of a reader that opens its watch from the future again and again", async () => {
    const tower = new Tower();
    const { server, clock } = tower;
    server.create("v1/pods", pod("web-1", { namespace: "shop" }));
    const { api, informer } = tower.level(server.fetch, { freshness: "as-is" });
    await using _running = informer.start();
    await informer.synced();
    const path = "/api/v1/pods?watch=true&resourceVersion=1000";
    const first = await WatchReader.open(api, path);
    await clock.advance(3_000);
    await first.cancel();
    const second = await WatchReader.open(api, path);
    await clock.advance(2_100);
    // A reader that resumed would miss what a restored server writes under the versions that it has seen.
    assert.deepEqual(await second.toEnd(), ["ERROR 410 Expired"]);
  });

  it("asks the API server nothing for a watch from the future whose reader has left", async () => {
    const tower = new Tower();
    const { server, clock } = tower;
    const { api, informer } = tower.level(server.fetch, { freshness: "as-is" });
    await using _running = informer.start();
    await informer.synced();
    const asked = tower.questions();
    const timers = clock.pendingTimers;
    const watch = await WatchReader.open(api, "/api/v1/pods?watch=true&resourceVersion=1000");
    await clock.advance(1_000);
    await watch.cancel();
    assert.equal(clock.pendingTimers, timers);
    await clock.advance(20_000);
    assert.equal(tower.questions(), asked);
  });

  it("forgets the time of such readers as they become many, one by one", async () => {
    const tower = new Tower();
    const { server, clock } = tower;
    const { api, informer } = tower.level(server.fetch, { freshness: "as-is" });
    await using _running = informer.start();
    await informer.synced();
    const path = (version: number) => `/api/v1/pods?watch=true&resourceVersion=${version}`;
    const open = async (version: number) => await (await WatchReader.open(api, path(version))).cancel();
    await open(1_000);
    await clock.advance(3_000);
    for (let i = 1; i <= 64; i++) await open(1_000 + i);
    await clock.advance(2_100);
    const [first, last] = [
      await WatchReader.open(api, path(1_000)),
      await WatchReader.open(api, path(1_064)),
    ];
    const ends = [first, last].map((watch) => watch.toEnd());
    const ended: number[] = [];
    ends.forEach((end, i) => end.then(() => ended.push(i)));
    await clock.advance(3_000);
    assert.deepEqual(ended, [1], "the oldest one counts from now");
    await clock.advance(2_100);
    assert.deepEqual(ended, [1, 0]);
  });

  it("holds a watch from the future open while the API server does not answer, and asks again", async () => {
    const tower = new Tower();
    const { server, clock } = tower;
    let isAway = false;
    const { api, informer } = tower.level((request) =>
      isAway ? new Promise(() => {}) : server.fetch(request)
    );
    await using _running = informer.start();
    await clock.advance(0);
    isAway = true;
    const watch = await WatchReader.open(api, "/api/v1/pods?watch=true&resourceVersion=1000");
    const end = watch.toEnd();
    await clock.advance(20_000);
    isAway = false;
    assert.deepEqual(await tower.settled(end, 60_000), ["ERROR 410 Expired"]);
  });

  it("ends a strict watch with 410 when an event comes that a list had passed for a proof", async () => {
    const tower = new Tower();
    const { server, clock } = tower;
    server.create("v1/pods", pod("web-1", { namespace: "shop" }));
    const { api, delayed, running } = await tower.delayedLevel();
    await using _running = running;
    const path = "/api/v1/pods?watch=true&resourceVersion=2";
    const strict = new WatchReader(await api.request(path, { headers: { Prefer: "handling=strict" } }));
    const plain = await WatchReader.open(api, path);
    delayed.hold();
    server.create("v1/pods", pod("brief", { namespace: "shop" }));
    server.delete("v1/pods", { metadata: { name: "brief", namespace: "shop" } });
    const list = await tower.settled(get(api, "/api/v1/pods"), 1_000);
    assert.deepEqual(names(list), ["shop/web-1"]);
    assert.equal(list.metadata.resourceVersion, "4");
    delayed.release();
    await clock.advance(10);
    assert.deepEqual(await strict.toEnd(), ["ERROR 410 Expired"]);
    server.create("v1/pods", pod("web-2", { namespace: "shop" }));
    await clock.advance(10);
    assert.deepEqual(await plain.lines(1), ["ADDED shop/web-2 5"]);
  });

  for (const isCut of [false, true]) {
    const how = isCut ? ", also by the next watch, where the connection breaks before they come" : "";
    it(`lets no watch start or continue behind events that a list has passed for a proof${how}`, async () => {
      const tower = new Tower();
      const { server, clock } = tower;
      server.create("v1/pods", pod("web-1", { namespace: "shop" }));
      const { api, delayed, running } = await tower.delayedLevel();
      await using _running = running;
      const from = (version: number) =>
        `/api/v1/pods?watch=true&allowWatchBookmarks=true&resourceVersion=${version}`;
      const before = await WatchReader.open(api, from(2));
      delayed.hold();
      server.create("v1/pods", pod("brief", { namespace: "shop" }));
      server.delete("v1/pods", { metadata: { name: "brief", namespace: "shop" } });
      const list = await tower.settled(get(api, "/api/v1/pods"), 1_000);
      assert.equal(list.metadata.resourceVersion, "4");
      // Elsewhere this one has received "brief", and must learn that it was deleted.
      const between = await WatchReader.open(api, from(3));
      const after = await WatchReader.open(api, from(4));
      const exact = "/api/v1/pods?resourceVersionMatch=Exact&resourceVersion=3";
      await get(api, exact, { status: 410 });
      await clock.advance(30_000);
      // A bookmark says that each event up to it has been sent.
      assert.deepEqual(await before.lines(1), ["BOOKMARK 2"]);
      assert.deepEqual(await between.lines(1), ["BOOKMARK 3"]);
      assert.deepEqual(await after.lines(1), ["BOOKMARK 4"]);
      if (isCut) delayed.cut();
      else delayed.release();
      await clock.advance(5_000);
      assert.deepEqual(await between.toEnd(), ["ERROR 410 Expired"]);
      await get(api, exact, { status: 410 });
      assert.deepEqual(names(await get(api, exact.replace("=3", "=2"))), ["shop/web-1"]);
      server.create("v1/pods", pod("web-2", { namespace: "shop" }));
      await clock.advance(10);
      for (const watch of [before, after]) {
        assert.deepEqual(await watch.lines(2), ["BOOKMARK 4", "ADDED shop/web-2 5"]);
      }
    });
  }

  it("continues a page at a version that a list has proven when another one has proven a later one", async () => {
    const tower = new Tower();
    const { server, clock } = tower;
    for (const name of ["web-1", "web-2"]) server.create("v1/pods", pod(name, { namespace: "shop" }));
    const { api, informer } = tower.level(server.fetch);
    await using _running = informer.start();
    await clock.advance(0);
    const first = async () => {
      server.create("v1/configmaps", configMap(`c-${server.resourceVersion}`, { namespace: "shop" }));
      return (await tower.settled(get(api, "/api/v1/pods?limit=1"), 1_000)).metadata;
    };
    const { resourceVersion, continue: token } = await first();
    const later = await first();
    assert.notEqual(later.resourceVersion, resourceVersion);
    await first();
    for (
      const page of [
        `limit=1&continue=${token}`,
        `resourceVersion=${later.resourceVersion}&resourceVersionMatch=Exact`,
      ]
    ) {
      const { items } = await get(api, `/api/v1/pods?${page}`);
      assert.equal(items.at(-1).metadata.name, "web-2");
    }
  });

  it("answers a list and a get without a resourceVersion only when it has what the API server had", async () => {
    const tower = new Tower();
    const { server, clock } = tower;
    server.create("v1/pods", pod("web-1", { namespace: "shop" }));
    const { api, delayed, running } = await tower.delayedLevel();
    await using _running = running;
    delayed.hold();
    server.create("v1/pods", pod("web-2", { namespace: "shop" }));
    server.delete("v1/pods", { metadata: { name: "web-1", namespace: "shop" } });
    await clock.advance(0);
    assert.deepEqual(names(await get(api, "/api/v1/pods?resourceVersion=0")), ["shop/web-1"]);
    const list = get(api, "/api/v1/pods");
    const one = get(api, "/api/v1/namespaces/shop/pods/web-2");
    const deleted = get(api, "/api/v1/namespaces/shop/pods/web-1", { status: 404 });
    const stream = WatchReader.open(
      api,
      "/api/v1/pods?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
    );
    await clock.advance(500);
    delayed.release();
    assert.deepEqual(names(await tower.settled(list, 100)), ["shop/web-2"]);
    assert.equal((await one).metadata.name, "web-2");
    assert.equal((await deleted).reason, "NotFound");
    assert.deepEqual(await (await stream).lines(1), ["ADDED shop/web-2 3"]);
  });

  it("answers a token that continues with the present state when it has what the API server had", async () => {
    const tower = new Tower();
    const { server, clock } = tower;
    for (const name of ["a", "b", "c"]) server.create("v1/pods", pod(name, { namespace: "shop" }));
    const { api, delayed, running } = await tower.delayedLevel({ eventWindow: 1 });
    await using _running = running;
    const first = await tower.settled(get(api, "/api/v1/pods?limit=1"), 1_000);
    for (const name of ["d", "e", "f"]) server.create("v1/pods", pod(name, { namespace: "shop" }));
    await clock.advance(0);
    const expired = await get(api, `/api/v1/pods?continue=${first.metadata.continue}`, { status: 410 });
    delayed.hold();
    server.create("v1/pods", pod("g", { namespace: "shop" }));
    await clock.advance(0);
    const rest = get(api, `/api/v1/pods?continue=${expired.metadata.continue}`);
    await clock.advance(500);
    delayed.release();
    const listed = names(await tower.settled(rest, 1_000));
    assert.deepEqual(listed, ["b", "c", "d", "e", "f", "g"].map((name) => `shop/${name}`));
  });

  it("lists the rest of what a pager started to list at the API server itself", async () => {
    const tower = new Tower();
    const { server, clock } = tower;
    for (const namespace of ["home", "shop"]) {
      for (const name of ["a", "b", "c"]) server.create("v1/pods", pod(name, { namespace }));
    }
    const { api, informer } = tower.level(server.fetch);
    await using _running = informer.start();
    await clock.advance(0);
    for (const path of ["/api/v1/pods", "/api/v1/namespaces/shop/pods"]) {
      const response = await server.fetch(new Request(`http://in-memory${path}?limit=2`));
      const first = await response.json();
      const all = await get(api, `${path}?resourceVersion=0`);
      // The pages have the state that the pager began with: the present one has an object more.
      server.create("v1/pods", pod(`z-${path.length}`, { namespace: "shop" }));
      const rest = await tower.settled(get(api, `${path}?continue=${first.metadata.continue}`), 1_000);
      assert.deepEqual(names(first).concat(names(rest)), names(all));
      assert.equal(rest.metadata.resourceVersion, first.metadata.resourceVersion);
    }
  });

  it("refuses such a read with 504 and Retry-After when it does not get there in time", async () => {
    const tower = new Tower();
    const { server } = tower;
    const { api, delayed, running } = await tower.delayedLevel();
    await using _running = running;
    delayed.hold();
    server.create("v1/pods", pod("web-1", { namespace: "shop" }));
    for (
      const path of [
        "/api/v1/pods",
        "/api/v1/namespaces/shop/pods/web-1",
        "/api/v1/namespaces/shop/pods/none",
      ]
    ) {
      const response = await tower.settled(Promise.resolve(api.request(path)), 3_500);
      assert.equal(response.status, 504, path);
      assert.equal(response.headers.get("Retry-After"), "1");
      const { reason, message } = await response.json();
      assert.equal(reason, "Timeout");
      assert.match(
        message,
        /has not reached the API server's resourceVersion in time; resourceVersion=0 reads/,
      );
    }
    delayed.release();
  });

  it("asks once for all reads that came before the question, and again for those that came after it", async () => {
    const tower = new Tower();
    const { server, clock } = tower;
    const { api, informer } = tower.level(server.fetch);
    await using _running = informer.start();
    await clock.advance(0);
    let answer = () => {};
    const hold = server.intercept(async (request, next) => {
      const response = await next(request);
      await new Promise<void>((resolve) => (answer = resolve));
      return response;
    }, { match: isQuestion });
    const first = get(api, "/api/v1/pods");
    await clock.advance(0);
    server.create("v1/pods", pod("late", { namespace: "shop" }));
    // The answer to these must have the write, and the question that is being answered is older.
    const later = Array.from({ length: 20 }, () => get(api, "/api/v1/pods"));
    await clock.advance(0);
    assert.equal(tower.questions(), 1);
    answer();
    await tower.settled(first, 100);
    await clock.advance(0);
    assert.equal(tower.questions(), 2);
    answer();
    hold();
    for (const list of await tower.settled(Promise.all(later), 100)) {
      assert.deepEqual(names(list), ["shop/late"]);
    }
    assert.equal(tower.questions(), 2);
  });

  it("fails reads during an outage by default; stale-if-error answers with a warning, as-is with neither", async () => {
    const tower = new Tower();
    const { server, clock } = tower;
    server.create("v1/pods", pod("web-1", { namespace: "shop" }));
    const [strict, lenient, asIs] = [{}, { freshness: "stale-if-error" as const }, {
      freshness: "as-is" as const,
    }]
      .map((options) => tower.level(server.fetch, options));
    const running = [strict, lenient, asIs].map(({ informer }) => informer.start());
    await clock.advance(0);
    assert.equal((await lenient.api.request("/api/v1/pods")).headers.get("Warning"), null);
    const restore = server.intercept(answerStatus(500), { match: isQuestion });
    const refused = await strict.api.request("/api/v1/pods");
    assert.equal(refused.status, 504);
    assert.match((await refused.json()).message, /the API server did not say in time how far it is/);
    assert.deepEqual(names(await get(strict.api, "/api/v1/pods?resourceVersion=0")), ["shop/web-1"]);
    for (let i = 0; i < 100; i++) {
      const response = await lenient.api.request("/api/v1/pods");
      assert.equal(response.status, 200);
      assert.match(response.headers.get("Warning") ?? "", /^299 - "this is the last known state: [^"]+"$/);
    }
    const missing = await lenient.api.request("/api/v1/namespaces/shop/pods/none");
    assert.equal(missing.status, 404);
    assert.match(missing.headers.get("Warning") ?? "", /^299/, "the object may exist by now");
    const before = server.requests.length;
    assert.equal((await asIs.api.request("/api/v1/pods")).headers.get("Warning"), null);
    assert.equal(server.requests.length, before);
    assert.equal(tower.questions(), 3, "an outage is not made worse");
    restore();
    await clock.advance(1_000);
    assert.equal((await strict.api.request("/api/v1/pods")).status, 200);
    assert.equal((await lenient.api.request("/api/v1/pods")).headers.get("Warning"), null);
    await Promise.all(running.map((each) => each.stop()));
  });

  it("sends no question before the Retry-After of the API server has passed", async () => {
    const tower = new Tower();
    const { server, clock } = tower;
    const { api, informer } = tower.level(server.fetch);
    await using _running = informer.start();
    await clock.advance(0);
    const restore = server.intercept(answerStatus(429, { retryAfterSeconds: 10 }), { match: isQuestion });
    for (let seconds = 0; seconds < 9; seconds++) {
      assert.equal((await api.request("/api/v1/pods")).status, 504);
      await clock.advance(1_000);
    }
    assert.equal(tower.questions(), 1);
    restore();
    await clock.advance(1_000);
    assert.equal((await api.request("/api/v1/pods")).status, 200);
  });

  it("logs once that reads cannot be proven fresh, and once that they are again", async () => {
    const tower = new Tower();
    const { server, clock } = tower;
    const log = new LogRecorder();
    const { api, informer } = tower.level(server.fetch, { logger: log });
    await using _running = informer.start();
    await clock.advance(0);
    const restore = server.intercept(answerStatus(500), { match: isQuestion });
    for (let i = 0; i < 3; i++) {
      assert.equal((await api.request("/api/v1/pods")).status, 504);
      await clock.advance(1_000);
    }
    assert.equal(log.of("warn").length, 1);
    assert.match(
      log.of("warn")[0],
      /pods: cannot prove that reads are fresh, as the API server does not answer/,
    );
    restore();
    for (let i = 0; i < 3; i++) assert.equal((await api.request("/api/v1/pods")).status, 200);
    assert.deepEqual(log.of("info"), ["info: pods: reads are fresh again"]);
  });

  it("does not make reads wait for an API server that hangs, one after the other", async () => {
    const tower = new Tower();
    const { server, clock } = tower;
    const { api, informer } = tower.level(server.fetch, { freshness: "stale-if-error" });
    const running = informer.start();
    await clock.advance(0);
    const restore = server.intercept(hang(), { match: isQuestion });
    await tower.settled(Promise.resolve(api.request("/api/v1/pods")), 3_100);
    await clock.advance(1_100);
    const tries = api.request("/api/v1/pods");
    await clock.advance(0);
    assert.match((await api.request("/api/v1/pods")).headers.get("Warning") ?? "", /^299/);
    await tower.settled(Promise.resolve(tries), 3_100);
    restore();
    await running.stop();
  });

  for (const [size, count] of [["small", 3], ["large", 150]] as const) {
    it(`waits for a resourceVersion that another resource's write made, and is fresh, with a ${size} quiet resource`, async () => {
      const tower = new Tower();
      const { server, clock } = tower;
      for (let i = 0; i < count; i++) server.create("v1/pods", pod(`web-${i}`, { namespace: "shop" }));
      const { api, informer } = tower.level(server.fetch);
      const running = informer.start();
      await clock.advance(0);
      const written = server.create("v1/configmaps", configMap("elsewhere", { namespace: "shop" }));
      const at = String(written.metadata?.resourceVersion);
      const read = get(api, `/api/v1/pods?resourceVersion=${at}`);
      assert.equal((await tower.settled(read, 1_500)).metadata.resourceVersion, at);
      assert.equal(informer.indexer.lastStoreSyncResourceVersion(), at);
      server.create("v1/configmaps", configMap("elsewhere-2", { namespace: "shop" }));
      assert.equal((await tower.settled(get(api, "/api/v1/pods"), 1_500)).items.length, count);
      const one = get(api, `/api/v1/namespaces/shop/pods/web-1?resourceVersion=${Number(at) + 1}`);
      assert.equal((await tower.settled(one, 100)).metadata.name, "web-1");
      const questions = tower.questions();
      assert.equal(
        (await tower.settled(Promise.resolve(api.request("/api/v1/pods?resourceVersion=999999")), 3_100))
          .status,
        504,
      );
      const isAsked = tower.questions() > questions;
      assert.equal(isAsked, size === "large", "the list of a small resource says its version as well");
      await running.stop();
      assert.equal(clock.pendingTimers, 0);
    });
  }

  for (const [size, count] of [["small", 3], ["large", 150]] as const) {
    it(`has a ${size} quiet resource as old as the question whose answer is read after a suspension`, async () => {
      const tower = new Tower();
      const { server, clock } = tower;
      for (let i = 0; i < count; i++) server.create("v1/pods", pod(`web-${i}`, { namespace: "shop" }));
      let proofs = 0;
      const { api, informer } = tower.level(async (request) => {
        const { searchParams } = new URL(request.url);
        const answer = await server.fetch(request);
        const isProof = count > 100
          ? searchParams.get("timeoutSeconds") === "3"
          : searchParams.get("limit") === "100" && !searchParams.has("continue");
        if (isProof && informer.hasSynced() && ++proofs === 1) clock.setWallClock(clock.now() + 200_000);
        return answer;
      });
      await using _running = informer.start();
      await clock.advance(0);
      const written = server.create("v1/configmaps", configMap("elsewhere", { namespace: "shop" }));
      const at = String(written.metadata?.resourceVersion);
      await tower.settled(get(api, `/api/v1/pods?resourceVersion=${at}`), 1_500);
      assert.equal(proofs, 1);
      assert.equal(informer.isFresh(100_000), false);
    });
  }

  it("keeps the ETag of a quiet resource while only its version moves, and its 200 has the new version", async () => {
    const tower = new Tower();
    const { server, clock } = tower;
    server.create("v1/pods", pod("web-1", { namespace: "shop" }));
    const { api, informer } = tower.level(server.fetch);
    await using _running = informer.start();
    await clock.advance(0);
    const read = async (headers: Readonly<Record<string, string>> = {}) =>
      await tower.settled(Promise.resolve(api.request("/api/v1/pods", { headers })), 3_000);
    const before = await read();
    const tag = before.headers.get("ETag") ?? "";
    const listed = (await before.json()).metadata.resourceVersion;
    const elsewhere = server.create("v1/configmaps", configMap("elsewhere", { namespace: "shop" }));
    const unchanged = await read({ "If-None-Match": tag });
    assert.equal(unchanged.status, 304);
    assert.equal(unchanged.headers.get("Resource-Version"), elsewhere.metadata?.resourceVersion);
    const again = await read();
    assert.equal(again.headers.get("ETag"), tag);
    assert.equal((await again.json()).metadata.resourceVersion, elsewhere.metadata?.resourceVersion);
    // The version of the reader's body is one to watch from.
    const watch = await WatchReader.open(api, `/api/v1/pods?watch=1&resourceVersion=${listed}`);
    server.create("v1/pods", pod("web-2", { namespace: "shop" }));
    await clock.advance(0);
    assert.deepEqual(await watch.lines(1), ["ADDED shop/web-2 4"]);
    const changed = await read({ "If-None-Match": tag });
    assert.equal(changed.status, 200);
    assert.notEqual(changed.headers.get("ETag"), tag);
  });

  it("takes no proof from a second watch before its own watch has brought the changes that the second one saw", async () => {
    const tower = new Tower();
    const { server, clock } = tower;
    for (let i = 0; i < 150; i++) server.create("v1/pods", pod(`web-${i}`, { namespace: "shop" }));
    const { api, delayed, running } = await tower.delayedLevel();
    await using _running = running;
    delayed.hold();
    server.create("v1/pods", pod("late", { namespace: "shop" }));
    const { metadata } = server.create("v1/configmaps", configMap("elsewhere", { namespace: "shop" }));
    const read = api.request(`/api/v1/pods?resourceVersion=${metadata?.resourceVersion}`);
    assert.equal((await tower.settled(Promise.resolve(read), 3_100)).status, 504);
    delayed.release();
    await clock.advance(0);
    const list = get(api, `/api/v1/pods?resourceVersion=${metadata?.resourceVersion}`);
    assert.equal((await tower.settled(list, 2_000)).items.length, 151);
  });

  it("is as fresh as the API server two caches away", async () => {
    for (const count of [1, 150]) {
      const tower = new Tower();
      const { server, clock } = tower;
      for (let i = 0; i < count; i++) server.create("v1/pods", pod(`web-${i}`, { namespace: "shop" }));
      const first = tower.level(server.fetch);
      const second = tower.level((request) => first.api.fetch(request));
      await using _first = first.informer.start();
      await clock.advance(0);
      await using _second = second.informer.start();
      await clock.advance(0);
      server.create("v1/configmaps", configMap("elsewhere", { namespace: "shop" }));
      assert.equal((await tower.settled(get(second.api, "/api/v1/pods"), 2_500)).items.length, count);
      server.create("v1/pods", pod("late", { namespace: "shop" }));
      assert.equal((await tower.settled(get(second.api, "/api/v1/pods"), 2_500)).items.length, count + 1);
    }
  });

  it("is as old, three caches away, as the last contact of the first one, and not ready when that is too long ago", async () => {
    const tower = new Tower();
    const { server, clock } = tower;
    server.create("v1/pods", pod("web-1", { namespace: "shop" }));
    const delayed = delayedWatches(server.fetch);
    let isAway = false;
    const levels = [tower.level((request) => isAway ? new Promise(() => {}) : delayed.fetch(request))];
    for (let i = 1; i < 3; i++) {
      const below = levels[i - 1];
      levels.push(tower.level((request) => below.api.fetch(request), { maxLagMs: 60_000 }));
    }
    await using started = new AsyncDisposableStack();
    for (const { informer } of levels) {
      started.use(informer.start());
      await clock.advance(10);
    }
    for (let step = 0; step < 8; step++) {
      await clock.advance(23_000);
      const lags = levels.map(({ informer }) => informer.status().lagMs!);
      for (const lag of lags) assert.ok(lag <= 61_000 && Math.abs(lag - lags[0]) <= 1_000, lags.join());
    }
    delayed.hold();
    isAway = true;
    await clock.advance(150_000);
    for (const { informer, api } of levels) {
      const { lagMs } = informer.status();
      assert.ok(lagMs! >= 150_000 && lagMs! < 212_000, `${lagMs}`);
      assert.equal((await api.request("/readyz")).status, 503);
    }
  });

  it("takes nothing for fresh that a cache in between answers during an outage", async () => {
    const tower = new Tower();
    const { server, clock } = tower;
    server.create("v1/pods", pod("web-1", { namespace: "shop" }));
    let isAway = false;
    const delayed = delayedWatches(server.fetch);
    const first = tower.level(async (request) => {
      if (isAway) throw new TypeError("connection refused");
      return await delayed.fetch(request);
    }, { freshness: "stale-if-error" });
    const second = tower.level((request) => first.api.fetch(request));
    await using _first = first.informer.start();
    await clock.advance(0);
    await using _second = second.informer.start();
    await clock.advance(0);
    delayed.hold();
    isAway = true;
    server.create("v1/pods", pod("web-2", { namespace: "shop" }));
    const answer = await tower.settled(Promise.resolve(first.api.request("/api/v1/pods")), 3_500);
    assert.ok(answer.headers.has("Warning"));
    assert.equal(
      (await tower.settled(Promise.resolve(second.api.request("/api/v1/pods")), 3_500)).status,
      504,
    );
    isAway = false;
    await clock.advance(2_000);
    delayed.release();
    assert.equal((await tower.settled(get(second.api, "/api/v1/pods"), 3_500)).items.length, 2);
  });

  it("does not take a server that went back in time for one that it has caught up with", async () => {
    const tower = new Tower();
    const { server, clock } = tower;
    server.create("v1/pods", pod("web-1", { namespace: "shop" }));
    const restored = new InMemoryApiServer({ clock });
    let isRestored = false;
    const { api, informer } = tower.level((request) => {
      const isWatch = new URL(request.url).searchParams.has("watch");
      return (isRestored && !isWatch ? restored : server).fetch(request);
    });
    await using _running = informer.start();
    await clock.advance(0);
    isRestored = true;
    assert.equal((await tower.settled(Promise.resolve(api.request("/api/v1/pods")), 3_100)).status, 504);
  });

  it("serves an informer that cannot ask as it is, and refuses to promise more", async () => {
    const informer = FakeInformer.with([object("shop/web-1", 5)], 5);
    const resources = [{ informer, resource: "v1/pods" }];
    const api = readApi({ resources, allowAnonymous: true, clock: new FakeClock() });
    assert.deepEqual(names(await get(api, "/api/v1/pods")), ["shop/web-1"]);
    assert.throws(
      () => readApi({ resources, allowAnonymous: true, freshness: "consistent" }),
      /^TypeError: Cannot serve pods with `freshness: "consistent"`: its informer cannot ask the API server/,
    );
    assert.throws(
      () => readApi({ resources, allowAnonymous: true, freshness: "soon" as "as-is" }),
      /`freshness`: it must be "consistent" or "stale-if-error" or "as-is"/,
    );
  });
});
