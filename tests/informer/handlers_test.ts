import assert from "node:assert/strict";
import fc from "fast-check";
import {
  FilteringResourceEventHandler,
  type KubernetesObject,
  type ResourceEventHandler,
} from "@listwatch/cache";
import { propertyOptions } from "../property.ts";
import { named, newRig, Recorder, text } from "./rig.ts";
import { describe, it } from "./storages.ts";

/** A handler whose calls end when the test says so. */
class SlowHandler implements ResourceEventHandler<KubernetesObject> {
  readonly calls: string[] = [];
  readonly #open: PromiseWithResolvers<void>[] = [];

  async onAdd(object: KubernetesObject): Promise<void> {
    this.calls.push(`begin ${text(object)}`);
    const end = Promise.withResolvers<void>();
    this.#open.push(end);
    await end.promise;
    this.calls.push(`end ${text(object)}`);
  }

  /** Ends the call that is under way. */
  end(): void {
    this.#open.shift()!.resolve();
  }

  /** Fails the call that is under way. */
  fail(error: Error): void {
    this.#open.shift()!.reject(error);
  }
}

/** A handler that throws at every add. */
const BROKEN: ResourceEventHandler<KubernetesObject> = {
  onAdd: () => {
    throw new Error("handler broke");
  },
};

describe("SharedIndexInformer.addEventHandler of a running informer", () => {
  it("notifies first of everything that is stored, as initial, and then of changes", async () => {
    await using rig = newRig();
    for (const name of ["a", "b"]) rig.source.add(named(name));
    await rig.start();
    const { recorder, registration } = rig.record();
    assert.equal(registration.hasSynced(), false, "it has received nothing yet");
    rig.source.modify(named("a"));
    await rig.settle();
    assert.deepEqual(recorder.calls, ["add a@1 initial", "add b@2 initial", "update a@1>3"]);
    assert.equal(registration.hasSynced(), true);
  });

  it("has synced at once when there is nothing", async () => {
    await using rig = newRig();
    await rig.start();
    const { registration } = rig.record();
    assert.equal(registration.hasSynced(), true);
    await registration.synced();
  });

  it("synced() rejects if the handler is removed or the informer stops before", async () => {
    const rig = newRig();
    const [removed, waiting] = [rig.record().registration, rig.record().registration];
    await rig.informer.removeEventHandler(removed);
    await assert.rejects(removed.synced(), {
      code: "InformerState",
      message: /was stopped before it had synced/,
    });
    const waits = assert.rejects(waiting.synced(), { code: "InformerState" });
    await rig.informer.run(AbortSignal.abort());
    await waits;
    await assert.rejects(waiting.synced(), { code: "InformerState" });
  });

  it("synced() ends when its signal is aborted, with the signal's reason", async () => {
    const { registration } = newRig().record();
    const abort = new AbortController();
    const waits = assert.rejects(registration.synced(abort.signal), /too late/);
    abort.abort(new Error("too late"));
    await waits;
  });

  it("notifies of nothing in the turn of the call", async () => {
    await using rig = newRig();
    rig.source.add(named("a"));
    await rig.start();
    const { recorder } = rig.record();
    assert.deepEqual(recorder.calls, []);
    await rig.settle();
    assert.deepEqual(recorder.calls, ["add a@1 initial"]);
  });

  it("before the first list came has not synced before it has", async () => {
    await using rig = newRig();
    rig.source.add(named("a"));
    rig.source.listError = new Error("it broke");
    await rig.start();
    const { recorder, registration } = rig.record();
    await rig.settle();
    assert.equal(registration.hasSynced(), false);
    rig.source.listError = undefined;
    await rig.retry();
    assert.deepEqual(recorder.calls, ["add a@1 initial"]);
    assert.equal(registration.hasSynced(), true);
  });

  it("can join from within another handler's call", async () => {
    await using rig = newRig();
    rig.source.add(named("a"));
    const late = new Recorder();
    let joined = false;
    rig.informer.addEventHandler({
      onAdd: () => {
        if (!joined) rig.informer.addEventHandler(late);
        joined = true;
      },
    });
    await rig.start();
    rig.source.add(named("b"));
    await rig.settle();
    assert.deepEqual(late.calls, ["add a@1 initial", "add b@2"]);
  });

  it("at any moment misses nothing and repeats nothing", async () => {
    const change = fc.record({
      what: fc.constantFrom("add" as const, "modify" as const, "delete" as const),
      name: fc.constantFrom("a", "b", "c"),
      missed: fc.boolean(),
    });
    const step = fc.oneof(
      { weight: 4, arbitrary: change },
      { weight: 2, arbitrary: fc.constant("join" as const) },
      { weight: 1, arbitrary: fc.constant("relist" as const) },
      // Some moments in between: so many microtasks, or until all is quiet.
      { weight: 4, arbitrary: fc.integer({ min: 1, max: 12 }) },
      { weight: 1, arbitrary: fc.constant("quiet" as const) },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
        await using rig = newRig();
        rig.source.add(named("a"));
        const views = [newView()];
        rig.informer.addEventHandler(views[0].handler);
        const started = rig.start();
        for (const todo of steps) {
          if (todo === "join") {
            const view = newView();
            views.push(view);
            rig.informer.addEventHandler(view.handler);
          } else if (todo === "relist") rig.source.resetWatch();
          else if (todo === "quiet") await rig.settle();
          else if (typeof todo === "number") { for (let i = 0; i < todo; i++) await null; }
          else rig.source[`${todo.what}${todo.missed ? "DropWatch" : ""}`](named(todo.name));
        }
        await started;
        rig.source.addDropWatch(named("last")); // so that the watch cannot continue from its version
        rig.source.resetWatch();
        await rig.clock.advance(10);
        await rig.settle();
        const { items } = await rig.source.list({}, { signal: new AbortController().signal });
        const stored = items.map(text).sort();
        assert.deepEqual(rig.informer.indexer.list().map(text).sort(), stored);
        for (const view of views) {
          assert.deepEqual([...view.objects.values()].sort(), stored);
          assert.deepEqual(view.problems, []);
        }
      }),
      propertyOptions(150),
    );
  });
});

