import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type KubernetesObject, type Logger, metaNamespaceKey, newCluster } from "@listwatch/cache";
import { defineController, type ManagerMetrics, ownedBy } from "@listwatch/cache/controller";
import { Reflector } from "@listwatch/cache/reflector";
import { newStore } from "@listwatch/cache/store";
import { configMap, FakeClock, InMemoryApiServer } from "@listwatch/cache/testing";
import { DelayingQueue, type QueueMetrics } from "@listwatch/cache/workqueue";
import { LogRecorder } from "../log_recorder.ts";
import { type ConfigMap, type Rig, startRig, widget, widgetController } from "./rig.ts";
import { WIDGET_RESOURCE, WIDGETS } from "../widgets.ts";

/** What a callback may do: throw, or reject where no promise is expected. */
const FAILURES: Readonly<Record<string, () => void>> = {
  throw: () => {
    throw new Error("disk full");
  },
  reject: (() => Promise.reject(new Error("disk full"))) as () => void,
};

const queueMetricsThat = (fail: () => void): QueueMetrics => ({
  depth: { inc: fail, dec: fail },
  adds: { inc: fail },
  latency: { observe: fail },
  workDuration: { observe: fail },
  unfinishedWorkSeconds: { set: fail },
  longestRunningProcessorSeconds: { set: fail },
  retries: { inc: fail },
});

const metricsThat = (fail: () => void): ManagerMetrics => ({
  count: fail,
  gauge: fail,
  observe: fail,
  queueMetrics: () => queueMetricsThat(fail),
});

const loggerThat = (fail: () => void): Logger => ({ debug: fail, info: fail, warn: fail, error: fail });

/** The color in the ConfigMap of a Widget. */
const ownedColor = ({ server }: Rig, name: string) =>
  server.get<ConfigMap>("v1/configmaps", `shop/widget-${name}`)?.data?.color;

for (const [how, fail] of Object.entries(FAILURES)) {
  describe(`Manager.run with callbacks that ${how}`, () => {
    it("reconciles, tries again, and ends as without them", async () => {
      let failures = 2;
      await using rig = startRig((cluster) =>
        defineController({
          name: "widgets",
          for: cluster.resource<KubernetesObject>(WIDGETS),
          owns: { configMaps: cluster.resource<ConfigMap>("v1/configmaps") },
          resyncPeriodMs: 30_000,
          async reconcile(object, { configMaps, metrics, log }) {
            metrics.count("widgets_seen");
            log.info("seen");
            if (failures-- > 0) throw new Error("not yet");
            await configMaps.apply({
              metadata: { name: `widget-${object.metadata?.name}`, ...ownedBy(object) },
              data: { color: "red" },
            });
            return { status: { ready: true }, requeueAfterMs: 10_000 };
          },
        }), { metrics: metricsThat(fail), logger: loggerThat(fail), leader: { lease: "widgets" } });
      for (const name of ["a", "b", "c"]) rig.server.create(WIDGETS, widget(name, "red"));
      await rig.until(() => ["a", "b", "c"].every((name) => ownedColor(rig, name) === "red"));
      await rig.clock.advance(60_000);
      rig.server.delete("v1/configmaps", "shop/widget-a");
      await rig.until(() => ownedColor(rig, "a") === "red");
      const stopped = rig.manager.stop();
      await rig.clock.advance(30_000);
      await stopped;
      assert.equal(await rig.ended, "ended");
    });
  });

  describe(`Reflector.run with callbacks that ${how}`, () => {
    it("lists, watches, and returns after an outage", async () => {
      const clock = new FakeClock();
      const server = new InMemoryApiServer({ clock, customResources: [WIDGET_RESOURCE] });
      const cluster = newCluster({ server: "http://in-memory", fetch: server.fetch, clock });
      const store = newStore<KubernetesObject>(metaNamespaceKey);
      const reflector = new Reflector(cluster.resource(WIDGETS), store, {
        clock,
        metrics: metricsThat(fail),
        logger: loggerThat(fail),
        watchErrorHandler: fail,
      });
      reflector.onStatus(fail);
      const stop = new AbortController();
      const ended = reflector.run(stop.signal).then(() => "ended", (error: unknown) => error);
      server.create(WIDGETS, widget("a", "red"));
      await clock.advance(1_000);
      server.closeWatches({ reset: true });
      server.create(WIDGETS, widget("b", "red"));
      await clock.advance(60_000);
      assert.deepEqual(store.listKeys().sort(), ["shop/a", "shop/b"]);
      stop.abort();
      await clock.advance(1_000);
      assert.equal(await ended, "ended");
      server.close();
    });
  });

  describe(`WorkQueue with metrics that ${how}`, () => {
    it("hands every item out once", async () => {
      const clock = new FakeClock();
      const metricsProvider = { queueMetrics: () => queueMetricsThat(fail) };
      const queue = new DelayingQueue<string>({ clock, name: "q", metricsProvider });
      queue.add("a");
      queue.addAfter("b", 1_000);
      assert.deepEqual(await queue.get(), { shutdown: false, item: "a" });
      queue.done("a");
      await clock.advance(2_000);
      assert.deepEqual(await queue.get(), { shutdown: false, item: "b" });
      queue.done("b");
      queue.shutDown();
      assert.equal((await queue.get()).shutdown, true);
    });
  });
}

