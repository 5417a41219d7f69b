/**
 * `deno task bench:fanout`: readers of a served cache, side by side with the same readers of the
 * kube-apiserver behind it. The client is a program in Go (client/), which checks that every watcher receives
 * every event once and in order. `docs/benchmarks.md` explains the figures.
 *
 * @module
 */

import { join, resolve } from "node:path";
import { startCluster, type TestCluster } from "../../scripts/lib/cluster.ts";
import { optionsOf, runClusterTask, UsageError } from "../../scripts/lib/cluster_task.ts";
import { ROOT } from "../../scripts/lib/gate.ts";
import { run } from "../../scripts/lib/process.ts";
import { installTools } from "../../scripts/lib/tools.ts";
import { errorMessage } from "../../src/util/errors.ts";
import { runClient, startChildServer } from "../lib/child_server.ts";
import { bundleForNode } from "../lib/programs.ts";
import { circumstances, heading, sourceState, writeSection } from "../lib/results_file.ts";
import { createPods, NAMESPACE, podsNamespace, request } from "./objects.ts";
import { type Figures, type IdleResult, type ListResult, report, type WatchResult } from "./report.ts";
import type { ServerArguments } from "./server.ts";

const usage = `Usage: deno task bench:fanout [options]

Compares readApi on Node and Deno with the kube-apiserver behind it.

  --quick       a smaller run: 200 watchers, 400 updates, 1,000 idle watchers, lists of 1,000 pods
  --pods N,N    how many pods the lists have (default: 1000,10000)
  --only WORDS  only contestants with one of these words in their names, separated by commas
  --out FILE    the file for the section (default: benchmarks/TABLES.md; none with --quick or --only)
  --help        show this text
`;

const API_SERVER = "kube-apiserver";

const log = (line: string) => console.error(line);

/** How much is measured. */
interface Sizes {
  readonly watchers: number;
  readonly updates: number;
  readonly steadyUpdates: number;
  readonly idle: number;
  readonly pods: readonly number[];
  readonly listSeconds: number;
}

const FULL: Sizes = {
  watchers: 1_000,
  updates: 2_000,
  steadyUpdates: 150,
  idle: 10_000,
  pods: [1_000, 10_000],
  listSeconds: 4,
};
const QUICK: Sizes = {
  watchers: 200,
  updates: 400,
  steadyUpdates: 45,
  idle: 1_000,
  pods: [1_000],
  listSeconds: 2,
};

/** What is measured, while it runs. */
interface Contestant extends AsyncDisposable {
  readonly url: string;
  readonly token: string;
  readonly pid: number;
}

