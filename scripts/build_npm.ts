/**
 * `deno task build:npm`: builds the npm package into `npm/dist` and checks it.
 *
 * - `lib/` holds the code: esbuild bundles one module for each room, and one for each entry that re-exports
 *   its public names. An import of a few modules takes a fraction of the time of 100 and more source files.
 *   The code is minified, but for the names of functions, classes and methods, so that a stack trace can be
 *   read; source maps would double the size of the package. Doc comments are in the declarations only.
 * - The part of zod that the schemas use is bundled, for the same reason: it would be
 *   80 modules more. Schemas of users are called through Standard Schema, so a second
 *   copy of zod beside the user's does no harm.
 * - `types/` holds the declarations that the entries reach, written by `deno pack`.
 * - `examples/` holds the examples, and `README.md` links to what is packed, or to the repository.
 * - `package.json` is made from `deno.json` and `npm_package.ts`.
 *
 * Works from a dirty tree.
 *
 * @module
 */

import { dirname, join } from "node:path";
import { ROOT } from "./lib/gate.ts";
import { run, runDeno } from "./lib/process.ts";
import { bundleRooms, entryModule } from "./lib/room_modules.ts";
import { linkedReadme } from "./lib/npm_readme.ts";
import { taskOptions, usage } from "./lib/task_usage.ts";
import { type BuildTools, installBuildTools } from "./lib/tools.ts";
import { BIN_SOURCE, BUNDLED, NPM_PACKAGE } from "./npm_package.ts";

/** Where the package is built. */
export const NPM_DIST: string = join(ROOT, "npm", "dist");

/** A `package.json`, as far as this script reads or writes it. */
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

/** What `deno.json` says of the package. */
interface DenoJson {
  readonly exports: Readonly<Record<string, string>>;
}

/** Options of {@linkcode buildNpm}. */
export interface BuildNpmOptions {
  /** The repository's page, for links in README and for `package.json`: `https://host/owner/name`. */
  readonly repository?: string | undefined;
}

/**
 * Builds into `npm/dist`, replacing an earlier build.
 *
 * @throws {Error} If `deno pack` or esbuild fails.
 */
