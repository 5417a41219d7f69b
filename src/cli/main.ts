#!/usr/bin/env node
/**
 * The entry of the command line program: `deno run -A src/cli/main.ts serve`, or the npm bin `listwatch`.
 *
 * The first Ctrl-C (SIGINT) or SIGTERM ends it cleanly, with exit code 0: it did what it was asked. A second one ends
 * it at once, with 130, and so does a stop that takes longer than it may.
 *
 * @module
 */

import process from "node:process";
import { realClock } from "../util/clock.ts";
import { main } from "./command.ts";

/** A clean end takes some milliseconds; whoever pressed Ctrl-C waits no longer than this. */
const STOP_LIMIT_MS = 900;
const EXIT_FORCED = 130;

const stop = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.on(signal, () => {
    if (stop.signal.aborted) process.exit(EXIT_FORCED);
    stop.abort();
    realClock.setTimeout(() => process.exit(EXIT_FORCED), STOP_LIMIT_MS);
  });
}
// The exit is explicit: an idle connection that somebody keeps alive must not hold the program.
process.exit(await main(process.argv.slice(2), { signal: stop.signal }));
