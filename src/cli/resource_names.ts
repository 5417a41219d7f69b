/**
 * The names that people type for resources, resolved as kubectl does.
 * @module
 */

import { formatGroupResource, formatResource } from "../meta/resource.ts";
import type { DiscoveredResource, Discovery } from "./discovery.ts";
import { quote, UsageError } from "./errors.ts";
import { nearNames } from "./near_names.ts";

/** The resources that are reflected when none are named; those the server does not have are left out. */
export const DEFAULT_RESOURCES: readonly string[] = [
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

/** What {@linkcode resolveResources} considers. */
export interface ResolveOptions {
  /** Lets Secrets be named; `false` by default. */
  readonly allowSecrets?: boolean;
}

/**
 * Resolves names to resources of the server, in the order given, each resource once.
 *
 * A name is a plural, singular, short name or kind, in any case (`pods`, `pod`, `po`, `Pod`), optionally followed by
 * `.group` or `.version.group` (`deployments.apps`, `deploy.v1.apps`), or `group/version/resource`, or a category
 * (`all`). Where several groups have the name, the core group wins, then the server's order, as with kubectl.
 *
 * @throws {UsageError} No resource has the name (with the nearest that do), it cannot be listed and watched, or it is
 * Secrets without `allowSecrets`.
 */
export function resolveResources(
  names: readonly string[],
  discovery: Discovery,
  options: ResolveOptions = {},
): DiscoveredResource[] {
  const resolved = new Map<string, DiscoveredResource>();
  for (const name of names) {
    for (const resource of resolve(name, discovery)) {
      if (isSecrets(resource) && !options.allowSecrets) {
        throw new UsageError(
          "Secrets are not served unless you say so: add --allow-secrets, and mind that whoever reaches this " +
            "server can then read them",
        );
      }
      resolved.set(formatResource(resource), resource);
    }
  }
  return [...resolved.values()];
}

/** Those of {@linkcode DEFAULT_RESOURCES} that the server has. */
export function defaultResources(discovery: Discovery): DiscoveredResource[] {
  const found: DiscoveredResource[] = [];
  for (const name of DEFAULT_RESOURCES) {
    const resource = find(name, discovery.resources);
    if (resource !== undefined && isWatchable(resource)) found.push(resource);
  }
  return found;
}

function resolve(name: string, discovery: Discovery): DiscoveredResource[] {
  const { resources } = discovery;
  const resource = find(name, resources);
  if (resource !== undefined) {
    if (isWatchable(resource)) return [resource];
    throw new UsageError(
      `Resource ${quote(name)} (${
        formatResource(resource)
      }) cannot be listed and watched: the server offers ` +
        (resource.verbs.join(", ") || "no verbs"),
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
  // The name may be right and the group wrong.
  const near = watchable.filter((r) => names(r).includes(bare.toLowerCase())).map(formatGroupResource);
  for (const candidate of nearNames(bare, known, 6)) {
    const resource = find(candidate, watchable);
    if (resource !== undefined) near.push(formatGroupResource(resource));
  }
  const nearest = [...new Set(near)].slice(0, 4);
  const hint = nearest.length > 0
    ? `did you mean ${nearest.join(", ")}?`
    : "`kubectl api-resources --verbs=list,watch` lists those it has";
  const down = unavailable.length > 0 ? ` (${unavailable.join(", ")} did not answer)` : "";
  return new UsageError(`The server has no resource ${quote(name)}: ${hint}${down}`);
}

function find(name: string, resources: readonly DiscoveredResource[]): DiscoveredResource | undefined {
  const parts = name.split("/");
  if (parts.length > 1) {
    const [group, version, resource] = parts.length === 2 ? ["", ...parts] : parts;
    return resources.find((r) => r.group === group && r.version === version && r.resource === resource);
  }
  const text = name.toLowerCase();
  const dot = text.indexOf(".");
  if (dot < 0) return resources.find((r) => names(r).includes(text));
  const bare = text.slice(0, dot);
  const rest = text.slice(dot + 1);
  const named = resources.filter((r) => names(r).includes(bare));
  // As kubectl: first as resource.version.group, then as resource.group.
  return named.find((r) => rest === `${r.version}.${r.group}` || rest === `${r.version}.`) ??
    named.find((r) => r.group === rest);
}

function names(resource: DiscoveredResource): string[] {
  return [resource.resource, resource.singularName, resource.kind.toLowerCase(), ...resource.shortNames];
}

/** Each resource of a group once, in the version that comes first. */
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
