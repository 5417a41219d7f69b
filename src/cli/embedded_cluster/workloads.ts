/** The deployments of the embedded cluster, and what controllers, scheduler and kubelets do with them. */

import { type BuiltObject, type BuiltSpecObject, event } from "../../testing/builders.ts";
import { randomSuffix, timestamp } from "../../testing/object_checks.ts";
import {
  deploymentStatus,
  imageOf,
  podObject,
  type PodStage,
  podStatus,
  replicaSetStatus,
  stageOf,
  workloadObject,
} from "./objects.ts";
import { InMemoryApiServer } from "../../testing/in_memory_api_server.ts";
import { seededRandom } from "../../testing/seeded_random.ts";
import { onAbort } from "../../util/abort.ts";
import type { Clock } from "../../util/clock.ts";
import { DelayingQueue } from "../../workqueue/delaying_queue.ts";

const HOUR_MS = 3_600_000;
const DEPLOYMENTS = "apps/v1/deployments";
const SETS = "apps/v1/replicasets";
const PODS = "v1/pods";

export class Workloads {
  readonly #simulation: Simulation;
  /** The deployments of which a step of the controllers is due. */
  readonly #due = new Set<string>();
  #addresses = 0;

  constructor(simulation: Simulation) {
    this.#simulation = simulation;
  }

  get all(): readonly BuiltSpecObject[] {
    return this.#list(DEPLOYMENTS);
  }

  get ready(): readonly BuiltSpecObject[] {
    return this.#list(PODS).filter((pod) => isLiving(pod) && stageOf(pod) === "ready");
  }

