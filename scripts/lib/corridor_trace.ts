/**
 * Runs the corridor's program on a copy of the source in which every function records that it runs.
 *
 * The places come from Deno's own parser, through a plugin of `deno lint` that reports every function body
 * and every `await`; the calls are written into the text there.
 *
 * @module
 */

import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { copyTree } from "../build_npm.ts";
import { runDeno } from "./process.ts";

/** What is followed: an event to a handler, an event to an HTTP watcher, a request for a list. */
export type Way = "handler" | "watcher" | "list";

/**
 * How objects are held: with the options of a program that gives none, or with those of `listwatch serve`.
 */
export type Road = "default" | "serve";

/**
 * A function that ran, or continued after an `await`: its file, and the
 * file of the nearest caller outside of `util/`.
 */
export interface TraceEntry {
  readonly path: string;
  readonly caller?: string;
}

/** A place where the source is changed, as the plugin reports it: offsets in UTF-16 units. */
type Place = readonly [kind: "block" | "expression" | "await", start: number, end: number];

/** Makes the copy of the source below `root` in `folder`, which is empty. */
export async function prepareTrace(root: string, folder: string): Promise<void> {
  await copyTree(join(root, "src"), join(folder, "src"));
  await Deno.copyFile(join(root, "mod.ts"), join(folder, "mod.ts"));
  for (const name of ["corridor_probe.ts", "corridor_recorder.ts", "corridor_plugin.ts"]) {
    await Deno.copyFile(join(root, "scripts/lib", name), join(folder, name));
  }
  const { name, version, exports, imports } = JSON.parse(await Deno.readTextFile(join(root, "deno.json")));
  const lint = { plugins: ["./corridor_plugin.ts"], rules: { tags: [], include: ["corridor/places"] } };
  const config = { name, version, exports, imports, lint, lock: false, nodeModulesDir: "none" };
  await Deno.writeTextFile(join(folder, "deno.json"), JSON.stringify(config));
  await instrument(folder);
}

/** What one event or request runs in the copy, in order. */
export async function traceWay(folder: string, way: Way, road: Road): Promise<TraceEntry[]> {
  const args = ["run", "-A", "--no-check", "--quiet", "corridor_probe.ts", way, road];
  const { code, stdout, output } = await runDeno(args, { cwd: folder, timeoutMs: 60_000 });
  if (code !== 0) throw new Error(`Cannot follow the way of a ${way}: the program failed: ${output}`);
  const recorded = JSON.parse(stdout.slice(stdout.lastIndexOf("\n[") + 1)) as [string, string | null][];
  return recorded.map(([path, caller]) => ({ path, ...(caller !== null && { caller }) }));
}

/** Writes the calls into every file of `src/`. */
async function instrument(folder: string): Promise<void> {
  const { stdout, stderr } = await runDeno(["lint", "--json", "src"], { cwd: folder });
  const { diagnostics } = JSON.parse(stdout) as { diagnostics: { filename: string; message: string }[] };
  if (diagnostics.length === 0) throw new Error(`Cannot find the functions of src/: ${stderr}`);
  const byFile = Map.groupBy(diagnostics, ({ filename }) => filename);
  for (const [url, reports] of byFile) {
    const path = fileURLToPath(url);
    const places = reports.map(({ message }) => JSON.parse(message) as Place);
    const source = await Deno.readTextFile(path);
    await Deno.writeTextFile(path, instrumented(source, places, relative(folder, path)));
  }
}

function instrumented(source: string, places: readonly Place[], path: string): string {
  const here = `__corridor(${JSON.stringify(path)})`;
  const insertions = places.flatMap(([kind, start, end]): [offset: number, order: number, text: string][] => {
    const length = end - start;
    if (kind === "block") return [[start + 1, length, `${here};`]];
    const opening = kind === "await" ? `__corridor(${JSON.stringify(path)},` : `(${here},`;
    return [[start, -length, opening], [end, length, ")"]];
  });
  // What encloses another place opens before it and closes after it.
  insertions.sort((a, b) => a[0] - b[0] || closing(a) - closing(b) || a[1] - b[1]);
  let text = "";
  let from = 0;
  for (const [offset, , insertion] of insertions) {
    text += source.slice(from, offset) + insertion;
    from = offset;
  }
  return text + source.slice(from);
}

/** At one place, what ends comes before what begins. */
function closing([, , text]: [offset: number, order: number, text: string]): number {
  return text === ")" ? 0 : 1;
}
