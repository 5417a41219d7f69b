/** Requests: what a client asks a cache for in a header, and why one failed. */

import type { Clock } from "../util/clock.ts";
import { CacheError, errorMessage, findCause } from "../util/errors.ts";
import { statusErrorOf } from "./status.ts";

/** Asks for nothing stale, even while the server is away: https://www.rfc-editor.org/rfc/rfc5861#section-4 */
export const NOTHING_STALE: Readonly<Record<string, string>> = { "Cache-Control": "stale-if-error=0" };

/**
 * Asks for a watch with each event of the server: where some are missing, as after a list, it ends with 410:
 * https://www.rfc-editor.org/rfc/rfc7240#section-4.4
 */
export const EACH_EVENT: Readonly<Record<string, string>> = { Prefer: "handling=strict" };

/** Whether a `Cache-Control` has what {@linkcode NOTHING_STALE} says. */
export function refusesStale(cacheControl = ""): boolean {
  return hasPart(cacheControl, "stale-if-error=0");
}

/** Whether a `Prefer` has what {@linkcode EACH_EVENT} says. */
export function requiresEachEvent(prefer = ""): boolean {
  return hasPart(prefer, "handling=strict");
}

function hasPart(header: string, wanted: string): boolean {
  return header.split(/[,;]/).some((part) => part.replace(/[\s"]/g, "").toLowerCase() === wanted);
}

/**
 * A `Retry-After` header in milliseconds: seconds, or a date; `undefined` if it is neither. The date is by
 * the clock of its sender: if the answer names the time (`Date`), one's own clock does not matter.
 */
export function retryAfterMs(headers: Headers, clock: Clock): number | undefined {
  const header = headers.get("Retry-After") ?? "";
  if (/^\s*\d+\s*$/.test(header)) return Number(header) * 1000;
  const timeMs = Date.parse(header);
  if (Number.isNaN(timeMs)) return undefined;
  const sentMs = Date.parse(headers.get("Date") ?? "");
  return Math.max(0, timeMs - (Number.isNaN(sentMs) ? clock.now() : sentMs));
}

/**
 * The network failed before the answer was complete: refused, reset, cut short, no such host.
 *
 * `reason` is as precise as the runtime allows: some report only that the request failed.
 *
 * @category Objects and errors
 */
export class NetworkError extends CacheError {
  /** The kind of failure, as far as the runtime reports it. */
  readonly reason: NetworkFailure;

  constructor(reason: NetworkFailure, message: string, options: { readonly cause?: unknown } = {}) {
    super("Network", message, options);
    this.reason = reason;
  }
}

/**
 * How a connection failed. `DeadPeer`: it is open, but an expected answer does not arrive.
 * `UntrustedCertificate`: the authority that signed the server's certificate is not known.
 * `Unreachable`: every other failure before an answer.
 */
export type NetworkFailure =
  | "ConnectionRefused"
  | "ConnectionReset"
  | "UnexpectedEOF"
  | "DeadPeer"
  | "UntrustedCertificate"
  | "Unreachable";

/** A server's answer cannot be decoded: it is not JSON, or JSON of another shape. */
export class DecodeError extends CacheError {
  constructor(message: string, options: { readonly cause?: unknown } = {}) {
    super("Decode", message, options);
  }
}

/** The {@linkcode NetworkError} in an error or one of its causes. */
export function networkErrorOf(error: unknown): NetworkError | undefined {
  return findCause(error, NetworkError);
}

/**
 * Nothing listens at the server's address.
 *
 * @example
 * ```ts
 * import { isConnectionRefused, NetworkError } from "@listwatch/cache";
 * console.log(isConnectionRefused(new NetworkError("ConnectionRefused", "Cannot reach the server"))); // true
 * ```
 *
 * @category Objects and errors
 */
export function isConnectionRefused(error: unknown): boolean {
  return networkErrorOf(error)?.reason === "ConnectionRefused";
}

const NETWORK: Readonly<Record<NetworkFailure, string>> = {
  ConnectionRefused: "the server refused the connection",
  ConnectionReset: "the connection was reset",
  UnexpectedEOF: "the connection ended within an answer",
  DeadPeer: "the connection is dead",
  UntrustedCertificate: "the server's certificate is not trusted",
  Unreachable: "the server cannot be reached",
};

/**
 * Describes why a request failed: in words that are the same on every runtime, then in those of the error.
 */
export function failureInWords(error: unknown): string {
  const status = statusErrorOf(error);
  const network = networkErrorOf(error);
  const message = errorMessage(error);
  if (status !== undefined) {
    const answer = [status.httpStatus || "", status.reason].filter(Boolean).join(" ");
    return answer === "" ? message : `the server answered ${answer} (${message})`;
  }
  return network === undefined ? message : `${NETWORK[network.reason]} (${message})`;
}
