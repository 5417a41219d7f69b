/**
 * A program that answers each line of its standard input with a line of JSON.
 * @module
 */

import { eachLine } from "../../scripts/lib/cluster_build.ts";

/** A running program. */
export interface LineProcess extends AsyncDisposable {
  /** Sends a line, and returns the answer. */
  ask(line: string): Promise<unknown>;
}

/**
 * Starts a program. Resolves at its first line.
 *
 * @throws {Error} It ended instead; the message has its last errors.
 */
export async function startLineProcess(
  program: string,
  options: Pick<Deno.CommandOptions, "args" | "env" | "cwd">,
): Promise<LineProcess> {
  const child = new Deno.Command(program, { ...options, stdin: "piped", stdout: "piped", stderr: "piped" })
    .spawn();
  const input = child.stdin.getWriter();
  const waiting: PromiseWithResolvers<string>[] = [];
  const nextLine = (): Promise<string> => {
    const line = Promise.withResolvers<string>();
    waiting.push(line);
    return line.promise;
  };
  const started = nextLine();
  const lastErrors: string[] = [];
  const ended = Promise.all([
    child.status,
    eachLine(child.stdout, (line) => waiting.shift()?.resolve(line)),
    eachLine(child.stderr, (line) => {
      lastErrors.push(line);
      if (lastErrors.length > 20) lastErrors.shift();
    }),
  ]).then(([{ code }]) => {
    const error = new Error(`${program} ended with code ${code}:\n${lastErrors.join("\n")}`);
    for (const line of waiting.splice(0)) line.reject(error);
  });
  await started;
  return {
    async ask(text) {
      const line = nextLine();
      const [, answer] = await Promise.all([input.write(new TextEncoder().encode(`${text}\n`)), line]);
      return JSON.parse(answer);
    },
    async [Symbol.asyncDispose]() {
      await input.close().catch(() => {});
      await ended;
    },
  };
}
