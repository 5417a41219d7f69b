import { callGuarded, errorMessage } from "./errors.ts";

/** Structured fields of a log line. */
export type LogFields = Readonly<Record<string, unknown>>;

/**
 * Receives log lines. Any logger with these four methods fits.
 *
 * @category Tools
 */
export interface Logger {
  /** Details for debugging. */
  debug(message: string, fields?: LogFields): void;
  /** An ordinary event. */
  info(message: string, fields?: LogFields): void;
  /** A failure that the library recovers from. */
  warn(message: string, fields?: LogFields): void;
  /** A failure that needs attention. */
  error(message: string, fields?: LogFields): void;
}

// A console escapes the fields, and writes a message as it is: names in it must not control a terminal.
function write(method: "warn" | "error", message: string, fields: LogFields | undefined): void {
  const shown = visibleText(message, LONGEST_MESSAGE);
  if (fields === undefined) console[method](shown);
  else console[method](shown, fields);
}

const LONGEST_MESSAGE = 8 * 1024;

/**
 * Writes warnings and errors to the console and drops the rest: the default, so that no failure is silent. In
 * messages it escapes control characters and direction marks, and writes at most 8,192 characters.
 *
 * @category Tools
 */
export const consoleLogger: Logger = {
  debug: () => {},
  info: () => {},
  warn: (message, fields) => write("warn", message, fields),
  error: (message, fields) => write("error", message, fields),
};

/**
 * Drops every line; for tests, and for programs that read `status()` and metrics instead.
 *
 * @category Tools
 */
export const silentLogger: Logger = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

/**
 * A logger that cannot end what logs: what a user's logger throws or rejects with goes to the console, once.
 * The console by default.
 */
export function guardedLogger(logger: Logger = consoleLogger): Logger {
  return logger === consoleLogger || logger instanceof GuardedLogger ? logger : new GuardedLogger(logger);
}

class GuardedLogger implements Logger {
  readonly #logger: Logger;
  readonly #failed = once((error) => write("error", `Cannot log: the logger threw: ${error}`, undefined));

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  readonly debug = (message: string, fields?: LogFields): void => this.#log("debug", message, fields);
  readonly info = (message: string, fields?: LogFields): void => this.#log("info", message, fields);
  readonly warn = (message: string, fields?: LogFields): void => this.#log("warn", message, fields);
  readonly error = (message: string, fields?: LogFields): void => this.#log("error", message, fields);

  #log(level: keyof Logger, message: string, fields: LogFields | undefined): void {
    callGuarded(() => this.#logger[level](message, fields), this.#failed);
  }
}

/** Receives what a function of the user throws, and logs it. */
export function logsThrown(
  { logger, name }: { readonly logger: Logger; readonly name: string },
  what: string,
  fields?: LogFields,
): (error: unknown) => void {
  return (error) => logger.error(`${name}: ${what} threw: ${errorMessage(error)}`, { ...fields, error });
}

/** Passes the text of the first failure on, of many of one cause. */
export function once(say: (error: string) => void): (error: unknown) => void {
  let isSaid = false;
  return (error) => {
    if (isSaid) return;
    isSaid = true;
    say(`${errorMessage(error)}; later failures are not logged`);
  };
}

/** Texts that were said: each is said once, and no more than a hundred, as others may make them up. */
export class News {
  readonly #said = new Set<string>();

  /** Whether a text was not said yet, and may be; from now on it was. */
  isNew(text: string): boolean {
    if (this.#said.has(text) || this.#said.size >= MOST_TEXTS) return false;
    this.#said.add(text);
    return true;
  }

  /** All of them are news again. */
  forget(): void {
    this.#said.clear();
  }
}

/** The most texts that are remembered: more than one server has. */
const MOST_TEXTS = 100;

const WINDOW_MS = 60_000;

/** Bounds the lines that clients can cause: so many in a minute; the others are counted. */
export class LineLimit {
  readonly #most: number;
  readonly #now: () => number;
  #windowMs = -Infinity;
  #count = 0;

  /** @param now The time in milliseconds, which only increases. */
  constructor(most: number, now: () => number) {
    this.#most = most;
    this.#now = now;
  }

  /** How many lines before this one were left out; `undefined` if this one is left out, too. */
  next(): number | undefined {
    let left = 0;
    if (this.#now() - this.#windowMs >= WINDOW_MS) {
      left = Math.max(0, this.#count - this.#most);
      this.#windowMs = this.#now();
      this.#count = 0;
    }
    return ++this.#count <= this.#most ? left : undefined;
  }
}

/**
 * A logger for failures of single requests: a few lines a minute; one of
 * the next minute says how many more there were.
 */
export function limitedLogger(
  logger: Pick<Logger, "warn" | "error">,
  now: () => number,
): Pick<Logger, "warn" | "error"> {
  const limit = new LineLimit(MOST_FAILURES, now);
  const limited = (method: "warn" | "error") => (message: string, fields?: LogFields) => {
    const left = limit.next();
    if (left === undefined) return;
    logger[method](
      left === 0 ? message : `${message} (and ${left} failures of requests before, which were not logged)`,
      fields,
    );
  };
  return { warn: limited("warn"), error: limited("error") };
}

const MOST_FAILURES = 10;

// Characters that are invisible, move the cursor or change the direction:
// https://www.unicode.org/reports/tr36/#Bidirectional_Text_Spoofing
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}\u034f\u115f\u1160\u3164\uffa0]/gu;

/**
 * Text with escapes for invisible characters and those that change how the rest is shown: control characters,
 * direction marks, zero-width characters, unpaired surrogates. Longer text than `maxLength` is cut and ends
 * with "…".
 */
export function visibleText(text: string, maxLength: number): string {
  // One more than there is room for; an escape is longer than its character.
  const shown = text.slice(0, maxLength + 1).replace(INVISIBLE, escapeOf);
  if (shown.length <= maxLength) return shown;
  // Not within a surrogate pair.
  return `${shown.slice(0, maxLength - 1).replace(/[\ud800-\udbff]$/, "")}…`;
}

function escapeOf(char: string): string {
  const code = char.codePointAt(0) ?? 0;
  const hex = code.toString(16);
  return code < 0x100
    ? `\\x${hex.padStart(2, "0")}`
    : code < 0x10000
    ? `\\u${hex.padStart(4, "0")}`
    : `\\u{${hex}}`;
}
