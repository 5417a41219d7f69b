import { type Clock, monotonicNow, nextTurn } from "../../src/util/clock.ts";
import { createTables } from "../../src/workers/sql_database.ts";
import { describe, it } from "node:test";
import assert from "node:assert/strict";
import { type KubernetesObject, newCluster, silentLogger } from "@listwatch/cache";
import {
  answerStatus,
  FakeClock,
  hang,
  InMemoryApiServer,
  type Interceptor,
  pod,
  refuseConnection,
  seededRandom,
} from "@listwatch/cache/testing";
import { ReflectorObject, type ReflectorSettings } from "@listwatch/cache/workers";
import { type Json, WatchReader } from "../hono/reading.ts";
import { LogRecorder } from "../log_recorder.ts";
import { until } from "../until.ts";
import { NodeSql } from "./node_sql.ts";
import { type HostedObject, type Instance, ObjectPlatform } from "./object_platform.ts";
import { isProof } from "./whole_lists.ts";

const PODS = "/api/v1/pods";
const WORLDS = 5;

class Pods extends ReflectorObject<Instance> {
  protected override settings({ fetch, clock }: Instance): ReflectorSettings {
    const cluster = newCluster({ server: "http://server", fetch, clock });
    return {
      source: cluster.resource<KubernetesObject>("v1/pods"),
      resource: "v1/pods",
      informer: { clock, logger: silentLogger, reflector: { random: () => 0.5 } },
      readApi: { freshness: "as-is" },
    };
  }
}

/** Takes ten minutes for an answer, of which something arrives all the time. */
const trickle: Interceptor = async (request, next, { clock }) => {
  const response = await next(request);
  const bytes = new Uint8Array(await response.arrayBuffer());
  const size = Math.ceil(bytes.length / 60);
  let at = 0;
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      await new Promise<void>((resolve) => clock.setTimeout(resolve, 10_000));
      controller.enqueue(bytes.slice(at, at += size));
      if (at >= bytes.length) controller.close();
    },
  });
  return new Response(body, response);
};

/** The first delay of a reflector, where `random` is 0.5. */
const FIRST_DELAY_MS = 1_200;

/** A clock that cannot wait before another try, while `fails`: it ends the informer. */
function brokenClock(clock: Clock, fails: () => boolean): Clock {
  return {
    now: () => clock.now(),
    monotonicNow: () => monotonicNow(clock),
    setTimeout: (callback, ms) => {
      if (fails() && ms === FIRST_DELAY_MS) throw new Error("no timers");
      return clock.setTimeout(callback, ms);
    },
    clearTimeout: (handle) => clock.clearTimeout(handle),
  };
}

class Rig implements Disposable {
  readonly clock = new FakeClock(1_000_000);
  readonly server: InMemoryApiServer;
  readonly platform: ObjectPlatform;

  constructor(
    newObject: (instance: Instance) => HostedObject = (instance) => new Pods(instance.ctx, instance),
  ) {
    this.server = new InMemoryApiServer({ clock: this.clock });
    this.platform = new ObjectPlatform(this.clock, { upstream: this.server.fetch, newObject });
  }

  /** An object that has synced. */
  static async synced(names: readonly string[] = ["web-1", "web-2"]): Promise<Rig> {
    const rig = new Rig();
    for (const name of names) rig.server.create("v1/pods", pod(name, { namespace: "shop" }));
    await rig.platform.fetch("/readyz");
    await rig.clock.advance(1_000);
    return rig;
  }

  /** The requests for objects since the last call: `list`, `stream` or `watch` with its version. */
  requests(): string[] {
    const requests = this.server.requests
      .filter(({ path, query }) => path.endsWith("/pods") && !isProof(query.limit))
      .map(({ isWatch, query }) =>
        !isWatch ? "list" : query.sendInitialEvents ? "stream" : `watch ${query.resourceVersion}`
      );
    this.server.clearRequests();
    return requests;
  }

  async list(): Promise<Json> {
    const response = await this.platform.fetch(PODS);
    const text = await response.text();
    assert.equal(response.status, 200, text);
    return JSON.parse(text);
  }

  async names(): Promise<string[]> {
    return (await this.list()).items.map(({ metadata }: Json) => metadata.name);
  }

  [Symbol.dispose](): void {
    this.platform.close();
    this.server.close();
  }
}

