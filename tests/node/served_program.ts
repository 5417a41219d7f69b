/** Serves until it is killed: `/hold` for ever, other paths at once. Started by accept_probe_test.ts. */

import { serveFetch } from "@listwatch/cache/node";

const log = (line: string) => console.log(line);
const { url } = await serveFetch(
  ({ url }) => new Response(new URL(url).pathname === "/hold" ? new ReadableStream() : "here"),
  { logger: { debug: log, info: log, warn: log, error: log } },
);
console.log(`serving ${url}`);
