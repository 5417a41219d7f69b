/**
 * `deno task soak [--minutes 10] [--seed S]`: informers behind a network that breaks in every way a seed can
 * think of, in front of a real kube-apiserver that is killed and compacted, while writers continue.
 *
 * Twice a minute or so the faults and the writers pause. Then every informer must have caught up within
 * 60 seconds, and its store, its index and the notifications of its handlers must equal what the server
 * lists. Two of the informers are served to readers, good and bad ones, and what the good ones hold
 * must equal what is served. At the end memory must be flat. The seed repeats the plan of faults and
 * writes, though not the timing of a real server.
 *
 * Exit code 1: something differed, did not catch up, or memory grew. 130: interrupted.
 *
 * @module
 */

import { type Metrics, newCluster } from "@listwatch/cache";
import { loadKubeconfig, restConfigFromKubeconfig } from "@listwatch/cache/node";
import { sleepUnlessAborted } from "../src/util/abort.ts";
import { realClock } from "../src/util/clock.ts";
import { seededRandom } from "../src/testing/seeded_random.ts";
import { FaultProxy } from "../tests/soak/fault_proxy.ts";
import { FAULT_KINDS, newFaultCounts, planFaults, runFaults } from "../tests/soak/faults.ts";
import { type MemorySample, memoryTrend } from "../tests/soak/memory_trend.ts";
import { ServedReaders } from "../tests/soak/served_readers.ts";
import { SOAK_RESOURCES, SoakWriter, writeMarkers } from "../tests/soak/soak_writers.ts";
import { SoakedInformer, type SoakedOptions, type SoakedPaths } from "../tests/soak/soaked_informer.ts";
import { startCluster, type TestCluster } from "./lib/cluster.ts";
import { optionsOf, runClusterTask, UsageError } from "./lib/cluster_task.ts";

const usage = `Usage: deno task soak [options]

Minutes of broken network before a real kube-apiserver: nothing may differ, memory must be flat.

  --minutes N  how long (default: 10)
  --seed S     which faults and writes (default: a random one)
  --help       show this text
`;

const NAMESPACES = ["soak-north", "soak-south"];
const NAMES = 150;
const WRITERS_PER_RESOURCE = 3;
const WRITE_PAUSE_MS = 300;
const FAULT_PAUSE_MS = 1_000;
const ROUND_MS = 30_000;
const CATCH_UP_MS = 60_000;
const SAMPLE_MS = 5_000;
const WARM_UP_MS = 60_000;
const MAX_GROWTH = 0.15;

const INFORMERS: readonly SoakedOptions[] = [
  { name: "configmaps, usual delays", resource: "v1/configmaps", usualDelays: true },
  { name: "configmaps, resynced", resource: "v1/configmaps", resyncPeriodMs: 7_000 },
  {
    name: "configmaps, listed by 20",
    resource: "v1/configmaps",
    reflector: { useWatchList: false, watchListPageSize: 20 },
  },
  {
    name: "configmaps, listed, DeltaFIFO",
    resource: "v1/configmaps",
    deltaFifo: true,
    reflector: { useWatchList: false },
  },
  { name: "configmaps of one namespace", resource: "v1/configmaps", namespace: NAMESPACES[0] },
  { name: "pods", resource: "v1/pods" },
  {
    name: "pods, listed by 50",
    resource: "v1/pods",
    reflector: { useWatchList: false, watchListPageSize: 50 },
  },
  { name: "pods of the red team", resource: "v1/pods", labelSelector: "team=red" },
  { name: "pods' metadata, DeltaFIFO", resource: "v1/pods", metadataOnly: true, deltaFifo: true },
];

// One of each resource, with all of its objects.
const SERVED = ["configmaps, resynced", "pods"];

/** What the informers measured: the sums, by name and reason or type. */
class Sums implements Metrics {
  readonly #sums = new Map<string, Map<string, number>>();

  count(name: string, value: number, { reason, type }: Readonly<Record<string, string>>): void {
    let parts = this.#sums.get(name);
    if (parts === undefined) this.#sums.set(name, parts = new Map());
    const part = reason ?? type ?? "";
    parts.set(part, (parts.get(part) ?? 0) + value);
  }

  gauge(): void {}

  observe(): void {}

