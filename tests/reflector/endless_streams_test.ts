import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  type KubernetesObject,
  metaNamespaceKey,
  NetworkError,
  newCluster,
  StatusError,
} from "@listwatch/cache";
import { newStatus } from "@listwatch/cache/client";
import { Reflector, type ReflectorOptions } from "@listwatch/cache/reflector";
import { newStore } from "@listwatch/cache/store";
import { FakeClock, type FakeWatcher } from "@listwatch/cache/testing";
import { onAbort } from "../../src/util/abort.ts";
import { LogRecorder } from "../log_recorder.ts";
import { at, openWatch, page } from "./scripted_source.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const END = { "k8s.io/initial-events-end": "true" };

/** How a streamed list is answered; everything else is answered as usual. */
type Stream = (clock: FakeClock, signal: AbortSignal) => Promise<FakeWatcher>;

/** A reflector whose source answers lists and watches, and streams as `stream` does. */
function newWorld(
  stream: Stream,
  options: ReflectorOptions = {},
  list: () => Promise<never> | undefined = () => undefined,
) {
  const clock = new FakeClock();
  const log = new LogRecorder();
  const errors: Error[] = [];
  const requests: string[] = [];
  const watches: FakeWatcher[] = [];
  const store = newStore<KubernetesObject>(metaNamespaceKey);
  const reflector = new Reflector<KubernetesObject>(
    {
      description: "pods",
      list: () => {
        requests.push("list");
        return list() ?? Promise.resolve(page("a@1 b@2", "10"));
      },
      watch: ({ sendInitialEvents }, { signal }) => {
        requests.push(sendInitialEvents ? "stream" : "watch");
        if (sendInitialEvents) return stream(clock, signal);
        const watch = openWatch();
        watches.push(watch);
        onAbort(signal, () => watch.fail(signal.reason));
        return Promise.resolve(watch);
      },
    },
    store,
    {
      clock,
      logger: log,
      random: () => 0,
      watchErrorHandler: (error) => errors.push(error),
      ...options,
    },
  );
  const stop = new AbortController();
  const running = reflector.run(stop.signal);
  return {
    clock,
    log,
    errors,
    requests,
    watches,
    store,
    reflector,
    count: (request: string) => requests.filter((one) => one === request).length,
    async [Symbol.asyncDispose]() {
      stop.abort();
      await clock.advance(0);
      await running;
    },
  };
}

/** Advances time in steps, in each of which everything happens that can. */
async function pass(clock: FakeClock, ms: number, stepMs = 1_000): Promise<void> {
  for (let passed = 0; passed < ms; passed += stepMs) await clock.advance(stepMs);
}

/** A stream that lasts until its signal is aborted, or `ms` have passed. */
function endedAfter(ms: number): Stream {
  return (clock, signal) => {
    const watcher = openWatch((one) => one.add(at("a@1")));
    const timer = clock.setTimeout(() => watcher.stop(), ms);
    onAbort(signal, () => (clock.clearTimeout(timer), watcher.fail(signal.reason)));
    return Promise.resolve(watcher);
  };
}

const reset: Stream = () => Promise.reject(new NetworkError("ConnectionReset", "connection reset"));
const unanswered: Stream = (_, signal) =>
  new Promise((__, reject) => onAbort(signal, () => reject(signal.reason)));

/** A stream that never ends, as a known object changes again and again, with the usual bookmarks. */
const changing: Stream = (clock, signal) => {
  const watcher = openWatch((one) => one.add(at("a@1")));
  let version = 2;
  const change = () => {
    watcher.modify(at(`a@${version}`));
    watcher.add(at(`new-${version}@${version++}`));
    timer = clock.setTimeout(change, 3_000);
  };
  let timer = clock.setTimeout(change, 3_000);
  onAbort(signal, () => (clock.clearTimeout(timer), watcher.fail(signal.reason)));
  return Promise.resolve(watcher);
};

