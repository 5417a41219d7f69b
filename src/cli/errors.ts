import { type NetworkError, networkErrorOf } from "../meta/request.ts";
import { statusErrorOf } from "../meta/status.ts";
import { ListenError } from "../node/serving/serve_fetch.ts";
import { CacheError, errorChain, errorMessage } from "../util/errors.ts";
import { visibleText } from "../util/logger.ts";

/** A command failed. The message is one line: what failed, where, and what to do. */
export class CommandError extends CacheError {
  /** The exit code of the process: 1, or 2 for a {@linkcode UsageError}. */
  readonly exitCode: 1 | 2 = 1;

  constructor(message: string, options: { readonly cause?: unknown; readonly code?: string } = {}) {
    super(options.code ?? "Command", oneLine(message), options);
  }
}

/** The command line is wrong: a flag, a value, or an unknown resource. The exit code is 2. */
export class UsageError extends CommandError {
  override readonly exitCode = 2 as const;

  constructor(message: string) {
    super(message, { code: "Usage" });
  }
}

export interface ServerName {
  readonly server: string;
  readonly context?: string;
}

/** Describes a failed request to an API server in one line: what failed, the response, what to do. */
export function explainServerError(error: unknown, what: string, name: ServerName): CommandError {
  return error instanceof CommandError
    ? error
    : new CommandError(serverProblem(error, what, name), { cause: error });
}

function serverProblem(error: unknown, what: string, name: ServerName): string {
  const where = whereIs(name);
  const refused = statusErrorOf(error);
  if (refused !== undefined) {
    const { httpStatus } = refused;
    const message = refused.status.message || refused.message;
    if (httpStatus === 401) {
      const kubectl = name.context === undefined ? "kubectl" : `kubectl --context ${quote(name.context)}`;
      return `Cannot ${what} at ${where}: 401 Unauthorized. The credentials are missing, wrong or expired: ` +
        `try \`${kubectl} get --raw /version\`, then log in again`;
    }
    if (httpStatus === 403) {
      return `Cannot ${what} at ${where}: 403 Forbidden: ${message}. ` +
        `The user needs the verbs get, list and watch; or choose others with --resource or --namespace`;
    }
    return `Cannot ${what} at ${where}: ${httpStatus} ${message}`;
  }
  const network = networkErrorOf(error);
  if (network !== undefined || error instanceof TypeError) {
    return `Cannot reach ${where}: ${networkReason(error, network)}. ` +
      `Check that the server runs and that the address is right`;
  }
  return `Cannot ${what} at ${where}: ${errorMessage(error)}`;
}

/** The server, and the context if there is one, for people. */
export function whereIs({ server, context }: ServerName): string {
  return context === undefined ? server : `${server} (context ${quote(context)})`;
}

// Failures that `NetworkFailure` does not distinguish.
const UNREACHABLE: readonly (readonly [RegExp, string])[] = [
  [/ENOTFOUND|EAI_AGAIN|dns error|getaddrinfo/i, "no such host"],
  [/CERT_HAS_EXPIRED|certificate.{0,64}expired/i, "its certificate has expired"],
  [/ALTNAME_INVALID|NotValidForName/i, "its certificate is for another host"],
];

/** The reason of a failed connection: in our words, or in those of the innermost error, which has it. */
function networkReason(error: unknown, network: NetworkError | undefined): string {
  const known = network && BRIEF[network.reason];
  if (known !== undefined) return known;
  const inner = errorChain(error).at(-1) ?? error;
  const text = errorMessage(inner) || errorMessage(error);
  const all = `${String((inner as { readonly code?: unknown }).code ?? "")} ${text.slice(0, 1024)}`;
  return UNREACHABLE.find(([pattern]) => pattern.test(all))?.[1] ?? text;
}

const LISTEN_HINTS: Readonly<Record<string, string>> = {
  AddressInUse: "choose another with --port, or --port 0 for any free port",
  PermissionDenied: "choose a port from 1024 with --port",
  AddressNotAvailable: "try --host 127.0.0.1",
};

