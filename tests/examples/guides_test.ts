/**
 * Runs the programs of the guides: those that lead from other packages print the same lines, and the others
 * what their page says.
 * @module
 */

import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import { type KubernetesObject, newCluster, SharedIndexInformer } from "@listwatch/cache";
import { readApi } from "@listwatch/cache/hono";
import { serveFetch } from "@listwatch/cache/node";
import { InMemoryApiServer, pod } from "@listwatch/cache/testing";
import { RealCluster } from "../cli/real_cluster.ts";
import { programs, root, runProgram } from "./programs.ts";

/** client-node speaks plain HTTP only where certificates are not verified. */
async function allowPlainHttp(kubeconfig: string): Promise<void> {
  const text = await readFile(kubeconfig, "utf8");
  await writeFile(kubeconfig, text.replace(/^( +)server: .*$/m, "$&\n$1insecure-skip-tls-verify: true"));
}

describe("docs/from_client_node.md", () => {
  it("has programs of three steps that report the same", async () => {
    const found = (await programs("docs/from_client_node.md")).filter(({ code }) =>
      code.includes("loadFromDefault")
    );
    assert.deepEqual(found.map(({ title }) => title), [
      "Before",
      "First step: another import",
      "Second step: an informer of this package",
    ]);
    for (const { title, code } of found) {
      await using cluster = await RealCluster.start();
      await allowPlainHttp(cluster.kubeconfig);
      for (const name of ["web-1", "web-2"]) {
        cluster.server.create("v1/pods", pod(name, { namespace: "shop" }));
      }
      const lines: string[] = [];
      await runProgram(code, { KUBECONFIG: cluster.kubeconfig }, (line) => {
        lines.push(line);
        if (line === "2 pods") cluster.server.delete("v1/pods", "shop/web-1");
        return line.startsWith("deleted");
      });
      assert.deepEqual(lines, ["added web-1", "added web-2", "2 pods", "deleted web-1"], title);
    }
  });

  it("has a program for tests, without a server", async () => {
    const found = (await programs("docs/from_client_node.md")).find(({ code }) =>
      code.includes("InMemoryApiServer")
    );
    const lines: string[] = [];
    await runProgram(found!.code, {}, (line) => !lines.push(line));
    assert.deepEqual(lines, ["1 pod"]);
  });
});

describe("docs/screens.md", () => {
  it("has a program whose list has fields, a filter, and the reason of a refusal", async () => {
    const found = (await programs("docs/screens.md")).find(({ title }) => title === "Fields");
    const lines: string[] = [];
    await runProgram(found!.code, {}, (line) => !lines.push(line));
    assert.deepEqual(lines, [
      'web-2 {"phase":"Pending"}',
      '400 fields: "," is missing at character 7 ("..phase"); separate the parts by commas',
    ]);
  });
});

for (const [page, count] of [["docs/concepts.md", 1], ["docs/many_clusters.md", 3]] as const) {
  describe(page, () => {
    it("has programs that print what it says", async () => {
      const found = await programs(page);
      const text = await readFile(join(root, page), "utf8");
      const expected = Array.from(text.matchAll(/```text\n([\s\S]*?)```/g), ([, lines]) => lines.trimEnd());
      assert.deepEqual([found.length, expected.length], [count, count]);
      for (const [i, { title, code }] of found.entries()) {
        const lines: string[] = [];
        await runProgram(code, {}, (line) => !lines.push(line));
        assert.equal(lines.join("\n"), expected[i], title);
      }
    });
  });
}

