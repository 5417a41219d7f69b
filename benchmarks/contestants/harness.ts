/**
 * What every contestant in JavaScript shares: its arguments, its clock, and how it looks at its own
 * memory and event loop. Runs on Node, Deno and Bun.
 *
 * @module
 */

import { readFileSync } from "node:fs";
import process from "node:process";
import { parseArgs } from "node:util";
import { type Measurement, MEASUREMENT_MARK, type Phase, type Task } from "../lib/measurement.ts";
import { LoopProbe } from "./loop_probe.ts";
import { TimeProfile } from "./time_profile.ts";

/** One cache that is measured. Everything but its own work is the harness's. */
export interface Contestant {
  readonly version?: string;
  /**
   * Starts listing and watching, with nothing awaited before. Resolves when the store is filled; `handled`
   * when the handlers were notified of everything, where that is later.
   */
  start(hooks: Hooks): Promise<{ handled?: Promise<unknown> } | void>;
  /** How many objects are stored. */
  size(): number;
  /**
   * Looks up the pods of every node once (or of some, where that takes long); returns how many it was given.
   */
  lookUpNodes?(): number;
  /** As `lookUpNodes`, for namespaces. */
  lookUpNamespaces?(): number;
  /** Any object of the store, always the same one. */
  sample?(): unknown;
}

/** What a contestant reports while it runs. */
export interface Hooks {
  /** A handler received an update. */
  onUpdate(resourceVersion: string): void;
}

/** Measures a contestant as the process's arguments say, prints the measurement, and ends the process. */
export async function measure(newContestant: (task: Task) => Contestant): Promise<void> {
  const task = readTask();
  const profile = task.phases.includes("profile") ? new TimeProfile() : undefined;
  try {
    await print(await measurePhases(task, newContestant(task), profile));
  } catch (error) {
    const { message, cause } = error instanceof Error ? error : new Error(String(error));
    await print({ skipped: cause instanceof Error ? `${message}: ${cause.message}` : message });
  }
  process.exit(0);
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };

async function measurePhases(
  task: Task,
  contestant: Contestant,
  profile: TimeProfile | undefined,
): Promise<Measurement> {
  const result: Writable<Measurement> = { version: contestant.version ?? runtimeVersion() };
  const isMeasured = (phase: Phase) => task.phases.includes(phase);
  // Only where the heap is the question: a collection at the wrong
  // time changes how a runtime sizes its heap later.
  const isWeighed = isMeasured("heap") || isMeasured("relist");
  // The first fetch loads most of the runtime's HTTP client; that is no contestant's cost.
  await (await fetch(`${task.server}/control/stats`)).json();
  const emptyBytes = isWeighed ? await settledHeapBytes() : 0;

  result.startRssBytes = peakRssBytes();
  const updates = new UpdateCounter(task.lastResourceVersion);
  const probe = new LoopProbe();
  probe.start();
  profile?.begin();
  const startMs = performance.now();
  const started = await contestant.start({ onUpdate: (resourceVersion) => updates.seen(resourceVersion) });
  result.syncMs = performance.now() - startMs;
  if (started?.handled) await started.handled;
  result.handledMs = performance.now() - startMs;
  result.syncRssBytes = peakRssBytes();
  result.syncTime = await profile?.end();
  Object.assign(result, await probe.stop());
  result.stored = contestant.size();
  if (result.stored !== task.objects) {
    throw new Error(
      `it said that it had synced with ${result.stored} of ${task.objects} objects in its store`,
    );
  }

  if (isWeighed) result.settledBytes = await settledHeapBytes() - emptyBytes;
  if (isMeasured("index") && contestant.lookUpNodes && contestant.lookUpNamespaces) {
    result.nodeLookupsPerUs = timeLookUps(() => contestant.lookUpNodes!());
    result.namespaceLookupsPerUs = timeLookUps(() => contestant.lookUpNamespaces!());
  }
  if (isMeasured("relist")) {
    const sample = contestant.sample?.();
    updates.begin();
    const peak = new HeapPeak();
    peak.start();
    await post(`${task.server}/control/relist`);
    // The watch may be open before the list is applied and every handler was notified.
    await updates.settled(Math.max(300, task.objects * 0.02));
    result.relistPeakBytes = peak.stop() - emptyBytes;
    result.relistSamples = peak.samples;
    result.relistUpdates = updates.count;
    if (sample !== undefined) result.relistKeepsIdentity = contestant.sample?.() === sample;
  }
  if (isMeasured("burst")) {
    updates.begin();
    profile?.begin();
    await Promise.all([updates.last, post(`${task.server}/control/burst`)]);
    result.burstTime = await profile?.end();
    result.burstMs = updates.lastMs - updates.firstMs;
    result.burstEvents = updates.count;
    result.endRssBytes = peakRssBytes();
  }
  return result;
}

/** Counts updates and notes the time of the first and the last one. */
class UpdateCounter {
  readonly #lastResourceVersion: string;
  readonly #done = Promise.withResolvers<void>();
  count = 0;
  firstMs = 0;
  lastMs = 0;

  constructor(lastResourceVersion: string) {
    this.#lastResourceVersion = lastResourceVersion;
  }