export async function buildNpm({ repository }: BuildNpmOptions = {}): Promise<PackageJson> {
  const tools = await installBuildTools();
  const temporary = await Deno.makeTempDir({ prefix: "listwatch-npm-" });
  try {
    const { exports }: DenoJson = JSON.parse(await Deno.readTextFile(join(ROOT, "deno.json")));
    const packed = await pack(temporary);
    const dist = join(temporary, "dist");
    await Deno.mkdir(join(dist, "bin"), { recursive: true });
    await bundleEntries(tools, exports, join(dist, "lib"));
    await copyDeclarations(packed, join(dist, "types"), Object.values(exports));
    await Deno.copyFile(join(ROOT, "LICENSE"), join(dist, "LICENSE"));
    await copyTree(join(ROOT, "examples"), join(dist, "examples"));
    for (const folder of ["", "examples/edge"]) {
      const path = join(folder, "README.md");
      const text = await Deno.readTextFile(join(ROOT, path));
      await Deno.writeTextFile(join(dist, path), linkedReadme(text, NPM_PACKAGE.files, repository, folder));
    }
    await Deno.writeTextFile(join(dist, BUNDLED.notice), await thirdPartyNotice(tools));
    for (const path of Object.values(NPM_PACKAGE.bin)) {
      await Deno.writeTextFile(join(dist, path), BIN_SOURCE, { mode: 0o755 });
    }
    const manifest = mergeMetadata(
      JSON.parse(await Deno.readTextFile(join(packed, "package.json"))) as PackageJson,
      exports,
      repository,
    );
    await Deno.writeTextFile(join(dist, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);

    await Deno.remove(NPM_DIST, { recursive: true }).catch(() => {});
    await copyTree(dist, NPM_DIST);
    return manifest;
  } finally {
    await Deno.remove(temporary, { recursive: true });
  }
}

/**
 * Runs `deno pack`, for its declarations and the versions of the dependencies; returns the unpacked folder.
 */
async function pack(temporary: string): Promise<string> {
  const tarball = join(temporary, "package.tgz");
  const pack = await runDeno(["pack", "--allow-dirty", "--output", tarball]);
  if (pack.code !== 0) throw new Error(`deno pack failed:\n${pack.output}`);
  const unpack = await run("tar", ["-xzf", tarball, "-C", temporary]);
  if (unpack.code !== 0) throw new Error(`tar failed:\n${unpack.output}`);
  return join(temporary, "package");
}

/** Writes the code into `outdir`. */
export async function bundleEntries(
  tools: BuildTools,
  entries: DenoJson["exports"],
  outdir: string,
): Promise<void> {
  const external = [...NPM_PACKAGE.dependencies, ...NPM_PACKAGE.optionalPeers];
  await bundleRooms({ tools, entries, external, outdir });
}

/** Where an entry's declarations and code are in the package. */
function targetsOf(subpath: string, path: string): { types: string; default: string } {
  return {
    types: declarationOf(`./types/${path.replace(/^\.\//, "")}`),
    default: `./lib/${entryModule(subpath)}`,
  };
}

/** The `exports` of `package.json`, from those of `deno.json`. */
export function packageExports(
  entries: DenoJson["exports"],
): Record<string, { types: string; default: string }> {
  return Object.fromEntries(
    Object.entries(entries).map(([subpath, path]) => [subpath, targetsOf(subpath, path)]),
  );
}

const DOC_COMMENT = /\/\*\*[\s\S]*?\*\//g;
/** The line for the documentation's table of contents, and the empty line before it. */
const CATEGORY = /^[ \t]*\*\n[ \t]*\* @category .*\n/gm;
/** An example, which the documentation shows: all of them together would be a tenth of the declarations. */
const EXAMPLE = /^[ \t]*\*\n[ \t]*\* @example\n(?:[ \t]*\*(?!\/| @).*\n)*/gm;
/** What begins a further line of a doc comment, but not its last one. */
const MARGIN = /^[ \t]*\*(?!\/) ?/gm;

/**
 * Shortens a declaration file by what no editor shows: the margin of doc comments; and what is indented, by
 * tabs.
 */
function shortened(source: string): string {
  const indented = source.replace(/^(?: {2})+/gm, (spaces) => "\t".repeat(spaces.length / 2));
  return indented.replace(
    DOC_COMMENT,
    (comment) => comment.replace(CATEGORY, "").replace(MARGIN, ""),
  );
}

/** Copies the declarations that the entries reach. */
async function copyDeclarations(packed: string, outdir: string, entries: string[]): Promise<void> {
  const documented = await documentedNames(entries.map((path) => declarationOf(join(packed, path))));
  const shown = await documentedNames([declarationOf(join(packed, entries[0]))]);
  const waiting = entries.map((path) => declarationOf(join(packed, path)));
  const found = new Set(waiting);
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    const source = await Deno.readTextFile(path);
    const output = join(outdir, path.slice(packed.length));
    await Deno.mkdir(dirname(output), { recursive: true });
    await Deno.writeTextFile(output, shortened(withoutDocsOfOthers(source, { documented, shown })));
    for (const specifier of specifiersOf(source)) {
      if (!specifier.startsWith(".")) continue;
      const next = declarationOf(join(dirname(path), specifier));
      if (!found.has(next)) waiting.push(next);
      found.add(next);
    }
  }
}

/** The names that entries export, whose documentation editors show. */
async function documentedNames(entries: readonly string[]): Promise<ReadonlySet<string>> {
  const names = new Set<string>();
  for (const entry of entries) {
    const source = withoutDocComments(await Deno.readTextFile(entry));
    for (const [, list] of source.matchAll(/^export (?:type )?\{([^}]*)\}/gm)) {
      for (const one of list.split(",")) names.add(one.replace(/^\s*type /, "").trim().split(" as ")[0]);
    }
  }
  return names;
}

/** The declarations of a file, the first one with what is before it. */
const DECLARATION =
  /(?:\/\*\*(?:(?!\*\/)[\s\S])*\*\/ )?export (?:declare )?(?:abstract )?(?:const|enum|function|class|interface|type|let) ([\w$]+)[\s\S]*?(?=^(?:\/\*\*|export |declare |interface |type |import )|(?![\s\S]))/gm;

/**
 * A file of declarations with the documentation of what entries export, and with the examples of what the
 * main one exports.
 */
export function withoutDocsOfOthers(
  source: string,
  names: { readonly documented: ReadonlySet<string>; readonly shown: ReadonlySet<string> },
): string {
  let result = "";
  let end = 0;
  for (const { 0: declaration, 1: name, index } of source.matchAll(DECLARATION)) {
    result += withoutExamples(source.slice(end, index));
    if (names.shown.has(name)) result += declaration;
    else if (names.documented.has(name)) result += withoutExamples(declaration);
    else result += withoutDocComments(declaration);
    end = index + declaration.length;
  }
  return result + withoutExamples(source.slice(end));
}

