import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { newCluster, silentLogger } from "@listwatch/cache";
import { answerStatus, FakeClock, InMemoryApiServer, pod } from "@listwatch/cache/testing";
import { ClusterGate, connect, readClusterUid } from "../../../src/cli/cluster/connect.ts";

function newServer() {
  const clock = new FakeClock();
  const server = new InMemoryApiServer({ clock });
  server.create("v1/namespaces", { metadata: { name: "kube-system" } });
  server.create("v1/pods", pod("a", { namespace: "shop" }));
  const config = { server: "http://in-memory", fetch: server.fetch, clock };
  const gate = new ClusterGate(clock);
  const guarded = newCluster(gate.guard(config)).resource("v1/pods", { namespace: "shop" });
  const { signal } = new AbortController();
  return { server, gate, guarded, signal, uid: () => readClusterUid(newCluster(config), signal) };
}

describe("connect", () => {
  it("reaches the cluster of the context, with credentials for itself and without for readers", async () => {
    const clock = new FakeClock();
    const folder = mkdtempSync(join(tmpdir(), "listwatch-connect-"));
    const path = join(folder, "config");
    const names = ["a", "b", "plain"];
    writeFileSync(
      path,
      JSON.stringify({
        "current-context": "a",
        clusters: names.map((name) => {
          return { name, cluster: { server: `${name === "plain" ? "http" : "https"}://${name}.example` } };
        }),
        contexts: names.map((name) => ({ name, context: { cluster: name, user: "u" } })),
        users: [{ name: "u", user: { token: "of-the-cache" } }],
      }),
    );
    const open = (context?: string) => {
      const source = { kind: "kubeconfig", path, ...(context && { context }) } as const;
      return connect(source, { clock, logger: silentLogger }, new ClusterGate(clock));
    };
    try {
      for (const [context, name] of [[undefined, "a"], ["b", "b"]] as const) {
        const connection = await open(context);
        const server = `https://${name}.example`;
        assert.deepEqual([connection.server, connection.name, connection.context], [server, name, name]);
        assert.deepEqual(Object.keys(connection.anonymous ?? {}), ["server", "fetch"]);
        assert.equal(connection.anonymous?.server, server);
      }
      assert.equal((await open("plain")).anonymous, undefined, "tokens are sent by https only");
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe("readClusterUid", () => {
  it("is empty where the namespace may not be read or is not there, and fails otherwise", async () => {
    const { server, uid } = newServer();
    assert.notEqual(await uid(), "");
    for (const code of [403, 404]) {
      server.intercept(answerStatus(code), { times: 1 });
      assert.equal(await uid(), "");
    }
    server.intercept(answerStatus(500), { times: 1 });
    await assert.rejects(uid(), /500/);
    server.close();
  });
});

describe("ClusterGate", () => {
  it("lets everything through until a cluster is expected, then asks once which one it is", async () => {
    const { server, gate, guarded, signal, uid } = newServer();
    await guarded.get("a");
    assert.equal(server.requests.length, 1);
    void gate.expect({ uid: await uid(), folder: "/snapshots", signal });
    server.clearRequests();
    await Promise.all([guarded.get("a"), guarded.get("a")]);
    await guarded.get("a");
    const paths = server.requests.map(({ path }) => path.split("/").at(-1));
    assert.deepEqual(paths, ["kube-system", "a", "a", "a"]);
    server.close();
  });

  it("asks again with the next request where it cannot learn that", async () => {
    const { server, gate, guarded, signal, uid } = newServer();
    void gate.expect({ uid: await uid(), folder: "/snapshots", signal });
    server.intercept(answerStatus(500), { times: 1 });
    await assert.rejects(guarded.get("a"));
    server.intercept(answerStatus(403), { times: 1 });
    await assert.rejects(guarded.get("a"), /kube-system, which identifies the cluster.*cannot be read/);
    assert.equal((await guarded.get("a")).metadata?.name, "a");
    server.close();
  });

  it("waits 15 s for the answer, a request no longer than its signal says, and nothing once it ends", async () => {
    const clock = new FakeClock();
    const gate = new ClusterGate(clock);
    const fetch = () => new Promise<Response>(() => {});
    const cluster = newCluster(gate.guard({ server: "http://in-memory", fetch, clock }));
    const end = new AbortController();
    const expected = gate.expect({ uid: "of the snapshots", folder: "/snapshots", signal: end.signal });
    const leaving = new AbortController();
    const left = assert.rejects(cluster.request("/a", { signal: leaving.signal }), /its reader left/);
    const late = assert.rejects(cluster.request("/a"), /no answer of http:\/\/in-memory within 15 s/);
    await clock.advance(14_999);
    leaving.abort(new Error("its reader left"));
    await left;
    await clock.advance(1);
    await late;
    end.abort();
    await expected;
    assert.equal(clock.pendingTimers, 0);
  });

  it("lets nothing through to another cluster, and reports it", async () => {
    const { server, gate, guarded, signal } = newServer();
    const other = gate.expect({ uid: "of another one", folder: "/snapshots", signal });
    const reported = assert.rejects(other, /another cluster responds at http:\/\/in-memory.*\/snapshots/);
    for (let i = 0; i < 2; i++) await assert.rejects(guarded.get("a"), /another cluster responds/);
    await reported;
    assert.ok(server.requests.every(({ path }) => path.endsWith("/kube-system")));
    server.close();
  });
});
