/**
 * A program that syncs an informer, lets it settle, sends it one MODIFIED event, and prints what ran from then on as one
 * line of JSON: `corridor_trace.ts` runs it on a copy of the source in which every function calls `__corridor`.
 *
 * Argument: `handler` or `watcher`, how the event is received.
 *
 * @module
 */

import { recorder } from "./corridor_recorder.ts";
import { newCluster, SharedIndexInformer } from "@listwatch/cache";
import { readApi } from "@listwatch/cache/hono";

const [receiver] = Deno.args;

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
const fetch = () => Promise.resolve(new Response(body, { headers: { "Content-Type": "application/json" } }));

const informer = new SharedIndexInformer(
  newCluster({ server: "http://upstream.example", fetch }).resource("v1/pods"),
  { indexers: { byNode: (object) => [(object as unknown as ReturnType<typeof pod>).spec.nodeName] } },
);
const received = Promise.withResolvers<void>();
if (receiver === "handler") informer.addEventHandler({ onUpdate: () => received.resolve() });
const running = informer.start();
upstream.enqueue(frame("ADDED", pod("1", "Pending")));
const annotations = { "k8s.io/initial-events-end": "true" };
upstream.enqueue(
  frame("BOOKMARK", { kind: "Pod", apiVersion: "v1", metadata: { resourceVersion: "1", annotations } }),
);
await informer.synced();

if (receiver === "watcher") {
  const app = readApi({ resources: [{ informer, resource: "v1/pods" }], allowAnonymous: true });
  const response = await app.request("/api/v1/pods?watch=true&resourceVersion=1");
  const reader = response.body!.getReader();
  reader.read().then(() => received.resolve());
}
await settled();
recorder.isRecording = true;
upstream.enqueue(frame("MODIFIED", pod("2", "Running")));
await received.promise;
await settled();
recorder.isRecording = false;
console.log(JSON.stringify(recorder.trace));
Deno.exit(0);
void running;

/** Everything that could run has run: no timer of the library is shorter than a second. */
function settled(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 100));
}