describe("ReflectorObject", () => {
  it("lists at the first request, and follows the server from then on without another", async () => {
    using rig = new Rig();
    rig.server.create("v1/pods", pod("web-1", { namespace: "shop" }));
    const remove = rig.server.intercept(refuseConnection());
    const response = await rig.platform.fetch(PODS);
    assert.equal(response.status, 503);
    remove();
    await rig.clock.advance(60_000);
    assert.deepEqual(await rig.names(), ["web-1"]);
    await rig.clock.advance(3_600_000);
    rig.server.create("v1/pods", pod("web-2", { namespace: "shop" }));
    await rig.clock.advance(10);
    assert.deepEqual(await rig.names(), ["web-1", "web-2"]);
    assert.equal(rig.platform.instances, 1);
    assert.ok(rig.platform.alarmInMs !== undefined && rig.platform.alarmInMs <= 60_000);
  });

  it("has its next alarm in a minute while a slice runs, and at once where it has none", async () => {
    using rig = new Rig();
    const alarms: number[] = [];
    await rig.platform.fetch("/readyz");
    const inMs = () => Math.round(rig.platform.alarmInMs! / 1_000) * 1_000;
    alarms.push(inMs());
    await rig.clock.advance(1);
    alarms.push(inMs());
    assert.deepEqual(alarms, [0, 60_000]);
  });

  it("stores, and logs, as its settings say", async () => {
    const logger = new LogRecorder();
    class Small extends Pods {
      protected override settings(instance: Instance): ReflectorSettings {
        const settings = super.settings(instance);
        return { ...settings, informer: { ...settings.informer, logger }, disk: { maxObjectBytes: 1_000 } };
      }
    }
    using rig = new Rig((instance) => new Small(instance.ctx, instance));
    rig.server.create("v1/pods", pod("small", { namespace: "shop" }));
    const annotations = { text: "x".repeat(2_000) };
    rig.server.create("v1/pods", pod("large", { namespace: "shop", annotations }));
    await rig.platform.fetch("/readyz");
    await rig.clock.advance(1_000);
    assert.deepEqual(await rig.names(), ["small"]);
    assert.match(logger.lines.join("\n"), /a row takes 1000 at most/);
    const count = logger.lines.length;
    const isEvent = (query: string) => query.includes("INTO listwatch_events");
    rig.platform.sql.failsWith = (query) => isEvent(query) ? new Error("the disk is full") : undefined;
    rig.server.delete("v1/pods", "shop/small");
    await rig.clock.advance(1_000);
    assert.match(
      logger.lines.slice(count).join("\n"),
      /^error: An event could not be written: .*the disk is full/m,
    );
  });

  it("takes a source that has no client for metadata, by which reads are proven fresh", async () => {
    class Plain extends ReflectorObject<Instance> {
      protected override settings({ fetch, clock }: Instance): ReflectorSettings {
        const pods = newCluster({ server: "http://server", fetch, clock }).resource<KubernetesObject>(
          "v1/pods",
        );
        return {
          source: { list: pods.list.bind(pods), watch: pods.watch.bind(pods) },
          resource: "v1/pods",
          identity: "plain",
          informer: { clock, logger: silentLogger },
        };
      }
    }
    using rig = new Rig((instance) => new Plain(instance.ctx, instance));
    rig.server.create("v1/pods", pod("web-1", { namespace: "shop" }));
    await rig.platform.fetch("/readyz");
    await rig.clock.advance(1_000);
    assert.deepEqual(await rig.names(), ["web-1"]);
  });

  it("always has a next alarm at most 60 s away, also while a slice runs", async () => {
    using rig = await Rig.synced();
    for (let i = 0; i < 500; i++) {
      await rig.clock.advance(1_000);
      assert.ok((rig.platform.alarmInMs ?? Infinity) <= 60_000, `${rig.platform.alarmInMs} after ${i} s`);
    }
    assert.ok(rig.platform.alarms >= 10 && rig.platform.alarms <= 13, `${rig.platform.alarms} slices`);
  });

  it("has a next alarm after the storage has failed to read or set one, at its start and later", async () => {
    for (const readsFirst of [0, 1]) {
      using rig = new Rig();
      rig.platform.alarmFailures = 1 - readsFirst;
      // The first request reads whether there is an alarm, then sets one.
      const first = rig.platform.fetch("/readyz");
      if (readsFirst === 1) {
        await Promise.resolve();
        rig.platform.alarmFailures = 1;
      }
      await assert.rejects(first, /overloaded/);
      assert.equal(rig.platform.alarmInMs, undefined);
      await rig.platform.fetch("/readyz");
      assert.ok(rig.platform.alarmInMs !== undefined);
      // At the end of a slice, and at the start of the next one.
      for (const failures of [1, 2]) {
        await rig.clock.advance(100_000);
        rig.platform.alarmFailures = failures;
        await rig.clock.advance(90_000);
        assert.equal(rig.platform.alarmFailures, 0);
        assert.ok(rig.platform.alarmInMs !== undefined && rig.platform.alarmInMs <= 60_000);
        // An alarm that could set the next one has not failed, whatever came then.
        assert.equal(rig.platform.failedAlarms, failures - 1);
      }
    }
  });

  it("sets an alarm at the next request after the platform has given a failing one up, and asks once for it", async () => {
    const clock = new FakeClock(1_000_000);
    const server = new InMemoryApiServer({ clock });
    const sql = new NodeSql();
    let alarmMs: number | null = null;
    let isOverloaded = false;
    let looks = 0;
    const storage = {
      sql,
      transactionSync: <R>(work: () => R) => sql.transactionSync(work),
      getAlarm: () => Promise.resolve(void looks++).then(() => alarmMs),
      setAlarm: (atMs: number) =>
        isOverloaded ? Promise.reject(new Error("overloaded")) : Promise.resolve(void (alarmMs = atMs)),
      deleteAlarm: () => Promise.resolve(),
    };
    const ctx = { id: {}, storage };
    const object = new Pods(ctx, { ctx, fetch: server.fetch, clock });
    const read = async () => void await (await object.fetch(new Request(`http://object${PODS}`))).text();
    for (let i = 0; i < 3; i++) await read();
    assert.notEqual(alarmMs, null);
    assert.equal(looks, 1);
    isOverloaded = true;
    alarmMs = null;
    await assert.rejects(object.alarm(), /overloaded/);
    isOverloaded = false;
    await read();
    assert.notEqual(alarmMs, null);
    server.close();
  });

  it("lists where its settings have another identity than before", async () => {
    let identity = "a";
    class Named extends Pods {
      protected override settings(instance: Instance): ReflectorSettings {
        return { ...super.settings(instance), identity };
      }
    }
    using rig = new Rig((instance) => new Named(instance.ctx, instance));
    rig.server.create("v1/pods", pod("web-1", { namespace: "shop" }));
    for (const [next, requests] of [["a", "stream"], ["a", "watch"], ["b", "stream"]]) {
      identity = next;
      await rig.platform.fetch("/readyz");
      await rig.clock.advance(1_000);
      assert.deepEqual(rig.requests().map((request) => request.split(" ")[0]), [requests]);
      rig.platform.commit();
      rig.platform.kill();
    }
  });

  it("continues after a crash by a watch, without a request to wake it, and marks what it had as stale", async () => {
    using rig = await Rig.synced();
    rig.requests();
    const { resourceVersion } = (await rig.list()).metadata;
    rig.platform.kill();
    rig.server.delete("v1/pods", "shop/web-1");
    rig.server.create("v1/pods", pod("web-3", { namespace: "shop" }));
    const remove = rig.server.intercept(refuseConnection());
    const stale = await rig.platform.fetch(PODS);
    remove();
    assert.equal(stale.headers.get("Cache-Synced"), "false");
    assert.deepEqual((await stale.json()).items.map(({ metadata }: Json) => metadata.name), [
      "web-1",
      "web-2",
    ]);
    rig.platform.kill();
    await rig.clock.advance(1_000);
    assert.equal(rig.platform.instances, 3);
    assert.deepEqual(rig.requests().at(-1), `watch ${resourceVersion}`);
    assert.ok(rig.requests().every((request) => request.startsWith("watch")));
    assert.deepEqual(await rig.names(), ["web-2", "web-3"]);
  });

  it("answers with what it had, by default, when it restarts while its cluster is away", async () => {
    class ByDefault extends Pods {
      protected override settings(instance: Instance): ReflectorSettings {
        return { ...super.settings(instance), readApi: {} };
      }
    }
    for (const fault of [refuseConnection(), answerStatus(503), hang()]) {
      using rig = new Rig((instance) => new ByDefault(instance.ctx, instance));
      rig.server.create("v1/pods", pod("web-1", { namespace: "shop" }));
      await rig.platform.fetch("/readyz");
      await rig.clock.advance(1_000);
      rig.server.intercept(fault);
      rig.platform.kill();
      for (const path of [PODS, `${PODS}?limit=1`, "/api/v1/namespaces/shop/pods/web-1"]) {
        const answer = rig.platform.fetch(path);
        await rig.clock.advance(5_000);
        const response = await answer;
        const text = await response.text();
        assert.equal(response.status, 200, `${path}: ${text}`);
        assert.match(text, /"web-1"/);
        assert.equal(response.headers.get("Cache-Synced"), "false");
        assert.match(response.headers.get("Warning") ?? "", /^(110|199|299) /);
        assert.match(response.headers.get("Age") ?? "", /^[0-9]+$/);
      }
    }
  });

  it("answers with all that it had in the first read after a restart, also of many objects", async () => {
    const count = 12_000;
    using rig = await Rig.synced(Array.from({ length: count }, (_, i) => `web-${i}`));
    await rig.clock.advance(1_000);
    assert.equal((await rig.names()).length, count);
    rig.platform.kill();
    const remove = rig.server.intercept(refuseConnection());
    assert.equal((await rig.names()).length, count);
    remove();
  });

  it("lets readers resume their watches across crashes: each change once, deletes included", async () => {
    using rig = await Rig.synced();
    const { resourceVersion } = (await rig.list()).metadata;
    rig.server.update("v1/pods", pod("web-2", { namespace: "shop", labels: { app: "web" } }));
    rig.server.delete("v1/pods", "shop/web-1");
    await rig.clock.advance(1_000);
    rig.platform.kill();
    rig.server.create("v1/pods", pod("web-3", { namespace: "shop" }));
    await rig.clock.advance(1_000);
    const response = await rig.platform.fetch(`${PODS}?watch=1&resourceVersion=${resourceVersion}`);
    const watch = new WatchReader(response);
    const events = await watch.events(3);
    assert.deepEqual(events.map(({ type, object }) => `${type} ${object.metadata.name}`), [
      "MODIFIED web-2",
      "DELETED web-1",
      "ADDED web-3",
    ]);
    assert.deepEqual(events[0].object.metadata.labels, { app: "web" });
    await watch.cancel();
  });

  it("lets readers resume their watches also when what a crash has left was swept", async () => {
    using rig = await Rig.synced();
    const { resourceVersion } = (await rig.list()).metadata;
    const web = (labels: Record<string, string>) => pod("web-2", { namespace: "shop", labels });
    for (const app of ["a", "b", "c"]) rig.server.update("v1/pods", web({ app }));
    rig.server.delete("v1/pods", "shop/web-1");
    rig.server.delete("v1/pods", "shop/web-2");
    await rig.clock.advance(1_000);
    rig.platform.kill();
    await rig.clock.advance(200_000);
    const read = async (selector: string, count: number) => {
      const query = `watch=1&resourceVersion=${resourceVersion}${selector}`;
      const watch = new WatchReader(await rig.platform.fetch(`${PODS}?${query}`));
      const events = await watch.events(count);
      await watch.cancel();
      return events.map(({ type, object }) =>
        `${type} ${object.metadata.name} ${object.metadata.labels?.app}`
      );
    };
    assert.deepEqual(await read("", 5), [
      "MODIFIED web-2 a",
      "MODIFIED web-2 b",
      "MODIFIED web-2 c",
      "DELETED web-1 undefined",
      "DELETED web-2 c",
    ]);
    assert.deepEqual(await read("&labelSelector=app%3Db", 2), ["ADDED web-2 b", "DELETED web-2 b"]);
  });

  for (const isAway of [false, true]) {
    const when = isAway ? "a crash while its cluster is away" : "a crash";
    it(`knows after ${when} which events a proof has passed, and lets no watch continue behind them`, async () => {
      class Consistent extends Pods {
        protected override settings(instance: Instance): ReflectorSettings {
          const { informer, ...settings } = super.settings(instance);
          const reflector = { ...informer?.reflector, useWatchList: false };
          return {
            ...settings,
            informer: { ...informer, reflector },
            readApi: isAway ? {} : { freshness: "consistent" },
          };
        }
      }
      using rig = new Rig((instance) => new Consistent(instance.ctx, instance));
      const { server, platform, clock } = rig;
      server.create("v1/pods", pod("web-1", { namespace: "shop" }));
      const { promise: released, resolve: release } = Promise.withResolvers<void>();
      const held: Interceptor = async (request, next) => {
        const response = await next(request);
        const gate = new TransformStream<Uint8Array, Uint8Array>({
          async transform(chunk, controller) {
            await released;
            controller.enqueue(chunk);
          },
        });
        return new Response(response.body!.pipeThrough(gate), response);
      };
      server.intercept(held, { match: ({ isWatch }) => isWatch });
      await platform.fetch("/readyz");
      await clock.advance(1_000);
      server.create("v1/pods", pod("brief", { namespace: "shop" }));
      server.delete("v1/pods", "shop/brief");
      const list = rig.list();
      await clock.advance(1_000);
      assert.equal((await list).metadata.resourceVersion, "4");
      await clock.advance(2_000);
      platform.commit();
      rig.requests();
      const back = isAway ? server.intercept(refuseConnection()) : () => {};
      platform.kill();
      const open = async (version: number) =>
        new WatchReader(await platform.fetch(`${PODS}?watch=1&resourceVersion=${version}`));
      const before = await open(2);
      // Elsewhere this one has received "brief", and must learn that it was deleted.
      const between = await open(3);
      const after = await open(4);
      if (isAway) {
        const stale = rig.list();
        await clock.advance(30_000);
        const { metadata, items } = await stale;
        assert.deepEqual([metadata.resourceVersion, items.length], ["4", 1]);
        back();
        await clock.advance(60_000);
      }
      await clock.advance(1_000);
      const requests = rig.requests();
      assert.ok(requests.length > 0 && requests.every((request) => request === "watch 2"), String(requests));
      release();
      await clock.advance(1_000);
      assert.deepEqual(await between.toEnd(), ["ERROR 410 Expired"]);
      server.create("v1/pods", pod("web-2", { namespace: "shop" }));
      await clock.advance(10);
      for (const watch of [before, after]) {
        assert.deepEqual(await watch.lines(1), ["ADDED shop/web-2 5"]);
        await watch.cancel();
      }
    });
  }

  it("has the name of its first request, also when an alarm starts it", async () => {
    const names: unknown[] = [];
    class Named extends Pods {
      protected override settings(instance: Instance, name?: string): ReflectorSettings {
        names.push(name);
        return super.settings(instance);
      }
    }
    using rig = new Rig((instance) => new Named(instance.ctx, instance));
    await rig.platform.fetch(PODS);
    for (let i = 0; i < 2; i++) {
      await rig.clock.advance(1_000);
      rig.platform.kill();
    }
    await rig.clock.advance(1_000);
    assert.deepEqual(names, ["test", "test", "test"]);
  });

  it("sends bookmarks often, as a peer that has left is noticed at a write only", async () => {
    using rig = await Rig.synced();
    const watch = new WatchReader(await rig.platform.fetch(`${PODS}?watch=1&allowWatchBookmarks=true`));
    const isBookmark = async () => (await watch.chunk())?.at(-1)?.type === "BOOKMARK";
    while (!await isBookmark()); // the end of the first objects
    for (let i = 0; i < 4; i++) {
      await rig.clock.advance(15_100);
      assert.ok(await isBookmark());
    }
    await watch.cancel();
  });

  it("starts again after its informer has failed, and ends the watches of the one before", async () => {
    let fails = false;
    const logger = new LogRecorder();
    class Failing extends Pods {
      protected override settings(instance: Instance): ReflectorSettings {
        const settings = super.settings(instance);
        return {
          ...settings,
          informer: { ...settings.informer, logger, clock: brokenClock(instance.clock, () => fails) },
        };
      }
    }
    using rig = new Rig((instance) => new Failing(instance.ctx, instance));
    rig.server.create("v1/pods", pod("web-1", { namespace: "shop" }));
    await rig.platform.fetch("/readyz");
    await rig.clock.advance(1_000);
    const watch = new WatchReader(await rig.platform.fetch(`${PODS}?watch=1`));
    await watch.chunk();
    fails = true;
    rig.server.closeWatches({ reset: true });
    const remove = rig.server.intercept(refuseConnection());
    await rig.clock.advance(10_000);
    while (await watch.chunk() !== undefined);
    assert.ok(logger.of("error").some((line) => /the informer has failed: no timers/.test(line)));
    fails = false;
    remove();
    rig.server.create("v1/pods", pod("web-2", { namespace: "shop" }));
    await rig.clock.advance(60_000);
    assert.deepEqual(await rig.names(), ["web-1", "web-2"]);
    assert.equal(rig.platform.instances, 1);
  });

  it("does not start its informer again at each request while that fails, and serves what it had", async () => {
    let starts = 0;
    let fails = false;
    class Failing extends Pods {
      protected override settings(instance: Instance): ReflectorSettings {
        const { informer, ...settings } = super.settings(instance);
        starts++;
        const clock = brokenClock(instance.clock, () => fails);
        return { ...settings, readApi: {}, informer: { ...informer, clock } };
      }
    }
    using rig = new Rig((instance) => new Failing(instance.ctx, instance));
    rig.server.create("v1/pods", pod("web-1", { namespace: "shop" }));
    await rig.platform.fetch("/readyz");
    await rig.clock.advance(1_000);
    rig.server.intercept(refuseConnection());
    rig.server.closeWatches({ reset: true });
    fails = true;
    await rig.clock.advance(1_000);
    rig.server.clearRequests();
    for (let second = 0; second < 600; second++) {
      const answer = rig.platform.fetch(PODS);
      await rig.clock.advance(1_000);
      const response = await answer;
      const { items } = await response.json();
      assert.deepEqual(items.map(({ metadata }: Json) => metadata.name), ["web-1"]);
      assert.match(response.headers.get("Warning") ?? "", /last known state|saved state/);
    }
    assert.ok(starts > 10 && starts <= 22, `${starts} starts in ten minutes`);
    assert.ok(rig.server.requests.length <= 150, `${rig.server.requests.length} requests`);
  });

  for (const [what, isListed, mostRequests] of [["list", false, 30], ["watch", true, 60]] as const) {
    it(`asks the API server less and less often while each ${what} ends the object, and answers meanwhile`, async () => {
      using rig = isListed ? await Rig.synced() : new Rig();
      if (isListed) rig.platform.kill();
      rig.server.clearRequests();
      let isFatal = true;
      let kills = 0;
      // As a full storage and too little memory do: the next reader starts the object again.
      rig.server.intercept((request, next) => {
        rig.platform.commit(); // a request leaves when what was written before is on disk
        // An alarm that was running is repeated at once: without an end, a failing test would have none.
        if (isFatal && new URL(request.url).pathname.endsWith("/pods") && kills++ < 1_000) {
          rig.platform.kill();
        }
        return next(request);
      });
      let stale = 0;
      for (let second = 0; second < 600; second++) {
        void rig.platform.fetch(PODS).then((response) => {
          if (response.headers.has("Warning")) stale++;
        });
        await rig.clock.advance(1_000);
      }
      const { length } = rig.server.requests;
      assert.ok(length > 10 && length <= mostRequests, `${length} requests in ten minutes`);
      if (isListed) assert.ok(stale > 500, `${stale} answers of what it had`);
      isFatal = false;
      rig.server.create("v1/pods", pod("web-3", { namespace: "shop" }));
      await rig.clock.advance(61_000);
      assert.deepEqual(await rig.names(), isListed ? ["web-1", "web-2", "web-3"] : ["web-3"]);
      // What is over is forgotten: one more crash costs no time.
      rig.platform.kill();
      rig.server.create("v1/pods", pod("web-4", { namespace: "shop" }));
      await rig.platform.fetch(PODS);
      await rig.clock.advance(500);
      assert.deepEqual((await rig.names()).at(-1), "web-4");
    });
  }

  it("lists only after 410, and makes the deletes that it had missed", async () => {
    using rig = await Rig.synced();
    const { resourceVersion } = (await rig.list()).metadata;
    rig.platform.kill();
    rig.server.delete("v1/pods", "shop/web-1");
    rig.server.create("v1/pods", pod("web-3", { namespace: "shop" }));
    rig.server.compact();
    rig.requests();
    await rig.clock.advance(30_000);
    assert.deepEqual(rig.requests().slice(0, 2), [`watch ${resourceVersion}`, "stream"]);
    assert.deepEqual(await rig.names(), ["web-2", "web-3"]);
    rig.platform.kill();
    await rig.clock.advance(1_000);
    assert.deepEqual(await rig.names(), ["web-2", "web-3"]);
    assert.ok(!rig.requests().includes("list"));
  });

  for (
    const [what, fault] of [["refuses connections", refuseConnection()], [
      "answers 503",
      answerStatus(503),
    ]] as const
  ) {
    it(`sends at most 0.25 requests a second while its upstream ${what} for an hour, crashes included`, async () => {
      using rig = await Rig.synced();
      rig.server.clearRequests();
      rig.server.intercept(fault);
      rig.server.closeWatches();
      for (let minute = 0; minute < 60; minute++) {
        await rig.clock.advance(60_000);
        if (minute % 20 === 10) rig.platform.kill();
      }
      const count = rig.server.requests.length;
      assert.ok(count <= 900, `${count} requests`);
      assert.deepEqual(await rig.names(), ["web-1", "web-2"]);
    });
  }

  it("does a bounded amount of work while nothing happens", async () => {
    using rig = await Rig.synced();
    await rig.clock.advance(600_000);
    rig.server.clearRequests();
    const { sql } = rig.platform;
    const before = sql.count;
    await rig.clock.advance(3_600_000);
    const perMinute = (sql.count - before) / 60;
    assert.ok(perMinute <= 20, `${perMinute} statements a minute`);
    assert.ok(rig.server.requests.length <= 15, `${rig.server.requests.length} requests an hour`);
  });

  it("deletes the states that objects had, minutes after the event log has dropped them", async () => {
    class SmallLog extends Pods {
      protected override settings(instance: Instance): ReflectorSettings {
        return { ...super.settings(instance), readApi: { freshness: "as-is", eventWindow: 10 } };
      }
    }
    using rig = new Rig((instance) => new SmallLog(instance.ctx, instance));
    await rig.platform.fetch(PODS);
    rig.server.create("v1/pods", pod("web-1", { namespace: "shop" }));
    for (let i = 0; i < 100; i++) {
      rig.server.update("v1/pods", pod("web-1", { namespace: "shop", labels: { i: `${i}` } }));
      await rig.clock.advance(100);
    }
    const count = (table: string) =>
      Number([...rig.platform.sql.exec(`SELECT count(*) FROM listwatch_${table}`).raw()][0][0]);
    assert.equal(count("bodies"), 101);
    await rig.clock.advance(15 * 60_000);
    assert.equal(count("events"), 10);
    assert.equal(count("bodies"), 11);
    rig.platform.kill();
    await rig.clock.advance(1_000);
    const { items } = await rig.list();
    assert.deepEqual(items[0].metadata.labels, { i: "99" });
  });

  it("breaks a watch off for which nothing can be read, and sends events to the next one", async () => {
    using rig = await Rig.synced();
    const { resourceVersion } = (await rig.list()).metadata;
    const open = async () =>
      new WatchReader(await rig.platform.fetch(`${PODS}?watch=1&resourceVersion=${resourceVersion}`));
    rig.server.update("v1/pods", pod("web-1", { namespace: "shop", labels: { app: "web" } }));
    await rig.clock.advance(1_000);
    rig.platform.commit();
    // So that no text is in memory.
    rig.platform.kill();
    await rig.platform.fetch("/readyz");
    await rig.clock.advance(1_000);
    const { sql } = rig.platform;
    sql.failsWith = (query) => query.startsWith("SELECT json") ? new Error("the disk is away") : undefined;
    const broken = await open();
    await assert.rejects(broken.chunk(), /the disk is away/);
    sql.failsWith = undefined;
    const next = await open();
    await rig.clock.advance(1_000);
    assert.match((await next.lines(1))[0], /^MODIFIED shop\/web-1 /);
    await next.cancel();
  });

  it("lists all objects again after one of them could not be read", async () => {
    using rig = await Rig.synced();
    rig.platform.commit();
    // So that no text is in memory.
    rig.platform.kill();
    await rig.platform.fetch("/readyz");
    await rig.clock.advance(1_000);
    let reads = 0;
    rig.platform.sql.failsWith = (query) =>
      query.startsWith("SELECT json") && ++reads === 2 ? new Error("the disk is away") : undefined;
    const response = await rig.platform.fetch(PODS);
    assert.equal(response.status, 500);
    const { kind, reason, code, message } = await response.json();
    assert.deepEqual([kind, reason, code], ["Status", "InternalError", 500]);
    assert.match(message, /the cache cannot read what it needs to answer/);
    assert.deepEqual(await rig.names(), ["web-1", "web-2"]);
  });

  it("ends a window whose rows cannot be read, for all of its readers", async () => {
    class Small extends Pods {
      protected override settings(instance: Instance): ReflectorSettings {
        return { ...super.settings(instance), readApi: { freshness: "as-is", eventWindow: 2 } };
      }
    }
    for (const deletes of [["web-1"], ["web-1", "web-2", "web-3", "web-4"]]) {
      using rig = new Rig((instance) => new Small(instance.ctx, instance));
      const names = Array.from({ length: 9 }, (_, i) => `web-${i + 1}`);
      for (const name of names) rig.server.create("v1/pods", pod(name, { namespace: "shop" }));
      await rig.platform.fetch("/readyz");
      await rig.clock.advance(1_000);
      rig.platform.commit();
      // So that no text is in memory.
      rig.platform.kill();
      await rig.platform.fetch("/readyz");
      await rig.clock.advance(1_000);
      const open = async () =>
        new WatchReader(await rig.platform.fetch(`${PODS}?watch=1&sortBy=status.phase&limit=1`));
      const readers = [await open(), await open()];
      for (const reader of readers) assert.equal((await reader.events(1))[0].type, "ROWS");
      // The windows look, and rest.
      rig.server.update("v1/pods", pod("web-9", { namespace: "shop", labels: { app: "web" } }));
      await rig.clock.advance(1);
      rig.platform.sql.failsWith = (query) =>
        query.startsWith("SELECT json") ? new Error("the disk is away") : undefined;
      // One row, or more entries than the log keeps.
      for (const name of deletes) rig.server.delete("v1/pods", `shop/${name}`);
      await rig.clock.advance(1_000);
      for (const reader of readers) {
        const [{ type, object }] = await reader.events(1);
        assert.deepEqual([type, object.code, object.message], ["ERROR", 500, "the disk is away"]);
      }
      rig.platform.sql.failsWith = undefined;
      const next = await open();
      const [{ object }] = await next.events(1);
      assert.equal(object.items[0].metadata.name, `web-${deletes.length + 1}`);
      await next.cancel();
    }
  });

  it("deletes what a crash has left over as soon as it runs again, however soon it crashes again", async () => {
    using rig = new Rig();
    for (let i = 0; i < 300; i++) rig.server.create("v1/pods", pod(`web-${i}`, { namespace: "shop" }));
    rig.server.intercept(answerStatus(400), { match: ({ query }) => query.sendInitialEvents === "true" });
    rig.server.intercept(trickle, { match: ({ isWatch, query }) => !isWatch && !isProof(query.limit) });
    await rig.platform.fetch("/readyz");
    const counts: number[] = [];
    for (let crash = 0; crash < 5; crash++) {
      await rig.clock.advance(44_000);
      rig.platform.commit();
      counts.push(Number([...rig.platform.sql.exec("SELECT count(*) FROM listwatch_bodies").raw()][0][0]));
      rig.platform.kill();
    }
    assert.ok(counts[0] > 10, `${counts}`);
    assert.ok(counts.every((count) => count <= counts[0]), `${counts}`);
  });

  it("deletes a hundred thousand rows in a slice at most, five hundred in a turn of the event loop", async () => {
    using rig = new Rig();
    const { sql } = rig.platform;
    createTables(sql);
    const rows = 100_600;
    sql.exec(
      "INSERT INTO listwatch_bodies(id, json) WITH RECURSIVE numbers(n) AS " +
        `(SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${rows}) SELECT n, '{}' FROM numbers`,
    );
    let turn = 0;
    let isOver = false;
    const turns = (async () => {
      for (; !isOver; turn++) await nextTurn();
    })();
    const steps: number[] = [];
    sql.failsWith = (query) => void (/^SELECT id FROM listwatch_bodies/.test(query) && steps.push(turn));
    const left = () => Number([...sql.exec("SELECT count(*) FROM listwatch_bodies").raw()][0][0]);
    await rig.platform.fetch("/readyz");
    await rig.clock.advance(0);
    await until(() => steps.length >= 200 && left() <= 600);
    assert.equal(left(), 600);
    await rig.clock.advance(50_000);
    await until(() => left() === 0);
    isOver = true;
    await turns;
    assert.equal(new Set(steps.slice(0, 200)).size, 200);
    sql.failsWith = undefined;
  });

  it("keeps all objects of a list that takes ten minutes", async () => {
    const count = 3_000;
    using rig = new Rig();
    for (let i = 0; i < count; i++) rig.server.create("v1/pods", pod(`web-${i}`, { namespace: "shop" }));
    rig.server.intercept(answerStatus(400), { match: ({ query }) => query.sendInitialEvents === "true" });
    rig.server.intercept(trickle, {
      match: ({ isWatch, query }) => !isWatch && !isProof(query.limit),
    });
    await rig.platform.fetch("/readyz");
    await rig.clock.advance(590_000);
    assert.equal((await rig.platform.fetch(PODS)).status, 503);
    await rig.clock.advance(200_000);
    assert.equal((await rig.names()).length, count);
    await rig.clock.advance(900_000);
    assert.equal((await rig.names()).length, count);
    rig.platform.kill();
    assert.equal((await rig.names()).length, count);
  });

  it("throws to readers what its settings throw, and tries again each minute without throwing to the platform", async () => {
    let attempts = 0;
    class Broken extends ReflectorObject<Instance> {
      protected override settings(): ReflectorSettings {
        attempts++;
        throw new TypeError("no SERVER is bound");
      }
    }
    using rig = new Rig((instance) => new Broken(instance.ctx, instance));
    await assert.rejects(rig.platform.fetch(PODS), /no SERVER is bound/);
    await rig.clock.advance(300_000);
    assert.ok(attempts <= 7, `${attempts} attempts`);
  });

  for (const table of ["bodies", "events", "objects", "state"]) {
    it(`loses no change when writes to ${table} fail for a while, and the object crashes after that`, async () => {
      using rig = await Rig.synced();
      const { resourceVersion } = (await rig.list()).metadata;
      const failing = new RegExp(`INSERT INTO listwatch_${table}`);
      rig.platform.sql.failsWith = (query) => failing.test(query) ? new Error("the disk is full") : undefined;
      rig.server.delete("v1/pods", "shop/web-1");
      rig.server.create("v1/pods", pod("web-3", { namespace: "shop" }));
      await rig.clock.advance(100);
      assert.deepEqual(await rig.names(), ["web-2", "web-3"]);
      rig.platform.sql.failsWith = undefined;
      rig.server.create("v1/pods", pod("web-4", { namespace: "shop" }));
      await rig.clock.advance(10_000);
      rig.platform.kill();
      await rig.clock.advance(10_000);
      assert.deepEqual(await rig.names(), ["web-2", "web-3", "web-4"]);
      const response = await rig.platform.fetch(`${PODS}?watch=1&resourceVersion=${resourceVersion}`);
      const watch = new WatchReader(response);
      const [first] = await watch.chunk() ?? [];
      // All of it, or a list is due.
      const text = `${first.type} ${first.object.code ?? first.object.metadata.name}`;
      assert.ok(["DELETED web-1", "ERROR 410"].includes(text), text);
      await watch.cancel();
    });
  }

  it("loses no change when neither an event nor the end of the history can be written before a crash", async () => {
    using rig = await Rig.synced();
    const { resourceVersion } = (await rig.list()).metadata;
    const failing = /^(INSERT INTO listwatch_events|DELETE FROM listwatch_state)/;
    rig.platform.sql.failsWith = (query) => failing.test(query) ? new Error("the disk is full") : undefined;
    rig.server.delete("v1/pods", "shop/web-1");
    await rig.clock.advance(100);
    rig.platform.commit();
    rig.platform.kill();
    await rig.clock.advance(10_000);
    assert.deepEqual(await rig.names(), ["web-2"]);
    const response = await rig.platform.fetch(`${PODS}?watch=1&resourceVersion=${resourceVersion}`);
    const watch = new WatchReader(response);
    const [first] = await Promise.race([watch.chunk(), rig.clock.advance(1_000)]) ?? [];
    const text = `${first?.type} ${first?.object.code ?? first?.object.metadata.name}`;
    assert.ok(["DELETED web-1", "ERROR 410"].includes(text), text);
    await watch.cancel();
  });

  it("sends a reader 410 whose events have lost their texts after an entry that could not be written", async () => {
    class Cold extends Pods {
      protected override settings(instance: Instance): ReflectorSettings {
        return { ...super.settings(instance), disk: { hotObjects: 0 } };
      }
    }
    using rig = new Rig((instance) => new Cold(instance.ctx, instance));
    for (const name of ["web-1", "web-2"]) rig.server.create("v1/pods", pod(name, { namespace: "shop" }));
    await rig.platform.fetch("/readyz");
    await rig.clock.advance(1_000);
    const { resourceVersion } = (await rig.list()).metadata;
    const web = (app: string) => pod("web-1", { namespace: "shop", labels: { app } });
    rig.server.delete("v1/pods", "shop/web-2");
    await rig.clock.advance(100);
    rig.platform.sql.failsWith = (query) =>
      query.startsWith("INSERT INTO listwatch_events") ? new Error("the disk is full") : undefined;
    rig.server.update("v1/pods", web("a"));
    await rig.clock.advance(100);
    rig.platform.sql.failsWith = undefined;
    // So many that no text of before is in memory.
    for (let i = 0; i < 100; i++) rig.server.update("v1/pods", web("b".repeat(20_000 + i)));
    await rig.clock.advance(900_000);
    const query = `watch=1&resourceVersion=${resourceVersion}`;
    const watch = new WatchReader(await rig.platform.fetch(`${PODS}?${query}`));
    const [{ type, object }] = await watch.events(1);
    assert.deepEqual([type, object.code], ["ERROR", 410]);
    await watch.cancel();
  });

  it("equals the server after crashes at random moments, and shows readers nothing that it loses", async () => {
    const seed = Number(Deno.env.get("LISTWATCH_PROPERTY_SEED") ?? Math.floor(Math.random() * 1e9));
    console.log(`seed ${seed}`);
    const random = seededRandom(seed);
    const below = (count: number) => Math.floor(random() * count);
    for (let world = 0; world < WORLDS; world++) {
      using rig = await Rig.synced([]);
      rig.requests();
      const reader = new Reader(rig.platform);
      const present = new Set<string>();
      let compactions = 0;
      for (let step = 0; step < 200; step++) {
        const name = `web-${below(20)}`;
        const key = `shop/${name}`;
        const object = pod(name, { namespace: "shop", labels: { step: `${step}` } });
        if (!present.has(key)) rig.server.create("v1/pods", object);
        else if (below(3) > 0) rig.server.update("v1/pods", object);
        else rig.server.delete("v1/pods", key);
        if (rig.server.list("v1/pods").items.some(({ metadata }) => metadata?.name === name)) {
          present.add(key);
        } else present.delete(key);
        if (below(4) === 0) await rig.clock.advance(below(300));
        if (below(5) === 0) await reader.catchUp();
        if (below(30) === 0) rig.server.closeWatches({ reset: true });
        if (below(60) === 0) {
          rig.server.compact();
          rig.server.closeWatches({ reset: true });
          compactions++;
        }
        if (below(10) === 0) {
          // In the middle of a turn, or between two.
          if (below(2) === 0) {
            const { sql } = rig.platform;
            sql.crashesAt = sql.count + below(20);
            await rig.clock.advance(below(50));
          }
          rig.platform.kill();
        }
      }
      await rig.clock.advance(120_000);
      const expected = rig.server.list<KubernetesObject>("v1/pods");
      const metadata = (items: readonly Json[]) => items.map(({ metadata }) => metadata);
      assert.deepEqual(metadata((await rig.list()).items), metadata(expected.items), `world ${world}`);
      await reader.catchUp();
      assert.deepEqual(metadata(reader.objects()), metadata(expected.items), `the reader in world ${world}`);
      const lists = rig.requests().filter((request) => !request.startsWith("watch"));
      assert.ok(lists.length <= 2 * compactions, `${lists.length} lists after ${compactions} compactions`);
    }
  });
});

