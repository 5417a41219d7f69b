import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { dirname, join } from "node:path";
import { checkLayers, ROOMS } from "../../scripts/check_layers.ts";

const DENO_JSON = JSON.stringify({
  imports: { "zod/mini": "npm:zod@^4.6.7/mini", "hono": "npm:hono@^4.13.19" },
});

/** Writes `files` as a project of its own and returns what the gate says, as `path:line rule message`. */
async function violationsOf(files: Record<string, string>): Promise<string[]> {
  const root = await Deno.makeTempDir({ prefix: "listwatch-layers-" });
  try {
    for (const [path, text] of Object.entries({ "deno.json": DENO_JSON, ...files })) {
      await Deno.mkdir(dirname(join(root, path)), { recursive: true });
      await Deno.writeTextFile(join(root, path), text);
    }
    const { violations } = await checkLayers(root);
    return violations.map(({ path, line, rule, message }) => `${path}:${line} ${rule} ${message}`);
  } finally {
    await Deno.remove(root, { recursive: true });
  }
}

const LEAVES = {
  "src/util/clock.ts": "export interface Clock { now(): number }\nexport const zero = 0;\n",
  "src/meta/object.ts": 'import type { Clock } from "../util/clock.ts";\nexport type At = Clock;\n',
  "src/client/client.ts": "export const client = 1;\n",
};

describe("check_layers", () => {
  it("accepts imports that point left", async () => {
    assert.deepEqual(
      await violationsOf({
        ...LEAVES,
        "src/store/store.ts": 'export { zero } from "../util/clock.ts";\nimport "../meta/object.ts";\n',
        "src/schema/schema.ts": 'import * as z from "zod/mini";\nexport const text = z.string;\n',
        "src/node/files.ts": 'import "node:fs";\nimport "../client/client.ts";\n',
        "mod.ts":
          '/** Doc. */\nexport * from "./src/store/store.ts";\nexport { client } from "./src/client/client.ts";\n',
      }),
      [],
    );
  });

  const refused: [what: string, path: string, source: string, expected: RegExp][] = [
    [
      "a value import",
      "src/util/bad.ts",
      '\nimport "../meta/object.ts";\n',
      /^src\/util\/bad\.ts:2 layer util\/ may not import meta\//,
    ],
    [
      "a type import",
      "src/reflector/bad.ts",
      'import type { client } from "../client/client.ts";\nexport type C = typeof client;\n',
      /^src\/reflector\/bad\.ts:1 layer reflector\/ may not import client\/ .*may import util, meta, store, queue$/,
    ],
    [
      "a re-export",
      "src/watch/bad.ts",
      'export * from "../client/client.ts";\n',
      /^src\/watch\/bad\.ts:1 layer/,
    ],
    [
      "a dynamic import",
      "src/store/bad.ts",
      'export const load = (): Promise<unknown> =>\n  import("../client/client.ts");\n',
      /^src\/store\/bad\.ts:2 layer/,
    ],
    [
      "an import() type",
      "src/workqueue/bad.ts",
      'export type A = import("../meta/object.ts").At;\n',
      /^src\/workqueue\/bad\.ts:1 layer workqueue\/ may not import meta\//,
    ],
    [
      "a package in a core room",
      "src/informer/bad.ts",
      'import { Hono } from "hono";\nexport const h = Hono;\n',
      /^src\/informer\/bad\.ts:1 package informer\/ may not import npm:hono@.*: only hono\/, workers\/, testing\/, cli\/ may$/,
    ],
    [
      "zod outside of schema/",
      "src/client/bad.ts",
      'import * as z from "zod/mini";\nexport const s = z.string;\n',
      /^src\/client\/bad\.ts:1 package client\/ may not import .*only schema\/ may$/,
    ],
    [
      "node: outside of node/ and cli/",
      "src/hono/bad.ts",
      'import type { Server } from "node:http";\nexport type S = Server;\n',
      /^src\/hono\/bad\.ts:1 package hono\/ may not import node:http: only node\/, cli\/ may$/,
    ],
    [
      "a package that no room may use",
      "src/cli/bad.ts",
      'import "npm:fast-check@^4";\n',
      /^src\/cli\/bad\.ts:1 package cli\/ may not import npm:fast-check@\^4: no room may$/,
    ],
    [
      "a file outside of src/",
      "src/cli/bad.ts",
      'import "../../scripts/tool.ts";\n',
      /^src\/cli\/bad\.ts:1 layer src\/cli\/ imports scripts\/tool\.ts, which is outside/,
    ],
    ["an unknown room", "src/attic/bad.ts", "export {};\n", /^src\/attic\/bad\.ts:1 unknown-room/],
    [
      "logic in mod.ts",
      "mod.ts",
      '/** a\n * b */\nexport * from "./src/util/clock.ts";\nconst x = 1;\n',
      /^mod\.ts:4 mod-logic holds `const x = 1;`/,
    ],
    ["an import of a script in mod.ts", "mod.ts", 'export * from "./scripts/tool.ts";\n', /^mod\.ts:1 layer/],
    [
      "an example that reaches into src/",
      "examples/pods.ts",
      'import "../src/client/client.ts";\n',
      /^examples\/pods\.ts:1 example-import/,
    ],
    ["a missing file", "src/util/bad.ts", 'import "./nowhere.ts";\n', /^src\/util\/nowhere\.ts:1 unreadable/],
  ];
  for (const [what, path, source, expected] of refused) {
    it(`refuses ${what}`, async () => {
      const found = await violationsOf({ ...LEAVES, "scripts/tool.ts": "export {};\n", [path]: source });
      assert.equal(found.length, 1, found.join("\n"));
      assert.match(found[0], expected);
    });
  }

  it("refuses a cycle at run time and allows one of types", async () => {
    const pair = (keyword: string) => ({
      "src/util/a.ts": 'import { b } from "./b.ts";\nexport const a = (): number => b;\n',
      "src/util/b.ts":
        `import ${keyword} { a } from "./a.ts";\nexport const b = 1;\nexport type A = typeof a;\n`,
    });
    assert.deepEqual(await violationsOf(pair("type")), []);
    const [found, ...rest] = await violationsOf(pair(""));
    assert.match(found, /cycle import cycle: src\/util\/(a\.ts -> src\/util\/b|b\.ts -> src\/util\/a)\.ts/);
    assert.deepEqual(rest, []);
  });

  it("has a table whose arrows form no loop", () => {
    const reaches = (room: string, goal: string): boolean =>
      ROOMS[room].rooms.some((next) => next === goal || reaches(next, goal));
    assert.deepEqual(Object.keys(ROOMS).filter((room) => reaches(room, room)), []);
  });
});
