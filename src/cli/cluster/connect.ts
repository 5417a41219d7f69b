/** Connects to the cluster that the options name. */

import { type Cluster, newCluster } from "../../client/cluster.ts";
import { type RestConfig, serverUrl } from "../../client/rest_config.ts";
import { restConfigFromKubeconfig } from "../../node/kubeconfig_rest_config.ts";
import { loadKubeconfig } from "../../node/load_kubeconfig.ts";
import type { Clock } from "../../util/clock.ts";
import type { Logger } from "../../util/logger.ts";
import type { ClusterGate } from "./cluster_identity.ts";
import { EMBEDDED_RESOURCES, EmbeddedCluster } from "../embedded_cluster/embedded_cluster.ts";
import type { ClusterSource } from "../serve/serve_options.ts";

/** The way to an API server without credentials. */
export type AnonymousWay = Pick<RestConfig, "server" | "fetch">;

/** A cluster, and how it is called. */
export interface Connection {
  readonly cluster: Cluster;
  /** The name for people. */
  readonly name: string;
  readonly server: string;
  /** The kubeconfig's context, if it comes from one. */
  readonly context?: string;
  /** The resources to reflect by default; those of any cluster if absent. */
  readonly defaultNames?: readonly string[];
  /**
   * The way to the cluster's API server without the credentials of the kubeconfig; absent where there is none
   * over https.
   */
  readonly anonymous?: AnonymousWay;
  /** Runs the embedded cluster until the signal is aborted. */
  run?(signal: AbortSignal): Promise<void>;
  /** Closes a connection that is not run. */
  close?(): void;
}

/** Options of {@linkcode connect}. */
export interface ConnectOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  /** What the requests of {@linkcode Connection.cluster} pass; none by default. */
  readonly gate?: ClusterGate;
}

/** Prepares the connection; sends no request yet. */
export async function connect(source: ClusterSource, options: ConnectOptions): Promise<Connection> {
  const { clock, logger } = options;
  if (source.kind === "embedded") {
    const embedded = new EmbeddedCluster({ clock, seed: source.seed ?? 1 });
    const { server } = embedded;
    return {
      cluster: newCluster({ server: "http://embedded", fetch: server.fetch, clock, logger }),
      name: "embedded cluster",
      server: "in this process",
      defaultNames: EMBEDDED_RESOURCES,
      run: (signal) => embedded.run(signal),
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
  const rest = { ...config, userAgent: "listwatch" };
  const cluster = newCluster(options.gate?.guard(rest) ?? rest);
  const anonymous = await withoutUsers(kubeconfig, source, options);
  return {
    cluster,
    name,
    // Without the query, which could contain a token.
    server: cluster.server,
    context: name,
    ...(anonymous && { anonymous }),
  };
}

/**
 * The way to a kubeconfig's cluster without the credentials of its users; `undefined` where there is none
 * over https.
 */
async function withoutUsers(
  kubeconfig: Awaited<ReturnType<typeof loadKubeconfig>>,
  { context }: Extract<ClusterSource, { kind: "kubeconfig" }>,
  { clock, logger }: ConnectOptions,
): Promise<Connection["anonymous"]> {
  // No client certificate, token or plugin.
  const users = new Map(Array.from(kubeconfig.users.keys(), (user) => [user, {}]));
  const { server, fetch } = await restConfigFromKubeconfig({ ...kubeconfig, users }, {
    clock,
    logger,
    ...(context !== undefined && { context }),
  });
  // Without what may follow the path, such as a token.
  const url = serverUrl(server);
  if (!/^https:/i.test(url) || fetch === undefined) return undefined;
  return { server: url, fetch };
}