export function explainListenError(error: unknown): CommandError {
  const hint = error instanceof ListenError ? LISTEN_HINTS[error.code] : undefined;
  const message = errorMessage(error);
  return new CommandError(hint === undefined ? message : `${message}; ${hint}`, { cause: error });
}

const BRIEF: Readonly<Record<string, string>> = {
  ConnectionRefused: "connection refused",
  ConnectionReset: "connection reset",
  UnexpectedEOF: "the connection ended in the middle of a response",
  UntrustedCertificate: "its certificate is not signed by the kubeconfig's certificate authority",
  // The text has the code only: readers of the page see it, and the log has the details.
  Credentials: "the credentials cannot be used (Credentials)",
  Kubeconfig: "the credentials cannot be read (Kubeconfig)",
  Unauthorized: "the server refuses the credentials (Unauthorized)",
};
const BRIEF_LENGTH = 200;

/** A short text for a reflector's last error: runtimes add URLs and causes to a refused connection. */
export function briefReason(error: { readonly message: string; readonly code: string }): string {
  const known = BRIEF[error.code];
  if (known !== undefined) return known;
  const line = oneLine(error.message);
  return line.length > BRIEF_LENGTH ? `${line.slice(0, BRIEF_LENGTH - 1)}…` : line;
}

export function explainError(error: unknown): { readonly line: string; readonly exitCode: 1 | 2 } {
  const exitCode = error instanceof CommandError ? error.exitCode : 1;
  return { line: oneLine(errorMessage(error)) || "unknown error", exitCode };
}

export function quote(text: string): string {
  return visibleText(JSON.stringify(text), LONGEST_LINE);
}

// Texts may come from servers and files.
const LONGEST_LINE = 1024;

/**
 * The first 1,024 characters of a text without line ends and control characters: text of a server or a file
 * must not control the terminal.
 */
export function oneLine(text: string): string {
  const lines = text.slice(0, LONGEST_LINE).split(/[\r\n]/).map((line) => line.trim());
  // deno-lint-ignore no-control-regex
  const line = lines.filter((line) => line !== "").join(" ").replace(/[\x00-\x1f\x7f-\x9f]/g, "�");
  return visibleText(text.length > LONGEST_LINE ? `${line}…` : line, LONGEST_LINE);
}

/**
 * The known names that are similar to `name`: few letters differ, or one contains the other. Best first, at
 * most `limit` (3 by default). Costs |name| x |known name| per known name.
 */
export function nearNames(name: string, known: Iterable<string>, limit: number = 3): string[] {
  const wanted = name.toLowerCase();
  const found: { readonly name: string; readonly distance: number }[] = [];
  for (const candidate of new Set(known)) {
    const lower = candidate.toLowerCase();
    const allowed = Math.max(1, Math.floor(Math.min(wanted.length, lower.length) / 3));
    let distance = editDistance(wanted, lower);
    if (distance > allowed) {
      const related = wanted.length >= 3 &&
        (lower.includes(wanted) || (lower.length >= 4 && wanted.includes(lower)));
      if (!related) continue;
      distance = allowed + 1;
    }
    found.push({ name: candidate, distance });
  }
  found.sort((a, b) =>
    a.distance - b.distance || a.name.length - b.name.length || (a.name < b.name ? -1 : 1)
  );
  return found.slice(0, limit).map((candidate) => candidate.name);
}

/** The number of insertions, deletions, replacements and swaps of neighbours (Damerau-Levenshtein). */
function editDistance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last: number[] = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const cost = a[i - 1] === b[j - 1] ? 0 : 1;
      row[j] = Math.min(row[j - 1] + 1, last[j] + 1, last[j - 1] + cost);
      if (a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        row[j] = Math.min(row[j], beforeLast[j - 2] + 1);
      }
    }
    beforeLast = last;
    last = row;
  }
  return last[b.length];
}
