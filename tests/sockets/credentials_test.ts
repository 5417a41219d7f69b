import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import type { TLSSocket } from "node:tls";
import { isUnauthorized, SharedIndexInformer, silentLogger } from "@listwatch/cache";
import { loadCluster, serveFetch } from "@listwatch/cache/node";
import { FakeClock, InMemoryApiServer, pod } from "@listwatch/cache/testing";
import { pem } from "./certificates.ts";

const folder = mkdtempSync(join(tmpdir(), "listwatch-credentials-"));
after(() => rmSync(folder, { recursive: true }));

const isBun = "Bun" in globalThis;
const NO_CERTIFICATES = "its server does not show certificates";
const API_VERSION = "client.authentication.k8s.io/v1";
let files = 0;

function write(name: string, text: string, mode = 0o600): string {
  const path = join(folder, name);
  writeFileSync(`${path}.new`, text, { mode });
  renameSync(`${path}.new`, path);
  return path;
}

async function clusterOf(server: string, user: object, clock = new FakeClock()) {
  const kubeconfig = write(
    `config-${++files}`,
    JSON.stringify({
      "current-context": "dev",
      clusters: [{ name: "c", cluster: { server, "certificate-authority-data": btoa(pem("ca.crt")) } }],
      users: [{ name: "u", user }],
      contexts: [{ name: "dev", context: { cluster: "c", user: "u" } }],
    }),
  );
  return await loadCluster({ kubeconfig, env: {}, clock, logger: silentLogger });
}

/** A plugin that prints the credentials of a file, and how often it ran. */
function newPlugin(status: object) {
  const name = `plugin-${++files}`;
  const [answer, count] = [join(folder, `${name}.json`), join(folder, `${name}.count`)];
  const command = write(name, `#!/bin/sh\necho run >> ${count}\ncat ${answer}\n`, 0o700);
  const give = (status: object) => write(`${name}.json`, JSON.stringify({ apiVersion: API_VERSION, status }));
  give(status);
  return {
    user: { exec: { apiVersion: API_VERSION, command, interactiveMode: "Never" } },
    give,
    runs: () => existsSync(count) ? readFileSync(count, "utf8").trim().split("\n").length : 0,
  };
}

/** An API server that accepts one token at a time. */
async function serve(first: string) {
  const api = new InMemoryApiServer();
  const stop = new AbortController();
  const server = {
    api,
    accepted: first,
    /** What was sent with each request. */
    seen: [] as string[],
    url: "",
    [Symbol.dispose]: () => {
      api.close();
      stop.abort();
    },
  };
  const fetch = async (request: Request) => {
    const sent = request.headers.get("Authorization") ?? "";
    server.seen.push(sent);
    if (sent === `Bearer ${server.accepted}`) return await api.fetch(request);
    const message = `no such token: ${sent}`;
    return Response.json({ kind: "Status", apiVersion: "v1", code: 401, reason: "Unauthorized", message }, {
      status: 401,
    });
  };
  const tls = { cert: pem("server.crt"), key: pem("server.key") };
  const served = await serveFetch(fetch, { tls, signal: stop.signal, logger: silentLogger });
  server.url = served.url;
  return server;
}

/** A server that says 401 to one certificate. */
async function serveNames() {
  const names: (string | undefined)[] = [];
  const answer = (request: IncomingMessage, response: ServerResponse) => {
    const name = (request.socket as TLSSocket).getPeerCertificate()?.subject?.CN as string | undefined;
    names.push(name);
    response.statusCode = name === serving.refused ? 401 : 200;
    response.setHeader("Content-Type", "application/json").end("{}");
  };
  const tls = { cert: pem("server.crt"), key: pem("server.key"), ca: pem("ca.crt") };
  const server = createServer({ ...tls, requestCert: true, rejectUnauthorized: false }, answer);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const serving = {
    names,
    refused: "",
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.dispose]: () => {
      server.close();
      server.closeAllConnections();
    },
  };
  return serving;
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 5));
}

