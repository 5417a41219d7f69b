/**
 * The requests of a server that want to upgrade their connections.
 * @module
 */

import { type IncomingMessage, type Server, ServerResponse, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { isTunnelProtocol, type ServedUpgrade, type UpgradeEnv } from "../util/upgrade.ts";
import { socketStreams } from "./socket_streams.ts";

interface Waiting {
  readonly socket: Duplex;
  readonly head: Uint8Array;
}

/** What a request needs to be upgraded. */
interface Exchange {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
}

/**
 * Answers requests that want to upgrade as any other request, and lets the `fetch` function upgrade them instead. A server
 * forgets such a connection: this class closes them.
 */
export class ServedUpgrades {
  readonly #waiting = new WeakMap<IncomingMessage, Waiting>();
  readonly #sockets = new Set<Duplex>();

  /** The option of a server that says which requests come to its `upgrade` listener; Node has it from 24.9 on. */
  readonly serverOptions: { readonly shouldUpgradeCallback: (incoming: IncomingMessage) => boolean } = {
    shouldUpgradeCallback: isTunnelRequest,
  };

  /** Takes the requests of a server that want to upgrade. */
  serve(server: Server): void {
    server.on("upgrade", (incoming: IncomingMessage, socket: Duplex, head: Uint8Array) => {
      // The server has removed its own listener.
      socket.on("error", () => socket.destroy());
      this.#sockets.add(socket);
      socket.once("close", () => this.#sockets.delete(socket));
      if (hasBody(incoming)) {
        const text = "Cannot read the body of a request that wants to upgrade its connection\n";
        socket.end(
          `HTTP/1.1 400 ${STATUS_CODES[400]}\r\nConnection: close\r\nContent-Type: text/plain\r\n` +
            `Content-Length: ${text.length}\r\n\r\n${text}`,
          () => socket.destroy(),
        );
        return;
      }
      const outgoing = new ServerResponse(incoming);
      outgoing.shouldKeepAlive = false;
      outgoing.assignSocket(socket as Parameters<ServerResponse["assignSocket"]>[0]);
      outgoing.on("finish", () => socket.end(() => socket.destroy()));
      this.#waiting.set(incoming, { socket, head });
      server.emit("request", incoming, outgoing);
    });
  }

  /** What the `fetch` function receives of a request. */
  envOf<E extends Exchange>(env: E): E & UpgradeEnv {
    const waiting = this.#waiting.get(env.incoming);
    if (waiting === undefined || !isTunnelRequest(env.incoming)) return env;
    const upgradable: E & { upgraded?: ServedUpgrade; upgrade?: UpgradeEnv["upgrade"] } = { ...env };
    upgradable.upgrade = (headers) => {
      const { socket, head } = waiting;
      env.outgoing.detachSocket(socket as Parameters<ServerResponse["detachSocket"]>[0]);
      const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join("");
      socket.write(`HTTP/1.1 101 ${STATUS_CODES[101]}\r\n${lines}\r\n`, "latin1");
      return upgradable.upgraded = socketStreams(socket, head);
    };
    return upgradable;
  }

  /** A request was answered by a response, and not upgraded: that ends when its client leaves, as of any other request. */
  answered({ incoming, outgoing }: Exchange): void {
    const waiting = this.#waiting.get(incoming);
    if (waiting === undefined) return;
    for (const event of ["end", "close"]) waiting.socket.once(event, () => outgoing.destroy());
    // Else the end is not noticed.
    waiting.socket.resume();
  }

  /** Closes all of them. */
  close(): void {
    for (const socket of this.#sockets) socket.destroy();
  }
}

function isTunnelRequest(incoming: IncomingMessage): boolean {
  return isTunnelProtocol(incoming.headers.upgrade) && !hasBody(incoming);
}

function hasBody({ headers }: IncomingMessage): boolean {
  const { "content-length": length = "0", "transfer-encoding": encoding } = headers;
  return length !== "0" || encoding !== undefined;
}
