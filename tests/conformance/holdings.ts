/**
 * The holdings with which recorded cases run.
 * @module
 */

import { type KeyFunc, shortTexts } from "@listwatch/cache";
import type { Holding, NewHolding } from "../../src/store/holding.ts";
import type { RunCase } from "./run.ts";
import type { Case } from "./suites/harness.ts";

/** A way to hold objects. */
export interface CaseHolding {
  readonly name: string;
  /** The option `storage` of stores and informers; absent for the default. */
  readonly storage?: NewHolding;
}

/** Lazy objects where the source has texts, and objects as they are. */
const OBJECTS: CaseHolding = { name: "objects" };

/** All of them. */
export const HOLDINGS: readonly CaseHolding[] = [
  OBJECTS,
  { name: "short texts", storage: shortTexts() },
];

/** The suites in which nothing is held, and why: their cases run once. */
export const NOTHING_HELD: Readonly<Record<string, string>> = {
  expiration_cache: "an ExpirationCache has no option storage",
  filtering: "a FilteringResourceEventHandler receives opened objects",
  heap: "no object that a store holds passes through a Heap",
  keys: "key functions receive opened objects",
  retry_backoff: "no objects",
  selectors: "sets of labels and fields, no objects",
  workqueue: "keys, no objects",
};

/** Runs a case with a holding; `false` if the case was not played. */
export type RunHeldCase = (caze: Case, holding: CaseHolding) => Promise<unknown>;

/**
 * Runs a case of a suite with each holding, at the same time: cases that wait do not take longer for it.
 *
 * @returns `false` if it was not played with any of them.
 */
export function withHoldings(suite: string, run: RunHeldCase): RunCase {
  return async (caze) => {
    const results = await Promise.all(
      holdingsOf(suite).map(async (holding) => {
        try {
          return await run(caze, holding);
        } catch (error) {
          const message = error instanceof Error ? error.message : String(error);
          throw new Error(`held as ${holding.name}: ${message}`, { cause: error });
        }
      }),
    );
    return results.some((one) => one !== false);
  };
}

/** How the cases of a suite are run, for reports. */
export function describeHoldings(suite: string): string {
  const reason = NOTHING_HELD[suite];
  return reason === undefined
    ? `held as ${HOLDINGS.map(({ name }) => name).join(", ")}`
    : `nothing held: ${reason}`;
}

function holdingsOf(suite: string): readonly CaseHolding[] {
  return Object.hasOwn(NOTHING_HELD, suite) ? [OBJECTS] : HOLDINGS;
}

/** Makes the holding of one store; `undefined` for objects as they are. */
export function newHolding({ storage }: CaseHolding, keyFunc: KeyFunc): Holding<unknown> | undefined {
  return storage<unknown>?.(keyFunc);
}
