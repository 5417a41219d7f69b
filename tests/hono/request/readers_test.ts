import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import process from "node:process";
import { describe, it } from "node:test";
import { silentLogger } from "@listwatch/cache";
import type { ReadApiOptions } from "@listwatch/cache/hono";
import { Readers } from "../../../src/hono/request/readers.ts";
import { realClock } from "../../../src/util/clock.ts";
import { FakeClock } from "../../../src/testing/fake_clock.ts";
import { nextTurn, settle } from "../../../src/util/clock.ts";
import { FakeInformer, object, type TestObject } from "../fake_informer.ts";
import { readApi } from "../read_api.ts";

const WATCH = "/api/v1/pods?watch=1&resourceVersion=30000";

function apiOf(objects: readonly TestObject[], options: Partial<ReadApiOptions> = {}) {
  const clock = new FakeClock();
  const informer = FakeInformer.with(objects, 30_000);
  const api = readApi({
    resources: [{ informer, resource: "v1/pods" }],
    ...(options.authorize === undefined && { allowAnonymous: true }),
    logger: silentLogger,
    clock,
    ...options,
  });
  return { api, informer, clock };
}

function manyPods(count: number): TestObject[] {
  return Array.from(
    { length: count },
    (_, i) => object(`shop/pod-${String(i).padStart(5, "0")}`, i + 1, { spec: { text: "x".repeat(1_000) } }),
  );
}

async function waitFor(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await nextTurn();
}

const from = (hostname: string) => ({ remoteAddr: { hostname } });

