import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { after, afterEach, describe, it } from "node:test";
import type { TLSSocket } from "node:tls";
import { createTlsFetch, loadCluster, serveFetch } from "@listwatch/cache/node";
import { NetworkError, SharedIndexInformer, silentLogger } from "@listwatch/cache";
import { InMemoryApiServer, pod } from "@listwatch/cache/testing";
import { pem } from "./certificates.ts";
import { startConnectProxy } from "./connect_proxy.ts";

const folder = mkdtempSync(join(tmpdir(), "listwatch-proxy-"));
after(() => rmSync(folder, { recursive: true }));

const ca = pem("ca.crt");
const tls = { cert: pem("server.crt"), key: pem("server.key") };
const isBun = "Bun" in globalThis;

interface Entries {
  readonly cluster?: object;
  readonly user?: object;
}

let files = 0;

/** The cluster of a kubeconfig, whose authority is trusted. */
async function clusterOf(server: string, { cluster = {}, user = {} }: Entries, env = {}) {
  const kubeconfig = join(folder, `config-${++files}`);
  const own = {
    server,
    ...(server.startsWith("https:") && { "certificate-authority-data": btoa(ca) }),
    ...cluster,
  };
  writeFileSync(
    kubeconfig,
    JSON.stringify({
      "current-context": "dev",
      clusters: [{ name: "c", cluster: own }],
      users: [{ name: "u", user }],
      contexts: [{ name: "dev", context: { cluster: "c", user: "u" } }],
    }),
  );
  return await loadCluster({ kubeconfig, env, logger: silentLogger });
}

async function serveTls(fetch: (request: Request) => Response | Promise<Response>, isSecure = true) {
  const stop = new AbortController();
  const options = isSecure ? { tls } : {};
  const { url } = await serveFetch(fetch, { ...options, signal: stop.signal, logger: silentLogger });
  return { url, target: new URL(url).host, [Symbol.dispose]: () => stop.abort() };
}

/** A server that says who its client's certificate is of. */
async function serveNames() {
  const serve = (request: IncomingMessage, response: ServerResponse) => {
    const name = (request.socket as TLSSocket).getPeerCertificate()?.subject?.CN ?? "nothing";
    response.setHeader("Content-Type", "application/json").end(JSON.stringify({ name }));
  };
  const server = createServer({ ...tls, ca, requestCert: true, rejectUnauthorized: false }, serve);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.dispose]: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 5));
}

async function failure(promise: Promise<unknown>): Promise<NetworkError> {
  const error = await promise.then(() => undefined, (error) => error);
  assert.ok(error instanceof NetworkError, String(error));
  return error;
}

// Deno and Bun read the variables of the process in their own
// `fetch`, which is left where it would go elsewhere.
const PROCESSES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "no variables": {},
  "variables of the process that say otherwise": { NO_PROXY: "127.0.0.1", HTTPS_PROXY: "http://127.0.0.1:1" },
};

