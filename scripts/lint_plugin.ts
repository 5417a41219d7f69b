/**
 * The house rules that need a syntax tree, as a plugin of `deno lint` (so that the editor shows them too).
 * They hold in `src/` only; which files are free of a rule, and why, stands in {@linkcode EXEMPT}.
 *
 * - `listwatch/no-bare-time`: timers, clocks and chance are arguments (`clock`, `random`), never globals.
 * - `listwatch/no-runtime-global`: no `Deno`, `Bun`, `process`, `Buffer`: the core runs everywhere.
 * - `listwatch/no-console`: a library logs through the `Logger` it was given.
 * - `listwatch/zod-namespace`: only `import * as z from "zod/v4/core"`: `import { z }` costs up to 87
 *   KB, and `zod/mini` 1 KB more than its core.
 * - `listwatch/linear-regex`: no regular expression that some text can make take more than linear time. One
 *   that is run on short texts only is excused by `deno-lint-ignore` with the reason.
 * - `listwatch/no-default-export`, `listwatch/no-enum`: house style, and what JSR's consumers expect.
 *
 * Imports between rooms are checked by `check_layers.ts`, which reads the module graph.
 *
 * @module
 */

import { regexFault } from "./lib/regex_cost.ts";

/**
 * Paths under `src/` where a rule does not hold: a room (ends
 * with a slash) or one file, each with its reason.
 */
const EXEMPT: Record<string, Record<string, string>> = {
  "no-bare-time": {
    "util/clock.ts": "the one place where the real clock and real chance live",
    "cli/dashboard/browser/": "runs in a browser, which has one clock",
  },
  "no-runtime-global": {
    "node/": "adapts Node, Deno and Bun",
    "cli/": "a program, not a library",
  },
  "no-console": {
    "util/logger.ts": "consoleLogger is defined here",
    "cli/": "a program talks on the terminal",
  },
  "zod-namespace": {},
  "linear-regex": {},
  "no-default-export": {},
  "no-enum": {},
};

const TIME_GLOBALS = new Set([
  "setTimeout",
  "clearTimeout",
  "setInterval",
  "clearInterval",
  "setImmediate",
  "clearImmediate",
  "requestAnimationFrame",
]);

/** Members of globals that read a clock, start a timer or throw dice. */
const TIME_MEMBERS: Record<string, Set<string>> = {
  Date: new Set(["now"]),
  performance: new Set(["now", "timeOrigin"]),
  Math: new Set(["random"]),
  AbortSignal: new Set(["timeout"]),
  scheduler: new Set(["wait", "postTask"]),
};

const RUNTIME_GLOBALS = new Set(["Deno", "Bun", "Buffer", "__dirname", "__filename"]);

/** `process` is also a good name for a parameter, so only these members give the global away. */
const PROCESS_MEMBERS = new Set(
  ("argv cwd env exit exitCode hrtime memoryUsage nextTick off on once pid platform stderr stdin stdout " +
    "version versions").split(" "),
);

const GLOBAL_OBJECTS = new Set(["globalThis", "self", "window", "global"]);