function withoutExamples(source: string): string {
  return source.replace(DOC_COMMENT, (comment) => comment.replace(EXAMPLE, ""));
}

function withoutDocComments(source: string): string {
  return source.replace(/\/\*\*[\s\S]*?\*\/ ?/g, "");
}

/** `mod.d.ts` of `./mod.ts` or `./mod.js`. */
function declarationOf(path: string): string {
  return path.replace(/\.[jt]s$/, ".d.ts");
}

/** Specifiers of imports, exports, `import()` and `import("...")` types, without those in comments. */
export function specifiersOf(source: string): string[] {
  const code = source.replace(/\/\*[\s\S]*?\*\//g, "").replace(/^\s*\/\/.*$/gm, "");
  const found: string[] = [];
  // A text may end with "from": between the keyword and the specifier are names only.
  const names = /\b(?:import|export)\b[\w$*{},\s]*?\bfrom\s*|\bimport\s*\(\s*|^\s*import\s*/.source;
  for (const match of code.matchAll(new RegExp(`(?:${names})(["'])([^"'\\n]+)\\1`, "gm"))) {
    found.push(match[2]);
  }
  return found;
}

/** The licenses of the packages that are bundled. */
async function thirdPartyNotice(tools: BuildTools): Promise<string> {
  const parts = await Promise.all(BUNDLED.packages.map(async (name) => {
    const dir = join(tools.dir, "node_modules", name);
    const { version } = JSON.parse(await Deno.readTextFile(join(dir, "package.json"))) as PackageJson;
    return `## ${name} ${version}\n\n${(await Deno.readTextFile(join(dir, "LICENSE"))).trim()}\n`;
  }));
  return `# Third-party code\n\nThe modules in lib/ contain parts of these packages.\n\n${parts.join("\n")}`;
}

/** The `package.json` to publish, from the one that `deno pack` wrote and the entries of `deno.json`. */
export function mergeMetadata(
  packed: PackageJson,
  entries: DenoJson["exports"],
  repository?: string,
): PackageJson {
  const { name, version, type, license, dependencies = {} } = packed;
  const exports = packageExports(entries);
  const split = (wanted: string[]) =>
    Object.fromEntries(
      wanted.filter((name) => dependencies[name] !== undefined).map((name) => [name, dependencies[name]]),
    );
  const known = [...NPM_PACKAGE.dependencies, ...NPM_PACKAGE.optionalPeers, ...BUNDLED.packages];
  const unknown = Object.keys(dependencies).filter((name) => !known.includes(name));
  if (unknown.length > 0) {
    throw new Error(
      `src/ imports ${
        unknown.join(", ")
      }: scripts/npm_package.ts must list it as a dependency, a peer or bundled`,
    );
  }
  const peers = split(NPM_PACKAGE.optionalPeers);
  return {
    name,
    version,
    description: NPM_PACKAGE.description,
    keywords: NPM_PACKAGE.keywords,
    license,
    ...(repository && {
      repository: { type: "git", url: `git+${repository}.git` },
      homepage: `${repository}#readme`,
      bugs: `${repository}/issues`,
    }),
    type,
    sideEffects: NPM_PACKAGE.sideEffects,
    engines: NPM_PACKAGE.engines,
    main: exports["."].default,
    types: exports["."].types,
    exports: { ...exports, "./package.json": "./package.json" },
    bin: NPM_PACKAGE.bin,
    files: NPM_PACKAGE.files,
    dependencies: split(NPM_PACKAGE.dependencies),
    peerDependencies: peers,
    peerDependenciesMeta: Object.fromEntries(Object.keys(peers).map((name) => [name, { optional: true }])),
  };
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

const USAGE = usage({
  task: "build:npm",
  does: "Builds the npm package into npm/dist and checks it. Installs esbuild and zod, and no runtimes.",
  options: {
    "--check": "check it as its consumers do, too; installs what deno task test installs",
    "--repository URL": "the repository's page, for the links of README and package.json",
  },
});

if (import.meta.main) {
  const { check, repository } = taskOptions(USAGE, {
    check: { type: "boolean", default: false },
    repository: { type: "string" },
  });
  const { name, version } = await buildNpm({ repository });
  console.log(`built ${name} ${version} into npm/dist`);
  const args = ["run", "-A", "npm/check.ts", ...(check ? [] : ["--quick"])];
  const { code } = await runDeno(args, { echo: true });
  Deno.exit(code);
}
