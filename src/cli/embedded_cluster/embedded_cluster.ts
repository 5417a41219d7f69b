import { type BuiltSpecObject, configMap, namespace } from "../../testing/builders.ts";
import type { InMemoryApiServer } from "../../testing/in_memory_api_server.ts";
import type { Clock } from "../../util/clock.ts";
import { nodeConditions, nodeObject, serviceObject } from "./objects.ts";
import { Simulation, Workloads } from "./workloads.ts";

/** The resources of the embedded cluster; reflected by default. */
export const EMBEDDED_RESOURCES: readonly string[] = [
  "namespaces",
  "nodes",
  "pods",
  "deployments.apps",
  "replicasets.apps",
  "services",
  "configmaps",
  "events",
];

/** The average number of pods of each app (a deployment with a service and a config map), by namespace. */
const APPS: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  accounts: { login: 5, mailer: 2, profile: 4 },
  default: { hello: 2 },
  "kube-node-lease": {},
  "kube-public": {},
  "kube-system": { coredns: 2, "metrics-server": 1 },
  media: { "cdn-origin": 4, resize: 5, transcode: 4 },
  observability: { alertmanager: 2, grafana: 2, loki: 3, prometheus: 2 },
  payments: { "fraud-check": 4, gateway: 5, ledger: 3 },
  search: { indexer: 3, query: 6, suggest: 3 },
  shop: { cart: 5, catalog: 6, checkout: 5, inventory: 4, web: 8 },
};
const NODES = 6;
const PAST_EVENTS = 55;
const HOUR_MS = 3_600_000;
const AGE_MS = 240 * HOUR_MS;
const HEARTBEAT_INTERVAL_MS = 2_000;

const MEAN_MS = { crash: 8_000, end: 8_000, scale: 16_000, configure: 20_000 };

/** A small cluster of about 300 objects with a few changes a second: pods start, get ready, crash, end. */
export class EmbeddedCluster {
  /** The API server, with the objects of a cluster that is some days old: everything is ready. */
  readonly server: InMemoryApiServer;
  readonly #simulation: Simulation;
  readonly #workloads: Workloads;

  constructor({ clock, seed }: { readonly clock: Clock; readonly seed: number }) {
    this.#simulation = new Simulation(clock, seed);
    this.server = this.#simulation.server;
    this.#workloads = new Workloads(this.#simulation);
    this.#populate();
  }

  /** Changes the cluster until the signal is aborted, then closes the server. */
  async run(signal: AbortSignal): Promise<void> {
    const simulation = this.#simulation;
    const workloads = this.#workloads;
    const often = <T>(meanMs: number, from: () => readonly T[], action: (one: T) => void) =>
      simulation.often(meanMs, () => {
        const one = simulation.pick(from());
        if (one !== undefined) action(one);
      });
    const running = simulation.run(signal);
    often(MEAN_MS.crash, () => workloads.ready, (pod) => workloads.crash(pod));
    often(MEAN_MS.end, () => workloads.ready, (pod) => workloads.end(pod));
    often(MEAN_MS.scale, () => workloads.all, (deployment) => this.#scale(deployment));
    const ofApps = { labelSelector: "app" };
    const configMaps = () => this.server.list<ReturnType<typeof configMap>>("v1/configmaps", ofApps).items;
    often(MEAN_MS.configure, configMaps, (map) => this.#configure(map));
    this.#heartbeat(0);
    try {
      await running;
    } finally {
      this.server.close();
    }
  }

  #populate(): void {
    const { server } = this;
    const bornAt = this.#simulation.time(AGE_MS);
    const create = (
      resource: string,
      object: BuiltSpecObject | ReturnType<typeof configMap>,
      at = bornAt,
    ): void => {
      server.create(resource, { ...object, metadata: { ...object.metadata, creationTimestamp: at } });
    };
    for (let i = 0; i < NODES; i++) create("v1/nodes", nodeObject(`worker-${i + 1}`, i, bornAt));
    create("v1/services", serviceObject("kubernetes", "10.96.0.1", {}));
    let services = 0;
    for (const [name, apps] of Object.entries(APPS)) {
      create("v1/namespaces", { ...namespace(name), spec: { finalizers: ["kubernetes"] } });
      const data = { "ca.crt": "This cluster has no TLS.\n" };
      create("v1/configmaps", configMap("kube-root-ca.crt", { namespace: name, data }));
      for (const [app, replicas] of Object.entries(apps)) {
        const ageMs = AGE_MS - this.#simulation.between(1, 200) * HOUR_MS;
        const of = { namespace: name, labels: { app } };
        const at = this.#simulation.time(ageMs);
        create("v1/services", serviceObject(app, `10.96.1.${10 + services++}`, of), at);
        create("v1/configmaps", configMap(app, { ...of, data: { revision: "1", "log.level": "info" } }), at);
        this.#workloads.add(name, app, { replicas, ageMs });
      }
    }
    for (let i = PAST_EVENTS; i > 0; i--) {
      const pod = this.#simulation.pick(this.#workloads.ready)!;
      const message = `Container image "${pod.spec.containers[0].image}" already present on machine`;
      this.#simulation.record(pod, "kubelet", ["Pulled", message], { agoMs: i * 60_000 });
    }
  }

  #scale(deployment: BuiltSpecObject): void {
    const { name, namespace = "" } = deployment.metadata;
    const average = APPS[namespace][name];
    const most = average > 4 ? 2 : 1;
    this.#workloads.scale(deployment, Math.max(1, average + this.#simulation.between(-most, most)));
  }

  #configure(map: ReturnType<typeof configMap>): void {
    const level = this.#simulation.happens(0.5) ? "info" : "debug";
    const data = { revision: String(Number(map.data.revision) + 1), "log.level": level };
    this.server.patch("v1/configmaps", map, { data });
  }

  #heartbeat(index: number): void {
    this.#simulation.after(HEARTBEAT_INTERVAL_MS, HEARTBEAT_INTERVAL_MS, () => {
      const nodes = this.server.list<BuiltSpecObject>("v1/nodes").items;
      const node = nodes[index % nodes.length];
      const conditions = nodeConditions(node.metadata.creationTimestamp ?? "", this.#simulation.time());
      this.server.patch("v1/nodes", node, { status: { conditions } });
      this.#heartbeat(index + 1);
    });
  }
}
