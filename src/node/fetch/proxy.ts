/** The proxy through which a server is reached: by `proxy-url`, or by the proxy variables. */

import process from "node:process";
import type { FetchFunction } from "../../client/rest_config.ts";
import { errorChain, errorMessage } from "../../util/errors.ts";
import { KubeconfigError } from "../kubeconfig/kubeconfig.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

export interface Proxy {
  /** The proxy's origin, without user and password, so that it can be shown. */
  readonly origin: string;
  readonly user?: { readonly name: string; readonly password: string };
}

/** The fault of a proxy's URL, for an error text that does not show the URL; `undefined` if there is none. */
export function proxyFault(url: string): string | undefined {
  const protocol = URL.parse(url)?.protocol;
  if (protocol === undefined) return 'it is no URL, such as "http://proxy.example:3128"';
  if (protocol === "http:" || protocol === "https:") return undefined;
  return `${protocol.slice(0, -1)} is not supported; use a proxy whose URL begins with http or https`;
}

export function parseProxy(url: string): Proxy {
  const { protocol, host, username, password } = new URL(url);
  const user = { name: decode(username), password: decode(password) };
  return { origin: `${protocol}//${host}`, ...((username || password) && { user }) };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

// The texts of Deno, and of Bun and `node_fetch.ts`.
const REFUSED_USER = /proxy authentication required|refused to open a tunnel: 407/i;

/** Wraps a fetch through a proxy: its errors name the proxy, never its user and password. */
export function explainingProxy(fetch: FetchFunction, { origin, user }: Proxy): FetchFunction {
  const refused = () =>
    new Error(
      user === undefined
        ? `the proxy ${origin} asks for a user and password (407); put them into its URL, before the host`
        : `the proxy ${origin} refused the user and password of its URL (407)`,
    );
  return async (url, init) => {
    let response: Response;
    try {
      response = await fetch(url, init);
    } catch (error) {
      if (init?.signal?.aborted) throw error;
      const inner = errorChain(error).at(-1) ?? error;
      const { code } = Object(inner) as { readonly code?: unknown };
      const text = errorMessage(inner) || String(code);
      if (REFUSED_USER.test(text)) throw refused();
      throw Object.assign(
        new Error(`${text}, by way of the proxy ${origin}`),
        code !== undefined && { code },
      );
    }
    // A tunnel carries the server's answers, anything else the proxy's.
    if (response.status !== 407 || url.startsWith("https:")) return response;
    await response.body?.cancel();
    throw refused();
  };
}

/**
 * The proxy for requests to a server, as the variables say: `false` if there is none, `undefined` if this
 * program may not read variables.
 *
 * `HTTPS_PROXY` or `HTTP_PROXY`, by the scheme of the server, unless `NO_PROXY` excepts it, or it is this
 * machine; the upper-case name comes before the lower-case one. Mirrors `ProxyFromEnvironment` of Go:
 * https://pkg.go.dev/golang.org/x/net/http/httpproxy#Config
 */
export function proxyFromEnvironment(server: string, env: Environment): string | false | undefined {
  const { protocol, hostname, port } = new URL(server);
  const isSecure = protocol === "https:";
  let found: readonly [name: string, value: string] | undefined;
  try {
    found = variable(env, isSecure ? "HTTPS_PROXY" : "HTTP_PROXY");
  } catch {
    return undefined; // Deno without the permission
  }
  if (found === undefined) return false;
  const [name, value] = found;
  const fail = (why: string) => new KubeconfigError(`Cannot use the proxy of ${name}: ${why}`);
  if (!isSecure && env.REQUEST_METHOD) {
    // A client of a CGI program sets HTTP_PROXY with a header: https://httpoxy.org
    throw fail("REQUEST_METHOD is set, so this is a CGI program");
  }
  const host = hostname.startsWith("[") ? hostname.slice(1, -1) : hostname;
  const [, exceptions = ""] = variable(env, "NO_PROXY") ?? [];
  if (isLocal(host) || isExcepted(host, port || (isSecure ? "443" : "80"), exceptions)) return false;
  const url = value.includes("://") ? value : `http://${value}`;
  const fault = proxyFault(url);
  if (fault !== undefined) throw fail(fault);
  return url;
}

/**
 * Whether the variables of this process may lead a runtime's own `fetch` elsewhere: Deno and Bun read them
 * even where a proxy is given. A runtime may use them without this program's permission to read them.
 */
export function environmentIsInTheWay(proxy: string | false): boolean {
  const names = proxy === false ? ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"] : ["NO_PROXY"];
  try {
    return names.some((name) => variable(process.env, name) !== undefined);
  } catch {
    return true;
  }
}

function variable(env: Environment, name: string): readonly [name: string, value: string] | undefined {
  for (const either of [name, name.toLowerCase()]) {
    const value = env[either];
    if (value) return [either, value];
  }
  return undefined;
}

function isLocal(host: string): boolean {
  const bits = bitsOf(host);
  return host === "localhost" ||
    (bits !== undefined && (isWithin(bits, "127.0.0.0", 8) || bits === bitsOf("::1")));
}

/** Whether a list such as `10.0.0.0/8,.internal,example.com:6443` has the host. */
function isExcepted(host: string, port: string, exceptions: string): boolean {
  const address = bitsOf(host);
  return exceptions.split(",").map((entry) => entry.trim()).some((entry) => {
    if (entry === "*") return true;
    const [, network, prefix] = /^([^/]+)\/(\d{1,3})$/.exec(entry) ?? [];
    if (network !== undefined && bitsOf(network) !== undefined) {
      return address !== undefined && isWithin(address, network, Number(prefix));
    }
    const [name, itsPort] = splitPort(entry);
    if (name === "" || (itsPort !== "" && itsPort !== port)) return false;
    const itsAddress = bitsOf(name);
    if (itsAddress !== undefined || address !== undefined) return itsAddress === address;
    // `example.com` is that host and those below it; `.example.com`
    // and `*.example.com` are those below it alone.
    const given = name.startsWith("*.") ? name.slice(1) : name;
    const suffix = URL.parse(`http://${given}`)?.hostname ?? given; // in ASCII
    return suffix.startsWith(".") ? host.endsWith(suffix) : host === suffix || host.endsWith(`.${suffix}`);
  });
}

function splitPort(entry: string): readonly [name: string, port: string] {
  const [, bracketed, plain, port] = /^(?:\[([^\]]*)\]|([^:[\]]*)):(\d*)$/.exec(entry) ?? [];
  return port === undefined ? [entry, ""] : [bracketed ?? plain, port];
}

function isWithin(address: string, network: string, prefix: number): boolean {
  const bits = bitsOf(network)!;
  return address.length === bits.length && prefix <= bits.length &&
    address.slice(0, prefix) === bits.slice(0, prefix);
}

/** An IP address in binary, `undefined` if it is none. IPv4 within IPv6 is IPv4, as in Go. */
function bitsOf(text: string): string | undefined {
  const binary = (numbers: readonly number[], width: number) =>
    numbers.map((number) => number.toString(2).padStart(width, "0")).join("");
  if (/^\d{1,3}(?:\.\d{1,3}){3}$/.test(text)) {
    return binary(text.split(".").map(Number), 8);
  }
  const short = URL.parse(`http://[${text}]`)?.hostname.slice(1, -1);
  if (short === undefined) return undefined;
  const [head, tail = []] = short.split("::").map((part) => part === "" ? [] : part.split(":"));
  const zeros = Array.from({ length: 8 - head.length - tail.length }, () => "0");
  const bits = binary([...head, ...zeros, ...tail].map((group) => parseInt(group, 16)), 16);
  const mapped = "0".repeat(80) + "1".repeat(16);
  return bits.startsWith(mapped) ? bits.slice(mapped.length) : bits;
}
