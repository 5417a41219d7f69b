import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { serve, type Served, type ServeOptions, UsageError } from "@listwatch/cache/cli";
import { createTlsFetch } from "@listwatch/cache/node";
import { FakeClock, node, pod } from "@listwatch/cache/testing";
import { RealCluster } from "../real_cluster.ts";

const folder = await mkdtemp(join(tmpdir(), "listwatch-readers-"));
after(() => rm(folder, { recursive: true }));

const fixture = (name: string) => fileURLToPath(new URL(`../../node/fixtures/${name}`, import.meta.url));

async function ask(served: Served, path: string, token?: string, scheme = "Bearer"): Promise<number> {
  const headers: Record<string, string> = token === undefined ? {} : {
    Authorization: `${scheme} ${scheme === "Basic" ? btoa(`x:${token}`) : token}`,
  };
  const response = await fetch(served.url + path, { headers });
  await response.body?.cancel();
  return response.status;
}

/** A cluster with pods in two namespaces, and the review APIs of an API server. */
async function newCluster(mayList: (user: string) => boolean = () => true): Promise<RealCluster> {
  const cluster = await RealCluster.start();
  for (const namespace of ["shop", "kube-system"]) {
    cluster.server.create("v1/namespaces", { metadata: { name: namespace } });
    cluster.server.create("v1/pods", pod("web-1", { namespace }));
  }
  cluster.server.create("v1/nodes", node("node-1"));
  cluster.server.intercept(async (request, next) => {
    const { pathname } = new URL(request.url);
    if (pathname.endsWith("/tokenreviews")) {
      const { spec } = await request.json();
      const username = { "token-of-ann": "ann", "token-of-root": "root" }[spec.token as string];
      return Response.json({ status: { authenticated: username !== undefined, user: { username } } });
    }
    if (pathname.endsWith("/subjectaccessreviews")) {
      const { user, resourceAttributes, nonResourceAttributes } = (await request.json()).spec;
      const path = nonResourceAttributes?.path;
      const allowed = user === "root" || (path !== undefined && path !== "/metrics") ||
        resourceAttributes?.namespace === "shop";
      return Response.json({ status: { allowed: allowed && mayList(user) } });
    }
    return await next(request);
  });
  return cluster;
}

function on(cluster: RealCluster, options: ServeOptions): ServeOptions {
  return {
    source: { kind: "kubeconfig", path: cluster.kubeconfig },
    resources: ["pods", "nodes", "namespaces"],
    port: 0,
    ...options,
  };
}

