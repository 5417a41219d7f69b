/**
 * client-go's informers, as a process: the program in `informer/`.
 * @module
 */

import { eachLine, ensureGoProgram } from "../../scripts/lib/cluster_build.ts";

/** What a comparison of the informers with the API server found. */
export interface Comparison {
  /** How many objects the API server has. */
  readonly objects: number;
  /** How many notifications of each type each informer's handler received. */
  readonly events: Readonly<Record<string, Readonly<Record<string, number>>>>;
  /** The first difference, if stores and handlers' folds are not as the API server. */
  readonly difference?: string;
  /** Notifications that do not fit those before. */
  readonly faults: readonly string[];
}

/** Options of {@linkcode startGoInformer}. */
export interface GoInformerOptions {
  /** The cache. */
  readonly url: string;
  /** The API server. */
  readonly kubeconfigPath: string;
  /** `false`: list and watch, instead of streamed lists. */
  readonly useWatchList: boolean;
}

/** A typed, a dynamic and a metadata informer of ConfigMaps. */
export interface GoInformer extends AsyncDisposable {
  /** Waits until stores and folds equal the API server, for at most 40 seconds. */
  compare(): Promise<Comparison>;
  /** Runs client-go's other tools that need a server: by name, what failed, or "". No other client may write meanwhile. */
  check(): Promise<Readonly<Record<string, string>>>;
}

/** Starts the informers. Resolves when all have synced. */
export async function startGoInformer(options: GoInformerOptions): Promise<GoInformer> {
  const { url, kubeconfigPath, useWatchList } = options;
  const child = new Deno.Command(await ensureGoProgram("informer"), {
    args: ["--server", url, "--kubeconfig", kubeconfigPath],
    env: { KUBE_FEATURE_WatchListClient: String(useWatchList) },
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const waiting: PromiseWithResolvers<string>[] = [];
  const nextLine = () => {
    const line = Promise.withResolvers<string>();
    waiting.push(line);
    return line.promise;
  };
  const synced = nextLine();
  const lastErrors: string[] = [];
  const ended = Promise.all([
    child.status,
    eachLine(child.stdout, (line) => waiting.shift()?.resolve(line)),
    eachLine(child.stderr, (line) => {
      lastErrors.push(line);
      if (lastErrors.length > 20) lastErrors.shift();
    }),
  ]).then(([{ code }]) => {
    const error = new Error(`client-go's informers ended with code ${code}:\n${lastErrors.join("\n")}`);
    for (const line of waiting.splice(0)) line.reject(error);
  });
  const input = child.stdin.getWriter();
  const ask = async (command: string) => {
    const line = nextLine();
    const [, answer] = await Promise.all([input.write(new TextEncoder().encode(`${command}\n`)), line]);
    return JSON.parse(answer);
  };
  await synced;
  return {
    compare: () => ask("compare"),
    check: () => ask("check"),
    async [Symbol.asyncDispose]() {
      await input.close().catch(() => {});
      await ended;
    },
  };
}
