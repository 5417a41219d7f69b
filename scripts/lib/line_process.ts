/**
 * A program that answers each line of its standard input with a line of
 * its standard output, and ends as its input does.
 * @module
 */

import { eachLine } from "./go_command.ts";

/** Options of {@linkcode startLineProcess}. */
export interface LineProcessOptions extends Pick<Deno.CommandOptions, "args" | "env" | "cwd"> {
  /**
   * Makes the error of a program that ended while it owed a line;
   * by default one with its code and last errors.
   */
  readonly newEndError?: (status: Deno.CommandStatus, lastErrors: readonly string[]) => Error;
  /** How many lines of its standard error are kept, 30 by default. */
  readonly errorLines?: number;
  /** Ends the program, until it has printed its first line. */
  readonly signal?: AbortSignal;
}

/** A running program. */
export interface LineProcess extends AsyncDisposable {
  /** The first line that it printed. */
  readonly firstLine: string;
  /** The last lines of its standard error. */
  readonly lastErrors: readonly string[];
  /** Resolves when it has ended and all that it printed was read. */
  readonly ended: Promise<void>;
  /** Sends a line that has no answer. */
  send(line: string): Promise<void>;
  /** Sends a line, and returns the answer, parsed as JSON. */
  ask(line: string): Promise<unknown>;
  /** Ends it at once, if it has not ended yet. */
  kill(): void;
  /** Closes its standard input. */
  close(): Promise<void>;
}

/**
 * Starts a program. Resolves at its first line.
 *
 * @throws {Error} It ended instead.
 */
export async function startLineProcess(program: string, options: LineProcessOptions): Promise<LineProcess> {
  const { newEndError, errorLines = 30, signal, ...command } = options;
  const child = new Deno.Command(program, { ...command, stdin: "piped", stdout: "piped", stderr: "piped" })
    .spawn();
  const input = child.stdin.getWriter();
  const waiting: PromiseWithResolvers<string>[] = [];
  const nextLine = (): Promise<string> => {
    const line = Promise.withResolvers<string>();
    waiting.push(line);
    return line.promise;
  };
  const lastErrors: string[] = [];
  const first = nextLine();
  const ended = Promise.all([
    child.status,
    eachLine(child.stdout, (line) => waiting.shift()?.resolve(line)),
    eachLine(child.stderr, (line) => {
      lastErrors.push(line);
      if (lastErrors.length > errorLines) lastErrors.shift();
    }),
  ]).then(([status]) => {
    const error = newEndError?.(status, lastErrors) ??
      new Error(`${program} ended with code ${status.code}:\n${lastErrors.join("\n")}`);
    for (const line of waiting.splice(0)) line.reject(error);
  });
  const kill = (): void => {
    try {
      child.kill("SIGKILL");
    } catch {
      // The process has ended already.
    }
  };
  const send = (line: string) => input.write(new TextEncoder().encode(`${line}\n`));
  const close = () => input.close().catch(() => {});
  signal?.addEventListener("abort", kill);
  const firstLine = await first.finally(() => signal?.removeEventListener("abort", kill));
  return {
    firstLine,
    lastErrors,
    ended,
    send,
    async ask(text) {
      const line = nextLine();
      const [, answer] = await Promise.all([send(text), line]);
      return JSON.parse(answer);
    },
    kill,
    close,
    async [Symbol.asyncDispose]() {
      await close();
      await ended;
    },
  };
}
