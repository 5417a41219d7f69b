/**
 * `./compat/client-node` with the `KubeConfig` of client-node itself, over TLS.
 * @module
 */

import assert from "node:assert/strict";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import { type AddressInfo, connect, createServer as createSocketServer } from "node:net";
import { describe, it } from "node:test";
import type { TLSSocket } from "node:tls";
import process from "node:process";
import type { Pod } from "kubernetes-types/core/v1";
import { silentLogger } from "@listwatch/cache";
import {
  type ClientNodeInformer,
  clusterOfKubeConfig,
  type KubeConfigLike,
  type ListPromise,
  ListWatch,
  makeInformer,
  type ObjectCache,
} from "@listwatch/cache/compat/client-node";
import { serveFetch } from "@listwatch/cache/node";
import { InMemoryApiServer, pod } from "@listwatch/cache/testing";
import { pem } from "./certificates.ts";

const tls = { cert: pem("server.crt"), key: pem("server.key") };
const isBun = "Bun" in globalThis;
const isNode = !("Deno" in globalThis) && !isBun;

const [major, minor] = process.versions.node.split(".").map(Number);
/** undici, which it imports, cannot be loaded by an older one. */
const hasVersion2 = !isNode || major > 22 || (major === 22 && minor >= 19);

/** What is used of client-node. Its own types would bring those of Node into the whole project. */
interface ClientNode {
  readonly KubeConfig: new () => Config;
  readonly CoreV1Api: unknown;
  readonly Watch: new (config: Config) => { readonly config: Config };
  makeInformer(
    config: Config,
    path: string,
    listFn: ListPromise<Pod>,
  ): ClientNodeInformer<Pod> & ObjectCache<Pod>;
}

interface Config extends KubeConfigLike {
  readonly users: object[];
  loadFromOptions(options: object): void;
  makeApiClient(api: unknown): { listNamespacedPod(options: object): Promise<{ readonly items: Pod[] }> };
}

const load = async (name: string): Promise<ClientNode> => await import(name);

const VERSIONS: Readonly<Record<string, ClientNode>> = {
  ...(hasVersion2 && { "2.x": await load("@kubernetes/client-node") }),
  "1.x": await load("client-node-1"),
};

type User = { readonly name: string; readonly [field: string]: unknown };

function configOf(
  { KubeConfig }: ClientNode,
  server: string,
  { user = {}, cluster = {} }: { user?: Partial<User>; cluster?: object } = {},
): Config {
  const config = new KubeConfig();
  config.loadFromOptions({
    clusters: [{ name: "here", server, skipTLSVerify: false, caData: btoa(pem("ca.crt")), ...cluster }],
    users: [{ name: "me", ...user }],
    contexts: [{ name: "both", cluster: "here", user: "me", namespace: "shop" }],
    currentContext: "both",
  });
  return config;
}

/** Serves over TLS until the end of the block. */
async function serveTls(fetch: (request: Request) => Response | Promise<Response>) {
  const stop = new AbortController();
  const { url } = await serveFetch(fetch, { tls, signal: stop.signal, logger: silentLogger });
  return { url, [Symbol.dispose]: () => stop.abort() };
}

/** Waits for what callbacks bring about. */
async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 5));
}

function nameOf({ metadata }: Pod): string | undefined {
  return metadata?.name;
}

/** What an informer's callbacks receive. */
function recorded(informer: ClientNodeInformer<Pod>): string[] {
  const calls: string[] = [];
  for (const verb of ["add", "update", "delete"] as const) {
    informer.on(verb, (object) => calls.push(`${verb} ${nameOf(object)}`));
  }
  return calls;
}

