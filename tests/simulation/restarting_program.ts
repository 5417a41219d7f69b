/**
 * A program with a snapshot that is killed again and again, and its invariants.
 * @module
 */

import {
  type Logger,
  newCluster,
  parseResource,
  type Running,
  SharedIndexInformer,
  shortTexts,
} from "@listwatch/cache";
import type { FetchFunction } from "@listwatch/cache/client";
import { newInformerSnapshot, type StoreEvent } from "@listwatch/cache/informer";
import { type ClusterModel, isWithin, type Scope, type SimObject, stateOf } from "./cluster_model.ts";
import { differenceOf, HandlerProbe } from "./handler_probe.ts";
import { Judge, type Mood } from "./judge.ts";
import type { Fault } from "./scenario.ts";
import { SeededRandom } from "./seeded_random.ts";
import { SnapshotDisk } from "./snapshot_disk.ts";
import { isSameValue, type ViewName, VIEWS } from "./views.ts";
import type { VirtualTime } from "./virtual_time.ts";
import { plainObjects } from "../storages.ts";

/** How it is set up. */
export interface RestartingConfig {
  readonly scope: Scope;
  readonly useWatchList: boolean;
  readonly pageSize: number;
  readonly view: ViewName;
  readonly storage: "objects" | "encoded" | "plain";
  readonly turnObjects: number;
  readonly refuses: "nothing" | "schema";
  /** How many objects there are in a resource of their own that never change; 0 for those of `scope`. */
  readonly objects: number;
  /** Whether it has an index function of its own, which reads whole objects. */
  readonly hasIndex: boolean;
  readonly handler: "everything" | "metadata";
  readonly savesInTurn: boolean;
  readonly intervalMs: number;
  /** How long a save takes; 0 for none. */
  readonly saveMs: number;
  /** The probability that a save fails. */
  readonly failChance: number;
  /** The longest that each part of a load takes; 0 for none. */
  readonly loadMs: number;
  readonly loadTimeoutMs: number;
  /** Whether a load ends when its signal is aborted. */
  readonly heedsSignal: boolean;
  /** The probability that a load fails in its middle. */
  readonly lossChance: number;
  /** Whether its source has `metadata`. */
  readonly hasMetadata: boolean;
  readonly kills: readonly Kill[];
  readonly seed: number;
}

/** The end of one life, and the time until the next. */
export interface Kill {
  /** After so long, */
  readonly afterMs: number;
  /** or in the turn of this event of its store, if that comes first. */
  readonly atEvent: number;
  readonly downMs: number;
  /** Whether it stops in good order instead. */
  readonly stops: boolean;
}

/** The parts of its world that the program needs. */
export interface RestartingWorld {
  readonly time: VirtualTime;
  readonly cluster: ClusterModel;
  readonly fetch: FetchFunction;
  /** The `fetch` of its questions about versions. */
  readonly questions: FetchFunction;
  readonly faults: readonly Fault[];
  readonly sendsBookmarks: boolean;
  /** Whether programs may read what identifies the cluster. */
  readonly identifiesCluster: boolean;
  /** Whether its requests for the server's version are answered. */
  readonly answersProbes: boolean;
  /** Whether no request of it fails or is late, from the start. */
  readonly isHealthy: boolean;
  /** No kills from then on, in the world's time. */
  readonly calmMs: number;
  readonly violate: (text: string) => void;
  readonly log: (text: string) => void;
}

/** A restored informer has synced after so long, if nothing is wrong. */
const PROMPT_MS = 5_000;
/** After so many refused requests for the server's version, it may list. */
const MOST_QUESTIONS = 3;

/** Faults after which a program with a snapshot never has to list, unless the server refuses its version. */
const HARMLESS: ReadonlySet<Fault> = new Set([
  "cut",
  "compact",
  "expire",
  "lag",
  "restart",
  "refuse",
  "tooMany",
  "clock",
]);

/** One run of the program. */
interface Life {
  readonly informer: SharedIndexInformer<SimObject>;
  readonly running: Running;
  readonly disk: SnapshotDisk;
  /** The version of the snapshot that it began with. */
  readonly loaded: string | undefined;
  /** Whether that may lack what was lost before. */
  readonly needsList: boolean;
  /** What identifies the cluster of that snapshot. */
  readonly savedUid: string | undefined;
  readonly observed: Map<string, SimObject>;
  events: number;
  isDead: boolean;
  /** Whether the server has answered a list or a watch. */
  isAnswered: boolean;
  /** Why it may list, if it may. */
  mayList: boolean;
  hasSynced: boolean;
  dirty: boolean;
  /** Whether the store has had the content of a list. */
  isListed: boolean;
  wasServerRestored: boolean;
  refusedQuestions: number;
  /** When it had the content of the snapshot, in the world's time. */
  restoredMs: number;
  readonly probe: HandlerProbe;
}

