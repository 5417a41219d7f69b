/**
 * The gate of the public surface. For every entry of `exports` in `deno.json`:
 *
 * - `missing`: its file exists;
 * - `module-doc`: the entry has a `@module` doc;
 * - `doc`: every public name has a doc comment, and so has every method of a public interface, and of a
 *   public class unless it inherits or implements something (editors then show the doc of what it
 *   implements);
 * - `example`: every public function and class is in an `@example` of its entry (its own, the module's, or
 *   that of a name that is used with it), but errors, which are caught only; and no example imports a path,
 *   which its reader does not have;
 * - `category`: every name in `.` has one `@category` of {@linkcode CATEGORIES}, and none in another entry,
 *   which is on one topic;
 * - `twice`: no name is exported by two entries;
 * - `front-door`: `.` has at most {@linkcode MAX_FRONT_DOOR_NAMES} names;
 * - `side-effect`: importing the entry calls no timer, clock, fetch or console, asks for no permission,
 *   listens to nothing, and adds nothing to the globals or to the prototypes of built-in classes.
 *
 * Run with `deno run -A scripts/check_exports.ts`.
 *
 * @module
 */

import { fileURLToPath } from "node:url";
import { join, relative } from "node:path";
import { reportViolations, ROOT, type Violation } from "./lib/gate.ts";
import { runDeno } from "./lib/process.ts";
import { taskOptions, usage } from "./lib/task_usage.ts";

interface JsDoc {
  doc?: string;
  tags?: { kind: string; doc?: string }[];
}

interface Located {
  name: string;
  jsDoc?: JsDoc;
  location: { filename: string; line: number };
}

interface Method extends Located {
  accessibility?: "private" | "protected" | "public";
}

interface Declaration {
  kind: string;
  declarationKind: string;
  jsDoc?: JsDoc;
  location: { filename: string; line: number };
  def?: { methods?: Method[]; extends?: unknown; implements?: unknown[] };
}

interface DocFile {
  module_doc?: JsDoc;
  symbols?: { name: string; declarations: Declaration[] }[];
}

/** The categories of the names in `.`, in the order of the documentation. */
export const CATEGORIES: readonly string[] = [
  "Cluster",
  "Informers",
  "Keys, indices, listers",
  "Objects and errors",
  "Tools",
];

/**
 * How many names `.` may have: what most programs use, index functions by field and owner
 * included. The parts belong to the other entries.
 */
export const MAX_FRONT_DOOR_NAMES = 70;

/** Kinds of declarations that a caller runs, and so wants to see run. */
const NEEDS_EXAMPLE = new Set(["function", "class"]);

/** What `@listwatch/cache` exports: subpath to file. */
export async function readExports(root: string): Promise<Record<string, string>> {
  const config = JSON.parse(await Deno.readTextFile(join(root, "deno.json"))) as {
    exports: Record<string, string>;
  };
  return config.exports;
}

/** The doc rules on one entry (`file` is relative to `root`), and the names it exports. */
export async function checkDocs(
  root: string,
  file: string,
): Promise<{ violations: Violation[]; names: string[] }> {
  const violations: Violation[] = [];
  const refuse = (location: { filename: string; line: number }, rule: string, message: string) => {
    const path = relative(root, fileURLToPath(location.filename)).replaceAll("\\", "/");
    violations.push({ path, line: location.line + 1, rule, message });
  };
  const doc = await runDeno(["doc", "--json", file], { cwd: root });
  if (doc.code !== 0) {
    return { violations: [{ path: file, line: 1, rule: "doc", message: doc.stderr.trim() }], names: [] };
  }
  const files = Object.entries((JSON.parse(doc.stdout) as { nodes: Record<string, DocFile> }).nodes);
  const names: string[] = [];
  const examples = files.flatMap(([, { module_doc, symbols = [] }]) => [
    ...examplesOf(module_doc),
    ...symbols.flatMap(({ declarations }) => declarations.flatMap(({ jsDoc }) => examplesOf(jsDoc))),
  ]).join("\n");
  for (const [filename, { module_doc, symbols }] of files) {
    if (!module_doc?.tags?.some((tag) => tag.kind === "module")) {
      refuse({ filename, line: 0 }, "module-doc", "the entry has no doc comment with @module");
    }
    for (const symbol of symbols ?? []) {
      const declarations = symbol.declarations.filter((declaration) =>
        declaration.declarationKind === "export"
      );
      if (declarations.length === 0) continue;
      names.push(symbol.name);
      const [first] = declarations;
      if (!declarations.some((declaration) => hasText(declaration.jsDoc))) {
        refuse(first.location, "doc", `${symbol.name} has no doc comment`);
      } else if (
        declarations.some(({ kind }) => NEEDS_EXAMPLE.has(kind)) && !symbol.name.endsWith("Error") &&
        !declarations.some(({ jsDoc }) => examplesOf(jsDoc).length > 0) &&
        !new RegExp(`\\b${symbol.name}\\b`).test(examples)
      ) {
        refuse(first.location, "example", `${symbol.name} is in no @example`);
      }
      if (declarations.some(({ jsDoc }) => examplesOf(jsDoc).some((text) => IMPORTED_PATH.test(text)))) {
        refuse(first.location, "example", `the @example of ${symbol.name} imports a path`);
      }
      const problem = categoryProblem(declarations, file);
      if (problem !== undefined && declarations.some(({ jsDoc }) => hasText(jsDoc))) {
        refuse(first.location, "category", `${symbol.name} ${problem}`);
      }
      for (const declaration of declarations) {
        for (const method of undocumentedMethods(declaration)) {
          refuse(method.location, "doc", `${symbol.name}.${method.name} has no doc comment`);
        }
      }
    }
  }
  return { violations, names };
}

