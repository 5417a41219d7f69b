/**
 * The beginning and the end of a task that starts a real API server.
 *
 * @module
 */

import { parseArgs, type ParseArgsConfig } from "node:util";
import { ClusterUnavailableError } from "./cluster_build.ts";

/** A command line that makes no sense. */
export class UsageError extends Error {}

/** The options of a command line; throws a {@linkcode UsageError} for one that is not known. */
export function optionsOf<O extends NonNullable<ParseArgsConfig["options"]>>(
  args: string[],
  options: O,
): ReturnType<typeof parseArgs<{ args: string[]; options: O }>>["values"] {
  try {
    return parseArgs({ args, options }).values;
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error), { cause: error });
  }
}

/**
 * Runs a task and ends the process with its code: 2 for a {@linkcode UsageError}, with the
 * usage; 1 where there is no cluster to be had; 130 where it threw because of Ctrl-C. `run`
 * is given what the signals of the system abort.
 */
export async function runClusterTask(
  run: (args: string[], signal: AbortSignal) => Promise<number>,
  usage = "",
): Promise<never> {
  const stopping = new AbortController();
  const signals: Deno.Signal[] = Deno.build.os === "windows" ? ["SIGINT"] : ["SIGINT", "SIGTERM", "SIGHUP"];
  for (const signal of signals) Deno.addSignalListener(signal, () => stopping.abort());
  Deno.exit(
    await run(Deno.args, stopping.signal).catch((error) => {
      if (stopping.signal.aborted) return 130;
      if (!(error instanceof ClusterUnavailableError || error instanceof UsageError)) throw error;
      console.error(error.message);
      if (error instanceof UsageError) console.error(`\n${usage}`);
      return error instanceof UsageError ? 2 : 1;
    }),
  );
}
