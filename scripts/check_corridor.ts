/**
 * The gate of the corridor: how many files one MODIFIED event passes through, from the socket to a handler
 * and to an HTTP watcher, how many one LIST request passes through, and how often each enters them. A reader
 * of the source who follows an event or a request opens them all.
 *
 * Run with `deno task ok corridor`. A copy of the source is made in which every function, and
 * every function that continues after an `await`, records that it runs
 * (`scripts/lib/corridor_trace.ts`). A program syncs an informer, waits until nothing runs any
 * more, and then receives one event or one request (`scripts/lib/corridor_probe.ts`): with the
 * options of a program that gives none, and with those of `listwatch serve`.
 *
 * An **opening** is a call from another file, or a start from the event loop, after something of another file
 * was opened: calls one after the other into the same file are one opening, and a return to the caller is
 * none. Every file of `src/` counts but those of `util/`, which are as known to a reader as the language's
 * own library: a clock, a deque. `--list` prints the files with their openings, `--steps` each of them, and
 * both have those of `util/` with `--util`. `docs/life.md` must name each of the files.
 *
 * @module
 */

import { ROOT } from "./lib/gate.ts";
import { prepareTrace, type Road, type TraceEntry, traceWay, type Way } from "./lib/corridor_trace.ts";
import { taskOptions, usage } from "./lib/task_usage.ts";

interface Corridor {
  readonly files: number;
  readonly openings: number;
}

/** What each way may pass through. Only ever lowered. */
const CEILINGS: Record<Way, Record<Road, Corridor>> = {
  handler: { default: { files: 19, openings: 38 }, serve: { files: 20, openings: 40 } },
  watcher: { default: { files: 24, openings: 42 }, serve: { files: 24, openings: 42 } },
  list: { default: { files: 18, openings: 30 }, serve: { files: 18, openings: 30 } },
};

/** What the design aims at, on both roads. */
const GOALS: Record<Way, Corridor> = {
  handler: { files: 20, openings: 40 },
  watcher: { files: 26, openings: 50 },
  list: { files: 18, openings: 30 },
};

const TITLES: Record<Way, string> = {
  handler: "an event to a handler",
  watcher: "an event to a watcher",
  list: "a LIST request",
};

/** The page that names each file of the roads. */
const PAGE = "docs/life.md";

/** A run may catch something else in passing, such as a timer: it counts only if it comes back. */
const RUNS = 6;

/** The files of the openings, in order. */
export function openings(trace: readonly TraceEntry[], withUtil = false): string[] {
  const found: string[] = [];
  for (const { path, caller } of trace) {
    if (!withUtil && path.startsWith("src/util/")) continue;
    if (caller !== path && found.at(-1) !== path) found.push(path);
  }
  return found;
}

/** How often each file is opened, the most often opened first. */
function timesOf(steps: readonly string[]): [path: string, times: number][] {
  const times = new Map<string, number>();
  for (const path of steps) times.set(path, (times.get(path) ?? 0) + 1);
  return [...times].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1));
}

/** The shortest of some runs: it has nothing that came in passing. */
async function shortest(
  folder: string,
  way: Way,
  road: Road,
  ceiling: Corridor,
  withUtil: boolean,
): Promise<string[]> {
  let best: string[] | undefined;
  for (let run = 0; run < RUNS; run++) {
    const steps = openings(await traceWay(folder, way, road), withUtil);
    if (best === undefined || steps.length < best.length) best = steps;
    if (best.length <= ceiling.openings) break;
  }
  return best!;
}

if (import.meta.main) {
  const text = usage({
    script: "scripts/check_corridor.ts",
    does: "Counts the files that an event and a LIST request pass through, beside their ceilings.",
    options: {
      "--list": "name the files, with their openings",
      "--steps": "name the file of each opening, in order",
      "--util": "those of src/util/, too",
    },
  });
  const { list, steps: withSteps, util } = taskOptions(text, {
    list: { type: "boolean", default: false },
    steps: { type: "boolean", default: false },
    util: { type: "boolean", default: false },
  });
  let code = 0;
  const page = await Deno.readTextFile(`${ROOT}/${PAGE}`);
  const report = (problem: string) => {
    console.error(problem);
    code = 1;
  };
  for (const path of new Set(page.match(/\bsrc\/[\w/]+\.ts\b/g))) {
    await Deno.stat(`${ROOT}/${path}`).catch(() => report(`${PAGE} names ${path}, which is not there`));
  }
  const temporary = await Deno.makeTempDir({ prefix: "listwatch-corridor-" });
  try {
    await prepareTrace(ROOT, temporary);
    for (const way of ["handler", "watcher", "list"] as const) {
      for (const road of ["default", "serve"] as const) {
        const ceiling = CEILINGS[way][road];
        const steps = await shortest(temporary, way, road, ceiling, util);
        const times = timesOf(steps);
        const title = `${TITLES[way]}, ${road === "serve" ? "as serve runs" : "default options"}`;
        console.log(
          `${title}: ${times.length} files (ceiling ${ceiling.files}, goal ${GOALS[way].files}), ` +
            `${steps.length} openings (ceiling ${ceiling.openings}, goal ${GOALS[way].openings}), ` +
            `most often ${times[0][0]} (${times[0][1]} times)`,
        );
        if (list) {
          for (const [path, count] of times) console.log(`  ${count} ${path}`);
        }
        if (withSteps) { for (const path of steps) console.log(`  ${path}`); }
        if (times.length > ceiling.files || steps.length > ceiling.openings) {
          report(`${title}: over its ceiling (--list names the files, --steps the way)`);
        }
        for (const [path] of times) {
          if (!page.includes(path)) report(`${title}: ${PAGE} does not name ${path}`);
        }
      }
    }
  } finally {
    await Deno.remove(temporary, { recursive: true });
  }
  Deno.exit(code);
}
