import assert from "node:assert/strict";
import {
  type KubernetesObject,
  SharedIndexInformer,
  type SharedIndexInformerOptions,
} from "@listwatch/cache";
import { FakeClock, FakeWatcher } from "@listwatch/cache/testing";
import { LogRecorder } from "../log_recorder.ts";
import { Recorder } from "./rig.ts";
import { describe, it, storage } from "./storages.ts";

const MINUTE_MS = 60_000;

/** An object as `name@version` or `name/uid@version`, with the content that a word says. */
function project(text: string, word = "x"): KubernetesObject {
  const [, name, uid = name, resourceVersion] = /^(\w+)(?:\/(\w+))?@(\d+)$/.exec(text)!;
  return { apiVersion: "v1", kind: "Project", metadata: { name, uid, resourceVersion, labels: { word } } };
}

function textOf({ metadata }: KubernetesObject): string {
  const { name, uid, resourceVersion, labels } = metadata!;
  return `${name}${uid === name ? "" : `/${uid}`}@${resourceVersion}${
    labels?.word === "x" ? "" : labels?.word
  }`;
}

/**
 * An informer that watches after a list of `a@3 b@5` at 10. The
 * server's truth is what lists bring; a test sets it.
 */
async function watching(options: Partial<SharedIndexInformerOptions<KubernetesObject>> = {}) {
  const clock = new FakeClock();
  const log = new LogRecorder();
  const truth = { objects: [project("a@3"), project("b@5")], version: "10" };
  let watcher = new FakeWatcher();
  let lists = 0;
  const informer = new SharedIndexInformer<KubernetesObject>({
    list: () => {
      lists++;
      return Promise.resolve({
        items: structuredClone(truth.objects),
        metadata: { resourceVersion: truth.version },
      });
    },
    watch: (_options, { signal }) => {
      const opened = watcher = new FakeWatcher();
      signal.addEventListener("abort", () => opened.fail(signal.reason));
      return Promise.resolve(opened as never);
    },
  }, {
    storage: storage(),
    clock,
    logger: log,
    ...options,
    reflector: { useWatchList: false, random: () => 0, bookmarkSilenceMs: 1e9, minWatchTimeoutMs: 1e9 },
  });
  const recorder = new Recorder();
  informer.addEventHandler(recorder);
  const running = informer.start();
  await clock.advance(0);
  recorder.take();
  return {
    clock,
    log,
    truth,
    informer,
    told: () => recorder.take(),
    lists: () => lists,
    stored: () => informer.indexer.list().map(textOf).sort().join(" "),
    /** The server sends something, and holds this from now on. */
    async send(fill: (watch: FakeWatcher) => void, objects?: readonly string[], version = truth.version) {
      if (objects !== undefined) truth.objects = objects.map((text) => project(text));
      truth.version = version;
      fill(watcher);
      await clock.advance(0);
    },
    [Symbol.asyncDispose]: () => running.stop(),
  };
}

describe("SharedIndexInformer: an event that comes again with the stored state", () => {
  it("is an update for handlers whose resync was due at the last look, as in client-go", async () => {
    await using rig = await watching({ resyncPeriodMs: 10_000 });
    const never = new Recorder();
    rig.informer.addEventHandler(never, { resyncPeriodMs: 0 });
    await rig.clock.advance(10_000);
    rig.told();
    never.take();
    await rig.send((watch) => watch.modify(project("b@5")));
    assert.deepEqual([rig.told(), never.take()], [["update b@5>5"], []]);
  });
});

