import {
  type Cluster,
  type KubernetesObject,
  NamespaceSet,
  newCluster,
  silentLogger,
  StatusError,
} from "@listwatch/cache";
import {
  type ControllerDefinition,
  defineController,
  indexed,
  Manager,
  type ManagerMetrics,
  type ManagerOptions,
  TerminalError,
} from "@listwatch/cache/controller";
import { newStatus } from "@listwatch/cache/client";
import { answerStatus, delayRequest, FakeClock, hang, InMemoryApiServer } from "@listwatch/cache/testing";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Lease } from "../../src/controller/leader_election.ts";
import { type Rig, SlowWatches, startRig, widget } from "./rig.ts";
import { WIDGET_RESOURCE, WIDGETS } from "../widgets.ts";

const LEASES = "coordination.k8s.io/v1/leases";
const EVENTS = "events.k8s.io/v1/events";

type Recorded = KubernetesObject & { readonly reportingInstance?: string };

/** A controller of Widgets that does what the test says. */
const controllerOf =
  (reconcile: Parameters<typeof defineController<KubernetesObject>>[0]["reconcile"], name = "widgets") =>
  (cluster: Cluster): ControllerDefinition =>
    defineController({
      name,
      for: cluster.resource<KubernetesObject>(WIDGETS),
      when: "generation",
      reconcile,
    });

/** A clock and a server that has Widgets. */
function withWidgets(): { readonly clock: FakeClock; readonly server: InMemoryApiServer } {
  const clock = new FakeClock(Date.UTC(2026, 0, 1));
  return { clock, server: new InMemoryApiServer({ clock, customResources: [WIDGET_RESOURCE] }) };
}

const conflict = () => new StatusError(newStatus(409, "Conflict", "it has changed"));

const idle = controllerOf(() => {});

/** Metrics that keep what they receive, as `name{label=value} value`. */
function keptMetrics(): ManagerMetrics & { readonly lines: string[] } {
  const lines: string[] = [];
  const note = (name: string, value: number, labels: Readonly<Record<string, string>> = {}) => {
    const texts = Object.entries(labels).map(([label, of]) => `${label}=${of}`);
    lines.push(`${name}{${texts.join(",")}} ${value}`);
  };
  return { lines, count: note, gauge: note, observe: note };
}

/** A manager that does not run. */
function newManager(
  options: Partial<ManagerOptions> = {},
  define: (cluster: Cluster) => ControllerDefinition = idle,
): Manager {
  const cluster = newCluster({ server: "http://127.0.0.1:8001", fetch: new InMemoryApiServer().fetch });
  return new Manager(cluster, { controllers: [define(cluster)], logger: silentLogger, ...options });
}

const answer = async (manager: Manager, path: string, method = "GET") => {
  const response = await manager.fetch(new Request(`http://localhost${path}`, { method }));
  return [response.status, await response.text(), response.headers.get("Content-Type")];
};

const TEXT = "text/plain; charset=utf-8";

