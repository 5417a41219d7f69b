// The shortest program: watch pods, index them by node, print the counts. Beside an API server that needs no
// credentials, such as `kubectl proxy`: deno run --allow-net examples/pods_by_node.ts
import { type KubernetesObject, newCluster, SharedIndexInformer } from "@listwatch/cache";
type Pod = KubernetesObject & { spec?: { nodeName?: string } };
const pods = newCluster({ server: "http://127.0.0.1:8001" }).resource<Pod>("v1/pods");
const informer = new SharedIndexInformer(pods, { indexers: { byNode: (pod) => [pod.spec?.nodeName ?? ""] } });
await using _running = informer.start();
await informer.synced();
for (const [node, count] of informer.indexer.indexValueCounts("byNode")) console.log(node, count);
