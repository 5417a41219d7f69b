/**
 * How a task that starts a real API server ends, where it does not come to that.
 * @module
 */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { runDeno } from "../../scripts/lib/process.ts";

for (const task of ["cluster", "soak"]) {
  describe(`deno task ${task}`, () => {
    const run = (...args: string[]) => runDeno(["run", "-A", `scripts/${task}.ts`, ...args]);

    it("prints its usage with --help", async () => {
      const { code, stdout } = await run("--help");
      assert.equal(code, 0);
      assert.match(stdout, new RegExp(`^Usage: deno task ${task} `));
    });

    it("exits with 2 for an invalid command line, says why, and prints its usage", async () => {
      for (const [args, why] of [[["--no-such"], /^Unknown option '--no-such'/], SENSELESS[task]] as const) {
        // deno-lint-ignore no-await-in-loop -- one after the other
        const { code, stderr } = await run(...args);
        assert.equal(code, 2);
        assert.match(stderr, why);
        assert.match(stderr, new RegExp(`\nUsage: deno task ${task} `));
      }
    });
  });
}

const SENSELESS: Record<string, readonly [readonly string[], RegExp]> = {
  cluster: [["--port", "x"], /^--port x is not a port: use a number from 0 to 65535\n/],
  soak: [["--minutes", "no"], /^--minutes no is no time: use a number above 0\n/],
};
