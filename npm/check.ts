/**
 * Asserts what `deno task build:npm` left in `npm/dist`: that its metadata is complete, that every
 * entry and every type resolves, that nothing of Deno is left in it, and that consumers of any
 * kind get along with it (publint, are-the-types-wrong, TypeScript in the strictest setting).
 * `--quick` leaves out the last, which needs all tools.
 *
 * @module
 */

import { dirname, join } from "node:path";
import { copyTree, NPM_DIST, type PackageJson, specifiersOf } from "../scripts/build_npm.ts";
import { sourceFiles } from "../scripts/lib/module_graph.ts";
import { relativeLinks } from "../scripts/lib/npm_readme.ts";
import { run } from "../scripts/lib/process.ts";
import { installTools } from "../scripts/lib/tools.ts";
import { NPM_PACKAGE } from "../scripts/npm_package.ts";
import { taskOptions, usage } from "../scripts/lib/task_usage.ts";

/**
 * What the package may weigh on the user's disk: 0.9 MB of code (0.33 MB of it `./hono` and `./cli`: the
 * printers of 61 kinds, the page of `serve`), 0.55 MB of declarations (three quarters of it
 * documentation), 0.05 MB of README and examples.
 */
const MAX_UNPACKED_BYTES = 1_500_000;
/** Entries for particular runtimes; the others run on every runtime, without modules of Node. */
const RUNTIME_ENTRIES = new Set([
  "./node",
  "./cli",
  "./compat/client-node",
  "./compat/fluent",
  "./compat/gardener",
]);

