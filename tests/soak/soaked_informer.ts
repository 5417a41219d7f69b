/**
 * An informer that lives behind the faults, and what must be true of it once they pause.
 * @module
 */

import {
  type DeletedObject,
  type HandlerRegistration,
  type KubernetesObject,
  type Logger,
  metaNamespaceKey,
  type Metrics,
  newCluster,
  type ResourceClient,
  type RestConfig,
  type Running,
  SharedIndexInformer,
} from "@listwatch/cache";
import { DeltaFIFO } from "@listwatch/cache/queue";
import { newReflectorBackoff, realClock, type ReflectorOptions } from "@listwatch/cache/reflector";
import { sleepUnlessAborted } from "../../src/util/abort.ts";
import { History } from "../cluster/history.ts";
import { eventually } from "../cluster/eventually.ts";
import { newestVersion, type SoakResource, TEAM } from "./soak_writers.ts";

/** How an informer differs from the default. */
export interface SoakedOptions {
  readonly name: string;
  readonly resource: SoakResource;
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly metadataOnly?: boolean;
  /** The queue of older informers, which merges the events of an object. */
  readonly deltaFifo?: boolean;
  readonly resyncPeriodMs?: number;
  /**
   * Waits as long as an informer does that is given no options; the others 5 seconds (and jitter) at most.
   */
  readonly usualDelays?: boolean;
  readonly reflector?: ReflectorOptions;
}

/** The two ways to the server. */
export interface SoakedPaths {
  /** Through the faults. */
  readonly faulty: RestConfig;
  /** Past them, to compare. */
  readonly direct: RestConfig;
}

/**
 * An informer with two handlers: a quick one that receives everything, and a slow one whose mailbox merges.
 */
export class SoakedInformer {
  readonly name: string;
  readonly resource: SoakResource;
  readonly informer: SharedIndexInformer<KubernetesObject, "team">;
  /** Lines logged as errors: something went wrong within. */
  readonly logged: string[] = [];
  readonly #options: SoakedOptions;
  readonly #direct: ResourceClient<KubernetesObject>;
  readonly #folds: readonly Fold[];
  readonly #registrations: readonly HandlerRegistration[];
  readonly #running: Running;
  #lastVersion = "0";
  #wentBack: string | undefined;

  constructor(
    { faulty, direct }: SoakedPaths,
    options: SoakedOptions,
    { metrics, random }: { readonly metrics: Metrics; readonly random: () => number },
  ) {
    this.#options = options;
    this.name = options.name;
    this.resource = options.resource;
    const { namespace, labelSelector, metadataOnly } = options;
    const scope = {
      ...(namespace && { namespace }),
      ...(labelSelector && { labelSelector }),
      ...(metadataOnly && { metadataOnly }),
    };
    this.#direct = newCluster(direct).resource(options.resource, scope);
    const logger: Logger = {
      debug: () => {},
      info: () => {},
      warn: () => {},
      error: (message) => {
        if (this.logged.length < 20) this.logged.push(message);
      },
    };
    const backoff = { durationMs: 400, factor: 2, capMs: 5_000, jitter: 1 };
    const informer = new SharedIndexInformer<KubernetesObject, "team">(
      newCluster(faulty).resource<KubernetesObject>(options.resource, scope),
      {
        name: options.name,
        indexers: { team: teamsOf },
        logger,
        metrics,
        ...(options.resyncPeriodMs && { resyncPeriodMs: options.resyncPeriodMs }),
        reflector: {
          random,
          watchErrorHandler: () => {},
          ...(!options.usualDelays &&
            { backoff: newReflectorBackoff({ clock: realClock, random, backoff }) }),
          ...options.reflector,
        },
        ...(options.deltaFifo && {
          queue: (context) => new DeltaFIFO({ ...context, emitDeltaTypeReplaced: true }),
        }),
      },
    );
    this.informer = informer;
    informer.observe(() => {
      // A DeltaFIFO gives up the order across objects, and with it this.
      if (options.deltaFifo) return;
      const version = informer.indexer.lastStoreSyncResourceVersion();
      if (version !== "" && newestVersion([version, this.#lastVersion]) !== version) {
        this.#wentBack ??= `the store went from version ${this.#lastVersion} back to ${version}`;
      }
      this.#lastVersion = version === "" ? this.#lastVersion : version;
    });
    const quick = new Fold("quick");
    const slow = new SlowFold("slow", random);
    this.#folds = [quick, slow];
    this.#registrations = [
      informer.addEventHandler(quick, { name: "quick", mailbox: { onOverflow: "grow" } }),
      informer.addEventHandler(slow, { name: "slow", mailbox: { limit: 20 } }),
    ];
    this.#running = informer.start();
  }

  /** How many notifications its handlers were given. */
  get received(): number {
    return this.#folds.reduce((sum, { received }) => sum + received, 0);
  }

  /** When it tries again, if it waits; else now. In the system's milliseconds. */
  get nextTryMs(): number {
    return Math.max(Date.now(), this.informer.status().nextRetryTimeMs ?? 0);
  }

  /** Waits until the store has seen the writes of all (its) namespaces, and the handlers everything. */
  async catchUp(markers: ReadonlyMap<string, string>, signal: AbortSignal): Promise<void> {
    const { namespace } = this.#options;
    const version = namespace === undefined ? newestVersion(markers.values()) : markers.get(namespace) ?? "";
    await this.informer.waitForVersion(version, { signal });
    await eventually(() => {
      for (const { name, backlog } of this.#registrations) {
        if (backlog > 0) throw new Error(`${backlog} notifications wait for ${name}`);
      }
    }, { timeoutMs: 30_000 });
  }

  /** Lists past the faults, and gives everything that differs, and everything impossible that happened. */
  async compare(): Promise<{ readonly objects: number; readonly differences: string[] }> {
    const { indexer } = this.informer;
    const { items } = await this.#direct.list();
    const truth = summarize(items);
    const differences = [
      ...differ("the store", summarize(indexer.list()), truth),
      ...this.#folds.flatMap((fold) =>
        differ(`the ${fold.name} handler`, summarize(fold.objects.values()), truth)
      ),
      ...differ(
        "the index",
        indexed(indexer.listIndexFuncValues("team"), (team) => indexer.indexKeys("team", team)),
        indexedBy(items),
      ),
      ...this.#folds.flatMap((fold) => fold.faults.map((fault) => `the ${fold.name} handler: ${fault}`)),
      ...this.logged.map((line) => `logged: ${line}`),
    ];
    if (this.#wentBack !== undefined) differences.push(this.#wentBack);
    const { quarantined } = this.informer.status();
    if (quarantined > 0) differences.push(`${quarantined} objects were quarantined`);
    return { objects: items.length, differences };
  }

  stop(): Promise<void> {
    return this.#running.stop();
  }
}

/** A history that keeps what is there, but not the events: it must not grow. */
class Fold extends History<KubernetesObject> {
  received = 0;
  readonly name: string;

