/** The quarantine: counts and reports what cannot be accepted, and passes on that changes were lost. */

import type { Quarantined } from "../meta/list_watch.ts";
import { isOlder, metaOf } from "../meta/object.ts";
import { type Status, StatusError, statusErrorOf } from "../meta/status.ts";
import { IndexFuncError } from "../store/errors.ts";
import { callGuarded } from "../util/errors.ts";
import { defined } from "../util/json.ts";
import { guardedLogger, type Logger, logsThrown, News } from "../util/logger.ts";
import { guardedMetrics, type Metrics } from "../util/metrics.ts";

interface QuarantineOptions {
  readonly name: string;
  readonly logger?: Logger;
  readonly metrics?: Metrics;
  readonly onQuarantined?: (quarantined: Quarantined) => void;
}

/**
 * The one sink of quarantined objects and events, from the socket to the store: the reflector and the code
 * that applies deltas add to it, and neither knows the other. It counts, measures, and reports each object;
 * keeps the ledger of their keys; and reports that changes were lost, so that a relist repairs them.
 */
export class Quarantine {
  readonly #options: QuarantineOptions;
  readonly #logger: Logger;
  readonly #metrics: Metrics | undefined;
  readonly #keys = new Map<string, string | undefined>();
  /**
   * The ledger: the keys, and the last versions, of objects that were quarantined since the last list, and of
   * which no later state was accepted. Such an object may be in no store, and handlers may not know it.
   */
  readonly keys: ReadonlyMap<string, unknown> = this.#keys;
  /**
   * Keys in the ledger since the last list but one: changes from before a key left it may still wait to be
   * applied while a list is stored.
   */
  #recent = new Set<string>();
  #earlier = new Set<string>();
  /** The causes of broken frames since a watch was well. */
  readonly #brokenFrames = new News();
  #count = 0;
  /** How often a change was lost, or may have been. */
  losses = 0;
  #isRepaired = true;
  #onLoss: ((loss: { readonly isIncomplete: boolean }) => void) | undefined;

  constructor(options: QuarantineOptions) {
    this.#options = options;
    this.#logger = guardedLogger(options.logger);
    this.#metrics = guardedMetrics(options.metrics, this.#logger);
  }

  get count(): number {
    return this.#count;
  }

  add(quarantined: Quarantined): void {
    this.#count++;
    this.#metrics?.count("reflector_quarantined_total", 1, { name: this.#options.name });
    this.#enter(quarantined);
    this.#report(quarantined);
  }

  /**
   * A watch ended with this Status: throws it, and reports a frame that could not be decoded; a list follows.
   */
  refuse(status: Status, receivedBytes: number): never {
    const error = new StatusError(status);
    const problem = frameProblem(error);
    if (problem !== undefined) {
      const where = receivedBytes > 0 ? ` (within the first ${receivedBytes} bytes of the watch)` : "";
      this.add({ reason: `${problem}${where}`, path: "frame" });
    }
    throw error;
  }

  /**
   * Removes a key from the ledger, unless a later state than `through` was quarantined meanwhile: changes are
   * applied after those that follow them are looked at.
   */
  release(key: string, through?: string): boolean {
    const isThere = this.#keys.has(key);
    if (through === undefined || !isOlder(through, this.#keys.get(key) ?? "")) this.#keys.delete(key);
    return isThere;
  }

  /**
   * The delete of an object is applied of which nothing is stored; removes its key as `release` does.
   * @returns Whether that is because it was quarantined: no handler knows it.
   */
  explains(key: string, through: string | undefined): boolean {
    const isListed = this.release(key, through);
    const wasListed = this.#recent.delete(key);
    return this.#earlier.delete(key) || wasListed || isListed;
  }

  /** Starts the ledger again, with the keys of a list's quarantined objects. */
  startLedger(quarantined: readonly Quarantined[]): void {
    this.#keys.clear();
    this.#earlier = this.#recent;
    this.#recent = new Set();
    for (const one of quarantined) this.#enter(one);
  }

  #enter({ key, resourceVersion }: Quarantined): void {
    if (key === undefined) return;
    this.#keys.set(key, resourceVersion);
    this.#recent.add(key);
  }

  /** Whether everything was listed since a change was lost. */
  get isRepaired(): boolean {
    return this.#isRepaired;
  }

  /** The content of the store is known to be incomplete: a relist is due at once. */
  incomplete(): void {
    this.#lose({ isIncomplete: true });
  }

  /** A change on a watch was lost, or may have been: a relist is due, soon. */
  lost(): void {
    this.#lose({ isIncomplete: false });
  }

  /** Sets the one listener, which receives each loss: the reflector, which decides when it lists. */
  onLoss(listener: (loss: { readonly isIncomplete: boolean }) => void): void {
    this.#onLoss = listener;
  }

  /** A list has repaired the losses. */
  recovered(): void {
    this.#isRepaired = true;
  }

  /** A watch was well: a frame that breaks later is reported by a warning again. */
  watchWasWell(): void {
    this.#brokenFrames.forget();
  }

  #lose(loss: { readonly isIncomplete: boolean }): void {
    this.losses++;
    this.#isRepaired = false;
    this.#onLoss?.(loss);
  }

  #report(quarantined: Quarantined): void {
    const { name, onQuarantined } = this.#options;
    if (onQuarantined !== undefined) {
      const hasThrown = logsThrown({ logger: this.#logger, name }, "onQuarantined", { reflector: name });
      return callGuarded(onQuarantined, hasThrown, quarantined);
    }
    const { key, path, reason } = quarantined;
    const which = key === undefined ? "an object" : JSON.stringify(key);
    const text = `${name}: quarantined ${which}${path === "" ? "" : ` at ${path}`}: ${reason}`;
    const cause = reason.split(" (within the first ")[0]; // the number of bytes is another one each time
    const isNews = path !== "frame" || this.#brokenFrames.isNew(cause);
    this.#logger[isNews ? "warn" : "debug"](text, { reflector: name });
  }
}

/** The report of an object that could not be stored. */
export function quarantinedBy(error: Error, object: unknown): Quarantined {
  const key = error instanceof IndexFuncError ? error.key : undefined;
  return defined({ reason: error.message, path: "", key, resourceVersion: metaOf(object)?.resourceVersion });
}

/** Whether a watch ended because a frame of it could not be decoded: no JSON, or over the size limit. */
export function isBrokenFrame(error: unknown): boolean {
  return frameProblem(error) !== undefined;
}

function frameProblem(error: unknown): string | undefined {
  const causes = statusErrorOf(error)?.status.details?.causes ?? [];
  for (const { reason, message } of causes) if (reason === "ClientWatchDecoding") return message ?? reason;
  return undefined;
}
