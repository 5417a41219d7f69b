/**
 * Screens over very many pods: `listwatch serve` on Node with the flags of the npm package's command; pages
 * of any order, windows, and its page in headless Chromium, while events come in.
 *
 * @module
 */

import { request as httpRequest } from "node:http";
import { join } from "node:path";
import { ChromiumPage } from "../../scripts/lib/chromium_page.ts";
import { kubeconfigOf } from "../../scripts/lib/kubeconfig.ts";
import { startLineProcess } from "../../scripts/lib/line_process.ts";
import { run } from "../../scripts/lib/process.ts";
import { BIN_ENV, BIN_FLAGS } from "../../scripts/npm_package.ts";
import type { Tools } from "../../scripts/lib/tools.ts";
import { coresDuring, useOf } from "./child_server.ts";
import { quantile } from "./million.ts";
import type { BenchOptions } from "./options.ts";
import type { Programs } from "./programs.ts";
import { count } from "./report.ts";
import { type BenchServer, startServer } from "./rounds.ts";
import { digits, median } from "./statistics.ts";
import { markdownTable } from "./table.ts";

const EVENTS_PER_SECOND = 1_000;
/** Orders that are read for the first time: a column of kubectl's table, and fields. */
const ORDERS = ['column("Restarts"):desc', "status.startTime:desc", "spec.nodeName", "metadata.name"];
const FIELDS = "metadata.name,status.phase,spec.containers[].image";
const LISTED = 20_000;
const ROW_FIELDS = "metadata.name,status.phase,status.containerStatuses[].restartCount";
const WARM_PAGES = 40;
const MOST_WINDOWS = 1_000;
/** The rows of a page, and of a window. */
const ROWS = 50;
/** Windows that are opened together: a socket's queue of new connections is not long. */
const AT_ONCE = 100;
const WINDOW_EVENTS_PER_SECOND = 100;
/** Shares of the time that the events take at their full rate. */
const PAGE_SHARE = 0.4;
const WINDOW_SHARE = 0.2;
const RESTARTS = encodeURIComponent('column("Restarts"):desc');

/** Measures it, and returns the tables as Markdown. */
export async function measureScreens(
  options: BenchOptions,
  tools: Tools,
  programs: Programs,
  log: (line: string) => void,
): Promise<string> {
  const parts: string[] = [];
  for (const objects of options.sizes) {
    log(`encoding ${count(objects)} pods ...`);
    await using upstream = await startServer(tools, {
      ...options,
      objects,
      isVaried: true,
      isForScreens: true,
    });
    log(`starting serve ...`);
    const startMs = performance.now();
    await using served = await startServe(upstream, tools, programs);
    const syncS = (performance.now() - startMs) / 1_000;
    const bytes = digits(upstream.listBytes / objects / 1e3);
    const setup: Setup = {
      served,
      upstream,
      tools,
      log,
      seconds: options.events / EVENTS_PER_SECOND,
      windows: Math.min(MOST_WINDOWS, Math.ceil(objects / ROWS)),
    };
    parts.push(
      `${count(objects)} pods of ${bytes} KB; \`serve\` was ready after ${digits(syncS)} s:`,
      await pagesTable(setup),
      await fieldsTable(setup),
      await chromiumTable(setup),
      await windowsTable(setup),
      `\`serve\` has ${digits((useOf(served.pid)?.residentBytes ?? 0) / 1e9)} GB resident in the end.`,
    );
  }
  return [
    `\`listwatch serve\` on Node; unless it says otherwise, ${
      count(EVENTS_PER_SECOND)
    } events/s come in, of ` +
    "which one in ten restarts a pod. The browser, the clients and the server of the benchmark run on the same " +
    "cores:",
    ...parts,
  ].join("\n\n");
}

/** What is measured, and for how long. */
interface Setup {
  readonly served: ServedPods;
  readonly upstream: BenchServer;
  readonly tools: Tools;
  readonly log: (line: string) => void;
  /** How long the events take, at {@linkcode EVENTS_PER_SECOND}. */
  readonly seconds: number;
  readonly windows: number;
}

interface ServedPods extends AsyncDisposable {
  readonly url: string;
  readonly pid: number;
}