describe("Readers", () => {
  const watch = async (api: ReturnType<typeof apiOf>["api"], address: string, user = "") =>
    (await api.request(WATCH, { headers: { "X-User": user } }, from(address))).status;
  const repeated = (status: number, count: number) => Array.from({ length: count }, () => status);
  const ofUsers: Partial<ReadApiOptions> = {
    authenticate: (c) => ({ name: c.req.header("X-User") ?? "" }),
    authorize: () => true,
  };

  it("beyond maxWatches get 429 with Retry-After for watches only, and are answered once others have left", async () => {
    const { api } = apiOf([], { maxWatches: 3 });
    const watches = await Promise.all([1, 2, 3].map(() => api.request(WATCH)));
    assert.deepEqual(watches.map(({ status }) => status), [200, 200, 200]);
    const response = await api.request(WATCH);
    assert.equal(response.status, 429);
    assert.equal(response.headers.get("Retry-After"), "1");
    assert.equal((await response.json()).reason, "TooManyRequests");
    for (const path of ["/api/v1/pods", "/apis", "/readyz"]) {
      assert.equal((await api.request(path)).status, 200);
    }
    await watches[1].body?.cancel();
    assert.equal((await api.request(WATCH)).status, 200);
    assert.equal(api.endWatches(), 3);
    const again = await Promise.all([1, 2, 3].map(() => api.request(WATCH)));
    assert.deepEqual(again.map(({ status }) => status), [200, 200, 200]);
    api.endWatches();
  });

  it("beyond maxRequests get 429 for requests, while they wait for their authentication, too", async () => {
    let decide = (_: boolean) => {};
    const decision = new Promise<boolean>((resolve) => (decide = resolve));
    const { api } = apiOf([], { maxRequests: 4, authorize: () => decision });
    const list = (address: string) => api.request("/api/v1/pods", {}, from(address));
    const first = [list("a"), list("a")];
    assert.equal((await list("a")).status, 429);
    const second = [list("b")];
    assert.equal((await list("b")).status, 429);
    const third = [list("c")];
    assert.equal((await list("c")).status, 429);
    decide(true);
    for (const response of await Promise.all([...first, ...second, ...third])) {
      assert.equal(response.status, 200);
      await response.text();
    }
    assert.equal((await list("a")).status, 200);
  });

  it("of one client may be as many as are still free: by user, else by address; a newcomer finds some", async () => {
    const { api } = apiOf([], { maxWatches: 12 });
    const statuses = [];
    for (let i = 0; i < 8; i++) statuses.push(await watch(api, "10.0.0.1"));
    assert.deepEqual(statuses, [...repeated(200, 6), 429, 429]);
    assert.deepEqual(
      [await watch(api, "10.0.0.2"), await watch(api, "10.0.0.2"), await watch(api, "10.0.0.2")],
      repeated(200, 3),
    );
    assert.deepEqual([await watch(api, "10.0.0.2"), await watch(api, "10.0.0.1")], [429, 429]);
    assert.equal(await watch(api, "10.0.0.3"), 200);
    assert.equal((await api.request("/api/v1/pods", {}, from("10.0.0.1"))).status, 200);
    const known = apiOf([], { ...ofUsers, maxWatches: 4 }).api;
    assert.deepEqual([await watch(known, "1", "jane"), await watch(known, "2", "jane")], [200, 200]);
    assert.equal(await watch(known, "3", "jane"), 429);
    assert.equal(await watch(known, "1", "joe"), 200);
    known.endWatches(({ name } = { name: "" }) => name === "jane");
    assert.deepEqual([await watch(known, "1", "jane"), await watch(known, "2", "joe")], [200, 200]);
  });

  it("of one client are at most maxWatchesPerClient", async () => {
    const { api } = apiOf([], { maxWatchesPerClient: 2 });
    assert.deepEqual([await watch(api, "a"), await watch(api, "a"), await watch(api, "a")], [200, 200, 429]);
    assert.equal(await watch(api, "b"), 200);
  });

  it("are by default 5,000 watches of one ServiceAccount or address, whose lists are answered meanwhile", async () => {
    for (const options of [ofUsers, {}]) {
      const { api, informer } = apiOf(manyPods(3), options);
      const headers = { "X-User": "system:serviceaccount:a:b" };
      const bodies: ReadableStreamDefaultReader<Uint8Array>[] = [];
      for (let i = 0; i < 5_000; i++) {
        const response = await api.request(
          WATCH,
          { headers },
          from("a"),
        );
        assert.equal(response.status, 200);
        bodies.push(response.body!.getReader());
      }
      assert.deepEqual(api.openWatches(), [5_000]);
      for (let i = 0; i < 100; i++) {
        const list = await api.request("/api/v1/pods", { headers });
        assert.equal((await list.json()).items.length, 3);
      }
      const pieces = bodies.map((body) => body.read());
      informer.put(object("shop/news", 30_001));
      for (const { value } of await Promise.all(pieces)) assert.ok(value!.byteLength > 0);
      assert.equal(api.endWatches(), 5_000);
    }
  });

  it("with an IPv6 address are one client with all of their network of 64 bits", async () => {
    const { api } = apiOf([], { maxWatchesPerClient: 1 });
    assert.equal(await watch(api, "2001:db8:0:1::1"), 200);
    assert.equal(await watch(api, "2001:DB8::1:a:b:c:d"), 429);
    assert.equal(await watch(api, "2001:0db8:0000:0001:ffff::%eth0"), 429);
    assert.equal(await watch(api, "2001:db8:0:2::1"), 200);
    assert.equal(await watch(api, "::1"), 200);
    assert.equal(await watch(api, "::2"), 429);
    assert.equal(await watch(api, "::ffff:10.0.0.1"), 200);
    assert.equal(await watch(api, "10.0.0.1"), 429);
    assert.equal(await watch(api, "::ffff:10.0.0.2"), 200);
  });

  it("are distinguished by clientOf", async () => {
    const { api } = apiOf([], {
      maxWatchesPerClient: 1,
      clientOf: (c) => c.req.header("X-Client"),
    });
    const statusOf = async (client?: string) =>
      (await api.request(WATCH, client === undefined ? {} : { headers: { "X-Client": client } })).status;
    assert.deepEqual(
      [await statusOf("a"), await statusOf("a"), await statusOf("b"), await statusOf(), await statusOf()],
      [200, 429, 200, 200, 200],
    );
  });

  it("are counted until their response is sent, where the runtime reports it", async () => {
    const { api } = apiOf([], { maxRequests: 2, maxWatches: 2 });
    for (const path of ["/api/v1/pods", "/apis", "/api/v1/pods/none", WATCH]) {
      const ask = async (env: object = {}) => {
        const { status, body } = await api.request(path, {}, { ...from("a"), ...env });
        await body?.cancel();
        return status;
      };
      const outgoing = new EventEmitter();
      assert.notEqual(await ask({ outgoing }), 429, path);
      assert.equal(await ask(), 429, path);
      outgoing.emit("close");
      const { promise: completed, resolve } = Promise.withResolvers<void>();
      assert.notEqual(await ask({ completed }), 429, path);
      assert.equal(await ask(), 429, path);
      resolve();
      await settle();
      assert.notEqual(await ask(), 429, path);
    }
  });

  it("that are refused, fail or go are not counted any more", async () => {
    let allowed: unknown = false;
    const { api } = apiOf(manyPods(200), {
      maxRequests: 1,
      maxWatches: 1,
      // deno-lint-ignore no-explicit-any
      authorize: () => allowed as any,
    });
    for (const method of ["GET", "POST", "HEAD"]) {
      assert.equal((await api.request("/api/v1/pods", { method }, from("a"))).status, 403);
    }
    allowed = true;
    for (
      const path of ["?limit=ten", "?watch=1&resourceVersion=x", "?watch=1&resourceVersion=1", "?limit=1"]
    ) {
      const response = await api.request(`/api/v1/pods${path}`, {}, from("a"));
      assert.notEqual(response.status, 429, path);
      await response.text();
    }
    for (let i = 0; i < 3; i++) {
      const list = await api.request("/api/v1/pods", {}, from("a"));
      assert.equal(list.status, 200);
      if (i === 0) await list.text();
      else await list.body?.cancel();
    }
  });
});