describe("docs/from_fluent_client.md", () => {
  it("has programs of three steps that report the same", async () => {
    const found = (await programs("docs/from_fluent_client.md"))
      .filter(({ title }) => title !== "Tests");
    assert.deepEqual(found.map(({ title }) => title), [
      "Before",
      "First step: another import",
      "First step: another import",
      "Second step: an informer or a controller",
    ]);
    for (const { title, code } of found.filter(({ code }) => code.includes("start()"))) {
      await using cluster = await RealCluster.start();
      await allowPlainHttp(cluster.kubeconfig);
      for (const name of ["web-1", "web-2"]) {
        cluster.server.create("v1/pods", pod(name, { namespace: "shop" }));
      }
      const lines: string[] = [];
      await runProgram(code, { KUBECONFIG: cluster.kubeconfig }, (line) => {
        lines.push(line);
        if (lines.length === 2) cluster.server.delete("v1/pods", "shop/web-1");
        return line.startsWith("DELETED");
      });
      assert.deepEqual(lines, ["ADDED web-1", "ADDED web-2", "DELETED web-1"], title);
    }
  });

  it("has a program for tests, without a server", async () => {
    const found = (await programs("docs/from_fluent_client.md")).find(({ title }) => title === "Tests");
    const lines: string[] = [];
    await runProgram(found!.code, {}, (line) => !lines.push(line));
    assert.deepEqual(lines, ["ADDED web-1"]);
  });
});

describe("docs/from_gardener.md", () => {
  it("has a program with gardener's events and look-ups", async () => {
    const group = "core.gardener.cloud";
    const server = new InMemoryApiServer({
      customResources: [
        { group, version: "v1beta1", resource: "projects", kind: "Project", namespaced: false },
        { group, version: "v1beta1", resource: "shoots", kind: "Shoot", namespaced: true },
      ],
    });
    const create = (resource: string, metadata: KubernetesObject["metadata"], spec: object) =>
      server.create<KubernetesObject & { spec: object }>(`${group}/v1beta1/${resource}`, { metadata, spec });
    create("projects", { name: "shop" }, { namespace: "garden-shop" });
    for (const name of ["test", "prod"]) create("shoots", { name, namespace: "garden-shop" }, {});
    await using served = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, server.fetch);
    const [{ code }] = await programs("docs/from_gardener.md");
    const lines: string[] = [];
    await runProgram(code, { SERVER: `http://127.0.0.1:${served.addr.port}` }, (line) => {
      lines.push(line);
      if (lines.length === 4) server.delete(`${group}/v1beta1/shoots`, "garden-shop/prod");
      return line.startsWith("DELETED");
    });
    server.close();
    assert.deepEqual(lines, ["ADDED prod", "ADDED test", "shop", "prod", "DELETED prod"]);
  });
});

describe("docs/browsers.md", () => {
  it("has a program that follows the cache which has served the page", async () => {
    await using cluster = await RealCluster.start();
    cluster.server.create("v1/pods", pod("web-1", { namespace: "shop", phase: "Running" }));
    const [{ code }] = await programs("docs/browsers.md");
    const lines: string[] = [];
    await runProgram(code, {}, (line) => {
      lines.push(line);
      if (line === "1 pods") cluster.server.delete("v1/pods", "shop/web-1");
      return line.startsWith("-");
    }, ["--location", cluster.url]);
    assert.deepEqual(lines.sort(), ["+ web-1 Running", "- shop/web-1", "1 pods"]);
  });
});

describe("docs/serving.md", () => {
  it("has a program that serves one namespace", async () => {
    await using cluster = await RealCluster.start();
    for (const namespace of ["shop", "kube-system"]) {
      cluster.server.create("v1/pods", pod("web-1", { namespace }));
    }
    const page = await readFile(join(root, "docs/serving.md"), "utf8");
    const [, program] = /```ts\n([\s\S]*?)```/.exec(page)!;
    const readIt = `
      await pods.synced();
      for (const of of ["shop", "kube-system"]) {
        const answer = await fetch(\`\${served.url}/api/v1/namespaces/\${of}/pods\`);
        const { items, reason } = await answer.json();
        console.log(answer.status, items ? items.length : reason);
      }
      Deno.exit();`;
    const lines: string[] = [];
    await runProgram(
      (program + readIt).replace("http://127.0.0.1:8787", cluster.url)
        .replace(
          "await serveFetch(api.fetch, { port: 8000 })",
          "const served = await serveFetch(api.fetch, { port: 0 })",
        ),
      {},
      (line) => !lines.push(line),
    );
    assert.deepEqual(lines, ["200 1", "403 Forbidden"]);
  });
});

