/**
 * Starts the app on one of the runtimes, as a process that can be killed and started again.
 * @module
 */

import { createServer } from "node:net";
import { join } from "node:path";
import type { Cluster } from "@listwatch/cache";
import type { VersionInfo } from "@listwatch/cache/hono";
import { buildProgram } from "../../../scripts/lib/bundle.ts";
import { ROOT } from "../../../scripts/lib/gate.ts";
import { kubeconfigOf } from "../../../scripts/lib/kubeconfig.ts";
import { type LineProcess, startLineProcess } from "../../../scripts/lib/line_process.ts";
import { installTools, type Tools } from "../../../scripts/lib/tools.ts";
import type { TestCluster } from "../../../scripts/lib/cluster.ts";
import { readDefinitions } from "../../../src/cli/cluster/definitions.ts";
import { discover } from "../../../src/client/discovery.ts";
import { servedResource } from "../../../src/cli/cluster/select_resources.ts";
import { realClock } from "../../../src/util/clock.ts";
import { getOrMake } from "../../../src/util/collections.ts";
import { consoleLogger } from "../../../src/util/logger.ts";
import type { ServeOptions } from "@listwatch/cache/cli";
import type { OwnConnection } from "../connection.ts";
import type { HostOptions } from "./app.ts";

/** Where the app is served. */
export type Runtime = "deno" | "node" | "bun" | "workerd" | "edge";

/**
 * Where one app holds everything. `"edge"` is a reader in a Worker,
 * in front of a Durable Object for each resource.
 */
export const RUNTIMES: readonly Runtime[] = ["deno", "node", "bun", "workerd"];

/** The app on a runtime. */
export interface Host extends AsyncDisposable {
  readonly runtime: Runtime;
  /** The URL, such as `http://127.0.0.1:24680`; the same after a restart. */
  readonly url: string;
  /** SIGKILL, as in a crash. Resolves when the process has ended. */
  kill(): Promise<void>;
  /** Starts it again on the same port. Resolves when it serves. */
  restart(): Promise<void>;
}

/** What a host caches. */
export interface HostSource extends Pick<HostOptions, "resources" | "version" | "readerToken"> {
  /** The API server; another host, for a cache of a cache. */
  readonly upstream: TestCluster | { readonly url: string };
}

/** Everything that can be cached of an API server. */
export async function everyResource(cluster: Cluster): Promise<Pick<HostSource, "resources" | "version">> {
  const { resources } = await discover(cluster);
  const version = await cluster.request("/version") as VersionInfo;
  const verbs = ["get", "list", "watch"];
  const cached = resources.filter((resource) => verbs.every((verb) => resource.verbs.includes(verb)));
  const served = cached.map(servedResource);
  const options = { clock: realClock, logger: consoleLogger, signal: AbortSignal.timeout(30_000) };
  await readDefinitions(cluster, served, options);
  return { resources: served, version };
}

/**
 * `serve` in front of an API server, with pass-through of everything, for readers with tokens of the cluster.
 */
export interface ServedHost extends AsyncDisposable {
  readonly runtime: "deno" | "node" | "bun";
  /** A ServiceAccount's way to it, which may do everything. */
  readonly kubeconfigPath: string;
}

/**
 * Starts `serve` over TLS; kubectl sends tokens in no other way. Resolves when everything has synced.
 *
 * @throws {Error} It ended instead; the message has its last lines.
 */
export async function startServe(
  runtime: ServedHost["runtime"],
  { connection, token, resources }: {
    readonly connection: OwnConnection;
    readonly token: string;
    /** What is cached. */
    readonly resources: readonly { readonly resource: string; readonly group: string }[];
  },
): Promise<ServedHost> {
  const fixtures = join(ROOT, "tests/node/fixtures");
  const options: ServeOptions = {
    source: { kind: "kubeconfig", path: connection.kubeconfigPath },
    resources: resources.map(({ resource, group }) => group === "" ? resource : `${resource}.${group}`),
    port: 0,
    clusterRbac: true,
    passThrough: true,
    passThroughWrites: true,
    allowSecrets: true,
    tlsCert: join(fixtures, "server.crt"),
    tlsKey: join(fixtures, "server.key"),
  };
  const running = await startProgram(runtime, "serve_command", options);
  const kubeconfigPath = await Deno.makeTempFile({ prefix: "listwatch-served-", suffix: ".json" });
  const cluster = { server: running.firstLine, "certificate-authority": join(fixtures, "ca.crt") };
  await Deno.writeTextFile(kubeconfigPath, kubeconfigOf(cluster, { token }));
  return {
    runtime,
    kubeconfigPath,
    async [Symbol.asyncDispose]() {
      await running[Symbol.asyncDispose]();
      await Deno.remove(kubeconfigPath);
    },
  };
}