describe("Readers, requests that are very long,", () => {
  const text = "a".repeat(50_000);
  const long: Readonly<Record<string, readonly [path: string, headers: Record<string, string>]>> = {
    "in their URL": [`${WATCH}&x=${text}`, {}],
    "in a header": [WATCH, { "X-Text": text }],
  };
  for (const [name, [path, headers]] of Object.entries(long)) {
    it(`count as bytes of their client while they are being answered: ${name}`, async () => {
      const { api } = apiOf(manyPods(3), { maxReaderBytes: 2_000_000 });
      const open = async (count: number) => {
        const statuses = [];
        for (let i = 0; i < count; i++) {
          statuses.push((await api.request(path, { headers }, from("a"))).status);
        }
        return statuses;
      };
      for (let i = 0; i < 2; i++) {
        assert.deepEqual(await open(11), [...Array(9).fill(200), 429, 429]);
        assert.equal((await api.request(WATCH, {}, from("b"))).status, 200);
        assert.equal((await (await api.request("/api/v1/pods", {}, from("b"))).json()).items.length, 3);
        assert.equal(api.endWatches(), 10);
      }
    });
  }
});

describe("Readers, requests that ended at their timeout,", () => {
  const late: Readonly<Record<string, string>> = {
    "a list that is streamed": "/api/v1/pods?timeout=1ms",
    "a short list": "/api/v1/pods?limit=20&timeout=1ms",
    "an object": "/api/v1/namespaces/shop/pods/pod-00000?timeout=1ms",
    "a document": "/api/v1?timeout=1ms",
    "a refusal": "/api/v1/namespaces/shop/pods/none?timeout=1ms",
  };
  for (const [name, path] of Object.entries(late)) {
    it(`are counted until the work for them has ended, and leave nothing behind: ${name}`, async () => {
      const decisions: (() => void)[] = [];
      const { api, clock } = apiOf(manyPods(200), {
        maxRequests: 2,
        maxReaderBytes: 100_000,
        authenticate: () => new Promise((resolve) => decisions.push(() => resolve({ name: "jane" }))),
        authorize: () => true,
      });
      const get = (path: string) => api.request(path, {}, from("a"));
      for (let i = 0; i < 20; i++) {
        const answer = get(path);
        await settle();
        await clock.advance(1);
        assert.equal((await answer).status, 504);
        assert.equal((await get(path)).status, 429, "the work for it continues");
        decisions.pop()!();
        await settle();
      }
      const next = get("/api/v1/pods?limit=1");
      await settle();
      assert.equal((await get(path)).status, 429, "a client has one of two places");
      decisions.pop()!();
      const response = await next;
      assert.equal(response.status, 200);
      await response.text();
    });
  }

  it("let a Worker wait for that work, which would never end otherwise", async () => {
    const { api, clock } = apiOf([], { authorize: () => new Promise<boolean>(() => {}), hookTimeoutMs: 50 });
    const waits: Promise<unknown>[] = [];
    const context = {
      waitUntil: (wait: Promise<unknown>) => void waits.push(wait),
      passThroughOnException() {},
    };
    const answer = api.request("/api/v1/pods?timeout=1ms", {}, {}, { ...context, props: {} });
    await settle();
    await clock.advance(1);
    assert.equal((await answer).status, 504);
    assert.equal(waits.length, 1);
    await clock.advance(50);
    await waits[0];
  });
});

const limits = {
  maxRequests: 1,
  maxWatches: 1,
  maxWatchesPerClient: 1,
  maxReaderBytes: 1_000,
  clock: realClock,
};