describe("Manager: its options", () => {
  it("refuses numbers that are negative or NaN, and takes Infinity", () => {
    for (const name of ["drainMs", "readTimeoutMs", "maxLagMs"]) {
      for (const value of [-1, NaN]) {
        const text = `Cannot make a manager with a ${name} of ${value}: it must be a number of 0 or more`;
        assert.throws(() => newManager({ [name]: value }), { name: "RangeError", message: text });
      }
      newManager({ [name]: Infinity });
    }
  });

  it("refuses to have no controllers", () => {
    assert.throws(() => newManager({ controllers: [] }), {
      name: "TypeError",
      message: "Cannot make a manager: it has no controllers",
    });
  });

  it("makes an identity of the lease, or of the first controller, and random letters", async () => {
    const record = controllerOf((_, { events }) => events.normal("Made", "it"));
    const randoms = [0, 0.5, 0.999];
    let at = 0;
    const random = () => randoms[at++ % 3];
    for (const leader of [undefined, { lease: "leader" }, { lease: "leader", identity: "me" }]) {
      at = 0;
      const name = leader?.identity ?? `${leader?.lease ?? "widgets"}_0iz0iz0iz0iz`;
      // deno-lint-ignore no-await-in-loop -- one after the other
      await using rig = startRig(record, { random, ...(leader && { leader }) }, withWidgets());
      rig.server.create(WIDGETS, widget("a", "red"));
      // deno-lint-ignore no-await-in-loop -- one after the other
      await rig.until(() => rig.server.list<Recorded>(EVENTS).items.length === 1);
      assert.equal(rig.server.list<Recorded>(EVENTS).items[0].reportingInstance, name);
      if (leader === undefined) continue;
      const { spec } = rig.server.get<Lease>(LEASES, "default/leader")!;
      assert.equal(spec?.holderIdentity, name);
      assert.equal(rig.manager.status().leader, name);
    }
  });

  it("gives its random numbers and its metrics to the informers", async () => {
    const timeouts: string[] = [];
    for (const number of [0, 0.5]) {
      const metrics = keptMetrics();
      // deno-lint-ignore no-await-in-loop -- one after the other
      await using rig = startRig(idle, { random: () => number, metrics });
      // deno-lint-ignore no-await-in-loop -- one after the other
      await rig.until(() => rig.manager.status().hasSynced);
      timeouts.push(rig.server.requests.find(({ isWatch }) => isWatch)!.query.timeoutSeconds);
      assert.ok(
        metrics.lines.some((line) => line.includes("name=example.com/v1/widgets")),
        `${metrics.lines}`,
      );
    }
    assert.equal(Number(timeouts[1]), Number(timeouts[0]) * 1.5);
  });

  it("freezes the objects of its caches where its options say so", async () => {
    for (const freezeObjects of [undefined, false, true]) {
      const frozen: boolean[] = [];
      const look = controllerOf((object) => void frozen.push(Object.isFrozen(object.metadata)));
      // deno-lint-ignore no-await-in-loop -- one after the other
      await using rig = startRig(look, freezeObjects === undefined ? {} : { freezeObjects });
      rig.server.create(WIDGETS, widget("a", "red"));
      // deno-lint-ignore no-await-in-loop -- one after the other
      await rig.until(() => frozen.length > 0);
      assert.deepEqual(frozen, [freezeObjects === true]);
    }
  });

  it("keeps no managed fields of a resource that no controller owns", async () => {
    const seen: unknown[] = [];
    const look = controllerOf((object) => void seen.push(object.metadata?.managedFields));
    await using rig = startRig(look);
    await rig.cluster.resource(WIDGETS).apply(
      { apiVersion: "example.com/v1", kind: "Widget", ...widget("a", "red") },
      { fieldManager: "other" },
    );
    assert.notEqual(rig.server.get<KubernetesObject>(WIDGETS, "shop/a")?.metadata?.managedFields, undefined);
    await rig.until(() => seen.length > 0);
    assert.deepEqual(seen, [undefined]);
  });

  it("resyncs as often as its controllers ask for, where one of them does not", async () => {
    const keys: string[] = [];
    const of = (name: string, resyncPeriodMs: number) => (cluster: Cluster) =>
      defineController({
        name,
        for: cluster.resource(WIDGETS),
        resyncPeriodMs,
        reconcile: () => void keys.push(name),
      });
    const periodsMs = { never: 0, often: 20_000, seldom: 60_000 };
    await using rig = startRig((cluster) =>
      Object.entries(periodsMs).map(([name, periodMs]) => of(name, periodMs)(cluster))
    );
    rig.server.create(WIDGETS, widget("a", "red"));
    await rig.clock.advance(90_000);
    const counts = Object.keys(periodsMs).map((one) => keys.filter((name) => name === one).length);
    assert.deepEqual(counts, [1, 5, 2]);
  });

  it("has the lease in the namespace of its cluster, or in the one that is named", async () => {
    for (const namespace of [undefined, "shop"]) {
      // deno-lint-ignore no-await-in-loop -- one after the other
      await using rig = startRig(idle, { leader: { lease: "widgets", ...(namespace && { namespace }) } });
      // deno-lint-ignore no-await-in-loop -- one after the other
      await rig.until(() => rig.manager.status().isLeading);
      assert.notEqual(rig.server.get(LEASES, `${namespace ?? "default"}/widgets`), undefined);
      assert.ok(rig.lines.some((line) => line.startsWith("info leads by the lease widgets as widgets_")));
    }
  });
});