/** What a handler knows from its notifications, and what was wrong with them. */
function newView() {
  const objects = new Map<string, string>();
  const problems: string[] = [];
  const handler: ResourceEventHandler<KubernetesObject> = {
    onAdd(object) {
      const name = object.metadata!.name!;
      if (objects.has(name)) problems.push(`${name} was added twice`);
      objects.set(name, text(object));
    },
    onUpdate(old, object) {
      const name = object.metadata!.name!;
      if (objects.get(name) !== text(old)) {
        problems.push(`${name} was updated from ${text(old)}, which it was not`);
      }
      objects.set(name, text(object));
    },
    onDelete(deleted) {
      objects.delete(deleted.key);
    },
  };
  return { objects, problems, handler };
}

describe("HandlerRegistration", () => {
  it("has synced when the handler has handled the last object of the first list", async () => {
    await using rig = newRig();
    for (const name of ["a", "b"]) rig.source.add(named(name));
    const handler = new SlowHandler();
    const registration = rig.informer.addEventHandler(handler);
    let resolved = false;
    registration.synced().then(() => (resolved = true));
    await rig.start();
    assert.equal(rig.informer.hasSynced(), true);
    assert.deepEqual([registration.hasSynced(), registration.backlog], [false, 1]);
    handler.end();
    await rig.settle();
    assert.deepEqual([registration.hasSynced(), registration.backlog], [false, 0]);
    handler.end();
    await rig.settle();
    assert.deepEqual([registration.hasSynced(), resolved], [true, true]);
  });

  it("does not wait for what came after the first list", async () => {
    await using rig = newRig();
    const handler = new SlowHandler();
    const registration = rig.informer.addEventHandler(handler);
    await rig.start();
    rig.source.add(named("a"));
    await rig.settle();
    assert.deepEqual(handler.calls, ["begin a@1"]);
    assert.equal(registration.hasSynced(), true);
    handler.end();
  });

  it("is each handler's own", async () => {
    await using rig = newRig();
    rig.source.add(named("a"));
    const slow = new SlowHandler();
    const slowOne = rig.informer.addEventHandler(slow);
    const quick = rig.record();
    await rig.start();
    assert.deepEqual([slowOne.hasSynced(), quick.registration.hasSynced()], [false, true]);
    slow.end();
  });

  it("syncs although the handler throws", async () => {
    await using rig = newRig();
    rig.source.add(named("a"));
    const registration = rig.informer.addEventHandler(BROKEN);
    await rig.start();
    assert.equal(registration.hasSynced(), true);
  });

  it("names the handler", async () => {
    await using rig = newRig({ name: "pods" });
    const names = [rig.record(), rig.record({ name: "endpoints" }), rig.record()];
    assert.deepEqual(names.map(({ registration }) => registration.name), [
      "pods: handler 1",
      "pods: endpoints",
      "pods: handler 2",
    ]);
  });
});

