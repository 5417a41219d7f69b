/** The state behind the page. */

import type { Clock } from "../../util/clock.ts";
import { errorMessage } from "../../util/errors.ts";
import type { Logger } from "../../util/logger.ts";
import { ChangeFeed } from "./change_feed.ts";
import type { ClusterInfo } from "./dashboard_message.ts";
import { DashboardCounter } from "./dashboard_state.ts";
import { ObjectSearch } from "./object_search.ts";
import type { ReflectedResource } from "./reflected_resource.ts";
import { StateStream } from "./state_stream.ts";

export interface DashboardOptions {
  readonly cluster: ClusterInfo;
  readonly watches: (resource: ReflectedResource) => number;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Observes informers, and sends their counts and changes to open pages. */
export class Dashboard {
  readonly stream: StateStream;
  /** Finds objects by words of their names. */
  readonly search: ObjectSearch;
  readonly #feed: ChangeFeed;
  readonly #unlisten: (() => void)[];

  /** Observes these resources until {@linkcode Dashboard.close}. */
  constructor(resources: readonly ReflectedResource[], options: DashboardOptions) {
    const { cluster, watches, clock, logger } = options;
    this.search = new ObjectSearch(resources);
    const startedMs = clock.now();
    const report = newViewReports(logger);
    const counter = new DashboardCounter(resources, { onError: report, watches });
    this.#feed = new ChangeFeed(resources, {
      clock,
      onChange: (resource) => {
        counter.changed(resource);
        this.stream.changed();
      },
      onError: (error) => report("changes", error),
    });
    this.stream = new StateStream({
      state: () => ({
        nowMs: clock.now(),
        startedMs,
        cluster,
        changesPerSecond: this.#feed.changesPerSecond(),
        ...counter.count(),
      }),
      feed: this.#feed,
      clock,
      onError: (error) => report("state", error),
    });
    this.#unlisten = resources.map(({ informer }) => informer.onStatus(() => this.stream.changed()));
  }

  /** Stops observing. */
  close(): void {
    this.#feed.close();
    for (const unlisten of this.#unlisten.splice(0)) unlisten();
  }
}

/** Logs the first error of each part of the page. */
function newViewReports(logger: Logger): (view: string, error: unknown) => void {
  const logged = new Set<string>();
  return (view, error) => {
    if (logged.has(view)) return;
    logged.add(view);
    logger.error(`The page cannot show all ${view}: ${errorMessage(error)}`, { error });
  };
}
