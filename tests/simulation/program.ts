/**
 * The program under test: one informer with its handlers, and everything that must be true of it.
 * @module
 */

import { type Logger, NetworkError, newCluster, SharedIndexInformer } from "@listwatch/cache";
import type { FetchFunction } from "@listwatch/cache/client";
import type { StoreEvent } from "@listwatch/cache/informer";
import { DeltaFIFO } from "@listwatch/cache/queue";
import type { StreamPause } from "@listwatch/cache/reflector";
import { type Call, Callers } from "./callers.ts";
import { type ClusterModel, isWithin, type Scope, type SimObject, stateOf } from "./cluster_model.ts";
import { SMALL_FRAME_BYTES } from "./cluster_model.ts";
import { CountedSignals } from "./counted_signals.ts";
import type { CountingSignal } from "../counting_signal.ts";
import { type HandlerConfig, HandlerProbe } from "./handler_probe.ts";
import { checkIndices, type IndexName, newIndexers } from "./indices.ts";
import { Judge, type Mood } from "./judge.ts";
import { differenceInResyncs } from "./resyncs.ts";
import { Meddler } from "./meddler.ts";
import { SeededRandom } from "./seeded_random.ts";
import { type ReaderConfig, serve, ServedReader } from "./served_reader.ts";
import { isSameValue, type ViewName, VIEWS } from "./views.ts";
import type { VirtualTime } from "./virtual_time.ts";
import { Workers } from "./workers.ts";

/** How a program is set up. */
export interface ProgramConfig {
  readonly scope: Scope;
  readonly useWatchList: boolean;
  readonly pageSize: number;
  readonly queue: "real" | "delta";
  readonly resyncPeriodMs: number;
  /** Who objects to an object with `spec.bad`. */
  readonly refuses: "nobody" | "schema" | "index" | "transform";
  /** Which fields it keeps. */
  readonly view: ViewName;
  readonly storage: "objects" | "encoded";
  /** How many objects of a list it works on in a turn of the event loop. */
  readonly turnObjects: number;
  /** Whether other parts of it add indices and handlers in the middle of that. */
  readonly meddles: boolean;
  readonly notifyUnchanged: boolean;
  /** How it is run and stopped: by the signal of `run` or `start`, or by `stop`. */
  readonly endsBy: "run" | "start" | "stop";
  readonly smallFrames: boolean;
  /** How many workers reconcile what it holds. */
  readonly workers: number;
  /** How many events those who read it over HTTP may be behind; only with the default queue. */
  readonly eventWindow: number;
  /** Those who read it over HTTP. */
  readonly readers: readonly ReaderConfig[];
  readonly handlers: readonly HandlerConfig[];
  readonly seed: number;
}

/** What a program needs of its world. */
export interface ProgramWorld {
  readonly time: VirtualTime;
  readonly cluster: ClusterModel;
  readonly fetch: FetchFunction;
  readonly violate: (text: string) => void;
  readonly log: (text: string) => void;
  /** Whether nothing goes wrong in it. */
  readonly isHealthy: boolean;
  /** Whether older events may come, of which nothing proves that they were sent again: they are listed as well. */
  readonly mayDoubt: boolean;
  /** When the last byte of an answer reached it, in the world's time. */
  readonly heardMs: () => number;
}