/** What the programs print that read `listwatch serve`, or write to `kubectl proxy`. */
const BESIDE_A_SERVER:
  readonly (readonly [page: string, title: string, nth: number, lines: readonly (RegExp | string)[]])[] = [
    ["README.md", "The shortest program", 0, ["worker-1 1", "worker-2 6"]],
    ["README.md", "Handlers", 0, ["+ web-1 true", "+ web-2 true"]],
    ["docs/informers.md", "Look things up", 0, ["web-1"]],
    ["docs/informers.md", "Receive changes", 0, ["+ web true"]],
    ["docs/informers.md", "Receive changes", 1, [/^\d+ watching$/]],
    ["docs/memory.md", "Memory and speed", 0, ["Running"]],
    ["docs/snapshots.md", "Start warm", 0, []],
    ["docs/snapshots.md", "Start warm", 0, [/^as of \d+, \d+ ms ago$/]],
    ["docs/screens.md", "In a page", 0, [
      /^live: 5 of 7 from 1 /,
      "Running 7",
      /^live: 2 of 7 from 6 /,
      /^live: 0 of 0 /,
    ]],
  ];

describe("README.md and the guides, beside a server", () => {
  it("have programs that print what they read, and end by themselves", async () => {
    await using cluster = await RealCluster.start();
    const { server } = cluster;
    for (let number = 1; number <= 7; number++) {
      const options = {
        namespace: "shop",
        nodeName: `worker-${Math.min(number, 2)}`,
        phase: "Running" as const,
      };
      server.create("v1/pods", pod(`web-${number}`, options));
    }
    for (const [resource, name] of [["apps/v1/deployments", "web"], ["v1/configmaps", "settings"]]) {
      server.create(resource, { metadata: { name, namespace: "shop" } });
    }
    const resources = (["v1/pods", "apps/v1/deployments"] as const).map((resource) => ({
      resource,
      informer: new SharedIndexInformer(newCluster({ server: cluster.url }).resource(resource)),
    }));
    const api = readApi({ resources, allowAnonymous: true });
    const running = resources.map(({ informer }) => informer.start());
    await Promise.all(resources.map(({ informer }) => informer.synced()));
    const folder = await mkdtemp(join(root, "tests", "examples", ".guide-"));
    const served = await serveFetch(api.fetch, { port: 0 });
    try {
      for (const [page, title, nth, expected] of BESIDE_A_SERVER) {
        const { code } = (await programs(page)).filter((program) => program.title === title)[nth];
        const lines: string[] = [];
        await runProgram(
          code.replace("http://127.0.0.1:8787", served.url)
            .replace("http://127.0.0.1:8001", cluster.url)
            .replace("pods.sqlite", join(folder, "pods.sqlite"))
            .replace("10_000", "1_000"),
          {},
          (line) => !lines.push(line),
        );
        for (const one of expected) {
          const isThere = (line: string) => typeof one === "string" ? line === one : one.test(line);
          assert.ok(lines.some(isThere), `${page}, ${title}: no line ${one} in\n${lines.join("\n")}`);
        }
        if (expected.length === 0) assert.deepEqual(lines, [], title);
      }
      assert.deepEqual(
        server.get<KubernetesObject & { data?: object }>("v1/configmaps", "shop/settings")?.data,
        { color: "blue" },
      );
    } finally {
      api.drain();
      await served.stop();
      await Promise.all(running.map((each) => each.stop()));
      await rm(folder, { recursive: true });
    }
  });
});
