/**
 * The command line program.
 * @module
 */

import process from "node:process";
import { realClock } from "../util/clock.ts";
import { consoleLogger, type Logger } from "../util/logger.ts";
import { parseCommandLine } from "./command_line.ts";
import { CommandError, explainError } from "./errors.ts";
import { listenForSignals } from "./process_signals.ts";
import { serve } from "./serve.ts";
import type { ServeOptions, ServeStep, SyncProgress } from "./serve_options.ts";
import { type OutputStream, Terminal } from "./terminal.ts";
import { LISTWATCH_USAGE, SERVE_USAGE } from "./usage.ts";
import { VERSION } from "./version.ts";

/**
 * Options of {@linkcode main}.
 *
 * @example
 * ```ts
 * import { main } from "@listwatch/cache/cli";
 * let text = "";
 * await main(["serve", "--help"], { stdout: { write: (more) => (text += more) } });
 * console.log(text.split("\n")[0]);
 * ```
 */
export interface MainOptions {
  /** Ends the program, as Ctrl-C does. Without it, SIGINT and SIGTERM of this process are listened to. */
  readonly signal?: AbortSignal;
  /** Where what was asked for goes; the process's own by default. */
  readonly stdout?: OutputStream;
  /** Where errors and progress go; the process's own by default. */
  readonly stderr?: OutputStream;
  /** The environment; the process's own by default. */
  readonly env?: Readonly<Record<string, string | undefined>>;
}

/**
 * Runs the program with the words after its name, and resolves with its exit code: 0 when it ended as asked, 1 when it
 * could not start or go on, 2 when the command was wrong. Never rejects; errors are one line each on stderr.
 *
 * The first Ctrl-C (SIGINT) or SIGTERM is such an end as asked, also while it starts. An end that takes longer
 * than 0.9 s is forced, with 130.
 *
 * @example
 * ```ts
 * import { main } from "@listwatch/cache/cli";
 * console.log(await main(["version"])); // 0
 * ```
 */
export async function main(args: readonly string[], options: MainOptions = {}): Promise<number> {
  const { stdout = process.stdout, stderr = process.stderr, env = process.env } = options;
  const terminal = new Terminal({ stdout, stderr, env, now: () => realClock.now() });
  let isVerbose = false;
  const { signal, release } = options.signal ? { signal: options.signal, release() {} } : listenForSignals();
  try {
    const command = parseCommandLine(args, env);
    switch (command.name) {
      case "help":
        terminal.print((command.topic === "serve" ? SERVE_USAGE : LISTWATCH_USAGE).trimEnd());
        return 0;
      case "version":
        terminal.print(VERSION);
        return 0;
      case "serve":
        isVerbose = command.verbose;
        await runServe(terminal, {
          ...command.options,
          signal,
          ...(isVerbose && { logger: verboseLogger(terminal) }),
        });
        return 0;
    }
  } catch (error) {
    // Ended while it was starting: as asked.
    if (signal.aborted && !(error instanceof CommandError)) {
      terminal.print("Stopped.");
      return 0;
    }
    const { line, exitCode } = explainError(error);
    terminal.error(line);
    if (isVerbose && error instanceof Error) terminal.warn(chain(error));
    return exitCode;
  } finally {
    release();
  }
}

async function runServe(terminal: Terminal, options: ServeOptions): Promise<void> {
  let listening: Listening | undefined;
  const onStep = (step: ServeStep): void => {
    if (step.type === "listening") listening = step;
    tell(terminal, step);
    if (step.type === "synced" && listening !== undefined) printNext(terminal, listening, options);
  };
  const served = await serve({ ...options, onStep });
  await served.finished;
  terminal.print("Stopped.");
}

type Listening = Extract<ServeStep, { type: "listening" }>;

function tell(terminal: Terminal, step: ServeStep): void {
  switch (step.type) {
    case "connected":
      return terminal.print(`Cluster    ${step.cluster} (${step.server})`);
    case "skipped":
      return terminal.warn(
        `${terminal.styleError("yellow", "Left out")}   ${
          step.resources.join(", ")
        }: the server refuses to list them`,
      );
    case "listening":
      terminal.print(`Reflecting ${step.resources.join(", ")}`);
      terminal.print(`Serving    ${terminal.style("bold", step.url)}`);
      return terminal.print(`Readers    ${step.access}`);
    case "syncing":
      return terminal.progress(progressLine(step.progress));
    case "synced":
      return terminal.print(
        `Synced     ${step.objects.toLocaleString("en")} objects in ${
          (step.durationMs / 1_000).toFixed(1)
        } s`,
      );
    case "trouble":
      return terminal.warn(
        `${terminal.styleError("yellow", "Trouble")}    ${step.resource} cannot be read: ${step.message}. ` +
          "Trying again until it can; what is known is served meanwhile.",
      );
    case "recovered":
      return terminal.warn(`${terminal.styleError("green", "Recovered")}  every resource is followed again.`);
  }
}

/** `Syncing 3 of 9: pods 4,500 of 12,000, configmaps 1,000`. */
function progressLine(progress: readonly SyncProgress[]): string {
  const open = progress.filter(({ synced }) => !synced);
  const parts = open.map(({ resource, items, remaining }) => {
    const total = remaining === undefined ? "" : ` of ${(items + remaining).toLocaleString("en")}`;
    return items === 0 ? resource : `${resource} ${items.toLocaleString("en")}${total}`;
  });
  return `Syncing ${progress.length - open.length} of ${progress.length}: ${parts.join(", ")}`;
}

function printNext(terminal: Terminal, { url, resources }: Listening, { token }: ServeOptions): void {
  const name = resources.includes("pods") ? "pods" : resources[0];
  // Where it listens on every address, this machine's own is the one to try.
  const base = url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:");
  terminal.print();
  terminal.print(`Open ${terminal.style("cyan", `${base}/`)} in a browser, or try:`);
  if (token === undefined) {
    terminal.print(`  kubectl --server=${base} get ${name} -A`);
    terminal.print(`  kubectl --server=${base} get ${name} -A --watch`);
    terminal.print(`  curl "${base}/readyz?verbose"`);
  } else {
    terminal.print(`  curl -H "Authorization: Bearer $LISTWATCH_TOKEN" ${base}/api`);
    terminal.print(
      "kubectl sends tokens over https only: it needs a TLS proxy in front of this, and so do other networks.",
    );
  }
  terminal.print();
  terminal.print("Ctrl-C ends it.");
}

function verboseLogger(terminal: Terminal): Logger {
  const line = (message: string, fields?: Readonly<Record<string, unknown>>): void =>
    terminal.warn(terminal.styleError("dim", fields === undefined ? message : `${message} ${text(fields)}`));
  return { ...consoleLogger, debug: () => {}, info: line, warn: line, error: line };
}

function text(fields: Readonly<Record<string, unknown>>): string {
  return Object.entries(fields).map(([name, value]) =>
    `${name}=${value instanceof Error ? value.message : String(value)}`
  ).join(" ");
}

/** An error with all that led to it. */
function chain(error: Error): string {
  const stacks: string[] = [];
  let e: unknown = error;
  for (let depth = 0; e instanceof Error && depth < 8; depth++) {
    stacks.push(e.stack ?? e.message);
    e = e.cause;
  }
  return stacks.join("\ncaused by: ");
}