const FIRST_RELIST_MS = 60_000;
const LONGEST_RELIST_MS = 1_800_000;
/** What tries that fail, and the delays after them, may add. */
const RELIST_GRACE_MS = 60_000;
/** So far ahead of the server no version is reached. */
const NEVER = 1_000_000;
/** So many resyncs of the handler that has the fewest are watched. */
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
  /** The handlers that were there when it was begun to watch resyncs. */
  #resyncing: ReadonlySet<HandlerProbe> = new Set();
  // What the events of `observe` add up to.
  readonly #observed = new Map<string, SimObject>();
  readonly #everStored = new Set<unknown>();
  // What the server held at the resourceVersion that the store stands at.
  readonly #expected = new Map<string, SimObject>();
  // The uid of what was stored when that was looked at last.
  readonly #kept = new Map<string, string>();
  #expectedRevision: number;
  // Whole objects of the server, by what the informer was found to hold of them.
  readonly #verified = new WeakMap<SimObject, SimObject>();
  readonly #judge: Judge;
  readonly #signals = new CountedSignals();
  readonly #stop: CountingSignal;
  readonly #callers: Callers;
  readonly #workers: Workers | undefined;
  readonly #meddler: Meddler | undefined;
  readonly #readers: readonly ServedReader[];
  readonly #closed: CountingSignal;
  /** How many connection failures its error handler heard of. */
  #failuresHeard = 0;
  /** The lines about the outage that goes on, if one does. */
  #outageLines: string[] = [];
  #dirty = false;
  #floor = 0;
  /** Lists take the place of streamed ones. */
  #streamPause: StreamPause | undefined;
  #noStreamsUntilMs = 0;
  // Whether it was watching when the last instant was over: what it then takes in in this one may still be of a list.
  #wasWatching = false;
  #isUnavailable = false;
  #lists = 0;
  // The server was restored: whether its versions may be lower from now on, and what is stored be of a lost history.
  #mayGoBack = false;
  #isOfLostHistory = false;
  #hadBookmark = false;
  #believesVersions = false;
  // The history of the server when everything was last asked for.
  #listEpoch = 0;
  #end: (() => Promise<void>) | undefined;
  // The fewest that listened to the signal it runs by, while it watched.
  #fewestListeners = Infinity;

  constructor(index: number, config: ProgramConfig, world: ProgramWorld) {
    this.index = index;
    this.config = config;
    this.#world = world;
    this.#violate = (text) => world.violate(`informer ${index}: ${text}`);
    this.#random = new SeededRandom(config.seed);
    this.#expectedRevision = 0;
    const { time, fetch } = world;
    this.#judge = new Judge(() => this.#wasWatching && this.informer.status().phase === "watching");
    this.#stop = this.#signals.make(`informer ${index}`);
    const logger = this.#logger();
    const cluster = newCluster({ server: `http://api.example/${index}`, fetch, clock: time, logger });
    const source = cluster.resource(`v1/${config.scope.resource}`, {
      ...(config.scope.namespace !== "" && { namespace: config.scope.namespace }),
      ...(config.scope.app !== "" && { labelSelector: `app=${config.scope.app}` }),
      ...(config.refuses === "schema" && { schema: this.#judge.schema }),
      ...VIEWS[config.view].options,
      ...(config.smallFrames && { maxFrameBytes: SMALL_FRAME_BYTES }),
    });
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
      resyncPeriodMs: config.resyncPeriodMs,
      notifyUnchanged: config.notifyUnchanged,
      storage: config.storage,
      indexers: newIndexers(config.refuses === "index" ? (object) => this.#judge.refuses(object) : undefined),
      ...(config.refuses === "transform" && { transform: this.#judge.transform }),
      ...(config.queue === "delta" && {
        queue: (context) => new DeltaFIFO<SimObject>({ ...context, emitDeltaTypeReplaced: true }),
      }),
      reflector: {
        random: this.#random.fork().next,
        watchErrorHandler: (error) => {
          if (error instanceof NetworkError) this.#failuresHeard++;
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
  }

  #serve(): ServedReader[] {
    const { index, informer, config } = this;
    if (config.queue === "delta" || config.readers.length === 0) return [];
    const { resource } = config.scope;
    const common = { time: this.#world.time, signal: this.#closed.signal };
    const fetch = serve(informer, { ...common, resource, eventWindow: config.eventWindow });
    return config.readers.map((reader, n) =>
      new ServedReader(reader, resource, {
        ...common,
        name: `informer ${index}, reader ${n}`,
        fetch,
        informer,
        wasRestored: () => this.#world.cluster.epoch > 0,
        isInDoubt: () => this.#isOfLostHistory,
        violate: this.#world.violate,
      })
    );
  }

  /** Starts the informer. */
  start(): void {
    for (const reader of this.#readers) {
      reader.run().catch((error) =>
        this.#violate(`a reader fails: ${error instanceof Error ? error.stack : error}`)
      );
    }
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

  /** Stops it; resolves when nothing is left running. Calls that the stop overtakes, or that come after it, must end. */
  async stop(): Promise<void> {
    if (this.#stop.listeners > this.#fewestListeners) {
      const count = this.#stop.listeners;
      this.#violate(`${count} listen to the signal it runs by, which were ${this.#fewestListeners}`);
    }
    for (const how of ["waitFor", "get"] as const) this.call({ how, ahead: NEVER, key: "a/n0" });
    this.#closed.abort();
    await this.#workers?.stop();
    await this.#end!();
    for (const how of ["synced", "waitFor", "get"] as const) this.call({ how, ahead: NEVER, key: "a/n0" });
  }

  /** Checks what was told of a server that was lost; `failures`: how many requests found nobody. */
  checkOutages(failures: number): void {
    if (this.#failuresHeard < failures) {
      this.#violate(`its error handler heard of ${this.#failuresHeard} of ${failures} failed connections`);
    }
    if (this.#outageLines.length > 0) {
      this.#violate(`it said "${this.#outageLines[0]}", and never that the server is back`);
    }
    const { outage } = this.informer.status();
    if (outage !== undefined) this.#violate(`its status has an outage: ${JSON.stringify(outage)}`);
  }

  /** What must be true once it has stopped. */
  checkStopped(): void {
    this.#callers.check();
    for (const left of this.#signals.leftovers()) this.#violate(`listeners are left after the stop: ${left}`);
  }

  /** What it objects to from now on. */
  judge(mood: Mood): void {
    this.#judge.mood = mood;
  }

  /** Somebody waits for it. */
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
      wasRestored: () => this.#world.cluster.epoch > 0,
      wasStored: (object) => this.#everStored.has(this.#identityOf(object)),
    });
    this.#added.push(probe);
    this.#probes.push(probe);
    probe.registration = this.informer.addEventHandler(probe, {
      resyncPeriodMs: config.resyncPeriodMs,
      ...(config.mailboxLimit !== undefined && { mailbox: { limit: config.mailboxLimit } }),
    });
  }

  /** Takes a handler away; the first that is left. */
  removeHandler(): void {
    const probe = this.#probes.shift();
    if (probe?.registration === undefined) return;
    this.informer.removeEventHandler(probe.registration).then(() => probe.removed());
  }

  /** The server was restored, and has forgotten what it told. */
  restored(): void {
    this.#mayGoBack = true;
    this.#isOfLostHistory = true;
    this.#hadBookmark = this.informer.status().lastBookmarkTimeMs !== undefined;
  }

  /**
   * Whether it can notice by itself that what it has is of a lost history. While everything up to its version is kept
   * from it, only bookmarks can show it, which came before; otherwise any event. Versions that have passed its own look
   * as if nothing had happened.
   */
  canNoticeRestore(
    { filters, bookmarks }: { readonly filters: boolean; readonly bookmarks: boolean },
  ): boolean {
    if (!this.#isOfLostHistory) return true;
    const isPassed = this.#world.cluster.revision >= Number(this.informer.status().resourceVersion || "0");
    return !isPassed && (!filters || (bookmarks && this.#hadBookmark));
  }

  /** Objects that it has in a state of the lost history, and that are still there in another. */
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

  /** A request is made: the floor must not sink. */
  requested(query: URLSearchParams): void {
    if (query.has("continue")) return;
    const isWatch = query.get("watch") === "true" && query.get("sendInitialEvents") !== "true";
    if (!isWatch) this.#listEpoch = this.#world.cluster.epoch;
    if (!isWatch && this.#lists++ > 0 && this.#world.isHealthy && !this.#isUnavailable) {
      this.#violate("lists again, and nothing is wrong");
    }
    if (query.get("sendInitialEvents") === "true" && this.#world.time.worldNow() < this.#noStreamsUntilMs) {
      this.#violate("asks for a streamed list, which it said that it would not for a while");
    }
    const version = query.get("resourceVersion") ?? "";
    if (version === "" || version === "0") {
      const excused = this.#floor === 0 || (version === "" && this.#isUnavailable);
      if (!excused) this.#violate(`asks for resourceVersion "${version}", after it was at ${this.#floor}`);
      return;
    }
    const revision = Number(version);
    this.#goBack(revision);
    if (revision < this.#floor) {
      this.#violate(`asks for resourceVersion ${revision}, after it was at ${this.#floor}`);
    }
    this.#floor = Math.max(this.#floor, revision);
  }

  /** The server said that a resourceVersion is not to be had: the next list may ask for the most recent one. */
  unavailable(): void {
    this.#isUnavailable = true;
  }

  /** Whether the server said so last. */
  get isUnavailable(): boolean {
    return this.#isUnavailable;
  }

  /** What must be true at every instant. */
  check(): void {
    const { phase, resourceVersion: version, streamPause } = this.informer.status();
    this.#checkFreshness();
    this.#wasWatching = phase === "watching";
    if (this.#wasWatching) {
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
      this.#violate(`its resourceVersion went back from ${this.#floor} to ${version}`);
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

  /** Once after a restore it comes to a version that is lower. */
  #goBack(revision: number): void {
    if (!this.#mayGoBack || revision >= this.#floor) return;
    this.#mayGoBack = false;
    this.#floor = revision;
  }

  /**
   * Why it does not agree with the server; `undefined` when it does. `atLast`: also of what it refused only for a while,
   * when that came as a change; what it refused in a list it need not be told again.
   */
  difference({ atLast = false }: { readonly atLast?: boolean } = {}): string | undefined {
    const { cluster } = this.#world;
    if (!this.informer.hasSynced()) return "it has not synced";
    if (this.#isOfLostHistory) return "it has not listed since the server was restored";
    const found = this.#differenceTo(cluster.objects(this.config.scope.resource), atLast);
    return found === undefined ? undefined : `its store: ${found}`;
  }

  /** How long it may take until a change that was refused is listed: a minute, twice as long each time. */
  get longestRelistMs(): number {
    const { quarantined } = this.informer.status();
    if (this.#world.mayDoubt) return LONGEST_RELIST_MS + RELIST_GRACE_MS;
    return Math.min(LONGEST_RELIST_MS, FIRST_RELIST_MS * 2 ** Math.max(0, quarantined - 1)) + RELIST_GRACE_MS;
  }

  /** Why a handler, a worker or a reader does not agree with the store; `undefined` when all do. */
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

  /** Checks the indices, and what is read by them, against what is stored. */
  checkIndices(): void {
    checkIndices(this.informer.indexer, this.#violate);
    this.#meddler?.check();
  }

  /** How long resyncs must be watched to see that each handler gets its own, in milliseconds; 0 if nobody gets any. */
  get resyncWindowMs(): number {
    return this.#resyncIntervals().reduce((longest, { intervalMs }) => Math.max(longest, intervalMs), 0) *
      RESYNCS_SEEN;
  }

  /** Begins to watch resyncs. */
  watchResyncs(): void {
    this.#resyncing = new Set(this.#probes);
    for (const probe of this.#probes) probe.resyncs.clear();
  }

  /** Checks the resyncs of that many milliseconds. */
  checkResyncs(windowMs: number): void {
    for (const { probe, intervalMs } of this.#resyncIntervals()) {
      // Who joins in the middle of a resync hears the rest of it, as in client-go, whatever its own period.
      if (!this.#resyncing.has(probe)) continue;
      const { manner } = probe.config;
      if (manner !== "quick" && manner !== "async") continue; // what it is told now may have waited for it
      const found = differenceInResyncs(probe, { windowMs, intervalMs });
      if (found !== undefined) this.#violate(`${probe.name}: ${found}`);
    }
  }

  /** The resync period that each handler gets: its own, as a multiple of how often the informer looks. */
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

  /** Whether this program may refuse an object, and so not have it. */
  #mayLack(object: SimObject, atLast: boolean): boolean {
    const turnedAway = this.#judge.turnedAway.get(stateOf(object));
    if (turnedAway !== undefined && (!atLast || turnedAway === "list")) return true;
    const flaw = this.#world.cluster.flawOf(object);
    if (flaw === undefined) return false;
    if (flaw === "schema") return this.config.refuses !== "nobody";
    return flaw === "huge" ? this.config.smallFrames : true;
  }

  /** Whether what is stored is what the informer must have of an object. */
  #isStored(stored: SimObject, object: SimObject): boolean {
    if (this.#believesVersions || this.#verified.get(stored) === object) return true;
    if (!isSameValue(stored, VIEWS[this.config.view].of(object))) return false;
    this.#verified.set(stored, object);
    return true;
  }

  /** What makes a state the very same one; texts are decoded when somebody asks, and who asks twice may get two. */
  #identityOf(object: SimObject | undefined): unknown {
    return this.config.storage === "objects" ? object : stateOf(object);
  }

  #observe(event: StoreEvent<SimObject>): void {
    this.#dirty = true;
    switch (event.type) {
      case "added":
      case "updated": {
        const { key, object } = event;
        const before = this.#observed.get(key);
        if (event.type === "added" && before !== undefined) {
          this.#violate(`"added" for ${key}, which is there`);
        }
        if (event.type === "updated" && this.#identityOf(before) !== this.#identityOf(event.oldObject)) {
          this.#violate(`"updated" for ${key} from ${stateOf(event.oldObject)}, not from ${stateOf(before)}`);
        }
        if (this.#identityOf(this.informer.indexer.getByKey(key)) !== this.#identityOf(object)) {
          this.#violate(`"${event.type}" for ${key}, and the store has something else`);
        }
        this.#observed.set(key, object);
        this.#everStored.add(this.#identityOf(object));
        return;
      }
      case "deleted":
        if (!this.#observed.delete(event.key) && !this.#isOfLostHistory) {
          this.#violate(`"deleted" for ${event.key}, which is not there`);
        }
        return;
      case "replaced":
        this.#meddler?.check();
        if (this.#isOfLostHistory && this.#listEpoch === this.#world.cluster.epoch) {
          this.#isOfLostHistory = false;
          // A list that looks like a later one of the same history: with a transform, its versions are believed.
          this.#believesVersions = this.config.refuses === "transform" &&
            Number(event.resourceVersion) > this.#expectedRevision;
          this.#expectedRevision = 0;
          this.#expected.clear();
        }
        for (const change of event.changes) {
          if (change.type === "deleted") {
            if (!this.#observed.delete(change.key)) {
              this.#violate(`"deleted" in a list for ${change.key}, which is not there`);
            }
          } else {
            if (change.type === "added" && this.#observed.has(change.key)) {
              this.#violate(`"added" in a list for ${change.key}, which is there`);
            }
            this.#observed.set(change.key, change.object);
            this.#everStored.add(this.#identityOf(change.object));
          }
        }
        return;
      case "bookmark":
    }
  }

  /** The store is what `observe` told, and what the server held at the store's resourceVersion. */
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
    if (this.config.queue === "delta") return; // its order across keys is its own
    if (this.#isOfLostHistory) return; // it will be of the new one by a list
    const revision = Number(indexer.lastStoreSyncResourceVersion() || "0");
    if (revision === 0) return;
    if (revision < this.#expectedRevision) {
      this.#violate(`the store went back from ${this.#expectedRevision} to ${revision}`);
      return;
    }
    this.#moveExpected(revision);
    const found = this.#differenceTo(this.#expected, false);
    if (found !== undefined) this.#violate(`the store stands at ${revision}, but ${found}`);
    this.#checkKept();
  }

  /** Of what is refused the state that is known stays: nothing goes that the server has had all the time. */
  #checkKept(): void {
    if (this.config.scope.app !== "") return; // what has left a scope is another matter
    for (const [key, uid] of this.#kept) {
      if (this.#observed.has(key)) continue;
      this.#kept.delete(key);
      if (this.#expected.get(key)?.metadata.uid === uid) {
        this.#violate(`it drops ${key}, which is still there`);
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

  /** How the store differs from a state of the server, other than by what may be refused. */
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
        // Of a lost history, the known state may have a greater version: a list puts it in the place of a refused object.
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
      if (!state.has(key)) return `it has ${key} ${stateOf(indexer.getByKey(key))}, which is gone`;
    }
    return undefined;
  }

  /** Nothing is fresh of which nothing was heard for longer, whatever the clocks say. */
  #checkFreshness(): void {
    const silenceMs = this.#world.time.worldNow() - this.#world.heardMs();
    for (const maxAgeMs of [1_000, 30_000, 90_000]) {
      if (silenceMs > maxAgeMs && this.informer.isFresh(maxAgeMs)) {
        this.#violate(`says that it is fresh by ${maxAgeMs} ms, and has heard nothing for ${silenceMs} ms`);
      }
    }
  }

  /** A server that is lost is told of once, or twice where it is back and refuses; then that it is back. */
  #warned(message: string): void {
    const lines = this.#outageLines;
    if (message.includes("the server is back after ")) {
      if (lines.length === 0) this.#violate(`"${message}", and it was not lost`);
      this.#outageLines = [];
    } else if (/: (lost the server|the server refuses): /.test(message)) {
      lines.push(message);
      if (lines.length > 2) this.#violate(`tells again of what it has told: ${lines.join("; ")}`);
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

function differenceOf(
  store: ReadonlyMap<string, SimObject>,
  known: ReadonlyMap<string, SimObject>,
): string | undefined {
  for (const [key, object] of store) {
    if (known.get(key) === object) continue;
    if (stateOf(known.get(key)) !== stateOf(object) || !isSameValue(known.get(key), object)) {
      return `it knows ${key} as ${stateOf(known.get(key))}, the store has ${stateOf(object)}`;
    }
  }
  for (const key of known.keys()) if (!store.has(key)) return `it knows ${key}, which the store has not`;
  return undefined;
}
