/** The resources that are served, with their informers. */

import type { ApiResource } from "../protocol/api_resource.ts";
import { describedResource } from "../protocol/builtin_resources.ts";
import type { KubernetesObject } from "../meta/object.ts";
import { formatGroupResource } from "../meta/resource.ts";
import type { Logger } from "../util/logger.ts";
import { Content, ContentFreshness } from "./content/content.ts";
import { FanOut, Watchers } from "./send/fan_out.ts";
import type { ForwardedResource } from "./upstream/forward.ts";
import type { Freshness, ReadApiOptions } from "./read_api_options.ts";
import { newObjectView, type View } from "./request/view.ts";
import type { ReadSettings } from "./read_settings.ts";
import { type ServedInformer, sourcesOf } from "./content/served_informer.ts";

export interface ServedResource {
  readonly resource: ApiResource;
  readonly informer: ServedInformer;
  /** Shows its objects as they are. */
  readonly view: View;
  readonly content: Content<KubernetesObject>;
  readonly watchers: Watchers<KubernetesObject>;
  readonly fresh: ContentFreshness;
}

/** Whether a resource is answered elsewhere. */
export function isForwarded(target: { readonly resource: ApiResource }): target is ForwardedResource {
  return "fetch" in target;
}

/**
 * Starts to follow the informers, once all options are checked.
 *
 * @throws {TypeError} A resource is not known by its name, or is there twice, or is Secrets without `allowSecrets`, or
 * has neither informer nor `fetch`.
 */
export function newServedResources(
  options: ReadApiOptions,
  settings: ReadSettings,
  logger: Logger,
): (ServedResource | ForwardedResource)[] {
  const resources = options.resources.map(({ resource }) => describedResource(resource, "serve"));
  checkResources(resources, options, settings.freshness);
  const { clock, bookmarkIntervalMs: heartbeatMs } = settings;
  const fanOut = new FanOut(clock);
  return options.resources.map((each, i): ServedResource | ForwardedResource => {
    if (each.informer === undefined) {
      return { resource: resources[i], fetch: each.fetch, logger };
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
    return { resource, informer, view: newObjectView(resource), content, watchers, fresh };
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
  throw new TypeError(
    `Cannot serve ${
      formatGroupResource(resource)
    } with \`freshness: "${freshness}"\`: its informer cannot ask the API ` +
      "server how far it is; give the informer's source the method `metadata`, or leave `freshness` out",
  );
}

/**
 * Whether it is Kubernetes' own Secrets: by what is said of it, and by what its informer lists, whatever is
 * said.
 */
function isSecrets(resource: Partial<ApiResource> | undefined): boolean {
  const { group, resource: name = "", kind } = resource ?? {};
  return group === "" && (name.toLowerCase() === "secrets" || kind === "Secret");
}
