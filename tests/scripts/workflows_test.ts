/** The workflows run what there is, with the version of Deno that README names. */

import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { parse } from "yaml";
import { ROOT } from "../../scripts/lib/gate.ts";

interface Step {
  readonly uses?: string;
  readonly run?: string;
}
interface Job {
  readonly "timeout-minutes"?: number;
  readonly permissions?: Readonly<Record<string, string>>;
  readonly steps: readonly Step[];
}
interface Workflow {
  readonly permissions: Readonly<Record<string, string>>;
  readonly jobs: Readonly<Record<string, Job>>;
}

const read = (path: string) => readFileSync(join(ROOT, path), "utf8");
const { tasks }: { tasks: Record<string, unknown> } = JSON.parse(read("deno.json"));
const [deno] = /deno@[\d.]+/.exec(read("README.md"))!;

describe(".ci/run", () => {
  it("has the Deno of README, and tasks that there are", () => {
    const script = read(".ci/run");
    assert.ok(script.includes(`deno="${deno}"`));
    const called = Array.from(script.matchAll(/^ *run_task (\S+)/gm), ([, task]) => task);
    assert.deepEqual(called.filter((task) => !(task in tasks)), []);
    assert.ok(called.length >= 3);
  });
});

describe(".github/workflows/", () => {
  for (const name of readdirSync(join(ROOT, ".github/workflows"))) {
    const { permissions, jobs }: Workflow = parse(read(`.github/workflows/${name}`));

    it(`${name} runs what there is, with the Deno of README`, () => {
      const commands = Object.values(jobs).flatMap(({ steps }) => steps.flatMap(({ run }) => run ?? []));
      assert.ok(commands.length > 0);
      for (const command of commands) {
        const [path] = command.split(" ");
        if (path.startsWith(".")) assert.ok(existsSync(join(ROOT, path)), path);
        for (const [version] of command.matchAll(/deno@[\d.]+/g)) assert.equal(version, deno);
        for (const [, task] of command.matchAll(/ task (\S+)/g)) assert.ok(task in tasks, task);
      }
    });

    it(`${name} may read only, but for the proof of a release, and ends what hangs`, () => {
      assert.deepEqual(permissions, { contents: "read" });
      for (const job of Object.values(jobs)) {
        assert.ok(job["timeout-minutes"] !== undefined);
        const publishes = job.steps.some(({ run }) => / publish\b/.test(run ?? ""));
        assert.equal(job.permissions?.["id-token"], publishes ? "write" : undefined);
      }
    });
  }

  it("ci.yml runs on three systems, release.yml on both registries", () => {
    const ci = parse(read(".github/workflows/ci.yml"));
    assert.deepEqual(ci.jobs.run.strategy.matrix.os, ["ubuntu-latest", "macos-latest", "windows-latest"]);
    const { jobs }: Workflow = parse(read(".github/workflows/release.yml"));
    const commands = (job: Job) => job.steps.flatMap(({ run }) => run ?? []).join("\n");
    assert.match(commands(jobs.jsr), /deno@[\d.]+ publish$/);
    assert.match(commands(jobs.npm), / publish \.\/npm\/dist --provenance --access public$/);
  });
});

describe(".github/ISSUE_TEMPLATE/", () => {
  it("has forms with what a reader has to fill in, each with an id of its own", () => {
    const folder = ".github/ISSUE_TEMPLATE";
    const forms = readdirSync(join(ROOT, folder)).filter((name) => name !== "config.yml");
    assert.deepEqual(forms.sort(), ["defect.yml", "wish.yml"]);
    for (const form of forms) {
      const { name, description, body } = parse(read(`${folder}/${form}`));
      assert.ok(name && description);
      const ids = body.flatMap(({ id }: { id?: string }) => id ?? []);
      assert.ok(ids.length >= 3 && new Set(ids).size === ids.length, form);
      assert.ok(
        body.some(({ validations }: { validations?: { required: boolean } }) => validations?.required),
      );
    }
  });
});
