/**
 * The server of the benchmarks, in a process of its own: plain HTTP/1.1 on the loopback
 * interface, with everything encoded before it says that it is ready. Written for Node, as it is
 * the runtime that every contestant is compared on.
 *
 * It answers what informers ask: lists (a page where there is a `limit` and the resourceVersion is not
 * 0, all in one otherwise, as kube-apiserver does) and watches. It is like a server without the
 * WatchList feature: `sendInitialEvents` is refused with 422, so that every contestant lists. It never
 * compresses. With `--drop` it leaves out managedFields where a client does not want them (`drop` in
 * `Accept`), as kube-apiserver 1.38 with the feature ManagedFieldsOptOut. Each watch has a bookmark every
 * half a minute, so that no client takes it for dead.
 *
 * Five more paths drive it:
 *
 *     GET  /control/stats    how many lists and watches there were
 *     GET  /control/marks    when which mark was sent, in milliseconds of the epoch
 *     POST /control/begin    no event was sent yet: the next client finds what the first one found
 *     POST /control/burst    sends the events to every open watch, waiting for one first;
 *                            answers at their end. With `perSecond` no faster than that. With
 *                            `seconds` it ends then, and the next one continues there
 *     POST /control/relist   ends every watch with 410 Expired;
 *                            answers when the list and the watch that follow are there
 *
 * It prints one line of JSON when it is ready, and ends when its standard input does.
 *
 * @module
 */

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import process from "node:process";
import { parseArgs } from "node:util";
import { encodeEvents, encodeList, type Pods } from "./answers.ts";

const { values } = parseArgs({
  args: process.argv.slice(2),
  options: {
    objects: { type: "string", default: "20000" },
    events: { type: "string", default: "50000" },
    framing: { type: "string", default: "event" },
    varied: { type: "boolean", default: false },
    screens: { type: "boolean", default: false },
    drop: { type: "boolean", default: false },
  },
});
const objects = Number(values.objects);
const pods = { objects, isVaried: values.varied, isForScreens: values.screens };
const framing = values.framing === "block" ? "block" : "event";
const whole = encode(pods);
const bare = values.drop ? encode({ ...pods, isBare: true }) : whole;
/** What the last client reads: one at a time is measured. */
let { list, burst } = whole;

function encode(pods: Pods) {
  return { list: encodeList(pods), burst: encodeEvents(pods, Number(values.events), framing) };
}

const stats = { lists: 0, watches: 0 };
/** The block that a burst with an end begins with. */
let nextBlock = 0;
const marks: Record<number, number> = {};
const watches = new Set<ServerResponse>();
/** Called when a watch was opened. */
let onWatch: (() => void)[] = [];

const server = createServer((request, response) => {
  answer(request, response).catch((error) => {
    console.error(`${request.method} ${request.url}: ${error instanceof Error ? error.stack : error}`);
    response.destroy();
  });
});
// Tens of thousands of lists a second are not the aim; a connection that stays is.
server.keepAliveTimeout = 60_000;

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = new URL(request.url ?? "/", "http://server");
  const query = url.searchParams;
  request.resume();
  switch (url.pathname) {
    case "/api/v1/pods":
      ({ list, burst } = request.headers.accept?.includes("drop=metadata.managedFields") ? bare : whole);
      if (["1", "true"].includes(query.get("watch") ?? "")) return watch(query, response);
      return await sendList(query, response);
    case "/control/stats":
      return sendJson(response, 200, stats);
    case "/control/marks":
      return sendJson(response, 200, marks);
    case "/control/begin":
      nextBlock = 0;
      return sendJson(response, 200, stats);
    case "/control/burst":
      return await sendBurst(
        response,
        Number(query.get("perSecond") ?? Infinity),
        Number(query.get("seconds") ?? Infinity),
      );
    case "/version":
      return sendJson(response, 200, { gitVersion: "v1.36.2" });
    case "/api":
      return sendJson(response, 200, { kind: "APIVersions", versions: ["v1"] });
    case "/apis":
      return sendJson(response, 200, { kind: "APIGroupList", apiVersion: "v1", groups: [] });
    case "/api/v1":
      return sendJson(response, 200, DISCOVERY);
    case "/control/relist":
      return await forceRelist(response);
    default:
      sendJson(response, 404, status(404, "NotFound", `there is no ${url.pathname} here`));
  }
}

const DISCOVERY = {
  kind: "APIResourceList",
  groupVersion: "v1",
  resources: [
    { name: "pods", singularName: "pod", namespaced: true, kind: "Pod", verbs: ["get", "list", "watch"] },
  ],
};

