import { ensureGoProgram, type GoSuite } from "../../../scripts/lib/cluster_build.ts";
import type { OwnConnection } from "../connection.ts";
import { type CaseResult, describeSuite, runSuite, type SuiteRun } from "./go_suite.ts";

// Not run, as they are about the API server that they start: one with certificates or users of their
// own (Cert, Exec), with a feature that is off by default (CBOR), that answers with a media type of
// their choice, or two that differ in a feature.
const SKIP = "Cert|Exec|CBOR|UnsupportedMediaType|ReflectorWatchListFallback";

// The objects of these groups have the same names in the same namespace.
const GROUPS = ["^TestDynamic", "^Test(?:[^D]|D[^y])"];

describeSuite({
  name: "client-go",
  title: "Kubernetes' integration tests of client-go",
  timeoutMs: 10 * 60_000,
  scope: { outOfScope: [], differs: [] },
  isParallel: true,
  async run(kubeconfigPath, connection) {
    const results: [string, CaseResult][] = [];
    let seconds = 0;
    for (const group of GROUPS) {
      const run = await runTests("client_integration", group, kubeconfigPath, connection);
      results.push(...run.results);
      seconds += run.seconds;
      for (const resource of ["pods", "events"]) {
        const path = `/api/v1/namespaces/default/${resource}?gracePeriodSeconds=0`;
        await connection.cluster.request(path, { method: "DELETE" });
      }
    }
    return { results: new Map(results), seconds };
  },
});

describeSuite({
  name: "watches",
  title: "Kubernetes' integration tests of watches",
  timeoutMs: 10 * 60_000,
  scope: {
    outOfScope: [{
      name: "TestWatchRestartsIfTimeoutNotReached/group/regular_watcher_should_fail",
      why: "the time that kube-apiserver's flag --min-request-timeout gives a watch; serve has no such flag",
    }],
    differs: [{
      name: "TestWebsocketWatchClientTimeout",
      why:
        "the request says that it comes from a page of another origin, which serve does not allow by default",
    }],
  },
  apiServerArgs: ["--min-request-timeout=7"],
  isParallel: true,
  run: (kubeconfigPath, connection) => runTests("apimachinery_integration", ".", kubeconfigPath, connection),
});

async function runTests(
  suite: GoSuite,
  tests: string,
  kubeconfigPath: string,
  { server }: OwnConnection,
): Promise<SuiteRun> {
  const program = await ensureGoProgram(suite);
  const args = ["-test.v", `-test.run=${tests}`, `-test.skip=${SKIP}`];
  // The tests start an etcd where they find none.
  const env = { KUBECONFIG: kubeconfigPath, KUBE_INTEGRATION_ETCD_URL: server.etcd };
  return await runSuite([program, ...args], { env });
}