  total(name: string): number {
    let total = 0;
    for (const value of this.#sums.get(name)?.values() ?? []) total += value;
    return total;
  }

  byPart(name: string): string {
    const parts = [...this.#sums.get(name) ?? []].sort(([, a], [, b]) => b - a);
    return parts.map(([part, value]) => `${part} ${value}`).join(", ") || "none";
  }
}

/** A soak under way. */
class Soak {
  readonly #cluster: TestCluster;
  readonly #paths: SoakedPaths;
  readonly #proxy: FaultProxy;
  readonly #seed: number;
  readonly #sums = new Sums();
  readonly #samples: MemorySample[] = [];
  readonly #informers: SoakedInformer[] = [];
  readonly #writers: SoakWriter[] = [];
  #readers: ServedReaders | undefined;
  readonly #startMs = performance.now();
  readonly #faults = newFaultCounts();
  #kills = 0;
  #compactions = 0;
  #checkpoints = 0;
  #divergence = 0;
  #slowestCatchUpMs = 0;
  #failure: string | undefined;

  constructor(cluster: TestCluster, proxy: FaultProxy, paths: SoakedPaths, seed: number) {
    this.#cluster = cluster;
    this.#proxy = proxy;
    this.#paths = paths;
    this.#seed = seed;
  }

  /** Runs it; false if something was wrong. */
  async run(minutes: number, signal: AbortSignal): Promise<boolean> {
    try {
      await this.#prepare();
      const sampling = new AbortController();
      const sampled = this.#sampleMemory(sampling.signal);
      try {
        await this.#rounds(minutes * 60_000, signal);
      } finally {
        sampling.abort();
        await sampled;
      }
    } finally {
      await this.#readers?.stop();
      await Promise.all(this.#informers.map((informer) => informer.stop()));
    }
    return this.#report();
  }

  #random(stream: number): () => number {
    return seededRandom(this.#seed * 1_009 + stream);
  }

  async #prepare(): Promise<void> {
    const cluster = newCluster(this.#paths.direct);
    const namespaces = cluster.resource("v1/namespaces");
    for (const name of NAMESPACES) await namespaces.create({ metadata: { name } });
    for (const [r, resource] of SOAK_RESOURCES.entries()) {
      for (let i = 0; i < WRITERS_PER_RESOURCE; i++) {
        this.#writers.push(
          new SoakWriter({
            cluster,
            resource,
            namespaces: NAMESPACES,
            names: NAMES,
            random: this.#random(100 * (r + 1) + i),
            meanPauseMs: WRITE_PAUSE_MS,
          }),
        );
      }
      await this.#writers.at(-1)!.fill();
    }
    for (const [i, options] of INFORMERS.entries()) {
      const context = { metrics: this.#sums, random: this.#random(300 + i) };
      this.#informers.push(new SoakedInformer(this.#paths, options, context));
    }
    const served = this.#informers.filter(({ name }) => SERVED.includes(name));
    this.#readers = new ServedReaders(served, this.#random(400));
    await this.#readers.start();
  }

  async #rounds(lengthMs: number, signal: AbortSignal): Promise<void> {
    const plan = planFaults(this.#random(1), FAULT_PAUSE_MS);
    const operator = this.#random(2);
    console.log(HEADER);
    while (!signal.aborted && this.#failure === undefined && this.#elapsedMs() < lengthMs) {
      const round = new AbortController();
      const roundSignal = AbortSignal.any([round.signal, signal]);
      const busy = [
        runFaults(this.#proxy, plan, { counts: this.#faults, signal: roundSignal }),
        this.#operate(operator, roundSignal),
        this.#readers!.run(roundSignal),
        ...this.#writers.map((writer) => writer.run(roundSignal)),
      ];
      const timer = setTimeout(() => round.abort(), ROUND_MS);
      try {
        // One that fails ends the round, and the others with it.
        for (const task of busy) task.catch(() => round.abort());
        await Promise.all(busy);
      } finally {
        clearTimeout(timer);
        round.abort();
        await Promise.allSettled(busy);
      }
      if (!signal.aborted) await this.#checkpoint(signal);
    }
  }

  /** Server faults: in some rounds a crash, in some a compaction, in some both. */
  async #operate(random: () => number, signal: AbortSignal): Promise<void> {
    const [compactsAtMs, isKilled, killedAtMs, downMs] = [
      random() * 30_000,
      random() < 0.3,
      random() * 15_000,
      random(),
    ];
    if (compactsAtMs < killedAtMs || (!isKilled && compactsAtMs < 15_000)) {
      if (!await sleepUnlessAborted(compactsAtMs, { clock: realClock, signal })) return;
      await this.#cluster.compact();
      this.#compactions++;
    }
    if (!isKilled) return;
    if (!await sleepUnlessAborted(Math.max(0, killedAtMs - compactsAtMs), { clock: realClock, signal })) {
      return;
    }
    this.#kills++;
    await this.#cluster.kill();
    await sleepUnlessAborted(downMs * 6_000, { clock: realClock, signal });
    await this.#cluster.restart();
  }

  async #checkpoint(signal: AbortSignal): Promise<void> {
    const startMs = Date.now();
    const cluster = newCluster(this.#paths.direct);
    const markers = new Map<string, Map<string, string>>();
    for (const resource of SOAK_RESOURCES) {
      markers.set(resource, await writeMarkers(cluster, resource, NAMESPACES));
    }
    const late: string[] = [];
    await Promise.all(this.#informers.map(async (informer) => {
      // An informer that waits between two tries has that time in
      // addition: it cannot know that the server is back.
      const limitMs = Math.max(Date.now(), informer.nextTryMs) + CATCH_UP_MS - Date.now();
      try {
        const limit = AbortSignal.any([signal, AbortSignal.timeout(limitMs)]);
        await informer.catchUp(markers.get(informer.resource)!, limit);
      } catch (error) {
        if (signal.aborted) return;
        const seconds = Math.round((Date.now() - startMs) / 1_000);
        late.push(
          `${informer.name} did not catch up within ${seconds} s: ${
            error instanceof Error ? error.message : error
          }\n` +
            `    status: ${JSON.stringify(informer.informer.status())}`,
        );
      }
    }));
    if (signal.aborted) return;
    const catchUpMs = Date.now() - startMs;
    this.#slowestCatchUpMs = Math.max(this.#slowestCatchUpMs, catchUpMs);
    let objects = 0;
    const differences: string[] = [];
    for (const informer of this.#informers) {
      const compared = await informer.compare();
      objects += compared.objects;
      differences.push(...compared.differences.map((difference) => `${informer.name}: ${difference}`));
    }
    differences.push(...await this.#readers!.compare(CATCH_UP_MS));
    this.#checkpoints++;
    this.#divergence += differences.length;
    console.log(this.#line({ objects, catchUpMs, divergence: differences.length }));
    for (const text of late) console.error(`  ${text}`);
    for (const text of differences.slice(0, 20)) console.error(`  ${text}`);
    if (late.length > 0) this.#failure = "a store did not catch up";
    else if (differences.length > 0) {
      this.#failure = "a store, index or handler differs from the server, or a reader from what is served";
    }
  }

  #line(
    { objects, catchUpMs, divergence }: { objects: number; catchUpMs: number; divergence: number },
  ): string {
    const { heapBytes, rssBytes } = this.#sample();
    return [
      clockTime(this.#elapsedMs()),
      objects,
      this.#written(),
      this.#sums.total("reflector_events_total"),
      this.#sums.total("reflector_relists_total"),
      this.#sums.total("reflector_reconnects_total"),
      this.#faultsTotal(),
      this.#kills,
      this.#compactions,
      this.#readers!.counts.bad,
      this.#readers!.counts.refused,
      this.#readers!.counts.ended,
      `${(catchUpMs / 1_000).toFixed(1)} s`,
      mebibytes(heapBytes),
      mebibytes(rssBytes),
      divergence,
    ].map((cell, i) => String(cell).padStart(COLUMNS[i].length)).join("  ");
  }

  async #sampleMemory(signal: AbortSignal): Promise<void> {
    while (await sleepUnlessAborted(SAMPLE_MS, { clock: realClock, signal })) {
      this.#samples.push(this.#sample());
    }
  }

  /** After a collection, so that what is left is in use. */
  #sample(): MemorySample {
    (globalThis as { gc?: () => void }).gc?.();
    const { heapUsed, rss } = Deno.memoryUsage();
    return { timeMs: this.#elapsedMs(), heapBytes: heapUsed, rssBytes: rss };
  }

  #report(): boolean {
    const lengthMs = this.#elapsedMs();
    const warmUpMs = Math.min(WARM_UP_MS, lengthMs / 4);
    const received = this.#informers.reduce((sum, informer) => sum + informer.received, 0);
    const faults = FAULT_KINDS.map((kind) => `${kind} ${this.#faults[kind]}`).join(", ");
    console.log(`
seed ${this.#seed}, ${clockTime(lengthMs)}: ${this.#informers.length} informers, ${this.#written()} writes, \
${this.#sums.total("reflector_events_total")} events, ${received} notifications
faults: ${faults}; server killed ${this.#kills} times, compacted ${this.#compactions} times
connections through the proxy: ${this.#proxy.accepted}
readers of the served copies: ${this.#readers!.counts.bad} that read badly, ${
      this.#readers!.counts.refused
    } refused with 429, ${this.#readers!.counts.ended} watches ended, ${
      this.#readers!.counts.forbidden
    } times 403, ${this.#readers!.counts.renewed} tokens
relists: ${this.#sums.byPart("reflector_relists_total")}
reconnects: ${this.#sums.byPart("reflector_reconnects_total")}
slowest checkpoint: ${(this.#slowestCatchUpMs / 1_000).toFixed(1)} s`);
    let isFlat = true;
    for (const [figure, name] of [["heapBytes", "heap after collection"], ["rssBytes", "RSS"]] as const) {
      const trend = memoryTrend(this.#samples, figure, warmUpMs);
      if (trend === undefined) {
        console.log(`${name}: too few samples`);
        continue;
      }
      const isFigureFlat = trend.growth <= MAX_GROWTH;
      isFlat &&= isFigureFlat;
      console.log(
        `${name}: ${mebibytes(trend.firstBytes)} in the first third, ${
          mebibytes(trend.lastBytes)
        } in the last ` +
          `(${(trend.growth * 100).toFixed(1)} %): ${isFigureFlat ? "flat" : "GROWS"}`,
      );
    }
    if (this.#failure === undefined && this.#checkpoints === 0) this.#failure = "no checkpoint was reached";
    if (!isFlat) this.#failure ??= "memory grows";
    const verdict = this.#failure === undefined ? "passed" : `FAILED: ${this.#failure}`;
    console.log(`${this.#checkpoints} checkpoints, divergence ${this.#divergence}: ${verdict}`);
    return this.#failure === undefined;
  }

  #written(): number {
    return this.#writers.reduce((sum, { written }) => sum + written, 0);
  }

  #faultsTotal(): number {
    return FAULT_KINDS.reduce((sum, kind) => sum + this.#faults[kind], 0);
  }

  #elapsedMs(): number {
    return performance.now() - this.#startMs;
  }
}

const COLUMNS = [
  " time",
  "objects",
  "writes",
  " events",
  "relists",
  "reconnects",
  "faults",
  "kills",
  "compactions",
  "readers",
  " 429s",
  "ended",
  "caught up",
  "     heap",
  "      RSS",
  "divergence",
];
const HEADER = COLUMNS.join("  ");

function clockTime(ms: number): string {
  const seconds = Math.round(ms / 1_000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}

function mebibytes(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(1)} MiB`;
}

function parse(args: string[]): { minutes: number; seed: number } | "help" {
  const values = optionsOf(args, {
    minutes: { type: "string" },
    seed: { type: "string" },
    help: { type: "boolean" },
  });
  if (values.help) return "help";
  const minutes = Number(values.minutes ?? 10);
  if (!(minutes > 0)) throw new UsageError(`--minutes ${values.minutes} is no time: use a number above 0`);
  const seed = values.seed === undefined ? Math.floor(Math.random() * 2 ** 20) : Number(values.seed);
  if (!Number.isInteger(seed)) throw new UsageError(`--seed ${values.seed} is no seed: use a whole number`);
  return { minutes, seed };
}

async function main(args: string[], signal: AbortSignal): Promise<number> {
  const options = parse(args);
  if (options === "help") {
    console.log(usage);
    return 0;
  }
  const { minutes, seed } = options;
  await using cluster = await startCluster({ signal });
  await using proxy = await FaultProxy.start({ port: cluster.port });
  const direct = await restConfigFromKubeconfig(await loadKubeconfig({ path: cluster.kubeconfigPath }));
  const faulty = { ...direct, server: `https://127.0.0.1:${proxy.port}` };
  console.log(
    `seed ${seed}: ${minutes} minutes on ${cluster.server}, behind a proxy on port ${proxy.port}`,
  );
  const isWell = await new Soak(cluster, proxy, { faulty, direct }, seed).run(minutes, signal);
  if (signal.aborted) {
    console.error("interrupted");
    return 130;
  }
  return isWell ? 0 : 1;
}

if (import.meta.main) await runClusterTask(main, usage);
