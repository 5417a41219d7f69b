import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ensureGoProgram } from "../../../scripts/lib/cluster_build.ts";
import { skipWithoutOwnServer, startOwn } from "../connection.ts";
import { adminToken, everyResource, startServe } from "../hosts/host.ts";
import { type CaseResult, compareRuns, skipSuites, type SuiteRun } from "./go_suite.ts";

/** What Ginkgo reports of a test. */
interface SpecReport {
  readonly ContainerHierarchyTexts: readonly string[] | null;
  readonly LeafNodeType: string;
  readonly LeafNodeText: string;
  readonly State: string;
  readonly Failure?: { readonly Message: string };
}

describe("listwatch serve --pass-through-writes under controller-runtime's tests of its cache", {
  skip: skipWithoutOwnServer || skipSuites,
}, () => {
  it("passes what the API server passes", { timeout: 15 * 60_000 }, async () => {
    // Both wait most of the time.
    const [control, served] = await Promise.all([runOnce("API server"), runOnce("serve")]);
    console.log(`controller-runtime: ${compareRuns(control, served, { outOfScope: [], differs: [] })}`);
  });
});

/** Runs the tests on a new cluster, on the API server or on `serve`. */
async function runOnce(on: "API server" | "serve"): Promise<SuiteRun> {
  await using connection = await startOwn();
  const { kubeconfigPath, cluster } = connection;
  if (on === "API server") return await runTests(kubeconfigPath);
  const { resources } = await everyResource(cluster);
  await using served = await startServe("deno", {
    connection,
    token: await adminToken(connection),
    resources,
  });
  return await runTests(served.kubeconfigPath);
}

async function runTests(kubeconfigPath: string): Promise<SuiteRun> {
  const program = await ensureGoProgram("controller_runtime");
  const report = await Deno.makeTempFile({ suffix: ".json" });
  const startedMs = performance.now();
  const { stdout, stderr } = await new Deno.Command(program, {
    args: ["-ginkgo.no-color", `-ginkgo.json-report=${report}`],
    env: { USE_EXISTING_CLUSTER: "true", KUBECONFIG: kubeconfigPath },
    stdin: "null",
  }).output();
  const seconds = (performance.now() - startedMs) / 1000;
  const text = await Deno.readTextFile(report);
  await Deno.remove(report);
  const printed = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes).slice(-5_000));
  assert.notEqual(text, "", `controller-runtime's tests did not run:\n${printed.join("\n")}`);
  const results = new Map<string, CaseResult>();
  const [{ SpecReports: specs }]: [{ SpecReports: readonly SpecReport[] }] = JSON.parse(text);
  for (const { ContainerHierarchyTexts: around, LeafNodeType, LeafNodeText, State, Failure } of specs) {
    if (LeafNodeType !== "It") continue;
    const state = State === "passed" ? "PASS" : State === "skipped" ? "SKIP" : "FAIL";
    results.set([...around ?? [], LeafNodeText].join(" "), { state, output: Failure?.Message ?? "" });
  }
  return { results, seconds };
}
