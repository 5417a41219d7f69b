import { loadCluster } from "@listwatch/cache/node";
import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { FakeClock } from "@listwatch/cache/testing";
import { LogRecorder } from "../log_recorder.ts";

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "load-cluster-"));
});

afterEach(async () => {
  await rm(folder, { recursive: true });
});

async function kubeconfig(name: string, server: string, namespace = ""): Promise<string> {
  const path = join(folder, name);
  await mkdir(join(path, ".."), { recursive: true });
  const context = { cluster: name, ...(namespace && { namespace }) };
  await writeFile(
    path,
    JSON.stringify({
      "current-context": name,
      clusters: [{ name, cluster: { server } }],
      contexts: [{ name, context }, { name: `${name}-2`, context: { ...context, namespace: "two" } }],
    }),
  );
  return path;
}

async function pod(): Promise<{ readonly env: Record<string, string>; readonly serviceAccountPath: string }> {
  const serviceAccountPath = join(folder, "serviceaccount");
  await mkdir(serviceAccountPath);
  await writeFile(join(serviceAccountPath, "token"), "secret");
  await writeFile(join(serviceAccountPath, "namespace"), "in-pod\n");
  return {
    env: { HOME: folder, KUBERNETES_SERVICE_HOST: "10.0.0.1", KUBERNETES_SERVICE_PORT: "443" },
    serviceAccountPath,
  };
}

const logger = { debug() {}, info() {}, warn() {}, error() {} };

describe("loadCluster", () => {
  it("reads the file given, then KUBECONFIG, then the default file, then the pod's service account", async () => {
    const { env, serviceAccountPath } = await pod();
    const load = async (options: object = {}, more: Record<string, string> = {}) => {
      const cluster = await loadCluster({ env: { ...env, ...more }, serviceAccountPath, logger, ...options });
      return `${cluster.server} ${cluster.namespace}`;
    };
    assert.equal(await load(), "https://10.0.0.1 in-pod");
    await kubeconfig(".kube/config", "http://default.example");
    assert.equal(await load(), "http://default.example default");
    const a = await kubeconfig("a", "http://a.example", "shop");
    const b = await kubeconfig("b", "http://b.example");
    const KUBECONFIG = [join(folder, "missing"), a, b].join(delimiter);
    assert.equal(await load({}, { KUBECONFIG }), "http://a.example shop");
    assert.equal(await load({ context: "b" }, { KUBECONFIG }), "http://b.example default");
    assert.equal(await load({ context: "a-2" }, { KUBECONFIG }), "http://a.example two");
    assert.equal(await load({ namespace: "mine" }, { KUBECONFIG }), "http://a.example mine");
    assert.equal(await load({ kubeconfig: b }, { KUBECONFIG }), "http://b.example default");
  });

  it("is in a pod, too, where KUBECONFIG names files that do not exist, or that are empty", async () => {
    const { env, serviceAccountPath } = await pod();
    const empty = join(folder, "empty");
    await writeFile(empty, "");
    for (const KUBECONFIG of [join(folder, "missing"), empty]) {
      const cluster = await loadCluster({ env: { ...env, KUBECONFIG }, serviceAccountPath, logger });
      assert.equal(cluster.server, "https://10.0.0.1");
    }
  });

  it("is not in a pod where the file given is empty, or one of KUBECONFIG cannot be read", async () => {
    const { env, serviceAccountPath } = await pod();
    const load = (options: object, more: Record<string, string> = {}) =>
      loadCluster({ env: { ...env, ...more }, serviceAccountPath, logger, ...options });
    const empty = join(folder, "empty");
    await writeFile(empty, "");
    await assert.rejects(
      load({ kubeconfig: empty }),
      /Cannot choose a context: .*empty has no current-context/,
    );
    await assert.rejects(
      load({}, { KUBECONFIG: folder }),
      /Cannot read the kubeconfig .*: (?!the file does not)/,
    );
    const broken = join(folder, "broken");
    await writeFile(broken, "a: [");
    await assert.rejects(
      load({}, { KUBECONFIG: broken }),
      /Cannot read the kubeconfig .*broken: it is not YAML/,
    );
    for (const half of ["clusters: [{name: c, cluster: {server: 'http://c'}}]", "contexts: [{name: c}]"]) {
      await writeFile(broken, half);
      await assert.rejects(load({}, { KUBECONFIG: broken }), /broken has no current-context/);
    }
    for (const missing of ["KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"]) {
      await assert.rejects(load({}, { [missing]: "" }), /Cannot find a kubeconfig/);
    }
  });

  it("gives its clock, logger, environment and metrics to the cluster, in a pod and outside", async () => {
    const { env, serviceAccountPath } = await pod();
    const clock = new FakeClock();
    const recorder = new LogRecorder();
    const counted: string[] = [];
    const metrics = { count: (name: string) => void counted.push(name), gauge() {}, observe() {} };
    const KUBECONFIG = await kubeconfig("a", "https://a.invalid");
    const options = { serviceAccountPath, clock, logger: recorder, metrics };
    const proxied = { ...env, HTTPS_PROXY: "http://127.0.0.1:1" };
    for (const [where, more] of [["10.0.0.1", {}], ["a.invalid", { KUBECONFIG }]] as const) {
      const cluster = await loadCluster({ ...options, env: { ...proxied, ...more } });
      await assert.rejects(cluster.request("/version"), /by way of the proxy http:\/\/127\.0\.0\.1:1/, where);
      assert.equal((cluster as unknown as { clock: FakeClock }).clock, clock);
    }
    assert.deepEqual(counted, ["rest_client_requests_total", "rest_client_requests_total"]);
    assert.match(recorder.of("warn").join("\n"), /Cannot read the service account's CA/);
  });

  it("says where it looked, and refuses a context or a file that is not there", async () => {
    const { env, serviceAccountPath } = await pod();
    await assert.rejects(
      loadCluster({ env: { HOME: folder } }),
      /Cannot find a kubeconfig: .*\.kube.config does not exist; name a file, or set KUBECONFIG/,
    );
    await assert.rejects(loadCluster({ env, serviceAccountPath, context: "b" }), /Cannot find a kubeconfig/);
    await assert.rejects(
      loadCluster({ env, serviceAccountPath, kubeconfig: join(folder, "missing") }),
      /Cannot read the kubeconfig .*missing: the file does not exist/,
    );
  });
});