describe("Manager.caches", () => {
  it("are one for each resource, selection, set of namespaces and cluster, however many controllers read it", () => {
    // The third is of the same server: its credentials may be other ones.
    const [cluster, other, again] = ["a", "b", "a"].map((host) => newCluster({ server: `http://${host}` }));
    const [one, two] = [new NamespaceSet(["shop"]), new NamespaceSet(["shop"])];
    const sources = [
      cluster.resource(WIDGETS),
      cluster.resource(WIDGETS, { labelSelector: "a=b" }),
      cluster.resource(WIDGETS, { namespace: "shop" }),
      cluster.resource(WIDGETS, { namespaces: one }),
      cluster.resource(WIDGETS, { namespaces: two }),
      other.resource(WIDGETS),
      again.resource(WIDGETS),
      cluster.resource("v1/configmaps"),
      cluster.resource("v1/configmaps", { fieldSelector: "metadata.name=a", metadataOnly: true }),
    ];
    const controllers = [...sources, ...sources].map((resource, at) =>
      defineController({ name: `c${at}`, for: resource, reconcile: () => {} })
    );
    const manager = new Manager(cluster, { controllers, logger: silentLogger });
    assert.deepEqual(manager.caches.map(({ name }) => name), [
      "example.com/v1/widgets",
      "example.com/v1/widgets (a=b)",
      "example.com/v1/widgets in shop",
      "example.com/v1/widgets in 1 namespaces",
      "example.com/v1/widgets in 1 namespaces",
      "example.com/v1/widgets",
      "example.com/v1/widgets",
      "v1/configmaps",
      "v1/configmaps (metadata.name=a, metadata only)",
    ]);
    // Controllers of named clusters are of each of them, whatever cluster the sources are of.
    const own = cluster.resource(WIDGETS);
    const same = [own, other.resource(WIDGETS)].map((resource, at) =>
      defineController({ name: `c${at}`, for: resource, reconcile: () => {} })
    );
    const ofEach = new Manager(cluster, { controllers: same, clusters: { a: cluster, b: other } });
    assert.deepEqual(ofEach.caches.map(({ name }) => name), [
      "a: example.com/v1/widgets",
      "b: example.com/v1/widgets",
    ]);
    assert.deepEqual(ofEach.caches.map(({ client }) => client.cluster === cluster), [true, false]);
  });

  it("refuse two functions under one name of an index", () => {
    const cluster = newCluster({ server: "http://a" });
    const controllers = ["one", "other"].map((name) =>
      defineController({
        name,
        for: indexed(cluster.resource<KubernetesObject>(WIDGETS), { byName: () => [name] }),
        reconcile: () => {},
      })
    );
    assert.throws(() => new Manager(cluster, { controllers }), /Cannot index .* by "byName"/);
  });
});

