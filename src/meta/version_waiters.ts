/** Waiting for a resourceVersion. */

import { onAbort } from "../util/abort.ts";
import { type Clock, realClock, type TimerHandle } from "../util/clock.ts";
import { compareResourceVersions } from "./object.ts";
import { hasReached } from "./merged_version.ts";

/** How a wait ended. `stopped`: the version will not change any more. */
export type WaitEnd = "reached" | "stopped" | "aborted" | "timedOut";

/** A signal and a time in milliseconds, each of which ends a wait. */
export interface VersionWaitOptions {
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs?: number;
}

interface Waiter {
  readonly resourceVersion: string;
  readonly end: (how: WaitEnd) => void;
}

/** Waits for a resourceVersion. Every wait ends, and leaves neither a timer nor an abort listener behind. */
export class VersionWaiters {
  readonly #clock: Clock;
  readonly #covers: (wanted: string) => boolean;
  readonly #waiters = new Set<Waiter>();
  /** The waiting callers; mostly there are none, and a change has nothing to do. */
  readonly waiting: { readonly size: number } = this.#waiters;
  #isStopped = false;

  /**
   * `reached` returns the present version; `""` before the first. `covers` says whether a version was
   * reached, if that is more than a comparison.
   */
  constructor(
    reached: () => string,
    { clock = realClock, covers }: {
      readonly clock?: Clock;
      readonly covers?: (wanted: string) => boolean;
    } = {},
  ) {
    this.#clock = clock;
    this.#covers = covers ?? ((wanted) => {
      const version = reached();
      return version !== "" && compareResourceVersions(version, wanted) >= 0;
    });
  }

  /** Waits for a version that can be compared; never rejects. A version reached before a stop counts. */
  wait(resourceVersion: string, options: VersionWaitOptions = {}): Promise<WaitEnd> {
    if (this.#covers(resourceVersion)) return Promise.resolve("reached");
    if (this.#isStopped) return Promise.resolve("stopped");
    const { signal, timeoutMs } = options;
    return new Promise((resolve) => {
      let timer: TimerHandle;
      let unlisten = () => {};
      const waiter: Waiter = {
        resourceVersion,
        end: (how) => {
          this.#waiters.delete(waiter);
          this.#clock.clearTimeout(timer);
          unlisten();
          resolve(how);
        },
      };
      this.#waiters.add(waiter);
      if (timeoutMs !== undefined) timer = this.#clock.setTimeout(() => waiter.end("timedOut"), timeoutMs);
      if (signal !== undefined) unlisten = onAbort(signal, () => waiter.end("aborted"));
    });
  }

  /** The version has changed: ends the waits for versions that are now reached. */
  moved(): void {
    for (const waiter of this.#waiters) {
      if (this.#covers(waiter.resourceVersion)) waiter.end("reached");
    }
  }

  /** The version will not change any more: ends every present and later wait. */
  stop(): void {
    this.#isStopped = true;
    for (const waiter of this.#waiters) waiter.end("stopped");
  }
}

/** As {@linkcode VersionWaiters}; each part of a merged resourceVersion must be reached. */
export function newPartwiseWaiters(
  reached: () => string,
  { clock }: { readonly clock: Clock },
): VersionWaiters {
  const covers = (wanted: string) => {
    const version = reached();
    return version !== "" && hasReached(version, wanted);
  };
  return new VersionWaiters(reached, { clock, covers });
}