/** A client that lists and watches the object, and resumes where it was. */
class Reader {
  readonly #platform: ObjectPlatform;
  readonly #objects = new Map<string, Json>();
  #version = "";

  constructor(platform: ObjectPlatform) {
    this.#platform = platform;
  }

  objects(): Json[] {
    return [...this.#objects].sort(([a], [b]) => a < b ? -1 : 1).map(([, object]) => object);
  }

  /** Receives what is there now. */
  async catchUp(): Promise<void> {
    if (this.#version === "") return await this.#list();
    const response = await this.#platform.fetch(
      `${PODS}?watch=1&allowWatchBookmarks=true&timeoutSeconds=1&resourceVersion=${this.#version}`,
    );
    if (response.status !== 200) return void await response.body?.cancel();
    const reader = response.body!.getReader();
    let text = "";
    for (;;) {
      const turns = Array.from({ length: 5 }, () => new Promise((resolve) => setTimeout(resolve, 0)));
      const chunk = await Promise.race([reader.read(), Promise.all(turns).then(() => undefined)]);
      if (chunk?.value === undefined) break;
      text += new TextDecoder().decode(chunk.value);
    }
    await reader.cancel();
    for (const line of text.split("\n").slice(0, -1)) {
      const { type, object } = JSON.parse(line);
      if (type === "ERROR") {
        assert.equal(object.code, 410);
        return await this.#list();
      }
      const { namespace, name, resourceVersion } = object.metadata;
      assert.ok(
        Number(resourceVersion) >= Number(this.#version),
        `${resourceVersion} after ${this.#version}`,
      );
      this.#version = resourceVersion;
      const key = `${namespace}/${name}`;
      if (type === "DELETED") assert.ok(this.#objects.delete(key), `${key} was deleted, which was not there`);
      else if (type !== "BOOKMARK") this.#objects.set(key, object);
    }
  }

  async #list(): Promise<void> {
    const response = await this.#platform.fetch(PODS);
    const text = await response.text();
    if (response.status === 503) return;
    const { items, metadata } = JSON.parse(text);
    assert.ok(
      Number(metadata.resourceVersion) >= Number(this.#version),
      `${metadata.resourceVersion} after ${this.#version}`,
    );
    this.#version = metadata.resourceVersion;
    this.#objects.clear();
    for (const item of items) this.#objects.set(`${item.metadata.namespace}/${item.metadata.name}`, item);
  }
}
