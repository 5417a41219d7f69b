/**
 * Imports the module named on the command line with traps on everything an import must leave alone, and
 * prints what it touched as one line of JSON. Run by `check_exports.ts` in a process of its own.
 *
 * @module
 */

import { pathToFileURL } from "node:url";

/** Globals that packages are known to add, each with the reason why that is accepted. */
const ACCEPTED_GLOBALS: Record<string, string> = {
  __zod_globalRegistry: "zod shares its registry between its own copies",
  __zod_globalConfig: "zod shares its configuration between its own copies",
  nodeBootstrap: "Deno's own, when the first package from npm is loaded",
};

const effects = new Set<string>();

/** The project's own frame that called, or the package's when the project has none on the stack. */
function caller(): string {
  const frames = (new Error().stack ?? "").split("\n").slice(3);
  const frame = frames.find((line) => /\/src\//.test(line) && !line.includes("/node_modules/")) ??
    frames[0] ?? "";
  return frame.trim().replace(/^at /, "").replace(/file:\/\/\S*?\/(src\/)/, "$1");
}

function trap(holder: object, holderName: string, names: string[]): void {
  for (const name of names) {
    const original = Reflect.get(holder, name) as unknown;
    if (typeof original !== "function") continue;
    // A proxy keeps `new`, statics and `instanceof` as they were.
    const trapped = new Proxy(original, {
      apply(target, self, args): unknown {
        effects.add(`calls ${holderName}${name} (${caller()})`);
        return Reflect.apply(target as () => unknown, self === globalThis ? undefined : self, args);
      },
      construct(target, args, newTarget): object {
        // A date of a given time is data; the date of now is a clock.
        if (name !== "Date" || args.length === 0) effects.add(`calls new ${holderName}${name} (${caller()})`);
        return Reflect.construct(target, args, newTarget) as object;
      },
    });
    Reflect.defineProperty(holder, name, { value: trapped, configurable: true, writable: true });
  }
}

function trapAll(): void {
  trap(globalThis, "", [
    ..."setTimeout setInterval setImmediate queueMicrotask fetch addEventListener alert confirm prompt".split(
      " ",
    ),
    ..."Date WebSocket EventSource Worker BroadcastChannel".split(" "),
  ]);
  trap(Date, "Date.", ["now"]);
  trap(performance, "performance.", ["now", "mark", "measure"]);
  trap(Math, "Math.", ["random"]);
  trap(crypto, "crypto.", ["getRandomValues", "randomUUID"]);
  trap(console, "console.", Object.keys(console));
}

const PROTOTYPES = {
  Object,
  Array,
  Map,
  Set,
  Promise,
  String,
  Number,
  Function,
  Error,
  Date,
  RegExp,
  Uint8Array,
};

/** The names of all globals, and of all members of the built-in classes and their prototypes. */
function surroundings(): Set<string> {
  const names = new Set(Reflect.ownKeys(globalThis).map((key) => `globalThis.${String(key)}`));
  for (const [name, built] of Object.entries(PROTOTYPES)) {
    for (const key of Reflect.ownKeys(built)) names.add(`${name}.${String(key)}`);
    for (const key of Reflect.ownKeys(built.prototype)) names.add(`${name}.prototype.${String(key)}`);
  }
  return names;
}

const log = console.log.bind(console);
const fail = console.error.bind(console);
const listen = addEventListener;
const later = setTimeout;
trapAll();
const before = surroundings();
listen("unhandledrejection", (event) => {
  effects.add(`leaves a rejected promise: ${event.reason}`);
  event.preventDefault();
});
try {
  await import(pathToFileURL(Deno.args[0]).href);
  await new Promise((resolve) => later(resolve, 0));
} catch (error) {
  fail(error instanceof Error ? `${error.name}: ${error.message}` : error);
  Deno.exit(1);
}
for (const name of surroundings()) {
  if (!before.has(name) && ACCEPTED_GLOBALS[name.replace("globalThis.", "")] === undefined) {
    effects.add(`adds ${name}`);
  }
}
log(JSON.stringify([...effects]));
Deno.exit(0);