const IMPORTED_PATH = /\bfrom\s+["']\.{1,2}\//;

function examplesOf(jsDoc: JsDoc | undefined): string[] {
  return jsDoc?.tags?.filter(({ kind }) => kind === "example").map(({ doc }) => doc ?? "") ?? [];
}

function hasText(jsDoc: JsDoc | undefined): boolean {
  return (jsDoc?.doc ?? "").trim() !== "";
}

/** Overloads need the category once. */
function categoryProblem(declarations: Declaration[], entry: string): string | undefined {
  const given = declarations.flatMap(({ jsDoc }) =>
    jsDoc?.tags?.filter(({ kind }) => kind === "category").map(({ doc }) => doc?.trim() ?? "") ?? []
  );
  if (entry.replace(/^\.\//, "") !== "mod.ts") {
    return given.length === 0 ? undefined : "needs no @category: its entry is on one topic";
  }
  if (given.length === 0) return "has no @category";
  if (given.length > 1) return `has ${given.length} categories: ${given.join("; ")}`;
  return CATEGORIES.includes(given[0])
    ? undefined
    : `has the category ${JSON.stringify(given[0])}; there are ${CATEGORIES.join("; ")}`;
}

function undocumentedMethods({ kind, def }: Declaration): Method[] {
  if (kind !== "class" && kind !== "interface") return [];
  if (kind === "class" && (def?.extends !== undefined || (def?.implements?.length ?? 0) > 0)) return [];
  const documented = new Set(
    (def?.methods ?? []).filter((method) => hasText(method.jsDoc)).map(({ name }) => name),
  );
  return (def?.methods ?? []).filter((method) =>
    method.accessibility !== "private" && method.accessibility !== "protected" &&
    !method.name.startsWith("[") &&
    !documented.has(method.name)
  );
}

/** What importing `file` does to its surroundings: one line for each effect. */
export async function importEffects(root: string, file: string): Promise<string[]> {
  const probe = fileURLToPath(new URL("./lib/import_probe.ts", import.meta.url));
  // Reading source files is all that an import needs; any other permission it asks for is an effect.
  const result = await runDeno(
    [
      "run",
      "--no-prompt",
      "--allow-read",
      "--no-check",
      "--config",
      join(root, "deno.json"),
      probe,
      join(root, file),
    ],
    { cwd: root, timeoutMs: 60_000 },
  );
  if (result.code !== 0) return [`the import failed: ${result.stderr.trim().split("\n")[0]}`];
  if (result.stdout === "") return ["the import does not end by itself: something waits at the top level"];
  return JSON.parse(result.stdout.trim().split("\n").at(-1) ?? "[]") as string[];
}

/** Checks every entry of `exports` below `root`. */
export async function checkExports(root: string): Promise<{ violations: Violation[]; names: number }> {
  const violations: Violation[] = [];
  const homes = new Map<string, string>();
  let names = 0;
  for (const [subpath, entry] of Object.entries(await readExports(root))) {
    const file = entry.replace(/^\.\//, "");
    if (!await Deno.stat(join(root, file)).then(({ isFile }) => isFile, () => false)) {
      violations.push({
        path: "deno.json",
        line: 1,
        rule: "missing",
        message: `${subpath}: there is no ${file}`,
      });
      continue;
    }
    const [docs, effects] = await Promise.all([checkDocs(root, file), importEffects(root, file)]);
    names += docs.names.length;
    for (const name of docs.names) {
      const home = homes.get(name);
      if (home !== undefined) {
        violations.push({
          path: file,
          line: 1,
          rule: "twice",
          message: `${name} is exported by ${home} too`,
        });
      } else homes.set(name, subpath);
    }
    if (subpath === "." && docs.names.length > MAX_FRONT_DOOR_NAMES) {
      const message = `exports ${docs.names.length} names, more than ${MAX_FRONT_DOOR_NAMES}; ` +
        "what few programs use belongs to another entry";
      violations.push({ path: file, line: 1, rule: "front-door", message });
    }
    violations.push(...docs.violations);
    for (const message of effects) violations.push({ path: file, line: 1, rule: "side-effect", message });
  }
  // A name that two entries export is reported once.
  const seen = new Set<string>();
  const unique = violations.filter(({ path, line, message }) => {
    const key = `${path}:${line}:${message}`;
    return seen.has(key) ? false : (seen.add(key), true);
  });
  return { violations: unique, names };
}

if (import.meta.main) {
  taskOptions(
    usage({
      script: "scripts/check_exports.ts",
      does: "Checks that every public name is documented, and that no import has side effects.",
    }),
    {},
  );
  const { violations, names } = await checkExports(ROOT);
  Deno.exit(reportViolations("check_exports", violations, `${names} public names`));
}
