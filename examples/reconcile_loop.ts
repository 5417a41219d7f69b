// A controller in the usual form: it labels every pod with the node it runs on, and keeps the label.
//
//     API server --list, watch--> reflector --> queue of deltas --> indexer (the informer's store)
//         ^                                                            |  |
//         |                                            handlers: keys  |  | reads
//         |                                                            v  |
//         +----------------writes---------------- workers <--keys-- workqueue
//
// Beside `kubectl proxy`: deno run --allow-net examples/reconcile_loop.ts
import {
  type Clock,
  type Cluster,
  type KubernetesObject,
  metaNamespaceKey,
  newCluster,
  SharedIndexInformer,
  splitMetaNamespaceKey,
  waitForCacheSync,
} from "@listwatch/cache";
import { realClock } from "@listwatch/cache/reflector";
import { defaultControllerRateLimiter, RateLimitingQueue } from "@listwatch/cache/workqueue";

interface Pod extends KubernetesObject {
  readonly spec?: { readonly nodeName?: string };
}

/** The label that the controller keeps. */
export const NODE_LABEL = "example.com/node";
const WORKERS = 2;
const MAX_RETRIES = 15;

/** Runs until the signal is aborted, then finishes the keys in progress. */
export async function runController(
  cluster: Cluster,
  signal: AbortSignal,
  clock: Clock = realClock,
): Promise<void> {
  const pods = cluster.resource<Pod>("v1/pods");
  const informer = new SharedIndexInformer<Pod>(pods, { clock });
  const queue = new RateLimitingQueue<string>(defaultControllerRateLimiter({ clock }), { clock });

  // Handlers only enqueue keys. A key that is added several times before a worker takes it comes out once.
  const handler = informer.addEventHandler({
    onAdd: (pod) => queue.add(metaNamespaceKey(pod)),
    onUpdate: (_old, pod) => queue.add(metaNamespaceKey(pod)),
    onDelete: ({ key }) => queue.add(key),
  });

  // Compares the actual with the desired state, and writes the difference. It reads the newest state, whatever the event was.
  async function reconcile(key: string): Promise<void> {
    const pod = informer.indexer.getByKey(key);
    if (pod === undefined) return; // it was deleted: a controller cleans up here
    const node = pod.spec?.nodeName;
    if (pod.metadata?.labels?.[NODE_LABEL] === node) return; // the event of its own write ends here
    const { namespace, name } = splitMetaNamespaceKey(key);
    const labels = { [NODE_LABEL]: node ?? null };
    // With the resourceVersion, the server refuses a write based on an old state (409 Conflict), and it is tried again.
    const resourceVersion = pod.metadata?.resourceVersion;
    await pods.patch(name, { metadata: { resourceVersion, labels } }, { namespace });
  }

  async function work(): Promise<void> {
    for (let next = await queue.get(); !next.shutdown; next = await queue.get()) {
      const key = next.item;
      try {
        await reconcile(key);
        queue.forget(key);
      } catch (error) {
        if (queue.numRequeues(key) < MAX_RETRIES) queue.addRateLimited(key);
        else {
          queue.forget(key);
          console.error(`Cannot reconcile ${key}, and waits for its next change: ${error}`);
        }
      } finally {
        queue.done(key);
      }
    }
  }

  const running = informer.start(signal);
  const workers: Promise<void>[] = [];
  // Not before the cache is complete: a pod that is not in it yet must not look deleted.
  if (await waitForCacheSync([handler], signal)) {
    for (let i = 0; i < WORKERS; i++) workers.push(work());
  }
  await running.done;
  await queue.shutDownWithDrain();
  await Promise.all(workers);
}

if (import.meta.main) {
  await runController(newCluster({ server: "http://127.0.0.1:8001" }), AbortSignal.timeout(3_600_000));
}
