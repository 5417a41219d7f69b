/**
 * An informer whose server is another cache.
 * @module
 */

import { SharedIndexInformer } from "../informer/shared_informer.ts";
import type { SharedIndexInformerOptions } from "../informer/shared_informer_options.ts";
import type { KubernetesObject } from "../meta/object.ts";
import type { ListerWatcher } from "../reflector/lister_watcher.ts";
import type { ReflectorStatus } from "../reflector/status.ts";

/** What the cache says of its own API server, at this moment. */
export type UpstreamStatus = Pick<ReflectorStatus, "lagMs" | "hasNoBookmarks" | "outage" | "lastError">;

/** The cache behind a {@linkcode RelayedInformer}. */
export interface Relay {
  /** What it says of its API server now, if it has said anything. */
  readonly status: () => UpstreamStatus | undefined;
  /** See `SourceEpoch`. */
  readonly epoch: () => string | undefined;
  /** Where reads are refused that are not as fresh as the API server's. */
  readonly metadata: () => ListerWatcher<KubernetesObject> | undefined;
}

/**
 * Its status is that of the API server behind the cache: the cache sends bookmarks also while the API server is silent, and
 * what both hold is then as old as the last contact with the API server.
 */
export class RelayedInformer<T, I extends string> extends SharedIndexInformer<T, I> {
  readonly #relay: Relay;

  constructor(
    source: ListerWatcher<T>,
    options: SharedIndexInformerOptions<T, I>,
    relay: Relay,
  ) {
    super(source, options);
    this.#relay = relay;
  }

  override metadata(): ListerWatcher<KubernetesObject> | undefined {
    return this.#relay.metadata();
  }

  contentEpoch(): string | undefined {
    return this.#relay.epoch();
  }

  override status(): ReflectorStatus {
    const own = super.status();
    const upstream = this.#relay.status();
    if (upstream === undefined) return own;
    const { lagMs, hasNoBookmarks, outage, lastError } = upstream;
    return {
      ...own,
      ...(own.lagMs !== undefined && lagMs !== undefined && { lagMs: Math.max(own.lagMs, lagMs) }),
      ...(hasNoBookmarks && { hasNoBookmarks }),
      ...(own.outage === undefined && outage && { outage }),
      ...(own.outage === undefined && lastError && { lastError }),
    };
  }
}
