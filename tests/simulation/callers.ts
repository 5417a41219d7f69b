/**
 * Callers that wait for an informer: for its first list, for a
 * resourceVersion, or for an object at a resourceVersion.
 * @module
 */

import { NotFreshError, type SharedIndexInformer } from "@listwatch/cache";
import type { SimObject } from "./cluster_model.ts";
import type { CountedSignals } from "./counted_signals.ts";
import type { VirtualTime } from "./virtual_time.ts";

/** What a caller waits for. */
export interface Call {
  readonly how: "synced" | "waitForVersion" | "get";
  /** The resourceVersion to wait for, as a distance from the server's present one. */
  readonly ahead: number;
  /** The object that is read. */
  readonly key: string;
  /** The caller's timeout; none if absent. */
  readonly forMs?: number;
}

/** What callers need of their program. */
export interface CallersOptions {
  readonly informer: SharedIndexInformer<SimObject, never>;
  readonly signals: CountedSignals;
  readonly time: VirtualTime;
  readonly violate: (text: string) => void;
  /** Whether the store has one version at a time: without the order across objects it goes up and down. */
  readonly keepsOrder: boolean;
}

interface Waiting {
  readonly name: string;
  /** The resourceVersion; 0 for a caller that waits for the first list. */
  readonly revision: number;
  readonly signal: AbortSignal;
}

/** All callers of one program: each wait must end when its condition holds, and not before. */
export class Callers {
  readonly #options: CallersOptions;
  readonly #waiting = new Set<Waiting>();
  #count = 0;

  constructor(options: CallersOptions) {
    this.#options = options;
  }

  /** Starts a call. */
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
      : how === "waitForVersion"
      ? informer.waitForVersion(wanted, { signal })
      : informer.get(key, { notOlderThan: wanted, signal }).then((object) => {
        const stored = informer.indexer.getByKey(key);
        // The store may have changed later in this turn: it may have another state, or none.
        const versionOf = (one: typeof stored) => Number(one?.metadata.resourceVersion ?? 0);
        if (stored !== undefined && object !== stored && versionOf(object) >= versionOf(stored)) {
          violate(`${name}: the object it received is not in the store`);
        }
      });
    settled.then(
      () => {
        if (this.#options.keepsOrder && !this.#isDue(waiting)) {
          violate(`${name} resolves too early: the store is at ${this.#reached}`);
        }
      },
      (error) => {
        if (!signal.aborted && !informer.isStopped()) violate(`${name} rejects: ${error}`);
        if (how !== "synced" && !(error instanceof NotFreshError)) {
          violate(`${name} rejects with ${error}`);
        }
      },
    ).finally(() => this.#waiting.delete(waiting));
  }

  /** No call waits longer than necessary. */
  check(): void {
    if (this.#waiting.size === 0) return;
    for (const waiting of this.#waiting) {
      if (!waiting.signal.aborted && !this.#options.informer.isStopped() && !this.#isDue(waiting)) continue;
      this.#waiting.delete(waiting);
      this.#options.violate(`${waiting.name} still waits, and the store is at ${this.#reached}`);
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