describe("Reflector, where streamed lists never end,", () => {
  const traps: readonly (readonly [string, Stream, number])[] = [
    ["as changes continue and no end bookmark comes", changing, 70_000],
    ["as a middlebox resets their requests", reset, 10_000],
    ["as a middlebox never answers their requests", unanswered, 31_000],
    ["as a proxy ends every response after 5 s", endedAfter(5_000), 30_000],
  ];
  for (const [why, stream, withinMs] of traps) {
    it(`give way to a list ${why}, which is said once`, async () => {
      await using world = newWorld(stream);
      await pass(world.clock, withinMs);
      assert.deepEqual(world.store.listKeys(), ["a", "b"]);
      assert.equal(world.reflector.status().phase, "watching");
      assert.ok(world.count("stream") <= 3, `${world.count("stream")} streams`);
      await pass(world.clock, DAY_MS, 60_000);
      assert.ok(world.count("stream") <= 3, `${world.count("stream")} streams in a day`);
      const warnings = world.log.of("warn").filter((line) => /listing instead for the next 1 h: /.test(line));
      assert.equal(warnings.length, 1, world.log.of("warn").join("\n"));
      const { streamPause } = world.reflector.status();
      assert.equal(streamPause?.untilTimeMs, streamPause!.sinceTimeMs + HOUR_MS);
      assert.equal(streamPause.cause, stream === changing ? "stalled" : "unfinished");
      // Failed connections are reported; streams that were answered, and brought nothing, are not.
      const isUnanswered = stream === reset || stream === unanswered;
      assert.equal(world.errors.length > 0, isUnanswered);
      assert.ok(world.errors.every((error) => error instanceof NetworkError));
    });
  }

  it("give way to a list as the server does not know how to watch, and answers with its list on one line", async () => {
    const clock = new FakeClock();
    const log = new LogRecorder();
    const requests: string[] = [];
    const list = JSON.stringify({
      kind: "PodList",
      apiVersion: "v1",
      metadata: { resourceVersion: "10" },
      items: [at("a@1")],
    });
    const cluster = newCluster({
      server: "http://old",
      clock,
      logger: log,
      fetch: (url) => {
        const query = new URL(url).searchParams;
        requests.push(query.has("sendInitialEvents") ? "stream" : query.has("watch") ? "watch" : "list");
        return Promise.resolve(new Response(`${list}\n`));
      },
    });
    const store = newStore<KubernetesObject>(metaNamespaceKey);
    const reflector = new Reflector(cluster.resource<KubernetesObject>("v1/pods"), store, {
      clock,
      logger: log,
      random: () => 0,
      onQuarantined: () => {},
    });
    const stop = new AbortController();
    const running = reflector.run(stop.signal);
    await pass(clock, 1_000);
    assert.deepEqual(store.listKeys(), ["a"]);
    await pass(clock, 20 * 60_000);
    assert.equal(requests.filter((one) => one === "stream").length, 3);
    assert.ok(requests.filter((one) => one === "list").length > 20, "it continues with lists");
    assert.match(
      reflector.status().streamPause?.message ?? "",
      /got invalid watch event type: undefined/,
    );
    assert.equal(log.of("warn").filter((line) => /listing instead/.test(line)).length, 1);
    stop.abort();
    await clock.advance(0);
    await running;
  });

  it("that are lists on one line are warned of once, and each is counted", async () => {
    const clock = new FakeClock();
    const log = new LogRecorder();
    const list = JSON.stringify({
      kind: "PodList",
      apiVersion: "v1",
      metadata: { resourceVersion: "10" },
      items: [],
    });
    const cluster = newCluster({
      server: "http://old",
      clock,
      logger: log,
      fetch: () => Promise.resolve(new Response(`${list}\n`)),
    });
    const source = cluster.resource<KubernetesObject>("v1/pods");
    const store = newStore<KubernetesObject>(metaNamespaceKey);
    const reflector = new Reflector(source, store, { clock, logger: log, random: () => 0 });
    const stop = new AbortController();
    const running = reflector.run(stop.signal);
    await pass(clock, 8 * HOUR_MS, 60_000);
    const warnings = log.of("warn");
    assert.equal(warnings.length, 3, warnings.slice(0, 6).join("\n"));
    assert.ok(reflector.status().quarantined > 1_000);
    stop.abort();
    await clock.advance(0);
    await running;
  });

  it("are given up for a list however new the objects are that changes bring", async () => {
    await using world = newWorld((clock, signal) => {
      const watcher = openWatch((one) => one.add(at("a@1")));
      let version = 2;
      const change = () => {
        watcher.add(at(`new-${version}@${version++}`)); // nothing but new objects
        timer = clock.setTimeout(change, 3_000);
      };
      let timer = clock.setTimeout(change, 3_000);
      onAbort(signal, () => (clock.clearTimeout(timer), watcher.fail(signal.reason)));
      return Promise.resolve(watcher);
    });
    await pass(world.clock, 310_000); // the watch's timeout
    assert.equal(world.count("list"), 1);
    assert.match(world.reflector.status().streamPause?.message ?? "", /timeout/);
  });

  it("are tried once more after an hour, after two and so on, and have a single chance", async () => {
    await using world = newWorld(reset);
    await pass(world.clock, 10_000);
    const streams: number[] = [];
    for (let hour = 1; hour <= 12; hour++) {
      world.watches.at(-1)!.error({ code: 410, reason: "Expired" }); // everything has to be listed again
      await pass(world.clock, HOUR_MS, 60_000);
      streams.push(world.count("stream") - 3);
    }
    assert.deepEqual(streams, [0, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 3]);
    assert.equal(world.reflector.status().phase, "watching");
    assert.equal(world.log.of("warn").filter((line) => /listing instead/.test(line)).length, 1);
  });

  it("are taken again when one finishes after that", async () => {
    let isWell = false;
    await using world = newWorld((clock, signal) => {
      if (!isWell) return reset(clock, signal);
      const watcher = openWatch((one) => (one.add(at("c@11")), one.bookmark("12", END)));
      onAbort(signal, () => watcher.fail(signal.reason));
      return Promise.resolve(watcher);
    });
    await pass(world.clock, 10_000);
    isWell = true;
    await pass(world.clock, HOUR_MS, 60_000);
    world.watches.at(-1)!.error({ code: 410, reason: "Expired" });
    await pass(world.clock, 60_000);
    assert.deepEqual(world.store.listKeys(), ["c"]);
    assert.equal(world.reflector.status().streamPause, undefined);
  });
});

