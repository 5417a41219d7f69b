/**
 * A program that syncs an informer, lets it settle, sends it one MODIFIED event or one request, and
 * prints what ran from then on as one line of JSON: `corridor_trace.ts` runs it on a copy of the
 * source in which every function calls `__corridor`.
 *
 * Arguments: the way (`handler`, `watcher`, `list`) and the road (`default`, `serve`).
 *
 * @module
 */

import { recorder } from "./corridor_recorder.ts";
import { newCluster, SharedIndexInformer } from "@listwatch/cache";
import { readApi } from "@listwatch/cache/hono";

const [way, road] = Deno.args;

const encoder = new TextEncoder();
const pod = (resourceVersion: string, phase: string) => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { namespace: "shop", name: "web-1", uid: "1", resourceVersion, labels: { app: "web" } },
  spec: { nodeName: "node-1" },
  status: { phase },
});
const frame = (type: string, object: unknown) => encoder.encode(`${JSON.stringify({ type, object })}\n`);

let upstream!: ReadableStreamDefaultController<Uint8Array>;
const body = new ReadableStream<Uint8Array>({ start: (controller) => void (upstream = controller) });
// The version that fresh reads ask for.
const versions = JSON.stringify({
  apiVersion: "meta.k8s.io/v1",
  kind: "PartialObjectMetadataList",
  metadata: { resourceVersion: "1" },
  items: [],
});
const fetch = (input: string | URL | Request) => {
  const { searchParams } = new URL(input instanceof Request ? input.url : input);
  const answer = searchParams.has("watch") ? body : versions;
  return Promise.resolve(new Response(answer, { headers: { "Content-Type": "application/json" } }));
};
const freshness = road === "serve" ? { freshness: "stale-if-error" as const } : {};

const cluster = newCluster({ server: "http://upstream.example", fetch });
const nodeOf = (object: unknown) => (object as ReturnType<typeof pod>).spec.nodeName;
const indexers = { byNode: (object: unknown) => [nodeOf(object)] };
// As `listwatch serve` does: nothing is dropped.
const kept = road === "serve" ? { keep: "everything" as const } : {};
const informer = new SharedIndexInformer(cluster.resource("v1/pods", kept), { indexers });
const received = Promise.withResolvers<void>();
if (way === "handler") informer.addEventHandler({ onUpdate: () => received.resolve() });
const running = informer.start();
upstream.enqueue(frame("ADDED", pod("1", "Pending")));
const annotations = { "k8s.io/initial-events-end": "true" };
upstream.enqueue(
  frame("BOOKMARK", { kind: "Pod", apiVersion: "v1", metadata: { resourceVersion: "1", annotations } }),
);
await informer.synced();

// A program with default options has handlers alone; one that serves has both.
const app = way === "handler" && road === "default"
  ? undefined
  : readApi({ resources: [{ informer, resource: "v1/pods" }], allowAnonymous: true, ...freshness });
if (way === "watcher") {
  const response = await app!.request("/api/v1/pods?watch=true&resourceVersion=1");
  const reader = response.body!.getReader();
  reader.read().then(() => received.resolve());
}
await settled();
recorder.isRecording = true;
if (way === "list") {
  const response = await app!.request("/api/v1/pods?limit=500&resourceVersion=0");
  await response.text();
} else {
  upstream.enqueue(frame("MODIFIED", pod("2", "Running")));
  await received.promise;
}
await settled();
recorder.isRecording = false;
console.log(JSON.stringify(recorder.trace));
Deno.exit(0);
void running;

/** Everything that could run has run: no timer of the library is shorter than a second. */
function settled(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 100));
}
