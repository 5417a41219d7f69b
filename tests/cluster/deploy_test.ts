/** The manifests of deploy/, applied to a real API server by docs/deploy.md, and served by their account. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { parseCommandLine, serve } from "@listwatch/cache/cli";
import { loadKubeconfig, restConfigFromKubeconfig } from "@listwatch/cache/node";
import { ensureGoProgram } from "../../scripts/lib/cluster_build.ts";
import { type OwnConnection, skipWithoutOwnServer, startOwn } from "./connection.ts";
import { eventually } from "./eventually.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const FIXTURES = join(ROOT, "tests/node/fixtures");
const MOUNTED = "/var/run/secrets/kubernetes.io/serviceaccount";

interface Template {
  readonly metadata: object;
  readonly spec: { readonly containers: readonly { readonly args: string[] }[] };
}

describe("deploy/ on a real API server", { skip: skipWithoutOwnServer }, () => {
  let connection: OwnConnection;
  let program: string;
  let folder: string;
  let template: Template;
  before(async () => {
    program = await ensureGoProgram("kubectl");
    folder = await Deno.makeTempDir({ prefix: "listwatch-deploy-" });
    connection = await startOwn();
    await kubectl("apply -k deploy");
    template = JSON.parse(await kubectl("-n listwatch get deployment listwatch -o json")).spec.template;
  });
  after(async () => {
    await connection?.[Symbol.asyncDispose]();
    if (folder !== undefined) await Deno.remove(folder, { recursive: true });
  });

  it("is accepted, and the same when it is applied again", async () => {
    const lines = (await kubectl("apply -k deploy")).trim().split("\n");
    assert.equal(lines.length, 10);
    for (const line of lines) assert.match(line, / unchanged$/);
    await kubectl("-n listwatch get service,poddisruptionbudget,networkpolicy listwatch");
  });

  it("makes pods that the restricted Pod Security Standard admits", async () => {
    const { spec, metadata } = template;
    const pod = (spec: object) => ({
      apiVersion: "v1",
      kind: "Pod",
      metadata: { ...metadata, name: "one" },
      spec,
    });
    const path = join(folder, "pod.json");
    await Deno.writeTextFile(path, JSON.stringify(pod(spec)));
    await kubectl(`-n listwatch create --dry-run=server -f ${path}`);
    await Deno.writeTextFile(path, JSON.stringify(pod({ ...spec, securityContext: {} })));
    await assert.rejects(kubectl(`-n listwatch create --dry-run=server -f ${path}`), /violates PodSecurity/);
  });

  it("permits its account what it caches and the reviews of readers, and nothing else", async () => {
    const may = async (what: string) =>
      (await kubectl(`auth can-i ${what} -A --as=system:serviceaccount:listwatch:listwatch`, true)).trim();
    for (const verb of ["list", "watch"]) {
      for (const resource of ["pods", "events", "deployments.apps"]) {
        assert.equal(await may(`${verb} ${resource}`), "yes");
      }
    }
    for (
      const review of ["tokenreviews.authentication.k8s.io", "subjectaccessreviews.authorization.k8s.io"]
    ) {
      assert.equal(await may(`create ${review}`), "yes");
    }
    for (
      const what of [
        "list secrets",
        "create pods",
        "delete pods",
        "get pods --subresource=log",
        "patch nodes",
      ]
    ) {
      assert.equal(await may(what), "no", what);
    }
  });

  it("serves a reader what the reader may see, with the flags and the account of its pods", {
    timeout: 60_000,
  }, async () => {
    const admin = await loadKubeconfig({ path: connection.kubeconfigPath });
    const { server } = await restConfigFromKubeconfig(admin);
    const token = (account: string) => kubectl(`create token ${account}`).then((text) => text.trim());
    await Deno.writeTextFile(join(folder, "token"), await token("listwatch -n listwatch"));
    const authority = "{.clusters[0].cluster.certificate-authority-data}";
    const encoded = await kubectl(`config view --raw -o jsonpath=${authority}`);
    await Deno.writeTextFile(join(folder, "ca.crt"), atob(encoded));
    const config = await kubectl(
      "-n listwatch get configmap listwatch-kubeconfig -o jsonpath={.data.config}",
    );
    await Deno.writeTextFile(
      join(folder, "config"),
      config.replace("https://kubernetes.default.svc", server).replaceAll(MOUNTED, folder),
    );
    // As a kubelet makes an emptyDir for a pod with an fsGroup: everyone may write it (empty_dir.go, perm).
    const volume = join(folder, "cache");
    await Deno.mkdir(volume);
    await Deno.chmod(volume, 0o2777);
    const args = template.spec.containers[0].args.map((arg) =>
      arg.replace("/etc/listwatch/config", join(folder, "config"))
        .replace("/etc/listwatch-tls/tls.", join(FIXTURES, "server."))
        .replace("/var/cache/listwatch", volume)
        .replace("--host=0.0.0.0", "--host=127.0.0.1")
        .replace("--port=8787", "--port=0")
    );
    const command = parseCommandLine(args, {});
    assert.ok(command.name === "serve");
    await kubectl("create namespace shop");
    await kubectl("-n shop create configmap settings --from-literal=mode=slow");
    await kubectl("-n shop create serviceaccount reader");
    await kubectl("-n shop create role reader --verb=get,list,watch --resource=configmaps");
    await kubectl("-n shop create rolebinding reader --role=reader --serviceaccount=shop:reader");
    await kubectl("create clusterrole listwatch-metrics --verb=get --non-resource-url=/metrics");
    await kubectl(
      "create clusterrolebinding listwatch-metrics --clusterrole=listwatch-metrics --serviceaccount=shop:scraper",
    );
    await kubectl("-n shop create serviceaccount scraper");

    await using served = await serve(command.options);
    await served.synced(AbortSignal.timeout(30_000));
    const reader = ["--kubeconfig=/dev/null", `--server=${served.url}`].join(" ") +
      ` --certificate-authority=${join(FIXTURES, "ca.crt")} --token=${await token("reader -n shop")}`;
    await eventually(async () =>
      assert.equal(
        await kubectl(`${reader} -n shop get configmap settings -o jsonpath={.data.mode}`),
        "slow",
      )
    );
    await assert.rejects(kubectl(`${reader} -n kube-system get configmaps`), /is forbidden/);
    await assert.rejects(kubectl(`${reader} -n shop get pods`), /is forbidden/);
    await assert.rejects(kubectl(`${reader} get --raw /metrics`), /is forbidden|Forbidden/);
    const scraper = reader.replace(/--token=.*/, `--token=${await token("scraper -n shop")}`);
    assert.match(await kubectl(`${scraper} get --raw /metrics`), /^read_api_synced\{.*"pods".*\} 1$/m);
    assert.equal(await kubectl(`${reader} get --raw /readyz`), "ok");
  });

  /** What a command prints. */
  async function kubectl(command: string, mayFail = false): Promise<string> {
    const { success, stdout, stderr } = await new Deno.Command(program, {
      args: command.split(" "),
      cwd: ROOT,
      clearEnv: true,
      env: { HOME: folder, KUBECONFIG: connection.kubeconfigPath },
    }).output();
    const [output, errors] = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes));
    assert.ok(success || mayFail, `kubectl ${command}: ${errors}`);
    return output;
  }
});
