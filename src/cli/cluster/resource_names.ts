/** Resolves the names of resources as kubectl does. */

import { formatGroupResource, formatResource } from "../../meta/resource.ts";
import type { DiscoveredResource, Discovery } from "../../client/discovery.ts";
import { resourceNamed, resourceNames } from "../../client/find_resource.ts";
import { nearNames, quote, UsageError } from "../errors.ts";

/** The resources that are reflected by default; those that the server does not have are skipped. */
const DEFAULT_RESOURCES: readonly string[] = [
  "namespaces",
  "nodes",
  "pods",
  "deployments.apps",
  "replicasets.apps",
  "statefulsets.apps",
  "daemonsets.apps",
  "services",
  "configmaps",
];

/**
 * Resolves names to resources of the server, in the order of the names, each resource once.
 *
 * A name is a plural, singular, short name or kind, in any case (`pods`, `pod`, `po`, `Pod`), optionally
 * followed by `.group` or `.version.group` (`deployments.apps`, `deploy.v1.apps`), or
 * `group/version/resource`, or a category (`all`). If several groups have the name, the first one in the
 * order of {@linkcode Discovery} is taken, as by kubectl.
 * @throws {UsageError} No resource has the name (the message has the nearest ones), it cannot be listed and
 * watched, or it is Secrets without `allowSecrets`.
 */
export function resolveResources(
  names: readonly string[],
  discovery: Discovery,
  options: { readonly allowSecrets?: boolean } = {},
): DiscoveredResource[] {
  const resolved = new Map<string, DiscoveredResource>();
  for (const name of names) {
    for (const resource of resolve(name, discovery)) {
      if (isSecrets(resource) && !options.allowSecrets) {
        throw new UsageError(
          "Secrets are refused by default: pass --allow-secrets, and note that every reader of this server can then " +
            "read them",
        );
      }
      resolved.set(formatResource(resource), resource);
    }
  }
  return [...resolved.values()];
}

export function defaultResources(discovery: Discovery): DiscoveredResource[] {
  const found: DiscoveredResource[] = [];
  for (const name of DEFAULT_RESOURCES) {
    const resource = resourceNamed(name, discovery.resources);
    if (resource !== undefined && isWatchable(resource)) found.push(resource);
  }
  return found;
}

function resolve(name: string, discovery: Discovery): DiscoveredResource[] {
  const { resources } = discovery;
  const resource = resourceNamed(name, resources);
  if (resource !== undefined) {
    if (isWatchable(resource)) return [resource];
    throw new UsageError(
      `Resource ${quote(name)} (${formatResource(resource)}) cannot be listed and watched: its verbs are ` +
        (resource.verbs.join(", ") || "none"),
    );
  }
  const category = name.toLowerCase();
  const members = firstVersions(resources).filter((r) => r.categories.includes(category) && isWatchable(r));
  if (members.length > 0) return members;
  throw unknownResource(name, discovery);
}

function unknownResource(name: string, { resources, unavailable }: Discovery): UsageError {
  const watchable = resources.filter(isWatchable);
  const known = watchable.flatMap((r) => [r.resource, r.singularName, ...r.shortNames]).filter((text) =>
    text !== ""
  );
  const dot = name.indexOf(".");
  const bare = dot < 0 ? name : name.slice(0, dot);
  // The group may be wrong and the name right.
  const near = watchable.filter((r) => resourceNames(r).includes(bare.toLowerCase())).map(
    formatGroupResource,
  );
  for (const candidate of nearNames(bare, known, 6)) {
    const resource = resourceNamed(candidate, watchable);
    if (resource !== undefined) near.push(formatGroupResource(resource));
  }
  const nearest = [...new Set(near)].slice(0, 4);
  const hint = nearest.length > 0
    ? `did you mean ${nearest.join(", ")}?`
    : "`kubectl api-resources --verbs=list,watch` lists its resources";
  const down = unavailable.length > 0 ? ` (${unavailable.join(", ")} did not respond)` : "";
  return new UsageError(`Cannot reflect ${quote(name)}: the server has no such resource${down}; ${hint}`);
}

/** Each resource of a group once, in its first version. */
function firstVersions(resources: readonly DiscoveredResource[]): DiscoveredResource[] {
  const seen = new Map<string, DiscoveredResource>();
  for (const resource of resources) {
    const name = formatGroupResource(resource);
    if (!seen.has(name)) seen.set(name, resource);
  }
  return [...seen.values()];
}

function isWatchable(resource: DiscoveredResource): boolean {
  return resource.verbs.includes("list") && resource.verbs.includes("watch");
}

function isSecrets(resource: DiscoveredResource): boolean {
  return resource.resource === "secrets";
}
