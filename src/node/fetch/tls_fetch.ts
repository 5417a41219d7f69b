import { defined } from "../../util/json.ts";
import type { FetchFunction } from "../../client/rest_config.ts";
import { environmentIsInTheWay, explainingProxy, parseProxy, proxyFault } from "./proxy.ts";
import type { TlsOptions } from "../kubeconfig/rest_config.ts";
import type { Clock } from "../../util/clock.ts";
import type { Logger } from "../../util/logger.ts";
import { Reread } from "../reread.ts";
import { readServerTls, type ServerTlsFiles } from "../serving/server_tls.ts";

/** Options of {@linkcode createTlsFetch}. */
export interface TlsFetchOptions extends TlsOptions {
  /**
   * The URL of the proxy to connect through: `http://` or `https://`, with `USER:PASSWORD@`
   * if it asks for them. `false` connects without one. By default the runtime decides: Deno
   * and Bun read the proxy variables, Node does not.
   */
  readonly proxy?: string | false;
}

interface DenoLike {
  createHttpClient(options: Record<string, unknown>): { close(): void };
}

/**
 * Makes a `fetch` that uses these TLS settings, on Node, Deno and Bun. It has no timeout, so that a watch may
 * be silent for any time, and reuses connections.
 *
 * It calls the native `fetch` of Deno and Bun where that supports the settings, and Node's `https` otherwise.
 *
 * @throws {TypeError} A certificate is given without its key, or a key without its certificate, or
 * `insecureSkipVerify` together with `ca`, or a proxy that is not supported.
 *
 * @example
 * ```ts
 * import { readFileSync } from "node:fs";
 * import { newCluster } from "@listwatch/cache";
 * import { createTlsFetch } from "@listwatch/cache/node";
 * function connect(caFile: string) {
 *   const fetch = createTlsFetch({ ca: readFileSync(caFile, "utf8") });
 *   return newCluster({ server: "https://10.0.0.1:6443", fetch });
 * }
 * ```
 */
export function createTlsFetch(options: TlsFetchOptions = {}): FetchFunction {
  const { ca, cert, key, insecureSkipVerify = false, proxy } = options;
  if ((cert === undefined) !== (key === undefined)) {
    throw new TypeError(
      "Cannot make a fetch: a client certificate needs its key, and a key its certificate (cert and key)",
    );
  }
  if (typeof insecureSkipVerify !== "boolean") {
    throw new TypeError("Cannot make a fetch: insecureSkipVerify must be true or false");
  }
  if (ca !== undefined && insecureSkipVerify) {
    throw new TypeError(
      "Cannot make a fetch: the certificate authorities (ca) are ignored with insecureSkipVerify; remove one of them",
    );
  }
  if (!proxy) return directFetch(options);
  const fault = proxyFault(proxy);
  if (fault !== undefined) throw new TypeError(`Cannot make a fetch: the proxy cannot be used: ${fault}`);
  return explainingProxy(directFetch(options), parseProxy(proxy));
}

/** Makes it of what the runtime has. */
function directFetch(options: TlsFetchOptions): FetchFunction {
  const { ca, cert, key, serverName, insecureSkipVerify, proxy } = options;
  const { Deno: deno, Bun: bun } = globalThis as { Deno?: DenoLike; Bun?: unknown };
  const isNative = proxy === undefined || !environmentIsInTheWay(proxy);
  const { origin, user } = proxy ? parseProxy(proxy) : {};
  // Deno shows the proxy's user and password to the server, too.
  const isForDeno = serverName === undefined && !insecureSkipVerify && user === undefined;
  if (deno !== undefined && isForDeno && isNative) {
    // With HTTP/2, all watches would share one connection and end with it.
    const client = deno.createHttpClient({
      http2: false,
      ...(ca !== undefined && { caCerts: [ca] }),
      ...(cert !== undefined && key !== undefined && { cert, key }),
      ...(origin !== undefined && { proxy: { url: origin } }),
    });
    return (url, init) => fetch(url, { ...init, client } as RequestInit);
  }
  if (bun !== undefined && isNative) {
    const rejectUnauthorized = insecureSkipVerify ? false : undefined;
    const tls = defined({ ca, cert, key, serverName, rejectUnauthorized });
    const settings = { tls, timeout: false, ...(proxy && { proxy }) };
    return (url, init) => fetch(url, { ...init, ...settings } as RequestInit);
  }
  return lateNodeFetch((module) => module.newNodeFetch(options));
}

/**
 * Makes a `fetch` over Node's `http` and `https` whose connections come from an agent: one that knows a
 * proxy, for instance.
 */
export function createAgentFetch(agent: object): FetchFunction {
  return lateNodeFetch((module) => module.newAgentFetch(agent));
}

/** Loaded with the first request: node:https costs 20 ms, and Deno and Bun rarely use it. */
function lateNodeFetch(make: (module: typeof import("./node_fetch.ts")) => FetchFunction): FetchFunction {
  let loading: Promise<FetchFunction> | undefined;
  return async (url, init) => {
    loading ??= import("./node_fetch.ts").then(make);
    return await (await loading)(url, init);
  };
}

/**
 * Makes a `fetch` that presents the client certificate of two files. They are read again about once a minute,
 * and after a 401 response, upon which the request is sent once more if they hold another certificate. A new
 * certificate opens new connections; open connections stay. Files that do not match, as in the middle of a
 * rotation, change nothing.
 *
 * @param tls With the certificate that was read first.
 *
 * Mirrors client-go's rotation of certificates, which closes what is open:
 * https://github.com/kubernetes/client-go/blob/master/transport/cert_rotation.go
 */
export function createFileCertificateFetch(
  files: ServerTlsFiles,
  tls: TlsFetchOptions,
  clock: Clock,
  logger: Logger,
): FetchFunction {
  let { cert, key } = tls;
  let fetch = createTlsFetch(tls);
  const latest = new Reread(async () => {
    const next = await readServerTls(files);
    if (next.cert !== cert || next.key !== key) fetch = createTlsFetch({ ...tls, ...next });
    ({ cert, key } = next);
    return fetch;
  }, { what: "client certificate", value: fetch, isFresh: true, clock, logger });
  return async (url, init) => {
    const used = await latest.read();
    const response = await used(url, init);
    // A token was refused rather than the certificate.
    if (response.status !== 401 || new Headers(init?.headers).has("Authorization")) return response;
    latest.forget(used);
    const renewed = await latest.read();
    if (renewed === used) return response;
    response.body?.cancel().catch(() => {});
    return await renewed(url, init);
  };
}