/** Measures all, and returns the process's exit code. */
async function main(args: string[], signal: AbortSignal): Promise<number> {
  const options = optionsOf(args, {
    quick: { type: "boolean" },
    pods: { type: "string" },
    only: { type: "string" },
    out: { type: "string" },
    help: { type: "boolean" },
  });
  if (options.help) {
    console.log(usage);
    return 0;
  }
  const standard = options.quick ? QUICK : FULL;
  const sizes = { ...standard, pods: options.pods?.split(",").map(Number) ?? standard.pods };
  if (!sizes.pods.every((pods) => pods >= 1)) {
    throw new UsageError(`--pods ${options.pods} is not a list of numbers`);
  }
  const out = options.out ??
    (options.quick || options.only !== undefined ? undefined : "benchmarks/TABLES.md");
  const source = await sourceState();
  const dir = await Deno.makeTempDir({ prefix: "listwatch-fanout-" });
  try {
    const client = await buildClient(dir);
    const tools = await installTools(log);
    await bundleForNode(tools, ["benchmarks/fanout/server.ts"], dir);
    await using cluster = await startCluster({ signal, log });
    await createPods(cluster, sizes.pods, log);
    const script = join(ROOT, "benchmarks", "fanout", "server.ts");
    const contestants: Record<string, () => Promise<Contestant>> = {
      [API_SERVER]: () => Promise.resolve(apiServer(cluster)),
      "@listwatch/cache, Node": () => startServer(cluster, [tools.node, join(dir, "server.mjs")]),
      "@listwatch/cache, Deno": () => startServer(cluster, [Deno.execPath(), "run", "-A", script]),
      "@listwatch/cache, Deno.serve": () =>
        startServer(cluster, [Deno.execPath(), "run", "-A", script], { byDeno: true }),
    };
    const words = options.only?.split(",");
    const results: Figures[] = [];
    for (const [name, start] of Object.entries(contestants)) {
      if (words !== undefined && !words.some((word) => name.includes(word))) continue;
      results.push(await measure(name, start, { client, cluster, sizes }));
    }
    const versions = [
      `kube-apiserver ${await apiServerVersion(cluster)}`,
      `Node ${(await run(tools.node, ["--version"])).stdout.trim().slice(1)}`,
      `Deno ${Deno.version.deno}`,
      (await run("go", ["env", "GOVERSION"])).stdout.trim(),
    ];
    const command = ["deno task bench:fanout", ...args].join(" ");
    const load = Deno.loadavg()[2].toFixed(1);
    const text = `${await circumstances({ command, versions, source })}\n` +
      `- Load average of the last 15 minutes, with the benchmark: ${load}\n\n${report(results)}`;
    console.log(`\n${heading("fanout")}\n\n${text}`);
    if (out !== undefined) {
      await writeSection(resolve(ROOT, out), "fanout", text);
      log(`written to ${out}`);
    }
    return results.every(({ name, faults }) => name === API_SERVER || faults.length === 0) ? 0 : 1;
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
}

/**
 * Builds the client in Go in a folder, and returns its path. Without any package: so no module is fetched.
 */
export async function buildClient(dir: string): Promise<string> {
  const output = join(dir, "client");
  const env = { GOFLAGS: "", GOWORK: "off", GOTOOLCHAIN: "local", CGO_ENABLED: "0" };
  const cwd = join(ROOT, "benchmarks", "fanout", "client");
  const result = await run("go", ["build", "-trimpath", "-buildvcs=false", "-o", output, "."], { cwd, env });
  if (result.code !== 0) throw new Error(`go build in ${cwd} failed:\n${result.output}`);
  return output;
}

function apiServer(cluster: TestCluster): Contestant {
  const { server: url, token, pid = 0 } = cluster;
  return { url, token, pid, [Symbol.asyncDispose]: () => Promise.resolve() };
}

async function startServer(
  { server, token, caData: ca }: TestCluster,
  command: readonly string[],
  how: Pick<ServerArguments, "byDeno"> = {},
): Promise<Contestant> {
  const given: ServerArguments = { server, token, ca, ...how };
  const child = await startChildServer<{ url: string; pid: number }>([...command, JSON.stringify(given)]);
  return { ...child.ready, token: "", [Symbol.asyncDispose]: () => child[Symbol.asyncDispose]() };
}

async function measure(
  name: string,
  start: () => Promise<Contestant>,
  { client, cluster, sizes }: { client: string; cluster: TestCluster; sizes: Sizes },
): Promise<Figures> {
  const faults: string[] = [];
  const ask = async <R>(
    mode: "watch" | "idle" | "list",
    path: string,
    { url, pid, token }: Contestant,
    flags: Readonly<Record<string, string | number | boolean>>,
  ): Promise<R | undefined> => {
    log(`${name}: ${mode} ${Object.entries(flags).map(([flag, value]) => `${flag}=${value}`).join(" ")}`);
    const given = { server: url, pid, token, path, ...flags };
    try {
      return await runClient<R>(client, mode, given);
    } catch (error) {
      faults.push(`${mode} ${path}: ${errorMessage(error)}`);
      return undefined;
    }
  };
  const configMaps = `/api/v1/namespaces/${NAMESPACE}/configmaps`;
  const writes = { "write-server": cluster.server, "write-token": cluster.token };
  const watch = async (flags: Readonly<Record<string, number>>) => {
    await using contestant = await start();
    const result = await ask<WatchResult>("watch", configMaps, contestant, {
      ...writes,
      connections: sizes.watchers,
      ...flags,
    });
    if (result !== undefined && result.faults > 0) {
      faults.push(`${result.faults} watchers did not receive every event, the first: ${result.firstFault}`);
    }
    return result;
  };
  const burst = await watch({ updates: sizes.updates });
  const steady = await watch({ updates: sizes.steadyUpdates, rate: 15 });
  await using contestant = await start();
  const idle = await ask<IdleResult>("idle", configMaps, contestant, { connections: sizes.idle });
  const lists: Figures["lists"] = [];
  const seconds = sizes.listSeconds;
  for (const pods of sizes.pods) {
    const path = `/api/v1/namespaces/${podsNamespace(pods)}/pods?resourceVersion=0`;
    const list = (flags: Readonly<Record<string, string | boolean>> = {}) =>
      ask<ListResult>("list", path, contestant, { connections: 8, seconds, ...flags });
    lists.push({
      pods,
      json: await list(),
      gzip: await list({ gzip: true }),
      protobuf: name === API_SERVER
        ? await list({ gzip: true, accept: "application/vnd.kubernetes.protobuf" })
        : undefined,
      notModified: await list({ conditional: true }),
    });
  }
  return { name, burst, steady, idle, lists, faults };
}

async function apiServerVersion(cluster: TestCluster): Promise<string> {
  const { gitVersion } = await (await request(cluster, "GET", "/version")).json() as { gitVersion: string };
  return gitVersion.slice(1);
}

if (import.meta.main) await runClusterTask(main, usage);
