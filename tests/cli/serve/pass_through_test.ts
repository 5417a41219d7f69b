import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { serve, type ServeOptions, UsageError } from "@listwatch/cache/cli";
import { type ServedFetch, serveFetch } from "@listwatch/cache/node";
import { configMap, InMemoryApiServer, pod } from "@listwatch/cache/testing";
import { fixture, pem } from "../../sockets/certificates.ts";
import { kubeconfigText, RealCluster } from "../real_cluster.ts";

const CACHE = "Bearer s3cret";
const READER = { Authorization: "Bearer of-the-reader" };

/**
 * An API server over https that records each request's credentials; the
 * kubeconfig has a token and a client certificate.
 */
class SecureCluster implements AsyncDisposable {
  readonly server = new InMemoryApiServer();
  readonly asked: (readonly [path: string, authorization: string | null, hasCertificate: boolean])[] = [];
  readonly #stop = new AbortController();
  #served!: ServedFetch;
  #folder = "";
  kubeconfig = "";

  static async start(): Promise<SecureCluster> {
    const cluster = new SecureCluster();
    const tls = {
      cert: pem("server.crt"),
      key: pem("server.key"),
      requestCert: true,
      rejectUnauthorized: false,
    };
    cluster.#served = await serveFetch((request, { incoming }) => {
      const socket = incoming.socket as unknown as {
        getPeerCertificate?: () => { subject?: unknown } | null;
      };
      const hasCertificate = socket.getPeerCertificate?.()?.subject !== undefined;
      cluster.asked.push([
        new URL(request.url).pathname,
        request.headers.get("Authorization"),
        hasCertificate,
      ]);
      return cluster.server.fetch(request).catch(() => new Response(null, { status: 503 }));
    }, { tls, signal: cluster.#stop.signal });
    cluster.#folder = await mkdtemp(join(tmpdir(), "listwatch-pass-"));
    cluster.kubeconfig = join(cluster.#folder, "config");
    const text = kubeconfigText(cluster.#served.url)
      .replace(
        "    cluster:\n      server",
        `    cluster:\n      certificate-authority: ${fixture("ca.crt")}\n      server`,
      )
      .replace(
        "token: s3cret",
        `token: s3cret\n      client-certificate: ${fixture("client.crt")}\n      client-key: ${
          fixture("client.key")
        }`,
      );
    await writeFile(cluster.kubeconfig, text);
    return cluster;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.server.closeWatches();
    this.server.close();
    this.#stop.abort();
    await this.#served.finished;
    await rm(this.#folder, { recursive: true });
  }
}

const on = (kubeconfig: string, options: ServeOptions): ServeOptions => ({
  source: { kind: "kubeconfig", path: kubeconfig },
  resources: ["pods"],
  port: 0,
  ...options,
});

describe("serve() with passThrough", () => {
  it("sends readers' requests on with their own tokens, never with the kubeconfig's token or certificate", async () => {
    await using cluster = await SecureCluster.start();
    cluster.server.create("v1/pods", pod("web-1", { namespace: "shop" }));
    cluster.server.create("v1/configmaps", configMap("a", { namespace: "shop", data: { k: "v" } }));
    await using served = await serve(on(cluster.kubeconfig, { passThrough: true, passThroughWrites: true }));
    await served.synced();
    assert.ok(cluster.asked.length > 0);
    for (const [path, authorization, hasCertificate] of cluster.asked) {
      assert.deepEqual([authorization, hasCertificate], [CACHE, true], path);
    }
    cluster.asked.length = 0;
    const path = "/api/v1/namespaces/shop/configmaps";
    const read = await fetch(`${served.url}${path}/a`, { headers: READER });
    const text = await read.text();
    assert.deepEqual(JSON.parse(text).data, { k: "v" }, text);
    const created = await fetch(served.url + path, {
      method: "POST",
      headers: { ...READER, "Content-Type": "application/json" },
      body: JSON.stringify(configMap("b", { namespace: "shop" })),
    });
    assert.equal(created.status, 201, await created.text());
    assert.equal((await fetch(`${served.url}${path}/a`)).status, 401);
    assert.deepEqual(cluster.asked, [
      [`${path}/a`, READER.Authorization, false],
      [path, READER.Authorization, false],
    ]);
  });

  it("sends no writes on without another option, and the reads of readers whose tokens the cluster knows", async () => {
    await using cluster = await SecureCluster.start();
    cluster.server.create("v1/configmaps", configMap("a", { namespace: "shop" }));
    cluster.server.intercept(async (request, next) => {
      const { pathname } = new URL(request.url);
      if (pathname.endsWith("/subjectaccessreviews")) return Response.json({ status: { allowed: true } });
      if (!pathname.endsWith("/tokenreviews")) return await next(request);
      const authenticated = (await request.json()).spec.token === "of-the-reader";
      return Response.json({ status: { authenticated, user: { username: "jane" } } });
    });
    await using served = await serve(on(cluster.kubeconfig, { passThrough: true, clusterRbac: true }));
    await served.synced();
    const path = `${served.url}/api/v1/namespaces/shop/configmaps`;
    const status = async (url: string, init: RequestInit) => {
      const response = await fetch(url, init);
      await response.body?.cancel();
      return response.status;
    };
    assert.equal(await status(`${path}/a`, { headers: READER }), 200);
    assert.equal(await status(`${path}/a`, { headers: { Authorization: "Bearer of-another" } }), 401);
    assert.equal(await status(path, { method: "POST", headers: READER, body: "{}" }), 405);
    assert.deepEqual(cluster.server.list("v1/configmaps").items.length, 1);
  });

  it("refuses options with which readers' tokens would not be the cluster's, or not be safe", async () => {
    await using cluster = await RealCluster.start();
    const refused: [ServeOptions, RegExp][] = [
      [on(cluster.kubeconfig, { passThrough: true }), /--pass-through needs a cluster over https/],
      [{ passThrough: true }, /--pass-through needs a real cluster/],
      [on(cluster.kubeconfig, { passThroughWrites: true }), /--pass-through-writes needs --pass-through/],
      [
        on(cluster.kubeconfig, { passThrough: true, token: "long-enough-secret" }),
        /use --cluster-rbac instead of a token/,
      ],
      [
        on(cluster.kubeconfig, { passThrough: "yes" as unknown as boolean }),
        /passThrough must be true or false/,
      ],
    ];
    for (const [options, message] of refused) {
      await assert.rejects(
        serve(options),
        (error) => error instanceof UsageError && message.test(error.message),
      );
    }
  });
});
