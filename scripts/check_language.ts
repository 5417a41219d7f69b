/**
 * The gate of the project's language: no text uses a phrase of `lib/plain_words.ts`, the outermost title of
 * each test begins with the symbol, path or command that it is about, so that a search for the name finds its
 * tests, no line of a comment is longer than {@linkcode COMMENT_WIDTH}, as the formatter leaves them, and a
 * comment names its subject.
 *
 * Run with `deno run -A scripts/check_language.ts [FOLDER...]`; `--count` prints the number per folder only.
 *
 * @module
 */

import { reportViolations, ROOT, type Violation } from "./lib/gate.ts";
import { sourceFiles } from "./lib/module_graph.ts";
import { avoidedUses } from "./lib/plain_words.ts";
import { taskArguments, usage } from "./lib/task_usage.ts";

/** Files that quote the phrases, or whose text is not ours. */
const EXEMPT = [
  "scripts/lib/plain_words.ts",
  "tests/scripts/check_language_test.ts",
  "tests/conformance/cases/",
  "node_modules/",
  "npm/dist/",
  "tests/runtimes/build/",
];

const FOLDERS = ["src", "tests", "scripts", "examples", "benchmarks", "docs", "npm"];
const DECLARED =
  /^(?:export )?(?:default )?(?:abstract |async |declare )*(?:class|function\*?|const|let|interface|type)\s+([A-Za-z_$][\w$]*)/gm;
const TITLE = /^(?:describe|it|test)\(\s*(["'`])((?:\\.|(?!\1)[^\\])*)\1/gm;

/** The names that a title may begin with: whatever is declared at the top of a file or is the name of one. */
export function declaredNames(files: ReadonlyMap<string, string>): Set<string> {
  const names = new Set<string>(["listwatch", "llms.txt"]);
  for (const [path, text] of files) {
    if (path.endsWith(".md")) names.add(path.slice(path.lastIndexOf("/") + 1));
    else for (const [, name] of text.matchAll(DECLARED)) names.add(name);
  }
  return names;
}

/**
 * Titles of tests that begin with no name. A path (`/api`, `examples/`), an
 * option (`--token`) or `deno task` count as names.
 */
export function unnamedTitles(text: string, names: ReadonlySet<string>): { line: number; title: string }[] {
  const found: { line: number; title: string }[] = [];
  for (const { 2: title, index } of text.matchAll(TITLE)) {
    const [, tick, first, after] =
      /^(`?)(\$\{|\/|--|deno task |listwatch |kubectl |\.?[\w$]+\/|[\w$]+(?:\.md|\.txt)?)(.?)/.exec(title) ??
        [];
    // A name that is also a word (`list`) counts if it is quoted, called, a member's owner, or all there is.
    const isWord = /^[a-z]+$/.test(first) && tick === "" && !/^[.(]?$/.test(after);
    if (/^\W|[ /]$/.test(first) || (names.has(first) && !isWord)) continue;
    found.push({ line: text.slice(0, index).split("\n").length, title });
  }
  return found;
}

async function readAll(): Promise<Map<string, string>> {
  const paths = ["mod.ts", "README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"];
  for (const folder of FOLDERS) {
    paths.push(...await sourceFiles(ROOT, folder, [".ts", ".md", ".mjs", ".js", ".tsx"]));
  }
  const files = new Map<string, string>();
  for (const path of paths) {
    if (EXEMPT.some((exempt) => path.includes(exempt))) continue;
    files.set(path, await Deno.readTextFile(`${ROOT}${path}`));
  }
  return files;
}

/** The most characters of a line of a comment. */
export const COMMENT_WIDTH = 110;

/** The numbers of the lines of comments that are too long and could be broken: not code, tables or links. */
export function longCommentLines(text: string): number[] {
  let isCode = false;
  return text.split("\n").flatMap((line, i) => {
    if (/^\s*\*\s*```/.test(line)) isCode = !isCode;
    const comment = /^\s*(?:\/\*\*|\*|\/\/) (.*)$/.exec(line)?.[1];
    if (isCode || comment === undefined || line.length <= COMMENT_WIDTH) return [];
    const isWhole = comment.startsWith("|") || !/\S\s+\S/.test(comment) || comment.startsWith("[") ||
      comment.startsWith("`");
    return isWhole ? [] : [i + 1];
  });
}

/** The numbers of the lines where a comment begins without its subject, such as "Of its field". */
export function subjectlessComments(text: string): number[] {
  const lines = text.split("\n");
  return lines.flatMap((line, i) => {
    const [, mark] = /^\s*(\/\*\*|\*|\/\/) (?:Of|That of|Those|Its|Their|They|In whose) /.exec(line) ?? [];
    if (mark === undefined) return [];
    const before = lines[i - 1]?.trim() ?? "";
    const continues = mark === "*" ? before !== "/**" : mark === "//" && before.startsWith("//");
    return continues ? [] : [i + 1];
  });
}

/** `src/hono` of `src/hono/request/gate.ts`; files at the root by their own name. */
function folderOf(path: string): string {
  return path.split("/").slice(0, /^(?:src|tests)\//.test(path) ? 2 : 1).join("/");
}

if (import.meta.main) {
  const text = usage({
    script: "scripts/check_language.ts",
    takes: "[FOLDER...]",
    does:
      "Finds phrases to avoid, titles of tests without a name, and comments that are too long or lack a subject.",
    options: { "--count": "print their number per folder only" },
  });
  const { values: { count }, positionals: folders } = taskArguments(text, {
    count: { type: "boolean", default: false },
  });
  const files = await readAll();
  const names = declaredNames(files);
  const violations: Violation[] = [];
  for (const [path, text] of files) {
    if (folders.length > 0 && !folders.some((folder) => path.startsWith(folder))) continue;
    for (const { line, phrase, instead } of avoidedUses(text)) {
      violations.push({ path, line, rule: "plain-words", message: `"${phrase}": write ${instead}` });
    }
    if (/\.tsx?$/.test(path)) {
      for (const line of longCommentLines(text)) {
        const message = `the comment has more than ${COMMENT_WIDTH} characters: break the line`;
        violations.push({ path, line, rule: "comment-width", message });
      }
      for (const line of subjectlessComments(text)) {
        const message = "the comment begins with no subject: name what it is about";
        violations.push({ path, line, rule: "comment-subject", message });
      }
    }
    if (!path.endsWith("_test.ts")) continue;
    for (const { line, title } of unnamedTitles(text, names)) {
      violations.push({
        path,
        line,
        rule: "test-name",
        message: `"${title}" begins with no symbol or command`,
      });
    }
  }
  if (count) {
    const counts = Object.entries(Object.groupBy(violations, ({ path }) => folderOf(path)));
    for (const [folder, found = []] of counts.sort()) {
      const titles = found.filter(({ rule }) => rule === "test-name").length;
      const others = found.length - titles;
      console.log(`${folder.padEnd(24)} ${others} phrases and long lines, ${titles} titles`);
    }
  } else Deno.exit(reportViolations("check_language", violations, `${files.size} files`));
}