describe("Reader.take", () => {
  it("counts for a client what is held for it again, after all of it was given back", () => {
    const readers = new Readers({ ...limits, maxRequests: 2, maxReaderBytes: 1_000 });
    const [one, other] = ["a client", "another client"].map((client) => readers.enter(client)!);
    let spent = 0;
    one.onSpent = () => spent++;
    one.take(100);
    one.give(100);
    assert.ok(one.take(900));
    assert.ok(other.take(200));
    assert.equal(spent, 1);
  });
});

describe("Reader.hold", () => {
  it("is given back once, however often what was returned is called", () => {
    const readers = new Readers(limits);
    const reader = readers.enter("a client")!;
    const giveBack = reader.hold();
    giveBack();
    giveBack();
    assert.equal(readers.count, 1);
    assert.equal(readers.enter("another client"), undefined);
    reader.answered({});
    assert.equal(readers.count, 0);
  });
});

describe("Reader, one that reads nothing", () => {
  it("of a large list, or stops in its middle, is disconnected after writeTimeoutMs, and one that reads slowly is not", async () => {
    const { api, clock } = apiOf(manyPods(1_000), { writeTimeoutMs: 5_000, maxRequests: 4 });
    const never = await api.request("/api/v1/pods");
    const slow = await api.request("/api/v1/pods");
    assert.equal(clock.pendingTimers, 2);
    const reader = slow.body!.getReader();
    let length = 0;
    for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
      length += chunk.value.byteLength;
      await clock.advance(4_000);
    }
    assert.ok(length > 1_000_000);
    assert.equal(clock.pendingTimers, 0);
    await assert.rejects(never.text(), /the client has read nothing of the list for 5000 ms/);
    const stops = (await api.request("/api/v1/pods")).body!.getReader();
    await stops.read();
    assert.equal(clock.pendingTimers, 1);
    await clock.advance(5_000);
    assert.equal(clock.pendingTimers, 0);
    await assert.rejects(stops.read(), /the client has read nothing of the list for 5000 ms/);
    assert.equal((await api.request("/api/v1/pods?limit=1")).status, 200);
  });

  it("of a watch is disconnected once more waits than fits into its stream, and one that reads slowly is not", async () => {
    const options = { writeTimeoutMs: 5_000, watchLifetimeMs: Infinity, watchBufferBytes: 2_000 };
    const { api, informer, clock } = apiOf([], options);
    const idle = await api.request(WATCH);
    const never = await api.request(WATCH);
    const slow = await api.request(WATCH);
    await clock.advance(60_000);
    assert.equal(clock.pendingTimers, 0, "who has nothing to read is not slow");
    await idle.body?.cancel();
    const reader = slow.body!.getReader();
    for (let version = 30_001; version <= 30_040; version++) {
      informer.put(object("shop/a", version, { spec: "x".repeat(500) }));
      await settle();
      if (version % 2 === 0) await reader.read();
      await clock.advance(2_000);
    }
    await assert.rejects(never.text(), /the client has read nothing of the watch for 5000 ms/);
    await reader.cancel();
    assert.equal(clock.pendingTimers, 0);
  });

  it("of a watch that has ended, or fell behind, is disconnected as well, and one that reads slowly has all of it", async () => {
    for (const type of ["application/json", "text/event-stream"]) {
      const { api, informer, clock } = apiOf([], { writeTimeoutMs: 5_000, eventWindow: 5 });
      const open = (query = "") => api.request(WATCH + query, { headers: { Accept: type } });
      const ended = await open("&timeoutSeconds=2");
      const late = await open();
      const slow = (await open("&timeoutSeconds=3")).body!.getReader();
      for (let version = 30_001; version <= 30_040; version++) {
        informer.put(object("shop/a", version, { spec: "x".repeat(10_000) }));
        await settle();
        if (version % 4 === 0) await slow.read();
      }
      await clock.advance(3_000);
      for (let chunk = await slow.read(); !chunk.done; chunk = await slow.read()) await clock.advance(1_000);
      await clock.advance(5_000);
      for (const { body } of [ended, late]) {
        const closed = body!.getReader().closed;
        await assert.rejects(closed, /the client has read nothing of the watch for 5000 ms/, type);
      }
      assert.equal(clock.pendingTimers, 0);
    }
  });
});

