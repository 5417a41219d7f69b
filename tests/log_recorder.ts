/**
 * Looking at what was logged.
 * @module
 */

import type { Logger } from "@listwatch/cache";
import type { LogFields } from "@listwatch/cache/reflector";

/** A logger that keeps its lines, as `level: message`. */
export class LogRecorder implements Logger {
  readonly lines: string[] = [];

  debug(message: string): void {
    this.lines.push(`debug: ${message}`);
  }

  info(message: string): void {
    this.lines.push(`info: ${message}`);
  }

  warn(message: string): void {
    this.lines.push(`warn: ${message}`);
  }

  error(message: string, _fields?: LogFields): void {
    this.lines.push(`error: ${message}`);
  }

  /** The lines of a level. */
  of(level: "debug" | "info" | "warn" | "error"): string[] {
    return this.lines.filter((line) => line.startsWith(`${level}: `));
  }
}
