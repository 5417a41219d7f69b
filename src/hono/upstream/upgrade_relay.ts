/**
 * Upgraded connections (`exec`, `attach`, `port-forward`) between readers and the API server: bytes in both directions, as
 * they come.
 * @module
 */

import type { Context } from "hono";
import { onAbort } from "../../util/abort.ts";
import type { TimerHandle } from "../../util/clock.ts";
import type { OpenUpgrade, ServedUpgrade, UpgradedConnection, UpgradeEnv } from "../../util/upgrade.ts";
import type { ReadSettings } from "../read_settings.ts";
import type { OpenWatch } from "../readers.ts";
import { afterLimit, type PassThroughRequest } from "./pass_through_request.ts";

// The handshakes of WebSockets and of SPDY (https://github.com/kubernetes/apimachinery/tree/master/pkg/util/httpstream).
const REQUEST_HEADERS: readonly string[] = [
  "sec-websocket-extensions",
  "sec-websocket-key",
  "sec-websocket-version",
];
const RESPONSE_HEADERS: readonly string[] = [
  "audit-id",
  "sec-websocket-accept",
  "sec-websocket-extensions",
  "sec-websocket-protocol",
  "x-stream-protocol-version",
];
// https://github.com/kubernetes/kubernetes/blob/master/staging/src/k8s.io/apiserver/pkg/authentication/request/websocket/protocol.go
const TOKEN_PROTOCOL = "base64url.bearer.authorization.k8s.io.";

/** Upgrades connections on both sides, and relays their bytes. */
export class UpgradeRelay {
  readonly #open: OpenUpgrade;

  /** @param open Opens the connection to the API server. */
  constructor(open: OpenUpgrade) {
    this.#open = open;
  }

  /** Whether the server can upgrade the connection of this request. */
  canServe(c: Context): boolean {
    return envOf(c).upgrade !== undefined;
  }

  /** Opens the connection to the API server. Resolves with its response if it does not upgrade it. */
  async open(
    c: Context,
    { url, headers, signal }: {
      readonly url: string;
      readonly headers: Readonly<Record<string, string>>;
      readonly signal: AbortSignal;
    },
  ): Promise<UpgradedConnection | Response> {
    const lines: [string, string][] = Object.entries(headers);
    const upgrade = c.req.header("Upgrade")!;
    lines.push(["connection", "Upgrade"], ["upgrade", upgrade]);
    for (const name of REQUEST_HEADERS) {
      const value = c.req.header(name);
      if (value !== undefined) lines.push([name, value]);
    }
    // A credential, which would be a second one.
    const protocols = wordsOf(c, "sec-websocket-protocol").filter((word) => !word.startsWith(TOKEN_PROTOCOL));
    if (protocols.length > 0) lines.push(["sec-websocket-protocol", protocols.join(", ")]);
    for (const version of wordsOf(c, "x-stream-protocol-version")) {
      lines.push(["x-stream-protocol-version", version]);
    }
    const opened = await this.#open(url, { method: c.req.raw.method, headers: lines, signal });
    if (opened instanceof Response) return opened;
    const switched = opened.headers.get("upgrade")?.toLowerCase();
    if (switched === upgrade.toLowerCase()) return opened;
    close(opened);
    throw new Error(`the API server upgraded the connection to ${switched ?? "nothing"}, not ${upgrade}`);
  }

  /** Upgrades the reader's connection too, and relays until either side ends, or a watch would have to. */
  relay(c: Context, request: PassThroughRequest, server: UpgradedConnection): Response {
    const { readers, settings, user } = request;
    const { signal } = c.req.raw;
    if (signal.aborted) {
      close(server);
      throw signal.reason;
    }
    const env = envOf(c);
    const headers: [string, string][] = [["Connection", "Upgrade"], ["Upgrade", c.req.header("Upgrade")!]];
    for (const name of RESPONSE_HEADERS) {
      const value = server.headers.get(name);
      if (value !== null) headers.push([name, value]);
    }
    const client = env.upgrade!(headers);
    const stopped = new AbortController();
    const stop = () => stopped.abort();
    const open: OpenWatch = { user, stop };
    readers.watches.add(open);
    const release = request.reader.hold();
    const stopTimer = afterLimit(request, stop);
    relayed(client, server, { signal: stopped.signal, settings }).finally(() => {
      stopTimer();
      readers.watches.delete(open);
      release();
    });
    // The server has answered already.
    return new Response(null);
  }
}

type Streams = Pick<ServedUpgrade, "readable" | "writable">;

/**
 * Relays both directions. Once one side has ended and the other one has received that, it has some time to end, too; then
 * both are closed.
 */
async function relayed(
  client: Streams,
  server: Streams,
  { signal, settings: { clock, writeTimeoutMs } }: {
    readonly signal: AbortSignal;
    readonly settings: Pick<ReadSettings, "clock" | "writeTimeoutMs">;
  },
): Promise<void> {
  const ends = [client, server].map(({ readable, writable }) => ({
    reader: readable.getReader(),
    writer: writable.getWriter(),
  }));
  const closeAll = () => {
    for (const { reader, writer } of ends) {
      reader.cancel().catch(() => {});
      writer.abort().catch(() => {});
    }
  };
  let timer: TimerHandle;
  let isOver = false;
  const onEnd = () => {
    if (!isOver) timer ??= clock.setTimeout(closeAll, writeTimeoutMs);
  };
  const aborted = new Promise<void>((resolve) => onAbort(signal, resolve));
  const [ofClient, ofServer] = ends;
  await Promise.race([
    Promise.all([oneWay(ofClient, ofServer, onEnd), oneWay(ofServer, ofClient, onEnd)]),
    aborted,
  ]);
  isOver = true;
  clock.clearTimeout(timer);
  closeAll();
}

interface End {
  readonly reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly writer: WritableStreamDefaultWriter<Uint8Array>;
}

/**
 * Relays one direction until its sender ends, or either side breaks off, which is noticed during a write that waits, too.
 * A receiver that has left may have sent something before, which the other direction still delivers.
 */
async function oneWay(from: End, to: End, onEnd: () => void): Promise<void> {
  const broken = new Promise<"broken">((resolve) => {
    from.reader.closed.catch(() => resolve("broken"));
    to.writer.closed.catch(() => resolve("broken"));
  });
  const ended = await Promise.race([pumped(from, to, onEnd).catch(() => "broken"), broken]);
  onEnd();
  // Of a receiver that has left, this ends nothing.
  if (ended === "broken") to.writer.abort().catch(() => {});
}

/** Writes what one side sends to the other side, until it ends; then ends what the other side receives. */
async function pumped({ reader }: End, { writer }: End, onEnd: () => void): Promise<void> {
  for (;;) {
    const { done, value } = await reader.read();
    if (done) {
      onEnd();
      return await writer.close();
    }
    await writer.write(value);
  }
}

function close({ readable, writable }: Streams): void {
  readable.cancel().catch(() => {});
  writable.abort().catch(() => {});
}

function envOf(c: Context): UpgradeEnv {
  return (c.env ?? {}) as UpgradeEnv;
}

/** The values of a header that is a list. */
function wordsOf(c: Context, name: string): string[] {
  return (c.req.header(name) ?? "").split(",").map((word) => word.trim()).filter((word) => word !== "");
}
