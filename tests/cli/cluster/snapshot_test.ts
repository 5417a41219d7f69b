import assert from "node:assert/strict";
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { serve, type Served, type ServeOptions, type ServeStep } from "@listwatch/cache/cli";
import { serveFetch, sqliteSnapshot } from "@listwatch/cache/node";
import { InMemoryApiServer } from "@listwatch/cache/testing";
import { silentLogger } from "@listwatch/cache";
import { seededRandom } from "../../../src/testing/seeded_random.ts";
import { kubeconfigText } from "../real_cluster.ts";
import { widgetDefinition, WIDGETS } from "../../widgets.ts";

const DEFINITION = widgetDefinition({
  names: { shortNames: ["wd"] },
  version: { additionalPrinterColumns: [{ name: "Color", type: "string", jsonPath: ".spec.color" }] },
});

/** An API server that can be away, at one address. */
class Upstream {
  server: InMemoryApiServer = new InMemoryApiServer();
  /** Paths and queries of the requests. */
  requests: string[] = [];
  url = "";
  /** Answers 401. */
  refuses = false;
  #stop = new AbortController();
  #finished: Promise<void> = Promise.resolve();

  async start(): Promise<void> {
    this.#stop = new AbortController();
    const port = this.url === "" ? 0 : Number(new URL(this.url).port);
    const { url, finished } = await serveFetch((request: Request) => {
      const { pathname, search } = new URL(request.url);
      this.requests.push(pathname + search);
      if (this.refuses) return new Response(null, { status: 401 });
      return this.server.fetch(request).catch(() => new Response(null, { status: 503 }));
    }, { host: "127.0.0.1", port, signal: this.#stop.signal });
    this.url = url;
    this.#finished = finished;
  }

  async stop(): Promise<void> {
    this.server.closeWatches();
    this.#stop.abort();
    await this.#finished;
  }
}

describe("ServeOptions.snapshot", () => {
  const upstream = new Upstream();
  let folder = "";
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "listwatch-serve-snapshot-"));
    await upstream.start();
    writeFileSync(join(folder, "config"), kubeconfigText(upstream.url));
    for (const name of ["web-1", "web-2"]) {
      upstream.server.create("v1/pods", { metadata: { name, namespace: "shop" } });
    }
    upstream.server.create("apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION);
    upstream.server.create(WIDGETS, { metadata: { name: "w", namespace: "shop" }, spec: { color: "red" } });
  });
  after(async () => {
    await upstream.stop();
    upstream.server.close();
    rmSync(folder, { recursive: true });
  });

  async function start(options: ServeOptions = {}): Promise<{ served: Served; steps: ServeStep[] }> {
    const steps: ServeStep[] = [];
    const served = await serve({
      source: { kind: "kubeconfig", path: join(folder, "config") },
      resources: ["pods", "widgets"],
      port: 0,
      snapshot: join(folder, "snapshots"),
      onStep: (step) => steps.push(step),
      ...options,
    });
    return { served, steps };
  }

  async function get(served: Served, path: string, headers: Record<string, string> = {}) {
    const response = await fetch(served.url + path, { headers });
    const text = await response.text();
    return { status: response.status, headers: response.headers, text, names: namesIn(text) };
  }

