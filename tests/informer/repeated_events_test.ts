import assert from "node:assert/strict";
import {
  type KubernetesObject,
  newCluster,
  SharedIndexInformer,
  type SharedIndexInformerOptions,
  silentLogger,
} from "@listwatch/cache";
import { readApi } from "@listwatch/cache/hono";
import { DeltaFIFO } from "@listwatch/cache/queue";
import { FakeClock, type FakeWatcher } from "@listwatch/cache/testing";
import { FakeInformer, object } from "../hono/fake_informer.ts";
import {
  type Answer,
  at,
  openWatch,
  page,
  ScriptedSource,
  statuses,
  text,
} from "../reflector/scripted_source.ts";
import { EventHistory } from "../../src/informer/event_history.ts";
import { isSameJson } from "../../src/util/json.ts";
import { LogRecorder } from "../log_recorder.ts";
import { startObserved } from "./rig.ts";
import { describe, it, storage } from "./storages.ts";

/** An informer over a script, that has answered as far as it can without time passing. */
async function started(
  script: readonly Answer[],
  options: SharedIndexInformerOptions<KubernetesObject> = {},
) {
  const source = new ScriptedSource(...script);
  const { clock, informer, recorder, observed, stop } = await startObserved(source, options);
  recorder.take();
  observed.length = 0;
  return {
    source,
    clock,
    informer,
    recorder,
    observed,
    stored: () => informer.indexer.list().map(text).sort().join(" "),
    version: () => informer.indexer.lastStoreSyncResourceVersion(),
    [Symbol.asyncDispose]: stop,
  };
}

/** Where a watch is open after a list of `a@3 b@5` at 10. */
async function watching(options: SharedIndexInformerOptions<KubernetesObject> = {}) {
  const watcher = openWatch();
  const world = await started([{ list: page("a@3 b@5", "10") }, { watch: watcher }], options);
  const send = async (fill: (watcher: FakeWatcher) => void) => {
    fill(watcher);
    await world.clock.advance(0);
  };
  return { ...world, watcher, send };
}

