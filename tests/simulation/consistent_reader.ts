/**
 * Readers of a served cache that require what the API server has acknowledged before.
 * @module
 */

import {
  type KubernetesObject,
  type Logger,
  newCluster,
  parseResource,
  SharedIndexInformer,
} from "@listwatch/cache";
import type { ClusterModel, Scope, SimObject } from "./cluster_model.ts";
import { CountedReadApi } from "../nothing_left.ts";
import { isWithin, keyOfObject, stateOf } from "./cluster_model.ts";
import { SeededRandom } from "./seeded_random.ts";
import type { VirtualTime } from "./virtual_time.ts";

/** What a reader is like. */
export interface ConsistentReaderConfig {
  readonly freshness: "consistent" | "stale-if-error";
  /** How many caches are between the reader and the API server. */
  readonly levels: 1 | 2;
  /** How many objects the API server puts on a page at most, whatever the limit; 0: as many as requested. */
  readonly pageSize: number;
  /** Between two reads, in milliseconds, besides those right after a write. */
  readonly periodMs: number;
  readonly seed: number;
}

/** What a reader needs of its program. */
export interface ConsistentReaderOptions {
  readonly name: string;
  readonly informer: SharedIndexInformer<SimObject, never>;
  readonly scope: Scope;
  readonly cluster: ClusterModel;
  readonly random: SeededRandom;
  /** Whether the informer's store is of a lost history, until it lists. */
  readonly isInDoubt: () => boolean;
  /** Whether the informer may have quarantined this state. */
  readonly mayLack: (object: SimObject) => boolean;
  readonly time: VirtualTime;
  readonly log: (text: string) => void;
  readonly violate: (text: string) => void;
}

/** What was true when a read was sent. */
interface Sent {
  readonly text: string;
  readonly path: string;
  /** The key of a get. */
  readonly key: string | undefined;
  /** Whether it names a resourceVersion. */
  readonly isAtVersion: boolean;
  readonly revision: number;
  readonly epoch: number;
  /** How far the informer's store was. */
  readonly stored: number;
}

const MOST_READS = 30;
const MOST_OPEN = 6;
const MOST_LAST_READS = 60;
/** A question in flight, the next one, and the wait for what it says; each takes 3 s at most. */
const ANSWER_MS = 10_000;
/** After a write: while the server's event is on its way, and after it. */
const SOON_MS = [0, 1, 3, 12, 150];

/** Reads without a resourceVersion, and at the API server's last one, whatever resource that is of. */
export class ConsistentReader {
  readonly #config: ConsistentReaderConfig;
  readonly #options: ConsistentReaderOptions;
  readonly #fetch: (path: string) => Promise<Response>;
  /** The informer between two levels. */
  readonly #second: SharedIndexInformer<KubernetesObject> | undefined;
  /** Ends what is served. */
  readonly #closing: AbortController[] = [];
  readonly #served: CountedReadApi[] = [];
  #running: { stop(): Promise<void> } | undefined;
  #left = MOST_READS;
  #open = 0;
  #count = 0;

