/**
 * The program under test: one informer with its handlers, and its invariants.
 * @module
 */

import {
  type Logger,
  NetworkError,
  newCluster,
  parseResource,
  SharedIndexInformer,
  shortTexts,
} from "@listwatch/cache";
import type { FetchFunction } from "@listwatch/cache/client";
import type { StoreEvent } from "@listwatch/cache/informer";
import { DeltaFIFO } from "@listwatch/cache/queue";
import type { StreamPause } from "@listwatch/cache/reflector";
import { type Call, Callers } from "./callers.ts";
import { type ClusterModel, isWithin, type Scope, type SimObject, stateOf } from "./cluster_model.ts";
import { SMALL_FRAME_BYTES } from "./cluster_model.ts";
import { ConsistentReader, type ConsistentReaderConfig } from "./consistent_reader.ts";
import { CountedSignals } from "./counted_signals.ts";
import type { CountingSignal } from "../counting_signal.ts";
import { differenceOf, type HandlerConfig, HandlerProbe, headOf } from "./handler_probe.ts";
import { checkIndices, type IndexName, newIndexers } from "./indices.ts";
import type { CountedReadApi } from "../nothing_left.ts";
import { Judge, type Mood } from "./judge.ts";
import { differenceInResyncs } from "./resyncs.ts";
import { Meddler } from "./meddler.ts";
import { SeededRandom } from "./seeded_random.ts";
import { type ReaderConfig, serve, ServedReader } from "./served_reader.ts";
import { isSameValue, type ViewName, VIEWS } from "./views.ts";
import type { VirtualTime } from "./virtual_time.ts";
import { Workers } from "./workers.ts";
import { plainObjects } from "../storages.ts";

/** How a program is set up. */
export interface ProgramConfig {
  readonly scope: Scope;
  readonly useWatchList: boolean;
  readonly pageSize: number;
  readonly queue: "real" | "delta";
  readonly resyncPeriodMs: number;
  /** What refuses an object with `spec.bad`. */
  readonly refuses: "nothing" | "schema" | "index" | "transform";
  /** The fields that the informer keeps. */
  readonly view: ViewName;
  readonly storage: "objects" | "encoded" | "plain";
  /** How many objects of a list it processes per turn of the event loop. */
  readonly turnObjects: number;
  /** Whether it adds indices and handlers in the middle of that. */
  readonly meddles: boolean;
  readonly notifyUnchanged: boolean;
  /** How it is run and stopped: by the signal of `run` or `start`, or by `stop`. */
  readonly endsBy: "run" | "start" | "stop";
  readonly smallFrames: boolean;
  /** How many workers reconcile what it holds. */
  readonly workers: number;
  /** How many events its readers may be behind; only with the default queue. */
  readonly eventWindow: number;
  /** How many bytes may wait for each of them. */
  readonly watchBufferBytes: number;
  /** The informer's readers over HTTP. */
  readonly readers: readonly ReaderConfig[];
  /** A reader over HTTP that requires fresh answers; only with the default queue. */
  readonly consistentReader: ConsistentReaderConfig | undefined;
  readonly handlers: readonly HandlerConfig[];
  readonly seed: number;
}

/** What a program needs of its world. */
export interface ProgramWorld {
  readonly time: VirtualTime;
  readonly cluster: ClusterModel;
  readonly fetch: FetchFunction;
  /** The `fetch` of requests that reads of the served cache cause. */
  readonly questions: FetchFunction;
  readonly violate: (text: string) => void;
  readonly log: (text: string) => void;
  /** Whether it has no faults. */
  readonly isHealthy: boolean;
  /** Whether older events may come that are not provably sent again: they lead to a list. */
  readonly mayDoubt: boolean;
  /** When the last byte of an answer reached it, in the world's time. */
  readonly lastBytesMs: () => number;
}

const FIRST_RELIST_MS = 60_000;
const LONGEST_RELIST_MS = 1_800_000;
/** The time that failed tries, and the delays after them, may add. */
const RELIST_GRACE_MS = 60_000;
/** A version this far ahead of the server is never reached. */
const NEVER = 1_000_000;
/** How many turns of its own a program may take before it reads what has arrived. */
const TURNS_TO_READ = 10;
/** The number of resyncs to observe of the handler with the fewest. */
const RESYNCS_SEEN = 3;

