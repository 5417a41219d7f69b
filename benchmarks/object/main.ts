/**
 * Many pods in one Durable Object whose isolate is limited:
 * `deno run -A benchmarks/object/main.ts`.
 * `--help` has its options.
 *
 * @module
 */

import { join } from "node:path";
import { buildProgram } from "../../scripts/lib/bundle.ts";
import { taskOptions, usage } from "../../scripts/lib/task_usage.ts";
import { installTools } from "../../scripts/lib/tools.ts";
import { markdownTable } from "../lib/table.ts";
import { podJson, type PodPopulation, populationOf } from "../server/pods.ts";

const PER_SECOND = 200;
const PATH = "/api/v1/pods";

const values = taskOptions(
  usage({
    script: "benchmarks/object/main.ts",
    does: "Many pods in one Durable Object whose isolate is limited. Prints a table as Markdown.",
    options: {
      "--objects N": "how many pods (default: 100000)",
      "--heap-mb N": "the limit of the heap (default: 128)",
      "--seconds N": "how long events follow (default: 20)",
    },
  }),
  {
    objects: { type: "string", default: "100000" },
    "heap-mb": { type: "string", default: "128" },
    seconds: { type: "string", default: "20" },
  },
);
const objects = Number(values.objects);
const heapMb = Number(values["heap-mb"]);
const seconds = Number(values.seconds);

/** An API server that streams its list, and then so many events a second while it should. */
class Upstream {
  readonly #population: PodPopulation;
  readonly #list: Uint8Array<ArrayBuffer>[] = [];
  readonly #server: Deno.HttpServer<Deno.NetAddr>;
  #version: number;
  /** When each version was sent. */
  readonly sentMs = new Map<string, number>();
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  bytes = 0;

  constructor(objects: number) {
    this.#population = populationOf(objects);
    this.#version = objects;
    let lines = "";
    for (let i = 0; i < objects; i++) {
      lines += this.#event("ADDED", i, 1 + i, 0);
      if (lines.length > 1 << 18 || i === objects - 1) {
        const bytes = new TextEncoder().encode(lines);
        this.bytes += bytes.byteLength;
        this.#list.push(bytes);
        lines = "";
      }
    }
    this.#server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, (request) => {
      const { searchParams } = new URL(request.url);
      if (!searchParams.has("watch")) return new Response("{}", { status: 404 });
      const chunks = searchParams.has("sendInitialEvents") ? this.#list.values() : [].values();
      const stream = new ReadableStream<Uint8Array>({
        start: (controller) => {
          this.#controller = controller;
        },
        pull: (controller) => {
          const next = chunks.next();
          if (!next.done) return controller.enqueue(next.value);
          if (searchParams.has("sendInitialEvents")) controller.enqueue(this.#bookmark());
          return new Promise(() => {});
        },
      });
      return new Response(stream, { headers: { "Content-Type": "application/json" } });
    });
  }

  get address(): string {
    return `127.0.0.1:${this.#server.addr.port}`;
  }

  /** Sends an event. */
  modify(): void {
    const version = ++this.#version;
    const index = (version * 7_919) % this.#population.objects;
    this.sentMs.set(String(version), performance.now());
    this.#controller?.enqueue(new TextEncoder().encode(this.#event("MODIFIED", index, version, version)));
  }

  #bookmark(): Uint8Array {
    const annotations = { "k8s.io/initial-events-end": "true" };
    const metadata = { resourceVersion: String(this.#version), annotations };
    const event = { type: "BOOKMARK", object: { kind: "Pod", apiVersion: "v1", metadata } };
    return new TextEncoder().encode(`${JSON.stringify(event)}\n`);
  }

  #event(type: string, index: number, version: number, revision: number): string {
    const pod = podJson(this.#population, index, {
      resourceVersion: String(version),
      revision,
      isTyped: true,
    });
    return `{"type":"${type}","object":${pod}}\n`;
  }

  async close(): Promise<void> {
    try {
      this.#controller?.close();
    } catch {
      // The reader has left.
    }
    await this.#server.shutdown();
  }
}

