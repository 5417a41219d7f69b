/** The options of the read API, their checks and defaults. */

import type { Context } from "hono";
import type { ApiResource } from "../protocol/api_resource.ts";
import { type Clock, realClock } from "../util/clock.ts";
import type { Logger } from "../util/logger.ts";
import { requireNumbers } from "../util/require_number.ts";
import { type Authenticate, type Authorize, typeOf, type UserInfo } from "./request/gate.ts";
import { clientOfRequest } from "./request/readers.ts";
import type { CorsOptions } from "./request/cors.ts";
import type { FetchOpenApi } from "./upstream/open_api.ts";
import type { ServedMetrics } from "../metrics/prometheus.ts";
import type { PassThroughOptions } from "./upstream/pass_through.ts";
import type { UpgradeWebSocket } from "../protocol/server_sockets.ts";
import type { ServedInformer } from "./content/served_informer.ts";
import type { LogHistory } from "./content/log_history.ts";

/** A served resource: from an informer, or by another server. */
export type ReadApiResource = ReadApiInformer | ReadApiForward;

/** An informer to serve, and its resource. */
export interface ReadApiInformer {
  /** The informer; it need not run yet. */
  readonly informer: ServedInformer;
  /** The resource of the informer: `v1/pods` for a built-in one, a description for a custom one. */
  readonly resource: string | ApiResource;
  /**
   * Keeps the events for the next process, so that watches resume after a restart; by default they end with
   * this one. Such as `DiskObjects.history` of `@listwatch/cache/workers`.
   */
  readonly history?: LogHistory;
  readonly fetch?: never;
}

/**
 * A resource that another server answers for, such as a Durable Object with a {@linkcode readApi} of its own.
 *
 * Discovery, authentication and authorization are those of this adapter. A permitted request is sent on with
 * its path, its query and what it accepts, and with the name of its user as `X-Remote-User`
 * (percent-encoded); no credential, and nothing else of its headers. So the other server must be private: it
 * answers all requests. Its answers are passed on as they come; 503 while it cannot be reached, 504 where it
 * does not begin to answer within 10 s.
 *
 * A watch ends with its permission here, and otherwise there, by its `timeoutSeconds`. `openWatches` and
 * `/readyz` know nothing of the other server.
 */
export interface ReadApiForward {
  /** Sends a request to the other server: the path and the query of its URL count, and not the host. */
  readonly fetch: (request: Request) => Response | Promise<Response>;
  /**
   * Whether the other server takes the parameters of screens (`fields`, `filter`, `sortBy` and the others),
   * as a `readApi` of this version does; `false` by default: then they are refused with 400, as a server
   * that does not know them ignores them.
   */
  readonly takesScreens?: boolean;
  /** The resource of the other server: `v1/pods` for a built-in one, a description for a custom one. */
  readonly resource: string | ApiResource;
  readonly informer?: never;
}

/** The answer of `/version`. */
export interface VersionInfo {
  readonly major: string;
  readonly minor: string;
  readonly gitVersion: string;
  readonly platform: string;
  /** Further fields of the API server's version, such as `goVersion`: they are passed on. */
  readonly [field: string]: string | undefined;
}

/**
 * How fresh a read without a resourceVersion is:
 *
 * - `"consistent"`: as fresh as the API server's own. One small question to it is shared by all reads that
 *   wait. A read that cannot be proven fresh within `freshnessTimeoutMs` is answered 504.
 * - `"stale-if-error"`: the same, but while the API server does not answer, or the cache is behind it, the
 *   read is answered with what the cache holds, and a `Warning` header, which kubectl prints; a reader that
 *   sends `Cache-Control: stale-if-error=0` gets 504 instead. Caches above this one send it.
 * - `"as-is"`: what the cache holds.
 */
export type Freshness = "consistent" | "stale-if-error" | "as-is";

export const FRESHNESSES: readonly Freshness[] = ["consistent", "stale-if-error", "as-is"];

