/** Checks and defaults of the options. */

import { realClock } from "../util/clock.ts";
import { requireNumbers } from "../util/require_number.ts";
import { typeOf } from "./request/gate.ts";
import { clientOfRequest } from "./request/readers.ts";
import { FRESHNESSES, isFreshness, type ReadApiOptions, type VersionInfo } from "./read_api_options.ts";

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
  /** How long the next watch may last. */
  watchLimitMs(): number;
}

export function readSettings(options: ReadApiOptions): ReadSettings {
  checkAccess(options);
  const { clock = realClock, random = Math.random, clientOf = clientOfRequest } = options;
  const { maxLagMs, freshness, upgradeWebSocket, cors } = options;
  if (upgradeWebSocket !== undefined && typeof upgradeWebSocket !== "function") {
    throw new TypeError("Cannot use the option `upgradeWebSocket`: it must be a function");
  }
  if (freshness !== undefined && !isFreshness(freshness)) {
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
    // So that watches which were opened together do not all come back together.
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
