import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { ROOT } from "../../scripts/lib/gate.ts";
import { runDeno } from "../../scripts/lib/process.ts";
import { usage } from "../../scripts/lib/task_usage.ts";

/** Tasks whose commands are others': of the program itself, and of `deno test`. */
const NOT_OURS = ["start", "test:unit"];

/** What people run, and no task does. */
const SCRIPTS = [
  "benchmarks/object/main.ts",
  "npm/check.ts",
  "scripts/bundle_page.ts",
  "scripts/check_corridor.ts",
  "scripts/check_exports.ts",
  "scripts/check_language.ts",
  "scripts/check_layers.ts",
  "scripts/scale.ts",
];

const { tasks }: { tasks: Record<string, { command: string }> } = JSON.parse(
  readFileSync(join(ROOT, "deno.json"), "utf8"),
);

describe("deno task NAME --help", () => {
  for (const [name, { command }] of Object.entries(tasks)) {
    if (NOT_OURS.includes(name)) continue;
    it(`prints the usage of ${name}, and does nothing else`, async () => {
      const [program, ...args] = command.split(" ");
      assert.equal(program, "deno");
      const { code, stdout, stderr } = await runDeno([...args, "--help"], { cwd: ROOT });
      assert.equal(code, 0, stderr);
      const [first, second, does] = stdout.split("\n");
      assert.ok(first.startsWith(`Usage: deno task ${name} [options]`), first);
      assert.equal(second, "");
      assert.match(does, /^\S/);
      assert.match(stdout, /^ {2}--help +show this text$/m);
      assert.equal(stderr, "");
    });
  }

  for (const path of SCRIPTS) {
    it(`prints the usage of ${path}, which has no task, and does nothing else`, async () => {
      const { code, stdout, stderr } = await runDeno(["run", "-A", path, "--help"], { cwd: ROOT });
      assert.equal(code, 0, stderr);
      assert.match(
        stdout,
        new RegExp(`^Usage: deno run -A ${path} \\[options\\].*\n\n\\S[^]*\n  --help +show this text$`, "m"),
      );
      assert.equal(stderr, "");
    });
  }

  it("is the same where an option is wrong, with what is wrong before it", async () => {
    const { code, stderr } = await runDeno(["run", "-A", "scripts/check_size.ts", "--updat"], { cwd: ROOT });
    assert.equal(code, 2);
    assert.match(stderr, /^Unknown option '--updat'[^]*\n\nUsage: deno task size \[options\]\n/);
  });
});

describe("usage", () => {
  it("puts options, arguments and meanings into columns", () => {
    const text = usage({
      task: "mow",
      takes: "[LAWN]",
      does: "Mows.",
      options: { "--height CM": "of the grass" },
    });
    assert.equal(
      text,
      "Usage: deno task mow [options] [LAWN]\n\nMows.\n\n  --height CM  of the grass\n  --help       show this text\n",
    );
  });
});