/** Options of {@linkcode readApi}. */
export interface ReadApiOptions {
  /** The served resources, in the order of discovery. */
  readonly resources: readonly ReadApiResource[];
  /** Finds the user of a request. Without it no user has a name. */
  readonly authenticate?: Authenticate;
  /** Decides who may read what. Either this or {@linkcode ReadApiOptions.allowAnonymous} must be given. */
  readonly authorize?: Authorize;
  /**
   * Every client that can reach the server may read everything it serves (or every user that `authenticate`
   * returns, if that is given). Only `true` says so.
   */
  readonly allowAnonymous?: boolean;
  /** How long a hook may take; 10 s by default. One that takes longer has refused. */
  readonly hookTimeoutMs?: number;
  /** Secrets are served only if this says so; who may read them is still for `authorize` to say. */
  readonly allowSecrets?: boolean;
  /** The answer of `/version`; best the API server's own. */
  readonly version?: Partial<VersionInfo>;
  /**
   * Fetches OpenAPI documents of the API server, for `kubectl explain`. They are served cut to the resources.
   * Without it they are answered with 404.
   */
  readonly openApi?: FetchOpenApi;
  /** Ends every watch, and stops following the informers. */
  readonly signal?: AbortSignal;
  /** How many events per resource are kept for watches to be replayed from; 4096 by default. */
  readonly eventWindow?: number;
  /**
   * How many bytes the objects of those events may take per resource, as the informer holds them; 64 MiB by
   * default. The oldest events are dropped first; a watch from before them gets 410 Expired, and lists again.
   */
  readonly eventWindowBytes?: number;
  /**
   * The time between bookmarks, which show a watch that its server lives and the server a dead peer; 30 s by
   * default.
   */
  readonly bookmarkIntervalMs?: number;
  /**
   * How many bytes may wait in a watch's stream; 64 KiB by default. A watch that reads too slowly is cut off.
   */
  readonly watchBufferBytes?: number;
  /**
   * How long a watch may last, less a random part of up to a fifth; an hour by default. It ends in good
   * order, as at its `timeoutSeconds`, and its reader opens the next one. `Infinity`: for as long as it
   * likes.
   */
  readonly watchLifetimeMs?: number;
  /** How often the hooks run again for an open watch; 5 minutes by default. */
  readonly watchRecheckMs?: number;
  /** How long a watch or a large list waits for a reader that reads nothing of it; 30 s by default. */
  readonly writeTimeoutMs?: number;
  /**
   * How many requests are answered at a time, watches aside; 4,000 by default. A client that wants more of
   * them than are still free gets 429, so that others find some: alone it has half of them, beside another
   * one a third.
   */
  readonly maxRequests?: number;
  /**
   * How many watches are open at a time; 20,000 by default. Clients share them as they share `maxRequests`.
   */
  readonly maxWatches?: number;
  /** How many of those may be one client's at most; by default only what the others leave free. */
  readonly maxWatchesPerClient?: number;
  /**
   * Distinguishes clients, for these limits: by the user's name or else the address that the connection comes
   * from, by default. Asked before the user is known, too. `undefined`: no client that is known.
   */
  readonly clientOf?: (c: Context, user: UserInfo | undefined) => string | undefined;
  /**
   * How many bytes may be held for all readers together: unread output, the bodies of requests, compression,
   * lists of the past, and what is kept for the next readers (bodies of lists, OpenAPI documents); 64 MiB by
   * default. The kept bodies are dropped first. Then the client for which most is held loses its largest
   * answers: watches, which their clients resume, and lists; its new ones get 429.
   */
  readonly maxReaderBytes?: number;
  /** How many requirements a selector may have; 100 by default. More are refused with 400. */
  readonly maxSelectorRequirements?: number;
  /** How many values a selector may have in all; 1,000 by default. More are refused with 400. */
  readonly maxSelectorValues?: number;
  /**
   * How fresh a read without a resourceVersion is. By default `"consistent"`, and `"as-is"` for informers
   * whose source has no `metadata`.
   */
  readonly freshness?: Freshness;
  /** Sends what is not served to the API server, with the reader's own credentials; by default nothing. */
  readonly passThrough?: PassThroughOptions;
  /** How long a read waits for a resourceVersion that the cache has not come to yet; 3 s by default. */
  readonly freshnessTimeoutMs?: number;
  /**
   * How old the last answer of an informer's API server may be for `/readyz` to be ok; `Infinity` for any
   * time, as long as it has synced. By default 120 s, which fits bookmarks once a minute, and 11 minutes for
   * an API server that sends none. Measured when `/readyz` is requested, so that an informer that was frozen
   * meanwhile is not ready.
   */
  readonly maxLagMs?: number;
  /** Options for pages of other origins; none may read by default. Their requests are authorized as well. */
  readonly cors?: CorsOptions;
  /**
   * Accepts WebSockets, so that watches can be read over them as from an API server: `upgradeServed` of
   * `@listwatch/cache/node` behind `serveFetch`, `Deno.upgradeWebSocket` behind `Deno.serve`,
   * `upgradeInWorkers` of `@listwatch/cache/workers` in Workers. Without it such a request is answered as any
   * other one.
   */
  readonly upgradeWebSocket?: UpgradeWebSocket;
  /**
   * Measures requests, readers and watches, and serves everything that it has collected at `/metrics` for
   * users that may `get` that path: a `PrometheusMetrics`. Give it to the informers, too.
   */
  readonly metrics?: ServedMetrics;
  /** The clock; the system's clock by default. */
  readonly clock?: Clock;
  /** The source of random numbers; `Math.random` by default. */
  readonly random?: () => number;
  /** Receives failures of the hooks; the console by default. */
  readonly logger?: Logger;
}

