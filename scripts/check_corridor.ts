/**
 * The gate of the corridor: how many files one MODIFIED event passes through, from the socket to a handler and to an
 * HTTP watcher, and how often it enters them. A reader of the source who follows an event opens them all.
 *
 * Run with `deno task ok corridor`. A copy of the source is made in which every function, and every function that
 * continues after an `await`, records that it runs (`scripts/lib/corridor_trace.ts`). A program syncs an informer, waits
 * until nothing runs any more, and then receives one event (`scripts/lib/corridor_probe.ts`).
 *
 * An **opening** is a call from another file, or a start from the event loop, after something of another file was
 * opened: calls one after the other into the same file are one opening, and a return to the caller is none. `util/` and
 * `meta/` do not count: they are words, not steps. `--list` prints the files with their openings, `--steps` each of them.
 *
 * @module
 */

import { ROOT } from "./lib/gate.ts";
import { type Receiver, traceEvent } from "./lib/corridor_trace.ts";

interface Corridor {
  readonly files: number;
  readonly openings: number;
}

/** What an event may pass through on its way. Only ever lowered. */
const CEILINGS: Record<Receiver, Corridor> = {
  handler: { files: 20, openings: 36 },
  watcher: { files: 25, openings: 42 },
};

/** What the design aims at: each file is opened at most twice. */
const GOALS: Record<Receiver, Corridor> = {
  handler: { files: 20, openings: 40 },
  watcher: { files: 26, openings: 52 },
};
const OFTEN = 2;

/** The files of the openings, in order, without `util/` and `meta/`. */
export function openings(trace: readonly { path: string; caller?: string }[]): string[] {
  const found: string[] = [];
  for (const { path, caller } of trace) {
    if (/^src\/(util|meta)\//.test(path) || caller === path || found.at(-1) === path) continue;
    found.push(path);
  }
  return found;
}

if (import.meta.main) {
  let code = 0;
  const temporary = await Deno.makeTempDir({ prefix: "listwatch-corridor-" });
  try {
    for await (const { receiver, trace } of traceEvent(ROOT, temporary)) {
      const steps = openings(trace);
      const times = new Map<string, number>();
      for (const path of steps) times.set(path, (times.get(path) ?? 0) + 1);
      const often = [...times.values()].filter((count) => count > OFTEN).length;
      const [ceiling, goal] = [CEILINGS[receiver], GOALS[receiver]];
      console.log(
        `corridor to a ${receiver}: ${times.size} files (ceiling ${ceiling.files}, goal ${goal.files}), ` +
          `${steps.length} openings (ceiling ${ceiling.openings}, goal ${goal.openings}), ` +
          `${often} files opened more than twice (goal 0)`,
      );
      if (Deno.args.includes("--list")) {
        for (const [path, count] of [...times].sort()) console.log(`  ${count} ${path}`);
      }
      if (Deno.args.includes("--steps")) { for (const path of steps) console.log(`  ${path}`); }
      if (times.size > ceiling.files || steps.length > ceiling.openings) {
        console.error(`corridor to a ${receiver}: over its ceiling; --list names the files, --steps the way`);
        code = 1;
      }
    }
  } finally {
    await Deno.remove(temporary, { recursive: true });
  }
  Deno.exit(code);
}
