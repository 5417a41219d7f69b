import type { Requests } from "./resource_client.ts";
import type { ApiResource, PrinterColumn } from "../protocol/api_resource.ts";
import { formatResource, type GroupVersionResource } from "../meta/resource.ts";
import { newStatus, StatusError, statusErrorOf } from "../meta/status.ts";

/** A resource in one version, from the discovery documents. */
export interface DiscoveredResource extends ApiResource {
  readonly singularName: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly verbs: readonly string[];
}

/** The names by which a resource is found. */
type NamedResource = Pick<
  DiscoveredResource,
  "group" | "version" | "resource" | "kind" | "singularName" | "shortNames"
>;

/** The resources that a server serves. */
export interface Discovery {
  /**
   * The core group first, then the groups in the server's order; in a group, the preferred version first.
   * kubectl takes the first match, too.
   */
  readonly resources: readonly DiscoveredResource[];
  /** Group versions without a list of resources; usually an aggregated API server is down. */
  readonly unavailable: readonly string[];
}

const AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList," +
  "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";

/**
 * Discovers the resources of an API server: with two requests if it has aggregated discovery, else with one
 * more for each group version.
 *
 * @throws {StatusError} The server refused `/api` or `/apis`; an `/api` that is not there (404) has nothing.
 * @throws {NetworkError} The server did not respond.
 *
 * @example
 * ```ts
 * import { newCluster } from "@listwatch/cache";
 * import { discover } from "@listwatch/cache/client";
 * import { InMemoryApiServer } from "@listwatch/cache/testing";
 * const server = new InMemoryApiServer();
 * const { resources } = await discover(newCluster({ server: "http://in-memory", fetch: server.fetch }));
 * console.log(resources.find(({ kind }) => kind === "Pod")?.shortNames); // [ "po" ]
 * server.close();
 * ```
 */
export async function discover(cluster: Pick<Requests, "request">, signal?: AbortSignal): Promise<Discovery> {
  const resources: DiscoveredResource[] = [];
  const unavailable: string[] = [];
  const plain: string[] = [];
  const [core, groups] = askDiscovery(cluster, ["/api", "/apis"], signal);
  for (const answer of await Promise.all([core.catch(withoutCoreGroup), groups])) {
    if (isAggregated(answer)) readAggregated(answer, resources, unavailable);
    else plain.push(...groupVersions(answer as PlainGroups));
  }
  // In the order of `plain`, not of the responses.
  const paths = plain.map((groupVersion) =>
    `/${groupVersion.includes("/") ? "apis" : "api"}/${groupVersion}`
  );
  const read = askDiscovery(cluster, paths, signal).map(async (answer, i) =>
    readPlain(plain[i], await answer as PlainResources)
  );
  (await Promise.allSettled(read)).forEach((answer, i) => {
    if (answer.status === "rejected") unavailable.push(plain[i]);
    else resources.push(...answer.value);
  });
  return { resources, unavailable };
}

/** Requests discovery documents; a server may answer with aggregated ones. */
function askDiscovery(
  cluster: Pick<Requests, "request">,
  paths: readonly string[],
  signal: AbortSignal | undefined,
): Promise<unknown>[] {
  return paths.map((path) => cluster.request(path, { headers: { Accept: AGGREGATED }, signal }));
}

/** The core group where a server has none: without versions. client-go takes only this 404 for it. */
function withoutCoreGroup(error: unknown): PlainGroups {
  if (statusErrorOf(error)?.httpStatus === 404) return {};
  throw error;
}

interface AggregatedResource {
  readonly resource: string;
  readonly responseKind?: { readonly kind?: string };
  readonly scope?: string;
  readonly singularResource?: string;
  readonly shortNames?: readonly string[];
  readonly categories?: readonly string[];
  readonly verbs?: readonly string[];
  readonly subresources?: readonly { readonly subresource?: string; readonly verbs?: readonly string[] }[];
  /** A cache's part of the definition of a custom resource. */
  readonly definition?: Partial<ApiResource>;
}

interface Aggregated {
  readonly kind: "APIGroupDiscoveryList";
  // Go writes a list without elements as null.
  readonly items?:
    | readonly {
      readonly metadata?: { readonly name?: string };
      readonly versions?:
        | readonly {
          readonly version: string;
          readonly freshness?: string;
          readonly resources?: readonly AggregatedResource[] | null;
        }[]
        | null;
    }[]
    | null;
}

function isAggregated(answer: unknown): answer is Aggregated {
  return (answer as Partial<Aggregated> | undefined)?.kind === "APIGroupDiscoveryList";
}

/** The resources of an aggregated document, by their names. */
function* namedResources(
  { items }: Aggregated,
): Generator<NamedResource & { of: AggregatedResource }> {
  for (const { metadata, versions } of items ?? []) {
    for (const { version, resources } of versions ?? []) {
      for (const of of resources ?? []) {
        yield {
          group: metadata?.name ?? "",
          version,
          resource: of.resource,
          kind: of.responseKind?.kind ?? "",
          singularName: of.singularResource ?? "",
          shortNames: of.shortNames ?? [],
          of,
        };
      }
    }
  }
}

