/** Selects the resources to reflect. */

import { NamespaceSet } from "../../informer/namespaces/namespace_set.ts";
import type { ApiResource } from "../../protocol/api_resource.ts";
import { builtinResource } from "../../protocol/builtin_resources.ts";
import { networkErrorOf } from "../../meta/request.ts";
import { isForbidden, statusErrorOf } from "../../meta/status.ts";
import { formatGroupResource, formatResource } from "../../meta/resource.ts";
import type { ResourceOptions } from "../../client/resource_client.ts";
import type { KubernetesObject } from "../../meta/object.ts";
import { withTimeLimit } from "../../util/abort.ts";
import { type Connection, readClusterUid } from "./connect.ts";
import {
  discover,
  type DiscoveredResource,
  type Discovery,
  resourceNamed,
  resourceNames,
} from "../../client/discovery.ts";
import { CommandError, explainServerError, nearNames, quote, UsageError, whereIs } from "../errors.ts";
import type { VersionInfo } from "../../hono/read_api_options.ts";
import type { ServeOptions, ServeSettings } from "../serve/serve_options.ts";
import { SharedIndexInformer } from "../../informer/shared_informer.ts";
import { sqliteSnapshot } from "../../node/sqlite_snapshot.ts";
import { fieldIndex, type Indexers, labelIndexFunc, metaNamespaceIndex } from "../../store/index_func.ts";
import { shortTexts } from "../../store/texts.ts";
import type { Metrics } from "../../util/metrics.ts";

/** The time limit of the first requests, if there is a saved selection. */
const FIRST_RESPONSE_MS = 15_000;
const FIRST_RESPONSE_OF_SAVED_MS = 3_000;

export interface Selection {
  readonly resources: readonly DiscoveredResource[];
  /** The names, such as `v1/pods`, in the order of the server's discovery, in which clients look. */
  readonly discoveryOrder: readonly string[];
  /** The server's version, such as `v1.36.3`, if known. */
  readonly version: (Partial<VersionInfo> & Pick<VersionInfo, "gitVersion">) | undefined;
  /** The uid that `readClusterUid` has read; `""` if it was not requested, too. */
  readonly clusterUid: string;
}

/**
 * Discovers the cluster's resources, resolves names, and tries to list each resource. `away`: why the saved
 * selection was taken; absent if the cluster has responded.
 */
export async function selectResources(
  connection: Connection,
  settings: ServeSettings,
  saved: Selection | undefined,
): Promise<Selection & { readonly away?: CommandError }> {
  const limitMs = saved === undefined ? FIRST_RESPONSE_MS : FIRST_RESPONSE_OF_SAVED_MS;
  try {
    return await selectNow(connection, settings, limitMs);
  } catch (error) {
    settings.signal.throwIfAborted();
    if (saved === undefined || !(error instanceof CommandError) || !isAway(error)) throw error;
    return { ...saved, away: error };
  }
}

class NoResponseError extends CommandError {}

/** Whether the server did not respond, or could not; not if it has refused. */
function isAway(error: CommandError): boolean {
  const { cause } = error;
  const status = statusErrorOf(cause)?.httpStatus;
  if (status !== undefined) return status === 429 || status >= 500;
  return error instanceof NoResponseError || networkErrorOf(cause) !== undefined ||
    cause instanceof TypeError;
}

async function selectNow(
  connection: Connection,
  settings: ServeSettings,
  limitMs: number,
): Promise<Selection> {
  const { clock, signal, snapshot } = settings;
  const { cluster } = connection;
  const asking = async <R>(what: string, answer: Promise<R>): Promise<R> => {
    try {
      return await answer;
    } catch (error) {
      signal.throwIfAborted();
      throw explainServerError(error, what, connection);
    }
  };
  return await withTimeLimit(async (deadline) => {
    const discovery = await asking("discover the resources", discover(cluster, deadline));
    const clusterUid = snapshot === undefined
      ? ""
      : await asking("get the namespace kube-system", readClusterUid(cluster, deadline));
    const version = await cluster.request("/version", { signal: deadline }).catch(() => undefined);
    const names = settings.resources ?? connection.defaultNames;
    const resources = names === undefined
      ? defaultResources(discovery)
      : resolveResources(names, discovery, settings);
    // The embedded cluster refuses nothing.
    const allowed = connection.context === undefined
      ? resources
      : await onlyAllowed(resources, connection, settings, deadline);
    const inOrder = discovery.resources.filter((resource) => allowed.includes(resource));
    return {
      resources: allowed,
      discoveryOrder: inOrder.map(formatResource),
      version: versionOf(version),
      clusterUid,
    };
  }, {
    ms: limitMs,
    newError: () =>
      new NoResponseError(`Cannot reach ${whereIs(connection)}: no response within ${limitMs / 1_000} s`),
    clock,
    signal,
  });
}

