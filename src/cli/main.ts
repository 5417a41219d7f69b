/**
 * The entry of the command line program: `deno run -A src/cli/main.ts serve`. The npm package has it as `listwatch`.
 *
 * @module
 */

import process from "node:process";
import { main } from "./command.ts";

// The exit is explicit: a connection that somebody keeps alive must not hold the program.
process.exit(await main(process.argv.slice(2)));
