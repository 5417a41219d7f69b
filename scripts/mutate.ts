/**
 * Shows that the tests can fail: makes mutants, copies of the source with one deliberate defect each, and
 * runs the tests on them. `deno task mutate`; `--help` prints the options.
 *
 * Defects that a simulated world can have must be caught in one of the first worlds
 * (tests/simulation/mutations.ts), those of a tree of caches in one of the first
 * trees (tests/simulation/tree/tree_mutations.ts), all others by the test file that
 * is named with them (tests/mutations/).
 *
 * @module
 */

import { parseArgs } from "node:util";
import { mutantOf, type Mutation, type SuiteMutation } from "../tests/mutant.ts";
import { SUITE_MUTATIONS } from "../tests/mutations/mod.ts";
import { MUTATIONS } from "../tests/simulation/mutations.ts";
import { TREE_MUTATIONS, type TreeMutation } from "../tests/simulation/tree/tree_mutations.ts";
import { ROOT } from "./lib/gate.ts";
import { run } from "./lib/process.ts";
import { usage } from "./lib/task_usage.ts";

const LONGEST_TEST_MS = 600_000;

const USAGE = usage({
  task: "mutate",
  does:
    "Makes mutants, one on each core, and checks that the tests catch them. Prints a table and `N caught, N survived`;\n" +
    "the exit code is 1 if one survived.",
  options: {
    "--seeds N": "how many simulated worlds a mutant may survive (default: 2000)",
    "--only TEXT": "only mutants with this text in their name",
    "--worlds": "only mutants for the simulation",
    "--tree": "only mutants for the simulated trees of caches",
    "--suite": "only mutants for test files",
  },
});

type AnyMutation = Mutation | TreeMutation | SuiteMutation;

interface Verdict {
  readonly name: string;
  /** What caught it; absent if it survived. */
  readonly caughtBy?: string;
  /** What failed then. */
  readonly text: string;
}

async function main(args: readonly string[]): Promise<number> {
  const options = parse(args);
  if (typeof options === "number") return options;
  const { seeds, only, kinds } = options;
  const chosen = kinds.filter(({ name }) => name.includes(only));
  if (chosen.length === 0) {
    console.error(`Cannot mutate: no mutant has ${JSON.stringify(only)} in its name`);
    return 2;
  }
  const copies = await Promise.all(Array.from({ length: navigator.hardwareConcurrency }, copyProject));
  try {
    const unsound = await findUnsound(copies, chosen, seeds);
    if (unsound !== undefined) {
      console.error(`Cannot mutate: ${unsound.caughtBy ?? "a test"} fails without a mutant: ${unsound.text}`);
      return 2;
    }
    let caught = 0;
    await shareOut(copies, chosen, async (copy, mutation) => {
      const verdict = await tryMutation(copy, mutation, seeds);
      if (verdict.caughtBy !== undefined) caught++;
      const outcome = verdict.caughtBy ?? "**survived**";
      console.log(`| ${verdict.name} | ${outcome} | ${verdict.text.replaceAll("|", "\\|")} |`);
    });
    console.log(`${caught} caught, ${chosen.length - caught} survived`);
    return caught === chosen.length ? 0 : 1;
  } finally {
    await Promise.all(copies.map((copy) => Deno.remove(copy, { recursive: true })));
  }
}

/** A folder with the project's own files: what git tracks, or would. */
async function copyProject(): Promise<string> {
  const copy = await Deno.makeTempDir({ prefix: "listwatch-mutate-" });
  const { stdout, stderr, code } = await run("git", ["ls-files", "-co", "--exclude-standard", "-z"]);
  if (code !== 0) throw new Error(`Cannot list the project's files: ${stderr}`);
  for (const path of stdout.split("\0")) {
    if (path === "") continue;
    const folder = path.lastIndexOf("/");
    if (folder > 0) await Deno.mkdir(`${copy}/${path.slice(0, folder)}`, { recursive: true });
    await Deno.copyFile(`${ROOT}${path}`, `${copy}/${path}`);
  }
  return copy;
}

/** Does the work of each item, one at a time in each copy. */
async function shareOut<T>(
  copies: readonly string[],
  items: Iterable<T>,
  work: (copy: string, item: T) => Promise<void>,
): Promise<void> {
  const left = items[Symbol.iterator]();
  await Promise.all(copies.map(async (copy) => {
    for (let next = left.next(); !next.done; next = left.next()) await work(copy, next.value);
  }));
}