/** One informer and its handlers. */
export class Program {
  readonly index: number;
  readonly config: ProgramConfig;
  readonly informer: SharedIndexInformer<SimObject, IndexName>;
  readonly #world: ProgramWorld;
  readonly #violate: (text: string) => void;
  readonly #random: SeededRandom;
  readonly #probes: HandlerProbe[] = [];
  readonly #added: HandlerProbe[] = [];
  /** The handlers at the start of the observation of resyncs, with the states that they knew, by key. */
  #resyncing: ReadonlyMap<HandlerProbe, ReadonlyMap<string, string>> = new Map();
  // What the events of `observe` add up to.
  readonly #observed = new Map<string, SimObject>();
  readonly #everStored = new Set<unknown>();
  /** The heads of the same, for handlers that receive those. */
  readonly #everStoredHeads = new Set<string>();
  // What the server held at the resourceVersion of the store.
  readonly #expected = new Map<string, SimObject>();
  // The uid of the stored object at the last look.
  readonly #kept = new Map<string, string>();
  #expectedRevision: number;
  // Whole objects of the server, by the part of them that the informer holds.
  readonly #verified = new WeakMap<SimObject, SimObject>();
  readonly #judge = new Judge();
  readonly #signals = new CountedSignals();
  readonly #stop: CountingSignal;
  readonly #callers: Callers;
  readonly #workers: Workers | undefined;
  readonly #meddler: Meddler | undefined;
  readonly #readers: readonly ServedReader[];
  #served: CountedReadApi | undefined;
  #reading: readonly Promise<void>[] = [];
  readonly #consistentReader: ConsistentReader | undefined;
  readonly #closed: CountingSignal;
  /** How many connection failures its error handler received. */
  #reportedFailures = 0;
  /** The log lines of the current outage, if there is one. */
  #outageLines: string[] = [];
  #dirty = false;
  #floor = 0;
  /** Where a watch may begin, while a proof by state is further than the events that have come. */
  #watchFloor = Infinity;
  #storedRevision = 0;
  /**
   * A watch that began below the floor: a proof by state which is still queued for the store must explain it.
   */
  #earlyWatch: { readonly revision: number; readonly floor: number } | undefined;
  /** Lists take the place of streamed ones. */
  #streamPause: StreamPause | undefined;
  #noStreamsUntilMs = 0;
  // Whether it was watching at the end of the last instant: what
  // it receives in this one may still be of a list.
  #wasWatching = false;
  #isUnavailable = false;
  #lists = 0;
  // The server was restored: whether its versions may be lower from now on, and the store of a lost history.
  #mayGoBack = false;
  #isOfLostHistory = false;
  #hadBookmark = false;
  // The history of the server at the last list.
  #listEpoch = 0;
  #end: (() => Promise<void>) | undefined;
  // The smallest number of listeners on the signal of its run, while it watched.
  #fewestListeners = Infinity;

