import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { NetworkError, StatusError } from "@listwatch/cache";
import type { WatchErrorHandler } from "@listwatch/cache/reflector";
import { type Answer, at, newRun, openWatch, page, refusal, statuses } from "./scripted_source.ts";

const refused = new NetworkError("ConnectionRefused", "connect ECONNREFUSED 127.0.0.1:1");
const LOST =
  "warn: pods: lost the server: the server refused the connection (connect ECONNREFUSED 127.0.0.1:1); " +
  "next try in 0.8 s, and so on until it is back";

describe("Reflector, while its server cannot be reached,", () => {
  for (const useWatchList of [false, true]) {
    const name = useWatchList ? "a streamed list" : "a list";
    it(`by ${name} is one warning at once and one when it is back; the handler receives each try`, async () => {
      const failure: Answer = useWatchList ? { watch: refused } : { list: refused };
      const received: Error[] = [];
      const watchErrorHandler: WatchErrorHandler = (error) => received.push(error);
      await using run = newRun(Array(6).fill(failure), { useWatchList, watchErrorHandler });
      await run.start();
      assert.deepEqual(run.log.of("warn"), [LOST]);
      assert.equal(received.length, 1);
      await run.clock.advance(800 + 1_600 + 3_200 + 6_400 + 12_800 - 1);
      assert.equal(received.length, 5);
      await run.clock.advance(1);
      assert.deepEqual(received, Array(6).fill(refused));
      assert.deepEqual(run.log.of("warn"), [LOST]);
      const { outage } = run.reflector.status();
      assert.deepEqual(outage, { sinceTimeMs: 0, failedTries: 6 });
      assert.deepEqual(run.reflector.failure(), { error: refused, failedTries: 6 });
      const stream = openWatch((watcher) => watcher.bookmark("10", { "k8s.io/initial-events-end": "true" }));
      if (useWatchList) run.source.then({ watch: stream });
      else run.source.then({ list: page("", "10") }, { watch: openWatch() });
      await run.clock.advance(15_000);
      assert.deepEqual(run.log.of("warn"), [
        LOST,
        "warn: pods: the server is back after 40 s and 6 failed tries",
      ]);
      assert.deepEqual([run.reflector.status().outage, run.reflector.failure()], [undefined, undefined]);
    });
  }

  for (const useWatchList of [false, true]) {
    const [first, name]: [Answer[], string] = useWatchList
      ? [[], "a streamed list"]
      : [[{ list: page("", "10") }], "a watch"];
    it(`but asks for patience with ${name} is reported where it does so for half a minute`, async () => {
      const tooMany = refusal("tooMany");
      await using run = newRun([...first, ...Array(7).fill({ watch: tooMany })], { useWatchList });
      await run.start();
      await run.clock.advance(800 + 1_600 + 3_200 + 6_400 + 12_800);
      assert.deepEqual(run.errors, []); // at 0, 0.8, 2.4, 5.6, 12 and 24.8 s
      await run.clock.advance(25_600);
      assert.deepEqual(run.errors, [tooMany]);
    });
  }

  it("but names a time for a streamed list is reported with each try as well", async () => {
    const busy = new StatusError(statuses.internal, { retryAfterMs: 1_000 });
    await using run = newRun(Array(4).fill({ watch: busy }), { useWatchList: true });
    await run.start();
    assert.deepEqual(run.errors, [busy]);
    await run.clock.advance(1_000 + 1_600 + 3_200);
    assert.deepEqual(run.errors, Array(4).fill(busy));
  });

  it("in the middle of a watch is reported the same way, and again the next time", async () => {
    const first = openWatch();
    const second = openWatch();
    await using run = newRun([
      { list: page("", "10") },
      { watch: first },
      { watch: refused },
      { watch: refused },
      { watch: second },
      { watch: refused },
      { watch: openWatch() },
    ], { watchErrorHandler: undefined });
    await run.start();
    await run.clock.advance(10_000);
    first.fail(new NetworkError("ConnectionReset", "reset"));
    await run.clock.advance(800 + 1_600);
    await run.clock.advance(10_000);
    second.fail(new NetworkError("ConnectionReset", "reset"));
    await run.clock.advance(20_000);
    assert.deepEqual(run.log.of("warn").map((line) => line.replace("warn: pods: ", "").split(":")[0]), [
      "lost the server",
      "the server is back after 2.4 s and 2 failed tries",
      "lost the server",
      "the server is back after 3.2 s and 1 failed try",
    ]);
    assert.equal(run.source.left, 0);
  });

  it("and then refuses is two warnings, however often it changes", async () => {
    const forbidden: Answer = { list: refusal("forbidden") };
    await using run = newRun([
      { list: refused },
      forbidden,
      { list: refused },
      forbidden,
      { list: page("", "10") },
      { watch: openWatch() },
    ]);
    await run.start();
    await run.clock.advance(60_000);
    assert.deepEqual(run.log.of("warn").map((line) => line.split(":")[2].trim().replace(/ after.*/, "")), [
      "lost the server",
      "the server refuses",
      "the server is back",
    ]);
  });

  it("is not back with a list, while it refuses to be watched", async () => {
    const cycle: Answer[] = [{ list: page("", "10") }, { watch: refusal("forbidden") }];
    await using run = newRun([...cycle, ...cycle, ...cycle, { list: "hang" }]);
    await run.start();
    await run.clock.advance(60_000);
    assert.equal(run.errors.length, 3);
    assert.equal(run.log.of("warn").length, 1);
    assert.match(run.log.of("warn")[0], /the server refuses: the server answered 403 Forbidden/);
  });

  it("is not one that says that a version expired: that is in good order", async () => {
    const watcher = openWatch();
    await using run = newRun([
      { list: page("a@1", "10") },
      { watch: refusal("expired") },
      { list: page("a@1", "20") },
      { watch: watcher },
    ]);
    await run.start();
    await run.clock.advance(10_000);
    watcher.add(at("b@21"));
    await run.clock.advance(0);
    assert.deepEqual(run.log.of("warn"), []);
    assert.equal(run.reflector.status().outage, undefined);
  });

  it("is not one that says so again and again, and is watched in between", async () => {
    const cycle = () => {
      const watcher = openWatch();
      return [{ list: page("a@1", "10") }, { watch: watcher }, { watch: refusal("expired") }] as const;
    };
    const cycles = Array.from({ length: 6 }, cycle);
    await using run = newRun([...cycles.flat(), { list: page("a@1", "10") }, { watch: openWatch() }]);
    await run.start();
    for (const [, { watch }] of cycles) {
      // deno-lint-ignore no-await-in-loop -- one after the other
      await run.clock.advance(20_000);
      watch.stop();
      // deno-lint-ignore no-await-in-loop -- one after the other
      await run.clock.until(() => run.reflector.status().attempt > 0);
      // deno-lint-ignore no-await-in-loop -- one after the other
      await run.clock.until(() => run.reflector.status().phase === "watching", 120_000);
    }
    assert.deepEqual(run.log.of("warn"), []);
  });

  it("is one that says so of every list, also of the most recent data", async () => {
    await using run = newRun([...Array(20).fill({ list: refusal("expired") }), { list: page("", "10") }, {
      watch: openWatch(),
    }]);
    await run.start();
    await run.clock.advance(60_000);
    assert.equal(run.log.of("warn").length, 1);
    assert.match(run.log.of("warn")[0], /the server refuses: the server answered 410 Expired/);
    assert.ok(run.reflector.status().outage!.failedTries > 2);
    await run.clock.until(() => run.reflector.status().outage === undefined, 240_000);
    assert.match(run.log.of("warn")[1], /the server is back/);
  });
});