describe("SharedIndexInformer.removeEventHandler", () => {
  it("drops what waits for it, and resolves when the call under way has ended", async () => {
    await using rig = newRig();
    for (const name of ["a", "b", "c"]) rig.source.add(named(name));
    const handler = new SlowHandler();
    const registration = rig.informer.addEventHandler(handler);
    await rig.start();
    let removed = false;
    const removing = rig.informer.removeEventHandler(registration).then(() => (removed = true));
    rig.source.add(named("d"));
    await rig.settle();
    assert.equal(removed, false);
    assert.deepEqual(handler.calls, ["begin a@1"]);
    assert.equal(registration.backlog, 0);
    handler.end();
    await removing;
    await rig.settle();
    assert.deepEqual(handler.calls, ["begin a@1", "end a@1"]);
  });

  it("of an idle handler resolves at once, and it receives nothing any more", async () => {
    await using rig = newRig();
    const { recorder, registration } = rig.record();
    await rig.start();
    await rig.informer.removeEventHandler(registration);
    rig.source.add(named("a"));
    await rig.settle();
    assert.deepEqual(recorder.calls, []);
  });

  it("before the informer started resolves at once", async () => {
    await using rig = newRig();
    rig.source.add(named("a"));
    const { recorder, registration } = rig.record();
    await rig.informer.removeEventHandler(registration);
    await rig.start();
    assert.deepEqual(recorder.calls, []);
  });

  it("twice waits for the same call", async () => {
    await using rig = newRig();
    rig.source.add(named("a"));
    const handler = new SlowHandler();
    const registration = rig.informer.addEventHandler(handler);
    await rig.start();
    let removed = 0;
    const both = [1, 2].map(() => rig.informer.removeEventHandler(registration).then(() => removed++));
    await rig.settle();
    assert.equal(removed, 0);
    handler.end();
    await Promise.all(both);
    await rig.informer.removeEventHandler(registration);
  });

  it("of another informer does nothing", async () => {
    await using rig = newRig();
    await using other = newRig();
    const { registration } = other.record();
    const own = rig.record();
    await rig.informer.removeEventHandler(registration);
    await rig.informer.removeEventHandler({ ...own.registration });
    await rig.start();
    rig.source.add(named("a"));
    await rig.settle();
    assert.deepEqual(own.recorder.calls, ["add a@1"]);
  });

  it("of a stopped informer is fine", async () => {
    const rig = newRig();
    const { registration } = rig.record();
    await rig.start();
    await rig.stop();
    await rig.informer.removeEventHandler(registration);
  });

  it("can be done from within its own call, if that is not awaited there", async () => {
    await using rig = newRig();
    for (const name of ["a", "b"]) rig.source.add(named(name));
    const calls: string[] = [];
    let removing: Promise<void> | undefined;
    const registration = rig.informer.addEventHandler({
      onAdd: (object) => {
        calls.push(text(object));
        removing = rig.informer.removeEventHandler(registration);
      },
    });
    await rig.start();
    await removing;
    assert.deepEqual(calls, ["a@1"]);
  });

  it("ends its pause after an error", async () => {
    await using rig = newRig();
    rig.source.add(named("a"));
    const registration = rig.informer.addEventHandler(BROKEN);
    await rig.start();
    const timers = rig.clock.pendingTimers;
    await rig.informer.removeEventHandler(registration);
    assert.equal(rig.clock.pendingTimers, timers - 1);
  });

  it("is awaited by the informer's end, if it was not before", async () => {
    const rig = newRig();
    rig.source.add(named("a"));
    const handler = new SlowHandler();
    const registration = rig.informer.addEventHandler(handler);
    await rig.start();
    rig.informer.removeEventHandler(registration);
    let stopped = false;
    const stopping = rig.stop().then(() => (stopped = true));
    await rig.settle();
    assert.equal(stopped, false);
    handler.end();
    await stopping;
    assert.deepEqual(handler.calls, ["begin a@1", "end a@1"]);
  });
});

