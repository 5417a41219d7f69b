import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type Metrics, newCluster, SharedIndexInformer, silentLogger } from "@listwatch/cache";
import { FakeClock, InMemoryApiServer, pod } from "@listwatch/cache/testing";
import { ReflectorMetrics } from "../../src/reflector/reports.ts";
import { at, newRun, openWatch, page } from "./scripted_source.ts";

/** Metrics that are kept: sums of counters, last values of gauges, all values of histograms. */
class Kept implements Metrics {
  readonly counters = new Map<string, number>();
  readonly gauges = new Map<string, number>();
  readonly values = new Map<string, number[]>();

  count(name: string, value: number, labels: Readonly<Record<string, string>>): void {
    const key = keyOf(name, labels);
    this.counters.set(key, (this.counters.get(key) ?? 0) + value);
  }

  gauge(name: string, value: number, labels: Readonly<Record<string, string>>): void {
    this.gauges.set(keyOf(name, labels), value);
  }

  observe(name: string, value: number, labels: Readonly<Record<string, string>>): void {
    const key = keyOf(name, labels);
    this.values.set(key, [...(this.values.get(key) ?? []), value]);
  }
}

function keyOf(name: string, { name: _, ...labels }: Readonly<Record<string, string>>): string {
  return [name, ...Object.values(labels)].join(" ");
}

async function until(clock: FakeClock, condition: () => boolean): Promise<void> {
  for (let i = 0; i < 200 && !condition(); i++) await clock.advance(100);
  assert.ok(condition());
}

describe("Metrics of an informer", () => {
  it("report lists, watches, events by type, reconnects, what was quarantined, and the position of the store", async () => {
    const clock = new FakeClock(1_000_000);
    const server = new InMemoryApiServer({ clock });
    for (const name of ["a", "b", "c"]) server.create("v1/pods", pod(name, { namespace: "shop" }));
    const metrics = new Kept();
    const source = newCluster({ server: "http://in-memory", fetch: server.fetch, clock }).resource("v1/pods");
    const informer = new SharedIndexInformer(source, {
      clock,
      metrics,
      logger: silentLogger,
      indexers: {
        strict: (object) => {
          if (object.metadata?.name === "bad") throw new Error("no");
          return [];
        },
      },
    });
    informer.addEventHandler({ onAdd: () => {} }, { name: "mine" });
    await using _running = informer.start();
    await until(clock, () => informer.hasSynced() && server.openWatches === 1);
    server.create("v1/pods", pod("d", { namespace: "shop" }));
    server.create("v1/pods", pod("bad", { namespace: "shop" }));
    server.delete("v1/pods", "shop/a");
    await until(clock, () => informer.indexer.size === 3);
    await clock.advance(10_000);
    server.closeWatches();
    await until(clock, () => server.openWatches === 1);

    assert.equal(metrics.counters.get("reflector_lists_total"), 1);
    assert.deepEqual(metrics.values.get("reflector_items_per_list"), [3]);
    assert.ok(metrics.counters.get("reflector_watch_bytes_total")! > 500);
    assert.equal(metrics.counters.get("reflector_watches_total"), 2);
    assert.equal(metrics.counters.get("reflector_reconnects_total closed"), 1);
    assert.equal(metrics.counters.get("reflector_events_total ADDED"), 2);
    assert.equal(metrics.counters.get("reflector_events_total DELETED"), 1);
    assert.equal(metrics.counters.get("reflector_quarantined_total"), 1);
    assert.equal(metrics.gauges.get("informer_objects"), 3);
    assert.equal(String(metrics.gauges.get("informer_store_resource_version")), server.resourceVersion);
    assert.ok(metrics.gauges.get("reflector_last_contact_timestamp_seconds")! >= 1_000);
    assert.equal(metrics.values.get("informer_sync_duration_seconds")?.length, 1);
    const handler = "informer_handler_duration_seconds v1/pods: mine";
    const handled = [...metrics.values].find(([key]) => key.startsWith("informer_handler_duration_seconds"));
    assert.equal(handled?.[1].length, 5, handler);
    server.close();
  });

  it("count relists by what ended the watch", async () => {
    const clock = new FakeClock();
    const server = new InMemoryApiServer({ clock });
    server.create("v1/pods", pod("a", { namespace: "shop" }));
    const metrics = new Kept();
    const source = newCluster({ server: "http://in-memory", fetch: server.fetch, clock }).resource("v1/pods");
    const informer = new SharedIndexInformer(source, { clock, metrics, logger: silentLogger });
    await using _running = informer.start();
    await until(clock, () => informer.hasSynced() && server.openWatches === 1);
    server.create("v1/pods", pod("b", { namespace: "shop" }));
    await until(clock, () => informer.indexer.size === 2);
    await clock.advance(10_000);
    server.closeWatches({ reset: true });
    server.create("v1/pods", pod("c", { namespace: "shop" }));
    server.compact();
    await until(clock, () => informer.indexer.size === 3);
    const relists = [...metrics.counters].filter(([key]) => key.startsWith("reflector_relists_total"));
    assert.deepEqual(relists, [["reflector_relists_total Expired", 1]]);
    server.close();
  });
});

