import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  type KubernetesObject,
  metaNamespaceKey,
  type Metrics,
  SharedIndexInformer,
  silentLogger,
} from "@listwatch/cache";
import { MutationCache } from "@listwatch/cache/compat";
import { Controller, newInformer } from "@listwatch/cache/informer";
import { RealFIFO } from "@listwatch/cache/queue";
import { newStore } from "@listwatch/cache/store";
import { FakeClock, FakeControllerSource, pod } from "@listwatch/cache/testing";

const reflector = { useWatchList: false, backoff: { nextDelayMs: () => 1 } };

describe("SharedIndexInformer with a transform that throws for an object of a list", () => {
  it("takes the list without the object; upstream the whole list fails", async () => {
    const clock = new FakeClock();
    const source = new FakeControllerSource();
    source.add(pod("good"));
    source.add(pod("bad"));
    const informer = new SharedIndexInformer<KubernetesObject>(source, {
      clock,
      logger: silentLogger,
      reflector,
      transform: (object) => {
        if (object.metadata?.name === "bad") throw new Error("no");
        return object;
      },
    });
    await using running = informer.start();
    await clock.advance(0);
    assert.equal(informer.hasSynced(), true);
    assert.deepEqual(informer.indexer.listKeys(), ["default/good"]);
    assert.equal(informer.status().quarantined, 1);
    await running.stop();
  });
});

describe("Controller.run when its signal is aborted", () => {
  it("leaves what is queued unprocessed, as today's client-go does", async () => {
    const source = new FakeControllerSource();
    const stop = new AbortController();
    const processed: string[] = [];
    const queue = new RealFIFO<KubernetesObject>({ atomicEvents: true });
    const controller = new Controller<KubernetesObject>({
      listerWatcher: source,
      queue,
      process: ([delta]) => {
        processed.push(delta.type);
        if (delta.type === "Added") stop.abort();
      },
      reflector: { ...reflector, clock: new FakeClock(), logger: silentLogger },
    });
    queue.add(pod("a"));
    queue.add(pod("b"));
    await controller.run(stop.signal);
    assert.deepEqual(processed, ["Added"]);
    assert.deepEqual([queue.isClosed, queue.length], [true, 1]);
  });
});

describe("MutationCache with a resourceVersion that is not a number", () => {
  it("continues; upstream panics", () => {
    const store = newStore<KubernetesObject>(metaNamespaceKey);
    store.add(pod("web-1", { resourceVersion: "7" }));
    const cache = new MutationCache<KubernetesObject>(store);
    cache.mutation(pod("web-1", { resourceVersion: "not a number" }));
    assert.ok(cache.getByKey("default/web-1") !== undefined);
  });
});

describe("Metrics of a SharedIndexInformer", () => {
  it("use one argument: the store's resourceVersion, its number of objects, the backlog of each handler", async () => {
    const clock = new FakeClock();
    const source = new FakeControllerSource();
    source.add(pod("web-1"));
    const gauges = new Map<string, number>();
    const observed = new Set<string>();
    const metrics: Metrics = {
      count: () => {},
      gauge: (name, value, labels) => void gauges.set([name, labels.handler ?? ""].join(" ").trim(), value),
      observe: (name) => void observed.add(name),
    };
    const informer = new SharedIndexInformer<KubernetesObject>(source, {
      clock,
      metrics,
      reflector,
      name: "pods",
      logger: silentLogger,
    });
    const registration = informer.addEventHandler({});
    const running = informer.start();
    await clock.advance(0);
    source.add(pod("web-2"));
    await clock.advance(0);
    assert.equal(gauges.get("informer_objects"), 2);
    assert.equal(gauges.get("informer_store_resource_version"), 2);
    assert.equal(gauges.get(`informer_handler_backlog ${registration.name}`), 0);
    for (const name of ["sync_duration", "processing_latency", "handler_duration"]) {
      assert.ok(observed.has(`informer_${name}_seconds`), name);
    }
    await running.stop();
  });
});

describe("newInformer", () => {
  it("uses a DeltaFIFO as client-go 1.24, and an ordered queue where one is given", async () => {
    const clock = new FakeClock();
    for (const ordered of [false, true]) {
      const source = new FakeControllerSource();
      const names: string[] = [];
      let queues = 0;
      const [, controller] = newInformer<KubernetesObject>({
        listerWatcher: source,
        handler: { onUpdate: (_old, object) => void names.push(object.metadata?.name ?? "") },
        reflector: { ...reflector, clock, logger: silentLogger },
        ...(ordered && {
          queue: ({ keyFunc }) => {
            queues++;
            return new RealFIFO<KubernetesObject>({ keyFunc, atomicEvents: true });
          },
        }),
      });
      const stop = new AbortController();
      const running = controller.run(stop.signal);
      for (const name of ["a", "b"]) source.add(pod(name));
      // deno-lint-ignore no-await-in-loop -- one informer after the other
      await clock.advance(0);
      for (const name of ["a", "b", "a"]) source.modify(pod(name));
      // deno-lint-ignore no-await-in-loop
      await clock.advance(0);
      stop.abort();
      // deno-lint-ignore no-await-in-loop
      await running;
      assert.deepEqual(names, ordered ? ["a", "b", "a"] : ["a", "a", "b"]);
      assert.equal(queues, ordered ? 1 : 0);
    }
  });
});
