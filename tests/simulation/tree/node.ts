/**
 * A node of the tree: an informer, and a read API in front of it.
 * @module
 */

import {
  type Clock,
  type Logger,
  newCluster,
  parseResource,
  SharedIndexInformer,
  shortTexts,
} from "@listwatch/cache";
import type { Freshness, ReadApi } from "@listwatch/cache/hono";
import type { TimerHandle } from "@listwatch/cache/reflector";
import { type ClusterModel, isWithin, type Scope, type SimObject } from "../cluster_model.ts";
import { SeededRandom } from "../seeded_random.ts";
import type { VirtualTime } from "../virtual_time.ts";
import { type Breakage, Link, type LinkState, type Target } from "./link.ts";
import { Disk, type DiskFate, type SaveKind } from "./disk.ts";
import { differenceAt, RESOURCE } from "./origin.ts";
import { CountedReadApi, LEFT_AFTER_MS } from "../../nothing_left.ts";
import { plainObjects } from "../../storages.ts";

/** How a node is set up. */
export interface NodeConfig {
  readonly name: string;
  readonly region: number;
  /** The node that it reflects; -1: the origin. Always an earlier one. */
  readonly upstream: number;
  readonly scope: Scope;
  readonly freshness: Freshness;
  readonly useWatchList: boolean;
  readonly pageSize: number;
  readonly storage: "objects" | "short texts" | "plain";
  readonly eventWindow: number;
  readonly saves: SaveKind;
  readonly seed: number;
}

/** What a node needs of its world. */
export interface NodeWorld {
  readonly time: VirtualTime;
  readonly cluster: ClusterModel;
  /** Whether the origin was restored: which history a version is of cannot be known. */
  readonly isInDoubt: () => boolean;
  /** What is between this node and another one. */
  readonly between: (target: Target) => LinkState;
  readonly violate: (text: string) => void;
  readonly log: (text: string) => void;
}

/** A list that took the place of events. Watches that do not require each event receive the difference. */
export interface Gap {
  readonly from: number;
  readonly through: number;
}

const STORAGES = { "objects": undefined, "short texts": shortTexts(), "plain": plainObjects };

/** A program that can be killed at any instant, and started again. */
export class TreeNode implements Target {
  readonly config: NodeConfig;
  readonly link: Link;
  readonly #world: NodeWorld;
  readonly #random: SeededRandom;
  readonly #upstreams = new Set<Target>();
  readonly #gaps: Gap[] = [];
  readonly #disk: Disk | undefined;
  #upstream: Target;
  #life: Life | undefined;
  /** The times of the requests of its reflector, and of its questions. */
  readonly requestsMs: number[] = [];
  readonly questionsMs: number[] = [];
  /** How often it began without everything that its readers had seen. */
  histories = 0;
  #remembers = false;
  /** How often it has ended so that the next start lacks something. */
  #losses = 0;
  #lossesAbove = 0;