describe("Manager.run", () => {
  it("refuses to run a second time", async () => {
    await using rig = startRig(idle);
    assert.throws(() => rig.manager.run(), {
      code: "InformerState",
      message: "Cannot run the manager again: make another one",
    });
  });

  it("ends without an error at its signal, whatever it waits for then", async () => {
    const waits: Readonly<Record<string, (server: InMemoryApiServer) => void>> = {
      nothing: () => {},
      "the first list": (server) =>
        void server.intercept(hang(), { match: ({ path }) => !path.includes("leases") }),
      "the lease": (server) =>
        void server.create<Lease>(LEASES, {
          metadata: { name: "widgets", namespace: "default" },
          spec: { holderIdentity: "other", leaseDurationSeconds: 3_600 },
        }),
      "the confirmation of its cache": (server) =>
        void server.intercept(answerStatus(503), { match: ({ query }) => query.limit === "1" }),
    };
    for (const [what, prepare] of Object.entries(waits)) {
      const clock = new FakeClock(Date.UTC(2026, 0, 1));
      const server = new InMemoryApiServer({
        clock,
        customResources: [WIDGET_RESOURCE],
        initialEvents: "refuse",
      });
      prepare(server);
      const cluster = newCluster({ server: "http://in-memory", fetch: server.fetch, clock });
      const manager = new Manager(cluster, {
        controllers: [idle(cluster)],
        leader: { lease: "widgets" },
        clock,
        logger: silentLogger,
      });
      const stop = new AbortController();
      const ended = manager.run(stop.signal).then(() => "ended", (error: unknown) => error);
      // deno-lint-ignore no-await-in-loop -- one after the other
      await clock.advance(5_000);
      assert.equal(manager.status().isLeading, what === "nothing", what);
      // What has no complete cache is not elected.
      assert.equal(manager.status().leader === "", what === "the first list", what);
      stop.abort(new Error("the test stops it"));
      // deno-lint-ignore no-await-in-loop -- one after the other
      await clock.advance(100);
      // deno-lint-ignore no-await-in-loop -- one after the other
      assert.equal(await Promise.race([ended, "it runs"]), "ended", what);
      assert.deepEqual(manager.status().problems, ["it has ended"]);
      server.close();
      // deno-lint-ignore no-await-in-loop -- one after the other
      await clock.advance(1_000);
      assert.equal(clock.pendingTimers, 0, what);
    }
  });

  it("ends at once at a signal that was aborted before, also by the system's clock", async () => {
    const manager = newManager();
    await manager.run(AbortSignal.abort());
    assert.deepEqual(manager.status().problems, ["it has ended"]);
  });

  it("ends when each of its caches has", async () => {
    const maps = (cluster: Cluster) =>
      defineController({ name: "maps", for: cluster.resource("v1/configmaps"), reconcile: () => {} });
    for (const slow of [0, 1]) {
      const clock = new FakeClock();
      const server = new InMemoryApiServer({ clock, customResources: [WIDGET_RESOURCE] });
      const cluster = newCluster({ server: "http://in-memory", fetch: server.fetch, clock });
      const controllers = [idle(cluster), maps(cluster)];
      const manager = new Manager(cluster, { controllers, clock, logger: silentLogger });
      const { informer } = manager.caches[slow];
      const start = informer.start.bind(informer);
      informer.start = (signal) => {
        const running = start(signal);
        const stop = async () => {
          await running.stop();
          await new Promise<void>((resolve) => clock.setTimeout(resolve, 500));
        };
        return { done: running.done, stop, [Symbol.asyncDispose]: stop };
      };
      let hasEnded = false;
      void manager.run();
      // deno-lint-ignore no-await-in-loop -- one after the other
      await clock.advance(1_000);
      void manager.stop().then(() => hasEnded = true);
      // deno-lint-ignore no-await-in-loop -- one after the other
      await clock.advance(499);
      assert.equal(hasEnded, false);
      // deno-lint-ignore no-await-in-loop -- one after the other
      await clock.advance(1);
      assert.equal(hasEnded, true);
    }
  });

  it("waits for its caches for readTimeoutMs, five seconds by default", async () => {
    for (const readTimeoutMs of [undefined, 2_000]) {
      const clock = new FakeClock(Date.UTC(2026, 0, 1));
      const server = new InMemoryApiServer({ clock, customResources: [WIDGET_RESOURCE] });
      const watches = new SlowWatches(server, (path) => path.endsWith("/widgets"));
      const times: number[] = [];
      const define = controllerOf(async (_, { self }) => {
        times.push(clock.now());
        if (times.length > 1) return;
        watches.hold();
        await self.patch("a", { metadata: { labels: { a: "1" } } });
        return { requeueAfterMs: 0 };
      });
      const options = { ...(readTimeoutMs !== undefined && { readTimeoutMs }) };
      // deno-lint-ignore no-await-in-loop -- one after the other
      await using rig = startRig(define, options, { server, clock, fetch: () => watches.fetch });
      server.create(WIDGETS, widget("a", "red"));
      // deno-lint-ignore no-await-in-loop -- one after the other
      await rig.until(() => times.length === 2);
      const tookMs = times[1] - times[0];
      const expectedMs = readTimeoutMs ?? 5_000;
      assert.ok(tookMs >= expectedMs && tookMs <= expectedMs + 100, `${tookMs} ms`);
      watches.release();
    }
  });

  it("measures each reconcile by its outcome, and its queue by the controller's name", async () => {
    const queues: string[] = [];
    const kept = keptMetrics();
    const metrics: ManagerMetrics = {
      ...kept,
      queueMetrics(name) {
        queues.push(name);
        return undefined as never;
      },
    };
    const rig = startRig(
      controllerOf(async ({ metadata }, context) => {
        context.metrics.count("seen_total");
        context.metrics.count("seen_total", 2, { of: "a" });
        context.metrics.gauge("colors", 3);
        context.metrics.observe("took_seconds", 4, { of: "b" });
        await new Promise<void>((resolve) => context.clock.setTimeout(resolve, 250));
        if (metadata?.name === "bad") throw new TerminalError("no such color");
        if (metadata?.name === "late" && context.failures === 0) throw new Error("not yet");
        if (metadata?.name === "again") return { requeueAfterMs: 100_000_000 };
        if (metadata?.name === "lost" && context.failures === 0) throw conflict();
        return {};
      }),
      { metrics },
    );
    await rig.until(() => rig.manager.status().isLeading);
    const of = (part: string) => kept.lines.filter((line) => line.includes(part));
    assert.deepEqual(of("controller_runtime"), [
      "controller_runtime_max_concurrent_reconciles{controller=widgets} 1",
      "controller_runtime_active_workers{controller=widgets} 0",
    ]);
    const count = async (name: string) => {
      kept.lines.length = 0;
      rig.server.create(WIDGETS, widget(name, "red"));
      await rig.clock.advance(1_000);
      return of("_total").filter((line) => line.startsWith("controller_runtime"));
    };
    const total = (result: string) =>
      `controller_runtime_reconcile_total{controller=widgets,result=${result}} 1`;
    const errors = "controller_runtime_reconcile_errors_total{controller=widgets} 1";
    assert.deepEqual(await count("good"), [total("success")]);
    assert.deepEqual(of("seen_total"), [
      "seen_total{controller=widgets} 1",
      "seen_total{controller=widgets,of=a} 2",
    ]);
    assert.deepEqual(of("colors"), ["colors{controller=widgets} 3"]);
    assert.deepEqual(of("took_seconds"), ["took_seconds{controller=widgets,of=b} 4"]);
    assert.deepEqual(of("reconcile_time"), [
      "controller_runtime_reconcile_time_seconds{controller=widgets} 0.25",
    ]);
    assert.deepEqual(of("active_workers"), [
      "controller_runtime_active_workers{controller=widgets} 1",
      "controller_runtime_active_workers{controller=widgets} 0",
    ]);
    const terminal = "controller_runtime_terminal_reconcile_errors_total{controller=widgets} 1";
    assert.deepEqual(await count("bad"), [errors, terminal, total("error")]);
    assert.deepEqual(await count("late"), [errors, total("error"), total("success")]);
    assert.deepEqual(await count("lost"), [total("requeue"), total("success")]);
    assert.deepEqual(await count("again"), [total("requeue_after")]);
    assert.deepEqual(queues, ["widgets"]);
    await rig[Symbol.asyncDispose]();
  });

  it("measures how many reconciles run, of several workers", async () => {
    const kept = keptMetrics();
    await using rig = startRig((cluster) =>
      defineController({
        name: "widgets",
        for: cluster.resource(WIDGETS),
        workers: 2,
        reconcile: (_, { clock }) => new Promise<void>((resolve) => clock.setTimeout(resolve, 250)),
      }), { metrics: kept });
    for (const name of ["a", "b"]) rig.server.create(WIDGETS, widget(name, "red"));
    await rig.clock.advance(5_000);
    const counts = kept.lines.filter((line) => line.includes("active_workers")).map((line) => line.at(-1));
    assert.deepEqual(counts, ["0", "1", "2", "1", "0"]);
  });

  it("fills the metrics of a queue", async () => {
    const adds: string[] = [];
    const none = { inc() {}, dec() {}, observe() {}, set() {} };
    const metrics: ManagerMetrics = {
      ...keptMetrics(),
      queueMetrics: (name) => ({
        depth: none,
        adds: { inc: () => void adds.push(name) },
        latency: none,
        workDuration: none,
        unfinishedWorkSeconds: none,
        longestRunningProcessorSeconds: none,
        retries: none,
      }),
    };
    await using rig = startRig(idle, { metrics });
    for (const name of ["a", "b"]) rig.server.create(WIDGETS, widget(name, "red"));
    await rig.until(() => adds.length > 1);
    assert.deepEqual(adds, ["widgets", "widgets"]);
  });

  it("gives a reconcile no clusters where it has but one", async () => {
    const seen: unknown[] = [];
    await using rig = startRig(controllerOf((_, { clusters }) => void seen.push(Object.keys(clusters))));
    rig.server.create(WIDGETS, widget("a", "red"));
    await rig.until(() => seen.length > 0);
    assert.deepEqual(seen, [[]]);
  });

  it("counts the reconciles that have not ended at their deadlines, and no other", async () => {
    const metrics = keptMetrics();
    const define = (cluster: Cluster) =>
      defineController({
        name: "widgets",
        for: cluster.resource<KubernetesObject>(WIDGETS),
        timeoutMs: 1_000,
        reconcile: (_, { clock, failures }) =>
          new Promise<void>((end) => void clock.setTimeout(end, failures === 0 ? 1_001 : 999)),
      });
    await using rig = startRig(define, { metrics });
    rig.server.create(WIDGETS, widget("a", "red"));
    await rig.clock.advance(10_000);
    const name = "controller_runtime_reconcile_timeouts_total";
    assert.deepEqual(metrics.lines.filter((line) => line.startsWith(name)), [
      `${name}{controller=widgets} 1`,
    ]);
    assert.equal(metrics.lines.filter((line) => line.includes("result=success")).length, 1);
  });

  it("measures whether it leads", async () => {
    const metrics = keptMetrics();
    const rig = startRig(idle, { metrics, leader: { lease: "widgets" } });
    const measured = () => metrics.lines.filter((line) => line.startsWith("leader_election_master_status"));
    await rig.until(() => rig.manager.status().isLeading);
    assert.deepEqual(measured(), ["leader_election_master_status{name=widgets} 1"]);
    await rig[Symbol.asyncDispose]();
    assert.deepEqual(measured().slice(1), ["leader_election_master_status{name=widgets} 0"]);
  });

  it("measures no lease where nothing is elected", async () => {
    const metrics = keptMetrics();
    const rig = startRig(idle, { metrics });
    await rig.until(() => rig.manager.status().isLeading);
    await rig[Symbol.asyncDispose]();
    assert.deepEqual(metrics.lines.filter((line) => line.startsWith("leader_election")), []);
    assert.equal(rig.manager.status().isLeading, false);
  });

  it("drains for ten seconds by default, and says that the signals are aborted then", async () => {
    const reasons: unknown[] = [];
    const rig = startRig(controllerOf((_, { signal }) =>
      new Promise<void>((_, reject) => {
        signal.addEventListener("abort", () => reject(reasons.push(signal.reason)));
      })
    ));
    rig.server.create(WIDGETS, widget("a", "red"));
    await rig.until(() => rig.manager.pending === 1);
    let hasEnded = false;
    void rig.manager.stop().then(() => hasEnded = true);
    await rig.clock.advance(9_999);
    assert.deepEqual([hasEnded, reasons], [false, []]);
    await rig.clock.advance(1);
    assert.match(String(reasons[0]), /the manager stops, and the reconcile has not ended within 10000 ms$/);
    assert.equal((reasons[0] as { code: string }).code, "ManagerStopped");
    await rig[Symbol.asyncDispose]();
    assert.equal(hasEnded, true);
  });

  it("writes what was recorded before it ends, for a second at most", async () => {
    for (const [delayMs, isWritten] of [[500, true], [5_000, false]] as const) {
      const rig = startRig(controllerOf((_, { events }) => events.normal("Made", "it")), {}, withWidgets());
      rig.server.intercept(delayRequest(delayMs), { match: ({ path }) => path.endsWith("/events") });
      rig.server.create(WIDGETS, widget("a", "red"));
      // deno-lint-ignore no-await-in-loop -- one after the other
      await rig.until(() => rig.manager.pending > 0);
      let hasEnded = false;
      void rig.manager.stop().then(() => hasEnded = true);
      // deno-lint-ignore no-await-in-loop -- one after the other
      await rig.clock.advance(400);
      assert.equal(hasEnded, false);
      // deno-lint-ignore no-await-in-loop -- one after the other
      await rig.clock.advance(700);
      assert.equal(hasEnded, true);
      // deno-lint-ignore no-await-in-loop -- one after the other
      assert.equal(await rig.ended, "ended");
      // deno-lint-ignore no-await-in-loop -- one after the other
      await rig[Symbol.asyncDispose]();
      assert.equal(rig.server.list(EVENTS).items.length === 1, isWritten);
      assert.equal(rig.clock.pendingTimers, 0);
    }
  });

  it("ends without an error where the lease is lost after its signal, and gives up what runs at once", async () => {
    const reasons: unknown[] = [];
    const waiting = controllerOf((_, { signal }) =>
      new Promise<void>((_, reject) => {
        signal.addEventListener("abort", () => reject(reasons.push(signal.reason)));
      })
    );
    const rig = startRig(waiting, { leader: { lease: "widgets" }, drainMs: 60_000 });
    rig.server.create(WIDGETS, widget("a", "red"));
    await rig.until(() => rig.manager.pending === 1);
    rig.server.intercept(answerStatus(503), { match: ({ method }) => method === "PUT" });
    const stopped = rig.manager.stop();
    await rig.clock.advance(11_000);
    await stopped;
    assert.equal((reasons[0] as { code: string }).code, "LeadershipLost");
    assert.equal(await rig.ended, "ended");
    await rig[Symbol.asyncDispose]();
  });
});

