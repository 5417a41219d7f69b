import { type ChildProcess, spawn } from "node:child_process";
import process from "node:process";
import type { Clock } from "../util/clock.ts";
import { concatenated } from "../util/bytes.ts";

export interface RunProgramOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  readonly timeoutMs: number;
  readonly maxOutputBytes: number;
}

/**
 * Runs a program and returns its stdout. It has no stdin, and its stderr is ignored, as it may contain
 * credentials. A program that takes too long or prints too much is killed together with its child processes
 * (on Windows without them), and so is one that still runs when this process exits.
 *
 * @throws {Error} The program is not installed, exits with another code than 0, is killed, or prints too
 * much. The message contains neither the arguments nor the output.
 */
export function runProgram(
  command: string,
  args: readonly string[],
  options: RunProgramOptions,
): Promise<string> {
  const { env, clock, timeoutMs, maxOutputBytes } = options;
  return new Promise((resolve, reject) => {
    // In its own process group, so that its children can be killed with it.
    const program = spawn(command, [...args], {
      env: env as NodeJS.ProcessEnv,
      stdio: ["ignore", "pipe", "ignore"],
      detached: process.platform !== "win32",
    });
    const chunks: Uint8Array[] = [];
    let bytes = 0;
    let isOver = false;
    const kill = (): void => killGroup(program);
    const settle = (why: string | undefined): void => {
      if (isOver) return;
      isOver = true;
      clock.clearTimeout(timer);
      process.off("exit", kill);
      if (why === undefined) return resolve(new TextDecoder().decode(concatenated(chunks, bytes)));
      kill();
      program.stdout?.destroy();
      reject(new Error(why));
    };
    const timer = clock.setTimeout(() => settle(`did not end within ${timeoutMs / 1000} s`), timeoutMs);
    process.on("exit", kill);
    program.on("error", (error: Error & { code?: unknown }) => {
      settle(error.code === "ENOENT" ? "is not installed" : `could not be started (${String(error.code)})`);
    });
    program.stdout?.on("data", (chunk: Uint8Array) => {
      bytes += chunk.length;
      if (bytes > maxOutputBytes) return settle(`printed more than ${maxOutputBytes} bytes`);
      if (!isOver) chunks.push(chunk);
    });
    program.on("close", (code, signal) => {
      const ended = code === null ? `was ended by ${signal}` : `exited with ${code}`;
      settle(code === 0 ? undefined : `${ended}; run it by hand to see why`);
    });
  });
}

function killGroup(program: ChildProcess): void {
  if (program.pid === undefined) return;
  try {
    process.kill(process.platform === "win32" ? program.pid : -program.pid, "SIGKILL");
  } catch {
    program.kill("SIGKILL");
  }
}
