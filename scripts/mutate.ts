/**
 * Shows that the simulation can fail: puts deliberate faults into a copy of the source, one at a time, and simulates
 * worlds until one goes wrong. `deno task mutate`.
 *
 * - `--seeds N`: how many worlds each fault may survive; 2,000 by default.
 * - `--only TEXT`: only faults with this in their name.
 *
 * Prints a table and `N caught, N survived`; the exit code is 1 if one survived.
 *
 * @module
 */

import { type Mutation, MUTATIONS } from "../tests/simulation/mutations.ts";

const ROOT = new URL("..", import.meta.url).pathname;
const COPIED = [
  "deno.json",
  "deno.lock",
  "mod.ts",
  "src",
  "scripts/simulate.ts",
  "tests/simulation",
  "tests/counting_signal.ts",
];

interface Verdict {
  readonly name: string;
  /** The first seed that went wrong; absent if none did. */
  readonly seed?: number;
  /** What went wrong in it. */
  readonly text: string;
}

async function main(args: readonly string[]): Promise<number> {
  const seeds = valueOf(args, "--seeds") ?? "2000";
  const only = valueOf(args, "--only") ?? "";
  const copy = await Deno.makeTempDir({ prefix: "listwatch-mutate-" });
  try {
    for (const path of COPIED) await copyAll(`${ROOT}${path}`, `${copy}/${path}`);
    const sound = await simulate(copy, "no fault", seeds);
    if (sound.seed !== undefined) {
      console.error(`Cannot mutate: without any fault seed ${sound.seed} fails: ${sound.text}`);
      return 2;
    }
    const chosen = MUTATIONS.filter(({ name }) => name.includes(only));
    let caught = 0;
    for (const mutation of chosen) {
      const verdict = await tryMutation(copy, mutation, seeds);
      if (verdict.seed !== undefined) caught++;
      const outcome = verdict.seed === undefined ? `**survived ${seeds} seeds**` : `seed ${verdict.seed}`;
      console.log(`| ${verdict.name} | ${outcome} | ${verdict.text.replaceAll("|", "\\|")} |`);
    }
    console.log(`${caught} caught, ${chosen.length - caught} survived`);
    return caught === chosen.length ? 0 : 1;
  } finally {
    await Deno.remove(copy, { recursive: true });
  }
}

async function tryMutation(copy: string, mutation: Mutation, seeds: string): Promise<Verdict> {
  const path = `${copy}/${mutation.file}`;
  const sound = await Deno.readTextFile(path);
  if (sound.split(mutation.find).length !== 2) {
    throw new Error(
      `Cannot put in the fault "${mutation.name}": ${mutation.file} does not have this exactly once: ${mutation.find}`,
    );
  }
  await Deno.writeTextFile(path, sound.replace(mutation.find, () => mutation.replace));
  try {
    return await simulate(copy, mutation.name, seeds);
  } finally {
    await Deno.writeTextFile(path, sound);
  }
}

async function simulate(copy: string, name: string, seeds: string): Promise<Verdict> {
  const command = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--no-check", "scripts/simulate.ts", "--seeds", seeds, "--fail-fast", "--summary"],
    cwd: copy,
    stdout: "piped",
    stderr: "piped",
  });
  const { code, stdout, stderr } = await command.output();
  const output = new TextDecoder().decode(stdout);
  const failure = /^seed (\d+) \[.*?\]: (.*)$/m.exec(output);
  if (failure !== null) return { name, seed: Number(failure[1]), text: shortened(failure[2]) };
  if (code !== 0) throw new Error(`Cannot simulate "${name}": ${new TextDecoder().decode(stderr)}`);
  return { name, text: "" };
}

function shortened(text: string): string {
  const first = text.replace(/^[0-9.]+s /, "").split("; {")[0];
  return first.length > 140 ? `${first.slice(0, 140)}...` : first;
}

async function copyAll(from: string, to: string): Promise<void> {
  const { isDirectory } = await Deno.stat(from);
  if (!isDirectory) {
    await Deno.mkdir(to.slice(0, to.lastIndexOf("/")), { recursive: true });
    return await Deno.copyFile(from, to);
  }
  await Deno.mkdir(to, { recursive: true });
  for await (const { name } of Deno.readDir(from)) await copyAll(`${from}/${name}`, `${to}/${name}`);
}

function valueOf(args: readonly string[], name: string): string | undefined {
  const at = args.indexOf(name);
  return at < 0 ? undefined : args[at + 1];
}

if (import.meta.main) Deno.exit(await main(Deno.args));