describe("Manager.run with metrics that throw", () => {
  it("says it once in the log", async () => {
    const logger = new LogRecorder();
    await using rig = startRig(widgetController, { metrics: metricsThat(FAILURES.throw), logger });
    rig.server.create(WIDGETS, widget("a", "red"));
    await rig.until(() => ownedColor(rig, "a") === "red");
    assert.deepEqual(logger.of("error"), [
      "error: Cannot measure: the metrics object threw: disk full; later failures are not logged",
    ]);
  });
});

describe("Manager.run with metrics that have none for a queue", () => {
  it("reconciles without them", async () => {
    const logger = new LogRecorder();
    const metrics = {
      ...metricsThat(() => {}),
      queueMetrics: FAILURES.throw as unknown as () => QueueMetrics,
    };
    await using rig = startRig(widgetController, { metrics, logger });
    rig.server.create(WIDGETS, widget("a", "red"));
    await rig.until(() => ownedColor(rig, "a") === "red");
    assert.deepEqual(logger.of("error"), ["error: Cannot measure the queue of widgets: disk full"]);
  });
});

describe("defineController with a filter that throws", () => {
  it("lets the change through, and holds up no other", async () => {
    await using rig = startRig((cluster) =>
      defineController({
        name: "widgets",
        for: cluster.resource<KubernetesObject & { spec?: { color?: string } }>(WIDGETS),
        when: (before) => {
          throw new Error(`no comparison of ${before.metadata?.name}`);
        },
        reconcile: ({ spec }) => ({ status: { color: spec?.color } }),
      })
    );
    const color = (name: string) =>
      rig.server.get<KubernetesObject & { status?: { color?: string } }>(WIDGETS, `shop/${name}`)?.status
        ?.color;
    const names = Array.from({ length: 50 }, (_, at) => `w${at}`);
    for (const name of names) rig.server.create(WIDGETS, widget(name, "red"));
    await rig.until(() => names.every((name) => color(name) === "red"));
    for (const name of names) rig.server.patch(WIDGETS, `shop/${name}`, { spec: { color: "green" } });
    await rig.until(() => names.every((name) => color(name) === "green"), 5_000);
    assert.match(rig.lines.filter((line) => line.startsWith("error")).join("\n"), /no comparison of w0/);
  });

  it("maps what can be mapped without a wait, where keys throws for other objects", async () => {
    const wrong = Array.from({ length: 20 }, (_, at) => `a${at}`);
    await using rig = startRig((cluster) =>
      defineController({
        name: "widgets",
        for: cluster.resource<KubernetesObject>(WIDGETS),
        watches: {
          configMaps: {
            resource: cluster.resource<ConfigMap>("v1/configmaps"),
            keys: ({ metadata, data }) => {
              if (data === undefined) throw new Error(`no data in ${metadata?.name}`);
              return data.color === "none" ? [5 as unknown as string] : ["shop/a"];
            },
          },
        },
        reconcile: async (_, { configMaps }) => ({ status: { count: (await configMaps.list()).length } }),
      })
    );
    const count = () =>
      rig.server.get<KubernetesObject & { status?: { count?: number } }>(WIDGETS, "shop/a")?.status?.count;
    rig.server.create(WIDGETS, widget("a", "red"));
    await rig.until(() => count() === 0);
    for (const name of wrong) rig.server.create("v1/configmaps", { metadata: { namespace: "shop", name } });
    rig.server.create("v1/configmaps", configMap("none", { namespace: "shop", data: { color: "none" } }));
    rig.server.create("v1/configmaps", configMap("z", { namespace: "shop", data: { color: "red" } }));
    await rig.until(() => count() === 22, 900);
    const errors = rig.lines.filter((line) => line.startsWith("error")).join("\n");
    assert.match(errors, /widgets cannot map ConfigMap shop\/a19: no data in a19/);
    assert.match(errors, /widgets cannot map ConfigMap shop\/none: 5 is no key/);
  });
});
