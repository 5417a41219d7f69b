/**
 * The apps, namespaces and nodes of the living cluster, by name.
 * @module
 */

/** An app: a deployment with a service and a config map. */
export interface App {
  readonly namespace: string;
  readonly name: string;
  /** How many pods it has on average. */
  readonly replicas: number;
  /** Whether a past rollout left an empty replica set behind. */
  readonly rolledOutBefore: boolean;
}

const TABLE:
  readonly (readonly [namespace: string, apps: readonly (readonly [name: string, replicas: number])[]])[] = [
    ["accounts", [["login", 5], ["mailer", 2], ["profile", 4]]],
    ["default", [["hello", 2]]],
    ["kube-system", [["coredns", 2], ["metrics-server", 1]]],
    ["media", [["cdn-origin", 4], ["resize", 5], ["transcode", 4]]],
    ["observability", [["alertmanager", 2], ["grafana", 2], ["loki", 3], ["prometheus", 2]]],
    ["payments", [["fraud-check", 4], ["gateway", 5], ["ledger", 3]]],
    ["search", [["indexer", 3], ["query", 6], ["suggest", 3]]],
    ["shop", [["cart", 5], ["catalog", 6], ["checkout", 5], ["inventory", 4], ["web", 8]]],
  ];

/** Every app, in the order of the namespaces' names. */
export const APPS: readonly App[] = TABLE.flatMap(([namespace, apps]) =>
  apps.map(([name, replicas], i) => ({
    namespace,
    name,
    replicas,
    rolledOutBefore: (i + replicas) % 2 === 0,
  }))
);

/** Every namespace: those with apps, and two that every Kubernetes cluster has. */
export const NAMESPACES: readonly string[] = [
  ...TABLE.map(([namespace]) => namespace),
  "kube-node-lease",
  "kube-public",
];

/** Every node's name. */
export const NODES: readonly string[] = [
  "worker-1",
  "worker-2",
  "worker-3",
  "worker-4",
  "worker-5",
  "worker-6",
];