describe("SharedIndexInformer: events that a proxy sends again", () => {
  it("change nothing, notify no handler, and the next watch begins at the version that this one had reached", async () => {
    await using world = await watching();
    const { send, recorder, observed, source, informer } = world;
    await send((watch) => {
      watch.modify(at("a@11"));
      watch.add(at("c@12"));
      watch.delete(at("b@13"));
      watch.add(at("d@14"));
    });
    assert.deepEqual(recorder.take(), ["update a@3>11", "add c@12", "delete b@13", "add d@14"]);
    observed.length = 0;
    await send((watch) => {
      watch.modify(at("a@10"));
      watch.modify(at("c@10"));
      watch.delete(at("b@13"));
      watch.add(at("b@5"));
      watch.bookmark("9");
    });
    assert.deepEqual(recorder.take(), []);
    assert.deepEqual(observed, []);
    assert.equal(world.stored(), "a@11 c@12 d@14");
    assert.equal(world.version(), "14");
    assert.equal(informer.status().resourceVersion, "14");
    assert.equal(informer.lastSyncResourceVersion(), "9"); // what was seen last, as client-go has it
    source.then({ watch: openWatch() });
    world.watcher.stop();
    await world.clock.advance(2_000);
    assert.equal(source.requests.at(-1), 'watch "14"');
    assert.equal(informer.lastSyncResourceVersion(), "9");
  });

  it("are updates if they bring the stored state, as upstream", async () => {
    await using world = await watching();
    const { send, recorder, informer } = world;
    await send((watch) => watch.modify(at("a@11")));
    await send((watch) => watch.modify(at("b@12")));
    const stored = informer.indexer.getByKey("a");
    recorder.take();
    await send((watch) => {
      watch.modify(at("a@11"));
      watch.modify(at("b@12"));
    });
    assert.deepEqual(recorder.take(), ["update a@11>11", "update b@12>12"]);
    assert.equal(informer.indexer.getByKey("a"), stored);
    assert.equal(world.version(), "12");
  });

  it("notify no handler with notifyUnchanged: false", async () => {
    await using world = await watching({ notifyUnchanged: false });
    await world.send((watch) => watch.modify(at("a@11")));
    await world.send((watch) => watch.modify(at("b@12")));
    world.recorder.take();
    await world.send((watch) => {
      watch.modify(at("a@11"));
      watch.modify(at("b@12"));
    });
    assert.deepEqual(world.recorder.take(), []);
  });

  it("do not delete what was created again", async () => {
    await using world = await watching();
    const { send, recorder } = world;
    await send((watch) => {
      watch.delete(at("a@11"));
      watch.add(at("a@12"));
      watch.delete(at("a@11"));
    });
    assert.deepEqual(recorder.take(), ["delete a@11", "add a@12"]);
    assert.equal(world.stored(), "a@12 b@5");
  });

  it("do not delete it either if the object of the delete is quarantined; a list decides", async () => {
    await using world = await watching();
    const { send, source, clock, informer } = world;
    const refused = (eventType: "ADDED" | "DELETED", resourceVersion: string) => ({
      type: "QUARANTINED" as const,
      quarantined: { reason: "no text", path: "object.metadata", key: "a", resourceVersion, eventType },
    });
    await send((watch) => {
      watch.send(refused("DELETED", "11"));
      watch.add(at("a@12"));
      watch.send(refused("DELETED", "11"));
    });
    assert.equal(world.stored(), "a@12 b@5");
    // A refused state that is sent again does not make its delete one of an object that no handler received.
    await send((watch) => {
      watch.send(refused("ADDED", "10"));
      watch.delete(at("a@11"));
    });
    assert.equal(world.stored(), "a@12 b@5");
    assert.equal(informer.status().resourceVersion, "12");
    source.then({ list: page("a@12", "20") }, { watch: openWatch() });
    await clock.advance(60_000);
    assert.equal(world.stored(), "a@12");
  });

  it("are applied from then on, where two lists have shown that deletes had happened under older versions", async () => {
    const logger = new LogRecorder();
    await using world = await watching({ logger });
    await world.send((watch) => {
      watch.modify(at("a@11"));
      watch.modify(at("b@12"));
      watch.delete(at("a@4"));
    });
    const watch = openWatch();
    world.source.then({ list: page("b@12", "20") }, { watch });
    await world.clock.advance(60_000);
    watch.delete(at("b@6"));
    // The silent watch is opened again before the list is due.
    world.source.then({ watch: openWatch() }, { list: page("", "30") }, { watch: openWatch() });
    await world.clock.advance(0);
    await world.clock.advance(120_000);
    assert.equal(world.stored(), "");
    const lines = logger.of("warn").filter((line) =>
      line.includes("changes under older versions than before")
    );
    assert.equal(lines.length, 1);
  });

  it("are counted by type", async () => {
    const counts: string[] = [];
    const metrics = {
      count: (name: string, value: number, labels: Readonly<Record<string, string>>) => {
        if (name === "informer_repeated_events_total") counts.push(`${labels.type} ${value}`);
      },
      gauge: () => {},
      observe: () => {},
    };
    await using world = await watching({ metrics });
    await world.send((watch) => {
      watch.add(at("c@12"));
      watch.add(at("d@11"));
      watch.modify(at("a@2"));
      watch.delete(at("d@11"));
    });
    assert.deepEqual(counts, ["Added 1", "Updated 1", "Deleted 1"]);
  });

  it("are followed, as client-go does, where another queue is given", async () => {
    await using world = await watching({
      queue: (context) => new DeltaFIFO<KubernetesObject>({ ...context, emitDeltaTypeReplaced: true }),
    });
    await world.send((watch) => watch.modify(at("a@11")));
    await world.send((watch) => watch.modify(at("a@4")));
    assert.deepEqual(world.recorder.take(), ["update a@3>11", "update a@11>4"]);
    assert.equal(world.informer.status().resourceVersion, "4");
  });
});

describe("SharedIndexInformer: events that are not sent again, although their versions look like it", () => {
  it("are several objects of one write", async () => {
    await using world = await watching();
    await world.send((watch) => {
      watch.modify(at("a@11"));
      watch.modify(at("b@11"));
      watch.add(at("c@11"));
    });
    assert.deepEqual(world.recorder.take(), ["update a@3>11", "update b@5>11", "add c@11"]);
  });

  it("have versions that are no numbers, or none", async () => {
    await using world = await watching();
    await world.send((watch) => {
      watch.modify(at("a@x9"));
      watch.modify(at("a@7"));
      watch.add({ apiVersion: "v1", kind: "Pod", metadata: { name: "c" } });
      watch.delete({ apiVersion: "v1", kind: "Pod", metadata: { name: "b" } });
    });
    assert.deepEqual(world.recorder.take(), [
      "update a@3>x9",
      "update a@x9>7",
      "add c@undefined",
      "delete b@undefined",
    ]);
    assert.equal(world.stored(), "a@7 c@undefined");
  });

  it("are the present objects, in any order, after a list at no particular version", async () => {
    for (const version of ["0", ""]) {
      const watcher = openWatch((watch) => {
        watch.add(at("a@20"));
        watch.add(at("b@15"));
      });
      await using world = await started([{ list: page("", version) }, { watch: watcher }]);
      assert.equal(world.stored(), "a@20 b@15");
      watcher.modify(at("b@21"));
      watcher.modify(at("a@19")); // now it is known how far the stream has come
      await world.clock.advance(0);
      assert.equal(world.stored(), "a@20 b@21");
    }
  });

  it("are deletes under the version at which an object was last seen; the store keeps its version", async () => {
    await using world = await watching();
    await world.send((watch) => {
      watch.bookmark("20");
      watch.delete(at("a@3"));
    });
    assert.deepEqual(world.recorder.take(), ["delete a@3"]);
    assert.equal(world.stored(), "b@5");
    assert.equal(world.version(), "20");
  });

  it("are in a list, which may go back", async () => {
    const watcher = openWatch();
    await using world = await started([{ list: page("a@30", "30") }, { watch: watcher }]);
    world.source.then({ list: page("a@7", "20") }, { watch: openWatch((watch) => watch.add(at("b@21"))) });
    watcher.error(statuses.expired);
    await world.clock.advance(1_000);
    assert.equal(world.stored(), "a@7 b@21");
    assert.equal(world.informer.status().resourceVersion, "21");
  });
});

