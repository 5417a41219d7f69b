/**
 * The imports of the project's modules, as Deno itself parses and resolves them: static,
 * dynamic, type-only, and `import("...")` types.
 *
 * @module
 */

import { join, relative, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { runDeno } from "./process.ts";

/** One import or re-export. */
export interface ModuleImport {
  /** As written. */
  specifier: string;
  /** A path relative to the root where it is a file, otherwise a URL such as `npm:hono@^4` or `node:fs`. */
  target: string;
  /** 1-based. */
  line: number;
  isTypeOnly: boolean;
  isDynamic: boolean;
}

/** One file. */
export interface ModuleNode {
  /** Relative to the root, with slashes. */
  path: string;
  imports: ModuleImport[];
  /** Why it could not be read or parsed. */
  error?: string;
}

interface InfoEdge {
  specifier?: string;
  error?: string;
  span?: { start: { line: number } };
}

interface InfoModule {
  specifier: string;
  error?: string;
  dependencies?: { specifier: string; code?: InfoEdge; type?: InfoEdge; isDynamic?: boolean }[];
}

/** Every file below `dir` whose name ends with one of `endings`, relative to `root`, sorted. */
export async function sourceFiles(root: string, dir: string, endings: string[] = [".ts"]): Promise<string[]> {
  const found: string[] = [];
  const skipped = new Set(["node_modules", "dist", "build", ".git", "coverage", ".cache"]);
  const walk = async (path: string): Promise<void> => {
    for await (const entry of Deno.readDir(join(root, path))) {
      if (entry.isDirectory && !skipped.has(entry.name)) await walk(`${path}/${entry.name}`);
      else if (entry.isFile && endings.some((ending) => entry.name.endsWith(ending))) {
        found.push(`${path}/${entry.name}`);
      }
    }
  };
  try {
    await walk(dir);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
  return found.sort();
}

/**
 * The graph of `files` (paths relative to `root`) and of everything local that they reach.
 *
 * @throws {Error} If `deno info` fails.
 */
export async function moduleGraph(root: string, files: string[]): Promise<ModuleNode[]> {
  const temporary = await Deno.makeTempDir({ prefix: "listwatch-graph-" });
  try {
    const entry = join(temporary, "entry.ts");
    await Deno.writeTextFile(
      entry,
      files.map((file) => `import ${JSON.stringify(pathToFileURL(resolve(root, file)).href)};\n`).join(""),
    );
    const info = await runDeno(["info", "--json", "--config", join(root, "deno.json"), entry], { cwd: root });
    if (info.code !== 0) throw new Error(`deno info failed:\n${info.stderr}`);
    const { modules } = JSON.parse(info.stdout) as { modules: InfoModule[] };
    return modules
      .filter((module) =>
        module.specifier.startsWith("file:") && !fileURLToPath(module.specifier).startsWith(temporary)
      )
      .map((module) => toNode(root, module));
  } finally {
    await Deno.remove(temporary, { recursive: true });
  }
}

function toNode(root: string, module: InfoModule): ModuleNode {
  const imports: ModuleImport[] = [];
  for (const dependency of module.dependencies ?? []) {
    const edge = dependency.code ?? dependency.type;
    imports.push({
      specifier: dependency.specifier,
      target: edge?.specifier ? localPath(root, edge.specifier) : dependency.specifier,
      line: (edge?.span?.start.line ?? 0) + 1,
      isTypeOnly: dependency.code === undefined,
      isDynamic: dependency.isDynamic ?? false,
    });
  }
  return {
    path: localPath(root, module.specifier),
    imports,
    ...(module.error ? { error: module.error } : {}),
  };
}

function localPath(root: string, specifier: string): string {
  if (!specifier.startsWith("file:")) return specifier;
  return relative(root, fileURLToPath(specifier)).replaceAll("\\", "/");
}
