/**
 * The API server of `deno task bench --controllers`: a real kube-apiserver with so many new Widgets. They are
 * made once; each contestant of each round gets a copy of the data.
 *
 * @module
 */

import { join } from "node:path";
import { startCluster, type TestCluster } from "../../scripts/lib/cluster.ts";
import { run } from "../../scripts/lib/process.ts";
import { widgetDefinition } from "../../tests/widgets.ts";
import { request } from "../fanout/objects.ts";
import { AUDIT_POLICY } from "./audit.ts";

const NAMESPACE = "widgets";
const COLORS = ["red", "green", "blue", "black"];

// How many Widgets are created at a time.
const CONNECTIONS = 8;

// The types that the peers' definitions have.
const PROPERTIES = {
  spec: {
    type: "object",
    properties: { color: { type: "string" }, size: { type: "integer", format: "int64" } },
  },
  status: {
    type: "object",
    properties: {
      ready: { type: "boolean" },
      observedGeneration: { type: "integer", format: "int64" },
      message: { type: "string" },
    },
  },
};

const DEFINITION = widgetDefinition({
  version: {
    subresources: { status: {} },
    schema: { openAPIV3Schema: { type: "object", properties: PROPERTIES } },
  },
});

/** Fills a folder with the data of an API server that has new Widgets. */
export async function createWidgets(
  dataDir: string,
  widgets: number,
  log: (line: string) => void,
): Promise<void> {
  await using cluster = await startCluster({ dataDir, log });
  const create = async (path: string, object: unknown) =>
    void await (await request(cluster, "POST", path, object)).body?.cancel();
  await create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION);
  await create("/api/v1/namespaces", { metadata: { name: NAMESPACE } });
  const path = `/apis/example.com/v1/namespaces/${NAMESPACE}/widgets`;
  await isServed(cluster, path);
  let next = 0;
  await Promise.all(Array.from({ length: CONNECTIONS }, async () => {
    for (let i = next++; i < widgets; i = next++) {
      await create(path, {
        apiVersion: "example.com/v1",
        kind: "Widget",
        metadata: { name: `w${String(i).padStart(6, "0")}`, labels: { app: `app-${i % 100}` } },
        spec: { color: COLORS[i % COLORS.length], size: i % 10 },
      });
    }
  }));
}

/** An API server that logs every request. */
export interface AuditedServer extends AsyncDisposable {
  readonly kubeconfigPath: string;
  /** Resolves when no line was added to the log for a while. */
  quiet(): Promise<void>;
  /** The lines that were added since the last call. */
  takeLog(): Promise<string>;
}

const QUIET_MS = 2_000;

/** Starts a server on a copy of a folder with Widgets. */
export async function startServer(
  template: string,
  dataDir: string,
  log: (line: string) => void,
): Promise<AuditedServer> {
  const { code, output } = await run("cp", ["-r", template, dataDir]);
  if (code !== 0) throw new Error(`Cannot copy ${template}: ${output}`);
  const policy = join(dataDir, "audit_policy.json");
  const path = join(dataDir, "audit.log");
  await Deno.writeTextFile(policy, AUDIT_POLICY);
  const cluster = await startCluster({
    dataDir,
    apiServerArgs: [`--audit-policy-file=${policy}`, `--audit-log-path=${path}`],
    log,
  });
  const size = async () => (await Deno.stat(path).catch(() => undefined))?.size ?? 0;
  const quiet = async () => {
    for (let before = -1, now = await size(); now !== before; now = await size()) {
      before = now;
      await new Promise((resolve) => setTimeout(resolve, QUIET_MS));
    }
  };
  let taken = 0;
  const takeLog = async () => {
    using file = await Deno.open(path);
    await file.seek(taken, Deno.SeekMode.Start);
    const text = await new Response(file.readable).text();
    taken += new TextEncoder().encode(text).length;
    return text;
  };
  // What a server does when it starts is over.
  await isServed(cluster, `/apis/example.com/v1/namespaces/${NAMESPACE}/widgets?limit=1`);
  await quiet();
  await takeLog();
  return {
    kubeconfigPath: cluster.kubeconfigPath,
    quiet,
    takeLog,
    async [Symbol.asyncDispose]() {
      await cluster.stop();
      await Deno.remove(dataDir, { recursive: true });
    },
  };
}

/** Waits until the server knows the custom resource. */
async function isServed(cluster: TestCluster, path: string): Promise<void> {
  for (let left = 100;; left--) {
    try {
      await (await request(cluster, "GET", path)).body?.cancel();
      return;
    } catch (error) {
      if (left === 0) throw error;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}
