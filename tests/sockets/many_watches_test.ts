import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { connect, type Socket } from "node:net";
import { describe, it } from "node:test";
import { serve } from "@listwatch/cache/cli";
import { configMap } from "@listwatch/cache/testing";
import { RealCluster } from "../cli/real_cluster.ts";

const TOKEN = "the-token-of-one-service-account";
const HEADERS = `Host: 127.0.0.1\r\nAuthorization: Bearer ${TOKEN}\r\n`;

/** A watch over a connection of its own. */
class RawWatch {
  readonly #socket: Socket;
  text = "";
  isClosed = false;

  constructor(port: number, query: string) {
    this.#socket = connect({ host: "127.0.0.1", port });
    this.#socket.write(`GET /api/v1/configmaps?watch=1&${query} HTTP/1.1\r\n${HEADERS}\r\n`);
    this.#socket.on("data", (chunk) => (this.text += String(chunk)));
    this.#socket.on("error", () => (this.isClosed = true));
    this.#socket.on("close", () => (this.isClosed = true));
  }

  /** Waits for a text. */
  async has(text: string): Promise<void> {
    while (!this.text.includes(text)) {
      if (this.isClosed) throw new Error(`the watch has ended: ${this.text.slice(0, 500)}`);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  close(): void {
    this.#socket.destroy();
  }
}

/** A cluster, and `serve` of it with default options. */
async function served() {
  const cluster = await RealCluster.start();
  const source = { kind: "kubeconfig", path: cluster.kubeconfig } as const;
  const server = await serve({ port: 0, source, resources: ["configmaps"], token: TOKEN });
  await server.synced();
  return {
    cluster: cluster.server,
    port: Number(new URL(server.url).port),
    list: async () => {
      const response = await fetch(`${server.url}/api/v1/configmaps`, {
        headers: { Authorization: `Bearer ${TOKEN}` },
      });
      assert.equal(response.status, 200);
      return await response.json();
    },
    async [Symbol.asyncDispose]() {
      await server.stop();
      await cluster[Symbol.asyncDispose]();
    },
  };
}

describe("`serve` with default options", () => {
  const WATCHES = 5_000;

  // Both ends are in this process.
  const descriptors = execFileSync("sh", ["-c", "ulimit -n"], { encoding: "utf8" }).trim();
  const isTooFew = descriptors !== "unlimited" && Number(descriptors) < 2 * WATCHES + 500;

  it("holds 5,000 watches of one client, and answers its lists meanwhile", {
    skip: isTooFew && `of ${2 * WATCHES + 500} file descriptors there are ${descriptors}`,
  }, async () => {
    await using app = await served();
    app.cluster.create("v1/configmaps", configMap("first"));
    const watches: RawWatch[] = [];
    try {
      while (watches.length < WATCHES) {
        const some = Array.from({ length: 250 }, () => new RawWatch(app.port, ""));
        watches.push(...some);
        for (const watch of some) await watch.has("HTTP/1.1 200 ");
        assert.equal((await app.list()).items.length, 1);
      }
      app.cluster.create("v1/configmaps", configMap("second"));
      for (const watch of watches) await watch.has('"name":"second"');
      assert.equal((await app.list()).items.length, 2);
      assert.equal(watches.filter(({ isClosed }) => isClosed).length, 0);
    } finally {
      for (const watch of watches) watch.close();
    }
  });

  // As Kubernetes' conformance test "should receive events on concurrent watches in same order" does:
  // https://github.com/kubernetes/kubernetes/blob/master/test/e2e/apimachinery/watch.go
  it("sends all events in one order to hundreds of watches that begin at each of them", async () => {
    await using app = await served();
    const versions: string[] = [];
    const watches: RawWatch[] = [];
    try {
      for (let i = 0; i < 300; i++) {
        const name = `map-${i % 20}`;
        const value = configMap(name, { data: { round: String(i) } });
        const { metadata } = i < 20
          ? app.cluster.create("v1/configmaps", value)
          : app.cluster.update("v1/configmaps", value);
        versions.push(metadata!.resourceVersion!);
        watches.push(new RawWatch(app.port, `resourceVersion=${metadata!.resourceVersion}`));
      }
      app.cluster.create("v1/configmaps", configMap("last"));
      for (const [i, watch] of watches.entries()) {
        await watch.has('"name":"last"');
        const seen = Array.from(watch.text.matchAll(/"resourceVersion":"(\d+)"/g), ([, version]) => version);
        assert.deepEqual(seen.slice(0, -1), versions.slice(i + 1), `watch ${i}`);
      }
    } finally {
      for (const watch of watches) watch.close();
    }
  });
});
