import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { runDeno } from "../../scripts/lib/process.ts";

describe("deno task simulate", () => {
  const run = (...args: string[]) => runDeno(["run", "-A", "--no-check", "scripts/simulate.ts", ...args]);

  it("prints its usage with --help, with each flag and each fault", async () => {
    const { code, stdout } = await run("--help");
    assert.equal(code, 0);
    assert.match(stdout, /^Usage: deno task simulate /);
    const worlds = ["--tree", "--shards", "--controllers"];
    for (const flag of ["--seeds", "--from", "--only", "--without", ...worlds, "--trace", "--summary"]) {
      assert.match(stdout, new RegExp(`^  ${flag} `, "m"));
    }
    assert.match(stdout, /^Faults: \w+/m);
  });

  it("simulates the seeds of the command line", async () => {
    assert.match((await run("--seeds=2", "--from", "5")).stdout, /\n2 passed, 0 failed\n$/);
  });

  it("simulates the Widget controller in several workers with --controllers", async () => {
    const { code, stdout } = await run("--controllers", "--seeds", "60", "--from", "7");
    assert.match(stdout, /^60 worlds, \d{3} writes in /);
    assert.match(stdout, /\n60 passed, 0 failed\n$/);
    assert.equal(code, 0);
  });

  it("exits with 2 for an invalid command line, says why, and prints its usage", async () => {
    const wrong = [["--no-such"], ["--seeds", "x"], ["--only", "x"], ["--tree", "--only", "x"], ["--seeds"]];
    wrong.push(["--tree", "--controllers"], ["--controllers", "--trace"]);
    for (const args of wrong) {
      // deno-lint-ignore no-await-in-loop -- one after the other
      const { code, stderr } = await run(...args);
      assert.equal(code, 2, args.join(" "));
      assert.match(stderr, new RegExp(`${args[0]}.*\n`));
      assert.match(stderr, /\nUsage: deno task simulate /);
    }
  });
});
