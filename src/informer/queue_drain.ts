/** The loops of an informer: a reflector fills a queue, and a drain empties it. */

import type { Delta, Deltas, Queue } from "../queue/queue.ts";
import { AtomicFIFO } from "../queue/atomic_fifo.ts";
import type { Reflector } from "../reflector/reflector.ts";
import { linkedAbort, onAbort } from "../util/abort.ts";
import type { Clock } from "../util/clock.ts";
import { errorMessage } from "../util/errors.ts";
import type { Logger } from "../util/logger.ts";
import { requireNumbers } from "../util/require_number.ts";
import { finishInTurns, newObjectPacer, type Pace, type Steps } from "../util/turns.ts";

/** A list, or a resync, that is processed in steps. */
export type ListDelta<T> = Extract<Delta<T>, { type: "ReplacedAll" | "SyncAll" }>;

/** After so much, timers and the network get a turn. */
const PACE: Pace = { turnObjects: 1_000, turnMs: 4 };

/** The pace at which so many objects are processed in a turn; the usual one by default. */
export function paceOf(turnObjects: number = PACE.turnObjects): Pace {
  requireNumbers("process objects", { turnObjects }, { least: 1, isWhole: true });
  return { ...PACE, turnObjects };
}

export interface QueueDrainOptions<T> {
  readonly queue: Queue<T>;
  readonly process: (deltas: Deltas<T>, isInInitialList: boolean) => void;
  /** Takes the place of `process` for long lists of an {@linkcode AtomicFIFO}, if there is one. */
  readonly processList: ((delta: ListDelta<T>, isInInitialList: boolean) => Steps) | undefined;
  readonly pace: Pace;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly name: string;
  /** The progress of `process`: whether the next item belongs to the last one, so that one turn has both. */
  readonly applied?: { readonly isWithinStep: boolean };
}

/** The loop that drains a queue while a reflector fills it. */
export class QueueDrain<T> {
  readonly #options: QueueDrainOptions<T>;

  constructor(options: QueueDrainOptions<T>) {
    this.#options = options;
  }

  /** Runs both until the signal is aborted, then closes the queue; resolves when nothing is left running. */
  async run(reflector: Pick<Reflector<T>, "run">, signal: AbortSignal): Promise<void> {
    const { queue } = this.#options;
    const link = linkedAbort(signal);
    const unlisten = onAbort(link.signal, () => queue.close());
    try {
      await Promise.all([reflector.run(link.signal), this.#drain(link.signal)]);
    } finally {
      link.abort();
      unlisten();
      link.unlink();
    }
  }

  async #drain(signal: AbortSignal): Promise<void> {
    const { queue, pace, clock, applied } = this.#options;
    while (!signal.aborted) {
      await queue.wait(); // close() ends it
      const pacer = newObjectPacer(pace, clock);
      while (
        !signal.aborted && (this.#isLongNext() ? await this.#processList(signal) : this.#processNext())
      ) {
        if (!pacer.spend() || applied?.isWithinStep) continue;
        await pacer.rest();
        break;
      }
    }
  }

  #isLongNext(): boolean {
    const { queue, processList, pace } = this.#options;
    if (processList === undefined || !(queue instanceof AtomicFIFO) || queue.listsQueued === 0) return false;
    const delta = queue.peek();
    if (delta?.type === "ReplacedAll") return delta.object.objects.length > pace.turnObjects;
    return delta?.type === "SyncAll";
  }

  async #processList(signal: AbortSignal): Promise<boolean> {
    const { queue, processList, pace, clock } = this.#options;
    try {
      await queue.pop(
        ([delta], isInInitialList) =>
          finishInTurns(processList!(delta as ListDelta<T>, isInInitialList), {
            ...pace,
            clock,
            signal,
          }),
        { signal },
      );
    } catch (error) {
      this.#failed("a list", error);
    }
    return true;
  }

  #processNext(): boolean {
    const { queue, process } = this.#options;
    try {
      return queue.tryPop(process);
    } catch (error) {
      this.#failed("a change", error);
      return true;
    }
  }

  #failed(what: string, error: unknown): void {
    const { logger, name } = this.#options;
    logger.error(`${name}: could not process ${what}: ${errorMessage(error)}`, { error });
  }
}

/**
 * A running informer, as `start` returns it.
 *
 * @category Informers
 */
export interface Running extends AsyncDisposable {
  /** Resolves when nothing is left running, except a handler's call that is not awaited. */
  readonly done: Promise<void>;
  /**
   * Stops it, and resolves when nothing is left running. A handler may await it: its own call, which
   * continues, is not awaited then.
   */
  stop(): Promise<void>;
}

/** Runs in the background what runs until a signal is aborted. */
export function startRunning(run: (signal: AbortSignal) => Promise<void>, signal?: AbortSignal): Running {
  const link = linkedAbort(signal);
  const done = run(link.signal).finally(() => link.unlink());
  const stop = () => {
    link.abort();
    return done;
  };
  return { done, stop, [Symbol.asyncDispose]: stop };
}
