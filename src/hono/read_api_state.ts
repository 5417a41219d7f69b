/** The shared state of a read API's requests: its resources with their informers, its limits, its gate. */

import type { KubernetesObject } from "../meta/object.ts";
import { formatGroupResource } from "../meta/resource.ts";
import type { ApiResource } from "../protocol/api_resource.ts";
import { describedResource } from "../protocol/builtin_resources.ts";
import { onAbort } from "../util/abort.ts";
import { monotonicNow } from "../util/clock.ts";
import { guardedLogger, limitedLogger, type Logger } from "../util/logger.ts";
import { Content, ContentFreshness } from "./content/content.ts";
import { type ServedInformer, sourcesOf } from "./content/served_informer.ts";
import { ReadMetrics } from "./health/health.ts";
import { type Freshness, type ReadApiOptions, type ReadSettings, readSettings } from "./read_api_options.ts";
import { Gate } from "./request/gate.ts";
import { KeptViews } from "./request/fields_views.ts";
import { Readers } from "./request/readers.ts";
import type { View } from "./request/requested_read.ts";
import type { Printer } from "./tables/columns.ts";
import { cutsPath, type HeldPrinter, heldPrinter } from "./tables/cut_columns.ts";
import { printerOf } from "./tables/printers.ts";
import { FanOut, Watchers } from "./send/fan_out.ts";
import { KeptFollowers } from "./screens/followed_objects.ts";
import { ListBodies } from "./send/kept_bodies.ts";
import { EntityTags } from "./send/answers.ts";
import { newObjectView } from "./send/view_text.ts";
import type { ForwardedResource } from "./upstream/forward.ts";
import { OpenApi } from "./upstream/open_api.ts";
import { PassThrough } from "./upstream/pass_through.ts";

export interface ReadApiState {
  readonly served: readonly ServedResource[];
  readonly forwarded: readonly ForwardedResource[];
  /** All of these, in the order of the options. */
  readonly resources: readonly ApiResource[];
  readonly gate: Gate;
  readonly passThrough: PassThrough | undefined;
  readonly openApi: OpenApi;
  readonly metrics: ReadMetrics | undefined;
  readonly readers: Readers;
  readonly bodies: ListBodies;
  readonly followers: KeptFollowers;
  readonly views: KeptViews;
  readonly tags: EntityTags;
  readonly settings: ReadSettings;
  /** Logs failures of single requests. */
  readonly failures: Pick<Logger, "warn" | "error">;
}

/** Checks the options, and starts to follow the informers; see `readApi` for what it throws. */
export function newReadApiState(options: ReadApiOptions): ReadApiState {
  const settings = readSettings(options);
  const { clock } = settings;
  const { signal, authenticate, authorize, allowAnonymous, metrics } = options;
  const logger = guardedLogger(options.logger);
  const failures = limitedLogger(logger, () => monotonicNow(clock));
  const all = newServedResources(options, settings, { logger, failures });
  const served = all.filter((each): each is ServedResource => !isForwarded(each));
  const forwarded = all.filter(isForwarded);
  const readers = new Readers(settings);
  // The first to be dropped.
  const views = new KeptViews({ readers, clock });
  // Before the documents, which are kept as long as there is room.
  const bodies = new ListBodies({ readers, maxBytes: settings.maxReaderBytes, clock });
  if (signal !== undefined) {
    onAbort(signal, () => {
      for (const { content, fresh } of served) {
        content.log.close();
        fresh.close();
      }
      // Watches that are passed through are stopped here.
      for (const watch of Array.from(readers.watches)) watch.stop();
    });
  }
  const resources = all.map(({ resource }) => resource);
  return {
    served,
    forwarded,
    resources,
    gate: new Gate({ ...settings, authenticate, authorize, allowAnonymous, logger }),
    passThrough: options.passThrough &&
      new PassThrough(options.passThrough, authenticate !== undefined, logger, clock),
    openApi: new OpenApi({ fetch: options.openApi, resources, readers, clock }),
    metrics: metrics && new ReadMetrics(metrics, clock),
    readers,
    bodies,
    followers: new KeptFollowers({ readers, clock }),
    views,
    tags: new EntityTags(settings.random),
    settings,
    failures,
  };
}

