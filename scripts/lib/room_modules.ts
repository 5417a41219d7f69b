/**
 * Bundles the library into few modules: one for each room (a folder of `src/`), and one for each entry of the
 * package that re-exports its public names from the rooms.
 *
 * @module
 */

import { basename, dirname, join } from "node:path";
import { roomOf } from "../check_layers.ts";
import { ROOT } from "./gate.ts";
import { moduleGraph, type ModuleNode } from "./module_graph.ts";
import { run } from "./process.ts";
import type { BuildTools } from "./tools.ts";

/** What to bundle. */
export interface RoomModulesOptions {
  readonly tools: BuildTools;
  /** Subpath to source file, as in `deno.json`. */
  readonly entries: Readonly<Record<string, string>>;
  /** Packages that stay imports. Others are bundled. */
  readonly external: readonly string[];
  /**
   * Where the modules are written: `store.js` for the entry `./store`, `rooms/store.js` for the room `store`.
   */
  readonly outdir: string;
}

interface Metafile {
  readonly outputs: Readonly<Record<string, { readonly exports: readonly string[] }>>;
}

/** An import or re-export between bundled modules, as esbuild writes it. */
const IMPORT = /^(?:import|export) (?:\{([^}]*)\} from )?"([^"]+)";$/gm;
const BETWEEN_ROOMS = /(["'])(?:\.\.\/)+([a-z_]+)\/([\w/]+)\.ts\1/g;

/**
 * Writes the modules into `outdir`.
 *
 * @throws {Error} If esbuild fails, or two files of a room export the same name to other rooms.
 */
export async function bundleRooms(options: RoomModulesOptions): Promise<void> {
  const { tools, entries, external, outdir } = options;
  const files = Object.values(entries).map((path) => path.replace(/^\.\//, ""));
  const graph = await moduleGraph(ROOT, files);
  const temporary = await Deno.makeTempDir({ prefix: "listwatch-rooms-" });
  const packages = ["node:*", ...external.flatMap((name) => [name, `${name}/*`])];
  try {
    const rooms = sharedFiles(graph, new Set(files));
    const parts = dynamicParts(graph);
    const inputs = await Promise.all([...rooms].map(async ([room, paths]) => {
      const name = room.replaceAll("/", "-");
      const input = join(temporary, `${name}.ts`);
      const lines = [...paths].sort().map((path) => `export * from ${JSON.stringify(join(ROOT, path))};\n`);
      await Deno.writeTextFile(input, lines.join(""));
      return `rooms/${name}=${input}`;
    }));
    for (const path of parts) inputs.push(`rooms/${partName(path)}=${path}`);
    const names = await publicNames(tools, files, packages, temporary);
    // Chosen by file, not by folder: esbuild matches a pattern with the root's own path too, which may end in
    // a room's name.
    const between = [...parts, ...[...rooms.values()].flatMap((paths) => [...paths])]
      .map((path) => path.replace(/^src\//, "../")).flatMap((path) => [path, `../${path}`]);
    const meta = join(temporary, "rooms.json");
    await esbuild(tools, [
      ...inputs,
      `--outdir=${outdir}`,
      `--metafile=${meta}`,
      "--chunk-names=rooms/[name]-[hash]",
      ...[...packages, ...between].map((path) => `--external:${path}`),
    ]);
    const { outputs } = JSON.parse(await Deno.readTextFile(meta)) as Metafile;
    const exported = new Map<string, ReadonlySet<string>>();
    for (const [path, { exports }] of Object.entries(outputs)) exported.set(basename(path), new Set(exports));
    const owners = await joinRooms(join(outdir, "rooms"), exported, new Set(parts.map(partName)));
    await minifyModules(tools, [...exported.keys()].map((file) => join(outdir, "rooms", file)));
    for (const [subpath, path] of Object.entries(entries)) {
      const text = reexports(names.get(path.replace(/^\.\//, ""))!, owners, subpath);
      const module = join(outdir, entryModule(subpath));
      await Deno.mkdir(dirname(module), { recursive: true });
      await Deno.writeTextFile(module, text);
    }
  } finally {
    await Deno.remove(temporary, { recursive: true });
  }
}

/**
 * The module of an entry: `mod.js` for ".", `hono.js` for "./hono", `compat/fluent.js` for "./compat/fluent".
 */
export function entryModule(subpath: string): string {
  return `${subpath === "." ? "mod" : subpath.slice(2)}.js`;
}

/** The files of each room that other rooms or entries import. */
function sharedFiles(graph: readonly ModuleNode[], entries: ReadonlySet<string>): Map<string, Set<string>> {
  const rooms = new Map<string, Set<string>>();
  for (const { path, imports } of graph) {
    for (const { target, isTypeOnly, isDynamic } of imports) {
      const room = roomOf(target);
      if (room === undefined || isTypeOnly || isDynamic) continue;
      if (room === roomOf(path) && !entries.has(path)) continue;
      rooms.set(room, (rooms.get(room) ?? new Set()).add(target));
    }
  }
  return rooms;
}

/**
 * Files that are imported with `import()` from another room: modules of
 * their own, so that they are loaded late here too.
 */
function dynamicParts(graph: readonly ModuleNode[]): string[] {
  const found = new Set<string>();
  for (const { path, imports } of graph) {
    for (const { target, isDynamic } of imports) {
      if (isDynamic && roomOf(target) !== undefined && roomOf(target) !== roomOf(path)) found.add(target);
    }
  }
  return [...found].sort();
}

/** `node-kubeconfig` for `src/node/kubeconfig.ts`. */
function partName(path: string): string {
  return path.replace(/^src\//, "").replace(/\.ts$/, "").replaceAll("/", "-");
}

/** What each entry exports at run time. */
async function publicNames(
  tools: BuildTools,
  files: readonly string[],
  packages: readonly string[],
  temporary: string,
): Promise<Map<string, readonly string[]>> {
  const meta = join(temporary, "entries.json");
  await esbuild(tools, [
    ...files,
    `--outdir=${join(temporary, "entries")}`,
    `--metafile=${meta}`,
    ...packages.map((path) => `--external:${path}`),
  ]);
  const { outputs } = JSON.parse(await Deno.readTextFile(meta)) as {
    outputs: Record<string, { entryPoint?: string; exports: string[] }>;
  };
  return new Map(
    Object.values(outputs).flatMap(({ entryPoint, exports }) =>
      entryPoint === undefined ? [] : [[entryPoint, exports] as const]
    ),
  );
}

/**
 * Makes imports between rooms name the bundled modules; returns in which room each exported name is declared.
 */
async function joinRooms(
  dir: string,
  exported: ReadonlyMap<string, ReadonlySet<string>>,
  parts: ReadonlySet<string>,
): Promise<Map<string, string[]>> {
  const owners = new Map<string, string[]>();
  for (const [file, names] of exported) {
    const bundled = await Deno.readTextFile(join(dir, file));
    const text = bundled.replace(BETWEEN_ROOMS, (_, quote, room, path) => {
      const part = partName(`${room}/${path}`);
      return `${quote}./${parts.has(part) ? part : room}.js${quote}`;
    });
    const imported = new Set<string>();
    for (const [, list = "", specifier] of text.matchAll(IMPORT)) {
      if (!specifier.startsWith("./")) continue;
      for (const name of list.split(",").map((one) => one.trim().split(" as ")[0]).filter(Boolean)) {
        imported.add(name);
        if (exported.get(basename(specifier))?.has(name)) continue;
        throw new Error(
          `${file} imports ${name}, which ${specifier} does not export: two files of that room export this name`,
        );
      }
    }
    await Deno.writeTextFile(join(dir, file), text);
    for (const name of names) {
      if (!imported.has(name)) owners.set(name, [...owners.get(name) ?? [], file]);
    }
  }
  return owners;
}

/** Import and export statements, as esbuild prints them: whole lines. */
const STATEMENT = /^(?:import|export) (?:(?:[\w$]+|\{[^}]*\}|\* as [\w$]+)(?: from)? ?)?(?:"[^"\n]+")?;\n/gm;

/**
 * Minifies modules, and keeps the names that stack traces, `error.name` and other modules
 * show: those of functions, classes and methods. esbuild renames what is at the top of a
 * module, but not of a script, which is what remains without imports and exports. Lines are
 * short enough for a position in a stack trace to be found.
 *
 * @throws {Error} If there is a statement of a form that is not known here, or what is imported twice is
 * exported.
 */
async function minifyModules(tools: BuildTools, files: readonly string[]): Promise<void> {
  await Promise.all(files.map(async (file) => {
    const text = await Deno.readTextFile(file);
    const statements = text.match(STATEMENT) ?? [];
    const script = text.replace(STATEMENT, "");
    const unknown = /^(?:import|export)\b(?! *\().*$/m.exec(script);
    if (unknown !== null) throw new Error(`${file}: cannot minify a module with the statement ${unknown[0]}`);
    const exports = statements.filter((statement) => statement.startsWith("export"));
    const imports = joinedImports(statements.filter((statement) => statement.startsWith("import")));
    for (const [other, name] of imports.repeated) {
      if (!exports.some((statement) => statement.match(/[\w$]+/g)?.includes(other))) continue;
      throw new Error(`${file}: cannot export ${other}, which is another name of ${name}`);
    }
    const input = `${file}.script.js`;
    await Deno.writeTextFile(input, `"use strict";\n${script}`);
    const options = [
      "--minify",
      "--line-limit=500",
      "--target=es2024",
      "--charset=utf8",
      "--log-level=warning",
      ...imports.repeated.map(([other, name]) => `--define:${other}=${name}`),
    ];
    const result = await run(tools.esbuild, [input, ...options], { cwd: ROOT });
    if (result.code !== 0) throw new Error(`esbuild cannot minify ${file}:\n${result.output}`);
    const body = result.stdout.replace(/^"use strict";/, ""); // modules are strict by themselves
    await Deno.writeTextFile(file, `${imports.text}${body}${oneLineEach(exports)}`);
    await Deno.remove(input);
  }));
}

/** The imports of a module, each name once. */
interface JoinedImports {
  readonly text: string;
  /**
   * The further local names of what is imported already, each with the first one, which takes its place. No
   * name inside a function is in the way: esbuild gives those other names than the ones at the top.
   */
  readonly repeated: readonly (readonly [other: string, name: string])[];
}

/** Makes one statement for each module, in the order in which they were; esbuild prints one for each file. */
function joinedImports(statements: readonly string[]): JoinedImports {
  const modules = new Map<string, Map<string, string>>();
  const others: string[] = [];
  const repeated: [string, string][] = [];
  for (const statement of statements) {
    const [, list, specifier] = /^import \{([^}]*)\} from ("[^"]+");/.exec(statement) ?? [];
    if (specifier === undefined) {
      others.push(statement);
      continue;
    }
    const locals = modules.get(specifier) ?? new Map<string, string>();
    modules.set(specifier, locals);
    for (const one of list.split(",").map((name) => name.trim()).filter(Boolean)) {
      const [name, local = name] = one.split(" as ");
      const first = locals.get(name);
      if (first === undefined) locals.set(name, local);
      else repeated.push([local, first]);
    }
  }
  const joined = Array.from(modules, ([specifier, locals]) => {
    const names = Array.from(locals, ([name, local]) => name === local ? name : `${name} as ${local}`);
    return `import{${names.join(",")}}from${specifier};\n`;
  });
  return { text: oneLineEach(others) + joined.join(""), repeated };
}

function oneLineEach(statements: readonly string[]): string {
  return statements.map((statement) => `${statement.replace(/\s+/g, " ").trim()}\n`).join("");
}

/** The text of an entry's module. */
function reexports(
  names: readonly string[],
  owners: ReadonlyMap<string, readonly string[]>,
  subpath: string,
): string {
  const byRoom = new Map<string, string[]>();
  for (const name of names) {
    const files = owners.get(name) ?? [];
    if (files.length !== 1) {
      throw new Error(`${subpath} exports ${name}, which is declared in ${files.join(" and ") || "no room"}`);
    }
    byRoom.set(files[0], [...byRoom.get(files[0]) ?? [], name]);
  }
  const toRooms = `${"../".repeat(entryModule(subpath).split("/").length - 1) || "./"}rooms`;
  return [...byRoom].sort().map(([file, names]) =>
    `export {\n${names.map((name) => `  ${name},\n`).join("")}} from "${toRooms}/${file}";\n`
  ).join("");
}

async function esbuild(tools: BuildTools, args: string[]): Promise<void> {
  const result = await run(tools.esbuild, [
    ...args,
    "--bundle",
    "--splitting",
    "--format=esm",
    "--platform=neutral",
    "--main-fields=module,main",
    "--target=es2024",
    "--charset=utf8",
    "--tsconfig-raw={}",
    "--log-level=warning",
  ], { cwd: ROOT, env: { NODE_PATH: join(tools.dir, "node_modules") } });
  if (result.code !== 0) throw new Error(`esbuild cannot bundle the package:\n${result.output}`);
}
