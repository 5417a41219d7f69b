/** Classifies the errors of `fetch`. */

import { NetworkError, type NetworkFailure } from "../meta/request.ts";
import { errorMessage } from "../util/errors.ts";

/**
 * Wraps what a `fetch`, or the body it returned, failed with. A {@linkcode NetworkError} is given back as it
 * is.
 *
 * Every runtime says it in its own way, and some do not distinguish a reset from an end that came too early:
 * Node by the `code` of a cause, Bun by the `code` of the error itself, Deno by text alone, workerd hardly at
 * all.
 *
 * @param text The failed operation, such as `Cannot list "pods"`; the failure's own words follow it.
 */
export function newNetworkError(text: string, error: unknown): NetworkError {
  if (error instanceof NetworkError) return error;
  const failures = chain(error);
  const reason = classify(failures);
  const hint = reason === "UntrustedCertificate" ? UNTRUSTED_HINT : "";
  return new NetworkError(reason, `${text}: ${describe(failures, error)}${hint}`, { cause: error });
}

interface Failure {
  readonly code: string;
  readonly message: string;
}

// The error, its causes, and the attempts at several addresses that an AggregateError holds.
function chain(error: unknown): Failure[] {
  const failures: Failure[] = [];
  const pending: unknown[] = [error];
  while (pending.length > 0 && failures.length < 16) {
    const next = pending.shift();
    if (typeof next !== "object" || next === null) continue;
    const { code, message, cause, errors } = next as Record<string, unknown>;
    failures.push({
      code: typeof code === "string" ? code : "",
      message: typeof message === "string" ? message : "",
    });
    if (Array.isArray(errors)) pending.push(...errors.slice(0, 4));
    pending.push(cause);
  }
  return failures;
}

const REFUSED = /connection ?refused|ECONNREFUSED|actively refused/i;
const RESET = /connection ?reset|ECONNRESET|EPIPE|broken pipe/i;
const CUT_SHORT =
  /other side closed|socket hang up|closed before message completed|reading a body from connection|unexpected eof|unexpected end of file|premature close|network connection lost/i;

const UNTRUSTED = /SELF_SIGNED|self.signed certificate|UNABLE_TO_VERIFY|UNABLE_TO_GET_ISSUER|UnknownIssuer/i;
const UNTRUSTED_HINT = "; the server's certificate is not trusted: give the authority (CA) that signed it";

function classify(failures: readonly Failure[]): NetworkFailure {
  const any = (pattern: RegExp) =>
    failures.some(({ code, message }) => pattern.test(code) || pattern.test(message));
  if (any(UNTRUSTED)) return "UntrustedCertificate";
  if (any(REFUSED)) return "ConnectionRefused";
  // Before RESET: Node's http calls an early end a reset, and says "socket hang up":
  // https://nodejs.org/api/http.html#httprequesturl-options-callback
  if (any(CUT_SHORT)) return "UnexpectedEOF";
  return any(RESET) ? "ConnectionReset" : "Unreachable";
}

// The innermost error knows most: the outer ones say "fetch failed" and "terminated".
function describe(failures: readonly Failure[], error: unknown): string {
  for (let i = failures.length - 1; i >= 0; i--) {
    const { code, message } = failures[i];
    if (message !== "") return message.includes(code) ? message : `${message} (${code})`;
  }
  return errorMessage(error);
}