function readAggregated(
  answer: Aggregated,
  resources: DiscoveredResource[],
  unavailable: string[],
): void {
  for (const { of, ...names } of namedResources(answer)) {
    resources.push({
      ...names,
      categories: of.categories ?? [],
      namespaced: of.scope === "Namespaced",
      verbs: of.verbs ?? [],
      ...(of.subresources?.some(isStatus) && { subresources: { status: true } }),
      ...definitionOf(of.definition),
    });
  }
  for (const { metadata, versions } of answer.items ?? []) {
    for (const { version, freshness, resources } of versions ?? []) {
      if (freshness === "Stale" && !resources?.length) {
        unavailable.push(`${metadata?.name ?? ""}/${version}`);
      }
    }
  }
}

/** The definition of a custom resource as another cache sends it, as far as it has that form. */
function definitionOf(definition: Partial<ApiResource> = {}): Partial<ApiResource> {
  const { printerColumns, fieldSelectors, subresources, deprecationWarning } = definition;
  const { scale, status } = subresources ?? {};
  const areTexts = (...values: readonly unknown[]) => values.every((value) => typeof value === "string");
  const isColumn = (each: PrinterColumn) => areTexts(each?.name, each?.type, each?.jsonPath);
  const hasScale = areTexts(scale?.specReplicasPath, scale?.statusReplicasPath);
  return {
    ...(Array.isArray(printerColumns) && printerColumns.every(isColumn) && { printerColumns }),
    ...(Array.isArray(fieldSelectors) && areTexts(...fieldSelectors) && { fieldSelectors }),
    ...(subresources && { subresources: { status: status === true, ...(hasScale && { scale: scale! }) } }),
    ...(areTexts(deprecationWarning) && { deprecationWarning }),
  };
}

function isStatus({ subresource, verbs }: { subresource?: string; verbs?: readonly string[] }): boolean {
  return subresource === "status" && verbs?.includes("get") === true;
}

interface PlainGroups {
  readonly versions?: readonly string[] | null;
  readonly groups?:
    | readonly {
      readonly versions?: readonly { readonly groupVersion: string }[] | null;
      readonly preferredVersion?: { readonly groupVersion: string } | null;
    }[]
    | null;
}

function groupVersions(answer: PlainGroups): string[] {
  const found = [...(answer.versions ?? [])];
  for (const group of answer.groups ?? []) {
    const preferred = group.preferredVersion?.groupVersion;
    if (preferred) found.push(preferred);
    for (const { groupVersion } of group.versions ?? []) {
      if (groupVersion !== preferred) found.push(groupVersion);
    }
  }
  return found;
}

interface PlainResources {
  readonly resources?:
    | readonly {
      readonly name: string;
      readonly singularName?: string;
      readonly namespaced: boolean;
      readonly kind: string;
      readonly verbs?: readonly string[];
      readonly shortNames?: readonly string[];
      readonly categories?: readonly string[];
    }[]
    | null;
}

function readPlain(groupVersion: string, answer: PlainResources): DiscoveredResource[] {
  const slash = groupVersion.indexOf("/");
  const group = slash < 0 ? "" : groupVersion.slice(0, slash);
  const version = groupVersion.slice(slash + 1);
  const resources = answer.resources ?? [];
  const readable = new Set(resources.filter(({ verbs }) => verbs?.includes("get")).map(({ name }) => name));
  // Without subresources, such as "pods/status".
  return resources.filter(({ name }) => !name.includes("/")).map((resource) => ({
    group,
    version,
    resource: resource.name,
    kind: resource.kind,
    singularName: resource.singularName ?? "",
    shortNames: resource.shortNames ?? [],
    categories: resource.categories ?? [],
    namespaced: resource.namespaced,
    verbs: resource.verbs ?? [],
    ...(readable.has(`${resource.name}/status`) && { subresources: { status: true } }),
  }));
}

/**
 * Finds a resource of a server by a name: a plural, singular, short name or kind, in any case
 * (`pods`, `pod`, `po`, `Pod`), optionally followed by `.group` or `.version.group`
 * (`deployments.apps`), or `group/version/resource`. If several groups have the name, the server's
 * first one is taken, and of a group the preferred version, as by kubectl.
 *
 * @returns The resource as `cluster.resource` takes it, with the kind, the scope and the verbs.
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
 * The hint behind the error of a resource that a server does not have; `""` if nothing helps, or the server
 * has no aggregated discovery.
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
  // A resource that the server has, and answers 404 for, needs another hint.
  if (resources.length === 0 || similar.includes(formatResource(unknown))) return "";
  if (similar.length > 0) return `; did you mean ${similar.slice(0, 3).map((id) => `"${id}"`).join(" or ")}?`;
  const versions = [...new Set(resources.filter((one) => one.group === group).map((one) => one.version))];
  if (versions.length === 0) {
    return `; the server has no API group "${group}": is its definition (CRD) installed?`;
  }
  if (!versions.includes(version)) return `; the server has "${group}" in ${versions.join(", ")} only`;
  return "; the server has no resource of this name: is its definition (CRD) installed?";
}
