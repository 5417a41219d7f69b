import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type KubernetesObject, NetworkError, silentLogger, type StatusError } from "@listwatch/cache";
import { type ListerWatcher, Reflector } from "@listwatch/cache/reflector";
import { FakeClock, type FakeWatcher } from "@listwatch/cache/testing";
import { AGE_ANNOTATION } from "../../src/meta/list_watch.ts";
import {
  type Answer,
  at,
  newRun,
  openWatch,
  page,
  refusal,
  statuses,
  StoreRecorder,
} from "./scripted_source.ts";

const END = { "k8s.io/initial-events-end": "true" };

/** A stream of two pods and the end bookmark at 10. */
function fullStream(more: (watcher: FakeWatcher) => void = () => {}): FakeWatcher {
  return openWatch((watcher) => {
    watcher.add(at("a@1"));
    watcher.add(at("b@2"));
    watcher.bookmark("10", END);
    more(watcher);
  });
}

function newStreaming(
  script: readonly Answer[],
  options: Parameters<typeof newRun>[1] = {},
  wiring: Parameters<typeof newRun>[2] = undefined,
) {
  return newRun(script, { useWatchList: true, ...options }, wiring);
}

describe("Reflector: a streamed list", () => {
  it("takes one request, and continues as the watch on the same connection", async () => {
    const watcher = fullStream();
    await using run = newStreaming([{ watch: watcher }]);
    await run.start();
    assert.deepEqual(run.source.options, [{
      resourceVersion: "",
      allowWatchBookmarks: true,
      sendInitialEvents: true,
      resourceVersionMatch: "NotOlderThan",
      timeoutSeconds: 300,
    }]);
    assert.deepEqual(run.store.take(), ["replace 10: a@1 b@2"]);
    watcher.add(at("c@11"));
    watcher.delete(at("a@12"));
    await run.clock.advance(0);
    assert.deepEqual(run.store.take(), ["add c@11", "delete a@12"]);
    assert.equal(run.reflector.lastSyncResourceVersion(), "12");
    assert.equal(run.source.requests.length, 1);
  });

  it("is as old as its cache says, and no older or younger: a list of a server is of now", async () => {
    for (const age of [undefined, 60_000]) {
      const annotations = { ...END, ...(age && { [AGE_ANNOTATION]: `${age}` }) };
      const stream = openWatch((watcher) => watcher.bookmark("10", annotations));
      await using run = newStreaming([{ watch: stream }]);
      await run.clock.advance(100_000);
      await run.start();
      const { lagMs, lastContactTimeMs } = run.reflector.status();
      assert.deepEqual([lagMs, lastContactTimeMs], [age ?? 0, 100_000 - (age ?? 0)]);
      assert.equal(run.reflector.consistentMs(), age === undefined ? 100_000 : undefined);
      await run.clock.advance(5_000);
      stream.bookmark("11", age ? { [AGE_ANNOTATION]: `${age + 5_000}` } : {});
      await run.clock.advance(0);
      assert.equal(run.reflector.status().lagMs, age === undefined ? 0 : age + 5_000, "it is away still");
    }
  });

  it("that is empty is a list without items", async () => {
    await using run = newStreaming([{ watch: openWatch((watcher) => watcher.bookmark("10", END)) }]);
    await run.start();
    assert.deepEqual(run.store.operations, ["replace 10:"]);
  });

  it("takes what comes in one batch with the end bookmark for events of the watch", async () => {
    await using run = newStreaming([{ watch: fullStream((watcher) => watcher.modify(at("a@11"))) }]);
    await run.start();
    assert.deepEqual(run.store.operations, ["replace 10: a@1 b@2", "update a@11"]);
  });

  it("heeds changes and deletes before its end", async () => {
    const watcher = openWatch((watcher) => {
      watcher.add(at("a@1"));
      watcher.add(at("b@2"));
      watcher.modify(at("a@3"));
      watcher.delete(at("b@4"));
      watcher.bookmark("10", END);
    });
    await using run = newStreaming([{ watch: watcher }]);
    await run.start();
    assert.deepEqual(run.store.operations, ["replace 10: a@3"]);
  });

  it("gives nothing to the store before its end, and moves no version", async () => {
    const watcher = openWatch((watcher) => {
      watcher.add(at("a@1"));
      watcher.bookmark("5");
      watcher.bookmark("6", { "k8s.io/initial-events-end": "false" });
    });
    const run = newStreaming([{ watch: watcher }]);
    await run.start();
    assert.equal(run.reflector.status().phase, "streaming");
    assert.deepEqual(run.reflector.status().progress, { items: 1 });
    await run.stop();
    assert.deepEqual(run.store.operations, []);
    assert.equal(run.reflector.lastSyncResourceVersion(), "");
  });

  it("quarantines what is of another kind or broken, and continues", async () => {
    const watcher = fullStream();
    const first = openWatch((one) => {
      one.add({ ...at("other@1"), kind: "Service" });
      one.send({
        type: "QUARANTINED",
        quarantined: { reason: "labels: expected a string", path: "x", key: "bad" },
      });
      one.add(at("a@1"));
      one.send({
        type: "BOOKMARK",
        object: { ...at("@10"), metadata: { resourceVersion: "10", annotations: END } },
      });
    });
    await using run = newStreaming([{ watch: first }, { watch: watcher }], {
      expectedKind: { group: "", version: "v1", kind: "Pod" },
    });
    await run.start();
    assert.deepEqual(run.store.operations, ["replace 10: a@1"]);
    assert.deepEqual(run.quarantined.map(({ reason }) => reason), [
      "expected v1 Pod, got v1 Service",
      "labels: expected a string",
    ]);
  });

  describe("of which objects are quarantined", () => {
    const refused = (eventType: string, key: string) => ({
      type: "QUARANTINED" as const,
      quarantined: { reason: "bad", path: "object", key, eventType },
    });
    const known = { getByKey: (key: string) => at(`${key}@0`) };

    it("has the state that is known of each, once, unless it was corrected or deleted later", async () => {
      const watcher = openWatch((one) => {
        one.send(refused("ADDED", "kept"));
        one.send(refused("MODIFIED", "kept"));
        one.send(refused("ADDED", "corrected"));
        one.modify(at("corrected@4"));
        one.send(refused("ADDED", "deleted"));
        one.delete(at("deleted@5"));
        one.add(at("deleted@6"));
        one.send(refused("DELETED", "deleted"));
        one.send(refused("ADDED", "never"));
        one.send(refused("DELETED", "never"));
        one.add(at("spoilt@7"));
        one.send(refused("MODIFIED", "spoilt"));
        one.bookmark("10", END);
      });
      await using run = newStreaming([{ watch: watcher }], {}, { knownObjects: known });
      await run.start();
      assert.deepEqual(run.store.operations, ["replace 10: corrected@4 spoilt@7 kept@0"]);
      assert.equal(run.quarantined.length, 8);
    });

    it("is as large as its keys, valid or not: each that is new is on the way to its end", async () => {
      const watcher = openWatch();
      await using run = newStreaming([{ watch: watcher }], {}, {
        knownObjects: { getByKey: () => undefined },
      });
      await run.start();
      for (let i = 0; i < 20; i++) {
        await run.clock.advance(9_000);
        watcher.send(refused("ADDED", `bad-${i}`));
      }
      watcher.bookmark("10", END);
      await run.clock.advance(0);
      assert.deepEqual(run.store.operations, ["replace 10:"]);
      assert.deepEqual(run.source.requests, ['stream ""']);
    });

    const noProgress: Record<string, (watcher: FakeWatcher) => void> = {
      "a key that is accepted after it was quarantined": (watcher) => watcher.add(at("bad@2")),
      "a key that is quarantined after it was accepted": (watcher) => watcher.send(refused("ADDED", "a")),
      "a new key after a change": (watcher) => {
        watcher.send(refused("MODIFIED", "a"));
        watcher.add(at("b@3"));
      },
    };
    for (const [what, send] of Object.entries(noProgress)) {
      it(`comes no nearer to its end by ${what}`, async () => {
        const watcher = openWatch();
        await using run = newStreaming(
          [{ watch: watcher }, { list: page("a@1", "10") }, {
            watch: openWatch(),
          }],
          {},
          { knownObjects: { getByKey: () => undefined } },
        );
        await run.start();
        watcher.add(at("a@1"));
        watcher.send(refused("ADDED", "bad"));
        for (let passedMs = 5_000; passedMs <= 60_000; passedMs += 5_000) {
          await run.clock.advance(5_000);
          if (passedMs === 50_000) send(watcher);
          else watcher.bookmark("9");
        }
        assert.deepEqual(run.source.requests, ['stream ""', 'list "0" limit 500', 'watch "10"']);
      });
    }
  });

  it("gives its objects to the store in the form in which that holds them", async () => {
    await using run = newStreaming([{ watch: fullStream() }], {}, { intake: () => at("held@1") });
    await run.start();
    assert.deepEqual(run.store.operations, ["replace 10: held@1 held@1"]);
  });

  it("is requested again after a delay when it is closed before its end; what it brought is dropped", async () => {
    const watcher = openWatch((one) => one.add(at("deleted@1")));
    await using run = newStreaming([{ watch: watcher }, { watch: fullStream() }]);
    await run.start();
    watcher.stop();
    await run.clock.advance(799);
    assert.deepEqual(run.source.requests, ['stream ""']);
    await run.clock.advance(1);
    assert.deepEqual(run.source.requests, ['stream ""', 'stream ""']);
    assert.deepEqual(run.store.operations, ["replace 10: a@1 b@2"]);
    assert.deepEqual(run.errors, []);
  });

  it("is requested again after a delay when it breaks off", async () => {
    const watcher = openWatch((one) => one.add(at("deleted@1")));
    await using run = newStreaming([{ watch: watcher }, { watch: fullStream() }]);
    await run.start();
    watcher.fail(new NetworkError("UnexpectedEOF", "cut off"));
    await run.clock.advance(800);
    assert.deepEqual(run.source.requests, ['stream ""', 'stream ""']);
    assert.deepEqual([run.errors, run.log.of("warn")], [[], []], "it was answered: the server is not away");
    assert.equal(run.reflector.status().lastError?.message, "cut off");
  });

  it("is requested again, too, when it is closed after seconds without anything", async () => {
    const watcher = openWatch();
    await using run = newStreaming([{ watch: watcher }, { watch: fullStream() }]);
    await run.start();
    await run.clock.advance(1_000);
    watcher.stop();
    await run.clock.advance(800);
    assert.deepEqual(run.source.requests, ['stream ""', 'stream ""']);
  });

  it("gives way to a list when it is closed at once without anything", async () => {
    const watcher = openWatch((one) => one.stop());
    await using run = newStreaming([{ watch: watcher }, { list: page("a@1", "10") }, { watch: openWatch() }]);
    await run.start();
    assert.deepEqual(run.source.requests, ['stream ""', 'list "0" limit 500', 'watch "10"']);
  });

  it("is requested again after delays when the server is away or asks for patience", async () => {
    const refused = new NetworkError("ConnectionRefused", "connection refused");
    await using run = newStreaming([
      { watch: refusal("tooMany") },
      { watch: refused },
      { watch: openWatch((watcher) => watcher.error(statuses.tooMany)) },
      { watch: fullStream() },
    ]);
    await run.start();
    await run.clock.advance(800 + 1_600 + 3_200);
    assert.deepEqual(run.source.requests, Array(4).fill('stream ""'));
    assert.deepEqual(run.store.operations, ["replace 10: a@1 b@2"]);
    assert.deepEqual(run.errors, [refused]);
  });

  it("gives way to a list for this time when the server refuses or fails it, and nothing is reported", async () => {
    const fails = [
      refusal("invalid"),
      new Error("it broke"),
      openWatch((watcher) => watcher.error(statuses.invalid)),
    ];
    for (const watch of fails) {
      await using run = newStreaming([
        { watch },
        { list: page("a@1", "10") },
        { watch: openWatch((watcher) => watcher.error(statuses.expired)) },
        { watch: fullStream() },
      ]);
      await run.start();
      assert.deepEqual(run.source.requests, ['stream ""', 'list "0" limit 500', 'watch "10"']);
      assert.deepEqual(run.errors, []);
      await run.clock.advance(800);
      assert.deepEqual(run.source.requests.slice(3), ['stream "10"']);
    }
  });

  it("asks for the most recent data at once when its version expired, and later when that fails, too", async () => {
    await using run = newStreaming([
      { watch: fullStream((watcher) => watcher.error(statuses.expired)) },
      { watch: refusal("expired") },
      { watch: refusal("expired") },
      { watch: fullStream() },
    ]);
    await run.start();
    assert.deepEqual(run.source.requests, ['stream ""']);
    await run.clock.advance(800);
    assert.deepEqual(run.source.requests, ['stream ""', 'stream "10"', 'stream ""']);
    assert.equal(run.reflector.isLastSyncResourceVersionUnavailable(), true);
    await run.clock.advance(1_600);
    assert.deepEqual(run.source.requests.slice(3), ['stream ""']);
    assert.equal(run.reflector.isLastSyncResourceVersionUnavailable(), false);
  });

  it("whose watch drops afterwards is followed by a plain watch from the last event", async () => {
    const watcher = fullStream((one) => one.add(at("c@11")));
    await using run = newStreaming([{ watch: watcher }, { watch: openWatch() }]);
    await run.start();
    await run.clock.advance(5_000);
    watcher.stop();
    await run.clock.advance(0);
    assert.deepEqual(run.source.requests, ['stream ""', 'watch "11"']);
  });

  it("keeps the store as it is when the plain watch after it is refused with 410, and reports that", async () => {
    const watcher = fullStream((one) => one.add(at("c@11")));
    await using run = newStreaming([{ watch: watcher }, { watch: refusal("expired") }, {
      watch: fullStream(),
    }]);
    await run.start();
    await run.clock.advance(5_000);
    watcher.stop();
    await run.clock.advance(0);
    assert.equal(run.errors.length, 1);
    assert.deepEqual(run.store.operations, ["replace 10: a@1 b@2", "add c@11"]);
    await run.clock.advance(800);
    assert.deepEqual(run.source.requests.slice(2), ['stream "11"']);
  });

  it("that the store refuses gives way to a list", async () => {
    const watcher = fullStream();
    await using run = newStreaming([{ watch: watcher }, { list: page("a@1", "10") }, { watch: openWatch() }]);
    let failures = 1;
    run.store.check = () => {
      if (failures-- > 0) throw new Error("store broke");
    };
    await run.start();
    assert.deepEqual(run.source.requests, ['stream ""', 'list "0" limit 500', 'watch "10"']);
    assert.equal(run.source.closed[0], 1);
  });

  it("reports how many items it has so far", async () => {
    const watcher = openWatch();
    await using run = newStreaming([{ watch: watcher }]);
    const items: (number | undefined)[] = [];
    run.reflector.onStatus(({ phase, progress }) => {
      if (phase === "streaming") items.push(progress?.items);
    });
    await run.start();
    for (const name of ["a@1", "b@2"]) {
      watcher.add(at(name));
      await run.clock.advance(0);
    }
    assert.deepEqual(items, [0, 1, 2]);
  });

  it("reports that only when it has a hundredth more: a server sends object by object", async () => {
    const watcher = openWatch();
    await using run = newStreaming([{ watch: watcher }]);
    const items: number[] = [];
    run.reflector.onStatus(({ progress }) => progress && items.push(progress.items));
    await run.start();
    for (let i = 1; i <= 1_000; i++) {
      watcher.add(at(`a${i}@${i}`));
      await run.clock.advance(0);
    }
    assert.ok(items.length > 200 && items.length < 400, `${items.length}`);
    assert.ok(items.at(-1)! >= 990);
  });
});