function configuration(limitMb: number): string {
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  v8Flags = ["--max-old-space-size=${limitMb}", "--max-semi-space-size=4"],
  services = [
    (name = "worker", worker = .worker),
    (name = "objects", disk = (path = "objects", writable = true)),
    (name = "kubernetes", external = (address = "127.0.0.1:1", http = ())),
  ],
  sockets = [(name = "http", address = "127.0.0.1:1", http = (), service = "worker")],
);
const worker :Workerd.Worker = (
  modules = [(name = "worker.mjs", esModule = embed "worker.mjs")],
  compatibilityDate = "2026-07-01",
  bindings = [
    (name = "KUBERNETES", service = "kubernetes"),
    (name = "PODS", durableObjectNamespace = "Pods"),
  ],
  durableObjectNamespaces = [(className = "Pods", uniqueKey = "pods", enableSql = true)],
  durableObjectStorage = (localDisk = "objects"),
);
`;
}

function freeAddress(): string {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const address = `127.0.0.1:${(listener.addr as Deno.NetAddr).port}`;
  listener.close();
  return address;
}

class Workerd {
  readonly url: string;
  readonly #inspector: string;
  readonly #child: Deno.ChildProcess;

  constructor(program: string, folder: string, upstream: string) {
    const [address, inspector] = [freeAddress(), freeAddress()];
    this.url = `http://${address}`;
    this.#inspector = inspector;
    this.#child = new Deno.Command(program, {
      args: [
        "serve",
        "object.capnp",
        "--experimental",
        `--socket-addr=http=${address}`,
        `--external-addr=kubernetes=${upstream}`,
        `--inspector-addr=${inspector}`,
      ],
      cwd: folder,
    }).spawn();
  }

  /** Resident memory now, and at its peak, in MB. */
  async resident(): Promise<{ now: number; peak: number }> {
    const status = await Deno.readTextFile(`/proc/${this.#child.pid}/status`);
    const mb = (name: string) =>
      Math.round(Number(new RegExp(`${name}:\\s*(\\d+)`).exec(status)?.[1]) / 1_000);
    return { now: mb("VmRSS"), peak: mb("VmHWM") };
  }

  /** The heap that is used, in MB, as the runtime says. */
  async heap(): Promise<number> {
    const targets: { id: string }[] = await (await fetch(`http://${this.#inspector}/json`)).json();
    const socket = new WebSocket(`ws://${this.#inspector}/${targets[0].id}`);
    await new Promise((resolve) => (socket.onopen = resolve));
    const answer = new Promise<{ usedSize: number }>((resolve) => {
      socket.onmessage = ({ data }) => {
        const { id, result } = JSON.parse(data);
        if (id === 1) resolve(result);
      };
    });
    socket.send(JSON.stringify({ id: 1, method: "Runtime.getHeapUsage", params: {} }));
    const { usedSize } = await answer;
    socket.close();
    return Math.round(usedSize / 1e6);
  }

  async stop(): Promise<void> {
    try {
      this.#child.kill("SIGKILL");
    } catch {
      // The process did not survive.
    }
    await this.#child.status;
  }
}

