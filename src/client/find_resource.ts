/** Finds resources by the names that people use, as kubectl does. */

import { formatResource, type GroupVersionResource } from "../meta/resource.ts";
import { newStatus, StatusError } from "../meta/status.ts";
import type { Requests } from "./resource_options.ts";
import {
  askDiscovery,
  discover,
  type DiscoveredResource,
  isAggregated,
  type NamedResource,
  namedResources,
} from "./discovery.ts";

/**
 * Finds a resource of a server by a name: a plural, singular, short name or kind, in any case
 * (`pods`, `pod`, `po`, `Pod`), optionally followed by `.group` or `.version.group`
 * (`deployments.apps`), or `group/version/resource`. If several groups have the name, the server's
 * first one is taken, and of a group the preferred version, as by kubectl.
 *
 * @returns What `cluster.resource` takes, with the kind, the scope and the verbs.
 * @throws {StatusError} 404 NotFound: the server has no such resource; or the server refused discovery.
 * @throws {NetworkError} The server did not answer.
 *
 * @example
 * ```ts
 * import { newCluster, SharedIndexInformer } from "@listwatch/cache";
 * import { findResource } from "@listwatch/cache/client";
 * import { InMemoryApiServer } from "@listwatch/cache/testing";
 * const server = new InMemoryApiServer();
 * const cluster = newCluster({ server: "http://in-memory", fetch: server.fetch });
 * const deployments = await findResource(cluster, "deploy");
 * console.log(deployments.group, deployments.version, deployments.kind); // apps v1 Deployment
 * const informer = new SharedIndexInformer(cluster.resource(deployments));
 * console.log(informer.name); // apps/v1/deployments
 * server.close();
 * ```
 */
export async function findResource(
  cluster: Pick<Requests, "request" | "server">,
  name: string,
  options: { readonly signal?: AbortSignal } = {},
): Promise<DiscoveredResource> {
  const { resources, unavailable } = await discover(cluster, options.signal);
  const found = resourceNamed(name, resources);
  if (found !== undefined) return found;
  const down = unavailable.length > 0 ? ` (${unavailable.join(", ")} did not respond)` : "";
  const message = `Cannot find the resource ${
    JSON.stringify(name)
  }: ${cluster.server} has none of this name${down}`;
  throw new StatusError(newStatus(404, "NotFound", message), { message });
}

/** The first of the resources that has the name, as {@linkcode findResource} reads it. */
export function resourceNamed(
  name: string,
  resources: readonly DiscoveredResource[],
): DiscoveredResource | undefined {
  const parts = name.split("/");
  if (parts.length > 1) {
    const [group, version, resource] = parts.length === 2 ? ["", ...parts] : parts;
    return resources.find((r) => r.group === group && r.version === version && r.resource === resource);
  }
  const text = name.toLowerCase();
  const dot = text.indexOf(".");
  if (dot < 0) return resources.find((r) => resourceNames(r).includes(text));
  const bare = text.slice(0, dot);
  const rest = text.slice(dot + 1);
  const named = resources.filter((r) => resourceNames(r).includes(bare));
  // As kubectl: resource.version.group first, then resource.group, see ParseResourceArg in
  // https://github.com/kubernetes/apimachinery/blob/master/pkg/runtime/schema/group_version.go
  return named.find((r) => rest === `${r.version}.${r.group}` || rest === `${r.version}.`) ??
    named.find((r) => r.group === rest);
}

/** The names of a resource in lower case: plural, singular, kind, short names. */
export function resourceNames({ resource, singularName, kind, shortNames }: NamedResource): string[] {
  return [resource, singularName, kind.toLowerCase(), ...shortNames];
}

/**
 * What follows the error of a resource that a server does not have; `""` if nothing helps, or the server has
 * no aggregated discovery.
 */
export async function unknownResourceHint(
  cluster: Pick<Requests, "request">,
  unknown: GroupVersionResource,
  signal: AbortSignal | undefined,
): Promise<string> {
  // The hint is not worth an error of its own.
  const answers = await Promise.all(askDiscovery(cluster, ["/api", "/apis"], signal)).catch(
    (): unknown[] => [],
  );
  const resources = answers.filter(isAggregated).flatMap((answer) => [...namedResources(answer)]);
  const { group, version, resource } = unknown;
  const similar = resources.filter((one) => resourceNames(one).includes(resource.toLowerCase())).map(
    formatResource,
  );
  // What the server does have, and answers 404 for, is another matter.
  if (resources.length === 0 || similar.includes(formatResource(unknown))) return "";
  if (similar.length > 0) return `; did you mean ${similar.slice(0, 3).map((id) => `"${id}"`).join(" or ")}?`;
  const versions = [...new Set(resources.filter((one) => one.group === group).map((one) => one.version))];
  if (versions.length === 0) {
    return `; the server has no API group "${group}": is its definition (CRD) installed?`;
  }
  if (!versions.includes(version)) return `; the server has "${group}" in ${versions.join(", ")} only`;
  return "; the server has no resource of this name: is its definition (CRD) installed?";
}
