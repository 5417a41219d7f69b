import assert from "node:assert/strict";
import { describe, it } from "node:test";
import plugin from "../../scripts/lint_plugin.ts";

function violations(path: string, source: string): string[] {
  return Deno.lint.runPlugin(plugin, path, source).map((diagnostic) =>
    diagnostic.id.replace("listwatch/", "")
  );
}

describe("deno task ok lint", () => {
  const refused: [rule: string, source: string][] = [
    ["no-bare-time", "setTimeout(() => {}, 1);"],
    ["no-bare-time", "const start = setInterval;"],
    ["no-bare-time", "export const f = (wait = setTimeout) => wait;"],
    ["no-bare-time", "const hooks = { start: setTimeout };"],
    ["no-bare-time", "const hooks = { clearTimeout };"],
    ["no-bare-time", "globalThis.setTimeout(() => {}, 1);"],
    ["no-bare-time", "const t = Date.now();"],
    ["no-bare-time", "const t = Date['now']();"],
    ["no-bare-time", "const t = new Date();"],
    ["no-bare-time", "const t = performance.now();"],
    ["no-bare-time", "const t = Math.random();"],
    ["no-bare-time", "const s = AbortSignal.timeout(5);"],
    ["no-runtime-global", "const v = Deno.version;"],
    ["no-runtime-global", "const v = typeof Bun === 'undefined';"],
    ["no-runtime-global", "const v = process.env.HOME;"],
    ["no-runtime-global", "const v = globalThis.process;"],
    ["no-runtime-global", "const v = Buffer.from('a');"],
    ["no-console", "console.log(1);"],
    ["zod-namespace", "import { z } from 'zod/v4/core';"],
    ["zod-namespace", "import * as z from 'zod/mini';"],
    ["zod-namespace", "import * as z from 'zod';"],
    ["no-default-export", "export default 1;"],
    ["no-enum", "enum Phase { Listing }"],
  ];
  for (const [rule, source] of refused) {
    it(`${rule} refuses ${source}`, () => {
      assert.deepEqual(violations("/x/src/reflector/reflector.ts", source), [rule]);
    });
  }

  it("linear-regex refuses expressions that take more than linear time, or that it cannot know", () => {
    const slow = [
      "const spaces = /\\s*[\\r\\n]+\\s*/g;",
      "const slashes = /\\/+$/;",
      "const nested = /^(a+)+$/;",
      "const twice = /^[a-z]*[a-z0-9]$/;",
      "const alternatives = /^(?:a|ab)*$/;",
      "const optional = /^(?:a?b?)*$/;",
      "const between = /certificate.*expired/;",
      "const back = /^(a)\\1*$/;",
      "const made = new RegExp(text);",
    ];
    for (const source of slow) {
      assert.deepEqual(violations("/x/src/reflector/reflector.ts", source), ["linear-regex"], source);
    }
  });

  const allowed = [
    "const handle = clock.setTimeout(() => {}, 1);",
    "interface Clock { setTimeout(callback: () => void, ms: number): number; now(): number }",
    "class Fake { setTimeout(): void {} clearTimeout = 1; }",
    "type Handle = ReturnType<typeof setTimeout>;",
    "const at = new Date(clock.now());",
    "const name = /^[a-z0-9]+(?:-+[a-z0-9]+)*$/;",
    'const quoted = /^"(?:[^"\\\\]|\\\\.)*"$/;',
    "const digits = /[0-9]+/g;",
    "const fraction = /\\.[0-9]+Z$/;",
    "const few = /={1,2}$/;",
    "function pop(process: (x: number) => void): void { process(1); }",
    "const shape = { setTimeout: 1, Deno: 2 };",
    "// Deno.version and setTimeout() in a comment\nconst text = 'Date.now()';",
    "const random = options.random ?? Math.random;",
    "import * as z from 'zod/v4/core';",
    "export const phase: 'listing' | 'stopped' = 'listing';",
  ];
  for (const source of allowed) {
    it(`allows ${source.replaceAll("\n", " ")}`, () => {
      assert.deepEqual(violations("/x/src/reflector/reflector.ts", source), []);
    });
  }

  it("holds outside of the exempt files only", () => {
    assert.deepEqual(violations("/x/src/util/clock.ts", "Date.now();"), []);
    assert.deepEqual(violations("/x/src/util/logger.ts", "console.log(1); Date.now();"), ["no-bare-time"]);
    assert.deepEqual(violations("/x/src/node/kubeconfig.ts", "Deno.env; process.env;"), []);
    assert.deepEqual(violations("/x/src/cli/main.ts", "Date.now();"), ["no-bare-time"]);
    assert.deepEqual(violations("/x/tests/util/clock_test.ts", "Date.now(); Deno.env; console.log(1);"), []);
  });
});
