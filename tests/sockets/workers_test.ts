/**
 * `serve --workers`: processes of this machine that share a port, in front of an API server in memory.
 * @module
 */

import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import process from "node:process";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { newCluster, SharedIndexInformer, silentLogger } from "@listwatch/cache";
import {
  type AccessLogEntry,
  CommandError,
  serve,
  type Served,
  type ServeOptions,
} from "@listwatch/cache/cli";
import { node, pod } from "@listwatch/cache/testing";
import { realClock } from "@listwatch/cache/reflector";
import { RealCluster } from "../cli/real_cluster.ts";

async function eventually(condition: () => boolean | Promise<boolean>, what: string): Promise<void> {
  for (let i = 0; i < 1_000; i++) {
    if (await condition()) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  assert.fail(`never happened: ${what}`);
}

/** The processes of workers below a process. */
function workersOf(pid: number | undefined): number[] {
  const found: number[] = [];
  for (const name of readdirSync("/proc")) {
    if (!/^[0-9]+$/.test(name)) continue;
    try {
      const parent = readFileSync(`/proc/${name}/stat`, "utf8").split(") ")[1]?.split(" ");
      const command = readFileSync(`/proc/${name}/cmdline`, "utf8");
      if (Number(parent?.[1]) === pid && parent?.[0] !== "Z" && command.includes("serve-worker")) {
        found.push(Number(name));
      }
    } catch {
      // It has just ended.
    }
  }
  return found.sort((a, b) => a - b);
}

function isAlive(pid: number): boolean {
  try {
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}

/** Reads on a new connection, which may have another worker. */
async function read(served: { readonly url: string }, path: string, headers: Record<string, string> = {}) {
  const response = await fetch(served.url + path, { headers: { Connection: "close", ...headers } });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

async function newPods(count: number): Promise<RealCluster> {
  const cluster = await RealCluster.start();
  cluster.server.create("v1/namespaces", { metadata: { name: "shop" } });
  cluster.server.create("v1/nodes", node("node-1"));
  for (let i = 0; i < count; i++) cluster.server.create("v1/pods", pod(`web-${i}`, { namespace: "shop" }));
  return cluster;
}

function on(cluster: RealCluster, options: ServeOptions = {}): ServeOptions {
  return {
    source: { kind: "kubeconfig", path: cluster.kubeconfig },
    resources: ["pods", "nodes", "namespaces"],
    port: 0,
    workers: 2,
    logger: silentLogger,
    ...options,
  };
}

/** Whether `SO_REUSEPORT` is for Linux' Deno and newer Nodes only. */
const [major, minor] = (process.versions.node ?? "0.0").split(".").map(Number);
const canShare = process.platform === "linux" && !("Bun" in globalThis) &&
  ("Deno" in globalThis || major > 22 || (major === 22 && minor >= 12));

if (!canShare) {
  describe("serve() with workers", () => {
    it("is refused where processes cannot share a port", async () => {
      await assert.rejects(serve({ port: 0, workers: 2 }), (error) => {
        assert.ok(error instanceof CommandError, String(error));
        assert.match(error.message, /--workers: processes cannot share a port here; it needs Linux/);
        return true;
      });
    });
  });
} else {
  describe("serve() with workers", () => {
    it("answers by all of them, while the API server has one list and watch of each resource", async () => {
      await using cluster = await newPods(3);
      const answered = new Set<number | undefined>();
      const accessLog = ({ worker }: AccessLogEntry) => void answered.add(worker);
      await using served = await serve(on(cluster, { accessLog, metrics: true, freshness: "as-is" }));
      await served.synced();
      await eventually(async () => {
        const { status, text } = await read(served, "/api/v1/pods");
        assert.equal(status, 200);
        assert.equal(JSON.parse(text).items.length, 3);
        return answered.size === 2;
      }, "both answer");
      assert.deepEqual([...answered].sort(), [1, 2]);
      const asked = cluster.server.requests.filter(({ isWatch, path }) => isWatch && path === "/api/v1/pods");
      assert.equal(asked.length, 1);
      assert.equal((await read(served, "/readyz")).status, 200);
      const { text } = await read(served, "/metrics");
      for (const worker of [1, 2]) {
        assert.match(text, new RegExp(`^read_api_watches\\{worker="${worker}",resource="pods"\\} 0$`, "m"));
      }
      assert.match(text, /^serve_workers 2$/m);
      assert.match(text, /^reflector_watches_total\{name="pods"\} 1$/m);
      assert.equal(text.match(/^# TYPE reflector_watches_total /gm)?.length, 1);
    });

    it("is as fresh as the API server at every worker", async () => {
      await using cluster = await newPods(1);
      await using served = await serve(on(cluster));
      await served.synced();
      for (let i = 0; i < 20; i++) {
        cluster.server.update("v1/pods", pod("web-0", { namespace: "shop", labels: { i: String(i) } }));
        const { text } = await read(served, "/api/v1/namespaces/shop/pods/web-0");
        assert.equal(JSON.parse(text).metadata.labels.i, String(i));
      }
    });

    it("counts the watches of all workers on the page of each", async () => {
      await using cluster = await newPods(1);
      await using served = await serve(on(cluster));
      await served.synced();
      const left = new AbortController();
      const watch = await fetch(`${served.url}/api/v1/pods?watch=1`, { signal: left.signal });
      for (const count of [1, 0]) {
        // Each request may have another worker.
        let inARow = 0;
        await eventually(async () => {
          const { text } = await read(served, "/", { Accept: "text/html" });
          inARow = new RegExp(`(&quot;|")watches(&quot;|"):${count}\\b`).test(text) ? inARow + 1 : 0;
          return inARow === 6;
        }, `the pages count ${count}`);
        left.abort();
      }
      await watch.text().catch(() => {});
    });

    it("continues a list at any worker", async () => {
      await using cluster = await newPods(6);
      await using served = await serve(on(cluster));
      await served.synced();
      for (let i = 0; i < 10; i++) {
        cluster.server.update("v1/pods", pod("web-0", { namespace: "shop", labels: { i: String(i) } }));
        const names: string[] = [];
        let next = "";
        do {
          const { status, text } = await read(served, `/api/v1/pods?limit=2&continue=${next}`);
          assert.equal(status, 200, text);
          const { items, metadata } = JSON.parse(text);
          names.push(...items.map((item: { metadata: { name: string } }) => item.metadata.name));
          next = encodeURIComponent(metadata.continue ?? "");
        } while (next !== "");
        assert.deepEqual(names, ["web-0", "web-1", "web-2", "web-3", "web-4", "web-5"]);
      }
    });

    it("gives the same content the same ETags at every worker", async () => {
      await using cluster = await newPods(3);
      const answered = new Set<number | undefined>();
      const accessLog = ({ worker }: AccessLogEntry) => void answered.add(worker);
      await using served = await serve(on(cluster, { accessLog }));
      await served.synced();
      for (
        const path of ["/api/v1/pods", "/api/v1/namespaces/shop/pods", "/api/v1/namespaces/shop/pods/web-0"]
      ) {
        for (let i = 0; i < 2; i++) {
          const labels = { path: String(path.length), i: String(i) };
          cluster.server.update("v1/pods", pod("web-0", { namespace: "shop", labels }));
          // A read without a resourceVersion is fresh, whichever worker answers.
          const { headers } = await read(served, path);
          const tag = headers.get("ETag") ?? "none";
          answered.clear();
          await eventually(async () => {
            const answer = await read(served, path, { "If-None-Match": tag });
            assert.equal(answer.status, 304);
            assert.equal(answer.headers.get("ETag"), tag);
            return answered.size === 2;
          }, "both answer");
        }
      }
    });

    it("kills a worker that hangs, and starts it again; the readers of the others miss nothing", async () => {
      await using cluster = await newPods(1);
      const errors: string[] = [];
      const logger = { ...silentLogger, error: (text: string) => void errors.push(text) };
      // The parent sends its states five times as often.
      const clock = {
        ...realClock,
        setTimeout: (run: () => void, ms: number) => realClock.setTimeout(run, ms / 5),
      };
      await using served = await serve(on(cluster, { logger, clock }));
      await served.synced();
      const [hung, other] = workersOf(process.pid);
      const stop = new AbortController();
      const informers = Array.from({ length: 8 }, () =>
        new SharedIndexInformer(
          newCluster({ server: served.url, logger: silentLogger }).resource("v1/pods"),
          { logger: silentLogger },
        ));
      const running = informers.map((informer) => informer.run(stop.signal));
      await Promise.all(informers.map((informer) => informer.synced()));
      process.kill(hung, "SIGSTOP");
      await eventually(() => !isAlive(hung), "it is killed");
      await eventually(() => workersOf(process.pid).length === 2, "another one takes its place");
      assert.ok(workersOf(process.pid).includes(other));
      assert.match(errors.join("\n"), /Worker [12] hangs: it has not answered for 10 s, and is killed/);
      assert.match(errors.join("\n"), /Worker [12] was ended by SIGKILL; it is started again/);
      cluster.server.create("v1/pods", pod("last", { namespace: "shop" }));
      await eventually(
        () => informers.every((informer) => informer.indexer.getByKey("shop/last") !== undefined),
        "every reader has the last pod",
      );
      stop.abort();
      await Promise.all(running);
    });

    it("starts a killed worker again, and its readers miss nothing", async () => {
      await using cluster = await newPods(20);
      const errors: string[] = [];
      const logger = { ...silentLogger, error: (text: string) => void errors.push(text) };
      await using served = await serve(on(cluster, { metrics: true, logger }));
      await served.synced();
      const stop = new AbortController();
      const readers = Array.from({ length: 8 }, () => {
        const source = newCluster({ server: served.url, logger: silentLogger }).resource("v1/pods");
        const informer = new SharedIndexInformer(source, { logger: silentLogger });
        const seen = new Map<string, string>();
        const take = ({ metadata }: { metadata?: { name?: string; labels?: Record<string, string> } }) =>
          void seen.set(metadata?.name ?? "", metadata?.labels?.["i"] ?? "");
        informer.addEventHandler({ onAdd: take, onUpdate: (_, now) => take(now) });
        return { informer, seen, running: informer.run(stop.signal) };
      });
      await Promise.all(readers.map(({ informer }) => informer.synced()));
      const before = workersOf(process.pid);
      assert.equal(before.length, 2);
      for (let i = 1; i <= 30; i++) {
        if (i === 10) process.kill(before[0], "SIGKILL");
        for (let p = 0; p < 20; p++) {
          const labels = { i: String(i) };
          cluster.server.update("v1/pods", pod(`web-${p}`, { namespace: "shop", labels }));
        }
        await read(served, "/version").catch(() => {}); // the connection may be the killed one's
      }
      await eventually(
        () => readers.every(({ seen }) => seen.size === 20 && [...seen.values()].every((i) => i === "30")),
        "every reader has the last state",
      );
      await eventually(() => workersOf(process.pid).length === 2, "the worker is back");
      assert.ok(!workersOf(process.pid).includes(before[0]));
      assert.match(errors.join("\n"), /Worker [12] was ended by SIGKILL; it is started again in 0\.25 s/);
      await eventually(
        async () => /^serve_worker_restarts_total 1$/m.test((await read(served, "/metrics")).text),
        "the restart is counted",
      );
      const watches = cluster.server.requests.filter(({ isWatch, path }) =>
        isWatch && path === "/api/v1/pods"
      );
      // Besides, proofs of freshness.
      assert.equal(watches.filter(({ query }) => query["timeoutSeconds"] !== "3").length, 1);
      stop.abort();
      await Promise.all(readers.map(({ running }) => running));
    });

    it("serves the last known state by a new worker while the API server is away", async () => {
      await using cluster = await newPods(2);
      await using served = await serve(on(cluster));
      await served.synced();
      await cluster.stopListening();
      for (const pid of workersOf(process.pid)) process.kill(pid, "SIGKILL");
      await eventually(async () => {
        const answer = await read(served, "/api/v1/pods").catch(() => undefined);
        if (answer?.status !== 200) return false;
        assert.equal(JSON.parse(answer.text).items.length, 2);
        assert.match(answer.headers.get("Warning") ?? "", /last known state/);
        return true;
      }, "a new worker answers");
    });

    it("refuses readers as one process does: by token, namespaces and reviews", async () => {
      await using cluster = await newPods(1);
      const token = "a-token-of-some-length";
      {
        await using served = await serve(on(cluster, { token, readerNamespaces: ["shop"] }));
        await served.synced();
        const headers = { Authorization: `Bearer ${token}` };
        for (let i = 0; i < 6; i++) {
          assert.equal((await read(served, "/api/v1/namespaces/shop/pods")).status, 401);
          assert.equal((await read(served, "/api/v1/namespaces/shop/pods", headers)).status, 200);
          assert.equal((await read(served, "/api/v1/pods", headers)).status, 403);
        }
      }
      cluster.server.intercept(async (request, next) => {
        const { pathname } = new URL(request.url);
        if (pathname.endsWith("/tokenreviews")) {
          assert.notEqual(request.headers.get("Authorization"), "Bearer token-of-ann");
          const { spec } = await request.json();
          const status = { authenticated: spec.token === "token-of-ann", user: { username: "ann" } };
          return Response.json({ status });
        }
        if (!pathname.endsWith("/subjectaccessreviews")) return await next(request);
        const { resourceAttributes } = (await request.json()).spec;
        return Response.json({ status: { allowed: resourceAttributes.namespace === "shop" } });
      });
      await using served = await serve(on(cluster, { clusterRbac: true }));
      await served.synced();
      const headers = { Authorization: "Bearer token-of-ann" };
      for (let i = 0; i < 6; i++) {
        assert.equal((await read(served, "/api/v1/namespaces/shop/pods", headers)).status, 200);
        assert.equal((await read(served, "/api/v1/pods", headers)).status, 403);
        assert.equal((await read(served, "/api/v1/pods")).status, 401);
      }
    });

    it("is refused on a port that is in use, also by other workers", async () => {
      await using served = await serve({ port: 0, workers: 1 });
      const port = Number(new URL(served.url).port);
      for (const workers of [undefined, 2]) {
        await assert.rejects(serve({ port, ...(workers && { workers }) }), /is in use/);
      }
    });

    it("ends its workers when it stops", async () => {
      const served: Served = await serve({ port: 0, workers: 2 });
      await served.synced();
      const pids = workersOf(process.pid);
      assert.equal(pids.length, 2);
      await served.stop();
      assert.deepEqual(pids.filter(isAlive), []);
      assert.deepEqual(workersOf(process.pid), []);
    });

    it("shows the parent's cache to workers only", async () => {
      await using cluster = await newPods(1);
      await using served = await serve(on(cluster));
      await served.synced();
      const ports = listeningPorts().filter((port) =>
        port !== Number(new URL(served.url).port) && port !== Number(new URL(cluster.url).port)
      );
      assert.ok(ports.length >= 1);
      for (const port of ports) {
        for (const path of ["/api/v1/pods", "/metrics", "/workers/metrics", "/version", "/"]) {
          assert.equal((await read({ url: `http://127.0.0.1:${port}` }, path)).status, 401);
        }
      }
    });
  });

  describe("listwatch serve --workers", () => {
    for (const signal of ["SIGTERM", "SIGINT", "SIGKILL"] as const) {
      it(`ends all its processes after ${signal}`, async () => {
        const { program, output } = start(["serve", "--workers", "2", "--port", "0"]);
        await eventually(() => /Press Ctrl-C/.test(output()), "it serves");
        const url = /Serving +(\S+)/.exec(output())![1];
        const pids = workersOf(program.pid);
        assert.equal(pids.length, 2);
        const watch = (await fetch(`${url}/api/v1/pods?watch=1`)).text();
        watch.catch(() => {}); // the connection may be cut
        const ended = new Promise((resolve) => program.once("exit", (code) => resolve(code)));
        process.kill(program.pid!, signal);
        const code = await ended;
        await eventually(() => !pids.some(isAlive), "the workers end");
        await Promise.allSettled([watch]);
        if (signal === "SIGKILL") return;
        assert.equal(code, 0, output());
        assert.match(output(), /Stopped\.\n$/);
        assert.doesNotMatch(output(), /started again/);
      });
    }

    it("hides its token and options from the list of processes", async () => {
      const { program, output } = start(["serve", "--workers", "1", "--port", "0"], {
        LISTWATCH_TOKEN: "a-token-of-some-length",
      });
      await eventually(() => /Press Ctrl-C/.test(output()), "it serves");
      const [pid] = workersOf(program.pid);
      const command = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").filter(Boolean);
      assert.equal(command.at(-1), "serve-worker");
      assert.doesNotMatch(command.join(" "), /token-of/);
      const ended = new Promise((resolve) => program.once("exit", resolve));
      process.kill(program.pid!, "SIGTERM");
      await ended;
    });
  });
}

/** The ports that this process listens on. */
function listeningPorts(): number[] {
  const inodes = new Set(
    readdirSync("/proc/self/fd").flatMap((fd) => {
      try {
        return [readlinkSync(`/proc/self/fd/${fd}`)];
      } catch {
        return [];
      }
    }),
  );
  return readFileSync("/proc/net/tcp", "utf8").split("\n").slice(1).flatMap((line) => {
    const fields = line.trim().split(/\s+/);
    return fields[3] === "0A" && inodes.has(`socket:[${fields[9]}]`)
      ? [parseInt(fields[1].split(":")[1], 16)]
      : [];
  });
}

function start(args: string[], env: Record<string, string> = {}) {
  const entry = import.meta.resolve("@listwatch/cache/cli");
  const module = new URL(entry.endsWith(".ts") ? "./main.ts" : "../bin/listwatch.js", entry);
  const program: ChildProcess = spawn(
    process.execPath,
    [...("Deno" in globalThis ? ["run", "-A"] : []), fileURLToPath(module), ...args],
    { stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, ...env } },
  );
  let text = "";
  program.stdout?.on("data", (chunk) => (text += String(chunk)));
  program.stderr?.on("data", (chunk) => (text += String(chunk)));
  return { program, output: () => text };
}
