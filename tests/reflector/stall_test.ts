import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { NetworkError } from "@listwatch/cache";
import { FakeClock, type FakeWatcher } from "@listwatch/cache/testing";
import { Watchdog } from "../../src/reflector/open_watch.ts";
import { at, newRun, openWatch, page } from "./scripted_source.ts";

const HOUR_MS = 3_600_000;
const STOOD_STILL =
  /^warn: pods: the program was suspended for \d+ s: the watch is opened again from where it was$/;

/** A reflector that watches from version 10, and whose next watch is scripted. */
async function watching(): Promise<ReturnType<typeof newRun> & { first: ReturnType<typeof openWatch> }> {
  const first = openWatch();
  const run = newRun([{ list: page("a@1", "10") }, { watch: first }, { watch: openWatch() }]);
  await run.start();
  await run.clock.advance(20_000);
  return Object.assign(run, { first });
}

describe("Reflector, in a program that was suspended,", () => {
  const stalls: Record<string, (clock: FakeClock) => Promise<void>> = {
    "while the monotonic clock continued": (clock) => clock.jump(153_000),
    "while the monotonic clock stopped, too": async (clock) => {
      clock.setWallClock(clock.now() + 8 * HOUR_MS);
      await clock.advance(15_000);
    },
  };
  for (const [how, stall] of Object.entries(stalls)) {
    it(`${how} opens its watch again at once from where it was, with one line and no list`, async () => {
      const run = await watching();
      await stall(run.clock);
      assert.deepEqual(run.source.requests.slice(1), ['watch "10"', 'watch "10"']);
      assert.equal(run.log.of("warn").length, 1);
      assert.match(run.log.of("warn")[0], STOOD_STILL);
      assert.deepEqual(run.errors, []);
      const { phase, attempt, outage } = run.reflector.status();
      assert.deepEqual([phase, attempt, outage], ["watching", 0, undefined]);
      await run.stop();
      assert.equal(run.clock.pendingTimers, 0);
    });
  }

  it("does not take what its old connection held back for news of the server", async () => {
    const run = await watching();
    run.source.then({ watch: "hang" });
    run.first.add(at("old@11"));
    run.clock.setWallClock(run.clock.now() + HOUR_MS);
    await run.clock.advance(0);
    assert.deepEqual(run.store.operations, ["replace 10: a@1"], "dropped: the next watch brings it again");
    assert.deepEqual(run.source.requests.slice(1), ['watch "10"', 'watch "10"']);
    await run.stop();
  });

  for (const [how, stall] of Object.entries(stalls)) {
    it(`${how} and the server opened a watch, drops what that held back, and opens it again`, async () => {
      const first = openWatch((watcher) => watcher.bookmark("13"));
      const [slow, answer] = [
        openWatch((watcher) => watcher.add(at("old@14"))),
        Promise.withResolvers<FakeWatcher>(),
      ];
      const run = newRun([{ list: page("a@1", "10") }, { watch: first }, { watch: answer.promise }]);
      await run.start();
      await run.clock.advance(20_000);
      first.stop();
      run.source.then({ watch: openWatch() });
      await run.clock.advance(5_000);
      assert.deepEqual(run.source.requests.slice(2), ['watch "13"']);
      await stall(run.clock);
      answer.resolve(slow);
      await run.clock.advance(0);
      assert.deepEqual(run.source.requests.slice(2), ['watch "13"', 'watch "13"'], "no list");
      assert.match(run.log.of("warn").join(), STOOD_STILL);
      assert.ok(!run.store.operations.includes("add old@14"));
      await run.stop();
    });
  }

  it("gives requests under way their time again, instead of failing all of them at once", async () => {
    for (const answer of [{ list: "hang" }, { watch: "hang" }] as const) {
      const isList = "list" in answer;
      await using run = newRun([answer, { list: page("a@1", "10") }, { watch: openWatch() }], {
        useWatchList: !isList,
      });
      await run.start();
      await run.clock.advance(1_000);
      await run.clock.jump(HOUR_MS);
      assert.deepEqual([run.errors, run.log.of("warn")], [[], []]);
      await run.clock.advance(90_000);
      assert.ok(run.errors[0] instanceof NetworkError, "it is dead after all");
    }
  });

  it("keeps what a streamed list brings after it, as a list's items, and follows that stream", async () => {
    const answer = Promise.withResolvers<FakeWatcher>();
    await using run = newRun([{ watch: answer.promise }], { useWatchList: true });
    await run.start();
    await run.clock.jump(153_000);
    const stream = openWatch((watcher) => watcher.add(at("a@1")));
    answer.resolve(stream);
    await run.clock.advance(0);
    stream.bookmark("10", { "k8s.io/initial-events-end": "true" });
    stream.add(at("b@11"));
    await run.clock.advance(0);
    assert.deepEqual(run.store.operations, ["replace 10: a@1", "add b@11"]);
    assert.deepEqual([run.source.requests, run.log.of("warn")], [['stream ""'], []]);
  });

  it("is not taken for it where a server is slow to open a watch, and may be", async () => {
    const slow = Promise.withResolvers<FakeWatcher>();
    await using run = newRun([{ list: page("a@1", "10") }, { watch: slow.promise }], {
      openTimeoutMs: 120_000,
    });
    await run.start();
    await run.clock.advance(100_000);
    slow.resolve(openWatch((watcher) => watcher.add(at("b@11"))));
    await run.clock.advance(0);
    assert.deepEqual(run.store.operations, ["replace 10: a@1", "add b@11"]);
    assert.deepEqual([run.source.requests.length, run.log.of("warn")], [2, []]);
  });

  it("is no longer known after a short while: what holds a program up for seconds is other work", async () => {
    const run = await watching();
    await run.clock.jump(20_000);
    await run.clock.advance(15_000);
    assert.equal(run.source.requests.length, 2);
    await run.stop();
  });
});

describe("Reflector, where the wall clock is set back,", () => {
  it("disturbs no watch, and hides no dead peer", async () => {
    const run = await watching();
    run.first.bookmark("12");
    await run.clock.advance(0);
    run.clock.setWallClock(run.clock.now() - HOUR_MS);
    await run.clock.advance(80_000);
    assert.equal(run.source.requests.length, 2);
    assert.equal(run.reflector.status().lagMs, 80_000);
    await run.clock.advance(11_000);
    assert.deepEqual(run.source.requests.slice(2), ['watch "12"'], "the bookmarks stopped");
    await run.stop();
  });
});

describe("Watchdog that fires late", () => {
  it("starts again, as the program was suspended; one that fires in time does not", async () => {
    const clock = new FakeClock();
    let barks = 0;
    new Watchdog(clock, 10_000, () => barks++);
    await clock.jump(10_000 + 30_000);
    assert.equal(barks, 0);
    await clock.advance(9_999);
    assert.equal(barks, 0);
    await clock.advance(1);
    assert.equal(barks, 1);
    new Watchdog(clock, 10_000, () => barks++);
    await clock.jump(10_000 + 29_999);
    assert.equal(barks, 2);
  });
});
