/**
 * Those who wait for an informer: for its first list, for a resourceVersion, for an object as of one.
 * @module
 */

import { NotFreshError, type SharedIndexInformer } from "@listwatch/cache";
import type { SimObject } from "./cluster_model.ts";
import type { CountedSignals } from "./counted_signals.ts";
import type { VirtualTime } from "./virtual_time.ts";

/** What a caller wants. */
export interface Call {
  readonly how: "synced" | "waitFor" | "get";
  /** The resourceVersion that is waited for, from the server's present one. */
  readonly ahead: number;
  /** The object that is read. */
  readonly key: string;
  /** How long the caller has patience; for ever if absent. */
  readonly forMs?: number;
}

/** What callers need of their program. */
export interface CallersOptions {
  readonly informer: SharedIndexInformer<SimObject, never>;
  readonly signals: CountedSignals;
  readonly time: VirtualTime;
  readonly violate: (text: string) => void;
  /** Whether the store stands at versions at all, which without the order of objects go up and down. */
  readonly keepsOrder: boolean;
}

interface Waiting {
  readonly name: string;
  /** The resourceVersion; 0 for who waits for the first list. */
  readonly revision: number;
  readonly signal: AbortSignal;
}

/** All callers of one program: each must be let go on when its time has come, and not before. */
export class Callers {
  readonly #options: CallersOptions;
  readonly #waiting = new Set<Waiting>();
  #count = 0;

  constructor(options: CallersOptions) {
    this.#options = options;
  }

  /** Somebody calls. */
  call({ how, key, forMs }: Call, revision: number): void {
    const { informer, signals, time, violate } = this.#options;
    const name = `caller ${this.#count++} (${how} ${how === "synced" ? "" : revision})`;
    const controller = signals.make(name);
    const { signal } = controller;
    const waiting: Waiting = { name, revision: how === "synced" ? 0 : revision, signal };
    this.#waiting.add(waiting);
    if (forMs !== undefined) time.schedule(() => controller.abort(new Error("out of patience")), forMs);
    const wanted = String(revision);
    const settled: Promise<unknown> = how === "synced"
      ? informer.synced(signal)
      : how === "waitFor"
      ? informer.waitFor(wanted, { signal })
      : informer.get(key, { notOlderThan: wanted, signal }).then((object) => {
        const stored = informer.indexer.getByKey(key);
        // The turn may have gone on since: then the store has moved beyond what was there.
        const versionOf = (one: typeof stored) => Number(one?.metadata.resourceVersion ?? 0);
        if (object !== stored && versionOf(object) >= versionOf(stored)) {
          violate(`${name}: what it is given is not in the store`);
        }
      });
    settled.then(
      () => {
        if (this.#options.keepsOrder && !this.#isDue(waiting)) {
          violate(`${name} is let go on too early: the store stands at ${this.#reached}`);
        }
      },
      (error) => {
        if (!signal.aborted && !informer.isStopped()) violate(`${name} is refused: ${error}`);
        if (how !== "synced" && !(error instanceof NotFreshError)) {
          violate(`${name} is refused with ${error}`);
        }
      },
    ).finally(() => this.#waiting.delete(waiting));
  }

  /** Nobody waits any longer than need be. */
  check(): void {
    if (this.#waiting.size === 0) return;
    for (const waiting of this.#waiting) {
      if (!waiting.signal.aborted && !this.#options.informer.isStopped() && !this.#isDue(waiting)) continue;
      this.#waiting.delete(waiting);
      this.#options.violate(`${waiting.name} waits on, and the store stands at ${this.#reached}`);
    }
  }

  get #reached(): string {
    return this.#options.informer.indexer.lastStoreSyncResourceVersion();
  }

  #isDue({ revision }: Waiting): boolean {
    if (revision === 0) return this.#options.informer.hasSynced();
    return Number(this.#reached || "0") >= revision;
  }
}
