/**
 * Servers that run as processes, what they have used, and the client in Go that measures them.
 *
 * @module
 */

import { ROOT } from "../../scripts/lib/gate.ts";
import { run } from "../../scripts/lib/process.ts";

/** A running server; disposing it ends its stdin, and with it the process. */
export interface ChildServer<T> extends AsyncDisposable {
  /** The line of JSON that it printed when it was ready. */
  readonly ready: T;
  /** Resolves when it has ended, and how. */
  readonly ended: Promise<string>;
}

/**
 * Starts a server, and waits for its line of JSON.
 *
 * @throws {Error} It ends before.
 */
export async function startChildServer<T>([program, ...args]: readonly string[]): Promise<ChildServer<T>> {
  const child = new Deno.Command(program, {
    args: [...args],
    cwd: ROOT,
    stdin: "piped",
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  let line = "";
  while (!line.includes("\n")) {
    const { done, value } = await reader.read();
    if (done) throw new Error(`Cannot start the server ${program} ${args.join(" ")}: it ended: ${line}`);
    line += value;
  }
  return {
    ready: JSON.parse(line) as T,
    ended: child.status.then(({ code, signal }) => signal ?? `code ${code}`),
    async [Symbol.asyncDispose]() {
      await child.stdin.close();
      await child.status;
      await reader.cancel();
    },
  };
}

/**
 * Lets the client of `benchmarks/fanout/client` measure something, and returns what it prints.
 *
 * @throws {Error} With what it says, if it fails.
 */
export async function runClient<T>(
  client: string,
  mode: "watch" | "idle" | "list",
  flags: Readonly<Record<string, string | number | boolean>>,
): Promise<T> {
  const args = Object.entries(flags).map(([flag, value]) => `-${flag}=${value}`);
  const { code, stdout, stderr } = await run(client, [mode, ...args]);
  if (code !== 0) throw new Error(stderr.trim());
  return JSON.parse(stdout) as T;
}

/** Memory, and time of the processor. */
export interface ProcessUse {
  readonly residentBytes: number;
  readonly peakBytes: number;
  /** The CPU time of all threads. */
  readonly cpuSeconds: number;
}

// As getconf CLK_TCK says on every architecture that Deno runs on.
const TICKS_PER_SECOND = 100;

/** What a process has used so far; `undefined` on a system that does not say it. */
export function useOf(pid: number): ProcessUse | undefined {
  const read = (file: string) => {
    try {
      return Deno.readTextFileSync(`/proc/${pid}/${file}`);
    } catch {
      return "";
    }
  };
  const status = read("status");
  const kilobytes = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(status)?.[1]);
  const stat = read("stat");
  // The name may have spaces.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const use = {
    residentBytes: kilobytes("VmRSS") * 1024,
    peakBytes: kilobytes("VmHWM") * 1024,
    cpuSeconds: (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND,
  };
  return Object.values(use).every(Number.isFinite) ? use : undefined;
}

/** How many cores a process uses while something is done; `undefined` where the system does not say it. */
export async function coresDuring(pid: number, work: () => Promise<unknown>): Promise<number | undefined> {
  const [before, startMs] = [useOf(pid), performance.now()];
  await work();
  const after = useOf(pid);
  return before && after && (after.cpuSeconds - before.cpuSeconds) * 1_000 / (performance.now() - startMs);
}