/** An informer with a snapshot, in one life after the other. */
export class RestartingProgram {
  readonly index: number;
  readonly config: RestartingConfig;
  readonly #world: RestartingWorld;
  readonly #random: SeededRandom;
  readonly #judge = new Judge();
  readonly #stopping: Promise<void>[] = [];
  #disk: SnapshotDisk;
  #life: Life | undefined;
  #lives = 0;
  #isStopped = false;
  /** The server was restored: what is stored and saved is of a lost history, until a list. */
  #isOfLostHistory = false;
  /** The history of the server when it answered the last list. */
  #listEpoch = 0;
  /** The keys of objects that it refused, or did not receive whole, at some time. */
  readonly #refusedKeys = new Set<string>();
  readonly #everStored = new Set<string>();

  constructor(index: number, config: RestartingConfig, world: RestartingWorld) {
    this.index = index;
    this.config = config;
    this.#world = world;
    this.#random = new SeededRandom(config.seed);
    this.#disk = this.#newDisk();
  }

  /** Begins a life. */
  start(): void {
    if (this.#isStopped || this.#life !== undefined) return;
    const { config } = this;
    const { time, calmMs } = this.#world;
    // What still loads for a life that has stopped, does so in the same process.
    if (this.#disk.isLoading) return void time.schedule(() => this.start(), 1_000);
    const kill = config.kills[this.#lives++];
    this.#judge.starting();
    const disk = this.#disk = this.#disk.attached();
    const loaded = disk.meta?.resourceVersion;
    if (loaded !== undefined) this.#isOfLostHistory = disk.isOfLostHistory;
    this.#world.log(`restarting ${this.index}: life ${this.#lives}, snapshot ${loaded ?? "none"}`);
    const informer = this.#newInformer(disk);
    const probe = this.#newProbe();
    probe.registration = informer.addEventHandler(probe);
    const life: Life = {
      informer,
      probe,
      restoredMs: Infinity,
      isListed: false,
      wasServerRestored: false,
      refusedQuestions: 0,
      needsList: disk.meta?.needsList ?? false,
      savedUid: disk.meta?.clusterUid,
      running: informer.start(),
      disk,
      loaded,
      observed: new Map(),
      events: 0,
      isDead: false,
      isAnswered: false,
      mayList: loaded === undefined || disk.meta!.needsList || !this.#world.sendsBookmarks ||
        !this.#world.answersProbes ||
        !this.#world.faults.every((fault) => HARMLESS.has(fault)),
      hasSynced: false,
      dirty: false,
    };
    this.#life = life;
    const isLast = kill === undefined || time.worldNow() + kill.afterMs >= calmMs;
    informer.observe((event) => {
      this.#noteStored(event);
      if (life.isDead) return;
      this.#observe(life, event);
      if (!isLast && ++life.events === kill.atEvent) this.#end(kill);
    });
    if (!isLast) time.schedule(() => this.#life === life && this.#end(kill), kill.afterMs);
  }

  /** Stops it; resolves when nothing of any life is left running. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    const life = this.#life;
    if (life !== undefined) this.#stopping.push(life.running.stop());
    await Promise.all(this.#stopping);
    if (life !== undefined) this.#checkSaved(life);
  }

  /** Whether the server shows it that another cluster responds than the one it knows. */
  get knowsOfRestore(): boolean {
    const { savedUid, informer } = this.#life ?? {};
    if (savedUid === undefined || informer!.status().snapshot?.clusterUnknown !== undefined) return false;
    return this.#world.identifiesCluster && savedUid !== this.#world.cluster.uid &&
      !this.#life!.wasServerRestored;
  }

  /** Sets what it refuses from now on. */
  judge(mood: Mood): void {
    this.#judge.mood = mood;
  }

  /** The server was restored. */
  restored(): void {
    this.#isOfLostHistory = true;
    if (this.#life !== undefined) this.#life.mayList = this.#life.wasServerRestored = true;
    this.#disk.isOfLostHistory = true;
  }

  /** Checks a request of its reflector. */
  requested(query: URLSearchParams): void {
    const life = this.#life;
    if (life === undefined || life.isDead) return;
    const isList = lists(query);
    if (isList && !query.has("continue")) this.#judge.listing();
    else if (!isList) this.#judge.listed();
    const { snapshot, lastError } = life.informer.status();
    if (snapshot?.load === "refused") life.mayList = true;
    // As client-go does, once the server has confirmed the content.
    if (life.hasSynced && lastError?.message.includes("very short watch")) life.mayList = true;
    if (isList && !life.mayList) {
      this.#violate(`lists in a life with the snapshot ${life.loaded}, though the server has that version`);
    }
  }

  /** One of its requests was answered; 0 if the connection failed. */
  answered(status: number, query: URLSearchParams): void {
    if (this.#life === undefined) return;
    // The request may have been sent to a server that was restored since.
    if (status === 200 && lists(query) && !query.has("continue")) {
      this.#listEpoch = this.#world.cluster.epoch;
    }
    if (status === 200) this.#life.isAnswered = true;
    else if (status !== 0) this.#life.mayList = true;
  }

  /** One of its questions was answered. */
  answeredQuestion(status: number): void {
    if (this.#life === undefined || status === 200) return;
    if (++this.#life.refusedQuestions === MOST_QUESTIONS || status === 410) this.#life.mayList = true;
  }

  /** The server has refused its version, or will, as it has refused that in a question. */
  unavailable(): void {
    if (this.#life !== undefined) this.#life.mayList = true;
  }

  /** The invariants at every instant. */
  check(): void {
    const life = this.#life;
    if (life === undefined) return;
    const { informer } = life;
    const { phase, resourceVersion } = informer.status();
    if (phase === "watching") this.#judge.watching(resourceVersion);
    if (informer.isRestored() && informer.isFresh(Infinity)) this.#violate("a snapshot is fresh");
    this.#checkPromptness(life);
    if (informer.hasSynced() && !life.hasSynced) {
      life.hasSynced = true;
      life.dirty = true;
      if (!life.isAnswered) this.#violate("has synced before the server answered");
      if (this.knowsOfRestore && this.#isOfLostHistory) {
        this.#violate("has synced with the content of another cluster");
      }
      const reached = Number(informer.indexer.lastStoreSyncResourceVersion());
      if (reached > this.#world.cluster.revision && !life.wasServerRestored) {
        this.#violate(`has synced at ${reached}, which the server has not reached`);
      }
    }
    if (!life.dirty) return;
    life.dirty = false;
    this.#checkContent(life);
  }

  /** Where nothing is wrong, what is restored has synced within the time of a few requests. */
  #checkPromptness(life: Life): void {
    const { time, isHealthy, sendsBookmarks } = this.#world;
    const { hasMetadata, turnObjects } = this.config;
    if (!isHealthy || !hasMetadata || !sendsBookmarks) return;
    const { informer } = life;
    const nowMs = time.worldNow();
    if (!informer.isRestored() || life.mayList) return;
    if (life.restoredMs === Infinity) life.restoredMs = nowMs;
    const turns = 2 * informer.indexer.listKeys().length / turnObjects;
    if (nowMs - life.restoredMs <= PROMPT_MS + turns * time.turnMs) return;
    this.#violate(`has the content of its snapshot for ${nowMs - life.restoredMs} ms, and has not synced`);
    life.restoredMs = Infinity;
  }

  /** How it differs from the server; `undefined` if it does not. */
  difference(): string | undefined {
    if (this.#life === undefined) return "it is down";
    const { informer, observed, probe } = this.#life;
    if (!informer.hasSynced()) return "it has not synced";
    if (this.#isOfLostHistory) return "it has not listed since the server was restored";
    return this.#differenceTo(this.#world.cluster.objects(this.config.scope.resource), {
      get: (key) => informer.indexer.getByKey(key),
      keys: informer.indexer.listKeys(),
      atLast: true,
    }) ?? differenceOf(observed, probe.known);
  }

  /** The informer's status, for messages. */
  get status(): string {
    return JSON.stringify(this.#life?.informer.status());
  }

  /** Whether it has quarantined objects, which may have to be listed again. */
  get hasRefused(): boolean {
    return this.#judge.turnedAway.size > 0;
  }

  #end({ downMs, stops }: Kill): void {
    const life = this.#life!;
    life.isDead = true;
    if (stops) return this.#stop(life, downMs);
    this.#disk = life.disk.killed();
    this.#world.log(
      `restarting ${this.index}: killed; saved: ${this.#disk.meta?.resourceVersion ?? "nothing"}`,
    );
    this.#checkDisk(this.#disk);
    this.#life = undefined;
    this.#stopping.push(life.running.stop());
    this.#world.time.schedule(() => this.start(), downMs);
  }

  #stop(life: Life, downMs: number): void {
    this.#world.log(`restarting ${this.index}: stops`);
    this.#life = undefined;
    const stopping = life.running.stop().then(() => {
      this.#checkSaved(life);
      this.#world.time.schedule(() => this.start(), downMs);
    });
    this.#stopping.push(stopping);
  }

  #newDisk(): SnapshotDisk {
    const { savesInTurn, saveMs, failChance } = this.config;
    const { time, calmMs } = this.#world;
    return new SnapshotDisk({
      ...this.config,
      time,
      random: this.#random.fork(),
      savesInTurn,
      saveMs,
      violate: (text) => this.#violate(text),
      isOfLostHistory: () => this.#isOfLostHistory,
      epoch: () => this.#world.cluster.epoch,
      failChance: () => time.worldNow() < calmMs ? failChance : 0,
    });
  }

  #newProbe(): HandlerProbe {
    const { handler } = this.config;
    return new HandlerProbe({
      name: `restarting ${this.index}, life ${this.#lives}, handler`,
      config: { manner: "quick", delayMs: 0, mailboxLimit: undefined, resyncPeriodMs: 0, reads: handler },
      time: this.#world.time,
      random: this.#random.fork(),
      violate: this.#world.violate,
      wasRefused: (received) => this.#judge.hasRefused(received),
      wasRestored: () => this.#world.cluster.epoch > 0,
      wasStored: (received) => this.#everStored.has(stateOf(received)),
    });
  }

  #newInformer(disk: SnapshotDisk): SharedIndexInformer<SimObject> {
    const { config, index } = this;
    const { time, fetch, questions } = this.#world;
    const logger = this.#logger();
    const newSource = (fetch: FetchFunction) =>
      newCluster({ server: `http://api.example/restarting-${index}`, fetch, clock: time, logger }).resource(
        parseResource(`v1/${config.scope.resource}`),
        {
          ...(config.scope.namespace !== "" && { namespace: config.scope.namespace }),
          ...(config.scope.app !== "" && { labelSelector: `app=${config.scope.app}` }),
          ...(config.refuses === "schema" && { schema: this.#judge.schema }),
          ...VIEWS[config.view].options,
        },
      );
    const source = newSource(fetch);
    const question = newSource(questions);
    Object.assign(source, {
      metadata: config.hasMetadata ? () => question.metadata() : undefined,
      clusterUid: (signal: AbortSignal) => question.clusterUid(signal),
    });
    const informer = new SharedIndexInformer<SimObject>(source as never, {
      name: `restarting ${index}`,
      clock: time,
      logger,
      metrics: this.#judge.metrics,
      turnObjects: config.turnObjects,
      storage: STORAGES[config.storage],
      snapshot: newInformerSnapshot(disk, config),
      reflector: {
        random: this.#random.fork().next,
        useWatchList: config.useWatchList,
        watchListPageSize: config.pageSize,
      },
    });
    return config.hasIndex
      ? informer.addIndexers({ byNode: ({ spec }: SimObject) => [spec?.node ?? "none"] })
      : informer;
  }

  #noteStored(event: StoreEvent<SimObject>): void {
    if (event.type === "bookmark") return;
    for (const { object } of event.type === "replaced" ? event.changes : [event]) {
      this.#everStored.add(stateOf(object));
    }
  }

  #observe(life: Life, event: StoreEvent<SimObject>): void {
    life.dirty = true;
    if (event.type === "bookmark") return;
    if (event.type === "replaced") {
      for (const { type, key, object } of event.changes) {
        if (type === "deleted") life.observed.delete(key);
        else life.observed.set(key, object);
      }
      if (!life.informer.isRestored()) life.isListed = true;
      const isOfLastList = !event.isGap && this.#judge.stored();
      if (life.isListed && isOfLastList && this.#listEpoch === this.#world.cluster.epoch) {
        this.#isOfLostHistory = false;
        // The content was saved in this turn, before this call; a failed save leaves the content saved
        // before.
        const { savesInTurn } = this.config;
        if (
          savesInTurn && !life.disk.hasFailed && life.disk.meta?.resourceVersion === event.resourceVersion
        ) {
          life.disk.isOfLostHistory = false;
        }
      }
      return;
    }
    if (event.type === "deleted") life.observed.delete(event.key);
    else life.observed.set(event.key, event.object);
    const { savesInTurn, failChance } = this.config;
    if (savesInTurn && failChance === 0 && event.type !== "deleted" && !life.disk.isLoading) {
      const saved = life.disk.objects.get(event.key);
      const text = saved && stateOf(JSON.parse(saved.json));
      if (text !== stateOf(event.object)) {
        this.#violate(`readers see ${event.key} ${stateOf(event.object)}, and ${text} is saved`);
      }
    }
  }

  /** The store has what the server had at the store's version, and what its events make. */
  #checkContent({ informer: { indexer }, observed, needsList, isListed }: Life): void {
    for (const key of new Set([...indexer.listKeys(), ...observed.keys()])) {
      if (stateOf(indexer.getByKey(key)) !== stateOf(observed.get(key))) {
        this.#violate(`the store's ${key} is not what its events make it`);
      }
    }
    if (this.#isOfLostHistory || (needsList && !isListed)) return;
    const revision = Number(indexer.lastStoreSyncResourceVersion() || "0");
    if (revision === 0) return;
    const state = this.#world.cluster.stateAt(this.config.scope.resource, revision);
    const get = (key: string) => indexer.getByKey(key);
    const found = this.#differenceTo(state, { get, keys: indexer.listKeys() });
    if (found !== undefined) this.#violate(`the store is at ${revision}, but ${found}`);
  }

  /** The disk has what the server had at the version on the disk. */
  #checkDisk({ meta, objects, isOfLostHistory }: SnapshotDisk): void {
    if (meta === undefined || isOfLostHistory || this.#isOfLostHistory) return;
    const revision = Number(meta.resourceVersion || "0");
    if (revision === 0) return;
    const state = this.#world.cluster.stateAt(this.config.scope.resource, revision);
    const get = (key: string) => objects.has(key) ? JSON.parse(objects.get(key)!.json) : undefined;
    const found = this.#differenceTo(state, { get, keys: [...objects.keys()] });
    if (found !== undefined && !meta.needsList) this.#violate(`${revision} is saved, but ${found}`);
  }

  /** After a stop in good order, everything is saved. */
  #checkSaved({ disk, informer: { indexer } }: Life): void {
    this.#checkDisk(disk);
    const reached = indexer.lastStoreSyncResourceVersion();
    if (reached === "" || disk.isBehind) return;
    if (disk.meta?.resourceVersion !== reached) {
      this.#violate(`stopped at ${reached}, and ${disk.meta?.resourceVersion} is saved`);
    }
  }

  /** `atLast`: also in objects that it refused for a while as a change. */
  #differenceTo(
    state: ReadonlyMap<string, SimObject>,
    { get, keys, atLast = false }: {
      readonly get: (key: string) => SimObject | undefined;
      readonly keys: readonly string[];
      readonly atLast?: boolean;
    },
  ): string | undefined {
    const { scope, view } = this.config;
    for (const [key, object] of state) {
      const stored = get(key);
      if (!isWithin(scope, object)) {
        if (stored !== undefined) return `it has ${key} ${stateOf(stored)}, which is out of its scope`;
        continue;
      }
      if (this.#mayLack(key, object, atLast)) continue;
      if (stateOf(stored) !== stateOf(object)) return `${key} is ${stateOf(stored)}, not ${stateOf(object)}`;
      if (!isSameValue(stored, VIEWS[view].of(object))) return `${key} is ${JSON.stringify(stored)}`;
    }
    const extra = keys.find((key) => !state.has(key) && !this.#refusedKeys.has(key));
    return extra === undefined ? undefined : `it has ${extra} ${stateOf(get(extra))}, which is deleted`;
  }

  /** Whether it may have another state of an object, or none. */
  #mayLack(key: string, object: SimObject, atLast: boolean): boolean {
    const turnedAway = this.#judge.turnedAway.get(stateOf(object));
    const isRefused = (turnedAway !== undefined && (!atLast || turnedAway === "list")) ||
      this.#world.cluster.flawOf(object) !== undefined;
    if (isRefused) this.#refusedKeys.add(key);
    return isRefused;
  }

  #violate(text: string): void {
    this.#world.violate(`restarting ${this.index}, life ${this.#lives}: ${text}`);
  }

  #logger(): Logger {
    const disk = this.#disk;
    const log = (level: string) => (message: string) => {
      this.#world.log(`${level}: ${message}`);
      if (message.includes("could not finish the snapshot")) disk.isLeft = true;
    };
    return { debug: log("debug"), info: log("info"), warn: log("warn"), error: log("error") };
  }
}

const STORAGES: Record<RestartingConfig["storage"], ReturnType<typeof shortTexts> | undefined> = {
  objects: undefined,
  encoded: shortTexts(),
  plain: plainObjects,
};

/** Whether a request brings all objects. */
function lists(query: URLSearchParams): boolean {
  return query.get("watch") !== "true" || query.get("sendInitialEvents") === "true";
}