const { quick } = taskOptions(
  usage({
    script: "npm/check.ts",
    does: "Checks the npm package in npm/dist.",
    options: { "--quick": "not with TypeScript, publint and are-the-types-wrong" },
  }),
  { quick: { type: "boolean", default: false } },
);
const problems: string[] = [];
const manifest = JSON.parse(await Deno.readTextFile(join(NPM_DIST, "package.json"))) as PackageJson;
const files = new Set([
  ...await sourceFiles(NPM_DIST, ".", [""]),
].map((path) => path.replace(/^\.\//, "")));

checkMetadata();
await checkEntries();
await checkModules();
await checkLinks();
if (!quick) await checkConsumers();
const unpacked = await checkSize();

for (const problem of problems) console.error(`npm/dist: ${problem}`);
console.log(
  problems.length === 0
    ? `npm/dist: ${files.size} files, ${Object.keys(manifest.exports).length} exports, ${
      Math.round(unpacked / 1000)
    } KB unpacked, no problems`
    : `npm/dist: ${problems.length} problem${problems.length === 1 ? "" : "s"}`,
);
Deno.exit(problems.length === 0 ? 0 : 1);

/** The fields that npm, bundlers and readers of the registry's page need. */
function checkMetadata(): void {
  const expectSame = (what: string, actual: unknown, expected: unknown) => {
    if (JSON.stringify(actual) !== JSON.stringify(expected)) {
      problems.push(
        `package.json: ${what} is ${JSON.stringify(actual)}, expected ${JSON.stringify(expected)}`,
      );
    }
  };
  expectSame("type", manifest.type, "module");
  expectSame("license", manifest.license, "MIT");
  expectSame("sideEffects", manifest.sideEffects, false);
  expectSame("engines", manifest.engines, NPM_PACKAGE.engines);
  expectSame("the names of dependencies", Object.keys(manifest.dependencies ?? {}), NPM_PACKAGE.dependencies);
  expectSame("the names of peers", Object.keys(manifest.peerDependencies ?? {}), NPM_PACKAGE.optionalPeers);
  expectSame(
    "peerDependenciesMeta",
    manifest.peerDependenciesMeta,
    Object.fromEntries(NPM_PACKAGE.optionalPeers.map((name) => [name, { optional: true }])),
  );
  for (const field of ["name", "version", "description", "keywords", "main", "types"]) {
    if (!manifest[field]) problems.push(`package.json: has no ${field}`);
  }
}

/**
 * Every export has its files, `types` first and no condition that
 * JSR could not express; every command runs Node.
 */
async function checkEntries(): Promise<void> {
  const mustExist = (what: string, path: string) => {
    if (!files.has(path.replace(/^\.\//, ""))) problems.push(`${what}: there is no ${path}`);
  };
  for (const [subpath, target] of Object.entries(manifest.exports)) {
    if (typeof target === "string") {
      mustExist(subpath, target);
      continue;
    }
    if (Object.keys(target).join() !== "types,default") {
      problems.push(
        `${subpath}: its conditions are ${Object.keys(target).join(", ")}, expected types, default`,
      );
    }
    for (const path of Object.values(target)) mustExist(subpath, path);
  }
  for (const [name, path] of Object.entries(NPM_PACKAGE.bin)) {
    mustExist(`the command ${name}`, path);
    const source = await Deno.readTextFile(join(NPM_DIST, path)).catch(() => "");
    if (!/^#!\/usr\/bin\/env -S (?:\w+=\w+ )*node [^\n]+\n/.test(source)) {
      problems.push(`${path}: does not start with Node's #! line`);
    }
  }
}

/**
 * Imports of every module and every declaration lead somewhere; the
 * entries for every runtime use nothing of one.
 */
async function checkModules(): Promise<void> {
  const packages = new Set([...NPM_PACKAGE.dependencies, ...NPM_PACKAGE.optionalPeers]);
  const imports = new Map<string, string[]>();
  for (const path of files) {
    if (path.startsWith("examples/")) continue;
    if (path.endsWith(".ts") && !path.endsWith(".d.ts")) problems.push(`${path}: a source file was packed`);
    if (!path.endsWith(".js") && !path.endsWith(".d.ts")) continue;
    const source = await Deno.readTextFile(join(NPM_DIST, path));
    const specifiers = specifiersOf(source);
    imports.set(path, specifiers);
    for (const specifier of specifiers) {
      const problem = wrongSpecifier(path, specifier, packages);
      if (problem !== undefined) problems.push(`${path}: imports ${JSON.stringify(specifier)}, ${problem}`);
    }
    const code = source.replace(/\/\*[\s\S]*?\*\//g, "").replace(/^\s*\/\/.*$/gm, "");
    if (/sourceMappingURL=/.test(source)) problems.push(`${path}: names a source map`);
    if (/file:\/\/\/|node_modules\//.test(code)) problems.push(`${path}: names a file of this machine`);
  }
  for (const [subpath, target] of Object.entries(manifest.exports)) {
    if (typeof target === "string" || RUNTIME_ENTRIES.has(subpath)) continue;
    for (const path of reachedFrom(target.default.slice(2), imports)) {
      const foreign = imports.get(path)!.find((specifier) => /^(node|cloudflare):/.test(specifier));
      if (foreign !== undefined) problems.push(`${subpath}: reaches ${path}, which imports ${foreign}`);
      const code = (await Deno.readTextFile(join(NPM_DIST, path))).replace(/\/\*[\s\S]*?\*\//g, "")
        .replace(/^\s*\/\/.*$/gm, "");
      if (/\bDeno\s*\./.test(code)) problems.push(`${subpath}: reaches ${path}, which uses Deno`);
    }
  }
}

/** The modules that a module imports, and those that they import, with itself. */
function reachedFrom(entry: string, imports: ReadonlyMap<string, readonly string[]>): Set<string> {
  const reached = new Set([entry]);
  for (const path of reached) {
    for (const specifier of imports.get(path) ?? []) {
      if (specifier.startsWith(".")) reached.add(join(dirname(path), specifier).replaceAll("\\", "/"));
    }
  }
  return reached;
}

function wrongSpecifier(path: string, specifier: string, packages: Set<string>): string | undefined {
  if (specifier.startsWith(".")) {
    const target = join(dirname(path), specifier).replaceAll("\\", "/");
    if (!target.endsWith(".js")) return "which does not end with .js";
    const wanted = path.endsWith(".d.ts") ? target.replace(/\.js$/, ".d.ts") : target;
    return files.has(wanted) ? undefined : `but there is no ${wanted}`;
  }
  if (/^(npm|jsr|https?):/.test(specifier)) return "which npm cannot resolve";
  if (/^(node|cloudflare):/.test(specifier)) return undefined;
  const name = /^(@[^/]+\/)?[^/]+/.exec(specifier)![0];
  return packages.has(name) ? undefined : "which package.json does not name";
}

/** The links of Markdown files lead to what is packed, or are whole URLs. */
async function checkLinks(): Promise<void> {
  for (const path of [...files].filter((path) => path.endsWith(".md"))) {
    for (const target of relativeLinks(await Deno.readTextFile(join(NPM_DIST, path)))) {
      const linked = join(dirname(path), target.split("#")[0]).replaceAll("\\", "/");
      if (!files.has(linked)) problems.push(`${path}: links to ${target}, which is not packed`);
    }
  }
  if (![...files].some((path) => path.startsWith("examples/"))) problems.push("there are no examples");
}

/** The size on the user's disk. */
async function checkSize(): Promise<number> {
  const sizes = await Promise.all(
    [...files].map(async (path) => (await Deno.stat(join(NPM_DIST, path))).size),
  );
  const total = sizes.reduce((sum, size) => sum + size, 0);
  if (total > MAX_UNPACKED_BYTES) {
    problems.push(`${total} bytes unpacked, more than ${MAX_UNPACKED_BYTES}`);
  }
  return total;
}

/** Installs the built package beside its dependencies and looks at it as its consumers do. */
async function checkConsumers(): Promise<void> {
  const tools = await installTools();
  const installed = join(tools.dir, "node_modules", "@listwatch", "cache");
  await Deno.remove(installed, { recursive: true }).catch(() => {});
  await copyTree(NPM_DIST, installed);
  const consumer = await run(tools.node, [join(tools.dir, "check_package.mjs"), installed], {
    cwd: tools.dir,
  });
  if (consumer.code !== 0) problems.push(...consumer.output.trim().split("\n"));
  for (const [name, path] of Object.entries(NPM_PACKAGE.bin)) {
    const version = await run(tools.node, [join(installed, path), "version"], { timeoutMs: 60_000 });
    if (version.code !== 0 || !version.stdout.includes(manifest.version)) {
      problems.push(`${name} version: code ${version.code}, says ${JSON.stringify(version.output.trim())}`);
    }
  }
}