describe("SharedIndexInformer over a served cache of another", () => {
  /** An informer of what `readApi` serves of a cache that a test fills. */
  async function downstream() {
    const clock = new FakeClock();
    const upstream = FakeInformer.with([object("a", 5), object("b", 6), object("c", 7)], 100);
    const api = readApi({
      resources: [{ informer: upstream, resource: "v1/pods" }],
      allowAnonymous: true,
      clock,
    });
    const cluster = newCluster({
      server: "http://cache",
      clock,
      fetch: (input, init) => {
        const request = new Request(input, init);
        // As through a proxy that does not forward it: the difference comes in place of the end of the watch.
        request.headers.delete("Prefer");
        return Promise.resolve(api.fetch(request));
      },
    });
    const informer = new SharedIndexInformer<KubernetesObject>(cluster.resource("v1/pods"), {
      storage: storage(),
      clock,
      logger: silentLogger,
    });
    const running = informer.start();
    await clock.advance(10);
    return {
      clock,
      upstream,
      stored: () => informer.indexer.list().map(text).sort().join(" "),
      version: () => informer.indexer.lastStoreSyncResourceVersion(),
      [Symbol.asyncDispose]: () => running.stop(),
    };
  }

  it("receives the deletes that the other one's relist found, which carry old versions", async () => {
    await using world = await downstream();
    world.upstream.put(object("c", 101));
    world.upstream.relist([object("d", 140), object("b", 120)], 150);
    await world.clock.advance(10);
    assert.equal(world.stored(), "b@120 d@140");
    assert.equal(world.version(), "150");
    world.upstream.put(object("e", 151));
    await world.clock.advance(10);
    assert.equal(world.stored(), "b@120 d@140 e@151");
  });

  it("follows it to a restored server, whose history starts again, within a minute and a half", async () => {
    await using world = await downstream();
    world.upstream.put(object("b", 101));
    world.upstream.relist([object("a", 5), object("d", 40)], 50);
    world.upstream.put(object("e", 51));
    await world.clock.advance(90_000);
    assert.equal(world.stored(), "a@5 d@40 e@51");
    assert.equal(world.version(), "51");
  });
});

describe("EventHistory.classify", () => {
  it("takes a write for one that was sent again where the stored object is the same one, and newer", () => {
    const change = (uid: string, resourceVersion: string) =>
      ({ type: "Updated", object: { metadata: { name: "a", uid, resourceVersion } } }) as const;
    const history = new EventHistory<KubernetesObject>(
      { isSameContent: isSameJson },
      [change("u-1", "11")],
      () => {},
    );
    const standing = (uid: string) => history.classify(change("u-1", "11"), "a", change(uid, "12").object);
    assert.deepEqual([standing("u-1"), standing("u-2")], ["seen", "doubtful"]);
  });
});

describe("EventHistory.listed", () => {
  it("knows of one of several doubtful changes that it had happened: two such lists are enough", () => {
    let isUnordered = false;
    const history = new EventHistory<KubernetesObject>(
      { isSameContent: isSameJson },
      [],
      () => isUnordered = true,
    );
    for (const resourceVersion of ["20", "30"]) {
      assert.equal(isUnordered, false);
      for (const name of ["a", "b"]) {
        assert.equal(
          history.classify({ type: "Updated", object: at(`${name}@5`) }, name, undefined),
          "doubtful",
        );
      }
      history.listBegins(resourceVersion, "10");
      history.listed("a", at("a@5"));
      history.listed("b", at("b@15"));
      history.listEnds();
    }
    assert.equal(isUnordered, true);
  });
});
