import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { join } from "node:path";
import { checkExports, MAX_FRONT_DOOR_NAMES } from "../../scripts/check_exports.ts";

const DOC = "/**\n * What it is.\n *\n * @module\n */\n";
const NAME =
  "\n/**\n * Adds one.\n *\n * @example\n * ```ts\n * addOne(1);\n * ```\n *\n * @category Tools\n */\n" +
  "export function addOne(x: number): number {\n  return x + 1;\n}\n";

async function violationsOf(source: string | undefined, second?: string): Promise<string[]> {
  const root = await Deno.makeTempDir({ prefix: "listwatch-exports-" });
  try {
    const exports = { ".": "./mod.ts", ...(second !== undefined && { "./second": "./second.ts" }) };
    await Deno.writeTextFile(join(root, "deno.json"), JSON.stringify({ exports }));
    if (second !== undefined) await Deno.writeTextFile(join(root, "second.ts"), second);
    if (source !== undefined) await Deno.writeTextFile(join(root, "mod.ts"), source);
    const { violations } = await checkExports(root);
    return violations.map(({ path, line, rule, message }) => `${path}:${line} ${rule} ${message}`);
  } finally {
    await Deno.remove(root, { recursive: true });
  }
}

describe("checkExports", () => {
  it("accepts a documented entry without effects", async () => {
    assert.deepEqual(
      await violationsOf(
        `${DOC}${NAME}\n/**\n * A shape.\n * @category Tools\n */\nexport interface Shape {\n  /** Its area. */\n  area(): number;\n}\n` +
          "const started = new Date(0);\nconst table = new Map([[1, started]]);\n" +
          "/**\n * Round.\n *\n * @example\n * ```ts\n * new Circle();\n * ```\n *\n * @category Tools\n */\n" +
          "export class Circle implements Shape {\n  area(): number {\n    return table.size;\n  }\n}\n" +
          "/**\n * It is odd.\n * @category Tools\n */\nexport class OddError extends Error {}\n",
      ),
      [],
    );
  });

  it("refuses a category in an entry on one topic", async () => {
    const root = await Deno.makeTempDir({ prefix: "listwatch-exports-" });
    try {
      const file = "./src/testing/mod.ts";
      await Deno.mkdir(join(root, "src", "testing"), { recursive: true });
      await Deno.writeTextFile(join(root, "deno.json"), JSON.stringify({ exports: { "./testing": file } }));
      await Deno.writeTextFile(join(root, file), `${DOC}${NAME}/** A shape. */\nexport type Shape = 1;\n`);
      const { violations } = await checkExports(root);
      assert.deepEqual(violations.map(({ line, rule }) => `${line} ${rule}`), ["17 category"]);
    } finally {
      await Deno.remove(root, { recursive: true });
    }
  });

  it("refuses a name that two entries export", async () => {
    assert.deepEqual(await violationsOf(`${DOC}${NAME}`, `${DOC}export { addOne } from "./mod.ts";\n`), [
      "second.ts:1 twice addOne is exported by . too",
      "mod.ts:17 category addOne needs no @category: its entry is on one topic",
    ]);
  });

  const refused: [what: string, source: string | undefined, expected: RegExp][] = [
    ["a missing file", undefined, /^deno\.json:1 missing \.: there is no mod\.ts$/],
    ["an entry without a module doc", NAME, /^mod\.ts:1 module-doc /],
    ["a name without a doc", `${DOC}${NAME}export type A = 1;\n`, /^mod\.ts:20 doc A has no doc comment$/],
    [
      "a function without an example",
      `${DOC}/**\n * Two.\n * @category Tools\n */\nexport function two(): number {\n  return 2;\n}\n`,
      /^mod\.ts:10 example two is in no @example$/,
    ],
    [
      "an example that imports a path",
      `${DOC}${NAME.replace("```ts\n", '```ts\n * import { a } from "../a.ts";\n')}`,
      /^mod\.ts:18 example the @example of addOne imports a path$/,
    ],
    [
      "an interface method without a doc",
      `${DOC}/**\n * A shape.\n * @category Tools\n */\nexport interface Shape {\n  area(): number;\n}\n`,
      /^mod\.ts:11 doc Shape\.area has no doc comment$/,
    ],
    [
      "a name without a category",
      `${DOC}/** A shape. */\nexport interface Shape {\n  area: number;\n}\n`,
      /^mod\.ts:7 category Shape has no @category$/,
    ],
    [
      "a category that no other name has",
      `${DOC}/**\n * A shape.\n * @category Shapes\n */\nexport type Shape = 1;\n`,
      /^mod\.ts:10 category Shape has the category "Shapes"; there are Cluster;/,
    ],
    [
      "more names at the front door than it may have",
      DOC + Array.from(
        { length: MAX_FRONT_DOOR_NAMES + 1 },
        (_, at) => `/**\n * One of many.\n * @category Tools\n */\nexport type T${at} = ${at};\n`,
      ).join(""),
      /^mod\.ts:1 front-door exports 71 names, more than 70/,
    ],
    ["a timer", `${DOC}setTimeout(() => {}, 60_000);\n`, /^mod\.ts:1 side-effect calls setTimeout \(/],
    ["a look at the clock", `${DOC}export {};\nvoid Date.now();\n`, /side-effect calls Date\.now \(/],
    ["a date of now", `${DOC}export {};\nvoid new Date();\n`, /side-effect calls new Date \(/],
    ["chance", `${DOC}export {};\nvoid Math.random();\n`, /side-effect calls Math\.random \(/],
    ["a request", `${DOC}fetch("http://127.0.0.1:9").catch(() => {});\n`, /side-effect calls fetch \(/],
    ["a line on the console", `${DOC}console.log("hello");\n`, /side-effect calls console\.log \(/],
    ["a listener", `${DOC}addEventListener("error", () => {});\n`, /side-effect calls addEventListener \(/],
    ["a new global", `${DOC}Object.assign(globalThis, { mine: 1 });\n`, /side-effect adds globalThis\.mine$/],
    [
      "a changed built-in class",
      `${DOC}Object.assign(Array.prototype, { last() {} });\n`,
      /side-effect adds Array\.prototype\.last$/,
    ],
    [
      "a look at the environment",
      `${DOC}Deno.env.get("HOME");\n`,
      /side-effect the import failed: NotCapable: Requires env access/,
    ],
    [
      "a promise that is rejected",
      `${DOC}Promise.reject("no");\n`,
      /side-effect leaves a rejected promise: no$/,
    ],
    [
      "a wait without end",
      `${DOC}await new Promise(() => {});\n`,
      /side-effect the import (failed|does not end)/,
    ],
  ];
  for (const [what, source, expected] of refused) {
    it(`refuses ${what}`, async () => {
      const found = await violationsOf(source);
      assert.equal(found.length, 1, found.join("\n"));
      assert.match(found[0], expected);
    });
  }
});
