import { describe, it } from "node:test";
import { ensureGoProgram } from "../../../scripts/lib/cluster_build.ts";
import { skipWithoutOwnServer, startOwn } from "../connection.ts";
import { adminToken, everyResource, startServe } from "../hosts/host.ts";
import { compareRuns, runSuite, skipSuites, type SuiteRun, type SuiteScope } from "./go_suite.ts";

// The suite names the next version of everything, so nothing else may write: no leases, endpoints or namespaces.
const QUIET: readonly string[] = [
  "--disable-admission-plugins=ServiceAccount,NamespaceLifecycle",
  "--endpoint-reconciler-type=none",
  "--feature-gates=APIServerIdentity=false,UnknownVersionInteroperabilityProxy=false",
];

const NO_REQUEST = "keys of etcd for which the HTTP API has no request";
const COMPACTED = "serve still has the version that etcd has compacted";

// Calls that tests/cluster/storage does not make, as they say nothing about reads over HTTP: those on time to live
// (CreateWithTTL, GuaranteedUpdateWithTTL), on transformers of stored bytes (GuaranteedUpdate,
// GuaranteedUpdateChecksStoredData, TransformationFailure, ListResourceVersionMatch, WatchError, WatchWithUnsafeDelete,
// WatchErrorIsBlockingFurtherEvents), on the form of etcd's keys (KeySchema), Stats, etcd's progress notifications
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

describe("listwatch serve under the conformance suite of kube-apiserver's storage", {
  skip: skipWithoutOwnServer || skipSuites,
}, () => {
  it("passes what the API server passes", { timeout: 10 * 60_000 }, async () => {
    const control = await runOnce("API server");
    const served = await runOnce("serve");
    console.log(`storage: ${compareRuns(control, served, SCOPE)}`);
  });
});

/** Runs the suite on a new cluster, with reads from the API server or from `serve`. */
async function runOnce(reader: "API server" | "serve"): Promise<SuiteRun> {
  await using connection = await startOwn(QUIET);
  const { kubeconfigPath, server, cluster } = connection;
  const args = ["--writer", kubeconfigPath, "--etcd", server.etcd, "-test.v"];
  const program = await ensureGoProgram("storage");
  const { success, stderr } = await new Deno.Command(program, { args: ["--define", kubeconfigPath] })
    .output();
  if (!success) throw new Error(new TextDecoder().decode(stderr));
  if (reader === "API server") return await runSuite("storage", [...args, "--reader", kubeconfigPath]);
  const { resources } = await everyResource(cluster);
  await using served = await startServe("deno", {
    connection,
    token: await adminToken(connection),
    resources,
  });
  return await runSuite("storage", [...args, "--reader", served.kubeconfigPath]);
}