describe("ReflectorOptions.metrics", () => {
  it("receive how long and how large lists and watches were, and when the server last had contact", async () => {
    const metrics = new Kept();
    const watch = openWatch();
    const script = [{ list: page("a@1 b@2", "10") }, { watch }, { watch: openWatch() }];
    await using run = newRun(script, { metrics });
    await run.clock.advance(1_000);
    await run.start();
    const contactSeconds = () => metrics.gauges.get("reflector_last_contact_timestamp_seconds");
    assert.equal(contactSeconds(), 1);
    await run.clock.advance(20_000);
    watch.add(at("c@11"));
    await run.clock.advance(10_000);
    assert.equal(contactSeconds(), 21);
    watch.stop();
    await run.clock.advance(0);
    assert.deepEqual(Object.fromEntries(metrics.values), {
      reflector_list_duration_seconds: [0],
      reflector_items_per_list: [2],
      reflector_watch_duration_seconds: [30],
      reflector_items_per_watch: [1],
    });
    assert.deepEqual(Object.fromEntries(metrics.counters), {
      reflector_lists_total: 1,
      reflector_watches_total: 2,
      "reflector_events_total ADDED": 1,
      "reflector_reconnects_total closed": 1,
    });
  });
});

describe("ReflectorMetrics", () => {
  it("are in seconds, count only what they name, and carry the name of the reflector", async () => {
    const clock = new FakeClock(1_000_000);
    const seen: string[] = [];
    const note = (kind: string) => (name: string, value: number, labels: object) =>
      void seen.push(`${kind} ${name.replace("reflector_", "")} ${value} ${Object.values(labels).join(" ")}`);
    const kept: Metrics = { count: note("+"), gauge: note("="), observe: note("~") };
    const metrics = new ReflectorMetrics(kept, { name: "pods", clock });
    metrics.cycleBegins(undefined);
    metrics.cycleBegins(new Error("odd"));
    const stored = metrics.listBegins();
    await clock.advance(1_500);
    stored(3);
    metrics.watchEnds({ lastedMs: 2_500, events: 7, isVeryShort: false });
    metrics.watchEnds({ lastedMs: 500, events: 0, isVeryShort: true });
    metrics.reconnects(undefined);
    metrics.contact(clock.now());
    metrics.onListBytes(10);
    metrics.onWatchBytes(20);
    assert.deepEqual(seen, [
      "+ relists_total 1 pods Other",
      "+ lists_total 1 pods",
      "~ list_duration_seconds 1.5 pods",
      "~ items_per_list 3 pods",
      "~ watch_duration_seconds 2.5 pods",
      "~ items_per_watch 7 pods",
      "~ watch_duration_seconds 0.5 pods",
      "~ items_per_watch 0 pods",
      "+ short_watches_total 1 pods",
      "+ reconnects_total 1 pods closed",
      "= last_contact_timestamp_seconds 1001.5 pods",
      "+ list_bytes_total 10 pods",
      "+ watch_bytes_total 20 pods",
    ]);
  });
});