  constructor(config: NodeConfig, upstream: Target, world: NodeWorld) {
    this.config = config;
    this.#world = world;
    this.#random = new SeededRandom(config.seed);
    this.#upstream = upstream;
    const { time, log } = world;
    this.link = new Link({
      name: config.name,
      time,
      random: this.#random.fork(),
      log,
      between: world.between,
      onRequest: ({ isQuestion }) => {
        (isQuestion ? this.questionsMs : this.requestsMs).push(time.worldNow());
      },
    });
    if (config.saves === "none") return;
    this.#disk = new Disk({
      kind: config.saves,
      time,
      random: this.#random.fork(),
      onSaved: (version, objects) => {
        if (world.isInDoubt()) return;
        const found = differenceAt(world.cluster, objects, { version, matches: this.matches });
        if (found !== undefined) world.violate(`${this.name} saves what never was: ${found}`);
      },
    });
  }

  get name(): string {
    return this.config.name;
  }

  get isUp(): boolean {
    return this.#life !== undefined;
  }

  /** The node that it reflects; the next start may choose another one. */
  get upstream(): Target {
    return this.#upstream;
  }

  set upstream(upstream: Target) {
    this.#upstream = upstream;
  }

  get informer(): SharedIndexInformer<SimObject> | undefined {
    return this.#life?.informer;
  }

  /**
   * Whether a read of its present content, without a warning, has everything that was acknowledged before.
   */
  get isConsistent(): boolean {
    if (this.config.freshness === "as-is") return false;
    const upstreams = [...this.#upstreams];
    return upstreams.every((one) => !(one instanceof TreeNode) || one.isConsistent);
  }

  /** Whether an object is in its content. */
  readonly matches = (object: SimObject): boolean => isWithin(this.config.scope, object);

  /** Starts it. */
  start(): void {
    if (this.#life !== undefined) return;
    if (!this.#remembers) this.histories++;
    this.#followBack();
    this.#upstreams.add(this.#upstream);
    this.#life = new Life(this.config, this.#upstream, {
      world: this.#world,
      link: this.link,
      random: this.#random.fork(),
      disk: this.#disk?.open(),
      isSaved: (content) => this.#disk?.has(content) ?? true,
      onGap: (gap) => this.#gaps.push(gap),
      onBack: () => this.#goBack(),
    });
  }

  /**
   * The content is older than it was. A node that reflects another one than before cannot know whether that
   * was restored, or is behind and answers as it is.
   */
  #goBack(): void {
    const above = this.#upstream;
    if (this.#upstreams.size > 1 && above instanceof TreeNode && above.config.freshness === "as-is") {
      this.#losses++;
      this.histories++;
    }
    this.#followBack();
  }

  /** A node behind one that went back cannot know whether their origin was restored: it goes back, once. */
  #followBack(): void {
    const above = this.#upstream instanceof TreeNode ? this.#upstream.losses : 0;
    if (above !== this.#lossesAbove) this.histories++;
    this.#lossesAbove = above;
  }

  /** Ends it at any instant. */
  kill(how: Breakage, fate: DiskFate): void {
    const life = this.#life;
    if (life === undefined) return;
    this.#world.log(`${this.name} is killed`);
    this.#life = undefined;
    life.kill();
    this.link.vanish(how);
    this.#disk?.suffer(fate);
    this.#remember(fate === "kept" && this.config.saves === "in the turn");
  }

  /** Ends it in good order. */
  async stop(fate: DiskFate = "kept"): Promise<void> {
    const life = this.#life;
    if (life === undefined) return;
    await life.stop();
    if (this.#life !== life) return;
    this.#life = undefined;
    this.#disk?.suffer(fate);
    this.#remember(fate === "kept" && this.config.saves !== "none");
  }

  #remember(remembers: boolean): void {
    this.#remembers = remembers;
    if (!remembers) this.#losses++;
  }

  /** How often it, or a node that it reflects, has ended so that the next start lacks something. */
  get losses(): number {
    return this.#losses + (this.#upstream instanceof TreeNode ? this.#upstream.losses : 0);
  }

  /**
   * After a restore: a cache that is at a later version than its upstream, or at the same one of the lost
   * history, cannot know that. Its operator starts it without its snapshot.
   */
  helpAfterRestore(): void {
    if (this.#upstream instanceof TreeNode) this.forget();
  }

  /** Ends it, and loses what it had. */
  forget(): void {
    this.kill("reset", "lost");
    this.#disk?.suffer("lost");
  }

  /** Answers a reader, or a node that reflects it. */
  async fetch(path: string, init: RequestInit): Promise<Response> {
    if (this.#life === undefined) throw new TypeError("connection refused");
    return await this.#life.api.request(path, init);
  }

  /** The gaps in the events that it sends. */
  get gaps(): readonly Gap[] {
    return this.#gaps;
  }

  /** The invariants at every instant. */
  check(): void {
    this.#life?.check();
  }

  /** How it differs from the origin now; `undefined` if it does not. */
  difference(): string | undefined {
    if (this.#life === undefined) return `${this.name} does not run`;
    return this.#life.difference();
  }
}

interface LifeOptions {
  readonly world: NodeWorld;
  readonly link: Link;
  readonly random: SeededRandom;
  readonly disk: ReturnType<Disk["open"]> | undefined;
  readonly isSaved: (content: ReadonlyMap<string, SimObject>) => boolean;
  readonly onGap: (gap: Gap) => void;
  /** A list is of an older version than the content. */
  readonly onBack: () => void;
}

/** A node from a start to the next stop or kill. */
class Life {
  readonly #config: NodeConfig;
  readonly #options: LifeOptions;
  readonly #clock: NodeClock;
  readonly #closing = new AbortController();
  readonly #running: { stop(): Promise<void> };
  readonly informer: SharedIndexInformer<SimObject>;
  readonly #served: CountedReadApi;
  #position = 0;
  /** Up to here each event has come; a proof by state moves the position alone. */
  #eventsUpTo = 0;
  #isDirty = false;
  #isDead = false;

  constructor(config: NodeConfig, upstream: Target, options: LifeOptions) {
    this.#config = config;
    this.#options = options;
    const { link, random, world } = options;
    const clock = this.#clock = new NodeClock(world.time);
    const logger = this.#logger();
    const { scope: { namespace } } = config;
    const fetch = link.fetchTo(() => upstream);
    const cluster = newCluster({
      // Versions are the cluster's, whatever is in between.
      server: "http://cluster",
      // What runs on after a kill reaches nothing.
      fetch: (input, init) => this.#isDead ? new Promise(() => {}) : fetch(input, init),
      clock,
      logger,
    });
    const source = cluster.resource<SimObject>(parseResource(`v1/${RESOURCE}`), {
      ...(namespace !== "" && { namespace }),
    });
    this.informer = new SharedIndexInformer<SimObject>(source, {
      name: config.name,
      clock,
      logger,
      storage: STORAGES[config.storage] as never,
      ...(options.disk && { snapshot: options.disk.snapshot }),
      reflector: {
        random: random.fork().next,
        useWatchList: config.useWatchList,
        watchListPageSize: config.pageSize,
      },
    });
    this.informer.observe((event) => {
      this.#isDirty = true;
      if (event.type !== "replaced") {
        const version = event.type === "bookmark"
          ? event.resourceVersion
          : event.object.metadata.resourceVersion;
        this.#position = Math.max(this.#position, Number(version));
        if (event.type !== "bookmark" || !event.byState) this.#eventsUpTo = this.#position;
        return;
      }
      const through = Number(event.resourceVersion);
      if (through < this.#position) options.onBack();
      // The event may be one that a proof had passed.
      if (this.#position > 0 && through > this.#eventsUpTo) {
        options.onGap({ from: this.#eventsUpTo, through });
      }
      this.#position = this.#eventsUpTo = through;
    });
    this.#served = new CountedReadApi({
      resources: [{ informer: this.informer as never, resource: `v1/${RESOURCE}` }],
      allowAnonymous: true,
      freshness: config.freshness,
      eventWindow: config.eventWindow,
      clock,
      random: random.fork().next,
      signal: this.#closing.signal,
      logger,
    });
    this.#running = this.informer.start();
  }

  get api(): ReadApi {
    return this.#served.api;
  }

  kill(): void {
    this.#isDead = true;
    this.#options.disk?.close();
    this.#clock.kill();
  }

  async stop(): Promise<void> {
    this.#closing.abort();
    await this.#running.stop();
    const { world } = this.#options;
    const violate = (left: string) => world.violate(`${this.#config.name}: ${left} after the stop`);
    world.time.schedule(() => {
      if (this.#isDead) return;
      if (this.#clock.timers > 0) violate(`${this.#clock.timers} timers`);
      this.#served.left().forEach(violate);
    }, LEFT_AFTER_MS);
  }

  check(): void {
    if (!this.#isDirty || this.#isDead) return;
    this.#isDirty = false;
    const { world } = this.#options;
    if (world.isInDoubt()) return;
    const version = Number(this.informer.indexer.lastStoreSyncResourceVersion() || "0");
    if (version === 0) return;
    if (version > world.cluster.revision) {
      return world.violate(`${this.#config.name} is at ${version}, the origin at ${world.cluster.revision}`);
    }
    const content = this.#content();
    if (!this.#options.isSaved(content)) {
      world.violate(`${this.#config.name} at ${version} serves what it has not saved`);
    }
    const found = differenceAt(world.cluster, content, {
      version,
      matches: (object) => isWithin(this.#config.scope, object),
    });
    if (found !== undefined) world.violate(`${this.#config.name}: ${found}`);
  }

  difference(): string | undefined {
    const { world: { cluster } } = this.#options;
    const { name, scope } = this.#config;
    if (!this.informer.hasSynced()) return `${name} has not synced`;
    const found = differenceAt(cluster, this.#content(), {
      version: cluster.revision,
      matches: (object) => isWithin(scope, object),
    });
    return found && `${name}: ${found}`;
  }

  #content(): Map<string, SimObject> {
    const { indexer } = this.informer;
    return new Map(indexer.listKeys().map((key) => [key, indexer.getByKey(key)!]));
  }

  #logger(): Logger {
    const log = (level: string) => (message: string) => {
      if (!this.#isDead) this.#options.world.log(`${this.#config.name} ${level}: ${message}`);
    };
    return { debug: log("debug"), info: log("info"), warn: log("warn"), error: log("error") };
  }
}

/** The clock of one life: a kill removes its timers, and no other is set. */
export class NodeClock implements Clock {
  readonly #time: VirtualTime;
  readonly #timers = new Set<TimerHandle>();
  #isDead = false;

  constructor(time: VirtualTime) {
    this.#time = time;
  }

  get timers(): number {
    return this.#timers.size;
  }

  now(): number {
    return this.#time.now();
  }

  monotonicNow(): number {
    return this.#time.monotonicNow();
  }

  setTimeout(callback: () => void, ms: number): TimerHandle {
    if (this.#isDead) return undefined;
    // A fraction may be too small to move a clock of this century.
    const timer = this.#time.setTimeout(() => {
      this.#timers.delete(timer);
      callback();
    }, Math.ceil(ms));
    this.#timers.add(timer);
    return timer;
  }

  clearTimeout(timer: TimerHandle): void {
    this.#timers.delete(timer);
    this.#time.clearTimeout(timer);
  }

  kill(): void {
    this.#isDead = true;
    for (const timer of this.#timers) this.#time.clearTimeout(timer);
    this.#timers.clear();
  }
}
