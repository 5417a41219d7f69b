/**
 * The gate of the corridor: how many files one MODIFIED event passes through, from the socket to a handler and to an
 * HTTP watcher. Whoever follows an event has to open them all.
 *
 * Run with `deno task ok corridor`. A program syncs an informer and ends, once without and once with an event after the
 * sync (`scripts/lib/corridor_probe.ts`); a file counts where V8's coverage says that a function was called more often with the
 * event (one that only goes on after an `await` is not called again). `util/` and `meta/` do not count: they are words, not steps. `--list` prints the files.
 *
 * @module
 */

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ROOT } from "./lib/gate.ts";
import { runDeno } from "./lib/process.ts";

/** Who receives the event, and through how many files it may pass on the way. Only ever lowered. */
const CEILINGS = { handler: 36, watcher: 45 } as const;
/** What the house is drawn for. */
const GOALS = { handler: 20, watcher: 26 } as const;

type Receiver = keyof typeof CEILINGS;

/** What V8 says of one script; `deno run --coverage` writes a file of each. */
interface ScriptCoverage {
  readonly url: string;
  readonly functions: readonly {
    readonly ranges: readonly {
      readonly startOffset: number;
      readonly endOffset: number;
      readonly count: number;
    }[];
  }[];
}

/** The files that an event passes through on its way to a receiver, in the order of their names. */
export async function corridorTo(receiver: Receiver): Promise<string[]> {
  const before = await callsOf(receiver, []);
  const after = await callsOf(receiver, ["event"]);
  const files = new Set<string>();
  for (const [place, count] of after) {
    if (count > (before.get(place) ?? 0)) files.add(place.slice(0, place.indexOf("#")));
  }
  return [...files].filter((path) => !/^src\/(util|meta)\//.test(path)).sort();
}

/** How often each function of `src/` was called, by `path#start-end`. */
async function callsOf(receiver: Receiver, event: string[]): Promise<Map<string, number>> {
  const folder = await Deno.makeTempDir({ prefix: "listwatch-corridor-" });
  try {
    const probe = join(ROOT, "scripts/lib/corridor_probe.ts");
    const { code, output } = await runDeno([
      ...["run", "-A", "--no-check", "--no-code-cache", `--coverage=${folder}`, probe, receiver, ...event],
    ], { timeoutMs: 60_000 });
    if (code !== 0) throw new Error(`Cannot follow an event to a ${receiver}: the program failed: ${output}`);
    const calls = new Map<string, number>();
    for await (const { name } of Deno.readDir(folder)) {
      if (!name.endsWith(".json")) continue;
      const { url, functions }: ScriptCoverage = JSON.parse(await Deno.readTextFile(join(folder, name)));
      if (!url.startsWith("file:")) continue;
      const path = fileURLToPath(url);
      if (!path.startsWith(join(ROOT, "src/"))) continue;
      for (const { ranges } of functions) {
        const [{ startOffset, endOffset, count }] = ranges;
        calls.set(`${path.slice(ROOT.length)}#${startOffset}-${endOffset}`, count);
      }
    }
    return calls;
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

if (import.meta.main) {
  let code = 0;
  for (const receiver of ["handler", "watcher"] as const) {
    const files = await corridorTo(receiver);
    const [count, ceiling, goal] = [files.length, CEILINGS[receiver], GOALS[receiver]];
    console.log(
      `corridor: ${count} files from the socket to a ${receiver} (ceiling ${ceiling}, goal ${goal})`,
    );
    if (Deno.args.includes("--list")) { for (const path of files) console.log(`  ${path}`); }
    if (count > ceiling) {
      console.error(`corridor: ${count} files are more than ${ceiling}: ${files.join(", ")}`);
      code = 1;
    }
  }
  Deno.exit(code);
}
