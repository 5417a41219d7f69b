/**
 * Logging as an argument.
 * @module
 */

import { visibleText } from "./visible_text.ts";

/**
 * Structured fields that go with a log line.
 *
 * @example
 * ```ts
 * import { consoleLogger } from "@listwatch/cache";
 * import type { LogFields } from "@listwatch/cache/reflector";
 * const fields: LogFields = { reflector: "pods", attempt: 3 };
 * consoleLogger.warn("the list failed", fields);
 * ```
 */
export type LogFields = Readonly<Record<string, unknown>>;

/**
 * Where log lines go. Any logger with these four methods will do.
 *
 * @example
 * ```ts
 * import type { Logger } from "@listwatch/cache";
 * const logger: Logger = {
 *   debug: () => {},
 *   info: (message, fields) => console.log(JSON.stringify({ message, ...fields })),
 *   warn: (message, fields) => console.warn(JSON.stringify({ message, ...fields })),
 *   error: (message, fields) => console.error(JSON.stringify({ message, ...fields })),
 * };
 * ```
 */
export interface Logger {
  /** What only someone who looks for a fault wants to read. */
  debug(message: string, fields?: LogFields): void;
  /** What happened. */
  info(message: string, fields?: LogFields): void;
  /** What went wrong and is being mended. */
  warn(message: string, fields?: LogFields): void;
  /** What went wrong and needs someone. */
  error(message: string, fields?: LogFields): void;
}

// A console quotes what is in fields, and writes a message as it is: names in it must not draw on a terminal.
function write(method: "warn" | "error", message: string, fields: LogFields | undefined): void {
  const shown = visibleText(message, LONGEST_MESSAGE);
  if (fields === undefined) console[method](shown);
  else console[method](shown, fields);
}

const LONGEST_MESSAGE = 8 * 1024;

/**
 * Warnings and errors to the console, the rest nowhere: the default, so that nothing fails in silence. Messages are
 * written with control characters and marks of direction escaped, the first 8,192 characters of them.
 *
 * @example
 * ```ts
 * import { consoleLogger } from "@listwatch/cache";
 * consoleLogger.warn("watch closed early", { resource: "pods" });
 * ```
 */
export const consoleLogger: Logger = {
  debug: () => {},
  info: () => {},
  warn: (message, fields) => write("warn", message, fields),
  error: (message, fields) => write("error", message, fields),
};

/**
 * Drops every line; for tests, and for programs that watch `status()` and metrics instead.
 *
 * @example
 * ```ts
 * import { silentLogger } from "@listwatch/cache";
 * silentLogger.error("nobody hears this");
 * ```
 */
export const silentLogger: Logger = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