describe("`serve` to readers", () => {
  it("clusterRbac authorizes readers by the RBAC of the cluster, with a token of the cluster", async () => {
    await using cluster = await newCluster();
    await using served = await serve(on(cluster, { clusterRbac: true, metrics: true }));
    await served.synced();
    for (const scheme of ["Bearer", "Basic"]) {
      assert.equal(await ask(served, "/api/v1/pods", "token-of-root", scheme), 200);
      assert.equal(await ask(served, "/api/v1/pods", "token-of-ann", scheme), 403);
      assert.equal(await ask(served, "/api/v1/namespaces/shop/pods", "token-of-ann", scheme), 200);
      assert.equal(await ask(served, "/api/v1/namespaces/kube-system/pods", "token-of-ann", scheme), 403);
      assert.equal(await ask(served, "/api/v1/pods", "token-of-nobody", scheme), 401);
      assert.equal(await ask(served, "/metrics", "token-of-root", scheme), 200);
      assert.equal(await ask(served, "/metrics", "token-of-ann", scheme), 403);
      // The page shows everything.
      assert.equal(await ask(served, "/", "token-of-root", scheme), 200);
      assert.equal(await ask(served, "/", "token-of-ann", scheme), 403);
      assert.equal(await ask(served, "/dashboard/state", "token-of-ann", scheme), 403);
    }
    assert.equal(await ask(served, "/"), 401);
    assert.equal(await ask(served, "/api/v1/pods"), 401);
    await assert.rejects(serve({ port: 0, clusterRbac: true }), UsageError);
  });

  it("readerNamespaces and readerResources limit the read API, and refuse the page", async () => {
    await using cluster = await newCluster();
    const options = { readerNamespaces: ["shop"], readerResources: ["pods", "nodes"], metrics: true };
    await using served = await serve(on(cluster, options));
    await served.synced();
    assert.equal(await ask(served, "/api/v1/namespaces/shop/pods"), 200);
    assert.equal(await ask(served, "/api/v1/namespaces/shop/pods?watch=1&timeoutSeconds=1"), 200);
    assert.equal(await ask(served, "/api/v1/nodes"), 200);
    for (
      const path of [
        "/api/v1/pods",
        "/api/v1/pods?watch=1",
        "/api/v1/pods?fieldSelector=metadata.namespace%3Dshop",
        "/api/v1/namespaces/kube-system/pods",
        "/api/v1/namespaces/kube-system/pods/web-1",
        "/api/v1/namespaces",
        "/",
        "/dashboard/state",
        "/metrics",
      ]
    ) {
      assert.equal(await ask(served, path), 403, path);
    }
    await assert.rejects(
      serve(on(cluster, { ...options, readerResources: ["pod"] })),
      /--reader-resources has "pod", which is not among the resources: pods, nodes, namespaces/,
    );
  });

  it("the page shows who may read", async () => {
    await using served = await serve({ port: 0 });
    const page = await (await fetch(served.url, { headers: { Accept: "text/html" } })).text();
    assert.match(page, /"readers":"everyone on this machine \(loopback only\)"/);
    assert.match(page, /Readers: <span id="readers">/);
  });

  it("tokenFile accepts the token in the file, and the one that is written later", async () => {
    const tokenFile = join(folder, "token");
    await writeFile(tokenFile, "the-first-token-of-all\n");
    const clock = new FakeClock(Date.now());
    await using served = await serve({ port: 0, tokenFile, clock });
    assert.equal(await ask(served, "/", "the-first-token-of-all"), 200);
    await writeFile(tokenFile, "the-second-token-of-all\n");
    await clock.advance(60_000);
    assert.equal(await ask(served, "/api", "the-second-token-of-all"), 200);
    assert.equal(await ask(served, "/api", "the-first-token-of-all"), 401);
    await writeFile(tokenFile, "short");
    await assert.rejects(serve({ port: 0, tokenFile }), /shorter than 16 characters/);
    await assert.rejects(serve({ port: 0, tokenFile, token: "x" }), /contradict each other/);
  });

  it("tlsCert serves over TLS with the present certificate of its files", async () => {
    const [tlsCert, tlsKey] = [join(folder, "tls.crt"), join(folder, "tls.key")];
    const write = async (name: string) => {
      await writeFile(tlsCert, await readFile(fixture(`${name}.crt`)));
      await writeFile(tlsKey, await readFile(fixture(`${name}.key`)));
    };
    await write("server");
    const clock = new FakeClock(Date.now());
    const ca = await readFile(fixture("ca.crt"), "utf8");
    await using served = await serve({ port: 0, tlsCert, tlsKey, clock });
    const isTrusted = () =>
      Promise.resolve(createTlsFetch({ ca })(`${served.url}/healthz`)).then(
        async (response) => await response.text() === "ok",
        () => false,
      );
    assert.match(served.url, /^https:/);
    assert.equal(await isTrusted(), true);
    await write("client"); // its name is another one
    for (let i = 0; i < 200 && await isTrusted(); i++) await clock.advance(10_000);
    assert.equal(await isTrusted(), false);
  });

  it("drop removes kubectl's last-applied annotation, too, which has the value in it", async () => {
    await using cluster = await RealCluster.start();
    const annotations = {
      "kubectl.kubernetes.io/last-applied-configuration": '{"data":{"key":"s3cret"}}',
      a: "b",
    };
    cluster.server.create("v1/configmaps", {
      metadata: { name: "settings", namespace: "shop", annotations },
      data: { key: "s3cret" },
    });
    const ask = async (options: ServeOptions) => {
      await using served = await serve(on(cluster, { resources: ["configmaps"], ...options }));
      await served.synced();
      return await (await fetch(`${served.url}/api/v1/configmaps`)).text();
    };
    const dropped = await ask({ drop: ["data"] });
    assert.ok(!dropped.includes("s3cret"), dropped);
    assert.match(dropped, /"annotations":\{"a":"b"\}/);
    assert.equal((await ask({})).split("s3cret").length, 3);
  });

  it("drop removes a field from the store and from every response", async () => {
    await using cluster = await RealCluster.start();
    const containers = [{ name: "main", env: [{ name: "PASSWORD", value: "s3cret" }] }];
    const secretive = { ...pod("web-1", { namespace: "shop" }), spec: { containers } };
    cluster.server.create("v1/pods", secretive);
    await using served = await serve(
      on(cluster, { resources: ["pods"], drop: ["spec.containers[].env"] }),
    );
    await served.synced();
    const text = await (await fetch(`${served.url}/api/v1/pods`)).text();
    assert.match(text, /"containers":\[\{"name":"main"\}\]/);
    cluster.server.update("v1/pods", {
      ...secretive,
      metadata: { name: "web-1", namespace: "shop", labels: { a: "b" } },
    });
    for (let i = 0; i < 200; i++) {
      const now = await (await fetch(`${served.url}/api/v1/pods`)).text();
      assert.ok(!now.includes("s3cret"));
      if (now.includes('"a":"b"')) return;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    assert.fail("the update never came");
  });
});