  /** Adds a deployment in the state it has long after its creation: all of its pods ready. */
  add(
    namespace: string,
    app: string,
    { replicas, ageMs }: Readonly<Record<"replicas" | "ageMs", number>>,
  ): void {
    const { server } = this.#simulation;
    const of = { namespace, app, image: imageOf(namespace, app), replicas };
    const creationTimestamp = this.#simulation.time(ageMs);
    const built = workloadObject("Deployment", app, { ...of, labels: { app } });
    const deployment = server.create(DEPLOYMENTS, {
      ...built,
      metadata: { ...built.metadata, creationTimestamp },
    });
    const { apiVersion, kind, metadata: { uid = "" } } = deployment;
    const random = () => this.#simulation.between(0, 999) / 1_000;
    const hash = randomSuffix(random) + randomSuffix(random);
    const ofDeployment = workloadObject("ReplicaSet", `${app}-${hash}`, {
      ...of,
      labels: { app, "pod-template-hash": hash },
      ownerReferences: [{ apiVersion, kind, name: app, uid, controller: true, blockOwnerDeletion: true }],
    });
    const set = server.create(SETS, {
      ...ofDeployment,
      metadata: { ...ofDeployment.metadata, creationTimestamp },
    });
    for (let i = 0; i < replicas; i++) {
      const podAgeMs = this.#simulation.between(HOUR_MS, ageMs);
      const pending = podObject(set, this.#simulation.time(podAgeMs));
      const placed = this.#place();
      const pod = server.create(PODS, { ...pending, spec: { ...pending.spec, nodeName: placed.nodeName } });
      const since = this.#simulation.time(podAgeMs - 60_000);
      const status = { ...podStatus(pod, "ready", since), ...placed.status };
      server.patch(PODS, pod, { status });
    }
    this.#reconcile(deployment);
  }

  scale(deployment: BuiltSpecObject, replicas: number): void {
    const before = deployment.spec.replicas;
    if (replicas === before) return;
    const set = this.#setOf(deployment);
    this.#simulation.server.patch(DEPLOYMENTS, deployment, { spec: { replicas } });
    const message = `Scaled replica set ${set.metadata.name} from ${before} to ${replicas}`;
    this.#simulation.record(deployment, "deployment-controller", ["ScalingReplicaSet", message]);
    this.#reconcileSoon(deployment);
  }

  /** Lets a ready pod's container fail; as a rule it becomes ready again some seconds later. */
  crash(pod: BuiltSpecObject): void {
    const { name, labels } = pod.metadata;
    const crashed = this.#moveTo(pod, "crashed");
    const message = `Back-off restarting failed container ${labels?.app} in pod ${name}`;
    this.#simulation.record(crashed, "kubelet", ["BackOff", message], { type: "Warning" });
    this.#then(crashed, "crashed", [4_000, 12_000], (pod) => this.#start(pod, 0.25));
  }

  /** Ends a pod gracefully: it is terminating at once, and deleted some seconds later. */
  end(pod: BuiltSpecObject): void {
    const { server } = this.#simulation;
    const { name, namespace, labels } = pod.metadata;
    this.#simulation.record(pod, "kubelet", ["Killing", `Stopping container ${labels?.app}`]);
    this.#simulation.after(0, 0, async () => {
      // Only a request has a grace period.
      const url = `http://embedded/api/v1/namespaces/${namespace}/pods/${name}`;
      const response = await server.fetch(url, { method: "DELETE" });
      await response.body?.cancel();
      this.#reconcileSoon(pod);
      this.#simulation.after(1_500, 4_500, () => {
        // The server has deleted a pod without a node at once.
        if (server.get(PODS, pod) !== undefined) server.delete(PODS, pod);
        this.#reconcileSoon(pod);
      });
    });
  }

  /** Adds a new pod; it is scheduled, starts and, as a rule, becomes ready some seconds later. */
  #addPod(set: BuiltSpecObject): void {
    const { server } = this.#simulation;
    const pod = server.create(PODS, podObject(set, this.#simulation.time()));
    const { name, namespace } = pod.metadata;
    this.#simulation.record(set, "replicaset-controller", ["SuccessfulCreate", `Created pod: ${name}`]);
    this.#then(pod, "pending", [100, 700], (pod) => {
      const { nodeName, status } = this.#place();
      const bound = server.patch<BuiltSpecObject>(PODS, pod, { spec: { nodeName }, status });
      const creating = this.#moveTo(bound, "creating");
      const message = `Successfully assigned ${namespace}/${name} to ${nodeName}`;
      this.#simulation.record(creating, "default-scheduler", ["Scheduled", message]);
      this.#then(creating, "creating", [800, 3_000], (pod) => this.#start(pod, 0.06));
    });
  }

  #start(pod: BuiltSpecObject, crashProbability: number): void {
    this.#then(this.#moveTo(pod, "starting"), "starting", [1_000, 4_000], (pod) => {
      if (this.#simulation.happens(crashProbability)) this.crash(pod);
      else this.#moveTo(pod, "ready");
    });
  }

  /** Goes on with a pod after some time, if it is still at this stage. */
  #then(
    { metadata: { name, namespace } }: BuiltSpecObject,
    stage: PodStage,
    [minMs, maxMs]: readonly [number, number],
    action: (pod: BuiltSpecObject) => void,
  ): void {
    this.#simulation.after(minMs, maxMs, () => {
      const pod = this.#simulation.server.get<BuiltSpecObject>(PODS, `${namespace}/${name}`);
      if (pod !== undefined && isLiving(pod) && stageOf(pod) === stage) action(pod);
    });
  }

  #moveTo(pod: BuiltSpecObject, stage: Exclude<PodStage, "pending">): BuiltSpecObject {
    this.#reconcileSoon(pod);
    const status = podStatus(pod, stage, this.#simulation.time());
    return this.#simulation.server.patch<BuiltSpecObject>(PODS, pod, { status });
  }

  /** Picks one of the nodes with the fewest pods, and the addresses of a pod there. */
  #place(): { readonly nodeName: string; readonly status: Record<string, unknown> } {
    const pods = this.#list(PODS);
    const load = ({ metadata }: BuiltSpecObject) =>
      pods.filter(({ spec }) => spec.nodeName === metadata.name).length + this.#simulation.between(0, 4);
    const loads = this.#list("v1/nodes").map((node) => ({ node, load: load(node) }));
    const { node } = loads.reduce((best, one) => one.load < best.load ? one : best);
    const used = new Set(pods.map(({ status }) => status.podIP));
    let podIP: string;
    do podIP = node.spec.podCIDR.replace("0/24", String(2 + this.#addresses++ % 250)); while (
      used.has(podIP)
    );
    const hostIP = node.status.addresses[0].address;
    return { nodeName: node.metadata.name, status: { hostIP, podIP, podIPs: [{ ip: podIP }] } };
  }

  /** Lets the controllers take a step with the deployment that an object belongs to. */
  #reconcileSoon({ metadata: { namespace, labels } }: BuiltSpecObject): void {
    const key = `${namespace}/${labels?.app}`;
    if (this.#due.has(key)) return;
    this.#due.add(key);
    this.#simulation.after(60, 240, () => {
      this.#due.delete(key);
      this.#reconcile(this.#simulation.server.get<BuiltSpecObject>(DEPLOYMENTS, key)!);
    });
  }

  #reconcile(deployment: BuiltSpecObject): void {
    const { server } = this.#simulation;
    const set = this.#setOf(deployment);
    const wanted: number = deployment.spec.replicas;
    const pods = this.#podsOf(set);
    for (let i = pods.length; i < wanted; i++) this.#addPod(set);
    // Pods that are not ready end first, then the youngest.
    const age = ({ metadata }: BuiltSpecObject) => metadata.creationTimestamp ?? "";
    pods.sort((a, b) => readyOf([a]) - readyOf([b]) || age(b).localeCompare(age(a)));
    for (const pod of pods.slice(0, Math.max(0, pods.length - wanted))) this.end(pod);
    const now = this.#podsOf(set);
    const counts = { wanted, replicas: now.length, ready: readyOf(now) };
    server.patch(SETS, set, { spec: { replicas: wanted }, status: replicaSetStatus(counts) });
    const status = deploymentStatus(counts, deployment.metadata.generation ?? 1);
    server.patch(DEPLOYMENTS, deployment, { status });
  }

  #setOf({ metadata: { name, namespace } }: BuiltSpecObject): BuiltSpecObject {
    return this.#list(SETS, { namespace, labelSelector: `app=${name}` })[0];
  }

  /** The pods of a replica set. Terminating pods do not count, as in Kubernetes. */
  #podsOf({ metadata: { namespace }, spec }: BuiltSpecObject): BuiltSpecObject[] {
    const labels = Object.entries(spec.selector.matchLabels).map(([label, value]) => `${label}=${value}`);
    return this.#list(PODS, { namespace, labelSelector: labels.join(",") }).filter(isLiving);
  }

  #list(
    resource: string,
    options?: { readonly namespace?: string; readonly labelSelector: string },
  ): BuiltSpecObject[] {
    return this.#simulation.server.list<BuiltSpecObject>(resource, options).items.slice();
  }
}

