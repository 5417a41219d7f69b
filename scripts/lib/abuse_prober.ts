/**
 * Measures `/healthz` for `scripts/abuse.ts`, in a process of its own, and beside it a
 * server that does nothing else: what that takes is the machine's. Arguments: the
 * port, and a number of seconds. Prints the times.
 *
 * @module
 */

import { Agent, createServer, get } from "node:http";
import type { AddressInfo } from "node:net";
import { READER_TOKEN, TOKEN } from "./abuse_cluster.ts";

/** What was measured: milliseconds until the whole answer was there, sorted; `NaN` for what was no 200. */
export interface Probes {
  /** Over a connection that is kept, and over a new one for each request. */
  readonly health: readonly number[];
  readonly newConnection: readonly number[];
  /** A list of 500 objects, by a user of its own, and by the user as whom the attackers come. */
  readonly lists: readonly number[];
  readonly attackersLists: readonly number[];
  /** A server that is left alone. */
  readonly plain: readonly number[];
}

const PAUSE_MS = 20;
const LIST_PAUSE_MS = 500;

const worker = globalThis as unknown as {
  onmessage?: (event: MessageEvent<number>) => void;
  postMessage(message: unknown): void;
};

function timed(port: number, path: string, agent: Agent, token: string): Promise<number> {
  const startMs = performance.now();
  return new Promise((resolve) => {
    const headers = { Authorization: `Bearer ${token}` };
    const request = get({ host: "127.0.0.1", port, path, agent, headers }, (response) => {
      response.resume();
      response.on("end", () => resolve(response.statusCode === 200 ? performance.now() - startMs : NaN));
      response.on("error", () => resolve(NaN));
    });
    request.on("error", () => resolve(NaN));
  });
}

async function repeated(
  port: number,
  path: string,
  { seconds, pauseMs = PAUSE_MS, keepAlive = true, token = READER_TOKEN }: {
    readonly seconds: number;
    readonly pauseMs?: number;
    readonly keepAlive?: boolean;
    readonly token?: string;
  },
): Promise<number[]> {
  const agent = new Agent({ keepAlive, maxSockets: 1 });
  const times: number[] = [];
  for (const endMs = performance.now() + seconds * 1_000; performance.now() < endMs;) {
    times.push(await timed(port, path, agent, token));
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
  agent.destroy();
  return times.sort((a, b) => a - b);
}

if ("WorkerGlobalScope" in globalThis && globalThis.name === "plain server") {
  const server = createServer((_, response) => response.end("ok\n"));
  server.listen(0, "127.0.0.1", () => worker.postMessage((server.address() as AddressInfo).port));
} else if (import.meta.main) {
  const [port, seconds] = Deno.args.map(Number);
  const plain = new Worker(import.meta.url, { type: "module", name: "plain server" });
  const plainPort = await new Promise<number>((resolve) => (plain.onmessage = ({ data }) => resolve(data)));
  const list = "/api/v1/pods?limit=500";
  const measured = await Promise.all([
    repeated(port, "/healthz", { seconds }),
    repeated(port, "/healthz", { seconds, keepAlive: false }),
    repeated(port, list, { seconds, pauseMs: LIST_PAUSE_MS }),
    repeated(port, list, { seconds, pauseMs: LIST_PAUSE_MS, token: TOKEN }),
    repeated(plainPort, "/healthz", { seconds }),
  ]);
  const [health, newConnection, lists, attackersLists, plainTimes] = measured;
  const probes: Probes = { health, newConnection, lists, attackersLists, plain: plainTimes };
  console.log(JSON.stringify(probes));
  Deno.exit();
}