async function sendList(query: URLSearchParams, response: ServerResponse): Promise<void> {
  const limit = Number(query.get("limit") ?? 0);
  const start = Number(/^from-(\d+)$/.exec(query.get("continue") ?? "")?.[1] ?? 0);
  const isPaged = limit > 0 && query.get("resourceVersion") !== "0";
  const end = isPaged ? start + limit : objects;
  response.writeHead(200, { "Content-Type": "application/json" });
  for (const block of list.page(start, end, version())) {
    if (!response.write(block)) await drained(response);
  }
  response.end();
  if (end >= objects) stats.lists++;
}

function watch(query: URLSearchParams, response: ServerResponse): void {
  if (query.has("sendInitialEvents")) {
    const message =
      "ListOptions.meta.k8s.io is invalid: sendInitialEvents: Forbidden: sendInitialEvents is forbidden " +
      "for watch unless the WatchList feature gate is enabled";
    sendJson(response, 422, status(422, "Invalid", message));
    return;
  }
  response.writeHead(200, { "Content-Type": "application/json" });
  response.flushHeaders();
  watches.add(response);
  const bookmarks = setInterval(() => sendBookmark(response.socket!), BOOKMARK_MS);
  response.on("close", () => {
    watches.delete(response);
    clearInterval(bookmarks);
  });
  stats.watches++;
  for (const call of onWatch.splice(0)) call();
}

const BOOKMARK_MS = 30_000;

/** The version of the last event that was sent: a server that names an older one has lost data. */
function version(): string {
  return burst.versions[nextBlock - 1] ?? list.resourceVersion;
}

/** Below the HTTP layer, as the blocks. */
function sendBookmark(socket: Socket): void {
  const metadata = { resourceVersion: version(), creationTimestamp: null };
  const object = { kind: "Pod", apiVersion: "v1", metadata };
  const line = `${JSON.stringify({ type: "BOOKMARK", object })}\n`;
  socket.write(`${line.length.toString(16)}\r\n${line}\r\n`);
}

async function sendBurst(response: ServerResponse, perSecond: number, seconds: number): Promise<void> {
  if (watches.size === 0) await nextWatch();
  await Promise.all([...watches].map(async (watcher) => {
    // Below the HTTP layer: the blocks are framed already.
    const socket = watcher.socket as Socket;
    const startMs = performance.now();
    const blockMs = 1_000 * burst.events / burst.blocks.length / perSecond;
    const endMs = startMs + 1_000 * seconds;
    const first = seconds < Infinity ? nextBlock : 0;
    for (let i = first; i < burst.blocks.length && performance.now() < endMs; i++) {
      const dueMs = startMs + (i - first) * blockMs - performance.now();
      if (dueMs > 0) await new Promise((resolve) => setTimeout(resolve, dueMs));
      if (socket.destroyed) return;
      const mark = burst.marks.get(i);
      if (mark !== undefined) marks[mark] = Date.now();
      nextBlock = i + 1;
      if (!socket.write(burst.blocks[i])) await drained(socket);
    }
  }));
  sendJson(response, 200, stats);
}

async function forceRelist(response: ServerResponse): Promise<void> {
  if (watches.size === 0) await nextWatch();
  const opened = nextWatch();
  const expired = status(410, "Expired", "too old resource version");
  for (const watcher of watches) watcher.end(`${JSON.stringify({ type: "ERROR", object: expired })}\n`);
  await opened;
  sendJson(response, 200, stats);
}

function nextWatch(): Promise<void> {
  return new Promise((resolve) => onWatch = [...onWatch, resolve]);
}

/** Resolves when more may be written, or nothing ever again. */
function drained(stream: ServerResponse | Socket): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      stream.off("drain", done);
      stream.off("close", done);
      resolve();
    };
    stream.on("drain", done);
    stream.on("close", done);
  });
}

function status(code: number, reason: string, message: string): Record<string, unknown> {
  return { kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", message, reason, code };
}

function sendJson(response: ServerResponse, code: number, body: unknown): void {
  response.writeHead(code, { "Content-Type": "application/json" });
  response.end(JSON.stringify(body));
}

server.listen(0, "127.0.0.1", () => {
  console.log(JSON.stringify({
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    listBytes: list.bytes,
    lastResourceVersion: burst.lastResourceVersion,
  }));
});
process.stdin.on("end", () => process.exit(0));
process.stdin.resume();
