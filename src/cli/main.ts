/** The entry point of the program: `deno run -A src/cli/main.ts serve`; `listwatch` in the npm package. */

import process from "node:process";
import { main } from "./command.ts";

// Explicit, as a connection that is kept alive would keep the process running.
process.exit(await main(process.argv.slice(2)));
