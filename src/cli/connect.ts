/**
 * Finding the cluster, and what to reflect of it.
 * @module
 */

import { type Cluster, newCluster } from "../client/cluster.ts";
import type { ApiResource } from "../protocol/api_resource.ts";
import { builtinResource } from "../protocol/builtin_resources.ts";
import { isForbidden } from "../meta/status.ts";
import { restConfigFromKubeconfig } from "../node/kubeconfig_rest_config.ts";
import { loadKubeconfig } from "../node/load_kubeconfig.ts";
import { linkedAbort } from "../util/abort.ts";
import type { Clock } from "../util/clock.ts";
import type { Logger } from "../util/logger.ts";
import { discover, type DiscoveredResource, type Discovery } from "./discovery.ts";
import { EMBEDDED_RESOURCES, newEmbeddedCluster } from "./embedded_cluster.ts";
import { CommandError, explainServerError, type ServerName } from "./errors.ts";
import { formatGroupResource } from "../meta/resource.ts";
import { defaultResources, resolveResources } from "./resource_names.ts";
import type { ClusterSource, ServeStep } from "./serve_options.ts";

/** How long the first requests may take: nobody waits longer for a program that only says that it cannot start. */
const FIRST_ANSWER_MS = 15_000;

/** A cluster that can be asked. */
export interface Connection {
  readonly cluster: Cluster;
  /** What a person calls it. */
  readonly name: string;
  readonly server: string;
  /** The kubeconfig's context, if that named it. */
  readonly context?: string;
  /** The resources to reflect when none are named; those of a real cluster if absent. */
  readonly defaultNames?: readonly string[];
  /** What must run beside the informers; resolves when the signal is aborted. */
  run?(signal: AbortSignal): Promise<void>;
  /** Lets go of what a connection that is not run holds. */
  close?(): void;
}

/** Options of {@linkcode connect}. */
export interface ConnectOptions {
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Finds the cluster. Nothing is asked of it yet. */
export async function connect(source: ClusterSource, options: ConnectOptions): Promise<Connection> {
  const { clock, logger } = options;
  if (source.kind === "embedded") {
    const seed = source.seed ?? 1;
    const { server, run } = newEmbeddedCluster({ clock, seed });
    return {
      cluster: newCluster({ server: "http://embedded", fetch: server.fetch, clock, logger }),
      name: "embedded cluster",
      server: "inside this program",
      defaultNames: EMBEDDED_RESOURCES,
      run,
      close: () => server.close(),
    };
  }
  const kubeconfig = await loadKubeconfig({ ...(source.path !== undefined && { path: source.path }) });
  const context = source.context;
  const config = await restConfigFromKubeconfig(kubeconfig, {
    clock,
    logger,
    ...(context !== undefined && { context }),
  });
  const name = context ?? kubeconfig["current-context"] ?? "";
  const cluster = newCluster({ ...config, userAgent: "listwatch" });
  return {
    cluster,
    name,
    // Without a query, which could hold a token.
    server: cluster.server,
    context: name,
  };
}

/** What to reflect. */
export interface Selection {
  readonly resources: readonly DiscoveredResource[];
  /** The server's version, such as `v1.36.3`, if it tells. */
  readonly version:
    | { readonly major: string; readonly minor: string; readonly gitVersion: string }
    | undefined;
}

/** Options of {@linkcode selectResources}. */
export interface SelectOptions {
  /** The names that were given; the usual resources if none were. */
  readonly names?: readonly string[];
  readonly namespace?: string;
  readonly allowSecrets?: boolean;
  /** Fields that are left out. */
  readonly drop?: readonly string[];
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly onStep: (step: ServeStep) => void;
}

/**
 * Asks the cluster what it has, resolves names, and tries whether each resource can be listed. The first answers must
 * come within 15 seconds: this is the one time that a server out of reach is given up.
 *
 * A resource that was named and is refused is an error; one of the usual ones is left out, and said so.
 *
 * @throws {CommandError} In one line: out of reach, 401, 403, no such resource.
 * @throws The signal's reason, once it is aborted.
 */
export async function selectResources(connection: Connection, options: SelectOptions): Promise<Selection> {
  const { clock, signal } = options;
  const { cluster } = connection;
  const deadline = linkedAbort(signal);
  const timer = clock.setTimeout(
    () =>
      deadline.abort(
        new CommandError(
          `Cannot reach ${whereIs(connection)}: no answer within ${FIRST_ANSWER_MS / 1_000} s`,
        ),
      ),
    FIRST_ANSWER_MS,
  );
  try {
    const discovery = await asking(
      "discover the resources",
      connection,
      signal,
      () => discover(cluster, deadline.signal),
    );
    const version = await cluster.request("/version", { signal: deadline.signal }).catch(() => undefined);
    const resources = choose(discovery, connection, options);
    // The embedded cluster refuses nobody.
    const allowed = connection.context === undefined
      ? resources
      : await onlyAllowed(resources, connection, options, deadline.signal);
    return { resources: allowed, version: versionOf(version) };
  } finally {
    clock.clearTimeout(timer);
    deadline.unlink();
  }
}

function choose(discovery: Discovery, connection: Connection, options: SelectOptions): DiscoveredResource[] {
  const names = options.names ?? connection.defaultNames;
  return names === undefined ? defaultResources(discovery) : resolveResources(names, discovery, options);
}

async function onlyAllowed(
  resources: readonly DiscoveredResource[],
  connection: Connection,
  options: SelectOptions,
  signal: AbortSignal,
): Promise<DiscoveredResource[]> {
  const { names, namespace, drop } = options;
  const answers = await Promise.allSettled(resources.map((resource) => {
    const client = connection.cluster.resource(resource, clientOptions(resource, { namespace, drop }));
    return client.list({ limit: 1 }, { signal });
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
    options.signal.throwIfAborted();
    refusal = explainServerError(answer.reason, `list ${name}`, connection);
    if (names !== undefined || !isForbidden(answer.reason)) throw refusal;
    skipped.push(name);
  }
  if (allowed.length === 0 && refusal !== undefined) throw refusal;
  if (skipped.length > 0) options.onStep({ type: "skipped", resources: skipped });
  return allowed;
}

/** How a resource is asked for: a namespace narrows only those that have one. */
export function clientOptions(
  resource: ApiResource,
  options: { readonly namespace?: string | undefined; readonly drop?: readonly string[] | undefined },
): { readonly namespace?: string; readonly drop: readonly string[] } {
  const { namespace, drop = [] } = options;
  // What is served is what the server has: nothing else is left out.
  return { drop, ...(resource.namespaced && namespace !== undefined && { namespace }) };
}

/** A resource as this program serves it: as the server describes it, but read-only. */
export function servedResource(resource: DiscoveredResource): ApiResource {
  const fields = builtinResource(resource)?.fieldSelectors;
  return { ...resource, verbs: ["get", "list", "watch"], ...(fields && { fieldSelectors: fields }) };
}

async function asking<R>(
  what: string,
  name: ServerName,
  signal: AbortSignal,
  ask: () => Promise<R>,
): Promise<R> {
  try {
    return await ask();
  } catch (error) {
    signal.throwIfAborted();
    throw explainServerError(error, what, name);
  }
}

function whereIs({ server, context }: ServerName): string {
  return context === undefined ? server : `${server} (context ${JSON.stringify(context)})`;
}

function versionOf(answer: unknown): Selection["version"] {
  const { major, minor, gitVersion } = (answer ?? {}) as Record<string, unknown>;
  return typeof major === "string" && typeof minor === "string" && typeof gitVersion === "string"
    ? { major, minor, gitVersion }
    : undefined;
}