describe("Manager.stop", () => {
  it("stops nothing where it has not started", async () => {
    const manager = newManager();
    await manager.stop();
    assert.deepEqual(manager.status().problems[0], "it was not started");
  });

  it("is what the end of its block does", async () => {
    const clock = new FakeClock();
    const manager = newManager({ clock });
    void manager.run();
    let hasEnded = false;
    void manager[Symbol.asyncDispose]().then(() => hasEnded = true);
    assert.equal(hasEnded, false);
    await clock.advance(1_000);
    assert.deepEqual([hasEnded, manager.status().problems], [true, ["it has ended"]]);
  });

  it("resolves also where the run has failed", async () => {
    const rig = startRig(idle, { leader: { lease: "widgets" } });
    await rig.until(() => rig.manager.status().isLeading);
    rig.server.intercept(answerStatus(503), { match: ({ method }) => method === "PUT" });
    await rig.clock.advance(20_000);
    assert.match(String(await rig.ended), /LeadershipLost|Cannot lead any more/);
    await rig.manager.stop();
    await rig[Symbol.asyncDispose]();
  });
});

describe("Manager.status", () => {
  it("says what a manager lacks that has not started, that starts, and that runs", async () => {
    const notStarted = newManager().status();
    const incomplete = "the cache of example.com/v1/widgets is not complete";
    assert.deepEqual(notStarted, {
      hasSynced: false,
      isLeading: false,
      leader: "",
      problems: ["it was not started", incomplete],
    });
    await using rig = startRig(idle);
    assert.deepEqual(rig.manager.status().problems, [incomplete]);
    await rig.until(() => rig.manager.status().isLeading);
    assert.deepEqual(rig.manager.status(), { hasSynced: true, isLeading: true, leader: "", problems: [] });
  });

  it("takes a cache for stale that is three minutes behind the server, by default", async () => {
    await using rig = startRig(idle);
    await rig.until(() => rig.manager.status().isLeading);
    await rig.clock.advance(1_000);
    rig.server.intercept(hang());
    rig.server.closeWatches();
    const startMs = rig.clock.now();
    await rig.until(() => rig.manager.status().problems.length > 0, 300_000);
    const tookMs = rig.clock.now() - startMs;
    assert.ok(tookMs > 170_000 && tookMs <= 181_000, `${tookMs} ms`);
  });
});

