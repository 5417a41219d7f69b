import assert from "node:assert/strict";
import { ensureGoProgram } from "../../../scripts/lib/cluster_build.ts";
import { type CaseResult, describeSuite, type SuiteRun } from "./go_suite.ts";

/** What Ginkgo reports of a test. */
interface SpecReport {
  readonly ContainerHierarchyTexts: readonly string[] | null;
  readonly LeafNodeType: string;
  readonly LeafNodeText: string;
  readonly State: string;
  readonly Failure?: { readonly Message: string };
}

describeSuite({
  name: "controller-runtime",
  title: "controller-runtime's tests of its cache",
  timeoutMs: 15 * 60_000,
  scope: {
    outOfScope: [],
    differs: [],
    races: ["to be cancelled", "when context is cancelled"].map((ending) => ({
      ending,
      why: "an informer that has synced by then is returned, or read, although the context is cancelled",
    })),
  },
  isParallel: true,
  run: runTests,
});

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
