/**
 * What an in-memory API server can be told, and what its methods take and return.
 * @module
 */

import type { Clock } from "../util/clock.ts";
import type { CustomResource } from "./served_resources.ts";
import type { InitialEventsPolicy } from "./watch_hub.ts";

/**
 * Options of {@linkcode InMemoryApiServer}.
 *
 * @example
 * ```ts
 * import { FakeClock, InMemoryApiServer, type InMemoryApiServerOptions } from "@listwatch/cache/testing";
 * const options: InMemoryApiServerOptions = { clock: new FakeClock(), initialEvents: "refuse", maxPageSize: 2 };
 * const server = new InMemoryApiServer(options);
 * server.close();
 * ```
 */
export interface InMemoryApiServerOptions {
  /** Resources beyond those that Kubernetes brings; CustomResourceDefinitions that are created add more. */
  readonly customResources?: readonly CustomResource[];
  /** Where time comes from: timestamps, timeouts, bookmarks. The system's clock by default. */
  readonly clock?: Clock;
  /** Numbers in [0, 1) for uids and generated names; by default the same ones in every run. */
  readonly random?: () => number;
  /** How often a watch that takes bookmarks gets one; 60,000 ms by default. */
  readonly bookmarkIntervalMs?: number;
  /** How many changes can be replayed to a watch; older ones are answered with 410. 10,000 by default. */
  readonly historyLimit?: number;
  /** The resourceVersion of the empty cluster; `"1"` by default, as in etcd. */
  readonly initialResourceVersion?: string;
  /** The most items in a page of a list that names a `limit`; no limit by default. */
  readonly maxPageSize?: number;
  /**
   * Whether lists at `resourceVersion=0` come whole, whatever their `limit`, as from an API server with its watch cache
   * on; `true` by default.
   */
  readonly watchCache?: boolean;
  /** What becomes of `sendInitialEvents`; `"serve"` by default. */
  readonly initialEvents?: InitialEventsPolicy;
  /** How many bytes may wait for a watcher that does not read before it is cut off; 16 MiB by default. */
  readonly maxWatchBufferBytes?: number;
  /** How long a request waits for a resourceVersion from the future; 3,000 ms by default. */
  readonly futureWaitMs?: number;
  /** Whether an object can be created only in a namespace that is there; `false` by default. */
  readonly requireNamespaces?: boolean;
  /**
   * Whether a pod that is deleted over HTTP is marked with a deletionTimestamp first, and stays, if it is on a node,
   * until it is deleted once more with `gracePeriodSeconds=0`, as a kubelet does; `false` by default: it goes at once.
   */
  readonly gracefulPodDeletion?: boolean;
  /** How many requests {@linkcode InMemoryApiServer.requests} remembers; 1,000 by default. */
  readonly requestLogLimit?: number;
}

/**
 * Which objects {@linkcode InMemoryApiServer.list} returns.
 *
 * @example
 * ```ts
 * import type { InMemoryListOptions } from "@listwatch/cache/testing";
 * const options: InMemoryListOptions = { namespace: "shop", labelSelector: "app=web" };
 * ```
 */
export interface InMemoryListOptions {
  /** Only this namespace; all by default. */
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
}

/**
 * What {@linkcode InMemoryApiServer.list} returns.
 *
 * @example
 * ```ts
 * import type { KubernetesObject } from "@listwatch/cache";
 * import { InMemoryApiServer, type InMemoryList } from "@listwatch/cache/testing";
 * using server = new InMemoryApiServer();
 * const pods: InMemoryList<KubernetesObject> = server.list("v1/pods");
 * console.log(pods.resourceVersion, pods.items.length); // 1 0
 * ```
 */
export interface InMemoryList<T> {
  readonly resourceVersion: string;
  /** In the order of a real list: by namespace and name, byte by byte. */
  readonly items: readonly T[];
}

/**
 * `fetch`, and what the `serve` functions of the runtimes call.
 *
 * @example
 * ```ts
 * import { InMemoryApiServer, type ServerFetch } from "@listwatch/cache/testing";
 * using server = new InMemoryApiServer();
 * const fetch: ServerFetch = server.fetch;
 * console.log((await fetch("http://in-memory/healthz")).status); // 200
 * ```
 */
export interface ServerFetch {
  (request: Request, info?: unknown): Promise<Response>;
  (input: string | URL | Request, init?: RequestInit): Promise<Response>;
}