describe("SharedIndexInformer.run after its signal", () => {
  it("waits for the calls under way, and drops what waits", async () => {
    const rig = newRig();
    for (const name of ["a", "b"]) rig.source.add(named(name));
    const handler = new SlowHandler();
    rig.informer.addEventHandler(handler);
    await rig.start();
    let stopped = false;
    const stopping = rig.stop().then(() => (stopped = true));
    await rig.settle();
    assert.equal(stopped, false);
    handler.end();
    await stopping;
    assert.deepEqual(handler.calls, ["begin a@1", "end a@1"]);
    assert.equal(rig.clock.pendingTimers, 0);
  });
});

describe("ResourceEventHandler", () => {
  it("added twice receives twice, and removing one leaves the other", async () => {
    await using rig = newRig();
    const recorder = new Recorder();
    const first = rig.informer.addEventHandler(recorder);
    rig.informer.addEventHandler(recorder);
    await rig.start();
    rig.source.add(named("a"));
    await rig.settle();
    assert.deepEqual(recorder.take(), ["add a@1", "add a@1"]);
    await rig.informer.removeEventHandler(first);
    rig.source.modify(named("a"));
    await rig.settle();
    assert.deepEqual(recorder.take(), ["update a@1>2"]);
  });

  it("that throws is logged by name and paused for a second, while the others continue", async () => {
    await using rig = newRig({ name: "pods" });
    for (const name of ["a", "b", "c", "d", "e"]) rig.source.add(named(name));
    const called: number[] = [];
    rig.informer.addEventHandler({
      onAdd: (object) => {
        called.push(rig.clock.now());
        throw new Error(`cannot take ${object.metadata?.name}`);
      },
    }, { name: "clumsy" });
    const { recorder } = rig.record();
    await rig.start();
    assert.equal(recorder.calls.length, 5);
    assert.deepEqual(called, [0]);
    await rig.clock.advance(10_000);
    assert.deepEqual(called, [0, 1_000, 2_000, 3_000, 4_000]);
    assert.deepEqual(
      rig.log.of("error"),
      ["a", "b", "c", "d", "e"].map((name) =>
        `error: pods: clumsy threw when notified of an add: cannot take ${name}`
      ),
    );
  });

  it("whose promise is rejected are treated the same", async () => {
    await using rig = newRig();
    for (const name of ["a", "b"]) rig.source.add(named(name));
    const handler = new SlowHandler();
    rig.informer.addEventHandler(handler);
    await rig.start();
    handler.fail(new Error("it broke later"));
    await rig.settle();
    assert.deepEqual(handler.calls, ["begin a@1"]);
    await rig.clock.advance(1_000);
    assert.deepEqual(handler.calls, ["begin a@1", "begin b@2"]);
    assert.deepEqual(rig.log.of("error"), [
      "error: fake: handler 1 threw when notified of an add: it broke later",
    ]);
    handler.end();
  });

  it("that throw something that is no error are logged as well", async () => {
    await using rig = newRig();
    rig.source.add(named("a"));
    rig.informer.addEventHandler({
      onAdd: () => {
        // deno-lint-ignore no-throw-literal -- handlers do such things
        throw "a string";
      },
    });
    await rig.start();
    assert.match(rig.log.of("error")[0], /a string/);
  });

  it("that are asynchronous are called strictly one after the other", async () => {
    await using rig = newRig();
    for (const name of ["a", "b", "c"]) rig.source.add(named(name));
    const handler = new SlowHandler();
    rig.informer.addEventHandler(handler);
    await rig.start();
    for (let i = 0; i < 3; i++) {
      await rig.settle();
      handler.end();
    }
    await rig.settle();
    assert.deepEqual(handler.calls, ["a@1", "b@2", "c@3"].flatMap((it) => [`begin ${it}`, `end ${it}`]));
  });

  it("do not wait for each other", async () => {
    await using rig = newRig();
    rig.source.add(named("a"));
    const slow = new SlowHandler();
    rig.informer.addEventHandler(slow);
    const { recorder } = rig.record();
    await rig.start();
    rig.source.modify(named("a"));
    rig.source.delete(named("a"));
    await rig.settle();
    assert.deepEqual(recorder.calls, ["add a@1 initial", "update a@1>2", "delete a@3"]);
    assert.deepEqual(slow.calls, ["begin a@1"]);
    slow.end();
  });

  it("may return anything that is no promise", async () => {
    await using rig = newRig();
    for (const name of ["a", "b"]) rig.source.add(named(name));
    const names: unknown[] = [];
    const handler = { onAdd: (object: KubernetesObject) => names.push(object.metadata?.name) };
    rig.informer.addEventHandler(handler as unknown as ResourceEventHandler<KubernetesObject>);
    await rig.start();
    assert.deepEqual(names, ["a", "b"]);
    assert.deepEqual(rig.log.lines, []);
  });

  it("may lack any method", async () => {
    await using rig = newRig();
    const registration = rig.informer.addEventHandler({});
    await rig.start();
    rig.source.add(named("a"));
    rig.source.modify(named("a"));
    rig.source.delete(named("a"));
    await rig.settle();
    assert.equal(registration.backlog, 0);
    assert.deepEqual(rig.log.lines, []);
  });

  it("must not ask for a resync period that is none", async () => {
    await using rig = newRig();
    for (const resyncPeriodMs of [-1, NaN]) {
      assert.throws(() => rig.informer.addEventHandler({}, { resyncPeriodMs }), RangeError);
    }
  });
});