describe("Readers, the bytes that wait for them,", () => {
  /** The bytes that are made for readers that read nothing, as the streams' own queues hold them. */
  async function waiting(responses: readonly Response[]): Promise<number> {
    let bytes = 0;
    for (const { body } of responses) {
      const reader = body!.getReader();
      // The first of a list that streams is made when it is read.
      const { value } = await reader.read();
      bytes += value?.byteLength ?? 0;
      await reader.cancel();
    }
    return bytes;
  }

  it("of 400 who never read, before 20,000 pods, is less than 50 MB, and their lists share their objects", async () => {
    const { api, informer } = apiOf(manyPods(20_000));
    const arrayBuffers = () => process.memoryUsage().arrayBuffers;
    const before = arrayBuffers();
    const responses: Response[] = [];
    for (let i = 0; i < 400; i++) {
      responses.push(await api.request(i % 2 === 0 ? "/api/v1/pods" : "/api/v1/pods?watch=1"));
      informer.put(object("shop/pod-00000", 30_001 + i, { spec: { text: "y".repeat(1_000) } }));
      await settle();
    }
    const grown = arrayBuffers() - before;
    assert.ok(grown < 50_000_000, `${grown} bytes`);
    assert.ok(await waiting(responses) < 50_000_000);
  });

  it("of a relist that changed very much is nothing but 410: to list again waits for the reader", async () => {
    const { api, informer } = apiOf(manyPods(100), { eventWindow: 20_000 });
    const pods = (name: string, count: number, version: number) =>
      manyPods(count).map(({ spec }, i) => object(`shop/${name}-${i}`, version + i, { spec }));
    const many = await api.request(WATCH);
    const first = pods("q", 6_000, 30_001);
    informer.relist(first, 40_000);
    await settle();
    assert.match(await many.text(), /^\{"type":"ERROR".{0,500}"code":410\}\}\n$/);
    const few = await api.request("/api/v1/pods?watch=1&resourceVersion=40000");
    informer.relist([...first, ...pods("r", 1_000, 40_001)], 50_000);
    await settle();
    api.endWatches();
    assert.ok((await few.text()).length > 1_000_000);
  });

  it("is made in turns: timers and the network continue while many read", async () => {
    const watch = "/api/v1/pods?watch=1&allowWatchBookmarks=1";
    // Sending kept bytes takes a tenth of the time that making them takes.
    const cases = [["/api/v1/pods", 3e6, 1], ["/api/v1/pods", 1e9, 10], [watch, 3e6, 1]] as const;
    for (const [path, maxReaderBytes, share] of cases) {
      const { api } = apiOf(manyPods(3_000), { maxReaderBytes });
      let bytes = 0;
      let most = 0;
      let isOver = false;
      const turns = (async () => {
        for (let before = 0; !isOver; before = bytes) {
          await nextTurn();
          most = Math.max(most, bytes - before);
        }
      })();
      await Promise.all(Array.from({ length: 20 }, async () => {
        const reader = (await api.request(path)).body!.getReader();
        let last = "";
        for (let read = await reader.read(); !read.done; read = await reader.read()) {
          bytes += read.value.byteLength;
          last = new TextDecoder().decode(read.value.subarray(-300));
          if (last.includes("initial-events-end")) break;
        }
        await reader.cancel();
      }));
      isOver = true;
      await turns;
      assert.ok(bytes > 60_000_000, `${bytes} bytes`);
      // What each begins with, and a turn's worth.
      assert.ok(most < 20 * 64 * 1024 + share * 1_000_000, `${path}: ${most} bytes in one turn`);
    }
  });

  const search = "sortBy=metadata.name&limit=1&filter=metadata.name~";
  const selected = "labelSelector=a,b%21%3D";
  for (const [whose, what] of [["its own client", search], ["another client", selected]]) {
    it(`of a small list waits a few turns for each piece, whatever ${whose} looks for meanwhile`, async () => {
      const { api } = apiOf(manyPods(20_000));
      let isOver = false;
      let searches = 0;
      const searching = Array.from({ length: 40 }, async (_, i) => {
        for (let n = 0; !isOver; n++) {
          await (await api.request(`/api/v1/pods?${what}${i}-${n}`, {}, from("searching"))).text();
          searches++;
        }
      });
      await waitFor(() => searches > 0);
      let turns = 0;
      const count = () => {
        turns++;
        if (!isOver) setImmediate(count);
      };
      setImmediate(count);
      const path = "/api/v1/pods?limit=500";
      const response = await api.request(path, {}, from(whose === "its own client" ? "searching" : "small"));
      let pieces = 0;
      for await (const _ of response.body!) pieces++;
      isOver = true;
      await Promise.all(searching);
      assert.ok(pieces >= 4, `${pieces} pieces`);
      assert.ok(turns <= 4 * pieces, `${turns} turns for ${pieces} pieces`);
    });
  }

  it("is less for each the more there are, as the runtime holds a piece for each, too", async () => {
    const { api } = apiOf(manyPods(500));
    const pieceOf = async (path: string) => {
      const reader = (await api.request(path)).body!.getReader();
      let { byteLength } = (await reader.read()).value!;
      // The head of a list comes before it.
      if (byteLength < 1_024) ({ byteLength } = (await reader.read()).value!);
      return { byteLength, reader };
    };
    for (const path of ["/api/v1/pods", "/api/v1/pods?watch=1"]) {
      const first = await pieceOf(path);
      assert.ok(first.byteLength >= 64 * 1024, `${first.byteLength}`);
      const readers = [first.reader];
      let last = first.byteLength;
      for (let i = 0; i < 400; i++) {
        const { byteLength, reader } = await pieceOf(path);
        readers.push(reader);
        last = byteLength;
      }
      assert.ok(last < 24 * 1024, `${last}`);
      for (const reader of readers) await reader.cancel();
    }
  });

  it("is one chunk each where all together have much, and no reader waits for another", async () => {
    const { api } = apiOf(manyPods(500), { maxReaderBytes: 100_000, watchBufferBytes: 1_000_000 });
    const open = () => api.request("/api/v1/pods?watch=1&allowWatchBookmarks=1");
    const never = await open();
    const reads = await open();
    const reader = reads.body!.getReader();
    let text = "";
    while (!text.includes("initial-events-end")) {
      const { value } = await reader.read();
      assert.ok(value!.byteLength < 100_000);
      text += new TextDecoder().decode(value);
    }
    await reader.cancel();
    assert.ok((await never.body!.getReader().read()).value!.byteLength < 100_000);
  });

  it("is bounded by maxReaderBytes: the largest answers of the client that has most end first", async () => {
    const { api, informer } = apiOf(manyPods(2_000), { maxReaderBytes: 1_000_000 });
    const list = (address: string) => api.request("/api/v1/pods", {}, from(address));
    // Reads a little at first, while another client reads nothing of anything.
    const good = (await list("good")).body!.getReader();
    await good.read();
    const unread: Response[] = [];
    const statuses = new Set<number>();
    for (let i = 0; i < 300; i++) {
      const response = await api.request(
        i % 2 === 0 ? "/api/v1/pods" : "/api/v1/pods?watch=1",
        {},
        from("bad"),
      );
      statuses.add(response.status);
      if (response.status === 200) unread.push(response);
      else {
        assert.equal(response.headers.get("Retry-After"), "1");
        await response.text();
      }
      if (i % 10 === 0) informer.put(object("shop/pod-00000", 30_001 + i, { spec: { text: "y" } }));
      await settle();
    }
    let endedCount = 0;
    for (const response of unread) await waiting([response]).catch(() => endedCount++);
    assert.ok(endedCount > 0 && endedCount < unread.length, `${endedCount} of ${unread.length}`);
    for (let read = await good.read(); !read.done; read = await good.read());
    const last = await list("good");
    assert.equal(JSON.parse(await last.text()).items.length, 2_000);
    assert.deepEqual([...statuses].sort(), [200, 429]);
  });

  it("ends watches of the client that has most, which resume where they were", async () => {
    const { api, informer } = apiOf(manyPods(3), { maxReaderBytes: 300_000 });
    const open = (address: string) => api.request(`${WATCH}&allowWatchBookmarks=1`, {}, from(address));
    const watches: Response[] = [];
    for (let i = 0; i < 10; i++) watches.push(await open("slow"));
    informer.put(object("shop/pod-00001", 30_001, { spec: { text: "x".repeat(50_000) } }));
    await settle();
    const list = await api.request("/api/v1/pods", {}, from("other"));
    assert.equal(JSON.parse(await list.text()).items.length, 3);
    const ends = await Promise.all(watches.map(async ({ body }) => {
      const reader = body!.getReader();
      const { value } = await reader.read().catch((error: Error) => ({ value: error.message }));
      await reader.cancel().catch(() => {});
      return typeof value === "string" ? value : "read";
    }));
    const ended = "the bytes for unread answers are spent, and the client has read least of the watch";
    assert.deepEqual(new Set(ends), new Set(["read", ended]));
    const again = (await open("slow")).body!.getReader();
    assert.match(new TextDecoder().decode((await again.read()).value), /"MODIFIED"/);
    await again.cancel();
  });
});
