/**
 * The attackers of `scripts/abuse.ts`, a program. Arguments: the port, a part of the names of the
 * attacks, and one of the names of those that are left out. Prints at the end of its input how often each was
 * carried out.
 *
 * @module
 */

import { connect, type Socket } from "node:net";
import { TOKEN } from "./abuse_cluster.ts";

/** How often each kind of attack was carried out. */
const counts: Record<string, number> = {};

const count = (kind: string) => (counts[kind] = (counts[kind] ?? 0) + 1);
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const HOST = "Host: 127.0.0.1\r\n";
const KNOWN = `Authorization: Bearer ${TOKEN}\r\n`;
const head = (path: string, headers = "") => `GET ${path} HTTP/1.1\r\n${HOST}${headers}\r\n`;
const pick = <T>(values: readonly T[], i: number): T => values[i % values.length];

/** Connects again and again; `attack` is called with each connection, and ends with it. */
async function again(port: number, kind: string, attack: (socket: Socket, i: number) => void): Promise<void> {
  for (let i = 0;; i++) {
    const socket = connect({ host: "127.0.0.1", port });
    const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
    socket.on("error", () => {});
    socket.once("connect", () => {
      count(kind);
      attack(socket, i);
    });
    await closed;
    await pause(10);
  }
}

/** Sends as many requests as the connection takes, with and without reading the answers. */
function pipeline(socket: Socket, i: number): void {
  const flood = head(pick(["/api/v1/pods", "/apis", "/healthz"], i)).repeat(1_000);
  if (i % 2 === 0) socket.pause();
  else socket.resume();
  const write = () => {
    while (!socket.destroyed && socket.write(flood));
  };
  socket.on("drain", write);
  write();
}

/** Sends a head, or a body, byte by byte. */
function dribble(socket: Socket, i: number): void {
  const text = i % 2 === 0
    ? head("/api/v1/pods", `${KNOWN}X-Long: ${"x".repeat(4_000)}\r\n`)
    : `POST /api/v1/namespaces/shop/pods HTTP/1.1\r\n${HOST}${KNOWN}Content-Length: 100000\r\n\r\n`;
  let sent = i % 2 === 0 ? 20 : text.length;
  socket.write(text.slice(0, sent));
  socket.resume();
  const timer = setInterval(() => socket.write(text[sent++] ?? "x"), 200);
  socket.once("close", () => clearInterval(timer));
}

const UNREAD = [
  "/api/v1/pods",
  "/api/v1/pods?watch=1&timeoutSeconds=1",
  "/api/v1/pods?watch=1",
  "/api/v1/pods?limit=500",
  "/api/v1/pods?pretty=1&limit=5000",
  "/apis",
  "/dashboard/state",
];

/** Reads nothing of the answer. */
function neverRead(socket: Socket, i: number): void {
  socket.pause();
  socket.write(head(pick(UNREAD, i), KNOWN));
}

/** Random tokens, one after the other. */
function tokens(socket: Socket, i: number): void {
  let n = 0;
  const next = () => {
    count("tokens");
    socket.write(
      head("/api/v1/pods?limit=1", `Authorization: Bearer random-${i}-${n++}-${Math.random()}\r\n`),
    );
  };
  socket.on("data", next);
  next();
}

/** Searches as those of the page, each for other letters. */
function search(socket: Socket): void {
  const next = () => {
    count("searches");
    const letters = Math.random().toString(36).slice(2, 10);
    const filter = encodeURIComponent(Array.from(letters, (letter) => `metadata.name~${letter}`).join(","));
    const query = `sortBy=metadata.name&limit=100&fields=metadata.name&filter=${filter}`;
    socket.write(head(`/api/v1/pods?${query}`, KNOWN));
  };
  socket.on("data", (chunk) => String(chunk).startsWith("HTTP/1.1 ") && setTimeout(next, 10));
  next();
}

/**
 * Sends the body of a request in chunks of one byte, as fast as it is
 * taken; every second one without a known token.
 */
function tinyChunks(socket: Socket, i: number): void {
  const token = i % 2 === 0 ? KNOWN : `Authorization: Bearer unknown-${i}-${Math.random()}\r\n`;
  const headers = `${HOST}${token}Transfer-Encoding: chunked\r\n\r\n`;
  socket.write(`POST /api/v1/namespaces/shop/pods HTTP/1.1\r\n${headers}`);
  socket.resume();
  const chunks = "1\r\nx\r\n".repeat(10_000);
  const write = () => {
    while (!socket.destroyed && socket.write(chunks));
  };
  socket.on("drain", write);
  write();
}

/** Sends one request after the other, each as soon as the answer to the one before begins. */
function oneByOne(kind: string, requestOf: (n: string) => string): (socket: Socket, i: number) => void {
  return (socket, i) => {
    let n = 0;
    const next = () => {
      count(kind);
      socket.write(requestOf(`${i}-${n++}-${Math.floor(Math.random() * 1e9)}`));
    };
    socket.on("data", (chunk) => String(chunk).startsWith("HTTP/1.1 ") && next());
    next();
  };
}

// No two of them have a body, a group of watches or a compiled selector in common.
const selectors = oneByOne(
  "distinct selectors",
  (n) => head(`/api/v1/pods?labelSelector=app%21%3D${n}%2Cx%3Dy`, KNOWN),
);
const HEADS = ["/dashboard/state", "/apis", "/api/v1/pods", "/api/v1/pods?watch=1"];
let headCount = 0;
const heads = oneByOne("HEAD requests", () => head(pick(HEADS, headCount++), KNOWN).replace("GET", "HEAD"));

/** Opens a window of an order of its own, and leaves it. */
function orders(socket: Socket, i: number): void {
  const order = `metadata.labels.x${i}-${Math.floor(Math.random() * 1e9)}%2Cmetadata.name`;
  socket.write(head(`/api/v1/pods?watch=true&sortBy=${order}&limit=100`, KNOWN));
  socket.resume();
  setTimeout(() => socket.destroy(), 5_000);
}

/** Opens a watch over a WebSocket, and sends pings and empty messages. */
function frames(socket: Socket, i: number): void {
  const handshake = `${KNOWN}Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n` +
    "Sec-WebSocket-Key: MDEyMzQ1Njc4OTAxMjM0NQ==\r\n";
  socket.write(head("/api/v1/pods?watch=1&fieldSelector=metadata.name%3Dnone", handshake));
  const frame = i % 2 === 0 ? [0x89, 0x80, 0, 0, 0, 0] : [0x81, 0x80, 0, 0, 0, 0];
  const many = new Uint8Array(Array.from({ length: 1_000 }, () => frame).flat());
  socket.on("data", () => {
    count("bursts of frames");
    socket.write(many);
  });
}

if (import.meta.main) {
  const [port, only, except] = Deno.args;
  const start = (many: number, kind: string, attack: (socket: Socket, i: number) => void) => {
    if (!kind.includes(only) || (except !== "" && kind.includes(except))) return;
    for (let n = 0; n < many; n++) void again(Number(port), kind, (socket, i) => attack(socket, i + n));
  };
  start(4, "pipelining connections", pipeline);
  start(200, "dribbling connections", dribble);
  start(300, "unread connections", neverRead);
  start(100, "connections with random tokens", tokens);
  start(40, "searching connections", search);
  start(100, "windows of distinct orders", orders);
  start(5, "connections with tiny chunks", tinyChunks);
  start(20, "connections with distinct selectors", selectors);
  start(20, "connections with HEAD", heads);
  start(20, "connections with frames", frames);
  await Deno.stdin.read(new Uint8Array(1));
  console.log(JSON.stringify(counts));
  Deno.exit();
}
