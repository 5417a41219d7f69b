/**
 * `deno task build:npm`: builds the npm package into `npm/dist` and checks it.
 *
 * `deno pack` transpiles, writes the declarations and rewrites specifiers; this script unpacks what it made, adds the
 * metadata of `npm_package.ts`, moves hono to the optional peers, writes the `listwatch` command, and turns inline
 * source maps (which hold this machine's paths) into files beside the modules.
 *
 * Works from a dirty tree. `--no-check` leaves out `npm/check.ts`.
 *
 * @module
 */

import { basename, join } from "node:path";
import { ROOT } from "./lib/gate.ts";
import { sourceFiles } from "./lib/module_graph.ts";
import { run, runDeno } from "./lib/process.ts";
import { BIN_SOURCE, NPM_PACKAGE } from "./npm_package.ts";

/** Where the package is built. */
export const NPM_DIST: string = join(ROOT, "npm", "dist");

/** A `package.json`, as far as this script touches it. */
export interface PackageJson {
  name: string;
  version: string;
  type: string;
  license: string;
  main: string;
  types: string;
  exports: Record<string, string | { types: string; import?: string; default: string }>;
  dependencies?: Record<string, string>;
  [field: string]: unknown;
}

/**
 * Builds into `npm/dist`, replacing what was there.
 *
 * @throws {Error} If `deno pack` fails or its result is not what this script knows how to finish.
 */
export async function buildNpm(): Promise<PackageJson> {
  const temporary = await Deno.makeTempDir({ prefix: "listwatch-npm-" });
  try {
    const tarball = join(temporary, "package.tgz");
    const pack = await runDeno(["pack", "--allow-dirty", "--output", tarball]);
    if (pack.code !== 0) throw new Error(`deno pack failed:\n${pack.output}`);
    const unpack = await run("tar", ["-xzf", tarball, "-C", temporary]);
    if (unpack.code !== 0) throw new Error(`tar failed:\n${unpack.output}`);
    const dir = join(temporary, "package");

    for (const path of await sourceFiles(dir, ".")) {
      // Modules that no entry reaches (the main module of a command, for one) come along as they are.
      if (!path.endsWith(".d.ts")) await Deno.remove(join(dir, path));
    }
    for (const path of await sourceFiles(dir, ".", [".js"])) await splitSourceMap(join(dir, path));
    await Deno.mkdir(join(dir, "bin"));
    for (const path of Object.values(NPM_PACKAGE.bin)) {
      await Deno.writeTextFile(join(dir, path), BIN_SOURCE, { mode: 0o755 });
    }

    const packed = JSON.parse(await Deno.readTextFile(join(dir, "package.json"))) as PackageJson;
    const merged = mergeMetadata(packed);
    await Deno.writeTextFile(join(dir, "package.json"), `${JSON.stringify(merged, null, 2)}\n`);

    await Deno.remove(NPM_DIST, { recursive: true }).catch(() => {});
    await Deno.mkdir(join(ROOT, "npm"), { recursive: true });
    await copyTree(dir, NPM_DIST);
    return merged;
  } finally {
    await Deno.remove(temporary, { recursive: true });
  }
}

/** The `package.json` to publish, from the one that `deno pack` wrote. */
export function mergeMetadata(packed: PackageJson): PackageJson {
  const { name, version, type, license, main, types, exports, dependencies = {} } = packed;
  const conditions = Object.entries(exports).map(([subpath, target]) => {
    if (typeof target === "string") return [subpath, target] as const;
    return [subpath, { types: target.types, default: target.default }] as const;
  });
  const split = (wanted: string[]) =>
    Object.fromEntries(
      wanted.filter((name) => dependencies[name] !== undefined).map((name) => [name, dependencies[name]]),
    );
  const known = [...NPM_PACKAGE.dependencies, ...NPM_PACKAGE.optionalPeers];
  const unknown = Object.keys(dependencies).filter((name) => !known.includes(name));
  if (unknown.length > 0) {
    throw new Error(
      `src/ imports ${unknown.join(", ")}: say in scripts/npm_package.ts what npm is to do with it`,
    );
  }
  const peers = split(NPM_PACKAGE.optionalPeers);
  return {
    name,
    version,
    description: NPM_PACKAGE.description,
    keywords: NPM_PACKAGE.keywords,
    license,
    type,
    sideEffects: NPM_PACKAGE.sideEffects,
    engines: NPM_PACKAGE.engines,
    main,
    types,
    exports: { ...Object.fromEntries(conditions), "./package.json": "./package.json" },
    bin: NPM_PACKAGE.bin,
    files: NPM_PACKAGE.files,
    dependencies: split(NPM_PACKAGE.dependencies),
    peerDependencies: peers,
    peerDependenciesMeta: Object.fromEntries(Object.keys(peers).map((name) => [name, { optional: true }])),
  };
}

/** Moves an inline source map into a file beside the module and makes its source a relative name. */
async function splitSourceMap(path: string): Promise<void> {
  const source = await Deno.readTextFile(path);
  const match = /\n?\/\/# sourceMappingURL=data:application\/json;base64,([A-Za-z0-9+/=]+)\s*$/.exec(source);
  if (match === null) return;
  const map = JSON.parse(new TextDecoder().decode(Uint8Array.fromBase64(match[1]))) as Record<
    string,
    unknown
  >;
  const name = basename(path);
  map.file = name;
  map.sources = [name.replace(/\.js$/, ".ts")];
  await Deno.writeTextFile(`${path}.map`, JSON.stringify(map));
  await Deno.writeTextFile(path, `${source.slice(0, match.index)}\n//# sourceMappingURL=${name}.map\n`);
}

/** Copies a folder with everything in it. */
export async function copyTree(from: string, to: string): Promise<void> {
  await Deno.mkdir(to, { recursive: true });
  for await (const entry of Deno.readDir(from)) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isDirectory) await copyTree(source, target);
    else await Deno.copyFile(source, target);
  }
}

if (import.meta.main) {
  const { name, version } = await buildNpm();
  console.log(`built ${name} ${version} into npm/dist`);
  if (!Deno.args.includes("--no-check")) {
    const { code } = await runDeno(["run", "-A", "npm/check.ts"], { echo: true });
    Deno.exit(code);
  }
}