/** `src/util/clock.ts` -> `util/clock.ts`; `undefined` outside of `src/`, and for that of an example. */
function pathInSrc(filename: string): string | undefined {
  const path = filename.replaceAll("\\", "/");
  if (/(^|\/)examples\//.test(path)) return undefined;
  const at = path.lastIndexOf("/src/");
  if (at !== -1) return path.slice(at + 5);
  return path.startsWith("src/") ? path.slice(4) : undefined;
}

function isExempt(rule: string, path: string): boolean {
  return Object.keys(EXEMPT[rule]).some((prefix) =>
    prefix.endsWith("/") ? path.startsWith(prefix) : path === prefix
  );
}

/** Wraps a visitor so that it runs only on the files where the rule holds. */
function houseRule(
  name: string,
  visitor: (report: (node: Deno.lint.Node, message: string, hint: string) => void) => Deno.lint.LintVisitor,
): Deno.lint.Rule {
  return {
    create(context): Deno.lint.LintVisitor {
      const path = pathInSrc(context.filename);
      if (path === undefined || isExempt(name, path)) return {};
      return visitor((node, message, hint) => context.report({ node, message, hint }));
    },
  };
}

/**
 * Whether an identifier stands for a value that is read here (and is not a key, a member, a name or a type).
 */
function isReference(node: Deno.lint.Identifier): boolean {
  // deno-lint-ignore no-explicit-any
  const parent = (node as any).parent as any;
  switch (parent?.type) {
    case "MemberExpression":
      return parent.object === node || parent.object?.range?.[0] === node.range[0] || parent.computed;
    case "Property":
      if (!parent.shorthand) return sameNode(parent.value, node);
      return parent.parent?.type === "ObjectExpression" && parent.key !== node;
    case "PropertyDefinition":
    case "AccessorProperty":
      return sameNode(parent.value, node);
    case "VariableDeclarator":
      return sameNode(parent.init, node);
    case "AssignmentPattern":
      return sameNode(parent.right, node);
    case "MethodDefinition":
    case "FunctionDeclaration":
    case "FunctionExpression":
    case "ArrowFunctionExpression":
      return sameNode(parent.body, node);
    case "ClassDeclaration":
    case "ClassExpression":
      return sameNode(parent.superClass, node);
    case "ImportSpecifier":
    case "ImportDefaultSpecifier":
    case "ImportNamespaceSpecifier":
    case "ExportSpecifier":
    case "LabeledStatement":
    case "RestElement":
    case "ArrayPattern":
      return false;
    default:
      return !(typeof parent?.type === "string" && parent.type.startsWith("TS") &&
        !["TSAsExpression", "TSSatisfiesExpression", "TSNonNullExpression"].includes(parent.type));
  }
}

function isCallee(node: Deno.lint.Node): boolean {
  // deno-lint-ignore no-explicit-any
  const parent = (node as any).parent as any;
  return parent?.type === "CallExpression" && sameNode(parent.callee, node);
}

function sameNode(a: { range?: unknown } | null | undefined, b: Deno.lint.Node): boolean {
  const range = a?.range as [number, number] | undefined;
  return range !== undefined && range[0] === b.range[0] && range[1] === b.range[1];
}

/** `Date.now` -> ["Date", "now"]; `globalThis.Date` -> ["globalThis", "Date"]; otherwise `undefined`. */
function memberPath(node: Deno.lint.MemberExpression): [string, string] | undefined {
  if (node.object.type !== "Identifier") return undefined;
  if (!node.computed && node.property.type === "Identifier") return [node.object.name, node.property.name];
  if (node.property.type === "Literal" && typeof node.property.value === "string") {
    return [node.object.name, node.property.value];
  }
  return undefined;
}

const CLOCK_HINT = "take `clock: Clock` (or `random: () => number`) as an option; the default is `realClock`";
const RUNTIME_HINT = "take what you need as an argument, or move the code to src/node/ or src/cli/";

const REGEX_HINT = "write it so that each next character decides, cut the text short first and say so in " +
  "`// deno-lint-ignore listwatch/linear-regex -- at most 1 KB`, or use indexOf";

/** The plugin. A default export because that is how `deno lint` loads plugins. */
const plugin: Deno.lint.Plugin = {
  name: "listwatch",
  rules: {
    "no-bare-time": houseRule("no-bare-time", (report) => ({
      Identifier(node): void {
        if (TIME_GLOBALS.has(node.name) && isReference(node)) {
          report(node, `Bare \`${node.name}\` outside of src/util/clock.ts.`, CLOCK_HINT);
        }
      },
      MemberExpression(node): void {
        const path = memberPath(node);
        if (path === undefined) return;
        // `options.random ?? Math.random` is how a default for the
        // argument is written: only calls are refused.
        if (path[0] === "Math" && !isCallee(node)) return;
        const isTime = TIME_MEMBERS[path[0]]?.has(path[1]) ||
          (GLOBAL_OBJECTS.has(path[0]) && TIME_GLOBALS.has(path[1]));
        if (isTime) report(node, `Bare \`${path.join(".")}\` outside of src/util/clock.ts.`, CLOCK_HINT);
      },
      NewExpression(node): void {
        if (node.callee.type === "Identifier" && node.callee.name === "Date" && node.arguments.length === 0) {
          report(node, "Bare `new Date()` outside of src/util/clock.ts.", "write `new Date(clock.now())`");
        }
      },
    })),
    "no-runtime-global": houseRule("no-runtime-global", (report) => ({
      Identifier(node): void {
        if (RUNTIME_GLOBALS.has(node.name) && isReference(node)) {
          report(node, `\`${node.name}\` does not exist in every runtime.`, RUNTIME_HINT);
        }
      },
      MemberExpression(node): void {
        const path = memberPath(node);
        if (path === undefined) return;
        const isRuntime = (path[0] === "process" && PROCESS_MEMBERS.has(path[1])) ||
          (GLOBAL_OBJECTS.has(path[0]) && (RUNTIME_GLOBALS.has(path[1]) || path[1] === "process"));
        if (isRuntime) report(node, `\`${path.join(".")}\` does not exist in every runtime.`, RUNTIME_HINT);
      },
    })),
    "no-console": houseRule("no-console", (report) => ({
      MemberExpression(node): void {
        const path = memberPath(node);
        if (path === undefined) return;
        if (path[0] === "console" || (GLOBAL_OBJECTS.has(path[0]) && path[1] === "console")) {
          report(node, "A library does not write to the console.", "take `logger: Logger` as an option");
        }
      },
    })),
    "zod-namespace": houseRule("zod-namespace", (report) => ({
      ImportDeclaration(node): void {
        const from = node.source.value;
        if (from !== "zod" && !from.startsWith("zod/")) return;
        const isNamespace = node.specifiers.length === 1 &&
          node.specifiers[0].type === "ImportNamespaceSpecifier";
        if (from !== "zod/v4/core" || !isNamespace) {
          report(node, "This import of zod costs up to 87 KB.", 'write `import * as z from "zod/v4/core"`');
        }
      },
    })),
    "linear-regex": houseRule("linear-regex", (report) => ({
      Literal(node): void {
        const regex = (node as { regex?: { pattern: string; flags: string } }).regex;
        if (regex === undefined) return;
        const fault = regexFault(regex.pattern, regex.flags);
        if (fault !== undefined) {
          report(node, `This regular expression may not be linear: ${fault}.`, REGEX_HINT);
        }
      },
      NewExpression(node): void {
        if (node.callee.type === "Identifier" && node.callee.name === "RegExp") {
          report(node, "A regular expression that is made of data cannot be checked.", REGEX_HINT);
        }
      },
    })),
    "no-default-export": houseRule("no-default-export", (report) => ({
      ExportDefaultDeclaration(node): void {
        report(node, "No default exports: a name is found by search.", "export it by name");
      },
    })),
    "no-enum": houseRule("no-enum", (report) => ({
      TSEnumDeclaration(node): void {
        report(
          node,
          "No enums: they are code at import and cannot be written as literals.",
          "use a string union",
        );
      },
    })),
  },
};

export default plugin;