describe("Reflector: a streamed list that stalls", () => {
  it("in silence gives way to a list, for an hour", async () => {
    const watcher = openWatch((one) => one.add(at("a@1")));
    const plain = openWatch();
    await using run = newStreaming([
      { watch: watcher },
      { list: page("a@1", "10") },
      { watch: plain },
      { list: page("a@1", "11") },
      { watch: openWatch() },
    ], { watchListSilenceMs: 5_000 });
    await run.start();
    await run.clock.advance(4_000);
    watcher.add(at("b@2"));
    await run.clock.advance(4_999);
    assert.deepEqual(run.source.requests, ['stream ""']);
    await run.clock.advance(1);
    assert.deepEqual(run.source.requests, ['stream ""', 'list "0" limit 500', 'watch "10"']);
    assert.equal(run.source.closed[0], 1);
    assert.match(run.log.of("warn")[0], /the streamed list stalled; listing instead/);
    plain.error(statuses.expired);
    await run.clock.advance(800);
    assert.deepEqual(run.source.requests.slice(3), ['list "10"', 'watch "11"']);
    assert.deepEqual(run.errors, []);
  });

  it("with nothing but bookmarks gives way to a list as well", async () => {
    const watcher = openWatch((one) => one.add(at("a@1")));
    await using run = newStreaming([{ watch: watcher }, { list: page("a@1", "10") }, { watch: openWatch() }]);
    await run.start();
    for (let i = 0; i < 11; i++) {
      await run.clock.advance(5_000);
      watcher.bookmark(`${i}`);
    }
    assert.deepEqual(run.source.requests, ['stream ""']);
    await run.clock.advance(5_000);
    assert.deepEqual(run.source.requests, ['stream ""', 'list "0" limit 500', 'watch "10"']);
  });

  it("leaves no timer behind when it ends well", async () => {
    await using run = newStreaming([{ watch: fullStream() }]);
    await run.start();
    await run.clock.advance(80_000); // longer than both may take, and shorter than any watch may be silent
    assert.deepEqual(run.source.requests, ['stream ""']);
    assert.deepEqual(run.source.closed, [0]);
  });

  it("is none that brings a large object slowly", async () => {
    const clock = new FakeClock();
    const watcher = openWatch();
    let arrived = (_bytes: number) => {};
    let lists = 0;
    const source: ListerWatcher<KubernetesObject> = {
      list: () => (lists++, Promise.resolve(page("", "10"))),
      watch: (_, { onBytes = arrived }) => {
        arrived = onBytes;
        return Promise.resolve(watcher);
      },
    };
    const store = new StoreRecorder();
    const stop = new AbortController();
    const running = new Reflector(source, store, { clock, logger: silentLogger }).run(stop.signal);
    for (let i = 0; i < 6; i++) {
      await clock.advance(9_000);
      arrived(1_000);
    }
    watcher.add(at("a@1"));
    watcher.bookmark("10", END);
    await clock.advance(0);
    assert.deepEqual(store.operations, ["replace 10: a@1"]);
    assert.equal(lists, 0);
    stop.abort();
    await running;
  });
});

describe("Reflector: a list that follows a refused streamed list", () => {
  it("is reported when it fails, and the next cycle begins with a stream", async () => {
    await using run = newStreaming([
      { watch: refusal("invalid") },
      { list: refusal("forbidden") },
      { watch: fullStream() },
    ]);
    await run.start();
    assert.deepEqual(run.errors.map((error) => (error as StatusError).reason), ["Forbidden"]);
    await run.clock.advance(800);
    assert.deepEqual(run.source.requests, ['stream ""', 'list "0" limit 500', 'stream ""']);
  });
});
