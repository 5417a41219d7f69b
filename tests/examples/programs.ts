/** The programs of the guides, and how tests run them. */

import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** The checkout. */
export const root: string = fileURLToPath(new URL("../..", import.meta.url));

/** The programs of a page: code blocks that print something. */
export async function programs(page: string): Promise<{ readonly title: string; readonly code: string }[]> {
  const text = await readFile(join(root, page), "utf8");
  return text.split(/^##? /m).slice(1).flatMap((section) => {
    const [title] = section.split("\n", 1);
    return Array.from(section.matchAll(/```ts\n([\s\S]*?)```/g), ([, code]) => ({ title, code }))
      .filter(({ code }) => code.includes("console.log("));
  });
}

/**
 * Runs a program beside the checkout's packages. `onLine` receives what it
 * prints, and returns whether it has printed enough.
 */
export async function runProgram(
  code: string,
  env: Record<string, string>,
  onLine: (line: string) => boolean,
  options: readonly string[] = [],
): Promise<void> {
  const folder = await mkdtemp(join(root, "tests", "examples", ".guide-"));
  try {
    await writeFile(join(folder, "program.ts"), code);
    const args = ["run", "-A", "--quiet", ...options, join(folder, "program.ts")];
    const signal = AbortSignal.timeout(60_000); // it would wait for what it does not print
    const command = new Deno.Command(Deno.execPath(), {
      args,
      env,
      stdout: "piped",
      stderr: "piped",
      cwd: root,
      signal,
    });
    await using child = command.spawn();
    const errors = new Response(child.stderr).text();
    let rest = "";
    for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) {
      const lines = (rest + text).split("\n");
      rest = lines.pop()!;
      if (lines.some(onLine)) return child.kill("SIGKILL");
    }
    assert.equal((await child.status).code, 0, await errors);
  } finally {
    await rm(folder, { recursive: true });
  }
}
