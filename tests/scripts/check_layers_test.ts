import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { dirname, join } from "node:path";
import { checkLayers, INNER_ROOMS, ROOMS } from "../../scripts/check_layers.ts";

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
  "src/hono/routes.ts": 'import "./send/list.ts";\n',
  "src/hono/send/list.ts": "export {};\n",
  "src/hono/request/user.ts": "export type U = string;\n",
};

/** The arrows of a drawing. */
function arrowsIn(drawing: string): string[][] {
  return drawing.trim().split("\n").flatMap((line) => {
    const steps = line.split("──>").map((rooms) => rooms.trim().split(", "));
    return steps.slice(1).flatMap((to, i) => steps[i].flatMap((from) => to.map((room) => [from, room])));
  });
}

describe("checkLayers", () => {
  it("accepts imports that point left", async () => {
    assert.deepEqual(
      await violationsOf({
        ...LEAVES,
        "src/store/store.ts": 'export { zero } from "../util/clock.ts";\nimport "../meta/object.ts";\n',
        "src/schema/schema.ts": 'import * as z from "zod/mini";\nexport const text = z.string;\n',
        "src/node/files.ts": 'import "node:fs";\nimport "../client/client.ts";\n',
        "src/compat/fluent/watch.ts": 'import "../../client/client.ts";\n',
        "mod.ts":
          '/** Doc. */\nexport * from "./src/store/store.ts";\nexport { client } from "./src/client/client.ts";\n',
      }),
      [],
    );
  });

  it("refuses a file of more than 500 lines, and a folder of more than 20 files", async () => {
    const files = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, i) => [`src/queue/f${i}.ts`, "export {};\n"]));
    const lines = (count: number) => ({ "src/util/long.ts": "export {};\n" + "\n".repeat(count - 1) });
    assert.deepEqual(await violationsOf({ ...lines(500), ...files(20) }), []);
    const violations = await violationsOf({ ...lines(501), ...files(21) });
    assert.deepEqual(violations.map((violation) => violation.split(" has")[0]), [
      "src/util/long.ts:501 long-file",
      "src/queue/f0.ts:1 full-folder src/queue/",
    ]);
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
      /^src\/reflector\/bad\.ts:1 layer reflector\/ may not import client\/ .*may import util, meta, text, store, queue$/,
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
      "what a room within a room may import, in the room around it",
      "src/compat/bad.ts",
      'export * from "../client/client.ts";\n',
      /^src\/compat\/bad\.ts:1 layer compat\/ may not import client\//,
    ],
    [
      "what a room within a room may not import",
      "src/compat/fluent/bad.ts",
      'export * from "../../hono/send/list.ts";\n',
      /^src\/compat\/fluent\/bad\.ts:1 layer compat\/fluent\/ may not import hono\//,
    ],
    [
      "a package in a core room",
      "src/informer/bad.ts",
      'import { Hono } from "hono";\nexport const h = Hono;\n',
      /^src\/informer\/bad\.ts:1 package informer\/ may not import npm:hono@.*: only hono\/, workers\/, cli\/ may$/,
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
    [
      "an arrow back up in hono/",
      "src/hono/content/bad.ts",
      'import type { U } from "../request/user.ts";\nimport "../send/list.ts";\nexport type V = U;\n',
      /^src\/hono\/content\/bad\.ts:2 layer hono\/content\/ may not import .*list\.ts: .*may import hono\/request$/,
    ],
    [
      "a folder of hono/ that imports what joins the folders",
      "src/hono/request/bad.ts",
      'import "../routes.ts";\n',
      /^src\/hono\/request\/bad\.ts:1 layer hono\/request\/ may not import src\/hono\/routes\.ts: .*may import nothing of hono\/$/,
    ],
    [
      "a folder of hono/ that is in no order",
      "src/hono/attic/bad.ts",
      'import "../send/list.ts";\n',
      /^src\/hono\/attic\/bad\.ts:1 layer hono\/attic\/ is in no order/,
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

  describe("refuses a circle of files", () => {
    const closings: [what: string, kind: string, closing: string][] = [
      ["imports of values", "import", 'import { a } from "./a.ts";\nexport const b: unknown = () => a;\n'],
      ["an import of a type", "type import", 'import type { A } from "./a.ts";\nexport const b = 1 as A;\n'],
      ["a re-export", "import", 'export { a } from "./a.ts";\nexport const b = 1;\n'],
      ["a re-export of a type", "type import", 'export type { A } from "./a.ts";\nexport const b = 1;\n'],
      ["an import() type", "type import", 'export const b = 1 as import("./a.ts").A;\n'],
      [
        "a dynamic import",
        "dynamic import",
        'export const b = 1;\nexport const load = (): Promise<unknown> => import("./a.ts");\n',
      ],
    ];
    for (const [what, kind, closing] of closings) {
      it(`that ${what} closes, over any number of files`, async () => {
        for (const between of [false, true]) {
          const [found, ...rest] = await violationsOf({
            "src/util/a.ts": `import { b } from "./${between ? "c" : "b"}.ts";\n` +
              "export type A = number;\nexport const a: unknown = b;\n",
            "src/util/b.ts": closing,
            "src/util/c.ts": 'export { b } from "./b.ts";\n',
          });
          assert.match(found, new RegExp(`:\\d cycle ${kind} closes a circle: src/util/`));
          assert.deepEqual(rest, []);
        }
      });
    }

    it("and reports each circle once", async () => {
      const pair = (x: string, y: string) => ({
        [`src/util/${x}.ts`]: `import type { Y } from "./${y}.ts";\nexport type X = Y | 1;\n`,
        [`src/util/${y}.ts`]: `import type { X } from "./${x}.ts";\nexport type Y = X | 2;\n`,
      });
      const found = await violationsOf({ ...pair("a", "b"), ...pair("c", "d") });
      assert.equal(found.length, 2, found.join("\n"));
    });
  });

  it("has a table whose arrows form no loop", () => {
    const reaches = (room: string, goal: string): boolean =>
      ROOMS[room].rooms.some((next) => next === goal || reaches(next, goal));
    assert.deepEqual(Object.keys(ROOMS).filter((room) => reaches(room, room)), []);
  });

  it("allows every import that CONTRIBUTING.md draws", async () => {
    const text = await Deno.readTextFile(new URL("../../CONTRIBUTING.md", import.meta.url));
    const arrows = arrowsIn(/An arrow reads "imports":\s+```\n([\s\S]*?)```/.exec(text)?.[1] ?? "");
    assert.ok(arrows.length > 15, text);
    for (const [from, to] of arrows) assert.ok(ROOMS[from].rooms.includes(to), `${from} ──> ${to}`);
    const inner = arrowsIn(
      /An arrow of `hono` reads\s+"imports", too:\s+```\n([\s\S]*?)```/.exec(text)?.[1] ?? "",
    );
    for (const [from, to] of inner) assert.ok(INNER_ROOMS.hono[from].rooms.includes(to), `${from} ──> ${to}`);
    assert.deepEqual(new Set(inner.flat()), new Set(Object.keys(INNER_ROOMS.hono)), "each folder is drawn");
  });
});
