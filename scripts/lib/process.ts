/**
 * Child processes for the scripts: captured output, environment, time limit.
 *
 * @module
 */

import { ROOT } from "./gate.ts";

/** How a child ended, and all it wrote. */
export interface ProcessResult {
  code: number;
  stdout: string;
  stderr: string;
  /** Both, in the order in which they arrived. */
  output: string;
  /** Whether the time limit ended it. */
  timedOut: boolean;
}

/** Options of {@linkcode run}. */
export interface RunOptions {
  cwd?: string;
  env?: Record<string, string>;
  /** Killed after this long. Default: 15 minutes. */
  timeoutMs?: number;
  /** Also shows the child's output while it runs. Default: false. */
  echo?: boolean;
  /** Called with each piece of output as it arrives. */
  onOutput?: (text: string) => void;
}

/** Runs a program to its end. A program that cannot be started gives code 127 and says so in `stderr`. */
export async function run(command: string, args: string[], options: RunOptions = {}): Promise<ProcessResult> {
  const abort = new AbortController();
  const timeoutMs = options.timeoutMs ?? 15 * 60_000;
  let timedOut = false;
  const timer = setTimeout(() => {
    timedOut = true;
    abort.abort();
  }, timeoutMs);
  const result: ProcessResult = { code: 0, stdout: "", stderr: "", output: "", timedOut: false };
  try {
    const child = new Deno.Command(command, {
      args,
      cwd: options.cwd ?? ROOT,
      env: { NO_COLOR: "1", ...options.env },
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
      signal: abort.signal,
    }).spawn();
    const collect = async (stream: ReadableStream<Uint8Array<ArrayBuffer>>, into: "stdout" | "stderr") => {
      for await (const text of stream.pipeThrough(new TextDecoderStream())) {
        result[into] += text;
        result.output += text;
        options.onOutput?.(text);
        if (options.echo) {
          (into === "stdout" ? Deno.stdout : Deno.stderr).writeSync(new TextEncoder().encode(text));
        }
      }
    };
    const [status] = await Promise.all([
      child.status,
      collect(child.stdout, "stdout"),
      collect(child.stderr, "stderr"),
    ]);
    result.code = status.code;
  } catch (error) {
    result.code = 127;
    result.stderr += `cannot run ${command}: ${error instanceof Error ? error.message : error}\n`;
    result.output += result.stderr;
  } finally {
    clearTimeout(timer);
  }
  if (timedOut) {
    result.timedOut = true;
    result.code = result.code === 0 ? 124 : result.code;
    result.output += `\n${command}: ended after ${timeoutMs / 1000} s\n`;
  }
  return result;
}

/** Runs the Deno that runs this script. */
export function runDeno(args: string[], options: RunOptions = {}): Promise<ProcessResult> {
  return run(Deno.execPath(), args, options);
}
