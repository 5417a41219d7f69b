/**
 * A program of this package in a process of its own.
 * @module
 */

import { type ChildProcess, spawn } from "node:child_process";
import process from "node:process";

/** Options of {@linkcode startProgram}. */
export interface StartProgramOptions {
  readonly args: readonly string[];
  /** Receives what the program sends: one JSON value for each line of its stdout. */
  readonly onMessage: (message: unknown) => void;
  /** Receives a line of its stdout that is no JSON value. */
  readonly onLine: (line: string) => void;
}

/** A running program. */
export interface ChildProgram {
  readonly pid: number | undefined;
  /** Resolves when it has ended, and with what: `exited with 1`, `was ended by SIGKILL`. */
  readonly ended: Promise<string>;
  /** Sends a JSON value, as a line of its stdin. After its end, the value is dropped. */
  send(message: unknown): void;
  /** Closes its stdin: the program then ends by itself. */
  finish(): void;
  /** Ends it at once. */
  kill(): void;
}

/**
 * Starts a module with the runtime of this process. Its stderr is that of this process. Values travel over pipes only:
 * neither arguments nor the environment, which other users of the machine may see, contain any. The program sees the end
 * of its stdin when this process ends, however that happens.
 */
export function startProgram(module: URL, options: StartProgramOptions): ChildProgram {
  const { args, onMessage, onLine } = options;
  // Deno passes `--unstable-...` and such in no way to its children. A program that may start others may do all.
  const runtimeArgs = "Deno" in globalThis ? ["run", "--quiet", "-A"] : [];
  const path = module.protocol === "file:" ? decodeURIComponent(module.pathname) : module.href;
  const child: ChildProcess = spawn(process.execPath, [...runtimeArgs, path, ...args], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const kill = (): void => {
    child.kill("SIGKILL");
  };
  process.on("exit", kill);
  const ended = new Promise<string>((resolve) => {
    const settle = (how: string): void => {
      process.off("exit", kill);
      resolve(how);
    };
    child.on("error", (error: Error & { code?: unknown }) => {
      if (child.pid === undefined) settle(`could not be started (${String(error.code ?? error.message)})`);
    });
    child.on(
      "close",
      (code, signal) => settle(code === null ? `was ended by ${signal}` : `exited with ${code}`),
    );
  });
  // A program that has ended reads no more: `ended` says so.
  child.stdin?.on("error", () => {});
  if (child.stdout !== null) eachLine(child.stdout, (line) => take(line, onMessage, onLine));
  return {
    get pid() {
      return child.pid;
    },
    ended,
    send: (message) => {
      if (child.stdin?.writable) child.stdin.write(`${JSON.stringify(message)}\n`);
    },
    finish: () => child.stdin?.end(),
    kill,
  };
}

/** Receives the values that this process's parent sends on stdin; `onEnd` is called when the parent has ended or closed it. */
export function receiveMessages(onMessage: (message: unknown) => void, onEnd: () => void): void {
  eachLine(process.stdin, (line) => take(line, onMessage, () => {}));
  process.stdin.on("end", onEnd);
  process.stdin.on("close", onEnd);
  process.stdin.on("error", onEnd);
}

/** Sends a JSON value to this process's parent, as a line of stdout. Resolves when it is written, or cannot be. */
export function sendToParent(message: unknown): Promise<void> {
  return new Promise((resolve) => {
    process.stdout.write(`${JSON.stringify(message)}\n`, () => resolve());
  });
}

function take(line: string, onMessage: (message: unknown) => void, onLine: (line: string) => void): void {
  let message: unknown;
  try {
    message = JSON.parse(line);
  } catch {
    return onLine(line);
  }
  onMessage(message);
}

function eachLine(stream: NodeJS.ReadableStream, receive: (line: string) => void): void {
  const decoder = new TextDecoder();
  let parts: string[] = [];
  stream.on("data", (chunk: Uint8Array) => {
    const lines = decoder.decode(chunk, { stream: true }).split("\n");
    const last = lines.pop()!;
    if (lines.length > 0) {
      lines[0] = parts.join("") + lines[0];
      parts = [];
    }
    parts.push(last);
    for (const line of lines) if (line !== "") receive(line);
  });
}
