/**
 * What the command line writes: lines, and one line that updates itself.
 * @module
 */

import { styleText } from "node:util";
import { oneLine } from "./errors.ts";

/** A stream to write to, as `process.stdout` is one. */
export interface OutputStream {
  /** Writes text as it is. */
  write(text: string): unknown;
  /** Whether a person watches. */
  readonly isTTY?: boolean;
  /** How many characters fit in a line. */
  readonly columns?: number;
}

/** A style of text. */
export type Style = "bold" | "dim" | "red" | "green" | "yellow" | "cyan";

/** Options of {@linkcode Terminal}. */
export interface TerminalOptions {
  /** Where what was asked for goes. */
  readonly stdout: OutputStream;
  /** Where errors and progress go. */
  readonly stderr: OutputStream;
  /** The environment: `NO_COLOR` (any text but none) and `TERM=dumb` turn colours off. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Milliseconds since the epoch; paces the progress lines. */
  readonly now: () => number;
}

// On a terminal the line is redrawn at most this often; elsewhere a new line is written at most that often.
const REDRAW_INTERVAL_MS = 100;
const LINE_INTERVAL_MS = 3_000;

/**
 * Writes lines and progress. Colours and the updating line appear on a terminal only.
 */
export class Terminal {
  readonly #out: OutputStream;
  readonly #err: OutputStream;
  readonly #env: Readonly<Record<string, string | undefined>>;
  readonly #now: () => number;
  #progressShown = false;
  #progressTimeMs: number;

  /** Makes a terminal of two streams. */
  constructor(options: TerminalOptions) {
    this.#out = options.stdout;
    this.#err = options.stderr;
    this.#env = options.env ?? {};
    this.#now = options.now;
    // A line that will not be redrawn is worth it only for what takes a while.
    this.#progressTimeMs = this.#err.isTTY ? -Infinity : this.#now();
  }

  /** Writes a line to stdout. */
  print(line: string = ""): void {
    this.clearProgress();
    this.#out.write(`${line}\n`);
  }

  /** Writes a line to stderr. */
  warn(line: string): void {
    this.clearProgress();
    this.#err.write(`${line}\n`);
  }

  /** Writes the one line of an error to stderr. */
  error(message: string): void {
    this.warn(`${this.styleError("red", "listwatch:")} ${oneLine(message)}`);
  }

  /**
   * Shows how far something has come: on a terminal in one line that updates itself, elsewhere as a line every few
   * seconds, the first one after as long. What comes too soon after the last one is not shown.
   */
  progress(text: string): void {
    const elapsedMs = this.#now() - this.#progressTimeMs;
    if (elapsedMs < (this.#err.isTTY ? REDRAW_INTERVAL_MS : LINE_INTERVAL_MS)) return;
    this.#progressTimeMs = this.#now();
    if (!this.#err.isTTY) {
      this.#err.write(`${text}\n`);
      return;
    }
    const width = Math.max(20, (this.#err.columns || 80) - 1);
    const fitting = text.length > width ? `${text.slice(0, width - 1)}…` : text;
    this.#err.write(`\r\x1b[2K${this.styleError("dim", fitting)}`);
    this.#progressShown = true;
  }

  /** Takes the updating line away, if there is one. */
  clearProgress(): void {
    if (!this.#progressShown) return;
    this.#progressShown = false;
    this.#err.write("\r\x1b[2K");
  }

  /** Styles text that goes to stdout; unchanged where colours are off. */
  style(style: Style, text: string): string {
    return this.#styled(this.#out, style, text);
  }

  /** Styles text that goes to stderr; unchanged where colours are off. */
  styleError(style: Style, text: string): string {
    return this.#styled(this.#err, style, text);
  }

  #styled(stream: OutputStream, style: Style, text: string): string {
    if (!stream.isTTY || this.#env["NO_COLOR"] || this.#env["TERM"] === "dumb") return text;
    // The stream was looked at above; styleText would look at the process's own.
    return styleText(style, text, { validateStream: false });
  }
}