describe("SharedIndexInformer: a real event with an older version than one before", () => {
  it("of an object that is not stored ends in a list", async () => {
    await using world = await watching();
    await world.send((watch) => watch.modify(project("b@15")), ["a@3", "b@15", "granted@4"], "15");
    world.told();
    await world.send((watch) => watch.add(project("granted@4")));
    assert.equal(world.stored(), "a@3 b@15");
    await world.clock.advance(MINUTE_MS);
    assert.equal(world.stored(), "a@3 b@15 granted@4");
    assert.equal(world.lists(), 2);
    assert.ok(world.told().includes("add granted@4"));
  });

  it("of an object that is stored with an older version ends in a list", async () => {
    await using world = await watching();
    await world.send((watch) => watch.modify(project("b@15")), ["a@12", "b@15"], "15");
    await world.send((watch) => watch.modify(project("a@12")));
    await world.clock.advance(MINUTE_MS);
    assert.equal(world.stored(), "a@12 b@15");
    assert.equal(world.lists(), 2);
  });

  it("of another object than the one that is stored ends in a list", async () => {
    await using world = await watching();
    await world.send((watch) => watch.modify(project("b@15")), ["a/second@12", "b@15"], "15");
    await world.send((watch) => watch.add(project("a/second@12")));
    await world.clock.advance(MINUTE_MS);
    assert.equal(world.stored(), "a/second@12 b@15");
    // The object may also have a version that is lower still: two objects count for themselves.
    await world.send((watch) => watch.add(project("a/third@1")), ["a/third@1", "b@15"]);
    await world.clock.advance(2 * MINUTE_MS);
    assert.equal(world.stored(), "a/third@1 b@15");
    assert.equal(world.lists(), 3);
  });

  it("of the stored version with another content ends in a list", async () => {
    await using world = await watching();
    await world.send((watch) => watch.modify(project("b@15")));
    world.truth.objects = [project("a@3", "y"), project("b@15")];
    await world.send((watch) => watch.modify(project("a@3", "y")));
    await world.clock.advance(MINUTE_MS);
    assert.equal(world.stored(), "a@3y b@15");
    assert.equal(world.lists(), 2);
  });

  it("of an object that is stored with a newer one, which never came before, ends in a list", async () => {
    await using world = await watching();
    await world.send((watch) => watch.modify(project("b@15")), ["a@3", "b@13"], "13");
    await world.send((watch) => watch.modify(project("b@13"))); // a new history
    await world.clock.advance(MINUTE_MS);
    assert.equal(world.stored(), "a@3 b@13");
    assert.equal(world.informer.indexer.lastStoreSyncResourceVersion(), "13");
    await world.send((watch) => watch.modify(project("b@14")));
    assert.equal(world.stored(), "a@3 b@14");
    assert.equal(world.lists(), 2);
  });

  it("that is a delete ends in a list where the store has a newer state, or another object", async () => {
    await using world = await watching();
    await world.send((watch) => watch.modify(project("b@15")), ["a@3"], "15");
    await world.send((watch) => watch.delete(project("b@5")));
    await world.clock.advance(MINUTE_MS);
    assert.equal(world.stored(), "a@3");
    await world.send((watch) => watch.delete(project("a/second@9")), []);
    assert.equal(world.stored(), "a@3");
    await world.clock.advance(2 * MINUTE_MS);
    assert.equal(world.stored(), "");
    assert.equal(world.lists(), 3);
  });
});

describe("SharedIndexInformer: a delete of another object than the stored one, with an older version", () => {
  it("ends in a list, where nothing says that it was sent again", async () => {
    await using world = await watching();
    await world.send((watch) => watch.modify(project("b@15")), ["a@3"], "15");
    await world.send((watch) => watch.delete(project("b/other@14")));
    assert.equal(world.stored(), "a@3 b@15");
    await world.clock.advance(MINUTE_MS);
    assert.equal(world.stored(), "a@3");
    assert.equal(world.lists(), 2);
  });

  it("costs no list where that object's delete passed a short while ago", async () => {
    await using world = await watching();
    await world.send(
      (watch) => {
        watch.delete(project("b@11"));
        watch.add(project("b/second@12"));
        watch.modify(project("a@13"));
        watch.delete(project("b@11"));
      },
      ["a@13", "b/second@12"],
      "13",
    );
    await world.clock.advance(60 * MINUTE_MS);
    assert.equal(world.stored(), "a@13 b/second@12");
    assert.equal(world.lists(), 1);
  });
});

