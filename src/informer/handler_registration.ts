/**
 * A handler of a shared informer, from outside.
 * @module
 */

import type { FailedTry } from "../reflector/outage.ts";
import type { SyncedMethod } from "../util/deferred.ts";
import type { MailboxOptions } from "./mailbox.ts";
import type { ProcessorListener } from "./processor_listener.ts";

/**
 * Options of `addEventHandler`.
 *
 * @example
 * ```ts
 * import type { HandlerOptions } from "@listwatch/cache";
 * const options: HandlerOptions = { name: "endpoints", resyncPeriodMs: 600_000, mailbox: { limit: 10_000 } };
 * ```
 */
export interface HandlerOptions {
  /** For log lines; `handler 1` for the first of an informer, and so on, by default. */
  readonly name?: string;
  /** This handler's own resync period, in milliseconds; 0 for none. The informer's by default. */
  readonly resyncPeriodMs?: number;
  /** How many notifications may wait for this handler, and what becomes of more; merged by object by default. */
  readonly mailbox?: MailboxOptions;
}

/**
 * A handler that was added; what takes it away again.
 *
 * Mirrors client-go's `ResourceEventHandlerRegistration`.
 *
 * @example
 * ```ts
 * import { type KubernetesObject, newCluster, SharedIndexInformer } from "@listwatch/cache";
 * const pods = newCluster({ server: "http://127.0.0.1:8001" }).resource<KubernetesObject>("v1/pods");
 * const informer = new SharedIndexInformer(pods);
 * const registration = informer.addEventHandler({ onAdd: (pod) => console.log(pod.metadata?.name) });
 * console.log(registration.hasSynced()); // false: the informer has not run
 * informer.removeEventHandler(registration);
 * ```
 */
export interface HandlerRegistration {
  /** The handler's name, after that of its informer. */
  readonly name: string;
  /** Whether the informer has synced and this handler has handled every object of its initial list. */
  hasSynced(): boolean;
  /**
   * Resolves when that becomes true; rejects with the signal's reason, or with an `InformerStateError` when the handler
   * is removed or the informer stops before.
   */
  readonly synced: SyncedMethod;
  /** What its informer's last request failed with, while the server cannot be read: why it has not synced. */
  failure(): FailedTry | undefined;
  /** How many notifications wait for this handler. */
  readonly backlog: number;
  /** Whether the handler was taken away: on request, or because its mailbox overflowed. */
  readonly isRemoved: boolean;
}

/** Makes the registration of a listener. */
export function newHandlerRegistration<T>(
  listener: ProcessorListener<T>,
  of: { readonly isRemoved: () => boolean; readonly failure: () => FailedTry | undefined },
): HandlerRegistration {
  return {
    name: listener.name,
    hasSynced: () => listener.hasSynced(),
    synced: (signal) => listener.synced(signal),
    failure: of.failure,
    get backlog() {
      return listener.backlog;
    },
    get isRemoved() {
      return of.isRemoved();
    },
  };
}