/**
 * Starts a program of this folder, with its options as JSON. Resolves when it has printed its first line.
 *
 * @throws {Error} It ended instead; the message has its last lines.
 */
export async function startProgram(
  runtime: "deno" | "node" | "bun",
  app: "serve_command" | "controller",
  options: object,
  { errorLines }: { readonly errorLines?: number } = {},
): Promise<LineProcess> {
  const [program, ...args] = await commandLine(runtime, app);
  return await startLineProcess(program, {
    errorLines,
    args: [...args, JSON.stringify(options)],
    cwd: runtime === "deno" ? ROOT : join(ROOT, "tests/runtimes"),
    newEndError: ({ code }, lastErrors) =>
      new Error(`${app} on ${runtime} ended with code ${code}:\n${lastErrors.join("\n")}`),
  });
}

/** The token of a new ServiceAccount that may do everything. */
export async function adminToken({ cluster, uniqueName }: OwnConnection): Promise<string> {
  const name = uniqueName("reader");
  const account = { kind: "ServiceAccount", name, namespace: "default" };
  const post = (path: string, body: object) => cluster.request(path, { method: "POST", body });
  await post("/api/v1/namespaces/default/serviceaccounts", {
    apiVersion: "v1",
    kind: "ServiceAccount",
    metadata: { name },
  });
  await post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRoleBinding",
    metadata: { name },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "cluster-admin" },
    subjects: [account],
  });
  const answer = await post(`/api/v1/namespaces/default/serviceaccounts/${name}/token`, {
    apiVersion: "authentication.k8s.io/v1",
    kind: "TokenRequest",
    spec: {},
  });
  return (answer as { status: { token: string } }).status.token;
}

const HOSTS = "tests/cluster/hosts";

/**
 * Starts the app. Resolves when everything in it has synced.
 *
 * @throws {Error} It ended instead; the message has its last lines.
 */
export async function startHost(runtime: Runtime, source: HostSource): Promise<Host> {
  const { upstream, resources, version, readerToken } = source;
  const port = await freePort();
  const options: HostOptions = {
    resources,
    ...(version && { version }),
    ...(readerToken !== undefined && { readerToken }),
    port,
    ...("url" in upstream
      ? { server: upstream.url }
      : isInWorkerd(runtime)
      ? { server: upstream.server, token: upstream.token }
      : { kubeconfig: upstream.kubeconfigPath }),
  };
  const [program, ...args] = await commandLine(runtime);
  const launch = () =>
    startLineProcess(program, {
      args: [...args, JSON.stringify(options)],
      cwd: runtime === "deno" ? ROOT : join(ROOT, "tests/runtimes"),
      env: "url" in upstream ? {} : { NODE_EXTRA_CA_CERTS: join(upstream.dataDir, "ca.crt") },
      newEndError: ({ code }, lastErrors) =>
        new Error(`The app on ${runtime} ended with code ${code}:\n${lastErrors.join("\n")}`),
    });
  let running = await launch();
  return {
    runtime,
    url: running.firstLine,
    async kill() {
      if (isInWorkerd(runtime)) await running.send("kill");
      else running.kill();
      await running.ended;
    },
    async restart() {
      running = await launch();
    },
    [Symbol.asyncDispose]: () => running[Symbol.asyncDispose](),
  };
}

function isInWorkerd(runtime: Runtime): boolean {
  return runtime === "workerd" || runtime === "edge";
}

let tools: Promise<Tools> | undefined;
const bundles = new Map<string, Promise<string>>();

async function commandLine(
  runtime: Runtime,
  app: "serve_app" | "serve_command" | "controller" = "serve_app",
): Promise<string[]> {
  if (runtime === "deno") {
    return [Deno.execPath(), "run", "-A", "--no-check", join(ROOT, HOSTS, `${app}.ts`)];
  }
  const installed = await (tools ??= installTools());
  const { node, bun } = installed;
  const [name, platform] = isInWorkerd(runtime)
    ? [runtime === "edge" ? "edge_worker" : "worker", "workerd"] as const
    : [app, "node"] as const;
  // No await before it is noted: hosts start at the same time, and one build is for all of them.
  const bundle = getOrMake(
    bundles,
    name,
    () => buildProgram(installed, `${HOSTS}/${name}.ts`, { name, platform }),
  );
  if (isInWorkerd(runtime)) return [node, join(ROOT, HOSTS, "miniflare.mjs"), await bundle];
  return [runtime === "bun" ? bun : node, await bundle];
}

/** A port that systems do not give to outgoing connections, so that none takes it between two runs. */
async function freePort(): Promise<number> {
  for (let tries = 0; tries < 100; tries++) {
    const port = 20_000 + Math.floor(Math.random() * 12_000);
    if (await isFree(port)) return port;
  }
  throw new Error("found no free port from 20000 to 31999");
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer().once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}