describe("Manager.fetch", () => {
  it("answers GET and HEAD of three paths", async () => {
    const manager = newManager();
    assert.deepEqual(await answer(manager, "/healthz"), [200, "ok\n", TEXT]);
    assert.deepEqual(await answer(manager, "/healthz", "HEAD"), [200, "ok\n", TEXT]);
    assert.deepEqual(await answer(manager, "/healthz", "POST"), [
      405,
      "only GET and HEAD are answered\n",
      TEXT,
    ]);
    const none = [404, "there are /healthz, /readyz and /metrics\n", TEXT];
    assert.deepEqual(await answer(manager, "/other"), none);
    assert.deepEqual(await answer(manager, "/metrics"), none);
    const ready = "it was not started\nthe cache of example.com/v1/widgets is not complete\n";
    assert.deepEqual(await answer(manager, "/readyz"), [500, ready, TEXT]);
    const response = await manager.fetch(new Request("http://localhost/healthz"));
    assert.equal(response.headers.get("Cache-Control"), "no-store");
  });

  it("answers with metrics that have a text, as their type", async () => {
    const text = () => Promise.resolve("all 1\n");
    const typed = newManager({ metrics: { ...keptMetrics(), text, contentType: "text/x" } });
    assert.deepEqual(await answer(typed, "/metrics"), [200, "all 1\n", "text/x"]);
    const untyped = newManager({ metrics: { ...keptMetrics(), text } });
    assert.deepEqual(await answer(untyped, "/metrics"), [200, "all 1\n", TEXT]);
    assert.equal((await answer(newManager({ metrics: keptMetrics() }), "/metrics"))[0], 404);
    assert.equal((await answer(untyped, "/other"))[0], 404);
  });

  it("says at /healthz that it runs where nothing is elected", async () => {
    await using rig = startRig(idle);
    await rig.until(() => rig.manager.status().isLeading);
    assert.deepEqual(await answer(rig.manager, "/healthz"), [200, "ok\n", TEXT]);
  });

  it("says at /readyz of clusters that a manager has not started", async () => {
    const cluster = newCluster({ server: "http://127.0.0.1:8001" });
    const manager = newManager({ clusters: { one: cluster } });
    assert.equal((await answer(manager, "/readyz"))[0], 500);
  });

  it("says at /healthz that it runs, also as a standby, but not that it leads with a lease that has run out", async () => {
    await using rig: Rig = startRig(idle, { leader: { lease: "widgets", identity: "one" } });
    const { cluster, clock } = rig;
    await rig.until(() => rig.manager.status().isLeading);
    const standby = new Manager(cluster, {
      controllers: [idle(cluster)],
      leader: { lease: "widgets", identity: "two" },
      clock,
      logger: silentLogger,
    });
    const ended = standby.run();
    await clock.advance(1_000);
    assert.deepEqual([standby.status().isLeading, standby.status().leader], [false, "one"]);
    assert.deepEqual(await answer(standby, "/healthz"), [200, "ok\n", TEXT]);
    assert.deepEqual(await answer(standby, "/readyz"), [200, "ok\n", TEXT]);
    assert.deepEqual(await answer(rig.manager, "/healthz"), [200, "ok\n", TEXT]);
    // The process wakes up, and no timer of it has run yet.
    void clock.jump(11_000);
    const text = "the lease was not renewed in time\n";
    assert.deepEqual(await answer(rig.manager, "/healthz"), [500, text, TEXT]);
    const stopped = standby.stop();
    await clock.advance(20_000);
    await Promise.all([stopped, ended]);
  });
});