for (const [version, clientNode] of Object.entries(VERSIONS)) {
  describe(`./compat/client-node with the KubeConfig of client-node ${version}`, () => {
    it("reports what client-node's own informer reports", {
      skip: isBun && "its own does not list over TLS there",
    }, async () => {
      using server = new InMemoryApiServer();
      server.create("v1/pods", pod("a", { namespace: "shop" }));
      using served = await serveTls(server.fetch);
      const config = configOf(clientNode, served.url, { user: { token: "of-the-config" } });
      const api = config.makeApiClient(clientNode.CoreV1Api);
      const list = () => api.listNamespacedPod({ namespace: "shop" });
      const path = "/api/v1/namespaces/shop/pods";
      const theirs = clientNode.makeInformer(config, path, list);
      const ours = makeInformer(config, path, list);
      const [theirCalls, ourCalls] = [recorded(theirs), recorded(ours)];
      try {
        await Promise.all([theirs.start(), ours.start()]);
        assert.equal(ours.get("a", "shop")?.metadata?.uid, theirs.get("a", "shop")?.metadata?.uid);
        server.create("v1/pods", pod("b", { namespace: "shop" }));
        server.delete("v1/pods", "shop/a");
        await until(() => theirCalls.length === 3 && ourCalls.length === 3);
        assert.deepEqual(ourCalls, ["add a", "add b", "delete a"]);
        assert.deepEqual(ourCalls, theirCalls);
        assert.deepEqual(ours.list().map(nameOf), theirs.list().map(nameOf));
      } finally {
        await Promise.all([theirs.stop(), ours.stop()]);
      }
    });

    it("watches as the config's user, and through an outage, which it reports", async () => {
      using server = new InMemoryApiServer();
      let isAway = false;
      using served = await serveTls((request) =>
        isAway ? new Response("away", { status: 503 }) : server.fetch(request)
      );
      const config = configOf(clientNode, served.url, { user: { token: "of-the-config" } });
      await using informer = makeInformer<Pod>(config, "/api/v1/pods", undefined, "", "", {
        logger: silentLogger,
        reflector: { backoff: { nextDelayMs: () => 1 } },
      });
      const calls = recorded(informer);
      const errors: { statusCode?: number }[] = [];
      informer.on("error", (error) => errors.push(error));
      await informer.start();
      isAway = true;
      server.closeWatches();
      await until(() => errors.length > 0);
      assert.equal(errors[0].statusCode, 503);
      isAway = false;
      server.create("v1/pods", pod("a", { namespace: "shop" }));
      await until(() => calls.length > 0);
      assert.deepEqual(calls, ["add a"]);
      const tokens = new Set(server.requests.map(({ headers }) => headers.get("Authorization")));
      assert.deepEqual([...tokens], ["Bearer of-the-config"]);
    });

    it("takes a Watch where client-node's ListWatch takes one", async () => {
      using server = new InMemoryApiServer();
      server.create("v1/pods", pod("a", { namespace: "shop" }));
      using served = await serveTls(server.fetch);
      const watch = new clientNode.Watch(configOf(clientNode, served.url));
      const list = () => Promise.reject(new Error("not called"));
      await using informer = new ListWatch<Pod>("/api/v1/pods", watch, list, false);
      await informer.start();
      assert.deepEqual(informer.list("shop").map(({ metadata }) => metadata?.name), ["a"]);
    });

    it("presents the config's certificate, and follows one that rotates", {
      skip: isBun && "its server does not show certificates",
    }, async () => {
      const names: unknown[] = [];
      const serve = (request: IncomingMessage, response: ServerResponse) => {
        names.push((request.socket as TLSSocket).getPeerCertificate().subject?.CN);
        response.setHeader("Content-Type", "application/json").end("{}");
      };
      const server = createServer(
        { ...tls, ca: pem("ca.crt"), requestCert: true, rejectUnauthorized: false },
        serve,
      );
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      try {
        const { port } = server.address() as AddressInfo;
        const config = configOf(clientNode, `https://127.0.0.1:${port}`, {
          user: { certData: btoa(pem("client.crt")), keyData: btoa(pem("client.key")) },
        });
        const cluster = clusterOfKubeConfig(config);
        assert.equal(cluster.namespace, "shop");
        await cluster.request("/version");
        Object.assign(config.users[0], {
          certData: btoa(pem("server.crt")),
          keyData: btoa(pem("server.key")),
        });
        await cluster.request("/version");
        assert.equal(names.length, 2);
        assert.notEqual(names[0], undefined);
        assert.notEqual(names[0], names[1]);
      } finally {
        server.closeAllConnections();
        server.close();
      }
    });

    it(
      "goes through the config's proxy",
      { skip: !isNode && "the agents of client-node are for Node" },
      async () => {
        using server = new InMemoryApiServer();
        using served = await serveTls(server.fetch);
        let tunnels = 0;
        const proxy = createSocketServer((client) => {
          client.once("data", (head) => {
            const [, port] = /^CONNECT 127\.0\.0\.1:(\d+) /.exec(String(head)) ?? [];
            tunnels++;
            const upstream = connect(Number(port), "127.0.0.1", () => {
              client.write("HTTP/1.1 200 OK\r\n\r\n");
              client.pipe(upstream).pipe(client);
            });
            for (const socket of [client, upstream]) socket.on("error", () => client.destroy());
            client.on("close", () => upstream.destroy());
          });
        });
        await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
        try {
          const proxyUrl = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
          const cluster = clusterOfKubeConfig(configOf(clientNode, served.url, { cluster: { proxyUrl } }));
          await cluster.request("/version");
          await cluster.request("/version");
          assert.equal(server.requests.length, 2);
          assert.ok(tunnels > 0);
        } finally {
          proxy.close();
        }
      },
    );

    it("refuses a server whose certificate is not of the config's authority, unless it says so", async () => {
      using server = new InMemoryApiServer();
      using served = await serveTls(server.fetch);
      const caData = btoa(pem("other_ca.crt"));
      const strict = clusterOfKubeConfig(configOf(clientNode, served.url, { cluster: { caData } }));
      await assert.rejects(strict.request("/version"), /certificate/i);
      const lax = clusterOfKubeConfig(
        configOf(clientNode, served.url, { cluster: { caData, skipTLSVerify: true } }),
      );
      await lax.request("/version");
      assert.equal(server.requests.length, 1);
    });
  });
}
