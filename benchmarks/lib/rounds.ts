/**
 * Runs the server and, one after the other, the contestants.
 *
 * @module
 */

import { join } from "node:path";
import { ROOT } from "../../scripts/lib/gate.ts";
import { run } from "../../scripts/lib/process.ts";
import { startChildServer } from "./child_server.ts";
import type { Tools } from "../../scripts/lib/tools.ts";
import { commandOf, type Entrant } from "./contestants.ts";
import { type Measurement, MEASUREMENT_MARK, type Phase } from "./measurement.ts";
import type { Programs } from "./programs.ts";

/** A running server. */
export interface BenchServer extends AsyncDisposable {
  readonly url: string;
  readonly objects: number;
  readonly events: number;
  readonly listBytes: number;
  readonly lastResourceVersion: string;
}

/** Starts the server for so many objects; resolves when everything is encoded. */
export async function startServer(
  tools: Tools,
  options: {
    objects: number;
    events: number;
    framing: string;
    isVaried?: boolean;
    isForScreens?: boolean;
    drop?: boolean;
  },
): Promise<BenchServer> {
  const { objects, events, framing, isVaried, isForScreens, drop } = options;
  const args = [`--objects=${objects}`, `--events=${events}`, `--framing=${framing}`];
  if (isVaried) args.push("--varied");
  if (isForScreens) args.push("--screens");
  if (drop) args.push("--drop");
  const server = await startChildServer<{ url: string; listBytes: number; lastResourceVersion: string }>(
    [tools.node, "--no-warnings", join(ROOT, "benchmarks/server/server.ts"), ...args],
  );
  let isStopping = false;
  server.ended.then((how) => {
    // Contestants have nothing to measure then: no figures are better than wrong ones.
    if (!isStopping) console.error(`The benchmark's server ended by itself (${how})`);
    if (!isStopping) Deno.exit(1);
  });
  return {
    ...server.ready,
    objects,
    events,
    async [Symbol.asyncDispose]() {
      isStopping = true;
      await server[Symbol.asyncDispose]();
    },
  };
}

/** For a client that must find no version beyond the list's, as the first one found none. */
export async function begin({ url }: BenchServer): Promise<void> {
  await (await fetch(`${url}/control/begin`, { method: "POST" })).body?.cancel();
}

/** What one process is to do. */
export interface Job {
  readonly entrant: Entrant;
  readonly phases: readonly Phase[];
  readonly handlers?: number;
  readonly indices?: number;
}

/**
 * Runs one process to its end. A contestant that fails gives a
 * measurement that says why it did not take part.
 */
export async function runJob(
  job: Job,
  server: BenchServer,
  tools: Tools,
  programs: Programs,
  timeoutMs: number = 5 * 60_000,
): Promise<Measurement> {
  const line = commandOf(job.entrant, tools, programs);
  if (line === undefined) return { skipped: "its program could not be built" };
  const [command, ...args] = line;
  await begin(server);
  const result = await run(command, [
    ...args,
    `--server=${server.url}`,
    `--objects=${server.objects}`,
    `--events=${server.events}`,
    `--last-resource-version=${server.lastResourceVersion}`,
    `--variant=${job.entrant.variant}`,
    `--phases=${job.phases.join(",")}`,
    `--handlers=${job.handlers ?? 1}`,
    `--indices=${job.indices ?? 2}`,
  ], { timeoutMs });
  const answer = result.stdout.split("\n").find((line) => line.startsWith(MEASUREMENT_MARK));
  if (answer !== undefined) return JSON.parse(answer.slice(MEASUREMENT_MARK.length)) as Measurement;
  const reason = result.timedOut ? `nothing after ${timeoutMs / 1000} s` : `ended with code ${result.code}`;
  const said = result.output.trim().split("\n").slice(-3).join(" ").slice(0, 300);
  return { skipped: said === "" ? reason : `${reason}: ${said}` };
}
