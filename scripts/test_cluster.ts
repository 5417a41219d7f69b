/**
 * `deno task test:cluster [--all] [--suites] [FILE ...] [options of deno test]`: runs tests/cluster against a
 * real API server, and ends with a line `N passed, N failed`. `--all`: also those with kube-rs, which needs
 * Rust and minutes to build. `--suites`: also Kubernetes' own tests through `serve`, which take minutes.
 *
 * The server is our own kube-apiserver, built by Go where that is needed, or the one of the kubeconfig that
 * LISTWATCH_TEST_KUBECONFIG names; tests that kill or compact a server are skipped there.
 *
 * @module
 */

import { join } from "node:path";
import { ensureGoProgram, GO_PROGRAMS, GO_SUITES } from "./lib/cluster_build.ts";
import { runClusterTask } from "./lib/cluster_task.ts";
import { ROOT } from "./lib/gate.ts";
import { parseJunit } from "./lib/junit.ts";
import { usage } from "./lib/task_usage.ts";

const USAGE = usage({
  task: "test:cluster",
  takes: "[FILE...] [options of deno test]",
  does:
    "Runs tests/cluster against a real kube-apiserver (needs Go), or on the cluster of the kubeconfig that\n" +
    "LISTWATCH_TEST_KUBECONFIG names. Ends with `N passed, N failed`.",
  options: {
    "--all": "also the tests with kube-rs, which needs Rust and minutes to build",
    "--suites": "also Kubernetes' own tests through `serve`, which take minutes",
  },
});

async function main(given: string[], signal: AbortSignal): Promise<number> {
  if (given.includes("--help") || given.includes("-h")) {
    console.log(USAGE);
    return 0;
  }
  const args = given.filter((arg) => arg !== "--all" && arg !== "--suites");
  const hasSuites = given.includes("--suites");
  const kubeconfig = Deno.env.get("LISTWATCH_TEST_KUBECONFIG");
  if (kubeconfig) {
    if (!await Deno.stat(kubeconfig).then(({ isFile }) => isFile, () => false)) {
      console.error(
        `LISTWATCH_TEST_KUBECONFIG names ${kubeconfig}, which is no file: give it the path of a kubeconfig`,
      );
      return 1;
    }
    console.log(`on the cluster of ${kubeconfig}: tests that kill or compact a server are skipped`);
  } else {
    // Before the tests, as these have time limits.
    const programs = hasSuites ? [...GO_PROGRAMS, ...GO_SUITES] : GO_PROGRAMS;
    for (const program of programs) await ensureGoProgram(program, { log: console.log, signal });
  }

  // Whatever happens to the tests, nothing of theirs stays.
  const tempDir = await Deno.makeTempDir({ prefix: "listwatch-test-cluster-" });
  try {
    const report = join(tempDir, "report.xml");
    const isFile = args.some((arg) => arg.endsWith("_test.ts"));
    const child = new Deno.Command(Deno.execPath(), {
      args: ["test", "-A", `--junit-path=${report}`, ...args, ...isFile ? [] : ["tests/cluster/"]],
      cwd: ROOT,
      env: {
        TMPDIR: tempDir,
        ...(given.includes("--all") && { LISTWATCH_TEST_ALL: "1" }),
        ...(hasSuites && { LISTWATCH_TEST_SUITES: "1" }),
      },
      signal,
    }).spawn();
    const { code } = await child.status;
    const results = parseJunit(await Deno.readTextFile(report).catch(() => ""), "deno");
    const count = (of: string) => results.filter(({ status }) => status === of).length;
    const [passed, failed, skipped] = [count("passed"), count("failed"), count("skipped")];
    if (signal.aborted) {
      console.error("interrupted");
      return 130;
    }
    if (skipped > 0) console.log(`${skipped} skipped`);
    // A run that broke off has failed, whatever the report says.
    const broken = (code !== 0 && failed === 0) || passed + failed === 0;
    console.log(`${passed} passed, ${broken ? 1 : failed} failed`);
    return code === 0 && !broken ? 0 : 1;
  } finally {
    await removeAll(tempDir);
  }
}

/** A server that was left behind, by a test that was killed, writes for up to a second more. */
async function removeAll(dir: string): Promise<void> {
  for (let tries = 1;; tries++) {
    try {
      return await Deno.remove(dir, { recursive: true });
    } catch (error) {
      if (tries === 20) throw error;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}

if (import.meta.main) await runClusterTask(main);
