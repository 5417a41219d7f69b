/** What `deploy/` needs is there: its flags, its metrics, its files, and permissions for what it caches. */

import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { parseCommandLine } from "@listwatch/cache/cli";
import { findResource } from "@listwatch/cache/client";
import { newCluster } from "@listwatch/cache";
import { InMemoryApiServer } from "@listwatch/cache/testing";
import { parseAllDocuments } from "yaml";
import { loadKubeconfig } from "../../src/node/kubeconfig/load_cluster.ts";
import { FAMILIES } from "../../src/metrics/prometheus.ts";

// deno-lint-ignore no-explicit-any -- documents of many kinds
type Json = any;

const root = new URL("../../deploy/", import.meta.url);
const read = (path: string) => readFile(new URL(path, root), "utf8");
const documents = async (path: string): Promise<Json[]> =>
  parseAllDocuments(await read(path)).map((document) => {
    assert.deepEqual(document.errors, [], path);
    return document.toJS();
  });

async function manifests(): Promise<Json[]> {
  const [{ resources }] = await documents("kustomization.yaml");
  return (await Promise.all(resources.map(documents))).flat();
}

const ofKind = async (kind: string): Promise<Json[]> =>
  (await manifests()).filter((one) => one.kind === kind);

const flagsOfServe = async () => {
  const [{ spec }] = await ofKind("Deployment");
  const command = parseCommandLine(spec.template.spec.containers[0].args, {});
  assert.ok(command.name === "serve");
  return command.options;
};

describe("deploy/", () => {
  it("lists all its manifests in kustomization.yaml", async () => {
    const files = (await readdir(root)).filter((name) =>
      name.endsWith(".yaml") && name !== "kustomization.yaml"
    );
    const [{ resources }] = await documents("kustomization.yaml");
    assert.deepEqual([...resources].sort(), files.sort());
    for (const one of await manifests()) assert.ok(one.apiVersion && one.kind && one.metadata.name);
  });

  it("runs serve with flags that it has, and mounts every file that they name", async () => {
    const [{ spec }] = await ofKind("Deployment");
    const { args, volumeMounts } = spec.template.spec.containers[0];
    await flagsOfServe();
    const paths = args.flatMap((arg: string) => /=(\/.+)$/.exec(arg)?.[1] ?? []);
    assert.ok(paths.length >= 4);
    for (const path of paths) {
      assert.ok(
        volumeMounts.some(({ mountPath }: Json) => path.startsWith(mountPath)),
        `${path} is not mounted`,
      );
    }
    const volumes = spec.template.spec.volumes.map(({ name }: Json) => name).sort();
    assert.deepEqual(volumeMounts.map(({ name }: Json) => name).sort(), volumes);
  });

  it("permits exactly what is cached", async () => {
    using server = new InMemoryApiServer();
    const cluster = newCluster({ server: "http://in-memory", fetch: server.fetch });
    const { resources = [] } = await flagsOfServe();
    const cached = await Promise.all(resources.map((name) => findResource(cluster, name)));
    const [{ rules }] = await ofKind("ClusterRole");
    const permitted = rules.flatMap(({ apiGroups, resources, verbs }: Json) => {
      assert.deepEqual(verbs, ["get", "list", "watch"]);
      return resources.map((name: string) => `${apiGroups[0]}/${name}`);
    });
    assert.deepEqual(cached.map(({ group, resource }) => `${group}/${resource}`).sort(), permitted.sort());
  });

  it("binds its roles to the account that the pods have", async () => {
    const [account] = await ofKind("ServiceAccount");
    const [{ spec }] = await ofKind("Deployment");
    const [{ namespace }] = await documents("kustomization.yaml");
    assert.equal(spec.template.spec.serviceAccountName, account.metadata.name);
    const bindings = await ofKind("ClusterRoleBinding");
    assert.equal(bindings.length, 2);
    for (const { subjects } of bindings) {
      assert.deepEqual(subjects, [{ kind: "ServiceAccount", name: account.metadata.name, namespace }]);
    }
  });

  it("has a kubeconfig that can be read", async () => {
    const [{ data }] = await ofKind("ConfigMap");
    const { mkdtemp, rm, writeFile } = await import("node:fs/promises");
    const folder = await mkdtemp(join(tmpdir(), "listwatch-deploy-"));
    try {
      await writeFile(`${folder}/config`, data.config);
      const config = await loadKubeconfig({ path: `${folder}/config` });
      assert.equal(config["current-context"], "cluster");
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it("gives a stop more time than serve takes", async () => {
    const [{ spec }] = await ofKind("Deployment");
    const { shutdownGraceMs = 10_000 } = await flagsOfServe();
    assert.ok(spec.template.spec.terminationGracePeriodSeconds * 1_000 > shutdownGraceMs + 5_000);
  });

  it("alerts at the first of what should never be: a counter begins with it, and increase sees no beginning", async () => {
    const [{ spec }] = await documents("prometheus/alerts.yaml");
    const rules: Json[] = spec.groups.flatMap(({ rules }: Json) => rules);
    const ofNone = rules.filter(({ expr }) => /increase\(.*> 0\b/.test(expr));
    assert.equal(ofNone.length, 2);
    for (const { alert, expr } of ofNone) {
      const [, series, period] = /increase\((.+)\[(\w+)\]\) > 0/.exec(expr) ?? [];
      const [, born, before] = / or (.+) unless (.+) offset /.exec(expr) ?? [];
      assert.equal(born, series, alert);
      assert.equal(before, series.replace(/\{.*/, ""), alert);
      assert.ok(expr.endsWith(` offset ${period}`), alert);
    }
  });

  it("alerts and shows metrics that exist, and docs/deploy.md explains each alert", async () => {
    const [{ spec }] = await documents("prometheus/alerts.yaml");
    const rules: Json[] = spec.groups.flatMap(({ rules }: Json) => rules);
    const { panels } = JSON.parse(await read("grafana.json"));
    const expressions: string[] = [
      ...rules.map(({ expr }) => expr),
      ...panels.flatMap(({ targets }: Json) => targets.map(({ expr }: Json) => expr)),
    ];
    assert.ok(expressions.length > 12);
    for (const expression of expressions) {
      const names = expression.match(/\b(?:reflector|informer|read_api|workqueue)_[a-z_]+/g) ?? [];
      assert.ok(names.length > 0, expression);
      for (const name of names) {
        const family = FAMILIES[name] ?? FAMILIES[name.replace(/_(?:bucket|sum|count)$/, "")];
        assert.ok(family !== undefined, `${name} is no metric`);
        assert.equal(
          family.type === "counter",
          /(?:rate|increase)\(/.test(expression) && !name.endsWith("_bucket"),
          name,
        );
      }
    }
    const guide = await readFile(new URL("../docs/deploy.md", root), "utf8");
    for (const { alert } of rules) {
      assert.ok(guide.includes(`\`${alert}\``), `docs/deploy.md has no ${alert}`);
    }
  });
});
