/** The informers of all watchers: one for each selection of objects, however many watchers it has. */

import type { Cluster } from "../../client/cluster.ts";
import type { Running } from "../../informer/queue_drain.ts";
import { SharedIndexInformer } from "../../informer/shared_informer.ts";
import type { SharedIndexInformerOptions } from "../../informer/shared_informer_options.ts";
import type { KubernetesObject } from "../../meta/object.ts";
import { formatResource, type GroupVersionResource } from "../../meta/resource.ts";
import { loadCluster } from "../../node/kubeconfig/load_cluster.ts";
import type { Clock } from "../../util/clock.ts";
import { callGuarded, errorMessage } from "../../util/errors.ts";
import { guardedLogger, type Logger } from "../../util/logger.ts";

/** Where the objects of all watchers come from. All may be left out. */
export interface FluentOptions {
  /**
   * The cluster; that of `loadCluster` of `@listwatch/cache/node` by default, loaded when a watcher starts.
   */
  readonly cluster?: Cluster | (() => Cluster | Promise<Cluster>);
  /** Options of the informers. */
  readonly informer?: Pick<
    SharedIndexInformerOptions<KubernetesObject>,
    "storage" | "metrics" | "reflector" | "turnObjects"
  >;
  readonly clock?: Clock;
  readonly logger?: Logger;
}

/** Which objects a watcher is for. */
export interface Selection {
  readonly resource: GroupVersionResource;
  readonly namespace: string;
  readonly labelSelector: string;
  readonly fieldSelector: string;
}

/** An informer that several watchers use. */
interface SharedWatch {
  readonly informer: SharedIndexInformer<KubernetesObject>;
  readonly running: Running;
  readonly errorListeners: Set<(error: Error) => void>;
  users: number;
}

/** A watcher's part in an informer. */
export interface Lease {
  readonly informer: SharedIndexInformer<KubernetesObject>;
  /** Gives it back; the last one stops the informer. Resolves when nothing of it is left running. */
  release(): Promise<void>;
}

/** The informers that are running. */
export class SharedWatches {
  readonly #options: FluentOptions;
  readonly #watches = new Map<string, SharedWatch>();
  #cluster: Promise<Cluster> | undefined;

  constructor(options: FluentOptions) {
    this.#options = options;
  }

  /** How many informers are running. */
  get size(): number {
    return this.#watches.size;
  }

  /** The cluster: loaded once; again after a failure. */
  cluster(): Promise<Cluster> {
    const { cluster = () => loadCluster(this.#settings()) } = this.#options;
    this.#cluster ??= (async () => await (typeof cluster === "function" ? cluster() : cluster))();
    this.#cluster.catch(() => this.#cluster = undefined);
    return this.#cluster;
  }

  /**
   * The informer of a selection: started for its first watcher.
   * `onError` receives the error of each failed try.
   */
  use(cluster: Cluster, selection: Selection, onError: (error: Error) => void): Lease {
    const key = JSON.stringify(selection);
    let watch = this.#watches.get(key);
    if (watch === undefined) this.#watches.set(key, watch = this.#start(cluster, selection));
    const used = watch;
    used.users++;
    used.errorListeners.add(onError);
    let isReleased = false;
    const release = async () => {
      if (isReleased) return;
      isReleased = true;
      used.errorListeners.delete(onError);
      if (--used.users > 0) return;
      if (this.#watches.get(key) === used) this.#watches.delete(key);
      await used.running.stop();
    };
    return { informer: used.informer, release };
  }

  #start(cluster: Cluster, { resource, ...selection }: Selection): SharedWatch {
    const { informer: options = {} } = this.#options;
    const logger = guardedLogger(this.#options.logger);
    const name = `${formatResource(resource)}${selection.namespace && ` in ${selection.namespace}`}`;
    const errorListeners = new Set<(error: Error) => void>();
    const onListenerError = (error: unknown) =>
      logger.error(`${name}: a listener threw: ${errorMessage(error)}`, { error });
    const informer = new SharedIndexInformer<KubernetesObject>(
      cluster.resource(resource, { ...selection, keep: "everything" }),
      {
        ...options,
        ...this.#settings(),
        name,
        notifyUnchanged: false,
        reflector: {
          ...options.reflector,
          watchErrorHandler: (error) => {
            callGuarded(() => options.reflector?.watchErrorHandler?.(error), onListenerError);
            for (const listener of [...errorListeners]) callGuarded(() => listener(error), onListenerError);
          },
        },
      },
    );
    return { informer, running: informer.start(), errorListeners, users: 0 };
  }

  #settings(): Pick<FluentOptions, "clock" | "logger"> {
    const { clock, logger } = this.#options;
    return { ...(clock && { clock }), ...(logger && { logger }) };
  }
}
