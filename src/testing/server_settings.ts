import { type Clock, realClock } from "../util/clock.ts";
import { defined } from "../util/json.ts";
import { seededRandom } from "./seeded_random.ts";
import type { CustomResource } from "./served_resources.ts";

/** Options of {@linkcode InMemoryApiServer}. */
export interface InMemoryApiServerOptions {
  /** Resources besides the built-in ones; created CustomResourceDefinitions add more. */
  readonly customResources?: readonly CustomResource[];
  /** The clock of timestamps, timeouts and bookmarks; the system's by default. */
  readonly clock?: Clock;
  /** Random numbers in [0, 1) for uids and generated names; by default the same in every run. */
  readonly random?: () => number;
  /** How often a watch with bookmarks gets one; 60,000 ms by default. */
  readonly bookmarkIntervalMs?: number;
  /**
   * How many changes the history keeps for watches; a watch from before them is answered with 410. 10,000 by
   * default.
   */
  readonly historyLimit?: number;
  /** The resourceVersion of the empty cluster; `"1"` by default, as in etcd. */
  readonly initialResourceVersion?: string;
  /** The most items in a page of a list with a `limit`; unlimited by default. */
  readonly maxPageSize?: number;
  /**
   * Whether lists at `resourceVersion=0` ignore `limit`, as with the watch cache of an API server; `true` by
   * default.
   */
  readonly watchCache?: boolean;
  /** How the server treats `sendInitialEvents`; `"serve"` by default. */
  readonly initialEvents?: InitialEventsPolicy;
  /**
   * How many bytes may wait for a watcher that does not read, before its watch is closed; 16 MiB by default.
   */
  readonly maxWatchBufferBytes?: number;
  /** How long a request waits for a future resourceVersion; 3,000 ms by default. */
  readonly futureWaitMs?: number;
  /** Whether an object can be created in an existing namespace only; `false` by default. */
  readonly requireNamespaces?: boolean;
  /**
   * Whether a pod on a node that is deleted over HTTP first gets a deletionTimestamp, and stays until it is
   * deleted again with `gracePeriodSeconds=0`, as a kubelet does. `false` by default: it is deleted at once.
   */
  readonly gracefulPodDeletion?: boolean;
  /** How many requests {@linkcode InMemoryApiServer.requests} keeps; 1,000 by default. */
  readonly requestLogLimit?: number;
}

/**
 * How a server treats `sendInitialEvents` of a watch: it can `serve` it, as API servers do since 1.34;
 * `refuse` it with 422, as servers without the feature gate; or `ignore` it, as servers older than the
 * option.
 */
export type InitialEventsPolicy = "serve" | "refuse" | "ignore";

export type ServerSettings = Required<InMemoryApiServerOptions>;

export function serverSettings(options: InMemoryApiServerOptions): ServerSettings {
  return {
    customResources: [],
    clock: realClock,
    random: seededRandom(1),
    bookmarkIntervalMs: 60_000,
    historyLimit: 10_000,
    initialResourceVersion: "1",
    maxPageSize: Infinity,
    watchCache: true,
    initialEvents: "serve",
    maxWatchBufferBytes: 16 * 1024 * 1024,
    futureWaitMs: 3_000,
    requireNamespaces: false,
    gracefulPodDeletion: false,
    requestLogLimit: 1_000,
    ...defined(options),
  };
}
