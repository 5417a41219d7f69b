/** Checks and defaults of the options. */

import type { Context } from "hono";
import { type Clock, realClock } from "../util/clock.ts";
import { requireNumbers } from "../util/require_number.ts";
import type { CorsOptions } from "./request/cors.ts";
import { clientOfRequest } from "./request/readers.ts";
import type { UpgradeWebSocket } from "../util/serving.ts";
import type { UserInfo } from "./request/gate.ts";
import {
  type Freshness,
  FRESHNESSES,
  isFreshness,
  type ReadApiOptions,
  type VersionInfo,
} from "./read_api_options.ts";

/** The options that requests are answered by, with their defaults. */
export interface ReadSettings {
  readonly clock: Clock;
  readonly eventWindow: number;
  readonly eventWindowBytes: number;
  readonly bookmarkIntervalMs: number;
  readonly watchBufferBytes: number;
  readonly freshness: Freshness | undefined;
  readonly freshnessTimeoutMs: number;
  readonly hookTimeoutMs: number;
  readonly maxLagMs: number | undefined;
  readonly watchRecheckMs: number;
  readonly writeTimeoutMs: number;
  readonly maxRequests: number;
  readonly maxWatches: number;
  readonly maxWatchesPerClient: number;
  readonly maxBufferedBytes: number;
  readonly maxListBodyBytes: number;
  readonly maxSelectorRequirements: number;
  readonly maxSelectorValues: number;
  readonly random: () => number;
  readonly upgradeWebSocket: UpgradeWebSocket | undefined;
  readonly cors: CorsOptions | undefined;
  readonly version: Partial<VersionInfo>;
  watchLimitMs(): number;
  clientOf(c: Context, user: UserInfo | undefined): string | undefined;
}

/**
 * Checks the options, and reads them.
 *
 * @throws {TypeError} Neither or both of `authorize` and `allowAnonymous` say who may read, or an option is of another type.
 * @throws {RangeError} Nothing could work with a number.
 */
export function readSettings(options: ReadApiOptions): ReadSettings {
  checkAccess(options);
  const {
    clock = realClock,
    eventWindow = 4096,
    eventWindowBytes = 64 * 1024 * 1024,
    bookmarkIntervalMs = 30_000,
    watchBufferBytes = 64 * 1024,
    freshnessTimeoutMs = 3_000,
    hookTimeoutMs = 10_000,
    watchLifetimeMs = 3_600_000,
    watchRecheckMs = 300_000,
    writeTimeoutMs = 30_000,
    maxRequests = 4_000,
    maxWatches = 20_000,
    maxWatchesPerClient = Infinity,
    maxBufferedBytes = 16 * 1024 * 1024,
    maxListBodyBytes = 32 * 1024 * 1024,
    maxSelectorRequirements = 100,
    maxSelectorValues = 1_000,
    random = Math.random,
    clientOf = clientOfRequest,
  } = options;
  const fromZero = {
    eventWindow,
    eventWindowBytes,
    freshnessTimeoutMs,
    maxBufferedBytes,
    maxListBodyBytes,
    maxSelectorRequirements,
    maxSelectorValues,
  };
  const fromOne = {
    bookmarkIntervalMs,
    watchBufferBytes,
    hookTimeoutMs,
    watchRecheckMs,
    writeTimeoutMs,
    maxRequests,
    maxWatches,
    maxWatchesPerClient,
  };
  const { maxLagMs, freshness, upgradeWebSocket, cors } = options;
  if (upgradeWebSocket !== undefined && typeof upgradeWebSocket !== "function") {
    throw new TypeError("Cannot use the option `upgradeWebSocket`: it must be a function");
  }
  if (freshness !== undefined && !isFreshness(freshness)) {
    throw new TypeError(
      `Cannot use the option \`freshness\`: it must be ${
        FRESHNESSES.map((each) => JSON.stringify(each)).join(" or ")
      }`,
    );
  }
  requireNumbers("serve", { ...fromZero, maxLagMs }, { mayBeInfinite: true });
  requireNumbers("serve", { ...fromOne, watchLifetimeMs }, { least: 1, mayBeInfinite: true });
  const hasHooks = options.authenticate !== undefined || options.authorize !== undefined;
  return {
    clock,
    ...fromZero,
    ...fromOne,
    random,
    maxLagMs,
    freshness,
    upgradeWebSocket,
    cors,
    version: versionInfo(options.version),
    watchRecheckMs: hasHooks ? watchRecheckMs : Infinity,
    // So that watches which were opened together do not all come back together.
    watchLimitMs: () => watchLifetimeMs * (1 - 0.2 * random()),
    clientOf,
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

function typeOf(value: unknown): string {
  return value === null ? "null" : Array.isArray(value) ? "an array" : `a value of type ${typeof value}`;
}
