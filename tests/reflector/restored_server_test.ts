import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { StatusError } from "@listwatch/cache";
import { newStatus } from "@listwatch/cache/client";
import type { FakeWatcher } from "@listwatch/cache/testing";
import { type Answer, at, newRun, openWatch, page, type Run } from "./scripted_source.ts";

const MINUTE_MS = 60_000;
const END = { "k8s.io/initial-events-end": "true" };
const tooLarge = new StatusError(newStatus(504, "Timeout", "Too large resource version: 102, current: 40", {
  causes: [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }],
  retryAfterSeconds: 1,
}));

/** Bookmarks once a minute, then the end, as a server that is restored from a backup ends its watches. */
async function bookmarkThenEnd(run: Run, watcher: FakeWatcher, bookmarks: number, from = 100): Promise<void> {
  for (let i = 1; i <= bookmarks; i++) {
    await run.clock.advance(MINUTE_MS);
    watcher.bookmark(String(from + i));
  }
  await run.clock.advance(30_000);
  watcher.stop();
  await run.clock.advance(0);
}

/** The repair: the version is too large for the server, so the most recent list is requested. */
const HEALING: readonly Answer[] = [{ list: tooLarge }, { list: page("a@3", "40") }];

describe("Reflector, where a restored server sends nothing up to its old version,", () => {
  it("is listed once a watch after bookmarks brought none", async () => {
    const before = openWatch();
    await using run = newRun([{ list: page("a@3 b@90", "100") }, { watch: before }, { watch: openWatch() }]);
    await run.start();
    await bookmarkThenEnd(run, before, 2);
    assert.equal(run.source.requests.at(-1), 'watch "102"');
    const after = openWatch();
    run.source.then(...HEALING, { watch: after });
    await run.clock.advance(90_000);
    assert.deepEqual(run.source.requests.slice(3), ['list "102"', 'list ""', 'watch "40"']);
    assert.equal(run.store.operations.at(-1), "replace 40: a@3");
    assert.equal(run.reflector.status().resourceVersion, "40");
    assert.equal(
      run.log.of("warn").filter((line) => line.includes("bookmarks do not come any more")).length,
      1,
    );
    after.bookmark("41");
    await run.clock.advance(0);
    assert.equal(run.reflector.status().resourceVersion, "41");
  });

  it("is listed once two of them brought none, where only one bookmark had come", async () => {
    const before = openWatch();
    await using run = newRun([
      { list: page("a@3 b@90", "100") },
      { watch: before },
      { watch: openWatch() },
      { watch: openWatch() },
    ]);
    await run.start();
    await bookmarkThenEnd(run, before, 1);
    await run.clock.advance(90_000);
    assert.deepEqual(run.source.requests.slice(2), ['watch "101"', 'watch "101"']);
    run.source.then(...HEALING, { watch: openWatch() });
    await run.clock.advance(305_000);
    assert.deepEqual(run.source.requests.slice(4), ['list "101"', 'list ""', 'watch "40"']);
  });
});

describe("Reflector, where bookmarks of a restored server have older versions,", () => {
  for (const neverGoesBack of [false, true]) {
    const how = neverGoesBack ? "are skipped if they are older" : "are applied";
    it(`is listed once, after a minute, where events ${how}`, async () => {
      const watch = openWatch();
      await using run = newRun([{ list: page("a@3 b@90", "100") }, { watch }], {}, { neverGoesBack });
      await run.start();
      watch.bookmark("102");
      await run.clock.advance(MINUTE_MS);
      watch.bookmark("41");
      await run.clock.advance(30_000);
      watch.bookmark("42");
      run.source.then({ list: page("a@3", "43") }, { watch: openWatch((one) => one.bookmark("44")) });
      await run.clock.advance(30_000);
      assert.deepEqual(run.source.requests.slice(2), [
        `list "${neverGoesBack ? 102 : 42}"`,
        'watch "43"',
      ]);
      await run.clock.advance(80_000);
      assert.equal(run.source.requests.length, 4);
      assert.equal(run.reflector.status().resourceVersion, "44");
    });
  }

  it("is listed where an event has led back before them", async () => {
    const watch = openWatch();
    await using run = newRun([{ list: page("a@3 b@90", "100") }, { watch }]);
    await run.start();
    watch.modify(at("a@40"));
    watch.bookmark("41");
    run.source.then({ list: page("a@40", "43") }, { watch: openWatch() });
    await run.clock.advance(MINUTE_MS);
    assert.equal(run.source.requests.at(-1), 'watch "43"');
  });
});

describe("Reflector, where a server stops sending bookmarks,", () => {
  it("is listed once, and again only after bookmarks have come again", async () => {
    const [first, second] = [openWatch(), openWatch()];
    const silent = (count: number) => Array.from({ length: count }, () => ({ watch: openWatch() }));
    await using run = newRun([{ list: page("a@3", "100") }, { watch: first }, ...silent(1)]);
    await run.start();
    await bookmarkThenEnd(run, first, 3);
    run.source.then({ list: page("a@3", "103") }, ...silent(11), { watch: second }, ...silent(1));
    const lists = () => run.source.requests.filter((request) => request.startsWith("list")).length;
    while (run.source.left > 1) await run.clock.advance(MINUTE_MS);
    assert.equal(lists(), 2, "in an hour of silence");
    await bookmarkThenEnd(run, second, 3, 103);
    run.source.then({ list: page("a@3", "107") }, ...silent(1));
    await run.clock.advance(90_000);
    assert.equal(lists(), 3);
    assert.deepEqual(run.source.problems, []);
  });

  it("is listed once where it streams lists, whose end bookmark is one", async () => {
    const streamed = () => openWatch((watch) => watch.bookmark("100", END));
    await using run = newRun([{ watch: streamed() }, { watch: openWatch() }, { watch: streamed() }], {
      useWatchList: true,
    });
    await run.start();
    run.source.then(...Array.from({ length: 20 }, () => ({ watch: openWatch() })));
    await run.clock.advance(60 * MINUTE_MS);
    assert.deepEqual(run.source.requests.slice(0, 4), [
      'stream ""',
      'watch "100"',
      'stream "100"',
      'watch "100"',
    ]);
    assert.equal(run.source.requests.filter((request) => request.startsWith("stream")).length, 2);
  });

  it("is listed once where its watches are too short for a bookmark from then on", async () => {
    const first = openWatch();
    await using run = newRun([{ list: page("a@3", "100") }, { watch: first }]);
    await run.start();
    const short = Array.from({ length: 20 }, () => openWatch());
    const [before, after] = [short.slice(0, 2), short.slice(2)].map((some) =>
      some.map((watch) => ({ watch }))
    );
    run.source.then(...before, { list: page("a@3", "103") }, ...after);
    await bookmarkThenEnd(run, first, 3);
    for (const watch of short.slice(0, -1)) {
      await run.clock.advance(50_000);
      watch.stop();
      await run.clock.advance(0);
    }
    assert.deepEqual(run.source.problems, []);
    assert.equal(run.source.left, 0);
  });
});
