/**
 * client-go's informers, as a process: the program in `informer/`.
 * @module
 */

import { ensureGoProgram } from "../../scripts/lib/cluster_build.ts";
import { startLineProcess } from "../../scripts/lib/line_process.ts";

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
  /** Waits until stores and folds equal the API server, for at most 90 seconds. */
  compare(): Promise<Comparison>;
  /**
   * Runs client-go's other tools that need a server: by name, what
   * failed, or "". No other client may write meanwhile.
   */
  check(): Promise<Readonly<Record<string, string>>>;
}

/** Starts the informers. Resolves when all have synced. */
export async function startGoInformer(options: GoInformerOptions): Promise<GoInformer> {
  const { url, kubeconfigPath, useWatchList } = options;
  const process = await startLineProcess(await ensureGoProgram("informer"), {
    args: ["--server", url, "--kubeconfig", kubeconfigPath],
    env: { KUBE_FEATURE_WatchListClient: String(useWatchList) },
  });
  return {
    compare: () => process.ask("compare") as Promise<Comparison>,
    check: () => process.ask("check") as Promise<Readonly<Record<string, string>>>,
    [Symbol.asyncDispose]: () => process[Symbol.asyncDispose](),
  };
}
