/**
 * The API server that the tests run against: one of our own, or the one of LISTWATCH_TEST_KUBECONFIG.
 * @module
 */

import process from "node:process";
import { type Cluster, type KubernetesObject, newCluster, type RestConfig } from "@listwatch/cache";
import { loadKubeconfig, restConfigFromKubeconfig } from "@listwatch/cache/node";
import { startCluster, type TestCluster } from "../../scripts/lib/cluster.ts";

/** Labels every object of a test, with a value of the test's own: the cluster may hold others. */
export const TEST_LABEL = "listwatch-test";

const givenKubeconfig = process.env.LISTWATCH_TEST_KUBECONFIG || undefined;

/** For tests that kill the server or compact its data: why they are skipped, or `false`. */
export const skipWithoutOwnServer: string | false = givenKubeconfig === undefined
  ? false
  : "needs a server of its own, and LISTWATCH_TEST_KUBECONFIG names another";

/** A cluster, and the admin's way to it. */
export interface TestConnection extends AsyncDisposable {
  /** The admin's settings; `fetch` trusts the server's certificate. */
  readonly config: RestConfig;
  /** The server without credentials, not even in the connection: for requests with a token. */
  readonly anonymous: RestConfig;
  /** The admin's way, as a file for other programs. */
  readonly kubeconfigPath: string;
  /** The admin's client. */
  readonly cluster: Cluster;
  /**
   * Sends a request of the admin's to a path. Its answer is not compressed, as `fetch` of Deno reads only the
   * beginning of a compressed streamed list.
   */
  ask(path: string, init?: RequestInit): Promise<Response>;
  /** A label selector that only the objects of this connection have. */
  readonly labelSelector: string;
  /** That label. */
  readonly labels: Readonly<Record<string, string>>;
  /** A name that nothing else in the cluster has. */
  uniqueName(prefix: string): string;
  /** Makes namespaces for the test's objects; they go when the connection is closed. */
  createNamespaces(...prefixes: string[]): Promise<string[]>;
  /** Runs `undo` when the connection is closed, last added first; failures do not count. */
  onClose(undo: () => Promise<unknown>): void;
  [Symbol.asyncDispose](): Promise<void>;
}

/** A connection to a server that can be killed and compacted. */
export interface OwnConnection extends TestConnection {
  readonly server: TestCluster;
}

/**
 * Connects to the cluster of LISTWATCH_TEST_KUBECONFIG, or starts one.
 *
 * @throws {ClusterUnavailableError} There is neither.
 */
export async function connect(): Promise<TestConnection> {
  if (givenKubeconfig === undefined) return await startOwn();
  return await newConnection(givenKubeconfig);
}

/** Starts an API server, with additional flags of kube-apiserver. */
export async function startOwn(apiServerArgs: readonly string[] = []): Promise<OwnConnection> {
  const server = await startCluster({ apiServerArgs });
  try {
    const connection = await newConnection(server.kubeconfigPath, server);
    return Object.assign(connection, { server });
  } catch (error) {
    await server.stop();
    throw error;
  }
}

async function newConnection(kubeconfigPath: string, own?: TestCluster): Promise<TestConnection> {
  const kubeconfig = await loadKubeconfig({ path: kubeconfigPath });
  const config = await restConfigFromKubeconfig(kubeconfig);
  const context = kubeconfig.contexts.get(kubeconfig["current-context"] ?? "");
  const withoutUser = {
    ...kubeconfig,
    contexts: new Map([["anonymous", { cluster: context?.cluster ?? "" }]]),
  };
  const anonymous = await restConfigFromKubeconfig(withoutUser, { context: "anonymous" });
  const cluster = newCluster(config);
  const id = crypto.randomUUID().slice(0, 8);
  const labels = { [TEST_LABEL]: id };
  const undo: (() => Promise<unknown>)[] = [];
  let names = 0;
  const uniqueName = (prefix: string) => `${prefix}-${id}-${++names}`;
  return {
    config,
    anonymous,
    kubeconfigPath,
    cluster,
    async ask(path, init) {
      const { fetch = globalThis.fetch, server, token: source } = config;
      const token = typeof source === "function" ? await source() : source;
      const headers = new Headers(init?.headers);
      headers.set("Accept-Encoding", "identity");
      if (token) headers.set("Authorization", `Bearer ${token}`);
      return await fetch(server + path, { ...init, headers });
    },
    labels,
    labelSelector: `${TEST_LABEL}=${id}`,
    uniqueName,
    async createNamespaces(...prefixes) {
      const namespaces = cluster.resource<KubernetesObject>("v1/namespaces");
      const created: string[] = [];
      for (const prefix of prefixes) {
        const name = uniqueName(prefix);
        await namespaces.create({ metadata: { name, labels } });
        undo.push(() => namespaces.delete(name));
        created.push(name);
      }
      return created;
    },
    onClose: (step) => undo.push(step),
    async [Symbol.asyncDispose]() {
      // The data of a server of our own goes with it.
      if (own === undefined) {
        for (const step of undo.reverse()) await step().catch(() => {});
      }
      await own?.stop();
    },
  };
}
