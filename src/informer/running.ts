/**
 * What runs in the background.
 * @module
 */

import { linkedAbort } from "../util/abort.ts";

/**
 * A running informer: what `start` returns.
 *
 * @example
 * ```ts
 * import { type KubernetesObject, newCluster, SharedIndexInformer } from "@listwatch/cache";
 * const pods = newCluster({ server: "http://127.0.0.1:8001" }).resource<KubernetesObject>("v1/pods");
 * const running = new SharedIndexInformer(pods).start();
 * await running.stop();
 * ```
 */
export interface Running extends AsyncDisposable {
  /** Resolves when nothing is left running, but for a call of a handler that is not waited for. */
  readonly done: Promise<void>;
  /**
   * Stops it, and resolves when nothing is left running. A handler may await it: its own call, which goes on, is not
   * waited for then.
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