function isLiving({ metadata }: BuiltSpecObject): boolean {
  return !metadata.deletionTimestamp;
}

function readyOf(pods: readonly BuiltSpecObject[]): number {
  return pods.filter((pod) => stageOf(pod) === "ready").length;
}

// An API server deletes Events after an hour; here the oldest is deleted when there are more.
const MAX_EVENTS = 75;

/** The shared parts of the embedded cluster: the API server, random choices, timers and Events. */
export class Simulation {
  readonly server: InMemoryApiServer;
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #actions: DelayingQueue<() => unknown>;
  readonly #events: BuiltObject[] = [];

  constructor(clock: Clock, seed: number) {
    const random = seededRandom(seed);
    this.server = new InMemoryApiServer({ clock, random, requestLogLimit: 10, gracefulPodDeletion: true });
    this.#clock = clock;
    this.#random = seededRandom(seed);
    this.#actions = new DelayingQueue({ clock });
  }

  /** The time as objects have it, or one before it. */
  time(agoMs = 0): string {
    return timestamp(this.#clock.now() - agoMs);
  }

  happens(probability: number): boolean {
    return this.#random() < probability;
  }

  /** A whole number from `min` to `max`, both included. */
  between(min: number, max: number): number {
    return min + Math.floor(this.#random() * (max - min + 1));
  }

  pick<T>(from: readonly T[]): T | undefined {
    return from[Math.floor(this.#random() * from.length)];
  }

  /** Runs an action once, after a random time from `minMs` to `maxMs`. */
  after(minMs: number, maxMs: number, action: () => unknown): void {
    this.#actions.addAfter(action, minMs + this.#random() * (maxMs - minMs));
  }

  /** Runs an action repeatedly, every `meanMs` on average; the first time within `meanMs`. */
  often(meanMs: number, action: () => void): void {
    const again = (): void => {
      this.after(meanMs * 0.4, meanMs * 1.6, again);
      action();
    };
    this.after(0, meanMs, again);
  }

  /** Records an Event about an object; a warning if its type says so. */
  record(
    about: BuiltObject,
    component: string,
    [reason, message]: readonly [reason: string, message: string],
    { type = "Normal", agoMs = 0 }: { readonly type?: "Normal" | "Warning"; readonly agoMs?: number } = {},
  ): void {
    const time = this.time(agoMs);
    const { metadata, ...fields } = event("", { type, reason, message, involvedObject: about });
    const { namespace } = metadata;
    const named = { namespace, generateName: `${about.metadata.name}.`, creationTimestamp: time };
    this.#events.push(this.server.create("v1/events", {
      ...fields,
      metadata: named as unknown as BuiltObject["metadata"],
      source: { component },
      reportingComponent: component,
      reportingInstance: "",
      firstTimestamp: time,
      lastTimestamp: time,
      count: 1,
    }));
    if (this.#events.length > MAX_EVENTS) this.server.delete("v1/events", this.#events.shift()!);
  }

  /** Does what is due until the signal is aborted. Rejects if an action throws. */
  async run(signal: AbortSignal): Promise<void> {
    const actions = this.#actions;
    const letGo = onAbort(signal, () => actions.shutDown());
    try {
      for (let next = await actions.get(); !next.shutdown; next = await actions.get()) {
        await next.item();
        actions.done(next.item);
      }
    } finally {
      letGo();
      actions.shutDown();
    }
  }
}
