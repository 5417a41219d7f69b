import { ensureGoProgram } from "../../../scripts/lib/cluster_build.ts";
import { describeSuite, runSuite, type SuiteScope } from "./go_suite.ts";

// The files of Kubernetes' test/e2e/apimachinery whose tests read, or read what they have written. The others
// are about kube-apiserver's inside (its health, flow control, webhooks, policies), or need nodes and
// controllers: of garbage_collector.go, namespace.go and resource_quota.go all do.
const FILES: readonly string[] = [
  "aggregated_discovery.go",
  "apply.go",
  "chunking.go",
  "crd_validation_ratcheting.go",
  "crd_validation_rules.go",
  "crd_watch.go",
  "custom_resource_definition.go",
  "discovery.go",
  "field_validation.go",
  "generated_clientset.go",
  "openapiv3.go",
  "protocol.go",
  "request_timeout.go",
  "server_version.go",
  "table_conversion.go",
  "watch.go",
  "watchlist.go",
];

// Not run: a list continues until etcd has compacted its state, which takes minutes, and which serve does not
// forget; an aggregated API server; pods that a kubelet ends; and CBOR, which is off by default.
const SKIP = "has been compacted away|Aggregated APIServer|should create pods|CBOR";

const JSON_ITEMS =
  "client-go reads kind and apiVersion of a list's items from JSON, and there are none in protobuf: the API server " +
  "fails, too, where it answers with JSON";

const PROTOBUF = "the read API does not speak protobuf: 406";

const SCOPE: SuiteScope = {
  outOfScope: [],
  differs: [
    {
      name: 'protocol.go/watch_and_report_errors_with_accept_"application/vnd.kubernetes.protobuf"',
      why: PROTOBUF,
    },
    { name: "watchlist.go/should_be_requested_by_metadatainformer", why: JSON_ITEMS },
    { name: "watchlist.go/should_NOT_be_requested_by_metadata_client's_List_method", why: JSON_ITEMS },
  ],
};

describeSuite({
  name: "e2e",
  title: "Kubernetes' end-to-end tests",
  timeoutMs: 20 * 60_000,
  scope: SCOPE,
  isParallel: true,
  // Nodes are listed as a Table.
  prepare: ({ cluster }) => cluster.resource("v1/nodes").create({ metadata: { name: "node-1" } }),
  async run(kubeconfigPath) {
    const program = await ensureGoProgram("e2e");
    return await runSuite([program, "--files", FILES.join(","), "--skip", SKIP, "--server", kubeconfigPath]);
  },
});
