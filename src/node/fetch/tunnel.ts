/** Connections to servers behind a proxy, over Node's own http and https. */

import { type ClientRequest, request as httpRequest, type RequestOptions } from "node:http";
import { Agent, type AgentOptions, request as httpsRequest } from "node:https";
import type { Socket } from "node:net";
import { connect, type ConnectionOptions } from "node:tls";
import { toBase64 } from "../../util/bytes.ts";
import type { Proxy } from "./proxy.ts";

/** As long as Go waits for the answer to CONNECT: https://go.dev/src/net/http/transport.go */
const TUNNEL_TIMEOUT_MS = 60_000;

type Callback = (error: Error | null, socket?: Socket) => void;

/** Makes an agent whose connections are TLS within a tunnel through the proxy. */
export function newTunnelAgent(proxy: Proxy, tls: AgentOptions): Agent {
  const createConnection = (options: RequestOptions, callback: Callback) => {
    const { host, port } = options;
    const request = askForTunnel(`${host?.includes(":") ? `[${host}]` : host}:${port}`, proxy, tls);
    request.setTimeout(TUNNEL_TIMEOUT_MS, () => request.destroy(new Error("the proxy does not answer")));
    request.on("error", callback);
    request.once("response", ({ statusCode, statusMessage }) => {
      callback(refusal(statusCode, statusMessage));
      request.destroy();
    });
    request.once("connect", ({ statusCode, statusMessage }, socket: Socket) => {
      if (statusCode === 200) {
        socket.setTimeout(0);
        callback(null, connect({ ...options, socket } as ConnectionOptions));
      } else {
        callback(refusal(statusCode, statusMessage));
        socket.destroy();
      }
    });
    request.end();
  };
  return Object.assign(new Agent({ ...tls, keepAlive: true }), { createConnection });
}

function askForTunnel(target: string, proxy: Proxy, tls: AgentOptions): ClientRequest {
  const headers = { Host: target, ...proxyHeaders(proxy) };
  const options = { method: "CONNECT", path: target, headers, agent: false as const };
  if (!proxy.origin.startsWith("https:")) return httpRequest(proxy.origin, options);
  // Its certificate is checked against its own name.
  const { servername: _, ...others } = tls;
  return httpsRequest(proxy.origin, { ...others, ...options });
}

function refusal(status = 0, text = ""): Error {
  return new Error(`the proxy refused to open a tunnel: ${status} ${text}`.trimEnd());
}

/** The header for a proxy that asks who is there. */
export function proxyHeaders({ user }: Proxy): Record<string, string> {
  if (user === undefined) return {};
  return { "Proxy-Authorization": `Basic ${toBase64(`${user.name}:${user.password}`)}` };
}