async function onlyAllowed(
  resources: readonly DiscoveredResource[],
  connection: Connection,
  settings: ServeSettings,
  signal: AbortSignal,
): Promise<DiscoveredResource[]> {
  const { resources: names } = settings;
  const answers = await Promise.allSettled(resources.map((resource) => {
    const client = connection.cluster.resource(resource, clientOptions(resource, settings));
    // One readable namespace is enough; `/readyz` names what is missing of the others.
    const each = client.namespaces?.names.map((name) => client.inNamespace(name)) ?? [client];
    return Promise.any(each.map((one) => one.list({ limit: 1 }, { signal })))
      .catch((error: AggregateError) => Promise.reject(error.errors[0]));
  }));
  const allowed: DiscoveredResource[] = [];
  const skipped: string[] = [];
  let refusal: CommandError | undefined;
  for (const [i, answer] of answers.entries()) {
    const name = formatGroupResource(resources[i]);
    if (answer.status === "fulfilled") {
      allowed.push(resources[i]);
      continue;
    }
    settings.signal.throwIfAborted();
    refusal = explainServerError(answer.reason, `list ${name}`, connection);
    if (names !== undefined || !isForbidden(answer.reason)) throw refusal;
    skipped.push(name);
  }
  if (allowed.length === 0 && refusal !== undefined) throw refusal;
  if (skipped.length > 0) settings.onStep({ type: "skipped", resources: skipped });
  return allowed;
}

/** The client options of a resource; a namespace applies only to namespaced resources. */
export function clientOptions(
  resource: ApiResource,
  { namespace, drop = [] }: Pick<ServeOptions, "namespace" | "drop">,
): Pick<ResourceOptions<KubernetesObject>, "namespace" | "namespaces" | "drop"> & {
  readonly keep: "everything";
} {
  // Readers receive the server's objects, less the dropped fields.
  const all = { keep: "everything", drop } as const;
  if (!resource.namespaced || namespace === undefined) return all;
  return typeof namespace === "string"
    ? { ...all, namespace }
    : { ...all, namespaces: new NamespaceSet(namespace) };
}

export function servedResource(resource: DiscoveredResource): ApiResource {
  const { fieldSelectors, deprecationWarning } = builtinResource(resource) ?? {};
  return {
    ...resource,
    verbs: ["get", "list", "watch"],
    ...(fieldSelectors && { fieldSelectors }),
    ...(deprecationWarning && { deprecationWarning }),
  };
}

function versionOf(answer: unknown): Selection["version"] {
  const fields = Object.entries(answer ?? {}).filter(([, value]) => typeof value === "string");
  const { major, minor, gitVersion, ...rest } = Object.fromEntries<string | undefined>(fields);
  return major !== undefined && minor !== undefined && gitVersion !== undefined
    ? { ...rest, major, minor, gitVersion }
    : undefined;
}

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
      if (resource.resource === "secrets" && !options.allowSecrets) {
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
  return DEFAULT_RESOURCES.flatMap((name) => {
    const resource = resourceNamed(name, discovery.resources);
    return resource !== undefined && isWatchable(resource) ? [resource] : [];
  });
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
  const firstVersions = Array.from(Map.groupBy(resources, formatGroupResource).values(), ([first]) => first);
  const members = firstVersions.filter((r) => r.categories.includes(category) && isWatchable(r));
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

function isWatchable(resource: DiscoveredResource): boolean {
  return resource.verbs.includes("list") && resource.verbs.includes("watch");
}

interface Kept {
  readonly snapshotPath: string | undefined;
  /** The uid of the cluster, which the snapshot must be of; `""` if it is not known. */
  readonly clusterUid: string;
  readonly metrics: Metrics | undefined;
}

/** Makes the informer of a resource, with its indices. It is not run yet. */
export function reflect(
  resource: DiscoveredResource,
  { cluster }: Pick<Connection, "cluster">,
  settings: ServeSettings,
  { snapshotPath, clusterUid, metrics }: Kept,
): ReflectedResource {
  const { storage, clock, logger } = settings;
  const name = formatGroupResource(resource);
  const client = cluster.resource<KubernetesObject>(resource, clientOptions(resource, settings));
  const served = servedResource(resource);
  const informer = new SharedIndexInformer<KubernetesObject, ReflectedIndex>(client, {
    name,
    indexers: reflectedIndexers({ resource: served }),
    ...(storage === "short-texts" && { storage: shortTexts() }),
    ...(snapshotPath !== undefined && { snapshot: sqliteSnapshot(snapshotPath, { identity: clusterUid }) }),
    ...(metrics && { metrics }),
    clock,
    logger,
  });
  return { name, resource: served, informer };
}

/** The indices of every resource; `byNode` has values of pods only. */
export type ReflectedIndex = "namespace" | "byNode";

export interface ReflectedResource {
  readonly name: string;
  readonly resource: ApiResource;
  readonly informer: SharedIndexInformer<KubernetesObject, ReflectedIndex>;
}

/** The index functions: reads by namespace, and of the pods on a node, do not look at every object. */
export function reflectedIndexers(
  { resource: { group, resource } }: Pick<ReflectedResource, "resource">,
): Indexers<KubernetesObject, ReflectedIndex> {
  const isPods = group === "" && resource === "pods";
  return { namespace: metaNamespaceIndex, byNode: isPods ? fieldIndex("spec.nodeName") : NO_VALUES };
}

/** An index of no labels: it reads nothing of an object. */
const NO_VALUES = labelIndexFunc([]);