  constructor(name: string) {
    super();
    this.name = name;
  }

  override onAdd(object: KubernetesObject, isInInitialList: boolean): void | Promise<void> {
    super.onAdd(object, isInInitialList);
    return this.#forget();
  }

  override onUpdate(oldObject: KubernetesObject, object: KubernetesObject): void | Promise<void> {
    super.onUpdate(oldObject, object);
    return this.#forget();
  }

  override onDelete(deleted: DeletedObject<KubernetesObject>): void | Promise<void> {
    super.onDelete(deleted);
    return this.#forget();
  }

  protected take(): void | Promise<void> {}

  #forget(): void | Promise<void> {
    this.received++;
    this.events.length = 0;
    return this.take();
  }
}

/** Slow, at times so slow that its mailbox is full. */
class SlowFold extends Fold {
  readonly #random: () => number;

  constructor(name: string, random: () => number) {
    super(name);
    this.#random = random;
  }

  protected override async take(): Promise<void> {
    const chance = this.#random();
    if (chance > 0.3) return;
    await sleepUnlessAborted(chance < 0.003 ? 4_000 : chance * 60, { clock: realClock });
  }
}

function teamsOf(object: KubernetesObject): string[] {
  return [object.metadata?.labels?.[TEAM] ?? ""];
}

function summarize(objects: Iterable<KubernetesObject>): Map<string, string> {
  const summary = new Map<string, string>();
  for (const object of objects) {
    summary.set(metaNamespaceKey(object), `${object.metadata?.uid} at ${object.metadata?.resourceVersion}`);
  }
  return summary;
}

function indexed(teams: readonly string[], keysOf: (team: string) => readonly string[]): Map<string, string> {
  const summary = new Map<string, string>();
  for (const team of teams) {
    for (const key of keysOf(team)) summary.set(key, [summary.get(key), team].filter(Boolean).join(","));
  }
  return summary;
}

function indexedBy(objects: readonly KubernetesObject[]): Map<string, string> {
  return new Map(objects.map((object) => [metaNamespaceKey(object), teamsOf(object).join(",")]));
}

function differ(what: string, actual: Map<string, string>, expected: Map<string, string>): string[] {
  const differences: string[] = [];
  for (const [key, state] of expected) {
    const held = actual.get(key);
    if (held !== state) {
      differences.push(`${what} holds ${key} as ${held ?? "absent"}, the server as ${state}`);
    }
  }
  for (const [key, held] of actual) {
    if (!expected.has(key)) differences.push(`${what} holds ${key} as ${held}, the server does not`);
  }
  return differences;
}
