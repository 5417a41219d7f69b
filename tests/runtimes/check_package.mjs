// Looks at the built package (its folder is the argument) as consumers do: publint, are-the-types-wrong, TypeScript's
// strictest settings with the declarations themselves checked, and an import of every entry. Run by npm/check.ts.
import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { checkPackage, Package } from "@arethetypeswrong/core";
import { publint } from "publint";
import { formatMessage } from "publint/utils";

const dir = process.argv[2];
const manifest = JSON.parse(readFileSync(join(dir, "package.json"), "utf8"));
const problems = [];

const { messages } = await publint({ pkgDir: dir, pack: false, level: "suggestion", strict: true });
for (const message of messages) problems.push(`publint: ${formatMessage(message, manifest)}`);

const files = {};
for (const entry of readdirSync(dir, { recursive: true, withFileTypes: true })) {
  if (!entry.isFile()) continue;
  const path = join(entry.parentPath, entry.name);
  const name = relative(dir, path).replaceAll("\\", "/");
  files[`/node_modules/${manifest.name}/${name}`] = readFileSync(path, "utf8");
}
const analysis = await checkPackage(new Package(files, manifest.name, manifest.version));
// An ES module is what require() of Node 22 takes too; the old resolution that knows no subpaths is not supported.
const accepted = new Set(["CJSResolvesToESM"]);
for (const problem of analysis.problems ?? [{ kind: "the package has no types" }]) {
  if (accepted.has(problem.kind) || problem.resolutionKind === "node10") continue;
  problems.push(`are-the-types-wrong: ${JSON.stringify(problem)}`);
}

const entries = Object.keys(manifest.exports)
  .filter((subpath) => subpath !== "./package.json")
  .map((subpath) => manifest.name + subpath.slice(1));
const build = join(import.meta.dirname, "build", "consumer");
mkdirSync(build, { recursive: true });
const importsOf = (imported) =>
  imported.map((entry, index) => `import * as entry${index} from "${entry}";\nvoid entry${index};\n`).join(
    "",
  );
writeFileSync(join(build, "consumer.ts"), importsOf(entries));
// What pages and Workers import: without the types of Node.
const nodes = ["/node", "/cli", "/compat/client-node", "/compat/fluent", "/compat/gardener"].map((subpath) =>
  manifest.name + subpath
);
writeFileSync(join(build, "page.ts"), importsOf(entries.filter((entry) => !nodes.includes(entry))));
// The programs of README and the guides, as readers compile them; those of browsers.md have a page's globals.
const root = join(import.meta.dirname, "..", "..");
const guides = [];
for (const page of ["README.md", ...readdirSync(join(root, "docs")).map((name) => `docs/${name}`)]) {
  if (!page.endsWith(".md")) continue;
  for (const { 1: code, index } of readFileSync(join(root, page), "utf8").matchAll(/^```ts\n([^]*?)^```/gm)) {
    if (code.includes(`"kubernetes-fluent-client"`)) continue; // not installed here
    const file = `${page.replace("docs/", "")}.${index}.ts`;
    writeFileSync(join(build, file), code);
    guides.push(file);
  }
}
// What the guides about controllers show is in examples/.
for (const name of ["widget_controller.ts", "widget_controller_test.ts", "widget_manager.ts"]) {
  writeFileSync(join(build, name), readFileSync(join(root, "examples", name)));
  guides.push(name);
}
const dom = ["dom", "dom.iterable", "dom.asynciterable"];
const strictest = {
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  verbatimModuleSyntax: true,
  skipLibCheck: false,
};
// As `tsc --init` writes it. client-node's declarations need types that it does not install.
const strict = { ...strictest, skipLibCheck: true, allowImportingTsExtensions: true };
for (
  const [module, moduleResolution, libs, types, files, options] of [
    ["nodenext", "nodenext", dom, ["node"], ["consumer.ts"], strictest],
    ["esnext", "bundler", dom, ["node"], ["consumer.ts"], strictest],
    // Either types of a page, of a worker, or of Node are enough: they have `fetch`.
    ["nodenext", "nodenext", [], ["node"], ["consumer.ts"], strictest],
    ["esnext", "bundler", dom, [], ["page.ts"], strictest],
    ["esnext", "bundler", ["webworker"], [], ["page.ts"], strictest],
    ["nodenext", "nodenext", [], ["node"], guides.filter((file) => !file.startsWith("browsers")), strict],
    ["esnext", "bundler", dom, ["node"], guides, strict],
  ]
) {
  const config = join(build, `tsconfig.${[module, ...libs, ...types, files.length].join("-")}.json`);
  const compilerOptions = {
    module,
    moduleResolution,
    target: "es2024",
    lib: ["es2024", "esnext.disposable", ...libs],
    types,
    strict: true,
    noEmit: true,
    ...options,
  };
  writeFileSync(config, JSON.stringify({ compilerOptions, files }));
  try {
    const tsc = join(import.meta.dirname, "node_modules", "typescript", "bin", "tsc");
    execFileSync(process.execPath, [tsc, "--pretty", "false", "-p", config], {
      encoding: "utf8",
      stdio: "pipe",
    });
  } catch (error) {
    const lines = `${error.stdout ?? ""}${error.stderr ?? ""}`.trim().split("\n");
    for (const line of lines) {
      problems.push(`TypeScript (${moduleResolution}, ${[...libs, ...types]}): ${line}`);
    }
  }
}

for (const entry of entries) {
  try {
    const names = Object.keys(await import(entry));
    if (names.length === 0) problems.push(`${entry}: exports nothing at run time`);
  } catch (error) {
    problems.push(`${entry}: cannot be imported: ${error.message}`);
  }
}

for (const problem of problems) console.log(problem);
process.exit(problems.length === 0 ? 0 : 1);
