/** Loggers. */

/**
 * Structured fields of a log line.
 *
 * @category Tools
 */
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

// Characters that are invisible, move the cursor or change the direction: https://www.unicode.org/reports/tr36/#Bidirectional_Text_Spoofing
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}\u034f\u115f\u1160\u3164\uffa0]/gu;

/**
 * Text with escapes for invisible characters and those that change how the rest is shown: control characters,
 * direction marks, zero-width characters, unpaired surrogates. Longer text than `maxLength` is cut and ends
 * with "…".
 */
export function visibleText(text: string, maxLength: number): string {
  // An escape is longer than its character.
  const shown = text.slice(0, maxLength + 1).replace(INVISIBLE, escapeOf);
  if (shown.length <= maxLength && text.length <= maxLength) return shown;
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