  it("starts without the API server, serves what it had as stale, and continues by watches", async () => {
    {
      const { served } = await start();
      await served.synced();
      await served.stop();
    }
    await upstream.stop();
    const { served, steps } = await start();
    try {
      assert.deepEqual(steps.slice(0, 2).map(({ type }) => type), ["away", "listening"]);
      await eventually(async () => (await get(served, "/api/v1/pods")).status === 200);
      const pods = await get(served, "/api/v1/pods");
      assert.deepEqual(pods.names, ["web-1", "web-2"]);
      assert.equal(pods.headers.get("Cache-Synced"), "false");
      assert.match(pods.headers.get("Warning") ?? "", /^(110|199|299) /);
      assert.match(pods.headers.get("Age") ?? "", /^[0-9]+$/);
      assert.equal((await get(served, "/readyz")).status, 503);
      const discovered = await get(served, "/apis/example.com/v1");
      assert.match(discovered.text, /"shortNames":\["wd"\]/);
      const table = await get(served, "/apis/example.com/v1/widgets", {
        Accept: "application/json;as=Table;g=meta.k8s.io;v=v1",
      });
      assert.match(table.text, /"name":"Color"/);
      assert.match(table.text, /"red"/);
      assert.equal((await get(served, "/api/v1/pods?resourceVersion=99999999999")).status, 504);
      assert.match((await get(served, "/dashboard/state")).text, /"restored":\{/);

      // While it is away, one is deleted and one is created.
      upstream.server.delete("v1/pods", "shop/web-1");
      upstream.server.create("v1/pods", { metadata: { name: "web-3", namespace: "shop" } });
      upstream.requests = [];
      await upstream.start();
      await served.synced(AbortSignal.timeout(30_000));
      await eventually(async () => (await get(served, "/api/v1/pods")).names.join() === "web-2,web-3");
      assert.equal((await get(served, "/api/v1/pods")).headers.get("Cache-Synced"), "true");
      const lists = upstream.requests.filter((request) =>
        /^\/api\/v1\/pods(\?|$)/.test(request) && !/watch=(1|true)/.test(request) &&
        !/limit=1\b/.test(request)
      );
      assert.deepEqual(lists, []);
    } finally {
      await served.stop();
    }
  });

  /** Another cluster takes the address of the upstream: its versions have passed those of the first one. */
  function otherCluster(): InMemoryApiServer {
    const other = new InMemoryApiServer({ random: seededRandom(2) });
    other.create("v1/namespaces", { metadata: { name: "kube-system" } });
    other.create("v1/pods", { metadata: { name: "other", namespace: "shop" } });
    for (let i = 0; i < 20; i++) {
      other.create("v1/configmaps", { metadata: { name: `c-${i}`, namespace: "shop" } });
    }
    return other;
  }

  /**
   * Runs a body with a first cluster at the address, whose pods have been
   * saved, and a second one that takes its place.
   */
  async function withTwoClusters(
    body: (address: Upstream, options: ServeOptions) => Promise<void>,
    { hasIdentity = true } = {},
  ): Promise<void> {
    const address = new Upstream();
    const own = mkdtempSync(join(tmpdir(), "listwatch-two-clusters-"));
    const first = address.server;
    const other = otherCluster();
    try {
      await address.start();
      writeFileSync(join(own, "config"), kubeconfigText(address.url));
      if (hasIdentity) first.create("v1/namespaces", { metadata: { name: "kube-system" } });
      first.create("v1/pods", { metadata: { name: "old", namespace: "shop" } });
      const options: ServeOptions = {
        source: { kind: "kubeconfig", path: join(own, "config") },
        resources: ["pods"],
        snapshot: join(own, "snapshots"),
      };
      const { served } = await start(options);
      await served.synced();
      await served.stop();
      await address.stop();
      address.server = other;
      await body(address, options);
    } finally {
      await address.stop();
      first.close();
      other.close();
      rmSync(own, { recursive: true });
    }
  }

  for (const hasIdentity of [true, false]) {
    const of = hasIdentity ? "" : ", of which no identity could be read,";
    it(`lists another cluster at the same address${of} in place of the snapshot`, async () => {
      await withTwoClusters(async (address, options) => {
        await address.start();
        const { served } = await start(options);
        try {
          await served.synced(AbortSignal.timeout(30_000));
          assert.deepEqual((await get(served, "/api/v1/pods")).names, ["other"]);
        } finally {
          await served.stop();
        }
      }, { hasIdentity });
    });

    it(`ends when another cluster responds while a snapshot${of} is served`, async () => {
      await withTwoClusters(async (address, options) => {
        const { served, steps } = await start(options);
        assert.equal(steps[0].type, "away");
        await eventually(async () => (await get(served, "/api/v1/pods")).names.join() === "old");
        let hasSynced = false;
        served.synced().then(() => (hasSynced = true), () => {});
        await address.start();
        const ended = served.finished.then(() => "stopped", (error: Error) => error.message);
        const late = new Promise<string>((resolve) =>
          setTimeout(() => resolve("still running"), 30_000).unref()
        );
        const end = await Promise.race([ended, late]);
        await served.stop().catch(() => {});
        assert.match(
          end,
          /another cluster responds .* than that of the snapshots in .*snapshots: start again/,
        );
        assert.equal(hasSynced, false);
        const again = (await start(options)).served;
        try {
          await again.synced(AbortSignal.timeout(30_000));
          assert.deepEqual((await get(again, "/api/v1/pods")).names, ["other"]);
        } finally {
          await again.stop();
        }
      }, { hasIdentity });
    });
  }

  it("serves a snapshot as stale while the server that is back does not show its identity", async () => {
    await withTwoClusters(async (address, options) => {
      address.server.delete("v1/namespaces", "kube-system");
      const { served } = await start(options);
      try {
        await eventually(async () => (await get(served, "/api/v1/pods")).names.join() === "old");
        address.requests = [];
        await address.start();
        const checks = () => address.requests.filter((request) => /namespaces\/kube-system/.test(request));
        await eventually(() => Promise.resolve(checks().length >= 2));
        const pods = await get(served, "/api/v1/pods");
        assert.deepEqual([pods.names.join(), pods.headers.get("Cache-Synced")], ["old", "false"]);
        assert.deepEqual(address.requests, checks());
      } finally {
        await served.stop();
      }
    });
  });

  it("removes the snapshots of resources that are no longer selected, and no other file", async () => {
    const own = join(folder, "fewer");
    const options = { snapshot: own, source: { kind: "kubeconfig", path: join(folder, "config") } } as const;
    upstream.server.create("v1/secrets", {
      metadata: { name: "s", namespace: "shop" },
      data: { password: "aHVudGVyMg==" },
    });
    const run = async (more: ServeOptions) => {
      const { served } = await start({ ...options, ...more });
      await served.synced();
      await served.stop();
    };
    await run({ resources: ["pods", "secrets", "configmaps"], allowSecrets: true });
    const secrets = readFileSync(join(own, "v1_secrets.sqlite"));
    // Files of others: a snapshot that the command did not name, one elsewhere behind a link, and a text.
    const elsewhere = join(folder, "elsewhere.sqlite");
    writeFileSync(elsewhere, secrets);
    symlinkSync(elsewhere, join(own, "v1_nodes.sqlite"));
    writeFileSync(join(own, "pods.sqlite"), secrets);
    writeFileSync(join(own, "v1_notes.sqlite"), "precious");
    mkdirSync(join(own, "v1_folder.sqlite"));
    // What another process still writes.
    writeFileSync(join(own, "v1_events.sqlite"), readFileSync(join(own, "v1_configmaps.sqlite")));
    const other = sqliteSnapshot(join(own, "v1_events.sqlite")).storage;
    await Promise.resolve(other.load({ resource: "", source: "" })).catch(() => {});
    const lines: string[] = [];
    const logger = { ...silentLogger, info: (line: string) => lines.push(line) };
    await run({ resources: ["pods"], logger });
    await other.close?.();
    assert.deepEqual(readdirSync(own).sort(), [
      "cluster.sqlite",
      "pods.sqlite",
      "v1_events.sqlite",
      "v1_folder.sqlite",
      "v1_nodes.sqlite",
      "v1_notes.sqlite",
      "v1_pods.sqlite",
    ]);
    assert.deepEqual(readFileSync(elsewhere), secrets);
    assert.equal(readFileSync(join(own, "v1_notes.sqlite"), "utf8"), "precious");
    const removed = lines.filter((line) => line.includes("removed"));
    assert.equal(removed.length, 1);
    assert.match(removed[0], /v1_configmaps\.sqlite, v1_secrets\.sqlite$/);
  });

  it("is an error if every user of the machine may write the folder", async () => {
    const open = join(folder, "open");
    mkdirSync(open);
    chmodSync(open, 0o777);
    await assert.rejects(() => start({ snapshot: open }), /every user may write it.*chmod 700/);
  });

  it("writes no file that a link in the folder leads to, and replaces nothing that is no regular file", async () => {
    const victim = join(folder, "victim");
    writeFileSync(victim, "precious", { mode: 0o644 });
    const kinds = [(path: string) => symlinkSync(victim, path), (path: string) => mkdirSync(path)];
    for (const [i, make] of kinds.entries()) {
      const shared = join(folder, `shared-${i}`);
      mkdirSync(shared);
      const names = ["cluster.sqlite", "v1_pods.sqlite"];
      for (const name of names) make(join(shared, name));
      const before = names.map((name) => lstatSync(join(shared, name)).ino);
      const errors: string[] = [];
      const { served } = await start({
        snapshot: shared,
        logger: { ...silentLogger, error: (line) => errors.push(line) },
      });
      await served.synced();
      assert.ok((await get(served, "/api/v1/pods")).names.includes("web-2"));
      await served.stop();
      assert.deepEqual(names.map((name) => lstatSync(join(shared, name)).ino), before);
      for (const name of names) {
        const line = `${join(shared, name)} is no regular file, and is left alone`;
        assert.ok(errors.some((error) => error.includes(line)), errors.join("\n"));
      }
    }
    assert.equal(readFileSync(victim, "utf8"), "precious");
    assert.equal(statSync(victim).mode & 0o777, 0o644);
  });

  it("keeps files that only their owner can read", () => {
    const files = readdirSync(join(folder, "snapshots"));
    assert.deepEqual(files.sort(), ["cluster.sqlite", "example.com_v1_widgets.sqlite", "v1_pods.sqlite"]);
    for (const file of files) {
      assert.equal(statSync(join(folder, "snapshots", file)).mode & 0o777, 0o600, file);
    }
    assert.equal(statSync(join(folder, "snapshots")).mode & 0o777, 0o700);
  });

  it("is an error without the API server where the folder has nothing, is damaged, or is of other options", async () => {
    await upstream.stop();
    const fails = async (options: ServeOptions) =>
      await assert.rejects(() => start(options), /Cannot reach .*connection refused/);
    await fails({ snapshot: join(folder, "empty") });
    await fails({ resources: ["pods"] });
    const path = join(folder, "snapshots", "cluster.sqlite");
    const bytes = readFileSync(path);
    writeFileSync(path, bytes.toString("latin1").replaceAll("pods", "pots"), "latin1");
    await fails({});
    writeFileSync(path, bytes);
    await (await start()).served.stop();
    await upstream.start();
  });

  it("is an error if the API server refuses", async () => {
    upstream.refuses = true;
    await assert.rejects(() => start(), /401 Unauthorized/);
    upstream.refuses = false;
  });

  it("needs a real cluster, and a path", async () => {
    await assert.rejects(() => serve({ snapshot: folder }), /--snapshot needs a real cluster/);
    await assert.rejects(() => start({ snapshot: "" }), /snapshot must be the path of a folder/);
  });
});

function namesIn(text: string): string[] {
  try {
    const { items = [] } = JSON.parse(text) as { items?: { metadata: { name: string } }[] };
    return items.map(({ metadata }) => metadata.name).sort();
  } catch {
    return [];
  }
}

async function eventually(condition: () => Promise<boolean>): Promise<void> {
  for (let i = 0; i < 400; i++) {
    if (await condition()) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  assert.fail("not in time");
}
