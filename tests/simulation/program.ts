/**
 * The program under test: one informer with its handlers, and everything that must be true of it.
 * @module
 */

import {
  DeltaFIFO,
  type FetchFunction,
  type KubernetesObject,
  type Logger,
  metaNamespaceIndex,
  newCluster,
  type Running,
  type Schema,
  SharedIndexInformer,
  type StoreEvent,
} from "@listwatch/cache";
import { type ClusterModel, type Flaw, isWithin, type Scope, type SimObject } from "./cluster_model.ts";
import { SMALL_FRAME_BYTES } from "./cluster_model.ts";
import { type HandlerConfig, HandlerProbe, stateOf } from "./handler_probe.ts";
import { SeededRandom } from "./seeded_random.ts";
import type { VirtualTime } from "./virtual_time.ts";

/** How a program is set up. */
export interface ProgramConfig {
  readonly scope: Scope;
  readonly useWatchList: boolean;
  readonly pageSize: number;
  readonly queue: "real" | "delta";
  readonly resyncPeriodMs: number;
  /** Who objects to an object with `spec.bad`. */
  readonly refuses: "nobody" | "schema" | "index" | "transform";
  readonly smallFrames: boolean;
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
}

type IndexName = "namespace" | "byNode" | "byParity";

const SCHEMA: Schema<KubernetesObject> = {
  "~standard": {
    version: 1,
    vendor: "simulation",
    validate: (value) =>
      (value as SimObject).spec.bad
        ? { issues: [{ message: "must not be bad", path: ["spec", "bad"] }] }
        : { value },
  },
};

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
  // What the events of `observe` add up to.
  readonly #observed = new Map<string, SimObject>();
  readonly #everStored = new Set<SimObject>();
  // What the server held at the resourceVersion that the store stands at.
  readonly #expected = new Map<string, SimObject>();
  #expectedRevision: number;
  #dirty = false;
  #floor = 0;
  #isUnavailable = false;
  #running: Running | undefined;
  /** Waits for a resourceVersion that have not ended, in words. */
  readonly #waits = new Set<string>();

  constructor(index: number, config: ProgramConfig, world: ProgramWorld) {
    this.index = index;
    this.config = config;
    this.#world = world;
    this.#violate = (text) => world.violate(`informer ${index}: ${text}`);
    this.#random = new SeededRandom(config.seed);
    this.#expectedRevision = 0;
    const { time, fetch } = world;
    const logger = this.#logger();
    const cluster = newCluster({ server: `http://api.example/${index}`, fetch, clock: time, logger });
    const source = cluster.resource(`v1/${config.scope.resource}`, {
      ...(config.scope.namespace !== "" && { namespace: config.scope.namespace }),
      ...(config.scope.app !== "" && { labelSelector: `app=${config.scope.app}` }),
      ...(config.refuses === "schema" && { schema: SCHEMA }),
      ...(config.smallFrames && { maxFrameBytes: SMALL_FRAME_BYTES }),
    });
    this.informer = new SharedIndexInformer<SimObject, IndexName>(source as never, {
      name: `informer ${index}`,
      clock: time,
      logger,
      resyncPeriodMs: config.resyncPeriodMs,
      notifyUnchanged: config.seed % 4 !== 0,
      storage: config.seed % 3 === 0 ? "encoded" : "objects",
      indexers: {
        namespace: metaNamespaceIndex,
        byNode: (object) => [this.#nodeOf(object)],
        byParity: (object) => [object.spec.value % 2 === 0 ? "even" : "odd", "any"],
      },
      ...(config.refuses === "transform" && { transform: refuseBad }),
      ...(config.queue === "delta" && {
        queue: (context) => new DeltaFIFO<SimObject>({ ...context, emitDeltaTypeReplaced: true }),
      }),
      reflector: {
        random: this.#random.fork().next,
        useWatchList: config.useWatchList,
        watchListPageSize: config.pageSize,
      },
    });
    this.informer.observe((event) => this.#observe(event));
    for (const handler of config.handlers) this.addHandler(handler);
  }

  /** Starts the informer. */
  start(): void {
    this.#running = this.informer.start();
  }

  /** Stops it; resolves when nothing is left running. Waits that it overtakes, or that come after it, must end. */
  async stop(): Promise<void> {
    this.waitFor("99999999999", "that the stop overtakes", "refused");
    await this.#running!.stop();
    this.waitFor("99999999999", "that begins after the stop", "refused");
  }

  /** Waits for a resourceVersion, as a program does that reads its own writes. */
  waitFor(version: string, which: string, expected: "reached" | "refused"): void {
    if (this.config.queue === "delta") return; // its store stands at no one version
    const wait = `a wait for ${version} ${which}`;
    this.#waits.add(wait);
    const ended = (how: "reached" | "refused") => {
      this.#waits.delete(wait);
      if (how !== expected) this.#violate(`${wait} was ${how}`);
    };
    this.informer.waitFor(version).then(() => ended("reached"), () => ended("refused"));
  }

  /** A wait that has not ended, in words. */
  pendingWait(): string | undefined {
    return this.#waits.values().next().value;
  }

  /** Adds a handler, which may be late. */
  addHandler(config: HandlerConfig): void {
    const probe = new HandlerProbe({
      name: `informer ${this.index}, handler ${this.#added.length}`,
      config,
      time: this.#world.time,
      random: this.#random.fork(),
      violate: this.#world.violate,
      wasStored: (object) => this.#everStored.has(object),
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

  /** A request is made: the floor must not sink. */
  requested(query: URLSearchParams): void {
    if (query.has("continue")) return;
    const version = query.get("resourceVersion") ?? "";
    if (version === "" || version === "0") {
      const excused = this.#floor === 0 || (version === "" && this.#isUnavailable);
      if (!excused) this.#violate(`asks for resourceVersion "${version}", after it was at ${this.#floor}`);
      return;
    }
    const revision = Number(version);
    if (revision < this.#floor) {
      this.#violate(`asks for resourceVersion ${revision}, after it was at ${this.#floor}`);
    }
    this.#floor = Math.max(this.#floor, revision);
  }

  /** The server said that a resourceVersion is not to be had: the next list may ask for the most recent one. */
  unavailable(): void {
    this.#isUnavailable = true;
  }

  /** What must be true at every instant. */
  check(): void {
    const version = this.informer.status().resourceVersion;
    const revision = Number(version || "0");
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
  }

  /** Why it does not agree with the server; `undefined` when it does. */
  difference(): string | undefined {
    const { cluster } = this.#world;
    if (!this.informer.hasSynced()) return "it has not synced";
    const found = this.#differenceTo(cluster.objects(this.config.scope.resource));
    return found === undefined ? undefined : `its store: ${found}`;
  }

  /** Why a handler does not agree with the store; `undefined` when all do. */
  handlerDifference(): string | undefined {
    for (const probe of this.#probes) {
      const found = differenceOf(this.#observed, probe.known);
      if (found !== undefined) return `${probe.name}: ${found}`;
      if (!probe.registration!.hasSynced()) return `${probe.name} has not synced`;
    }
    return undefined;
  }

  /** Checks the indices against what is stored. */
  checkIndices(): void {
    const { indexer } = this.informer;
    const functions: Record<IndexName, (object: SimObject) => string[]> = {
      namespace: ({ metadata }) => [metadata.namespace],
      byNode: ({ spec }) => [spec.node],
      byParity: ({ spec }) => [spec.value % 2 === 0 ? "even" : "odd", "any"],
    };
    for (const name of ["namespace", "byNode", "byParity"] as const) {
      const wanted = new Map<string, Set<SimObject>>();
      for (const object of indexer.list()) {
        for (const value of functions[name](object)) {
          let set = wanted.get(value);
          if (set === undefined) wanted.set(value, set = new Set());
          set.add(object);
        }
      }
      const values = [...indexer.listIndexFuncValues(name)].sort();
      const wantedValues = [...wanted.keys()].sort();
      if (values.join() !== wantedValues.join()) {
        this.#violate(`index ${name} has the values ${values.join()}, not ${wantedValues.join()}`);
      }
      for (const [value, objects] of wanted) {
        const found = indexer.byIndex(name, value);
        if (found.length !== objects.size || found.some((object) => !objects.has(object))) {
          this.#violate(`index ${name} has ${found.length} objects for ${value}, not ${objects.size}`);
        }
      }
    }
  }

  #nodeOf({ spec }: SimObject): string {
    if (this.config.refuses === "index" && spec.bad) throw new Error("an index function that throws");
    return spec.node;
  }

  /** Whether this program may refuse an object, and so not have it. */
  #mayLack(object: SimObject): boolean {
    const flaw: Flaw | undefined = this.#world.cluster.flawOf(object);
    if (flaw === undefined) return false;
    if (flaw === "schema") return this.config.refuses !== "nobody";
    return flaw === "huge" ? this.config.smallFrames : true;
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
        if (event.type === "updated" && before !== event.oldObject) {
          this.#violate(`"updated" for ${key} from ${stateOf(event.oldObject)}, not from ${stateOf(before)}`);
        }
        if (this.informer.indexer.getByKey(key) !== object) {
          this.#violate(`"${event.type}" for ${key}, and the store has something else`);
        }
        this.#observed.set(key, object);
        this.#everStored.add(object);
        return;
      }
      case "deleted":
        if (!this.#observed.delete(event.key)) {
          this.#violate(`"deleted" for ${event.key}, which is not there`);
        }
        return;
      case "replaced":
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
            this.#everStored.add(change.object);
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
      if (indexer.getByKey(key) !== object) {
        this.#violate(`the store's ${key} is not what its events make it`);
      }
    }
    if (this.config.queue === "delta") return; // its order across keys is its own
    const revision = Number(indexer.lastStoreSyncResourceVersion() || "0");
    if (revision === 0) return;
    if (revision < this.#expectedRevision) {
      this.#violate(`the store went back from ${this.#expectedRevision} to ${revision}`);
      return;
    }
    this.#moveExpected(revision);
    const found = this.#differenceTo(this.#expected);
    if (found !== undefined) this.#violate(`the store stands at ${revision}, but ${found}`);
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
  #differenceTo(state: ReadonlyMap<string, SimObject>): string | undefined {
    const { scope } = this.config;
    const { indexer } = this.informer;
    let count = 0;
    for (const [key, object] of state) {
      const stored = indexer.getByKey(key);
      if (!isWithin(scope, object)) {
        if (stored !== undefined) return `it has ${key} ${stateOf(stored)}, which is out of its scope`;
        continue;
      }
      if (this.#mayLack(object)) {
        if (stored === undefined) continue;
        count++;
        if (Number(stored.metadata.resourceVersion) > Number(object.metadata.resourceVersion)) {
          return `${key} is ${stateOf(stored)}, newer than ${stateOf(object)}`;
        }
        continue;
      }
      if (stored === undefined) return `it lacks ${key} ${stateOf(object)}`;
      count++;
      if (stateOf(stored) !== stateOf(object) || !isSame(stored, object)) {
        return `${key} is ${stateOf(stored)}, not ${stateOf(object)}`;
      }
    }
    if (indexer.listKeys().length === count) return undefined;
    for (const key of indexer.listKeys()) {
      if (!state.has(key)) return `it has ${key} ${stateOf(indexer.getByKey(key))}, which is gone`;
    }
    return undefined;
  }

  #logger(): Logger {
    const log = (level: string) => (message: string) => this.#world.log(`${level}: ${message}`);
    return { debug: log("debug"), info: log("info"), warn: log("warn"), error: log("error") };
  }
}

function refuseBad(object: SimObject): SimObject {
  if (object.spec.bad) throw new Error("a transform that throws");
  return object;
}

function isSame(a: SimObject, b: SimObject): boolean {
  return a.spec.value === b.spec.value && a.spec.node === b.spec.node && a.spec.note === b.spec.note &&
    a.metadata.labels?.app === b.metadata.labels?.app && a.kind === b.kind && a.apiVersion === b.apiVersion;
}

function differenceOf(
  store: ReadonlyMap<string, SimObject>,
  known: ReadonlyMap<string, SimObject>,
): string | undefined {
  for (const [key, object] of store) {
    if (known.get(key) === object) continue;
    if (stateOf(known.get(key)) !== stateOf(object)) {
      return `it knows ${key} as ${stateOf(known.get(key))}, the store has ${stateOf(object)}`;
    }
  }
  for (const key of known.keys()) if (!store.has(key)) return `it knows ${key}, which the store has not`;
  return undefined;
}
