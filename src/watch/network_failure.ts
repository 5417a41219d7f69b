/** Classifies the errors of `fetch`. */

import { NetworkError, type NetworkFailure } from "../meta/request.ts";
import { errorChain, errorMessage } from "../util/errors.ts";

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
  const failures = errorChain(error);
  const reason = classify(failures);
  const why = describe(failures, error);
  const hint = reason === "UntrustedCertificate"
    ? "; the server's certificate is not trusted: give the authority (CA) that signed it"
    : NO_TLS.test(why)
    ? "; the server has no TLS"
    : "";
  return new NetworkError(reason, `${text}: ${why}${hint}`, { cause: error });
}

const REFUSED = /connection ?refused|ECONNREFUSED|actively refused/i;
const RESET = /connection ?reset|ECONNRESET|EPIPE|broken pipe/i;
const CUT_SHORT =
  /other side closed|socket hang up|closed before message completed|reading a body from connection|unexpected eof|unexpected end of file|premature close|network connection lost/i;

const UNTRUSTED = /self.signed|UNABLE_TO_VERIFY|UNABLE_TO_GET_ISSUER|UnknownIssuer/i;
const NO_TLS = /WRONG_VERSION|InvalidContentType/;

function classify(failures: readonly Error[]): NetworkFailure {
  const words = failures.map((each) => `${codeOf(each)} ${each.message}`).join("\n");
  if (UNTRUSTED.test(words)) return "UntrustedCertificate";
  if (REFUSED.test(words)) return "ConnectionRefused";
  // Before RESET: Node's http calls an early end a reset, and says "socket hang up":
  // https://nodejs.org/api/http.html#httprequesturl-options-callback
  if (CUT_SHORT.test(words)) return "UnexpectedEOF";
  return RESET.test(words) ? "ConnectionReset" : "Unreachable";
}

// The innermost error knows most: the outer ones say "fetch failed" and "terminated".
function describe(failures: readonly Error[], error: unknown): string {
  const inner = failures.findLast(({ message }) => message !== "");
  if (inner === undefined) return errorMessage(error);
  const message = inner.message.trim(); // OpenSSL ends its texts with a line break
  const code = codeOf(inner);
  return message.includes(code) ? message : `${message} (${code})`;
}

/** The code of an error of the system; empty if it has none. */
function codeOf(error: Error): string {
  const { code } = error as { readonly code?: unknown };
  return typeof code === "string" ? code : "";
}