  constructor(index: number, config: ProgramConfig, world: ProgramWorld) {
    this.index = index;
    this.config = config;
    this.#world = world;
    this.#violate = (text) => world.violate(`informer ${index}: ${text}`);
    this.#random = new SeededRandom(config.seed);
    this.#expectedRevision = 0;
    const { time, fetch } = world;
    this.#stop = this.#signals.make(`informer ${index}`);
    const logger = this.#logger();
    const newSource = (fetch: FetchFunction) =>
      newCluster({ server: `http://api.example/${index}`, fetch, clock: time, logger }).resource(
        parseResource(`v1/${config.scope.resource}`),
        sourceOptions,
      );
    const sourceOptions = {
      ...(config.scope.namespace !== "" && { namespace: config.scope.namespace }),
      ...(config.scope.app !== "" && { labelSelector: `app=${config.scope.app}` }),
      ...(config.refuses === "schema" && { schema: this.#judge.schema }),
      ...VIEWS[config.view].options,
      ...(config.smallFrames && { maxFrameBytes: SMALL_FRAME_BYTES }),
    };
    const source = newSource(fetch);
    // The requests of questions are judged apart.
    source.metadata = () => newSource(world.questions).metadata();
    if (config.meddles) {
      this.#meddler = new Meddler({
        random: new SeededRandom(config.seed ^ 0x3edd1e),
        informer: () => this.informer as never,
        addHandler: (handler) => this.addHandler(handler),
        violate: this.#violate,
      });
    }
    this.informer = new SharedIndexInformer<SimObject, IndexName>(source as never, {
      ...(this.#meddler && { keyFunc: this.#meddler.keyFunc }),
      turnObjects: config.turnObjects,
      name: `informer ${index}`,
      clock: time,
      logger,
      metrics: this.#judge.metrics,
      resyncPeriodMs: config.resyncPeriodMs,
      notifyUnchanged: config.notifyUnchanged,
      storage: STORAGES[config.storage],
      indexers: newIndexers(config.refuses === "index" ? (object) => this.#judge.refuses(object) : undefined),
      ...(config.refuses === "transform" && { transform: this.#judge.transform }),
      ...(config.queue === "delta" && {
        queue: (context) => new DeltaFIFO<SimObject>({ ...context, emitDeltaTypeReplaced: true }),
      }),
      reflector: {
        random: this.#random.fork().next,
        watchErrorHandler: (error) => {
          if (error instanceof NetworkError) this.#reportedFailures++;
        },
        useWatchList: config.useWatchList,
        watchListPageSize: config.pageSize,
      },
    });
    this.informer.observe((event) => this.#observe(event));
    this.#callers = new Callers({
      informer: this.informer as never,
      signals: this.#signals,
      time,
      violate: this.#violate,
      keepsOrder: config.queue === "real",
    });
    for (const handler of config.handlers) this.addHandler(handler);
    if (config.workers > 0) {
      this.#workers = new Workers({
        name: `informer ${index}`,
        count: config.workers,
        informer: this.informer as never,
        time,
        random: this.#random.fork(),
        signals: this.#signals,
        violate: world.violate,
      });
      this.informer.addEventHandler(this.#workers);
    }
    this.#closed = this.#signals.make(`the readers of informer ${index}`);
    this.#readers = this.#serve();
    const { consistentReader } = config;
    if (config.queue === "delta" || consistentReader === undefined) return;
    this.#consistentReader = new ConsistentReader(consistentReader, {
      name: `informer ${index}, consistent reader`,
      informer: this.informer as never,
      scope: config.scope,
      cluster: world.cluster,
      random: new SeededRandom(consistentReader.seed),
      isInDoubt: () => this.#isOfLostHistory,
      mayLack: (object) => this.#mayLack(object, false),
      time,
      log: world.log,
      violate: world.violate,
    });
  }

  #serve(): ServedReader[] {
    const { index, informer, config } = this;
    if (config.queue === "delta" || config.readers.length === 0) return [];
    const { resource } = config.scope;
    const { eventWindow, watchBufferBytes } = config;
    const common = { time: this.#world.time, signal: this.#closed.signal };
    const random = new SeededRandom(config.seed ^ 0x5e4e).next;
    const settings = { ...common, resource, eventWindow, watchBufferBytes, random };
    const served = this.#served = serve(informer, settings);
    return config.readers.map((reader, n) =>
      new ServedReader(reader, resource, {
        ...common,
        name: `informer ${index}, reader ${n}`,
        fetch: async (path) => await served.api.request(path),
        informer,
        wasRestored: () => this.#world.cluster.epoch > 0,
        isInDoubt: () => this.#isOfLostHistory,
        violate: this.#world.violate,
      })
    );
  }

