/**
 * What a server of `serve` does while strangers and readers abuse it.
 *
 * @module
 */

import { TOKEN } from "./abuse_cluster.ts";
import { ROOT } from "./gate.ts";

/** A program that runs `listwatch`. */
export interface Listwatch {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
}

/** Options of {@linkcode measureAbuse}. */
export interface AbuseOptions {
  /** How long the attackers work. */
  readonly seconds: number;
  /** Only attacks whose name contains this. */
  readonly attack?: string;
}

/** What was measured. */
export interface AbuseFigures {
  /** Milliseconds until the answer of `/healthz`, sorted. */
  readonly before: readonly number[];
  readonly during: readonly number[];
  /** The same of a list of 500 objects by a reader with a known token. */
  readonly lists: readonly number[];
  /** Answers that were no 200. */
  readonly failures: number;
  /** Resident memory in MB. */
  readonly memoryBefore: number;
  readonly memoryPeak: number;
  readonly memoryAfter: number;
  /** How often each attack was carried out. */
  readonly attacks: Readonly<Record<string, number>>;
}

const PAUSE_MS = 20;
const LIST_PAUSE_MS = 500;
const SETTLE_MS = 5_000;

/** Serves a cluster of 20,000 pods, measures for some seconds alone, and then while all attackers work. */
export async function measureAbuse(
  listwatch: Listwatch,
  { seconds, attack = "" }: AbuseOptions,
): Promise<AbuseFigures> {
  const cluster = workerOf("abuse cluster", "abuse_cluster.ts");
  const attackers = workerOf("abuse attackers", "abuse_attackers.ts");
  let server: Deno.ChildProcess | undefined;
  try {
    const { kubeconfig } = await messageOf<{ kubeconfig: string }>(cluster);
    server = new Deno.Command(listwatch.command, {
      args: [
        ...listwatch.args,
        ...[
          "serve",
          "--port",
          "0",
          "--kubeconfig",
          kubeconfig,
          "--cluster-rbac",
          "--resource",
          "pods,namespaces",
        ],
      ],
      cwd: ROOT,
      env: { NO_COLOR: "1" },
      stdin: "null",
      stdout: "piped",
      stderr: "inherit",
    }).spawn();
    const url = await urlOf(server.stdout);
    const { pid } = server;
    const health = () => timed(`${url}/healthz`);
    const headers = { Authorization: `Bearer ${TOKEN}` };
    const list = () => timed(`${url}/api/v1/pods?limit=500`, headers);
    // As warm as a server is that has been running.
    for (let i = 0; i < 20; i++) await list();
    const before = await repeated(health, PAUSE_MS, Math.min(seconds, 10) * 1_000);
    const memoryBefore = await memoryOf(pid);
    let memoryPeak = memoryBefore;
    const sampling = setInterval(async () => {
      memoryPeak = Math.max(memoryPeak, await memoryOf(pid).catch(() => 0));
    }, 500);
    attackers.postMessage({ port: Number(new URL(url).port), attack });
    const [during, lists] = await Promise.all([
      repeated(health, PAUSE_MS, seconds * 1_000),
      repeated(list, LIST_PAUSE_MS, seconds * 1_000),
    ]);
    attackers.postMessage({});
    const attacks = await messageOf<Record<string, number>>(attackers);
    cluster.postMessage({});
    const { tokens } = await messageOf<{ tokens: number }>(cluster);
    attackers.terminate();
    await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
    clearInterval(sampling);
    return {
      before: before.times,
      during: during.times,
      lists: lists.times,
      failures: before.failures + during.failures + lists.failures,
      memoryBefore,
      memoryPeak,
      memoryAfter: await memoryOf(pid),
      attacks: { ...attacks, "reviews of tokens": tokens },
    };
  } finally {
    attackers.terminate();
    cluster.terminate();
    server?.kill("SIGINT");
    await server?.status;
  }
}

/** A part of sorted values: 0.99 for the 99th percentile. */
export function quantile(sorted: readonly number[], part: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? NaN;
}

function workerOf(name: string, file: string): Worker {
  return new Worker(new URL(file, import.meta.url), { type: "module", name });
}

function messageOf<T>(worker: Worker): Promise<T> {
  return new Promise((resolve, reject) => {
    worker.onmessage = ({ data }) => resolve(data);
    worker.onerror = ({ message }) => reject(new Error(message));
  });
}

/** Waits until the server has synced; reads on, so that it never waits for this program. */
async function urlOf(stdout: ReadableStream<Uint8Array>): Promise<string> {
  const reader = stdout.pipeThrough(new TextDecoderStream()).getReader();
  for (let text = "";;) {
    const { done, value = "" } = await reader.read();
    if (done) throw new Error(`serve has ended: ${text}`);
    text += value;
    const url = /^Serving +(\S+)/m.exec(text)?.[1];
    if (url === undefined || !/^Synced/m.test(text)) continue;
    void (async () => {
      while (!(await reader.read()).done);
    })().catch(() => {});
    return url;
  }
}

async function timed(url: string, headers: Record<string, string> = {}): Promise<number | undefined> {
  const startMs = performance.now();
  try {
    const response = await fetch(url, { headers });
    await response.text();
    return response.status === 200 ? performance.now() - startMs : undefined;
  } catch {
    return undefined;
  }
}

async function repeated(
  measure: () => Promise<number | undefined>,
  pauseMs: number,
  durationMs: number,
): Promise<{ readonly times: number[]; readonly failures: number }> {
  const times: number[] = [];
  let failures = 0;
  for (const endMs = performance.now() + durationMs; performance.now() < endMs;) {
    const ms = await measure();
    if (ms === undefined) failures++;
    else times.push(ms);
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
  return { times: times.sort((a, b) => a - b), failures };
}

/** The resident memory of a process in MB. */
async function memoryOf(pid: number): Promise<number> {
  const { stdout } = await new Deno.Command("ps", { args: ["-o", "rss=", "-p", String(pid)] }).output();
  return Number(new TextDecoder().decode(stdout).trim()) / 1024;
}