/** Watches pods until the end of the block. */
async function watchPods(cluster: Awaited<ReturnType<typeof clusterOf>>, server: InMemoryApiServer) {
  const informer = new SharedIndexInformer(cluster.resource("v1/pods"), { logger: silentLogger });
  const running = informer.start();
  await informer.synced();
  await until(() => server.openWatches === 1);
  return { informer, [Symbol.asyncDispose]: () => running[Symbol.asyncDispose]() };
}

describe("loadCluster, while a watch is open", () => {
  it("sends the new token with the next watch when its file has changed", async () => {
    using server = await serve("one");
    const tokenFile = write("token", "one");
    const clock = new FakeClock();
    const cluster = await clusterOf(server.url, { tokenFile }, clock);
    await using watching = await watchPods(cluster, server.api);
    write("token", "two");
    server.accepted = "two";
    await clock.advance(60_000);
    server.seen.length = 0;
    server.api.closeWatches();
    server.api.create("v1/pods", pod("a", { namespace: "shop" }));
    await until(() => watching.informer.indexer.getByKey("shop/a") !== undefined);
    assert.deepEqual([...new Set(server.seen)], ["Bearer two"]);
  });

  it("reads the file again after a 401 response, and watches on without a failure", async () => {
    using server = await serve("one");
    const tokenFile = write("token", "one");
    const cluster = await clusterOf(server.url, { tokenFile });
    await using watching = await watchPods(cluster, server.api);
    write("token", "two");
    server.accepted = "two";
    server.seen.length = 0;
    server.api.closeWatches();
    server.api.create("v1/pods", pod("a", { namespace: "shop" }));
    await until(() => watching.informer.indexer.getByKey("shop/a") !== undefined);
    assert.deepEqual(server.seen, ["Bearer one", "Bearer two"]);
    assert.doesNotMatch(watching.informer.status().lastError?.message ?? "", /401|Unauthorized/);
  });

  it("runs the plugin again when its token has expired, while the watch stays open", async () => {
    using server = await serve("one");
    const plugin = newPlugin({ token: "one", expirationTimestamp: "1970-01-01T00:01:00Z" });
    const clock = new FakeClock();
    const cluster = await clusterOf(server.url, plugin.user, clock);
    await using watching = await watchPods(cluster, server.api);
    assert.equal(plugin.runs(), 1);
    await clock.advance(60_000);
    plugin.give({ token: "two", expirationTimestamp: "1970-01-01T01:00:00Z" });
    server.accepted = "two";
    server.api.create("v1/pods", pod("a", { namespace: "shop" }));
    await until(() => watching.informer.indexer.getByKey("shop/a") !== undefined);
    assert.equal(plugin.runs(), 1);
    server.seen.length = 0;
    await cluster.request("/version");
    server.api.closeWatches();
    await until(() => server.api.openWatches === 1);
    assert.deepEqual([...new Set(server.seen)], ["Bearer two"]);
    assert.equal(plugin.runs(), 2);
  });
});

