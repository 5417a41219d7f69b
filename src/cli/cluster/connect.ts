/** Connects to the cluster that the options name. */

import { type Cluster, newCluster } from "../../client/cluster.ts";
import { type RestConfig, serverUrl } from "../../client/rest_config.ts";
import { restConfigFromKubeconfig } from "../../node/kubeconfig_rest_config.ts";
import { loadKubeconfig } from "../../node/load_kubeconfig.ts";
import type { ClusterGate } from "./cluster_identity.ts";
import { EMBEDDED_RESOURCES, EmbeddedCluster } from "../embedded_cluster/embedded_cluster.ts";
import type { ClusterSource, ServeSettings } from "../serve/serve_options.ts";

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

/** Prepares the connection, whose requests pass the gate; sends no request yet. */
export async function connect(
  source: ClusterSource,
  { clock, logger }: Pick<ServeSettings, "clock" | "logger">,
  gate: ClusterGate,
): Promise<Connection> {
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
  const { path, context } = source;
  const kubeconfig = await loadKubeconfig({ path });
  const config = await restConfigFromKubeconfig(kubeconfig, { context, clock, logger });
  // No client certificate, token or plugin.
  const users = new Map(Array.from(kubeconfig.users.keys(), (user) => [user, {}]));
  const anonymous = await restConfigFromKubeconfig({ ...kubeconfig, users }, { context, clock, logger });
  const cluster = newCluster(gate.guard({ ...config, userAgent: "listwatch" }));
  const name = context ?? kubeconfig["current-context"] ?? "";
  // Without the query, which could contain a token.
  const { server } = cluster;
  const url = serverUrl(anonymous.server);
  return {
    cluster,
    name,
    server,
    context: name,
    ...(/^https:/i.test(url) && anonymous.fetch && { anonymous: { server: url, fetch: anonymous.fetch } }),
  };
}