for (const [title, variables] of Object.entries(PROCESSES)) {
  describe(`loadCluster with a proxy, with ${title}`, () => {
    const saved = Object.keys(variables).map((name) => [name, process.env[name]] as const);
    const set = () => Object.assign(process.env, variables);
    afterEach(() => {
      for (const [name, value] of saved) {
        if (value === undefined) delete process.env[name];
        else process.env[name] = value;
      }
    });

    it("lists and watches through the proxy-url, with the authority and token of the kubeconfig", async () => {
      set();
      using server = new InMemoryApiServer();
      server.create("v1/pods", pod("a", { namespace: "shop" }));
      using served = await serveTls(server.fetch);
      using proxy = await startConnectProxy();
      const cluster = await clusterOf(served.url, {
        cluster: { "proxy-url": proxy.url },
        user: { token: "of-the-config" },
      });
      const informer = new SharedIndexInformer(cluster.resource("v1/pods"), { logger: silentLogger });
      const running = informer.start();
      await informer.synced();
      server.create("v1/pods", pod("b", { namespace: "shop" }));
      await until(() => informer.indexer.getByKey("shop/b") !== undefined);
      assert.deepEqual([...new Set(proxy.requests)], [`CONNECT ${served.target}`]);
      const tokens = new Set(server.requests.map(({ headers }) => headers.get("Authorization")));
      assert.deepEqual([...tokens], ["Bearer of-the-config"]);
      await running[Symbol.asyncDispose]();
      await until(() => server.openWatches === 0);
    });

    it("presents its client certificate, and checks tls-server-name, within the tunnel", {
      skip: isBun && "its server does not show certificates",
    }, async () => {
      set();
      using server = await serveNames();
      using proxy = await startConnectProxy();
      const user = {
        "client-certificate-data": btoa(pem("client.crt")),
        "client-key-data": btoa(pem("client.key")),
      };
      const ask = async (cluster: object) => {
        const asked = await clusterOf(server.url, { cluster: { "proxy-url": proxy.url, ...cluster }, user });
        return await asked.request("/");
      };
      assert.deepEqual(await ask({}), { name: "admin" });
      assert.deepEqual(await ask({ "tls-server-name": "kubernetes.default.svc" }), { name: "admin" });
      await failure(ask({ "tls-server-name": "elsewhere.example" }));
      const untrusted = await failure(ask({ "certificate-authority-data": btoa(pem("other_ca.crt")) }));
      assert.equal(untrusted.reason, "UntrustedCertificate");
    });

    it("shows the user and password of its URL, decoded, and to the proxy alone", async () => {
      set();
      using server = new InMemoryApiServer();
      using served = await serveTls(server.fetch);
      using proxy = await startConnectProxy({ user: "jane:p@ss:w" });
      const cluster = await clusterOf(served.url, { cluster: { "proxy-url": proxy.urlOf("jane:p%40ss:w") } });
      await cluster.request("/version");
      assert.deepEqual(proxy.requests, [`CONNECT ${served.target}`]);
      assert.ok(server.requests.every(({ headers }) => !headers.has("Proxy-Authorization")));
    });

    it("speaks TLS to a proxy whose URL begins with https, and trusts the same authority", async () => {
      set();
      using server = new InMemoryApiServer();
      using served = await serveTls(server.fetch);
      using proxy = await startConnectProxy({ tls });
      const cluster = { "proxy-url": proxy.url, "tls-server-name": "kubernetes.default.svc" };
      await (await clusterOf(served.url, { cluster })).request("/version");
      await (await clusterOf(served.url, { cluster: { "proxy-url": proxy.url } })).request("/version");
      assert.deepEqual([...new Set(proxy.requests)], [`CONNECT ${served.target}`]);
      const other = { "proxy-url": proxy.url, "certificate-authority-data": btoa(pem("other_ca.crt")) };
      const untrusted = await failure((await clusterOf(served.url, { cluster: other })).request("/version"));
      assert.equal(untrusted.reason, "UntrustedCertificate");
    });

    it("says that the proxy refused, and shows no credentials", async () => {
      set();
      using server = new InMemoryApiServer();
      using served = await serveTls(server.fetch);
      using proxy = await startConnectProxy({ user: "jane:s3cret" });
      const ask = async (url: string) => {
        const cluster = await clusterOf(served.url, { cluster: { "proxy-url": url } });
        return await failure(cluster.request("/version"));
      };
      const unasked = await ask(proxy.url);
      assert.ok(
        unasked.message.endsWith(
          `the proxy ${proxy.url} asks for a user and password (407); put them into its URL, before the host`,
        ),
        unasked.message,
      );
      const wrong = await ask(proxy.urlOf("jane:wr0ng"));
      assert.ok(
        wrong.message.endsWith(`the proxy ${proxy.url} refused the user and password of its URL (407)`),
        wrong.message,
      );
      const texts: string[] = [];
      for (let e: unknown = wrong; e instanceof Error; e = e.cause) texts.push(`${e.message} ${e.stack}`);
      for (const secret of ["wr0ng", btoa("jane:wr0ng")]) {
        assert.ok(!texts.join().includes(secret), texts.join());
      }
      using closed = await startConnectProxy({ status: 502 });
      assert.match(
        (await ask(closed.url)).message,
        new RegExp(`tunnel.*, by way of the proxy ${closed.url}( |$)`),
      );
      assert.equal(server.requests.length, 0);
    });

    it("says that the proxy is away", async () => {
      set();
      const { url } = await startConnectProxy().then((proxy) => {
        proxy[Symbol.dispose]();
        return proxy;
      });
      const cluster = await clusterOf("https://c.example", { cluster: { "proxy-url": url } });
      const error = await failure(cluster.request("/version"));
      assert.equal(error.reason, "ConnectionRefused");
      assert.ok(error.message.endsWith(`, by way of the proxy ${url}`), error.message);
    });

    it("closes the tunnel of a watch that is cancelled", async () => {
      set();
      const watch = new ReadableStream({ start: (body) => body.enqueue(new TextEncoder().encode("{}\n")) });
      using served = await serveTls(() => new Response(watch));
      using proxy = await startConnectProxy();
      const response = await createTlsFetch({ ca, proxy: proxy.url })(served.url);
      const reader = response.body!.getReader();
      await reader.read();
      assert.equal(proxy.connections(), 1);
      await reader.cancel();
      await until(() => proxy.connections() === 0);
    });

    it("passes requests that are not encrypted to the proxy", async () => {
      set();
      using server = new InMemoryApiServer();
      using served = await serveTls(server.fetch, false);
      using proxy = await startConnectProxy({ user: "jane:s3cret" });
      const ask = async (url: string) => {
        const cluster = await clusterOf(served.url, { cluster: { "proxy-url": url } });
        return await cluster.request("/version");
      };
      await ask(proxy.urlOf("jane:s3cret"));
      assert.deepEqual(proxy.requests, [`GET ${served.url}/version`]);
      assert.match((await failure(ask(proxy.url))).message, /asks for a user and password \(407\)/);
    });

    it("connects to this machine without the proxy of the environment, and elsewhere through it", async () => {
      set();
      using server = new InMemoryApiServer();
      using served = await serveTls(server.fetch);
      using proxy = await startConnectProxy({ status: 502 });
      const env = { https_proxy: proxy.url };
      await (await clusterOf(served.url, {}, env)).request("/version");
      assert.equal(proxy.requests.length, 0);
      await failure((await clusterOf("https://c.example", {}, env)).request("/version"));
      assert.deepEqual(proxy.requests, ["CONNECT c.example:443"]);
    });
  });
}

describe("createTlsFetch with a proxy", () => {
  it("checks the proxy's certificate against the proxy's own name, and the server's against serverName", async () => {
    using server = new InMemoryApiServer();
    using served = await serveTls(server.fetch);
    using proxy = await startConnectProxy({ tls });
    const fetch = createTlsFetch({ ca, serverName: "kubernetes.default.svc", proxy: proxy.url });
    assert.equal((await fetch(`${served.url}/version`)).status, 200);
    assert.deepEqual(proxy.serverNames, [undefined]); // an address has no name
  });

  it("throws for one that is not supported, and does not show its URL", () => {
    for (const proxy of ["socks5://jane:s3cret@127.0.0.1:1080", "jane:s3cret@[", "ftp://s3cret"]) {
      assert.throws(() => createTlsFetch({ proxy }), (error) => {
        assert.ok(error instanceof TypeError);
        assert.match(error.message, /^Cannot make a fetch: the proxy cannot be used: /);
        return !error.message.includes("s3cret");
      });
    }
  });
});
