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
import { prepareTrace, type Receiver, traceEvent } from "./lib/corridor_trace.ts";

interface Corridor {
  readonly files: number;
  readonly openings: number;
}

/** What an event may pass through on its way. Only ever lowered. */
const CEILINGS: Record<Receiver, Corridor> = {
  handler: { files: 18, openings: 30 },
  watcher: { files: 24, openings: 38 },
};

/** What the design aims at. */
const GOALS: Record<Receiver, Corridor> = {
  handler: { files: 20, openings: 40 },
  watcher: { files: 26, openings: 52 },
};

/** How often an event may open a file. */
const OFTEN = 2;

/** A run may catch something else in passing, such as a timer: it counts only if it comes back. */
const RUNS = 3;

/** The files of the openings, in order, without `util/` and `meta/`. */
export function openings(trace: readonly { path: string; caller?: string }[]): string[] {
  const found: string[] = [];
  for (const { path, caller } of trace) {
    if (/^src\/(util|meta)\//.test(path) || caller === path || found.at(-1) === path) continue;
    found.push(path);
  }
  return found;
}

/** How often each file is opened, and what is over its ceiling. */
function evaluate(
  receiver: Receiver,
  steps: readonly string[],
): { times: Map<string, number>; faults: string[] } {
  const times = new Map<string, number>();
  for (const path of steps) times.set(path, (times.get(path) ?? 0) + 1);
  const ceiling = CEILINGS[receiver];
  const faults: string[] = [];
  if (times.size > ceiling.files) faults.push(`${times.size} files are more than ${ceiling.files}`);
  if (steps.length > ceiling.openings) {
    faults.push(`${steps.length} openings are more than ${ceiling.openings}`);
  }
  for (const [path, count] of times) if (count > OFTEN) faults.push(`${path} is opened ${count} times`);
  return { times, faults };
}

if (import.meta.main) {
  let code = 0;
  const temporary = await Deno.makeTempDir({ prefix: "listwatch-corridor-" });
  try {
    await prepareTrace(ROOT, temporary);
    for (const receiver of ["handler", "watcher"] as const) {
      let steps = openings(await traceEvent(temporary, receiver));
      let { times, faults } = evaluate(receiver, steps);
      for (let run = 1; run < RUNS && faults.length > 0; run++) {
        steps = openings(await traceEvent(temporary, receiver));
        ({ times, faults } = evaluate(receiver, steps));
      }
      const often = [...times.values()].filter((count) => count > OFTEN).length;
      const [ceiling, goal] = [CEILINGS[receiver], GOALS[receiver]];
      console.log(
        `corridor to a ${receiver}: ${times.size} files (ceiling ${ceiling.files}, goal ${goal.files}), ` +
          `${steps.length} openings (ceiling ${ceiling.openings}, goal ${goal.openings}), ` +
          `${often} files opened more than twice (ceiling 0)`,
      );
      if (Deno.args.includes("--list")) {
        for (const [path, count] of [...times].sort()) console.log(`  ${count} ${path}`);
      }
      if (Deno.args.includes("--steps")) { for (const path of steps) console.log(`  ${path}`); }
      if (faults.length > 0) {
        console.error(
          `corridor to a ${receiver}: ${faults.join("; ")} (--list names the files, --steps the way)`,
        );
        code = 1;
      }
    }
  } finally {
    await Deno.remove(temporary, { recursive: true });
  }
  Deno.exit(code);
}