async function ready(url: string): Promise<number> {
  const startMs = performance.now();
  for (;;) {
    const response = await fetch(`${url}${PATH}?limit=1&resourceVersion=0`).catch(() => undefined);
    await response?.body?.cancel();
    if (response?.status === 200) return performance.now() - startMs;
    if (performance.now() - startMs > 300_000) throw new Error("not synced after 5 minutes");
    await pause(20);
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

function percentile(sorted: readonly number[], share: number): string {
  return sorted.length === 0 ? "-" : sorted[Math.floor((sorted.length - 1) * share)].toFixed(1);
}

/** Events for a while, with a watcher, pages and gets beside them. */
async function load(workerd: Workerd, upstream: Upstream): Promise<[string, string][]> {
  const lags: number[] = [];
  const stop = new AbortController();
  const list = await (await fetch(`${workerd.url}${PATH}?limit=1&resourceVersion=0`)).json();
  const watching = (async () => {
    const query = `?watch=1&resourceVersion=${list.metadata.resourceVersion}`;
    const response = await fetch(workerd.url + PATH + query, { signal: stop.signal });
    let rest = "";
    for await (const text of response.body!.pipeThrough(new TextDecoderStream())) {
      const lines = (rest + text).split("\n");
      rest = lines.pop()!;
      for (const line of lines) {
        const { type, object } = JSON.parse(line);
        const sentMs = upstream.sentMs.get(object.metadata.resourceVersion);
        if (type === "MODIFIED" && sentMs !== undefined) lags.push(performance.now() - sentMs);
      }
    }
  })().catch(() => {});
  let pages = 0;
  let pageBytes = 0;
  const pageMs: number[] = [];
  const paging = (async () => {
    let token = "";
    while (!stop.signal.aborted) {
      const startMs = performance.now();
      const text = await (await fetch(`${workerd.url}${PATH}?limit=500&continue=${token}`)).text();
      pageMs.push(performance.now() - startMs);
      pages++;
      pageBytes += text.length;
      token = /"continue":"([^"]*)"/.exec(text.slice(0, 2_000))?.[1] ?? "";
      await pause(50);
    }
  })();
  await pause(200);
  const startMs = performance.now();
  let sent = 0;
  for (; sent < PER_SECOND * seconds; sent++) {
    upstream.modify();
    const aheadMs = sent * 1_000 / PER_SECOND - (performance.now() - startMs);
    if (aheadMs > 1) await pause(aheadMs);
  }
  const tookMs = performance.now() - startMs;
  await pause(1_000);
  stop.abort();
  await Promise.all([watching, paging]);
  lags.sort((a, b) => a - b);
  pageMs.sort((a, b) => a - b);
  return [
    [`events, ${PER_SECOND} a second wanted`, `${sent} in ${(tookMs / 1_000).toFixed(1)} s`],
    ["events that the watcher received", String(lags.length)],
    ["lag of an event, p50 / p99", `${percentile(lags, 0.5)} / ${percentile(lags, 0.99)} ms`],
    ["pages of 500 beside it, p50 / p99", `${percentile(pageMs, 0.5)} / ${percentile(pageMs, 0.99)} ms`],
    ["of them", `${pages}, ${Math.round(pageBytes / 1e6)} MB`],
  ];
}

async function main(): Promise<void> {
  const tools = await installTools();
  const program = await buildProgram(tools, "benchmarks/object/worker.ts", {
    name: "object_benchmark",
    platform: "workerd",
  });
  const folder = await Deno.makeTempDir({ prefix: "listwatch-object-benchmark-" });
  await Deno.copyFile(program, join(folder, "worker.mjs"));
  await Deno.mkdir(join(folder, "objects"));
  await Deno.writeTextFile(join(folder, "object.capnp"), configuration(heapMb));
  const upstream = new Upstream(objects);
  console.log(`${objects} pods, ${Math.round(upstream.bytes / 1e6)} MB, heap limit ${heapMb} MB`);
  const rows: [string, string][] = [];
  let workerd = new Workerd(tools.workerd, folder, upstream.address);
  try {
    rows.push(["first list", `${((await ready(workerd.url)) / 1_000).toFixed(1)} s`]);
    rows.push(["heap used after it", `${await workerd.heap()} MB`]);
    rows.push(...await load(workerd, upstream));
    const { now, peak } = await workerd.resident();
    rows.push(["heap used with events and reads", `${await workerd.heap()} MB`]);
    rows.push(["resident memory of workerd, now / peak", `${now} / ${peak} MB`]);
    await workerd.stop();
    let size = 0;
    for await (const { name, isFile } of Deno.readDir(join(folder, "objects", "pods"))) {
      if (isFile) size += (await Deno.stat(join(folder, "objects", "pods", name))).size;
    }
    rows.push(["database", `${Math.round(size / 1e6)} MB`]);
    workerd = new Workerd(tools.workerd, folder, upstream.address);
    rows.push(["first answer after a kill", `${((await ready(workerd.url)) / 1_000).toFixed(1)} s`]);
    rows.push(["heap used after it", `${await workerd.heap()} MB`]);
  } finally {
    console.log(markdownTable(["", ""], rows));
    await workerd.stop();
    await upstream.close();
    await Deno.remove(folder, { recursive: true });
  }
}

await main();
