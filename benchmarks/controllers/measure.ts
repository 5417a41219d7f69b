/**
 * Runs the contestants of `deno task bench --controllers` one
 * after the other, each against a server of its own.
 *
 * @module
 */

import { join } from "node:path";
import { startLineProcess } from "../../scripts/lib/line_process.ts";
import type { Tools } from "../../scripts/lib/tools.ts";
import type { BenchOptions } from "../lib/options.ts";
import { count } from "../lib/report.ts";
import { requestsOf } from "./audit.ts";
import { buildContestants, type Contestant, type Reconciled, versionsOf } from "./contestants.ts";
import { type ControllerFigures, controllersReport, type RunFigures } from "./report.ts";
import { type AuditedServer, createWidgets, startServer } from "./server.ts";

// How often a contestant is started again in each round, when all is done.
const STARTS = 3;
const TIMEOUT_MS = 15 * 60_000;
// The unit of times in /proc/PID/stat.
const TICKS_PER_SECOND = 100;

/** Measures them, and returns the tables as Markdown and the versions of what took part. */
export async function measureControllers(
  options: BenchOptions,
  tools: Tools,
  log: (line: string) => void,
): Promise<{ readonly report: string; readonly versions: readonly string[] }> {
  const folder = await Deno.makeTempDir({ prefix: "listwatch-controllers-" });
  try {
    const contestants = await buildContestants(options, tools, log);
    const parts: string[] = [];
    for (const widgets of options.sizes) {
      const template = join(folder, `data-${widgets}`);
      log(`creating ${count(widgets)} Widgets ...`);
      await createWidgets(template, widgets, log);
      const results: ControllerFigures[] = contestants.map(({ label, isOurs }) => ({
        label,
        isOurs,
        work: [],
        starts: [],
      }));
      for (let round = 1; round <= options.rounds; round++) {
        for (const [i, contestant] of contestants.entries()) {
          log(`round ${round} of ${options.rounds}: ${count(widgets)} Widgets, ${contestant.label}`);
          await using server = await startServer(template, join(folder, "data"), log);
          const { work, starts } = results[i];
          work.push(await runOnce(contestant, server, widgets));
          for (let start = 0; start < STARTS; start++) {
            starts.push(await runOnce(contestant, server, widgets));
          }
        }
      }
      parts.push(controllersReport(widgets, results));
    }
    return { report: parts.join("\n\n"), versions: await versionsOf(contestants, tools) };
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** Starts a contestant, waits until it has nothing more to do, and kills it. */
async function runOnce(
  { label, command: [program, ...args] }: Contestant,
  server: AuditedServer,
  widgets: number,
): Promise<RunFigures> {
  const startMs = performance.now();
  const running = await startLineProcess(program, {
    args: [...args, String(widgets)],
    env: { KUBECONFIG: server.kubeconfigPath },
    signal: AbortSignal.timeout(TIMEOUT_MS),
    newEndError: ({ code }, lines) => new Error(`${label} ended with code ${code}:\n${lines.join("\n")}`),
  });
  const reconciledMs = performance.now() - startMs;
  try {
    const { pid } = JSON.parse(running.firstLine) as Reconciled;
    await server.quiet();
    const process = await processFigures(pid);
    return { reconciledMs, ...process, requests: requestsOf(await server.takeLog()) };
  } finally {
    running.kill();
    await running.ended;
  }
}

/** What Linux knows about a process. */
async function processFigures(pid: number): Promise<Omit<RunFigures, "reconciledMs" | "requests">> {
  const status = await Deno.readTextFile(`/proc/${pid}/status`);
  const bytes = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(status)?.[1]) * 1024;
  // The name, in parentheses, may have spaces.
  const stat = (await Deno.readTextFile(`/proc/${pid}/stat`)).split(") ")[1].split(" ");
  return {
    rssBytes: bytes("VmRSS"),
    peakRssBytes: bytes("VmHWM"),
    cpuMs: (Number(stat[11]) + Number(stat[12])) * 1_000 / TICKS_PER_SECOND,
  };
}