  get last(): Promise<void> {
    return this.#done.promise;
  }

  begin(): void {
    this.count = 0;
  }

  /** Resolves when none has arrived for so long: handlers are notified in turns of their own. */
  async settled(quietMs: number): Promise<void> {
    for (let before = -1; before !== this.count;) {
      before = this.count;
      await new Promise((resolve) => setTimeout(resolve, quietMs));
    }
  }

  seen(resourceVersion: string): void {
    if (this.count++ === 0) this.firstMs = performance.now();
    if (resourceVersion !== this.#lastResourceVersion) return;
    this.lastMs = performance.now();
    this.#done.resolve();
  }
}

/**
 * The highest heap among samples, each taken after a collection: what was held, not what was left to collect.
 * The larger the heap the longer a collection takes, and the longer is the pause before the next one: the
 * contestant has two thirds of the time for itself.
 */
class HeapPeak {
  #timer: ReturnType<typeof setTimeout> | undefined;
  #peak = 0;
  samples = 0;

  start(): void {
    const tick = () => {
      const pauseMs = Math.max(SAMPLE_PAUSE_MS, SAMPLE_PAUSE_RATIO * this.#sample());
      this.#timer = setTimeout(tick, pauseMs);
    };
    tick();
  }

  stop(): number {
    clearTimeout(this.#timer);
    this.#sample();
    return this.#peak;
  }

  /** Returns how many milliseconds the collection took. */
  #sample(): number {
    const startMs = performance.now();
    collect();
    const tookMs = performance.now() - startMs;
    this.#peak = Math.max(this.#peak, heapBytes());
    this.samples++;
    return tookMs;
  }
}

const SAMPLE_PAUSE_MS = 25;
/** The pause is at least so many times as long as the collection was. */
const SAMPLE_PAUSE_RATIO = 2;

/** Objects per microsecond over at least 300 ms, after 100 ms of warming up. */
function timeLookUps(lookUp: () => number): number {
  for (const end = performance.now() + 100; performance.now() < end;) lookUp();
  let found = 0;
  const startMs = performance.now();
  let elapsedMs = 0;
  do {
    found += lookUp();
    elapsedMs = performance.now() - startMs;
  } while (elapsedMs < 300);
  return found / (elapsedMs * 1000);
}

interface Globals {
  gc?: (options?: { type: "minor" }) => void;
  Deno?: { version: { deno: string }; memoryUsage(): { heapUsed: number; external: number } };
  Bun?: { version: string; gc(force: boolean): void };
}
const globals = globalThis as unknown as Globals;

interface JscHeap {
  heapStats(): { heapSize: number };
}
const jsc: JscHeap | undefined = globals.Bun ? await import("bun:jsc" as string) : undefined;

function runtimeVersion(): string {
  if (globals.Deno) return `Deno ${globals.Deno.version.deno}`;
  if (globals.Bun) return `Bun ${globals.Bun.version}`;
  return `Node ${process.versions.node}`;
}

/** Heap and buffers outside of it. */
function heapBytes(): number {
  // It includes the memory outside of cells (`extraMemorySize`): that of strings and of buffers.
  if (jsc) return jsc.heapStats().heapSize;
  const { heapUsed, external } = globals.Deno?.memoryUsage() ?? process.memoryUsage();
  return heapUsed + external;
}

/** The heap after everything was collected that can be. */
async function settledHeapBytes(): Promise<number> {
  for (let i = 0; i < 3; i++) {
    await nextTurn();
    collect();
  }
  return heapBytes();
}

function collect(): void {
  if (globals.Bun) return globals.Bun.gc(true);
  if (!globals.gc) throw new Error("the benchmark must be run with --expose-gc");
  globals.gc();
  // V8 frees dead buffers in the background and counts them until then; the
  // next collection, however small, waits for it.
  globals.gc({ type: "minor" });
}

/** The peak of resident memory of this process. */
function peakRssBytes(): number {
  try {
    const match = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync("/proc/self/status", "utf8"));
    if (match) return Number(match[1]) * 1024;
  } catch {
    // not Linux
  }
  return process.resourceUsage().maxRSS * 1024;
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 20));
}

async function post(url: string): Promise<void> {
  await (await fetch(url, { method: "POST" })).json();
}

function print(result: Measurement): Promise<void> {
  const line = `${MEASUREMENT_MARK}${JSON.stringify(result)}\n`;
  return new Promise((resolve) => process.stdout.write(line, () => resolve()));
}

function readTask(): Task {
  const { values } = parseArgs({
    args: process.argv.slice(2),
    options: {
      server: { type: "string", default: "" },
      objects: { type: "string", default: "0" },
      events: { type: "string", default: "0" },
      "last-resource-version": { type: "string", default: "" },
      variant: { type: "string", default: "" },
      phases: { type: "string", default: "sync" },
      handlers: { type: "string", default: "1" },
      indices: { type: "string", default: "2" },
    },
  });
  return {
    server: values.server,
    objects: Number(values.objects),
    events: Number(values.events),
    lastResourceVersion: values["last-resource-version"],
    variant: values.variant,
    phases: values.phases.split(",") as Phase[],
    handlers: Number(values.handlers),
    indices: Number(values.indices),
  };
}
