import { styleText } from "node:util";
import { type Clock, monotonicNow, type TimerHandle } from "../util/clock.ts";
import { LineLimit, type LogFields, type Logger } from "../util/logger.ts";
import { oneLine } from "./errors.ts";

export interface OutputStream {
  write(text: string): unknown;
  readonly isTTY?: boolean;
  readonly columns?: number;
}

export type Style = "bold" | "dim" | "red" | "green" | "yellow" | "cyan";

interface TerminalOptions {
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  /** The environment: a non-empty `NO_COLOR` and `TERM=dumb` disable colours. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Limits the rate of progress lines. */
  readonly clock: Clock;
}

// The shortest time between two progress lines: redrawn on a terminal, appended elsewhere.
const REDRAW_INTERVAL_MS = 100;
const LINE_INTERVAL_MS = 3_000;

/** Writes lines and progress. Colours and the redrawn line appear only on a terminal. */
export class Terminal {
  readonly #out: OutputStream;
  readonly #err: OutputStream;
  readonly #env: Readonly<Record<string, string | undefined>>;
  readonly #clock: Clock;
  #progressShown = false;
  #progressTimeMs: number;
  /** Shows the latest progress that came too soon after the line before it. */
  #nextLine: TimerHandle | undefined;
  #latest = "";

  constructor(options: TerminalOptions) {
    this.#out = options.stdout;
    this.#err = options.stderr;
    this.#env = options.env ?? {};
    this.#clock = options.clock;
    // Appended lines start after the first interval.
    this.#progressTimeMs = this.#err.isTTY ? -Infinity : monotonicNow(this.#clock);
  }

  print(line: string = ""): void {
    this.clearProgress();
    this.#out.write(`${line}\n`);
  }

  warn(line: string): void {
    this.clearProgress();
    this.#err.write(`${line}\n`);
  }

  error(message: string): void {
    this.warn(`${this.styleError("red", "listwatch:")} ${oneLine(message)}`);
  }

  /**
   * Shows progress: on a terminal in one redrawn line, elsewhere as a new line every few seconds, the first
   * one after that time. What comes too soon after another is shown later, if nothing newer comes by then.
   */
  progress(text: string): void {
    this.#latest = text;
    if (this.#nextLine !== undefined) return;
    const nowMs = monotonicNow(this.#clock);
    const restMs = this.#progressTimeMs - nowMs + (this.#err.isTTY ? REDRAW_INTERVAL_MS : LINE_INTERVAL_MS);
    if (restMs > 0) {
      this.#nextLine = this.#clock.setTimeout(() => {
        this.#nextLine = undefined;
        this.progress(this.#latest);
      }, restMs);
      return;
    }
    this.#progressTimeMs = nowMs;
    if (!this.#err.isTTY) {
      this.#err.write(`${text}\n`);
      return;
    }
    const width = Math.max(20, (this.#err.columns || 80) - 1);
    const fitting = text.length > width ? `${text.slice(0, width - 1)}…` : text;
    this.#err.write(`\r\x1b[2K${this.styleError("dim", fitting)}`);
    this.#progressShown = true;
  }

  clearProgress(): void {
    if (this.#nextLine !== undefined) this.#clock.clearTimeout(this.#nextLine);
    this.#nextLine = undefined;
    if (!this.#progressShown) return;
    this.#progressShown = false;
    this.#err.write("\r\x1b[2K");
  }

  style(style: Style, text: string): string {
    return this.#styled(this.#out, style, text);
  }

  styleError(style: Style, text: string): string {
    return this.#styled(this.#err, style, text);
  }

  #styled(stream: OutputStream, style: Style, text: string): string {
    if (!stream.isTTY || this.#env["NO_COLOR"] || this.#env["TERM"] === "dumb") return text;
    // The stream was checked above; styleText would check the stdout of the process.
    return styleText(style, text, { validateStream: false });
  }
}

// Clients can cause warnings: more are counted, and not printed.
const MAX_WARNINGS = 20;

/** Prints warnings and errors to stderr, one line each. */
export function terminalLogger(terminal: Terminal, now: () => number): Logger {
  const limit = new LineLimit(MAX_WARNINGS, now);
  const warn = (message: string, fields?: LogFields): void => {
    if (fields?.["isOutage"] === true) return;
    const left = limit.next();
    if (left === undefined) return;
    if (left > 0) print(terminal, `${left} more warnings, which --verbose prints`);
    print(terminal, message);
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
  return { debug: () => {}, info: line, warn: line, error: line };
}

function text(fields: LogFields): string {
  return Object.entries(fields).map(([name, value]) =>
    `${name}=${value instanceof Error ? value.message : String(value)}`
  ).join(" ");
}
