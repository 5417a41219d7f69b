/** Serves until it is killed: `/hold` for ever, other paths at once. Started by accept_probe_test.ts. */

import { Server } from "node:net";
import { serveFetch } from "@listwatch/cache/node";

// Listening again fails at first.
const { listen } = Server.prototype;
let calls = 0;
Server.prototype.listen = function (this: Server, ...args: unknown[]): Server {
  if (++calls !== 2) return Reflect.apply(listen, this, args);
  queueMicrotask(() => this.emit("error", new Error("too many open files")));
  return this;
};

const log = (line: string) => console.log(line);
const { url } = await serveFetch(
  ({ url }) => new Response(new URL(url).pathname === "/hold" ? new ReadableStream() : "here"),
  { logger: { debug: log, info: log, warn: log, error: log } },
);
console.log(`serving ${url}`);
