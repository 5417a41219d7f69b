/** Connects to the cluster that the options name, and makes sure that it stays the same one. */

import { type Cluster, newCluster } from "../../client/cluster.ts";
import { type RestConfig, serverUrl } from "../../client/rest_config.ts";
import { isForbidden, isNotFound } from "../../meta/status.ts";
import { restConfigFromKubeconfig } from "../../node/kubeconfig/kubeconfig_rest_config.ts";
import { loadKubeconfig } from "../../node/kubeconfig/load_cluster.ts";
import { onAbort, withTimeLimit } from "../../util/abort.ts";
import type { Clock } from "../../util/clock.ts";
import { EMBEDDED_RESOURCES, EmbeddedCluster } from "../embedded_cluster/embedded_cluster.ts";
import { CommandError } from "../errors.ts";
import type { ClusterSource, ServeSettings } from "../serve/serve_options.ts";

export interface Connection {
  readonly cluster: Cluster;
  readonly name: string;
  readonly server: string;
  readonly context?: string;
  /** The resources to reflect by default; the credentials of any cluster if absent. */
  readonly defaultNames?: readonly string[];
  /** The way to the API server without the kubeconfig's credentials; absent if there is none over https. */
  readonly anonymous?: Pick<RestConfig, "server" | "fetch">;
  /** Runs the embedded cluster until the signal is aborted. */
  run?(signal: AbortSignal): Promise<void>;
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
  // The server without its query, which could contain a token.
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

/** The identity of a cluster, as `ListerWatcher.clusterUid`; `""` if it may not be read, or is not there. */
export async function readClusterUid(
  cluster: Pick<Cluster, "resource">,
  signal: AbortSignal,
): Promise<string> {
  try {
    return await cluster.resource("v1/namespaces").clusterUid(signal);
  } catch (error) {
    if (isForbidden(error) || isNotFound(error)) return "";
    throw error;
  }
}

interface ExpectOptions {
  readonly uid: string;
  readonly folder: string;
  readonly signal: AbortSignal;
}

/**
 * Holds back the requests to a cluster that was away, until it has proven to be the cluster of the snapshots.
 * The versions of another cluster at the same address cannot show that: they may have passed those of the
 * snapshots.
 */
export class ClusterGate {
  readonly #clock: Clock;
  /** Sends requests that are not held back. */
  #open: Cluster | undefined;
  #expected: ExpectOptions | undefined;
  #checking: Promise<void> | undefined;
  #onOther: (error: CommandError) => void = () => {};

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Returns the configuration with a `fetch` that passes the gate. The gate is open at first. */
  guard(config: RestConfig): RestConfig {
    this.#open = newCluster(config);
    const { fetch = globalThis.fetch } = config;
    return {
      ...config,
      fetch: async (input, init) => {
        await this.#admitted();
        return await fetch(input, init);
      },
    };
  }

  expect(options: ExpectOptions): Promise<void> {
    this.#expected = options;
    return new Promise((resolve, reject) => {
      this.#onOther = reject;
      onAbort(options.signal, resolve);
    });
  }

  async #admitted(): Promise<void> {
    if (this.#expected === undefined || this.#open === undefined) return;
    this.#checking ??= this.#check(this.#open, this.#expected).finally(() => this.#checking = undefined);
    await this.#checking;
  }

  async #check(cluster: Cluster, { uid: expected, folder, signal }: ExpectOptions): Promise<void> {
    const uid = await withTimeLimit((deadline) => readClusterUid(cluster, deadline), {
      ms: CHECK_MS,
      newError: () => new Error(`no answer of ${cluster.server} within ${CHECK_MS / 1_000} s`),
      clock: this.#clock,
      signal,
    });
    if (uid === expected) {
      this.#expected = undefined;
      return;
    }
    // A server that has just started may refuse for a moment what it permits later.
    if (uid === "") {
      throw new Error(
        "the uid of the namespace kube-system, which identifies the cluster of the snapshots, cannot be read: " +
          "permit it, or start again to list everything",
      );
    }
    const error = new CommandError(
      `Cannot continue: another cluster responds at ${cluster.server} than that of the snapshots in ${folder}: ` +
        "start again to list everything",
    );
    this.#onOther(error);
    throw error;
  }
}

/** The time limit of a check; the requests that wait for it try again. */
const CHECK_MS = 15_000;
