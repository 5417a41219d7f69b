/**
 * A program that serves several informers as one, or a copy of what such a program serves.
 * @module
 */

import {
  type KubernetesObject,
  type Logger,
  newCluster,
  parseResource,
  SharedIndexInformer,
  shortTexts,
} from "@listwatch/cache";
import { MergedInformer, type ReadApi } from "@listwatch/cache/hono";
import { shardOf } from "@listwatch/cache/reflector";
import { resourceVersionOf } from "../../../src/meta/object.ts";
import type { SeededRandom } from "../seeded_random.ts";
import { Link, type Target } from "../tree/link.ts";
import { NodeClock } from "../tree/node.ts";
import { RESOURCE } from "../tree/origin.ts";
import type { VirtualTime } from "../virtual_time.ts";
import { differenceOf, type MergedTruth } from "./merged_truth.ts";
import type { ShardsSetting } from "./simulate_shards.ts";
import { CountedReadApi, LEFT_AFTER_MS } from "../../nothing_left.ts";
import { plainObjects } from "../../storages.ts";

/** What programs and readers need of their world. */
export interface ShardsWorldParts {
  readonly time: VirtualTime;
  readonly truth: MergedTruth;
  readonly violate: (text: string) => void;
  readonly log: (text: string) => void;
}

const STORAGES = { "objects": undefined, "short texts": shortTexts(), "plain": plainObjects };

/** A program that can be killed at any instant, and started again. */
export class MergedProgram implements Target {
  readonly name: string;
  readonly links: Link[] = [];
  readonly #config: { readonly setting: ShardsSetting; readonly random: SeededRandom };
  readonly #from: { readonly origins?: () => readonly Target[]; readonly upstream?: () => Target };
  readonly #world: ShardsWorldParts;
  #life: Life | undefined;

  constructor(
    config: { readonly name: string; readonly setting: ShardsSetting; readonly random: SeededRandom },
    from: { readonly origins?: () => readonly Target[]; readonly upstream?: () => Target },
    world: ShardsWorldParts,
  ) {
    this.name = config.name;
    this.#config = config;
    this.#from = from;
    this.#world = world;
    const { time, log } = world;
    const count = from.upstream === undefined ? config.setting.sources : 1;
    for (let i = 0; i < count; i++) {
      this.links.push(new Link({ name: `${this.name}.${i}`, time, random: config.random.fork(), log }));
    }
  }

  get isUp(): boolean {
    return this.#life !== undefined;
  }

  start(): void {
    if (this.#life !== undefined) return;
    this.#world.log(`${this.name} starts`);
    const targets = this.#from.origins?.() ?? [this.#from.upstream!()];
    const { setting, random } = this.#config;
    this.#life = new Life({
      name: this.name,
      links: this.links,
      targets,
      setting,
      random,
      world: this.#world,
    });
  }

  kill(): void {
    this.#life?.kill();
    this.#life = undefined;
    for (const link of this.links) link.vanish("reset");
  }

  async stop(): Promise<void> {
    const life = this.#life;
    await life?.stop();
    this.#life = undefined;
  }

  async fetch(path: string, init: RequestInit): Promise<Response> {
    if (this.#life === undefined) throw new TypeError("connection refused");
    return await this.#life.api.request(path, init);
  }

  check(): void {
    this.#life?.check();
  }

  difference(): string | undefined {
    return this.#life === undefined ? `${this.name} does not run` : this.#life.difference();
  }
}

interface LifeOptions {
  readonly name: string;
  readonly links: readonly Link[];
  readonly targets: readonly Target[];
  readonly setting: ShardsSetting;
  readonly random: SeededRandom;
  readonly world: ShardsWorldParts;
}

/** A program from a start to the next stop or kill. */
class Life {
  readonly #options: LifeOptions;
  readonly #clock: NodeClock;
  readonly #closing = new AbortController();
  readonly #running: readonly { stop(): Promise<void> }[];
  readonly #informer: MergedInformer | SharedIndexInformer<KubernetesObject>;
  readonly #served: CountedReadApi;
  #isDirty = false;
  #isDead = false;