describe("Reflector, where streamed lists are always refused and lists succeed,", () => {
  const busy = (code: number, retryAfterMs?: number) =>
    new StatusError(newStatus(code, code === 429 ? "TooManyRequests" : "ServiceUnavailable", "busy"), {
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    });
  const tooLarge = new StatusError(
    newStatus(504, "Timeout", "Too large resource version: 5, current: 4", {
      causes: [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }],
      retryAfterSeconds: 1,
    }),
  );
  const refusals: readonly (readonly [string, Error])[] = [
    ["429", busy(429, 1_000)],
    ["429 without a Retry-After", busy(429)],
    ["500 with a Retry-After", busy(500, 1_000)],
    ["503 with a Retry-After", busy(503, 1_000)],
    ["504 Too large resource version", tooLarge],
    ["410 Expired", new StatusError(newStatus(410, "Expired", "too old resource version"))],
    ["a refused connection", new NetworkError("ConnectionRefused", "connect ECONNREFUSED")],
  ];
  for (const [what, error] of refusals) {
    it(`by ${what} give way to a list within two minutes, which is said once`, async () => {
      await using world = newWorld(() => Promise.reject(error));
      await pass(world.clock, 59_000);
      assert.equal(world.count("list"), 0);
      await pass(world.clock, 61_000);
      assert.deepEqual(world.store.listKeys(), ["a", "b"]);
      const streams = world.count("stream");
      await pass(world.clock, DAY_MS, 60_000);
      assert.equal(world.count("stream"), streams);
      const { streamPause } = world.reflector.status();
      assert.equal(streamPause?.cause, "refused");
      assert.equal(
        world.log.of("warn").filter((line) => /listing instead for the next 1 h: /.test(line)).length,
        1,
      );
    });
  }

  it("are listed for no sooner than a Retry-After allows, and are tried for a minute again an hour later", async () => {
    const error = busy(503, 25_000);
    await using world = newWorld(() => Promise.reject(error));
    const times: number[] = [];
    for (let second = 0; second < 120; second++) {
      const before = world.requests.length;
      await pass(world.clock, 1_000);
      for (let i = before; i < world.requests.length; i++) times.push(second);
    }
    assert.deepEqual(world.requests.slice(-2), ["list", "watch"]);
    for (let i = 2; i < times.length - 1; i++) assert.ok(times[i] - times[i - 1] >= 25, times.join());
    const streams = world.count("stream");
    world.watches.at(-1)!.error({ code: 410, reason: "Expired" });
    await pass(world.clock, HOUR_MS, 60_000);
    assert.equal(world.count("stream"), streams);
    world.watches.at(-1)!.error({ code: 410, reason: "Expired" });
    await pass(world.clock, 180_000);
    assert.ok(world.count("stream") > streams);
    assert.equal(world.count("list"), 3);
    assert.equal(world.log.of("warn").filter((line) => /listing instead/.test(line)).length, 1);
  });
});

describe("Reflector, where streamed lists do not end for another reason,", () => {
  it("are not given up where the server is away: its refusals say nothing about them", async () => {
    let isAway = true;
    const refused = () => Promise.reject(new NetworkError("ConnectionRefused", "connection refused"));
    await using world = newWorld(
      (_, signal) => {
        if (isAway) return refused();
        const watcher = openWatch((one) => (one.add(at("c@11")), one.bookmark("12", END)));
        onAbort(signal, () => watcher.fail(signal.reason));
        return Promise.resolve(watcher);
      },
      {},
      () => isAway ? refused() : undefined,
    );
    await pass(world.clock, HOUR_MS, 10_000);
    assert.ok(world.count("list") <= 60, `${world.count("list")} lists in an hour`);
    assert.ok(world.count("stream") > world.count("list"));
    assert.equal(world.reflector.status().streamPause, undefined);
    isAway = false;
    await pass(world.clock, 60_000);
    assert.deepEqual(world.store.listKeys(), ["c"]);
    assert.equal(world.reflector.status().streamPause, undefined);
  });

  it("take minutes where the cluster is large and each object is a new one", async () => {
    await using world = newWorld((clock, signal) => {
      const watcher = openWatch();
      let count = 0;
      const next = () => {
        watcher.add(at(`pod-${++count}@${count}`));
        if (count === 50) watcher.bookmark("1000", END);
        else timer = clock.setTimeout(next, 5_000);
      };
      let timer = clock.setTimeout(next, 5_000);
      onAbort(signal, () => (clock.clearTimeout(timer), watcher.fail(signal.reason)));
      return Promise.resolve(watcher);
    });
    await pass(world.clock, 260_000);
    assert.deepEqual(world.requests, ["stream"]);
    assert.equal(world.store.listKeys().length, 50);
  });
});