describe("loadCluster, after a 401 response", () => {
  it("runs the plugin once for all requests that were refused, and sends each once more", async () => {
    using server = await serve("one");
    const plugin = newPlugin({ token: "one" });
    const cluster = await clusterOf(server.url, plugin.user);
    await cluster.request("/version");
    plugin.give({ token: "two" });
    server.accepted = "two";
    server.seen.length = 0;
    await Promise.all([1, 2, 3].map(() => cluster.request("/version")));
    assert.equal(plugin.runs(), 2);
    assert.equal(server.seen.filter((sent) => sent === "Bearer two").length, 3);
  });

  it("sends a body once more, too", async () => {
    using server = await serve("one");
    const plugin = newPlugin({ token: "one" });
    const cluster = await clusterOf(server.url, plugin.user);
    await cluster.request("/version");
    plugin.give({ token: "two" });
    server.accepted = "two";
    const pods = cluster.resource("v1/pods", { namespace: "shop" });
    await pods.create({ metadata: { name: "a" } });
    assert.equal(server.api.list("v1/pods").items.length, 1);
  });

  it("fails if the new credentials are refused as well, after one more try, and quotes neither", async () => {
    using server = await serve("third-secret");
    const plugin = newPlugin({ token: "first-secret" });
    const cluster = await clusterOf(server.url, plugin.user);
    await assert.rejects(cluster.request("/version"), isUnauthorized);
    assert.deepEqual(server.seen.splice(0), ["Bearer first-secret"]);
    plugin.give({ token: "second-secret" });
    await assert.rejects(cluster.request("/version"), (error) => {
      assert.ok(isUnauthorized(error));
      assert.ok(!String(error).includes("-secret"), String(error));
      return true;
    });
    assert.deepEqual(server.seen, ["Bearer first-secret", "Bearer second-secret"]);
  });

  it("keeps its credentials when others of a request were refused", async () => {
    using server = await serve("one");
    const plugin = newPlugin({ token: "one" });
    const cluster = await clusterOf(server.url, plugin.user);
    const headers = { Authorization: "Bearer of-a-reader" };
    await assert.rejects(cluster.request("/version", { headers }), isUnauthorized);
    await cluster.request("/version");
    assert.deepEqual(server.seen, ["Bearer of-a-reader", "Bearer one"]);
    assert.equal(plugin.runs(), 1);
  });

  it("presents the plugin's new certificate", { skip: isBun && NO_CERTIFICATES }, async () => {
    using server = await serveNames();
    const certificate = (name: string) => ({
      clientCertificateData: pem(`${name}.crt`),
      clientKeyData: pem(`${name}.key`),
    });
    const plugin = newPlugin(certificate("client"));
    const cluster = await clusterOf(server.url, plugin.user);
    await cluster.request("/version");
    server.refused = "admin";
    plugin.give(certificate("server"));
    await cluster.request("/version");
    assert.deepEqual(server.names.slice(0, 2), ["admin", "admin"]);
    assert.equal(server.names.length, 3);
    assert.notEqual(server.names[2], "admin");
    assert.equal(plugin.runs(), 2);
  });

  it("presents a certificate once that was refused, where the plugin has no other, or fails", {
    skip: isBun && NO_CERTIFICATES,
  }, async () => {
    const status = { clientCertificateData: pem("client.crt"), clientKeyData: pem("client.key") };
    for (const next of [status, {}]) {
      using server = await serveNames();
      const plugin = newPlugin(status);
      const cluster = await clusterOf(server.url, plugin.user);
      await cluster.request("/version");
      server.refused = "admin";
      plugin.give(next);
      await assert.rejects(cluster.request("/version"), isUnauthorized);
      assert.deepEqual(server.names, ["admin", "admin"]);
    }
  });

  it("presents the new certificate of its files, and before that once a minute", {
    skip: isBun && NO_CERTIFICATES,
  }, async () => {
    using server = await serveNames();
    const give = (name: string, { key = name } = {}) => {
      write("own.crt", pem(`${name}.crt`));
      write("own.key", pem(`${key}.key`));
    };
    give("client");
    const user = { "client-certificate": "own.crt", "client-key": "own.key" };
    const clock = new FakeClock();
    const cluster = await clusterOf(server.url, user, clock);
    const ask = async () => {
      await cluster.request("/version");
      return server.names.splice(0).map((name) => name === "admin" ? "client" : "server");
    };
    give("server");
    assert.deepEqual(await ask(), ["client"]);
    server.refused = "admin";
    assert.deepEqual(await ask(), ["client", "server"]);
    server.refused = "";
    give("client");
    assert.deepEqual(await ask(), ["server"]);
    await clock.advance(60_000);
    assert.deepEqual(await ask(), ["client"]);
    // In the middle of a rotation
    give("server", { key: "client" });
    await clock.advance(60_000);
    assert.deepEqual(await ask(), ["client"]);
  });

  it("presents a new certificate of its file that is for the same key", {
    skip: isBun && NO_CERTIFICATES,
  }, async () => {
    using server = await serveNames();
    write("same.crt", pem("client.crt"));
    write("same.key", pem("client.key"));
    const cluster = await clusterOf(server.url, {
      "client-certificate": "same.crt",
      "client-key": "same.key",
    });
    await cluster.request("/version");
    server.refused = "admin";
    await assert.rejects(cluster.request("/version"), isUnauthorized);
    assert.equal(server.names.splice(0).length, 2); // the files have nothing new
    write("same.crt", `${pem("client.crt")}\n`);
    await assert.rejects(cluster.request("/version"), isUnauthorized);
    assert.equal(server.names.length, 2);
  });
});