  constructor(options: LifeOptions) {
    this.#options = options;
    const { name, links, targets, setting, random, world } = options;
    const clock = this.#clock = new NodeClock(world.time);
    const log = (level: string) => (message: string) => {
      if (!this.#isDead) world.log(`${name} ${level}: ${message}`);
    };
    const logger: Logger = { debug: log("debug"), info: log("info"), warn: log("warn"), error: log("error") };
    const { sources: of, by } = setting;
    const isMerged = targets.length === of && name.startsWith("merged");
    const informers = targets.map((target, index) => {
      const fetch = links[index].fetchTo(() => target);
      const cluster = newCluster({
        server: `http://cluster-${index}`,
        fetch: (input, init) => this.#isDead ? new Promise(() => {}) : fetch(input, init),
        clock,
        logger,
      });
      const resource = cluster.resource<KubernetesObject>(parseResource(`v1/${RESOURCE}`));
      const source = isMerged && by !== "cluster" ? shardOf(resource, { index, of, by, logger }) : resource;
      return new SharedIndexInformer<KubernetesObject>(source, {
        name: `${name}.${index}`,
        clock,
        logger,
        storage: STORAGES[setting.storage],
        reflector: { random: random.fork().next, useWatchList: setting.useWatchList, watchListPageSize: 3 },
      });
    });
    const named = informers.map((informer, i) => ({ name: `c${i}`, informer }));
    this.#informer = isMerged ? new MergedInformer(named, by === "cluster" ? { by } : {}) : informers[0];
    this.#informer.observe((event) => {
      this.#isDirty = true;
      const what = "key" in event ? `${event.key} ${resourceVersionOf(event.object)}` : event.resourceVersion;
      log("observes")(`${event.type} ${what}`);
    });
    this.#served = new CountedReadApi({
      resources: [{ informer: this.#informer, resource: `v1/${RESOURCE}` }],
      allowAnonymous: true,
      freshness: random.pick(["consistent", "stale-if-error", "as-is"] as const),
      eventWindow: setting.eventWindow,
      clock,
      random: random.fork().next,
      signal: this.#closing.signal,
      logger,
    });
    this.#running = informers.map((informer) => informer.start());
  }

  get api(): ReadApi {
    return this.#served.api;
  }

  kill(): void {
    this.#isDead = true;
    this.#clock.kill();
  }

  async stop(): Promise<void> {
    this.#closing.abort();
    for (const each of this.#running) await each.stop();
    const { name, world } = this.#options;
    const violate = (left: string) => world.violate(`${name}: ${left} after the stop`);
    // A watch that has ended has a timer for a reader that has not read its last events, for a time.
    world.time.schedule(() => {
      if (this.#isDead) return;
      if (this.#clock.timers > 0) violate(`${this.#clock.timers} timers`);
      this.#served.left().forEach(violate);
    }, LEFT_AFTER_MS);
  }

  check(): void {
    if (!this.#isDirty || this.#isDead) return;
    this.#isDirty = false;
    const { name, world } = this.#options;
    const { indexer } = this.#informer;
    const version = indexer.lastStoreSyncResourceVersion();
    const expected = world.truth.contentAt(version);
    const found = expected && differenceOf(this.#content(), expected);
    if (found !== undefined) world.violate(`${name} at ${version}: ${found}`);
  }

  difference(): string | undefined {
    const { name, world: { truth } } = this.#options;
    if (!this.#informer.hasSynced()) return `${name} has not synced`;
    const found = differenceOf(this.#content(), truth.contentOf(truth.versions));
    return found && `${name}: ${found}`;
  }

  #content(): Map<string, string> {
    const { indexer } = this.#informer;
    return new Map(indexer.listKeys().map((key) => [key, resourceVersionOf(indexer.getByKey(key)) ?? ""]));
  }
}
