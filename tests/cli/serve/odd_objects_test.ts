/**
 * Objects of any shape from an API server: `serve` continues, with its page, its Tables and its windows.
 * @module
 */

import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { it } from "node:test";
import { serve } from "@listwatch/cache/cli";
import { serveFetch } from "@listwatch/cache/node";
import { SeededRandom } from "../../simulation/seeded_random.ts";
import { LogRecorder } from "../../log_recorder.ts";
import { kubeconfigText } from "../real_cluster.ts";

const SEED = Number(process.env.LISTWATCH_PROPERTY_SEED ?? 1);
// 90,000 with LISTWATCH_PROPERTY_RUNS=4.5.
const OBJECTS = Math.ceil(20_000 * Number(process.env.LISTWATCH_PROPERTY_RUNS ?? 1));
const ROUNDS = 8;

const RESOURCES: readonly (readonly [path: string, kind: string, example: object])[] = [
  ["/api/v1/pods", "Pod", {
    spec: {
      nodeName: "node-1",
      containers: [{ name: "a" }],
      initContainers: [{ name: "i", restartPolicy: "Always" }],
      readinessGates: [{ conditionType: "x" }],
    },
    status: {
      phase: "Running",
      reason: "r",
      podIPs: [{ ip: "10.0.0.1" }],
      nominatedNodeName: "n",
      conditions: [{ type: "Ready", status: "True" }, { type: "Initialized", status: "True" }],
      initContainerStatuses: [{
        name: "i",
        started: true,
        ready: true,
        restartCount: 1,
        state: { running: {} },
      }],
      containerStatuses: [{
        name: "a",
        ready: true,
        restartCount: 2,
        state: { waiting: { reason: "CrashLoopBackOff" }, terminated: { exitCode: 1, signal: 9 } },
        lastState: { terminated: { finishedAt: "2026-01-01T00:00:00Z" } },
      }],
    },
  }],
  ["/api/v1/nodes", "Node", {
    spec: { unschedulable: true },
    status: {
      allocatable: { pods: "110" },
      conditions: [{ type: "Ready", status: "True" }],
      addresses: [{ type: "InternalIP", address: "10.0.0.1" }],
      nodeInfo: { kubeletVersion: "v1", osImage: "x", kernelVersion: "y", architecture: "z" },
    },
  }],
  ["/api/v1/namespaces", "Namespace", { status: { phase: "Active" } }],
  ["/api/v1/services", "Service", {
    spec: {
      type: "LoadBalancer",
      clusterIPs: ["10.0.0.1"],
      externalIPs: ["1.2.3.4"],
      ports: [{ port: 80, protocol: "TCP", nodePort: 3 }],
      selector: { app: "web" },
    },
    status: { loadBalancer: { ingress: [{ ip: "1.1.1.1" }] } },
  }],
  ["/api/v1/configmaps", "ConfigMap", { data: { a: "b" }, binaryData: { c: "ZA==" } }],
  ["/api/v1/events", "Event", { reason: "Pulled", message: "Image", type: "Normal", count: 1 }],
  ["/apis/apps/v1/deployments", "Deployment", {
    spec: {
      replicas: 3,
      selector: { matchLabels: { a: "b" } },
      template: { spec: { containers: [{ name: "a" }] } },
    },
    status: { replicas: 3, readyReplicas: 2, updatedReplicas: 3, availableReplicas: 2 },
  }],
];

const random = new SeededRandom(SEED);
const pick = <T>(items: readonly T[]): T => items[Math.floor(random.next() * items.length)];

const ODD: readonly (() => unknown)[] = [
  () => null,
  () => ({}),
  () => [],
  () => "",
  () => 0,
  () => -1.5e300,
  () => true,
  () => [null],
  () => [[]],
  () => [{}],
  () => "\u202e\x1b[2J\u0000\ud800<script>alert(1)</script>",
  () => "x".repeat(500),
  () => ({ toString: 5, valueOf: null, toJSON: "no", length: -1, then: {} }),
  () => JSON.parse('{"__proto__": {"polluted": true}, "constructor": 1}'),
  () => ({ length: 4_294_967_295, 0: null }),
];

/** Replaces some values anywhere in a value. */
function mangle(value: unknown, chance: number): unknown {
  if (random.next() < chance) return pick(ODD)();
  if (Array.isArray(value)) return value.map((item) => mangle(item, chance));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, mangle(inner, chance)]));
}

let revision = 100;

function oddObject([, kind, example]: (typeof RESOURCES)[number]): object {
  const name = random.next() < 0.1
    ? JSON.stringify(pick(ODD)()) + pick(["", "\u202e", "\x1b[31m"]) + random.next()
    : `o-${Math.floor(random.next() * 900)}`;
  const mayBeOdd = {
    labels: { app: "web" },
    creationTimestamp: "2026-01-01T00:00:00Z",
    annotations: { a: "b" },
  };
  return {
    apiVersion: "v1",
    kind,
    ...mangle(example, 0.12) as object,
    metadata: {
      ...mangle(mayBeOdd, 0.02) as object,
      name: random.next() < 0.01 ? pick(ODD)() : name,
      ...(kind !== "Node" && kind !== "Namespace" &&
        { namespace: pick(["shop", "\u202eevil", "n".repeat(300)]) }),
      uid: name,
      resourceVersion: String(++revision),
    },
  };
}

