/** A small proxy: tunnels for CONNECT, and requests passed on. */

import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { type AddressInfo, connect, type Socket } from "node:net";
import type { TLSSocket } from "node:tls";

/** The proxy's answers to requests. */
export interface ConnectProxyOptions {
  /** `NAME:PASSWORD` that it asks for. */
  readonly user?: string;
  /** Answers each CONNECT with this status. */
  readonly status?: number;
  /** The proxy's certificate: it is spoken to over TLS. */
  readonly tls?: { readonly cert: string; readonly key: string };
}

/** A proxy that listens. */
export interface ConnectProxy extends Disposable {
  readonly url: string;
  /** Each request, such as `CONNECT 127.0.0.1:443`. */
  readonly requests: readonly string[];
  /** The name that each of its TLS connections was opened for; `undefined`: none was sent. */
  readonly serverNames: readonly (string | undefined)[];
  /** The URL with `NAME:PASSWORD`. */
  urlOf(user: string): string;
  /** How many connections are open. */
  connections(): number;
}

/** Listens until the end of the block. */
export async function startConnectProxy(
  { user, status, tls }: ConnectProxyOptions = {},
): Promise<ConnectProxy> {
  const requests: string[] = [];
  const sockets = new Set<Socket>();
  const refusal = (asked: IncomingMessage) => {
    requests.push(`${asked.method} ${asked.url}`);
    const wanted = user === undefined ? undefined : `Basic ${btoa(user)}`;
    return asked.headers["proxy-authorization"] === wanted ? status : 407;
  };
  const pass = (asked: IncomingMessage, answer: ServerResponse) => {
    const refused = refusal(asked);
    if (refused !== undefined) return void answer.writeHead(refused).end();
    const { method, headers, url } = asked;
    asked.pipe(request(url!, { method, headers }, (passed) => {
      answer.writeHead(passed.statusCode ?? 0, passed.headers);
      passed.pipe(answer);
    }));
  };
  const server = tls === undefined ? createServer(pass) : createTlsServer({ ...tls }, pass);
  const serverNames: (string | undefined)[] = [];
  server.on("secureConnection", (socket: TLSSocket & { readonly servername?: string | false }) => {
    serverNames.push(socket.servername || undefined);
  });
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("error", () => socket.destroy());
    socket.on("close", () => sockets.delete(socket));
  });
  server.on("connect", (asked: IncomingMessage, client: Socket) => {
    const refused = refusal(asked);
    if (refused !== undefined) {
      client.end(`HTTP/1.1 ${refused} No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`);
      return;
    }
    const { hostname, port } = new URL(`http://${asked.url}`);
    const upstream = connect(Number(port), hostname, () => {
      client.write("HTTP/1.1 200 OK\r\n\r\n");
      client.pipe(upstream).pipe(client);
    });
    upstream.on("error", () => client.destroy());
    client.on("close", () => upstream.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const port = (server.address() as AddressInfo).port;
  return {
    requests,
    serverNames,
    url: `${tls === undefined ? "http" : "https"}://127.0.0.1:${port}`,
    urlOf: (name) => `http://${name}@127.0.0.1:${port}`,
    connections: () => sockets.size,
    [Symbol.dispose]: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