async function startServe(upstream: BenchServer, tools: Tools, programs: Programs): Promise<ServedPods> {
  const kubeconfig = await Deno.makeTempFile({ prefix: "listwatch-screens-", suffix: ".json" });
  await Deno.writeTextFile(kubeconfig, kubeconfigOf({ server: upstream.url }));
  const program = join(programs.bundles, "screens_server.mjs");
  const running = await startLineProcess(tools.node, {
    args: [...BIN_FLAGS, program, kubeconfig],
    env: { ...BIN_ENV },
  });
  const { url, pid } = JSON.parse(running.firstLine) as { url: string; pid: number };
  return {
    url,
    pid,
    async [Symbol.asyncDispose]() {
      await running[Symbol.asyncDispose]();
      await Deno.remove(kubeconfig);
    },
  };
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** A figure beside its limit. */
function judged(value: number, limit: number): string {
  return `${digits(value)} (≤ ${limit}) ${value <= limit ? "met" : "missed"}`;
}

/** Waits until a process has little to do, such as collecting what it has dropped; a minute at most. */
async function settled(pid: number): Promise<void> {
  for (let i = 0; i < 30; i++) {
    const before = useOf(pid)?.cpuSeconds ?? 0;
    await sleep(2_000);
    if ((useOf(pid)?.cpuSeconds ?? 0) - before < 0.1) return;
  }
}

/** Sends events in the background, and resolves when `work` is done and no event is sent any more. */
async function during<T>(
  upstream: BenchServer,
  { perSecond, seconds }: { readonly perSecond: number; readonly seconds: number },
  work: () => Promise<T>,
): Promise<T> {
  const burst = fetch(`${upstream.url}/control/burst?perSecond=${perSecond}&seconds=${seconds}`, {
    method: "POST",
  });
  const result = await work();
  await (await burst).body?.cancel();
  return result;
}

async function pagesTable({ served: { url }, upstream, log, seconds }: Setup): Promise<string> {
  log("pages ...");
  const rows = await during(
    upstream,
    { perSecond: EVENTS_PER_SECOND, seconds: seconds * PAGE_SHARE },
    async () => {
      const rows: string[][] = [];
      for (const order of ORDERS) {
        const path = `${url}/api/v1/pods?limit=${ROWS}&sortBy=${encodeURIComponent(order)}`;
        const first = await timeOf(path);
        const warm: number[] = [];
        for (let i = 0; i < WARM_PAGES; i++) warm.push(await timeOf(path));
        warm.sort((a, b) => a - b);
        rows.push([`\`${order}\``, digits(first), digits(median(warm)!), digits(quantile(warm, 0.95)!)]);
      }
      return rows;
    },
  );
  return `The first 50 in an order, as the client sees it:\n\n${
    markdownTable(["sorted by", "the first time, ms", "again, p50, ms", "p95, ms"], rows)
  }`;
}

async function fieldsTable({ served: { url }, log }: Setup): Promise<string> {
  log("lists of fields ...");
  const rows: string[][] = [];
  for (const [label, query] of [["whole", ""], ["three fields", `&fields=${FIELDS}`]]) {
    const path = `${url}/api/v1/pods?limit=${LISTED}${query}`;
    const [first, again] = [await timed(path), await timed(path)];
    rows.push([label, digits(first.bytes / 1e6), digits(first.ms), digits(again.ms)]);
  }
  return `A page of ${count(LISTED)} of them, without events:\n\n${
    markdownTable(["", "MB", "the first time, ms", "again, ms"], rows)
  }`;
}

async function timeOf(url: string): Promise<number> {
  return (await timed(url)).ms;
}

async function timed(url: string): Promise<{ readonly ms: number; readonly bytes: number }> {
  const startMs = performance.now();
  const response = await fetch(url);
  const { byteLength: bytes } = await response.arrayBuffer();
  if (!response.ok) throw new Error(`Cannot read ${url}: status ${response.status}`);
  return { ms: performance.now() - startMs, bytes };
}

/** The path of CHROMIUM, or of the one of npm, which has one for Linux on x64 only. */
async function chromiumPath(tools: Tools): Promise<string | undefined> {
  const named = Deno.env.get("CHROMIUM");
  if (named) return named;
  if (Deno.build.os !== "linux" || Deno.build.arch !== "x86_64") return undefined;
  // Node finds the packages of the folder.
  const script = 'console.log(await (await import("@sparticuz/chromium")).default.executablePath())';
  const { code, stdout, output } = await run(tools.node, ["--input-type=module", "-e", script], {
    cwd: tools.dir,
  });
  if (code !== 0) throw new Error(`Cannot find Chromium: ${output}`);
  return stdout.trim();
}

/** The page's part of it: when it shows rows, and which mark it shows when. */
const PROBE = `(() => {
  const probe = globalThis.screenProbe = { rowsMs: undefined, seen: {} };
  const look = () => {
    const rows = [...document.querySelectorAll(".grid-row:not([hidden])")];
    if (rows.length > 0) probe.rowsMs ??= performance.now();
    for (const row of rows) {
      for (const { textContent } of row.children) {
        if (/^1[0-9]{6}$/.test(textContent)) probe.seen[textContent] ??= Date.now();
      }
    }
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
})()`;

async function probed(page: ChromiumPage): Promise<{ rowsMs?: number; seen: Record<string, number> }> {
  return await page.evaluate("screenProbe");
}

/** When the page showed its first rows; waits for them. */
async function firstRows(page: ChromiumPage): Promise<number> {
  for (let i = 0; i < 600; i++) {
    const { rowsMs } = await probed(page);
    if (rowsMs !== undefined) return rowsMs;
    await sleep(50);
  }
  throw new Error("The page has shown no row for half a minute");
}

async function chromiumTable({ served, upstream, tools, log, seconds: all }: Setup): Promise<string> {
  const { url, pid } = served;
  const executable = await chromiumPath(tools);
  if (executable === undefined) return "Chromium did not take part: name one by CHROMIUM.";
  log("the page in Chromium ...");
  await using page = await ChromiumPage.start(executable);
  await page.resize(1280, 860);
  await page.evaluateFirst(PROBE);
  const pods = `${url}/#/api/v1/pods?sort=Restarts:desc`;
  const burst = (share: number) => ({ perSecond: EVENTS_PER_SECOND, seconds: all * PAGE_SHARE * share });
  const freshMs = await during(upstream, burst(0.3), async () => {
    await page.open(pods);
    return await firstRows(page);
  });
  await page.open("about:blank");
  const again = burst(0.7);
  const { kilobytes, cores } = await during(upstream, again, async () => {
    const [startMs, bytes] = [performance.now(), page.receivedBytes];
    const cores = await coresDuring(pid, async () => {
      await page.open(pods);
      await sleep(900 * again.seconds);
    });
    const seconds = (performance.now() - startMs) / 1_000;
    return { kilobytes: (page.receivedBytes - bytes) / 1e3 / seconds, cores };
  });
  const marks = await (await fetch(`${upstream.url}/control/marks`)).json() as Record<string, number>;
  const { rowsMs, seen } = await probed(page);
  const delays = Object.entries(seen).map(([mark, ms]) => ms - marks[mark]).filter((ms) => ms >= 0)
    .sort((a, b) => a - b);
  if (rowsMs === undefined || delays.length === 0) {
    throw new Error("The page shows no pods, or no change of them");
  }
  const heap = await page.heapBytes();
  return `The page of pods sorted by restarts, in Chromium; ${
    count(delays.length)
  } changes of its first row:\n\n${
    markdownTable(
      [
        "first rows in a fresh browser, ms",
        "again",
        "KB/s",
        "heap, MB",
        "change on the screen, p50, ms",
        "p95",
        "longest",
        "cores of serve",
      ],
      [[
        digits(freshMs),
        judged(rowsMs, 300),
        judged(kilobytes, 100),
        judged(heap / 1e6, 50),
        digits(quantile(delays, 0.5)!),
        judged(quantile(delays, 0.95)!, 200),
        digits(delays.at(-1)!),
        cores === undefined ? "-" : digits(cores),
      ]],
    )
  }`;
}

async function windowsTable({ served, upstream, log, seconds: whole, windows }: Setup): Promise<string> {
  const { url, pid } = served;
  log(`${count(windows)} windows ...`);
  const seconds = whole * WINDOW_SHARE;
  const burst = { perSecond: WINDOW_EVENTS_PER_SECOND, seconds };
  const cores = async () =>
    await during(upstream, burst, () => coresDuring(pid, () => sleep(900 * seconds))) ?? 0;
  const rows: string[][] = [];
  await settled(pid);
  const alone = await cores();
  rows.push(["none", "-", digits(alone), "-"]);
  for (const [label, apart] of [["the same 50 rows", 0], ["50 rows of their own", ROWS]] as const) {
    const stop = new AbortController();
    let bytes = 0;
    for (let i = 0; i < windows; i += AT_ONCE) {
      const opened = Array.from({ length: Math.min(AT_ONCE, windows - i) }, (_, k) => {
        const place = `limit=${ROWS}&offset=${apart * (i + k)}&sortBy=${RESTARTS}&fields=${ROW_FIELDS}`;
        return openWindow(`${url}/api/v1/pods?watch=1&${place}`, stop.signal, (length) => bytes += length);
      });
      await Promise.all(opened);
    }
    await settled(pid);
    bytes = 0;
    const all = await cores();
    rows.push([
      label,
      digits(bytes / 1e3 / seconds),
      digits(all),
      judged(all - alone, 0.05),
    ]);
    stop.abort();
    await settled(pid);
  }
  return `${count(windows)} windows, ${WINDOW_EVENTS_PER_SECOND} events/s:\n\n${
    markdownTable(["windows", "KB/s of all", "cores of serve", "of the windows"], rows)
  }`;
}

/** Opens a window, and resolves with its first bytes. */
function openWindow(url: string, signal: AbortSignal, onBytes: (length: number) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(url, { signal, agent: false }, (response) => {
      if (response.statusCode !== 200) reject(new Error(`Cannot open ${url}: status ${response.statusCode}`));
      response.on("data", (chunk: Uint8Array) => {
        onBytes(chunk.length);
        resolve();
      });
      response.on("error", () => {}); // it is aborted in the end
    });
    request.on("error", (error) => signal.aborted || reject(error));
    request.end();
  });
}