  /** Starts the informer. */
  start(): void {
    this.#reading = this.#readers.map((reader) =>
      reader.run().catch((error) =>
        this.#violate(`a reader fails: ${error instanceof Error ? error.stack : error}`)
      )
    );
    this.#consistentReader?.start();
    const { signal } = this.#stop;
    if (this.config.endsBy === "run") {
      const done = this.informer.run(signal);
      this.#end = () => {
        this.#stop.abort();
        return done;
      };
      return;
    }
    const running = this.informer.start(signal);
    this.#end = () => {
      if (this.config.endsBy === "start") this.#stop.abort();
      return this.config.endsBy === "start" ? running.done : running.stop();
    };
  }

  /** Stops it; resolves when nothing is left running. Calls during or after the stop must end. */
  async stop(): Promise<void> {
    if (this.#stop.listeners > this.#fewestListeners) {
      const count = this.#stop.listeners;
      this.#violate(`the signal of its run has ${count} listeners, and had ${this.#fewestListeners}`);
    }
    for (const how of ["waitForVersion", "get"] as const) this.call({ how, ahead: NEVER, key: "a/n0" });
    this.#closed.abort();
    await this.#consistentReader?.stop();
    await this.#workers?.stop();
    await this.#end!();
    // A watch has a timer while a slow reader has not read its last events.
    await Promise.all(this.#reading);
    for (const how of ["synced", "waitForVersion", "get"] as const) {
      this.call({ how, ahead: NEVER, key: "a/n0" });
    }
  }

  /** Checks the reports of an outage; `failures`: how many requests failed to connect. */
  checkOutages(failures: number): void {
    if (this.#reportedFailures < failures) {
      this.#violate(`its error handler received ${this.#reportedFailures} of ${failures} failed connections`);
    }
    if (this.#outageLines.length > 0) {
      this.#violate(`it said "${this.#outageLines[0]}", and never that the server is back`);
    }
    const { outage } = this.informer.status();
    if (outage !== undefined) this.#violate(`its status has an outage: ${JSON.stringify(outage)}`);
  }

  /** The invariants after its stop. */
  checkStopped(): void {
    this.#callers.check();
    for (const left of this.#signals.leftovers()) this.#violate(`listeners are left after the stop: ${left}`);
  }

  /** Checks that readers that have ended leave nothing behind, some time after the stop. */
  checkLeft(): void {
    for (const left of this.#served?.left() ?? []) this.#violate(`${left} after the stop`);
    this.#consistentReader?.checkLeft();
  }

  /** The API server has acknowledged a write. */
  written(): void {
    this.#consistentReader?.written();
  }

  /** Reads over HTTP what the API server has now; whether that was the answer. */
  async readsFresh(): Promise<boolean> {
    return await this.#consistentReader?.succeeds() ?? true;
  }

  /** Sets what it refuses from now on. */
  judge(mood: Mood): void {
    this.#judge.mood = mood;
  }

  /** Adds a caller that waits for it. */
  call(call: Call): void {
    this.#callers.call(call, Math.max(1, this.#world.cluster.revision + call.ahead));
  }

  /** Adds a handler, which may be late. */
  addHandler(config: HandlerConfig): void {
    const probe = new HandlerProbe({
      name: `informer ${this.index}, handler ${this.#added.length}`,
      config,
      time: this.#world.time,
      random: this.#random.fork(),
      violate: this.#world.violate,
      wasRefused: (received) => this.#judge.hasRefused(received),
      wasRestored: () => this.#world.cluster.epoch > 0,
      wasStored: (received) =>
        "key" in received
          ? this.#everStoredHeads.has(headOf(received))
          : this.#everStored.has(this.#identityOf(received)),
    });
    this.#added.push(probe);
    this.#probes.push(probe);
    const options = {
      resyncPeriodMs: config.resyncPeriodMs,
      ...(config.mailboxLimit !== undefined && { mailbox: { limit: config.mailboxLimit } }),
    };
    probe.registration = this.informer.addEventHandler(probe, options);
  }

  /** Removes the first remaining handler. */
  removeHandler(): void {
    const probe = this.#probes.shift();
    if (probe?.registration === undefined) return;
    this.informer.removeEventHandler(probe.registration).then(() => probe.removed());
  }

  /** The server was restored, and lost a part of its history. */
  restored(): void {
    this.#mayGoBack = true;
    this.#isOfLostHistory = true;
    this.#hadBookmark = this.informer.status().lastBookmarkTimeMs !== undefined;
  }

  /**
   * Whether it can detect that its store is of a lost history. While everything up to its version is withheld
   * from it, only bookmarks can show it, if they came before; otherwise any event. Versions that have passed
   * its own look as if nothing had happened. One that has asked for a list knows.
   *
   * The watch that it requests begins at `version`, if there is one: that may be before the version up to
   * which a list has confirmed the content.
   */
  canNoticeRestore(
    { filters, bookmarks, version }: {
      readonly filters: boolean;
      readonly bookmarks: boolean;
      readonly version?: string | null | undefined;
    },
  ): boolean {
    if (!this.#isOfLostHistory || this.#listEpoch === this.#world.cluster.epoch) return true;
    const own = version ?? this.informer.status().resourceVersion;
    const isPassed = this.#world.cluster.revision >= Number(own || "0");
    return !isPassed && (!filters || (bookmarks && this.#hadBookmark));
  }

  /** Objects that it has in a state of the lost history, and that still exist in another state. */
  keysOfLostHistory(): string[] {
    const { cluster } = this.#world;
    const objects = cluster.objects(this.config.scope.resource);
    return this.informer.indexer.listKeys().filter((key) => {
      const object = objects.get(key);
      const stored = this.informer.indexer.getByKey(key);
      return object !== undefined && isWithin(this.config.scope, object) &&
        object.metadata.uid === stored?.metadata.uid &&
        Number(stored.metadata.resourceVersion) > cluster.revision + 1;
    }).sort();
  }

  /** Checks a request: its resourceVersion must not decrease. */
  requested(query: URLSearchParams): void {
    if (query.has("continue")) return;
    const isWatch = query.get("watch") === "true" && query.get("sendInitialEvents") !== "true";
    if (!isWatch) {
      this.#listEpoch = this.#world.cluster.epoch;
      this.#judge.listing();
    } else this.#judge.listed();
    if (!isWatch && this.#lists++ > 0 && this.#world.isHealthy && !this.#isUnavailable) {
      this.#violate("relists without a fault");
    }
    if (query.get("sendInitialEvents") === "true" && this.#world.time.worldNow() < this.#noStreamsUntilMs) {
      this.#violate("requests a streamed list during its own pause of streamed lists");
    }
    const version = query.get("resourceVersion") ?? "";
    if (version === "" || version === "0") {
      const excused = this.#floor === 0 || (version === "" && this.#isUnavailable);
      if (!excused) this.#violate(`requests resourceVersion "${version}" after ${this.#floor}`);
      return;
    }
    const revision = Number(version);
    if (isWatch && revision >= this.#watchFloor) return;
    this.#goBack(revision);
    const isStoreBehind = this.config.queue === "real" && this.#storedRevision < this.#floor;
    if (isWatch && isStoreBehind && revision < this.#floor) {
      this.#earlyWatch = { revision, floor: this.#floor };
      return;
    }
    if (revision < this.#floor) {
      this.#violate(`requests resourceVersion ${revision} after ${this.#floor}`);
    }
    this.#floor = Math.max(this.#floor, revision);
  }

  /** The server refused a resourceVersion: the next list may request the most recent one. */
  unavailable(): void {
    this.#isUnavailable = true;
  }

  /** Whether that was its last response. */
  get isUnavailable(): boolean {
    return this.#isUnavailable;
  }

  /** The invariants at every instant. */
  check(): void {
    const { phase, resourceVersion: version, streamPause, quarantined } = this.informer.status();
    this.#checkFreshness();
    const isDrained = this.#wasWatching && phase === "watching" && this.#world.time.turnMs === 0;
    if (isDrained && quarantined === 0) {
      const found = this.#positionDifference();
      if (found !== undefined) this.#violate(found);
    }
    this.#wasWatching = phase === "watching";
    if (this.#wasWatching) {
      this.#judge.watching(version);
      this.#fewestListeners = Math.min(this.#fewestListeners, this.#stop.listeners);
    }
    this.#callers.check();
    if (streamPause?.untilTimeMs !== this.#streamPause?.untilTimeMs) {
      const { sinceTimeMs = 0, untilTimeMs = 0 } = streamPause ?? {};
      this.#noStreamsUntilMs = this.#world.time.worldNow() + untilTimeMs - sinceTimeMs;
      this.#streamPause = streamPause;
    }
    const revision = Number(version || "0");
    if (version !== "") this.#goBack(revision);
    if (revision < this.#floor && version !== "") {
      this.#violate(`its resourceVersion decreased from ${this.#floor} to ${version}`);
    }
    if (revision > this.#floor) {
      this.#floor = revision;
      this.#isUnavailable = false;
    }
    if (!this.#dirty) return;
    this.#dirty = false;
    this.#checkContent();
    for (const reader of this.#readers) reader.check();
  }

  /** Once after a restore its version may be lower. */
  #goBack(revision: number): void {
    if (!this.#mayGoBack || revision >= this.#floor) return;
    this.#mayGoBack = false;
    this.#floor = revision;
  }

  /**
   * How it differs from the server; `undefined` if it does not. `atLast`: also in objects that it refused for
   * a while as a change; objects that it refused in a list need not come again.
   */
  difference({ atLast = false }: { readonly atLast?: boolean } = {}): string | undefined {
    const { cluster } = this.#world;
    if (!this.informer.hasSynced()) return "it has not synced";
    if (this.#isOfLostHistory) return "it has not listed since the server was restored";
    const found = this.#differenceTo(cluster.objects(this.config.scope.resource), atLast);
    return found === undefined ? this.#positionDifference() : `its store: ${found}`;
  }

  /** Whether it has what the server has, and only a bookmark is missing that says so. */
  get waitsForBookmark(): boolean {
    return this.#positionDifference() !== undefined && this.difference() === this.#positionDifference();
  }

  /** Whether the store is where the reflector is. */
  #positionDifference(): string | undefined {
    if (this.config.queue === "delta") return undefined;
    const stored = this.informer.indexer.lastStoreSyncResourceVersion();
    const { resourceVersion } = this.informer.status();
    return stored === resourceVersion
      ? undefined
      : `its store is at ${stored}, the reflector at ${resourceVersion}`;
  }

  /** How long it may take until a change that was refused is listed: a minute, twice as long each time. */
  get longestRelistMs(): number {
    const { quarantined } = this.informer.status();
    if (this.#world.mayDoubt) return LONGEST_RELIST_MS + RELIST_GRACE_MS;
    return Math.min(LONGEST_RELIST_MS, FIRST_RELIST_MS * 2 ** Math.max(0, quarantined - 1)) + RELIST_GRACE_MS;
  }

  /** How a handler, a worker or a reader differs from the store; `undefined` if none does. */
  handlerDifference(): string | undefined {
    for (const probe of this.#probes) {
      const found = differenceOf(this.#observed, probe.known);
      if (found !== undefined) return `${probe.name}: ${found}`;
      if (!probe.registration!.hasSynced()) return `${probe.name} has not synced`;
    }
    const found = this.#workers?.difference();
    if (found !== undefined) return `a worker of informer ${this.index}: ${found}`;
    for (const [n, reader] of this.#readers.entries()) {
      const found = reader.difference();
      if (found !== undefined) return `informer ${this.index}, reader ${n}: ${found}`;
    }
    return undefined;
  }

  /** Checks the indices, and reads through them, against the store. */
  checkIndices(): void {
    checkIndices(this.informer.indexer, {
      isShared: this.config.storage !== "encoded",
      violate: this.#violate,
    });
    this.#meddler?.check();
  }

  /**
   * How long to observe resyncs so that each handler receives its own,
   * in milliseconds; 0 if no handler has a period.
   */
  get resyncWindowMs(): number {
    return this.#resyncIntervals().reduce((longest, { intervalMs }) => Math.max(longest, intervalMs), 0) *
      RESYNCS_SEEN;
  }

  /** Starts observing resyncs. */
  watchResyncs(): void {
    for (const probe of this.#probes) probe.resyncs.clear();
    this.#resyncing = new Map(this.#probes.map((probe) => [
      probe,
      new Map([...probe.known].map(([key, object]) => [key, stateOf(object)])),
    ]));
  }

  /** Checks the resyncs of that many milliseconds, of objects that have not changed in them. */
  checkResyncs(windowMs: number): void {
    for (const { probe, intervalMs } of this.#resyncIntervals()) {
      // A handler that joins in the middle of a resync receives the rest of
      // it, as in client-go, whatever its own period.
      const before = this.#resyncing.get(probe);
      if (before === undefined) continue;
      const { manner } = probe.config;
      if (manner !== "quick" && manner !== "async") continue; // its notifications may be of an earlier time
      const unchanged = [...probe.known].filter(([key, object]) => before.get(key) === stateOf(object));
      const keys = unchanged.map(([key]) => key);
      const found = differenceInResyncs(probe, { keys, windowMs, intervalMs });
      if (found !== undefined) this.#violate(`${probe.name}: ${found}`);
    }
  }

  /** The resync period of each handler: its own, rounded up to a multiple of the informer's check period. */
  #resyncIntervals(): { readonly probe: HandlerProbe; readonly intervalMs: number }[] {
    let checkMs = this.config.resyncPeriodMs;
    for (const { resyncPeriodMs } of this.config.handlers) {
      if (resyncPeriodMs > 0) checkMs = Math.min(checkMs, resyncPeriodMs);
    }
    return this.#probes.map((probe) => {
      const { resyncPeriodMs } = probe.config;
      if (resyncPeriodMs === 0 || checkMs === 0) return { probe, intervalMs: 0 };
      return { probe, intervalMs: Math.ceil(resyncPeriodMs / checkMs) * checkMs };
    });
  }

  /** Whether this program may refuse an object, and so lack it. */
  #mayLack(object: SimObject, atLast: boolean): boolean {
    const turnedAway = this.#judge.turnedAway.get(stateOf(object));
    if (turnedAway !== undefined && (!atLast || turnedAway === "list")) return true;
    const flaw = this.#world.cluster.flawOf(object);
    if (flaw === undefined) return false;
    if (flaw === "schema") return this.config.refuses !== "nothing";
    return flaw === "huge" ? this.config.smallFrames : true;
  }

  /** Whether a stored object is what the informer must keep of a server's object. */
  #isStored(stored: SimObject, object: SimObject): boolean {
    if (this.#verified.get(stored) === object) return true;
    if (!isSameValue(stored, VIEWS[this.config.view].of(object))) return false;
    this.#verified.set(stored, object);
    return true;
  }

  /** The identity of a state; each read of an encoded object may decode another equal object. */
  #identityOf(object: SimObject | undefined): unknown {
    return this.config.storage === "objects" ? object : stateOf(object);
  }

  #noteStored(object: SimObject): void {
    this.#everStored.add(this.#identityOf(object));
    this.#everStoredHeads.add(headOf(object));
  }

  #observe(event: StoreEvent<SimObject>): void {
    this.#dirty = true;
    const isProof = event.type === "bookmark" && event.byState === true;
    const revision = Number(this.informer.indexer.lastStoreSyncResourceVersion());
    if (isProof) this.#watchFloor = Math.min(this.#watchFloor, this.#storedRevision);
    // An event that the proof has passed leaves the store where it is, and the watch behind it.
    else if (revision !== this.#storedRevision) this.#watchFloor = Infinity;
    this.#storedRevision = revision;
    this.#judgeEarlyWatch();
    switch (event.type) {
      case "added":
      case "updated": {
        const { key, object } = event;
        const before = this.#observed.get(key);
        if (event.type === "added" && before !== undefined) {
          this.#violate(`"added" for ${key}, which is stored`);
        }
        if (event.type === "updated" && this.#identityOf(before) !== this.#identityOf(event.oldObject)) {
          this.#violate(`"updated" for ${key} from ${stateOf(event.oldObject)}, not from ${stateOf(before)}`);
        }
        if (this.#identityOf(this.informer.indexer.getByKey(key)) !== this.#identityOf(object)) {
          this.#violate(`"${event.type}" for ${key}, and the store has something else`);
        }
        this.#observed.set(key, object);
        this.#noteStored(object);
        return;
      }
      case "deleted":
        this.#noteDeleted(event.key);
        if (!this.#observed.delete(event.key) && !this.#isOfLostHistory) {
          this.#violate(`"deleted" for ${event.key}, which is not stored`);
        }
        return;
      case "replaced":
        this.#meddler?.check();
        if (
          !event.isGap && this.#judge.stored() && this.#isOfLostHistory &&
          this.#listEpoch === this.#world.cluster.epoch &&
          // The next list may have been requested already: this one was answered before the restore.
          Number(event.resourceVersion) <= this.#world.cluster.revision
        ) {
          this.#isOfLostHistory = false;
          this.#expectedRevision = 0;
          this.#expected.clear();
        }
        for (const change of event.changes) {
          if (change.type === "deleted") {
            this.#noteDeleted(change.key);
            if (!this.#observed.delete(change.key)) {
              this.#violate(`"deleted" in a list for ${change.key}, which is not stored`);
            }
          } else {
            if (change.type === "added" && this.#observed.has(change.key)) {
              this.#violate(`"added" in a list for ${change.key}, which is stored`);
            }
            this.#observed.set(change.key, change.object);
            this.#noteStored(change.object);
          }
        }
        return;
      case "bookmark":
    }
  }

  /** An object that was deleted in a lost history is not kept: what is there again may be quarantined. */
  #noteDeleted(key: string): void {
    if (this.#isOfLostHistory) this.#kept.delete(key);
  }

  /** The store has come to where the reflector was when it watched from an earlier version. */
  #judgeEarlyWatch(): void {
    if (this.#earlyWatch === undefined || this.#storedRevision < this.#earlyWatch.floor) return;
    const { revision, floor } = this.#earlyWatch;
    this.#earlyWatch = undefined;
    if (revision < this.#watchFloor) this.#violate(`watches from ${revision}, and no proof led to ${floor}`);
  }

  /** The store equals the events of `observe`, and what the server held at the store's resourceVersion. */
  #checkContent(): void {
    const { indexer } = this.informer;
    if (indexer.listKeys().length !== this.#observed.size) {
      this.#violate(
        `the store has ${indexer.listKeys().length} objects, its events make ${this.#observed.size}`,
      );
    }
    for (const [key, object] of this.#observed) {
      if (this.#identityOf(indexer.getByKey(key)) !== this.#identityOf(object)) {
        this.#violate(`the store's ${key} is not what its events make it`);
      }
    }
    if (this.config.queue === "delta") return; // it does not keep the order across keys
    if (this.#isOfLostHistory) return; // a list will replace it
    const revision = Number(indexer.lastStoreSyncResourceVersion() || "0");
    if (revision === 0) return;
    if (revision < this.#expectedRevision) {
      this.#violate(`the store's version decreased from ${this.#expectedRevision} to ${revision}`);
      return;
    }
    this.#moveExpected(revision);
    const found = this.#differenceTo(this.#expected, false);
    if (found !== undefined) this.#violate(`the store is at ${revision}, but ${found}`);
    this.#checkKept();
  }

  /** The last accepted state of a quarantined object stays: nothing that the server still has is deleted. */
  #checkKept(): void {
    if (this.config.scope.app !== "") return; // an object may have left the scope
    for (const [key, uid] of this.#kept) {
      if (this.#observed.has(key)) continue;
      this.#kept.delete(key);
      if (this.#expected.get(key)?.metadata.uid === uid) {
        this.#violate(`it deletes ${key}, which the server still has`);
      }
    }
    for (const [key, { metadata }] of this.#observed) this.#kept.set(key, metadata.uid);
  }

  #moveExpected(revision: number): void {
    const { cluster } = this.#world;
    const { resource } = this.config.scope;
    if (this.#expectedRevision === 0) {
      for (const [key, object] of cluster.stateAt(resource, revision)) this.#expected.set(key, object);
    } else {
      for (let next = this.#expectedRevision + 1; next <= Math.min(revision, cluster.revision); next++) {
        const one = cluster.at(next);
        if (one.resource !== resource) continue;
        if (one.kind === "delete") this.#expected.delete(one.key);
        else this.#expected.set(one.key, one.object);
      }
    }
    this.#expectedRevision = revision;
  }

  /** How the store differs from a state of the server, other than in objects that may be refused. */
  #differenceTo(state: ReadonlyMap<string, SimObject>, atLast: boolean): string | undefined {
    const { scope } = this.config;
    const { cluster } = this.#world;
    const { indexer } = this.informer;
    let count = 0;
    for (const [key, object] of state) {
      const stored = indexer.getByKey(key);
      if (!isWithin(scope, object)) {
        if (stored !== undefined) return `it has ${key} ${stateOf(stored)}, which is out of its scope`;
        continue;
      }
      if (this.#mayLack(object, atLast)) {
        if (stored === undefined) continue;
        count++;
        // The last accepted state may be of a lost history and have a greater
        // version: a list keeps it for a quarantined one.
        if (cluster.epoch > 0) continue;
        if (Number(stored.metadata.resourceVersion) > Number(object.metadata.resourceVersion)) {
          return `${key} is ${stateOf(stored)}, newer than ${stateOf(object)}`;
        }
        continue;
      }
      if (stored === undefined) return `it lacks ${key} ${stateOf(object)}`;
      count++;
      if (stateOf(stored) !== stateOf(object)) return `${key} is ${stateOf(stored)}, not ${stateOf(object)}`;
      if (!this.#isStored(stored, object)) return `${key} ${stateOf(object)} is ${JSON.stringify(stored)}`;
    }
    if (indexer.listKeys().length === count) return undefined;
    for (const key of indexer.listKeys()) {
      if (!state.has(key)) return `it has ${key} ${stateOf(indexer.getByKey(key))}, which is deleted`;
    }
    return undefined;
  }

  /** A copy is not fresh if the last contact is longer ago, whatever the clocks say. */
  #checkFreshness(): void {
    const { time, lastBytesMs } = this.#world;
    // The informer reads what has arrived when it has a turn.
    const silenceMs = time.worldNow() - lastBytesMs() - TURNS_TO_READ * time.turnMs;
    for (const maxAgeMs of [1_000, 30_000, 90_000]) {
      if (silenceMs > maxAgeMs && this.informer.isFresh(maxAgeMs)) {
        this.#violate(`is fresh within ${maxAgeMs} ms, and had no contact for ${silenceMs} ms`);
      }
    }
  }

  /**
   * An outage is logged once, and again where the failure is of another kind: the server refuses, or is not
   * at fault; then its end.
   */
  #warned(message: string): void {
    const lines = this.#outageLines;
    if (message.includes("the server is back after ")) {
      if (lines.length === 0) this.#violate(`"${message}", and it was not lost`);
      this.#outageLines = [];
    } else if (/: (lost the server|the server refuses|the request failed): /.test(message)) {
      lines.push(message);
      if (lines.length > 3) this.#violate(`repeats its log lines: ${lines.join("; ")}`);
    }
  }

  #logger(): Logger {
    const log = (level: string) => (message: string) => {
      this.#world.log(`${level}: ${message}`);
      if (level === "warn") this.#warned(message);
    };
    return { debug: log("debug"), info: log("info"), warn: log("warn"), error: log("error") };
  }
}

const STORAGES: Record<ProgramConfig["storage"], ReturnType<typeof shortTexts> | undefined> = {
  objects: undefined,
  encoded: shortTexts(),
  plain: plainObjects,
};