describe("FilteringResourceEventHandler", () => {
  it("makes adds and deletes of objects that begin and cease to be accepted", async () => {
    await using rig = newRig();
    const recorder = new Recorder();
    const isWeb = (object?: KubernetesObject) => object?.metadata?.labels?.app === "web";
    rig.informer.addEventHandler(
      new FilteringResourceEventHandler<KubernetesObject>(
        (object) => isWeb("finalStateUnknown" in object ? object.object : object),
        recorder,
      ),
    );
    await rig.start();
    rig.source.add(named("a", { app: "db" }));
    rig.source.modify(named("a", { app: "web" }));
    rig.source.modify(named("a", { app: "web", tier: "front" }));
    rig.source.modify(named("a", { app: "db" }));
    rig.source.add(named("b", { app: "web" }));
    await rig.settle();
    rig.source.deleteDropWatch(named("b"));
    rig.source.resetWatch();
    await rig.retry();
    assert.deepEqual(recorder.calls, ["add a@2", "update a@2>3", "delete a@3", "add b@5", "tombstone b@5"]);
  });

  it("hands on that an object is of the first list, and asks the filter for tombstones as such", async () => {
    await using rig = newRig();
    for (const name of ["a", "b"]) rig.source.add(named(name));
    const initial: boolean[] = [];
    let tombstones = 0;
    rig.informer.addEventHandler(
      new FilteringResourceEventHandler<KubernetesObject>((object) => {
        if ("finalStateUnknown" in object) tombstones++;
        return true;
      }, { onAdd: (_, isInInitialList) => void initial.push(isInInitialList) }),
    );
    await rig.start();
    rig.source.add(named("c"));
    rig.source.delete(named("a"));
    await rig.settle();
    rig.source.deleteDropWatch(named("b"));
    rig.source.resetWatch();
    await rig.retry();
    assert.deepEqual(initial, [true, true, false]);
    assert.equal(tombstones, 1);
  });

  it("names an object that it accepts no longer by its keyFunc", async () => {
    await using rig = newRig();
    const keys: string[] = [];
    rig.informer.addEventHandler(
      new FilteringResourceEventHandler<KubernetesObject>(
        (object) => "metadata" in object && object.metadata?.labels?.app === "web",
        { onDelete: ({ key }) => void keys.push(key) },
        { keyFunc: (object) => `pod ${(object as KubernetesObject).metadata?.name}` },
      ),
    );
    await rig.start();
    rig.source.add(named("a", { app: "web" }));
    rig.source.modify(named("a", { app: "db" }));
    await rig.settle();
    assert.deepEqual(keys, ["pod a"]);
  });
});
