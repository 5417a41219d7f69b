/**
 * What a server of `serve` does while unauthenticated clients and readers abuse it.
 *
 * @module
 */

import { join } from "node:path";
import type { Probes } from "./abuse_prober.ts";
import { ROOT } from "./gate.ts";

/** A program that runs `listwatch`. */
export interface Listwatch {
  readonly name: string;
  readonly command: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Loads a module before the program. */
  preload(path: string): readonly string[];
  readonly program: string;
}

/** Options of {@linkcode measureAbuse}. */
export interface AbuseOptions {
  /** How long the attackers work. */
  readonly seconds: number;
  /** Only attacks whose name contains this. */
  readonly attack?: string;
  /** No attack whose name contains this. */
  readonly except?: string;
}

/** What was measured. */
export interface AbuseFigures {
  readonly before: Probes;
  readonly during: Probes;
  /** How late the timers of the server's own process were meanwhile, in milliseconds, sorted. */
  readonly delays: readonly number[];
  /** Resident memory in MB. */
  readonly memoryBefore: number;
  readonly memoryPeak: number;
  readonly memoryAfter: number;
  /** How often each attack was carried out. */
  readonly attacks: Readonly<Record<string, number>>;
}

const BEFORE_SECONDS = 10;
const SETTLE_MS = 5_000;
const SAMPLE_MS = 500;

/** Serves a cluster of 20,000 pods, measures for some seconds alone, and then while all attackers work. */
export async function measureAbuse(
  { command, env, preload, program }: Listwatch,
  { seconds, attack = "", except = "" }: AbuseOptions,
): Promise<AbuseFigures> {
  // What attacks has other machines, as a rule: here it must not take the server's part of this one.
  const cluster = new Program("nice", ["-n", "10", ...DENO_RUN, pathOf("abuse_cluster.ts")]);
  const delaysFile = await Deno.makeTempFile();
  const programs = [cluster];
  try {
    const { kubeconfig } = await cluster.line<{ kubeconfig: string }>(/^\{.*\}$/m);
    const options = ["--kubeconfig", kubeconfig, "--cluster-rbac", "--resource", "pods,namespaces"];
    const args = [...preload(pathOf("abuse_inside.ts")), program, "serve", "--port", "0", ...options];
    const server = new Program(command, args, { ...env, NO_COLOR: "1", ABUSE_DELAYS: delaysFile });
    programs.push(server);
    const port = (await server.text(/^Serving +\S+:(\d+)$[^]*^Synced/m))[1];
    const probe = async (durationSeconds: number) => {
      const prober = new Program(DENO_RUN[0], [
        ...DENO_RUN.slice(1),
        pathOf("abuse_prober.ts"),
        port,
        String(durationSeconds),
      ]);
      return await prober.line<Probes>(/^\{.*\}$/m);
    };
    const before = await probe(Math.min(seconds, BEFORE_SECONDS));
    const memoryBefore = await memoryOf(server.pid);
    let memoryPeak = memoryBefore;
    const sampling = setInterval(async () => {
      memoryPeak = Math.max(memoryPeak, await memoryOf(server.pid).catch(() => 0));
    }, SAMPLE_MS);
    const attackers = new Program("nice", [
      "-n",
      "10",
      ...DENO_RUN,
      pathOf("abuse_attackers.ts"),
      port,
      attack,
      except,
    ]);
    programs.push(attackers);
    const startMs = Date.now();
    const during = await probe(seconds);
    const endMs = Date.now();
    await attackers.endInput();
    const attacks = await attackers.line<Record<string, number>>(/^\{.*\}$/m);
    await cluster.endInput();
    const { tokens } = await cluster.line<{ tokens: number }>(/^\{"tokens.*\}$/m);
    await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
    clearInterval(sampling);
    const memoryAfter = await memoryOf(server.pid);
    await server.stop();
    const delays: [atMs: number, lateMs: number][] = JSON.parse(await Deno.readTextFile(delaysFile));
    return {
      before,
      during,
      delays: delays.filter(([atMs]) => startMs < atMs && atMs < endMs).map(([, lateMs]) => lateMs)
        .sort((a, b) => a - b),
      memoryBefore,
      memoryPeak,
      memoryAfter,
      attacks: { ...attacks, "reviews of tokens": tokens },
    };
  } finally {
    for (const program of programs.reverse()) await program.stop();
    await Deno.remove(delaysFile);
  }
}

/** A part of sorted values: 0.99 for the 99th percentile. */
export function quantile(sorted: readonly number[], part: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? NaN;
}

const DENO_RUN = [Deno.execPath(), "run", "-A", "--no-check"];

function pathOf(file: string): string {
  return join(ROOT, "scripts", "lib", file);
}

/** A process, and what it has printed. */
class Program {
  readonly #process: Deno.ChildProcess;
  readonly #ended: Promise<void>;
  #text = "";
  #onText = () => {};

  constructor(command: string, args: readonly string[], env: Record<string, string> = {}) {
    this.#process = new Deno.Command(command, {
      args: [...args],
      cwd: ROOT,
      env,
      stdin: "piped",
      stdout: "piped",
      stderr: "inherit",
    }).spawn();
    this.#ended = this.#read();
  }

  get pid(): number {
    return this.#process.pid;
  }

  /** Reads to the end, so that the process never waits for this one. */
  async #read(): Promise<void> {
    for await (const text of this.#process.stdout.pipeThrough(new TextDecoderStream())) {
      this.#text += text;
      this.#onText();
    }
    this.#onText();
  }

  /** The printed text, once it matches. */
  async text(pattern: RegExp): Promise<RegExpExecArray> {
    let isOver = false;
    void this.#ended.finally(() => isOver = true);
    for (;;) {
      const found = pattern.exec(this.#text);
      if (found !== null) return found;
      if (isOver) throw new Error(`a program has ended: ${this.#text}`);
      await Promise.race([new Promise<void>((resolve) => (this.#onText = resolve)), this.#ended]);
    }
  }

  /** The first line that matches, as JSON. */
  async line<T>(pattern: RegExp): Promise<T> {
    return JSON.parse((await this.text(pattern))[0]);
  }

  async endInput(): Promise<void> {
    await this.#process.stdin.close();
  }

  async stop(): Promise<void> {
    try {
      this.#process.kill("SIGINT");
    } catch {
      // The process has ended.
    }
    await this.#process.status;
    await this.#ended;
  }
}

/** The resident memory of a process in MB. */
async function memoryOf(pid: number): Promise<number> {
  const { stdout } = await new Deno.Command("ps", { args: ["-o", "rss=", "-p", String(pid)] }).output();
  return Number(new TextDecoder().decode(stdout).trim()) / 1024;
}