/** The numbers among the options that have a default: the default, and the least that could work. */
const NUMBERS: Readonly<Record<NumberOption, readonly [byDefault: number, least: 0 | 1]>> = {
  eventWindow: [4096, 0],
  eventWindowBytes: [64 * 1024 * 1024, 0],
  bookmarkIntervalMs: [30_000, 1],
  watchBufferBytes: [64 * 1024, 1],
  freshnessTimeoutMs: [3_000, 0],
  hookTimeoutMs: [10_000, 1],
  watchLifetimeMs: [3_600_000, 1],
  watchRecheckMs: [300_000, 1],
  writeTimeoutMs: [30_000, 1],
  maxRequests: [4_000, 1],
  maxWatches: [20_000, 1],
  maxWatchesPerClient: [Infinity, 1],
  maxReaderBytes: [64 * 1024 * 1024, 1],
  maxSelectorRequirements: [100, 0],
  maxSelectorValues: [1_000, 0],
};

type NumberOption = Exclude<
  {
    [K in keyof ReadApiOptions]-?: NonNullable<ReadApiOptions[K]> extends number ? K : never;
  }[keyof ReadApiOptions],
  "maxLagMs"
>;

export interface ReadSettings
  extends
    Readonly<Record<NumberOption, number>>,
    Required<Pick<ReadApiOptions, "clock" | "random" | "version" | "clientOf">>,
    Pick<ReadApiOptions, "maxLagMs" | "freshness" | "upgradeWebSocket" | "cors"> {
  watchLimitMs(): number;
}

export function readSettings(options: ReadApiOptions): ReadSettings {
  checkAccess(options);
  const { clock = realClock, random = Math.random, clientOf = clientOfRequest } = options;
  const { maxLagMs, freshness, upgradeWebSocket, cors } = options;
  if (upgradeWebSocket !== undefined && typeof upgradeWebSocket !== "function") {
    throw new TypeError("Cannot use the option `upgradeWebSocket`: it must be a function");
  }
  if (freshness !== undefined && !FRESHNESSES.includes(freshness)) {
    const known = FRESHNESSES.map((each) => JSON.stringify(each)).join(" or ");
    throw new TypeError(`Cannot use the option \`freshness\`: it must be ${known}`);
  }
  requireNumbers("serve", { maxLagMs }, { mayBeInfinite: true });
  const numbers = Object.fromEntries(
    Object.entries(NUMBERS).map(([name, [byDefault, least]]) => {
      const { [name as NumberOption]: number = byDefault } = options;
      requireNumbers("serve", { [name]: number }, { least, mayBeInfinite: true });
      return [name, number];
    }),
  ) as Record<NumberOption, number>;
  const hasHooks = options.authenticate !== undefined || options.authorize !== undefined;
  return {
    ...numbers,
    clock,
    random,
    clientOf,
    maxLagMs,
    freshness,
    upgradeWebSocket,
    cors,
    version: versionInfo(options.version),
    watchRecheckMs: hasHooks ? numbers.watchRecheckMs : Infinity,
    // Watches that were opened together should not all come back together.
    watchLimitMs: () => numbers.watchLifetimeMs * (1 - 0.2 * random()),
  };
}

/** The document, with what the options do not say. */
function versionInfo(version: Partial<VersionInfo> = {}): Partial<VersionInfo> {
  const { major = "1", minor = "36", gitVersion = `v${major}.${minor}.0`, platform = "", ...rest } = version;
  // In the order of an API server.
  const { emulationMajor, emulationMinor, minCompatibilityMajor, minCompatibilityMinor, ...others } = rest;
  return {
    major,
    minor,
    emulationMajor,
    emulationMinor,
    minCompatibilityMajor,
    minCompatibilityMinor,
    gitVersion,
    gitCommit: "",
    gitTreeState: "",
    buildDate: "",
    goVersion: "",
    compiler: "",
    platform,
    ...others,
  };
}

function checkAccess(options: ReadApiOptions): void {
  const { authenticate, authorize, allowAnonymous, allowSecrets } = options;
  for (const [name, hook] of Object.entries({ authenticate, authorize, clientOf: options.clientOf })) {
    if (hook === undefined || typeof hook === "function") continue;
    throw new TypeError(`Cannot use ${typeOf(hook)} as \`${name}\`: it must be a function, or left out`);
  }
  for (const [name, value] of Object.entries({ allowAnonymous, allowSecrets })) {
    if (value === undefined || typeof value === "boolean") continue;
    throw new TypeError(
      `Cannot use the option \`${name}\`: it is ${typeOf(value)}, and must be true or false`,
    );
  }
  if (authorize === undefined && allowAnonymous !== true) {
    throw new TypeError(
      "Cannot serve a cache without an access decision: give readApi an `authorize` hook that decides who may read " +
        "what, or say `allowAnonymous: true` if every client that can reach the server may read everything",
    );
  }
  if (authorize !== undefined && allowAnonymous === true) {
    throw new TypeError(
      "Cannot combine the options: readApi has both `authorize` and `allowAnonymous: true`; leave one out",
    );
  }
}