export interface ServedResource {
  readonly resource: ApiResource;
  readonly informer: ServedInformer;
  /** Shows its objects as they are. */
  readonly view: View;
  readonly printer: HeldPrinter;
  /** Whether its objects may have managedFields. */
  readonly hasManagedFields: boolean;
  readonly content: Content<KubernetesObject>;
  readonly watchers: Watchers<KubernetesObject>;
  readonly fresh: ContentFreshness;
}

export function isForwarded(target: { readonly resource: ApiResource }): target is ForwardedResource {
  return "fetch" in target;
}

export function newServedResources(
  options: ReadApiOptions,
  settings: ReadSettings,
  { logger, failures }: Pick<ReadApiState, "failures"> & { readonly logger: Logger },
): (ServedResource | ForwardedResource)[] {
  const resources = options.resources.map(({ resource }) => describedResource(resource, "serve"));
  checkResources(resources, options, settings.freshness);
  const { clock, bookmarkIntervalMs: heartbeatMs } = settings;
  const fanOut = new FanOut(clock);
  return options.resources.map((each, i): ServedResource | ForwardedResource => {
    if (each.informer === undefined) {
      const { fetch, takesScreens = false } = each;
      return { resource: resources[i], fetch, takesScreens, logger: failures };
    }
    const { informer, history } = each;
    const resource = resources[i];
    const content = new Content<KubernetesObject>(informer, {
      clock,
      capacity: settings.eventWindow,
      capacityBytes: settings.eventWindowBytes,
      history,
    });
    const watchers = new Watchers(content, { clock, fanOut, heartbeatMs });
    const fresh = new ContentFreshness(content.log, informer, { ...settings, logger });
    const sources = sourcesOf(informer).map(({ informer }) => informer.projection);
    const projections = sources.filter((projection) => projection !== undefined);
    const printers = new WeakMap<Printer, HeldPrinter>();
    return {
      resource,
      informer,
      view: newObjectView(resource),
      get printer() {
        // The description of a custom resource may change at any time.
        const whole = printerOf(resource);
        const printer = printers.get(whole) ?? heldPrinter(whole, projections);
        printers.set(whole, printer);
        return printer;
      },
      hasManagedFields: !sources.every((projection) =>
        projection && cutsPath(projection, "metadata.managedFields")
      ),
      content,
      watchers,
      fresh,
    };
  });
}

function checkResources(
  resources: readonly ApiResource[],
  options: ReadApiOptions,
  freshness: Freshness | undefined,
): void {
  const names = new Set<string>();
  for (const [i, resource] of resources.entries()) {
    const name = `${resource.group}/${resource.version}/${resource.resource}`;
    if (names.has(name)) throw new TypeError(`Cannot serve ${name} twice: give readApi one informer for it`);
    names.add(name);
    const { informer } = options.resources[i];
    if (informer === undefined && typeof options.resources[i].fetch !== "function") {
      throw new TypeError(
        `Cannot serve ${name}: give readApi an informer for it, or the \`fetch\` of a server that holds it`,
      );
    }
    const sources = informer === undefined ? [] : sourcesOf(informer);
    const holdsSecrets = isSecrets(resource) || sources.some(({ informer }) => isSecrets(informer.resource));
    if (holdsSecrets && options.allowSecrets !== true) {
      throw new TypeError(
        "Cannot serve Secrets by accident: say `allowSecrets: true` beside `authorize`, or leave secrets out of readApi's resources",
      );
    }
    const isProvable = sources.every(({ informer }) => informer.metadata?.() !== undefined);
    if (!isProvable) checkFreshness(resource, freshness);
  }
}

function checkFreshness(resource: ApiResource, freshness: Freshness = "as-is"): void {
  if (freshness === "as-is") return;
  const what = `${formatGroupResource(resource)} with \`freshness: "${freshness}"\``;
  const instead = "give the informer's source the method `metadata`, or leave `freshness` out";
  throw new TypeError(
    `Cannot serve ${what}: its informer cannot ask the API server how far it is; ${instead}`,
  );
}

/** Whether a resource is Kubernetes' own Secrets: by its description, or by what its informer lists. */
function isSecrets(resource: Partial<ApiResource> | undefined): boolean {
  const { group, resource: name = "", kind } = resource ?? {};
  return group === "" && (name.toLowerCase() === "secrets" || kind === "Secret");
}