/** The first test that fails without a mutant. */
async function findUnsound(
  copies: readonly string[],
  mutations: readonly AnyMutation[],
  seeds: string,
): Promise<Verdict | undefined> {
  const tests = new Set(mutations.flatMap((mutation) => "test" in mutation ? [mutation.test] : []));
  const unsound: Verdict[] = [];
  await shareOut(copies, tests, async (copy, test) => {
    const verdict = await runTest(copy, "no mutant", test);
    if (verdict.text !== "") unsound.push(verdict);
  });
  const kinds = [false, true].filter((isTree) =>
    mutations.some((mutation) => !("test" in mutation) && "tree" in mutation === isTree)
  );
  await shareOut(copies, kinds, async (copy, isTree) => {
    const verdict = await simulate(copy, { name: "no mutant", isTree }, seeds);
    if (verdict.caughtBy !== undefined) unsound.push(verdict);
  });
  return unsound[0];
}

async function tryMutation(
  copy: string,
  mutation: AnyMutation,
  seeds: string,
): Promise<Verdict> {
  const path = `${copy}/${mutation.file}`;
  const sound = await Deno.readTextFile(path);
  const mutant = mutantOf(sound, mutation);
  if (mutant === undefined) {
    throw new Error(
      `Cannot make the mutant "${mutation.name}": ${mutation.file} does not have this exactly once: ${mutation.find}`,
    );
  }
  await Deno.writeTextFile(path, mutant);
  try {
    return "test" in mutation
      ? await runTest(copy, mutation.name, mutation.test)
      : await simulate(copy, { name: mutation.name, isTree: "tree" in mutation }, seeds);
  } finally {
    await Deno.writeTextFile(path, sound);
  }
}

async function runTest(copy: string, name: string, test: string): Promise<Verdict> {
  const signal = AbortSignal.timeout(LONGEST_TEST_MS);
  const command = new Deno.Command(Deno.execPath(), {
    args: ["test", "-A", "--no-check", "--quiet", test],
    cwd: copy,
    env: { NO_COLOR: "1" },
    signal,
    stdout: "piped",
    stderr: "piped",
  });
  const { code, stdout, stderr } = await command.output();
  if (code === 0) return { name, text: "" };
  if (signal.aborted) return { name, text: `${test} does not end: it must fail` };
  const failure = /^ *(.*) \.\.\. FAILED/m.exec(new TextDecoder().decode(stdout));
  if (failure === null) throw new Error(`Cannot test "${name}": ${new TextDecoder().decode(stderr)}`);
  return { name, caughtBy: test, text: shortened(failure[1]) };
}

async function simulate(
  copy: string,
  { name, isTree }: { readonly name: string; readonly isTree: boolean },
  seeds: string,
): Promise<Verdict> {
  const command = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--no-check", "scripts/simulate.ts", "--seeds", seeds, "--fail-fast", "--summary"]
      .concat(isTree ? ["--tree"] : []),
    cwd: copy,
    stdout: "piped",
    stderr: "piped",
  });
  const { code, stdout, stderr } = await command.output();
  const output = new TextDecoder().decode(stdout);
  const failure = /^seed (\d+) \[.*?\]: (.*)$/m.exec(output);
  if (failure !== null) {
    return { name, caughtBy: `${isTree ? "tree" : "seed"} ${failure[1]}`, text: shortened(failure[2]) };
  }
  if (code !== 0) throw new Error(`Cannot simulate "${name}": ${new TextDecoder().decode(stderr)}`);
  return { name, text: "" };
}

function shortened(text: string): string {
  const first = text.replace(/^[0-9.]+s /, "").split("; {")[0];
  return first.length > 140 ? `${first.slice(0, 140)}...` : first;
}

/** The options, or the exit code where there is nothing to do. */
function parse(
  args: readonly string[],
): { seeds: string; only: string; kinds: readonly AnyMutation[] } | number {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        seeds: { type: "string", default: "2000" },
        only: { type: "string", default: "" },
        worlds: { type: "boolean" },
        tree: { type: "boolean" },
        suite: { type: "boolean" },
        help: { type: "boolean", short: "h" },
      },
    });
    if (values.help) {
      console.log(USAGE);
      return 0;
    }
    const { worlds, tree, suite } = values;
    const isAll = !worlds && !tree && !suite;
    const kinds = [
      ...(isAll || suite ? SUITE_MUTATIONS : []),
      ...(isAll || worlds ? MUTATIONS : []),
      ...(isAll || tree ? TREE_MUTATIONS : []),
    ];
    return { seeds: values.seeds, only: values.only, kinds };
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : error}\n\n${USAGE}`);
    return 2;
  }
}

if (import.meta.main) Deno.exit(await main(Deno.args));