/** An API server with any objects, which sends more on demand. */
class OddServer {
  readonly watches = new Map<string, Set<ReadableStreamDefaultController<Uint8Array>>>();
  readonly fetch = (request: Request): Response => {
    const { pathname, searchParams } = new URL(request.url);
    if (pathname === "/version") return Response.json({ major: "1", minor: "36", gitVersion: "v1\u202e.36" });
    if (pathname === "/api") return Response.json({ kind: "APIVersions", versions: ["v1"] });
    if (pathname === "/apis") {
      const version = { groupVersion: "apps/v1", version: "v1" };
      return Response.json({
        kind: "APIGroupList",
        groups: [{ name: "apps", versions: [version], preferredVersion: version }],
      });
    }
    const found = RESOURCES.find(([path]) => path === pathname);
    if (found === undefined) return Response.json(this.#discovery(pathname));
    if (searchParams.get("watch") !== "true" && searchParams.get("watch") !== "1") {
      return Response.json({
        kind: `${found[1]}List`,
        apiVersion: "v1",
        metadata: { resourceVersion: String(++revision) },
        items: Array.from({ length: 50 }, () => oddObject(found)),
      });
    }
    if (searchParams.get("sendInitialEvents") === "true") {
      return Response.json({ kind: "Status", code: 422, reason: "Invalid", message: "no" }, { status: 422 });
    }
    const open = this.watches.get(pathname) ?? new Set();
    this.watches.set(pathname, open);
    let mine: ReadableStreamDefaultController<Uint8Array>;
    return new Response(
      new ReadableStream<Uint8Array>({
        start(controller) {
          mine = controller;
          open.add(controller);
        },
        cancel: () => void open.delete(mine),
      }),
      { headers: { "Content-Type": "application/json" } },
    );
  };

  #discovery(pathname: string): object {
    const resources = RESOURCES.filter(([path]) => path.startsWith(`${pathname}/`)).map(([path, kind]) => ({
      name: path.split("/").at(-1),
      singularName: "",
      namespaced: kind !== "Node" && kind !== "Namespace",
      kind,
      verbs: ["get", "list", "watch"],
    }));
    return { kind: "APIResourceList", groupVersion: pathname.replace(/^\/apis?\//, ""), resources };
  }

  send(count: number): void {
    for (const entry of RESOURCES) {
      const frames = Array.from({ length: Math.ceil(count / RESOURCES.length) }, () => {
        const type = pick(["ADDED", "MODIFIED", "MODIFIED", "DELETED"]);
        return `${JSON.stringify({ type, object: oddObject(entry) })}\n`;
      });
      const bytes = new TextEncoder().encode(frames.join(""));
      for (const controller of this.watches.get(entry[0]) ?? []) controller.enqueue(bytes);
    }
  }
}

it(`serve() shows ${OBJECTS} objects of any shape, with a page, Tables, windows and watches open (seed ${SEED})`, async () => {
  const folder = await mkdtemp(join(tmpdir(), "listwatch-odd-"));
  const stop = new AbortController();
  const odd = new OddServer();
  const api = await serveFetch(odd.fetch, { signal: stop.signal });
  const kubeconfig = join(folder, "config");
  await writeFile(kubeconfig, kubeconfigText(api.url));
  const log = new LogRecorder();
  const served = await serve({
    source: { kind: "kubeconfig", path: kubeconfig },
    resources: RESOURCES.map(([path]) => path.split("/").at(-1)!),
    port: 0,
    // The versions of its lists and its events have nothing to do with each other.
    freshness: "as-is",
    logger: log,
    signal: stop.signal,
  });
  await served.synced();
  const read = async (path: string, accept: string): Promise<string> => {
    const response = await fetch(served.url + path, { headers: { Accept: accept } });
    const text = await response.text();
    assert.equal(response.status, 200, `${path}: ${text}`);
    return text;
  };
  const table = "application/json;as=Table;g=meta.k8s.io;v=v1";
  const screens = await Promise.all(
    [
      "/api/v1/pods?watch=1&sortBy=column(Restarts):desc&limit=100",
      "/api/v1/pods?watch=1&groupBy=spec.nodeName,status.conditions[type=Ready].status",
      "/api/v1/events?watch=1&sortBy=lastTimestamp:desc&limit=100&filter=type=Warning",
    ].map((path) => fetch(served.url + path)),
  );
  const watches = await Promise.all(
    RESOURCES.map(([path]) => fetch(`${served.url}${path}?watch=1`, { headers: { Accept: table } })),
  );
  let bytes = 0;
  for (const { body, status } of [...screens, ...watches]) {
    assert.equal(status, 200);
    void body!.pipeTo(new WritableStream({ write: (chunk) => void (bytes += chunk.length) })).catch(() => {});
  }
  for (let round = 0; round < ROUNDS; round++) {
    odd.send(OBJECTS / ROUNDS);
    await new Promise((resolve) => setTimeout(resolve, 20));
    const text = await read("/", "text/html");
    const data = /<script type="application\/json" id="state">\s*(.*)\s*<\/script>/.exec(text)?.[1] ??
      "";
    const state = JSON.parse(data);
    assert.equal(state.resources.length, RESOURCES.length);
    // deno-lint-ignore no-control-regex
    assert.ok(!/[\x00-\x1f\u202a-\u202e]/.test(data), "a name reaches the page as it is");
    for (const [path] of RESOURCES) {
      const { rows } = JSON.parse(await read(path, table));
      assert.ok(Array.isArray(rows), path);
      await read(path, "application/json");
    }
  }
  assert.ok(bytes > 0);
  assert.deepEqual(log.of("error"), []);
  assert.equal(({} as { polluted?: boolean }).polluted, undefined);
  stop.abort();
  await served.finished;
  await api.finished;
  await rm(folder, { recursive: true });
});
