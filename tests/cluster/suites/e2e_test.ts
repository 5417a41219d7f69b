import { describe, it } from "node:test";
import { skipWithoutOwnServer, startOwn } from "../connection.ts";
import { adminToken, everyResource, startServe } from "../hosts/host.ts";
import { compareRuns, runSuite, skipSuites, type SuiteRun, type SuiteScope } from "./go_suite.ts";

// The files of Kubernetes' test/e2e/apimachinery whose tests read. Those of the others write only, are about
// kube-apiserver's inside (its health, flow control, webhooks), or need nodes and controllers: of garbage_collector.go,
// namespace.go and resource_quota.go all do.
const FILES: readonly string[] = [
  "aggregated_discovery.go",
  "chunking.go",
  "crd_watch.go",
  "discovery.go",
  "generated_clientset.go",
  "openapiv3.go",
  "request_timeout.go",
  "server_version.go",
  "table_conversion.go",
  "watch.go",
  "watchlist.go",
];

// Not run: a list continues until etcd has compacted its state, which takes minutes, and which serve does not forget; an
// aggregated API server, and pods that a kubelet ends.
const SKIP = "has been compacted away|Aggregated APIServer|should create pods";

const JSON_ITEMS =
  "client-go reads kind and apiVersion of a list's items from JSON, and there are none in protobuf: the API server " +
  "fails, too, where it answers with JSON";

const SCOPE: SuiteScope = {
  outOfScope: [],
  differs: [
    { name: "watchlist.go/should_be_requested_by_metadatainformer", why: JSON_ITEMS },
    { name: "watchlist.go/should_NOT_be_requested_by_metadata_client's_List_method", why: JSON_ITEMS },
  ],
};

describe("listwatch serve --pass-through-writes under Kubernetes' end-to-end tests", {
  skip: skipWithoutOwnServer || skipSuites,
}, () => {
  it("passes what the API server passes", { timeout: 20 * 60_000 }, async () => {
    // Both wait most of the time.
    const [control, served] = await Promise.all([runOnce("API server"), runOnce("serve")]);
    console.log(`e2e: ${compareRuns(control, served, SCOPE)}`);
  });
});

/** Runs the tests on a new cluster, on the API server or on `serve`. */
async function runOnce(on: "API server" | "serve"): Promise<SuiteRun> {
  await using connection = await startOwn();
  const { kubeconfigPath, cluster } = connection;
  // Nodes are listed as a Table.
  await cluster.resource("v1/nodes").create({ metadata: { name: "node-1" } });
  const args = ["--files", FILES.join(","), "--skip", SKIP];
  if (on === "API server") return await runSuite("e2e", [...args, "--server", kubeconfigPath]);
  const { resources } = await everyResource(cluster);
  await using served = await startServe("deno", {
    connection,
    token: await adminToken(connection),
    resources,
  });
  return await runSuite("e2e", [...args, "--server", served.kubeconfigPath]);
}