describe("SharedIndexInformer: an event that was sent again", () => {
  it("costs no list, in an hour, where the store has what came after it", async () => {
    await using world = await watching();
    await world.send((watch) => {
      watch.modify(project("a@11"));
      watch.modify(project("a@12"));
      watch.add(project("c/first@13"));
      watch.delete(project("c/first@14"));
      watch.add(project("c/second@15"));
      watch.delete(project("b@16"));
      watch.bookmark("20");
    });
    const stored = world.stored();
    world.told();
    for (let i = 0; i < 10; i++) {
      await world.send((watch) => {
        watch.modify(project("a@11"));
        watch.delete(project("c/first@14"));
        watch.delete(project("b@16"));
        watch.add(project("c/second@15")); // as it is stored: an update as upstream
      });
      await world.clock.advance(6 * MINUTE_MS);
    }
    assert.equal(world.lists(), 1);
    assert.equal(world.stored(), stored);
    assert.deepEqual(world.told().filter((call) => call !== "update c@15>15"), []);
  });

  it("costs few lists where it cannot be distinguished from a real one: an object that has been deleted since", async () => {
    await using world = await watching();
    await world.send(
      (watch) => {
        watch.modify(project("b@11"));
        watch.delete(project("b@12"));
      },
      ["a@3"],
      "12",
    );
    world.told();
    for (let i = 0; i < 120; i++) {
      await world.send((watch) => watch.modify(project("b@11")));
      await world.clock.advance(MINUTE_MS / 2);
    }
    assert.ok(world.lists() <= 7, `${world.lists()} lists in an hour`);
    assert.equal(world.stored(), "a@3");
    assert.deepEqual(world.told().filter((call) => !call.startsWith("update a@3>3")), []);
  });
});

describe("SharedIndexInformer with a server whose versions do not ascend", () => {
  it("is noticed after two lists; then every event is followed, and nothing is listed any more", async () => {
    await using world = await watching();
    await world.send((watch) => watch.modify(project("b@15")), ["a@3", "b@15", "c@4"], "15");
    await world.send((watch) => watch.add(project("c@4")));
    await world.clock.advance(MINUTE_MS);
    await world.send((watch) => watch.delete(project("c@4")), ["a@3", "b@15"]);
    assert.equal(world.stored(), "a@3 b@15"); // it is gone: a list would say no more
    await world.send((watch) => watch.add(project("d@6")), ["a@3", "b@15", "d@6"]);
    assert.equal(world.log.lines.filter((line) => line.includes("older versions")).length, 0);
    await world.clock.advance(2 * MINUTE_MS);
    assert.equal(world.stored(), "a@3 b@15 d@6");
    assert.equal(world.log.lines.filter((line) => line.includes("older versions")).length, 1);
    assert.equal(world.lists(), 3);
    world.told();
    await world.send((watch) => {
      watch.add(project("e@7"));
      watch.modify(project("a@9"));
      watch.delete(project("d@6"));
      watch.add(project("d/again@2"));
    });
    assert.deepEqual(world.told(), ["add e@7", "update a@3>9", "delete d@6", "add d@2"]);
    assert.equal(world.stored(), "a@9 b@15 d/again@2 e@7");
    assert.equal(world.informer.indexer.lastStoreSyncResourceVersion(), "15");
    assert.equal(world.informer.status().resourceVersion, "15");
    await world.clock.advance(60 * MINUTE_MS);
    assert.equal(world.lists(), 3);
  });

  it("is not one that was restored from a backup, as its lists go back", async () => {
    await using world = await watching();
    for (const version of [9, 8, 7, 6]) {
      await world.send(
        (watch) => watch.modify(project(`a@${version}`)),
        [`a@${version}`, "b@5"],
        String(version),
      );
      await world.clock.advance(30 * MINUTE_MS);
      assert.equal(world.stored(), `a@${version} b@5`);
    }
    assert.equal(world.log.lines.filter((line) => line.includes("older versions")).length, 0);
    assert.equal(world.lists(), 5);
  });
});
