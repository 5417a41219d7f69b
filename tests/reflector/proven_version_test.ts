import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { newStatus } from "@listwatch/cache/client";
import { RESUMING } from "../../src/reflector/resumption.ts";
import { momentOf } from "../../src/util/clock.ts";
import { newRun, openWatch, page } from "./scripted_source.ts";

const odd = {
  reason: "labels: expected a string",
  path: "metadata.labels",
  key: "a",
  resourceVersion: "120",
};

describe("Reflector.proven", () => {
  it("counts a quarantined change as received, until a list starts another history", async () => {
    const [before, after] = [openWatch(), openWatch()];
    const script = [{ list: page("a@90", "100") }, { watch: before }];
    await using run = newRun(script, {}, {});
    await run.start();
    before.send({ type: "QUARANTINED", quarantined: odd });
    await run.clock.advance(0);
    assert.equal(run.reflector.proven({ after: "120", through: "130", asked: momentOf(run.clock) }), true);
    assert.equal(run.reflector.status().resourceVersion, "130");
    // The server was restored from a backup.
    run.source.then({ list: page("a@30", "40") }, { watch: after });
    before.error(newStatus(410, "Expired", "too old resource version"));
    await run.clock.advance(60_000);
    assert.equal(run.reflector.status().resourceVersion, "40");
    assert.equal(run.reflector.proven({ after: "50", through: "60", asked: momentOf(run.clock) }), false);
    assert.equal(run.reflector.status().resourceVersion, "40");
  });

  it("by state leaves the watch where it is: its next bookmark is no loss, the next watch brings every event", async () => {
    const [before, after] = [openWatch(), openWatch()];
    await using run = newRun([{ list: page("a@90", "100") }, { watch: before }, { watch: after }], {}, {});
    await run.start();
    const loop = run.reflector;
    const asked = momentOf(run.clock);
    assert.equal(loop.proven({ after: "100", through: "130", byState: true, asked }), true);
    assert.equal(loop.status().resourceVersion, "130");
    before.send({ type: "BOOKMARK", object: { metadata: { resourceVersion: "110" } } });
    await run.clock.advance(0);
    // A proof that begins where another one by state has ended shows no more than that.
    assert.equal(loop.proven({ after: "130", through: "150", asked }), true);
    assert.equal(loop.proven({ after: "110", through: "140", asked }), true);
    assert.equal(loop.proven({ after: "160", through: "170", asked }), false);
    assert.deepEqual([loop.status().resourceVersion, loop.lastSyncResourceVersion()], ["150", "150"]);
    before.stop();
    await run.clock.advance(5_000);
    // Events of an object that was created and deleted in between may be on their way.
    assert.deepEqual(run.source.requests.slice(1), ['watch "100"', 'watch "110"']);
    run.source.then({ list: page("a@90", "160") }, { watch: openWatch() });
    after.error(newStatus(410, "Expired", "too old resource version"));
    await run.clock.advance(60_000);
    assert.deepEqual(run.source.requests.slice(3), ['list "150"', 'watch "160"']);
    assert.deepEqual(run.store.operations, [
      "replace 100: a@90",
      "bookmark 130",
      "bookmark 150",
      "replace 160: a@90",
    ]);
  });

  it("lists once more where the server is before what it had reached: it was restored from a backup", async () => {
    const [before, after] = [openWatch(), openWatch()];
    await using run = newRun([{ list: page("a@90", "100") }, { watch: before }], {}, {});
    await run.start();
    const asked = momentOf(run.clock);
    assert.equal(run.reflector.proven({ after: "100", through: "130", byState: true, asked }), true);
    // A proof of before the other one is no news.
    assert.equal(run.reflector.proven({ after: "100", through: "120", asked }), true);
    assert.equal(run.reflector.status().resourceVersion, "130");
    // The watch from 100 is at the present version of the other history, so no bookmark goes back.
    assert.equal(run.reflector.proven({ after: "130", through: "100", asked }), false);
    run.source.then({ list: page("b@95", "100") }, { watch: after });
    await run.clock.advance(60_000);
    assert.deepEqual(run.source.requests.slice(2), ['list "130"', 'watch "100"']);
    assert.equal(run.reflector.status().resourceVersion, "100");
  });

  it("lists once more where the watch has two bookmarks before what was proven: the server was restored, and is quiet", async () => {
    const [before, after] = [openWatch(), openWatch()];
    await using run = newRun([{ list: page("a@90", "100") }, { watch: before }], {}, {});
    await run.start();
    const asked = momentOf(run.clock);
    const bookmark = async (resourceVersion: string) => {
      before.send({ type: "BOOKMARK", object: { metadata: { resourceVersion } } });
      await run.clock.advance(60_000);
    };
    assert.equal(run.reflector.proven({ after: "100", through: "130", byState: true, asked }), true);
    // The answer of the proof may have passed this bookmark.
    await bookmark("110");
    await bookmark("130");
    assert.equal(run.reflector.proven({ after: "130", through: "150", byState: true, asked }), true);
    await bookmark("140");
    assert.deepEqual(run.source.requests.slice(2), []);
    run.source.then({ list: page("b@95", "140") }, { watch: after });
    await bookmark("140");
    assert.deepEqual(run.source.requests.slice(2), ['list "150"', 'watch "140"']);
    assert.equal(run.reflector.status().resourceVersion, "140");
  });

  it("moves nothing between two watches: a list that has started may have an earlier version", async () => {
    const watch = openWatch();
    await using run = newRun([{ list: page("a@90", "100") }, { watch }], {}, {});
    await run.start();
    watch.error(newStatus(410, "Expired", "too old resource version"));
    await run.clock.advance(0);
    assert.equal(run.reflector.status().phase, "backingOff");
    assert.equal(run.reflector.proven({ after: "100", through: "130", asked: momentOf(run.clock) }), false);
    assert.equal(run.reflector.status().resourceVersion, "100");
    assert.deepEqual(run.store.operations, ["replace 100: a@90"]);
  });
});

