/**
 * The log of `serve` on a terminal.
 * @module
 */

import { consoleLogger, type LogFields, type Logger } from "../util/logger.ts";
import { oneLine } from "./errors.ts";
import type { Terminal } from "./terminal.ts";

// Clients can cause warnings: more are counted, and not printed.
const MAX_WARNINGS = 20;
const WINDOW_MS = 60_000;

/**
 * Prints warnings and errors to stderr, one line each. An outage of the API server is left out: the steps of `serve` report
 * it, once for all resources. When there are many warnings within a minute, the rest are counted.
 */
export function terminalLogger(terminal: Terminal, now: () => number): Logger {
  let windowMs = -Infinity;
  let count = 0;
  const warn = (message: string, fields?: LogFields): void => {
    if (fields?.["isOutage"] === true) return;
    if (now() - windowMs >= WINDOW_MS) {
      const left = count - MAX_WARNINGS;
      if (left > 0) print(terminal, `${left} more warnings, which --verbose prints`);
      windowMs = now();
      count = 0;
    }
    if (++count <= MAX_WARNINGS) print(terminal, message);
  };
  return { debug: () => {}, info: () => {}, warn, error: (message) => terminal.warn(oneLine(message)) };
}

function print(terminal: Terminal, message: string): void {
  terminal.warn(`${terminal.styleError("yellow", "Warning")}    ${oneLine(message)}`);
}

/** Prints everything but what is for debugging, with its fields. */
export function verboseLogger(terminal: Terminal): Logger {
  const line = (message: string, fields?: LogFields): void =>
    terminal.warn(
      terminal.styleError("dim", oneLine(fields === undefined ? message : `${message} ${text(fields)}`)),
    );
  return { ...consoleLogger, debug: () => {}, info: line, warn: line, error: line };
}

function text(fields: LogFields): string {
  return Object.entries(fields).map(([name, value]) =>
    `${name}=${value instanceof Error ? value.message : String(value)}`
  ).join(" ");
}
