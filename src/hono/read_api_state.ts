/** What all requests of a read API share. */

import type { ApiResource } from "../protocol/api_resource.ts";
import { onAbort } from "../util/abort.ts";
import { consoleLogger } from "../util/logger.ts";
import { newWorkPacer, type Pacer } from "../util/turns.ts";
import { EntityTags } from "./send/responses.ts";
import { type Authentication, type Gate, newAuthentication, newGate } from "./request/gate.ts";
import { ListBodies } from "./send/kept_bodies.ts";
import { OpenApi } from "./upstream/open_api.ts";
import { PassThrough } from "./upstream/pass_through.ts";
import type { ReadApiOptions } from "./read_api_options.ts";
import { ReadMetrics } from "./health/read_metrics.ts";
import { type ReadSettings, readSettings } from "./read_settings.ts";
import { Readers } from "./request/readers.ts";
import { isForwarded, newServedResources, type ServedResource } from "./served_resources.ts";
import type { ForwardedResource } from "./upstream/forward.ts";

/** What all requests of a read API share. */
export interface ReadApiState {
  readonly served: readonly ServedResource[];
  readonly forwarded: readonly ForwardedResource[];
  /** All of these, in the order of the options. */
  readonly resources: readonly ApiResource[];
  readonly gate: Gate;
  readonly authentication: Authentication;
  readonly passThrough: PassThrough | undefined;
  readonly openApi: OpenApi;
  readonly metrics: ReadMetrics | undefined;
  readonly readers: Readers;
  /** Where all readers take turns. */
  readonly pacer: Pacer;
  readonly bodies: ListBodies;
  readonly tags: EntityTags;
  readonly settings: ReadSettings;
}

/** Checks the options, and starts to follow the informers; see `readApi` for what it throws. */
export function newReadApiState(options: ReadApiOptions): ReadApiState {
  const settings = readSettings(options);
  const { clock, hookTimeoutMs } = settings;
  const { logger = consoleLogger, signal, authenticate, authorize, allowAnonymous, metrics } = options;
  const all = newServedResources(options, settings, logger);
  const served = all.filter((each): each is ServedResource => !isForwarded(each));
  const forwarded = all.filter(isForwarded);
  const readers = new Readers(settings);
  if (signal !== undefined) {
    onAbort(signal, () => {
      for (const { content, fresh } of served) {
        content.log.close();
        fresh.close();
      }
      // Those of what is passed through.
      for (const watch of Array.from(readers.watches)) watch.stop();
    });
  }
  const resources = all.map(({ resource }) => resource);
  return {
    served,
    forwarded,
    resources,
    gate: newGate({ authenticate, authorize, allowAnonymous, hookTimeoutMs, clock, logger }),
    authentication: newAuthentication({ authenticate, hookTimeoutMs, clock, logger }),
    passThrough: options.passThrough &&
      new PassThrough(options.passThrough, { hasAuthenticate: authenticate !== undefined, logger }),
    openApi: new OpenApi({ fetch: options.openApi, resources, clock }),
    metrics: metrics && new ReadMetrics(metrics, clock),
    readers,
    pacer: newWorkPacer(),
    bodies: new ListBodies(settings),
    tags: new EntityTags(settings.random),
    settings,
  };
}