describe("Reflector.confirmed", () => {
  const restored = {
    items: [],
    resourceVersion: "10",
    savedAtMs: 0,
    needsList: false,
    clusterUid: undefined,
  };
  const snapshot = {
    resuming: RESUMING,
    load: () => Promise.resolve(restored),
    probe: () => Promise.resolve({ serverVersion: "10", isOtherCluster: false }),
  };

  it("is a contact; a silent watch from a version that the server may not have reached is followed by a list", async () => {
    for (const isComplete of [false, true]) {
      const script = [{ watch: openWatch() }, isComplete ? { watch: openWatch() } : { list: page("", "12") }];
      await using run = newRun(script, {}, { snapshot });
      await run.start();
      await run.clock.advance(5_000);
      assert.equal(run.reflector.status().lagMs, 5_000, "as old as the snapshot");
      run.reflector.confirmed({ isComplete });
      assert.equal(run.reflector.status().lagMs, 0);
      await run.clock.advance(2_000);
      run.reflector.confirmed({ isComplete });
      assert.equal(run.reflector.status().lagMs, 2_000, "it was confirmed already");
      await run.clock.advance(90_000);
      assert.equal(run.source.requests[1], isComplete ? 'watch "10"' : 'list "10"');
    }
  });

  it("is a contact as of when the last bytes of the watch came", async () => {
    await using run = newRun([{ watch: openWatch() }], {}, { snapshot });
    const { source } = run;
    const watch = source.watch.bind(source);
    let cameBytes: ((bytes: number) => void) | undefined;
    source.watch = (options, context) => {
      cameBytes = context.onBytes;
      return watch(options, context);
    };
    await run.start();
    cameBytes!(10);
    await run.clock.advance(3_000);
    run.reflector.confirmed({ isComplete: true });
    assert.equal(run.reflector.status().lagMs, 3_000);
  });
});

describe("Reflector.run with a snapshot", () => {
  const content = { items: [], resourceVersion: "10", savedAtMs: 0, needsList: false, clusterUid: undefined };

  it("shows the store which part of its version only a state has proven", async () => {
    const load = () => Promise.resolve({ ...content, resourceVersion: "20", watchedVersion: "10" });
    const probe = () => Promise.resolve({ serverVersion: "20", isOtherCluster: false });
    await using run = newRun([{ watch: openWatch() }], {}, { snapshot: { resuming: RESUMING, load, probe } });
    const bookmarks: unknown[] = [];
    run.store.bookmark = (...given: unknown[]) => void bookmarks.push(given);
    await run.start();
    assert.deepEqual([run.store.operations, bookmarks], [["replace 10:"], [["20", { byState: true }]]]);
    assert.deepEqual(run.source.requests, ['watch "10"']);
  });

  it("writes nothing of one that is loaded after it was stopped", async () => {
    const loading = Promise.withResolvers<typeof content>();
    const probe = () => Promise.reject(new Error("not expected"));
    const snapshot = { resuming: RESUMING, load: () => loading.promise, probe };
    await using run = newRun([], {}, { snapshot });
    await run.start();
    const stopped = run.stop();
    loading.resolve(content);
    await stopped;
    assert.deepEqual([run.store.operations, run.reflector.status().resourceVersion], [[], ""]);
  });

  it("takes the end of a request for the server's version by its own stop for no failure", async () => {
    const probe = (signal: AbortSignal) =>
      new Promise<never>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    const snapshot = { resuming: RESUMING, load: () => Promise.resolve(content), probe };
    await using run = newRun([], {}, { snapshot });
    await run.start();
    assert.equal(run.reflector.status().phase, "resuming");
    await run.stop();
    assert.deepEqual([run.reflector.status().lastError, run.log.lines], [undefined, []]);
  });
});
