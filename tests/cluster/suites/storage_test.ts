import assert from "node:assert/strict";
import { ensureGoProgram } from "../../../scripts/lib/cluster_build.ts";
import { run } from "../../../scripts/lib/process.ts";
import { describeSuite, runSuite, type SuiteScope } from "./go_suite.ts";

// The suite names the next version of everything, so nothing else
// may write: no leases, endpoints or namespaces.
const QUIET: readonly string[] = [
  "--disable-admission-plugins=ServiceAccount,NamespaceLifecycle",
  "--endpoint-reconciler-type=none",
  "--feature-gates=APIServerIdentity=false,UnknownVersionInteroperabilityProxy=false",
];

const NO_REQUEST = "keys of etcd for which the HTTP API has no request";
const COMPACTED = "serve still has the version that etcd has compacted";

// Calls that tests/cluster/storage does not make, as they say nothing about reads over HTTP: those on
// time to live (CreateWithTTL, GuaranteedUpdateWithTTL), on transformers of stored bytes
// (GuaranteedUpdate, GuaranteedUpdateChecksStoredData, TransformationFailure,
// ListResourceVersionMatch, WatchError, WatchWithUnsafeDelete, WatchErrorIsBlockingFurtherEvents), on
// the form of etcd's keys (KeySchema), Stats, etcd's progress notifications
// (OptionalTestProgressNotify), and a signal inside kube-apiserver (WatchInitializationSignal).
const SCOPE: SuiteScope = {
  outOfScope: ["Exact", "Consistent", "NotOlderThan"].flatMap((list) =>
    ["NonRecursive_on_resource_prefix", "NonRecursive_on_namespace_prefix", "Recursive_on_object_key"].map((
      key,
    ) => ({
      name: `GetListRecursivePrefix/${list}/${key}`,
      why: NO_REQUEST,
    }))
  ),
  differs: [
    { name: "List/test_List_with_resource_version_set_before_first_write,_match=Exact", why: COMPACTED },
    {
      name: "List/test_List_on_existing_key_with_resource_version_set_before_first_write,_match=Exact",
      why: COMPACTED,
    },
    { name: "List/test_List_with_continue,_resource_version_before_first_write", why: COMPACTED },
    { name: "ListInconsistentContinuation", why: COMPACTED },
    { name: "CompactRevision", why: COMPACTED },
  ],
};

describeSuite({
  name: "storage",
  title: "the conformance suite of kube-apiserver's storage",
  timeoutMs: 10 * 60_000,
  scope: SCOPE,
  apiServerArgs: QUIET,
  isParallel: false,
  async prepare({ kubeconfigPath }) {
    const program = await ensureGoProgram("storage");
    const { code, output } = await run(program, ["--define", kubeconfigPath]);
    assert.equal(code, 0, output);
  },
  async run(reader, { kubeconfigPath: writer, server }) {
    const program = await ensureGoProgram("storage");
    const args = ["--writer", writer, "--etcd", server.etcd, "-test.v", "--reader", reader];
    return await runSuite([program, ...args]);
  },
});