  constructor(config: ConsistentReaderConfig, options: ConsistentReaderOptions) {
    this.#config = config;
    this.#options = options;
    const { informer, scope: { resource, namespace }, time: clock, log } = options;
    const logger = loggerOf(log);
    const serve = (
      informer: SharedIndexInformer<KubernetesObject>,
      freshness: "consistent" | "stale-if-error",
    ) => {
      const closing = new AbortController();
      this.#closing.push(closing);
      const served = new CountedReadApi({
        resources: [{ informer, resource: `v1/${resource}` }],
        allowAnonymous: true,
        freshness,
        clock,
        random: new SeededRandom(config.seed ^ 0x5e4e).next,
        signal: closing.signal,
        logger,
      });
      this.#served.push(served);
      return served.api;
    };
    let api = serve(informer as never, config.levels === 2 ? "consistent" : config.freshness);
    if (config.levels === 2) {
      const first = api;
      const cluster = newCluster({
        server: "http://first.example",
        fetch: async (input, init) => await first.fetch(new Request(input, init)),
        clock,
        logger,
      });
      const source = cluster.resource(parseResource(`v1/${resource}`), {
        ...(namespace !== "" && { namespace }),
      });
      this.#second = new SharedIndexInformer<KubernetesObject>(source, {
        clock,
        logger,
        reflector: { random: options.random.fork().next },
      });
      api = serve(this.#second, config.freshness);
    }
    this.#fetch = async (path) => await api.request(path);
  }

  /** Starts to read. */
  start(): void {
    this.#running = this.#second?.start();
    const again = () => {
      if (this.#left <= 0) return;
      this.#begin();
      this.#options.time.schedule(again, this.#config.periodMs);
    };
    this.#options.time.schedule(again, this.#options.random.int(0, this.#config.periodMs));
  }

  /** Ends all. */
  async stop(): Promise<void> {
    this.#left = 0;
    for (const closing of this.#closing) closing.abort();
    await this.#running?.stop();
  }

  /** Checks that its reads leave nothing behind, some time after the stop. */
  checkLeft(): void {
    const { name, violate } = this.#options;
    for (const left of this.#served.flatMap((each) => each.left())) {
      violate(`${name}: ${left} after the stop`);
    }
  }

  /** The API server has acknowledged a write. */
  written(): void {
    const { random, time } = this.#options;
    if (this.#running === undefined && this.#second !== undefined) return;
    if (this.#left <= 0 || !random.chance(0.4)) return;
    time.schedule(() => this.#begin(), random.pick(SOON_MS));
  }

  /**
   * Reads a last time; whether the API server's state was the answer, at last:
   * after a Retry-After, or a second cache's list.
   */
  async succeeds(): Promise<boolean> {
    const { time } = this.#options;
    for (let tries = MOST_LAST_READS; tries > 0; tries--) {
      if (await this.#read({ key: undefined, isAtVersion: false }) === 200) return true;
      await new Promise<void>((resolve) => time.schedule(resolve, 1_000));
    }
    return false;
  }

  #begin(): void {
    const { random, violate, name } = this.#options;
    if (this.#open >= MOST_OPEN || this.#left-- <= 0) return;
    const how = random.pick(["list", "list", "get", "atVersion", "getAtVersion"]);
    const key = how.startsWith("get") ? `${random.pick(["a", "b"])}/n${random.int(0, 4)}` : undefined;
    this.#read({ key, isAtVersion: how.endsWith("tVersion") })
      .catch((error) => violate(`${name} fails: ${error instanceof Error ? error.stack : error}`));
  }

  async #read({ key, isAtVersion }: Pick<Sent, "key" | "isAtVersion">): Promise<number> {
    const { cluster, scope, time, violate, log, name } = this.#options;
    const { revision, epoch } = cluster;
    const stored = Number(this.#options.informer.indexer.lastStoreSyncResourceVersion());
    const [namespace, object] = key?.split("/") ?? [];
    const query = isAtVersion ? `?resourceVersion=${revision}` : "";
    const path = key === undefined
      ? `/api/v1/${scope.resource}${query}`
      : `/api/v1/namespaces/${namespace}/${scope.resource}/${object}${query}`;
    const text = `${name}: read ${this.#count++}, ${path} sent at ${revision}`;
    log(text);
    this.#open++;
    const startMs = time.worldNow();
    const timer = time.schedule(() => {
      if (time.wokeMs < startMs) violate(`${text}: no answer within ${ANSWER_MS} ms`);
    }, ANSWER_MS);
    const response = await this.#fetch(path);
    time.clearTimeout(timer);
    this.#open--;
    log(`${text}: ${response.status}`);
    const found = await this.#problem({ text, path, key, isAtVersion, revision, epoch, stored }, response);
    if (found !== undefined) violate(`${text}: ${found}`);
    return response.status;
  }

  /** What is wrong with an answer. */
  async #problem(sent: Sent, response: Response): Promise<string | undefined> {
    const { cluster, isInDoubt } = this.#options;
    const { status } = response;
    const body = await response.json();
    // Not synced, or not proven.
    if (status === 503 || status === 504) return undefined;
    if (status !== 200 && !(status === 404 && sent.key !== undefined)) return `it receives ${status}`;
    const isStale = response.headers.has("Warning");
    if (isStale && this.#config.freshness === "consistent") return "it is stale";
    // The histories of the question and the answer cannot be known.
    if (cluster.epoch !== sent.epoch) return undefined;
    const isDeep = this.#config.levels === 2;
    if (isInDoubt() || (isDeep && cluster.epoch > 0)) {
      const at = Number(response.headers.get("Resource-Version"));
      // Events of the lost history that were on their way may bring
      // it past the version that the server answered.
      const isShown = sent.stored > sent.revision;
      const isLost = at > cluster.revision && isShown && !isStale && !sent.isAtVersion && !isDeep;
      return isLost ? `it receives the lost history, at ${at} of ${cluster.revision}` : undefined;
    }
    if (sent.key !== undefined) return this.#problemOfGet(sent, { status, body, isStale });
    const list = body as { metadata: { resourceVersion: string }; items: SimObject[] };
    const at = Number(list.metadata.resourceVersion);
    if (at > cluster.revision) return `it receives version ${at}, the server is at ${cluster.revision}`;
    if (at < sent.revision && !isStale) return `it receives version ${at}`;
    return this.#problemOfList(at, list.items);
  }

  #problemOfList(at: number, items: readonly SimObject[]): string | undefined {
    const { cluster, scope, mayLack } = this.#options;
    const state = cluster.stateAt(scope.resource, at);
    const read = new Map(items.map((object) => [keyOfObject(object), object]));
    for (const [key, object] of state) {
      if (mayLack(object)) {
        read.delete(key);
        continue;
      }
      const expected = isWithin(scope, object) ? object : undefined;
      if (stateOf(read.get(key)) !== stateOf(expected)) {
        return `at ${at} it has ${key} as ${stateOf(read.get(key))}, not ${stateOf(expected)}`;
      }
      read.delete(key);
    }
    for (const key of read.keys()) return `at ${at} it has ${key}, which does not exist`;
    return undefined;
  }

  /** One of the states that the object had since the read was sent. */
  #problemOfGet(
    { key, revision }: Sent,
    { status, body, isStale }: {
      readonly status: number;
      readonly body: unknown;
      readonly isStale: boolean;
    },
  ): string | undefined {
    const { cluster, scope, mayLack } = this.#options;
    if (isStale) return undefined;
    const states = [cluster.stateAt(scope.resource, revision).get(key!)];
    for (let next = revision + 1; next <= cluster.revision; next++) {
      const one = cluster.at(next);
      if (one.resource !== scope.resource || one.key !== key) continue;
      states.push(one.kind === "delete" ? undefined : one.object);
    }
    if (states.some((state) => state !== undefined && mayLack(state))) return undefined;
    const expected = states.map((state) =>
      stateOf(state !== undefined && isWithin(scope, state) ? state : undefined)
    );
    const found = stateOf(status === 404 ? undefined : body as SimObject);
    return expected.includes(found) ? undefined : `it has ${found}, not ${expected.join(" or ")}`;
  }
}

function loggerOf(log: (text: string) => void): Logger {
  return { debug: log, info: log, warn: log, error: log };
}
