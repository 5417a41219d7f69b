/**
 * Asserts what `deno task build:npm` left in `npm/dist`: that its metadata is complete, that every entry and every
 * type resolves, that nothing of Deno is left in it, and that consumers of any kind get along with it (publint,
 * are-the-types-wrong, TypeScript in the strictest setting).
 *
 * @module
 */

import { dirname, join } from "node:path";
import { copyTree, NPM_DIST, type PackageJson } from "../scripts/build_npm.ts";
import { sourceFiles } from "../scripts/lib/module_graph.ts";
import { run } from "../scripts/lib/process.ts";
import { installTools } from "../scripts/lib/tools.ts";
import { NPM_PACKAGE } from "../scripts/npm_package.ts";

const problems: string[] = [];
const manifest = JSON.parse(await Deno.readTextFile(join(NPM_DIST, "package.json"))) as PackageJson;
const files = new Set([
  ...await sourceFiles(NPM_DIST, ".", [".js", ".d.ts", ".ts", ".json", ".map", ".md"]),
].map((path) => path.replace(/^\.\//, "")));

checkMetadata();
await checkEntries();
await checkModules();
await checkConsumers();

for (const problem of problems) console.error(`npm/dist: ${problem}`);
console.log(
  problems.length === 0
    ? `npm/dist: ${files.size} files, ${Object.keys(manifest.exports).length} exports, no problems`
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

/** Every export has its files, `types` first and no condition that JSR could not express; every command runs Node. */
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
    if (!source.startsWith("#!/usr/bin/env node\n")) {
      problems.push(`${path}: does not start with Node's #! line`);
    }
  }
}

/** Specifiers of imports, exports, `import()` and `import("...")` types, without those in comments. */
function specifiersOf(source: string): string[] {
  const code = source.replace(/\/\*[\s\S]*?\*\//g, "").replace(/^\s*\/\/.*$/gm, "");
  const found: string[] = [];
  for (const match of code.matchAll(/(?:\bfrom\s*|\bimport\s*\(\s*|^\s*import\s*)(["'])([^"'\n]+)\1/gm)) {
    found.push(match[2]);
  }
  return found;
}

/** Imports of every module and every declaration lead somewhere; the core holds nothing of one runtime. */
async function checkModules(): Promise<void> {
  const packages = new Set([...NPM_PACKAGE.dependencies, ...NPM_PACKAGE.optionalPeers]);
  for (const path of files) {
    if (path.endsWith(".ts") && !path.endsWith(".d.ts")) problems.push(`${path}: a source file was packed`);
    if (!path.endsWith(".js") && !path.endsWith(".d.ts")) continue;
    const source = await Deno.readTextFile(join(NPM_DIST, path));
    for (const specifier of specifiersOf(source)) {
      const problem = wrongSpecifier(path, specifier, packages);
      if (problem !== undefined) problems.push(`${path}: imports ${JSON.stringify(specifier)}, ${problem}`);
    }
    const isAdapter = /^(src\/(node|cli)|bin)\//.test(path);
    const code = source.replace(/\/\*[\s\S]*?\*\//g, "").replace(/^\s*\/\/.*$/gm, "");
    if (path.endsWith(".js") && !isAdapter && /\bDeno\s*\./.test(code)) problems.push(`${path}: uses Deno`);
    if (/sourceMappingURL=data:/.test(source)) problems.push(`${path}: has an inline source map`);
    if (/file:\/\/\//.test(code)) problems.push(`${path}: names a file of this machine`);
  }
}

function wrongSpecifier(path: string, specifier: string, packages: Set<string>): string | undefined {
  if (specifier.startsWith(".")) {
    const target = join(dirname(path), specifier).replaceAll("\\", "/");
    if (!target.endsWith(".js")) return "which does not end with .js";
    const wanted = path.endsWith(".d.ts") ? target.replace(/\.js$/, ".d.ts") : target;
    return files.has(wanted) ? undefined : `but there is no ${wanted}`;
  }
  if (/^(npm|jsr|https?):/.test(specifier)) return "which npm cannot resolve";
  if (specifier.startsWith("node:")) {
    return /^src\/(node|cli)\//.test(path) ? undefined : "which only src/node/ and src/cli/ may";
  }
  if (specifier.startsWith("cloudflare:")) {
    return path.startsWith("src/workers/") ? undefined : "which only src/workers/ may";
  }
  const name = /^(@[^/]+\/)?[^/]+/.exec(specifier)![0];
  return packages.has(name) ? undefined : "which package.json does not name";
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
