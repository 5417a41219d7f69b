/** The deployments of the embedded cluster, and what controllers, scheduler and kubelets do with them. */

import type { BuiltSpecObject } from "../../testing/builders.ts";
import { randomSuffix } from "../../testing/object_checks.ts";
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
import type { Simulation } from "./simulation.ts";

const HOUR_MS = 3_600_000;
const DEPLOYMENTS = "apps/v1/deployments";
const SETS = "apps/v1/replicasets";
const PODS = "v1/pods";
const REVISION = "deployment.kubernetes.io/revision";

/** Deployments, with the controllers that keep their pods at the desired number and image. */
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
    // Some have had a rollout, which has left an empty replica set behind.
    const revision = replicas % 2 === 0 ? 7 : 1;
    const image = imageOf(namespace, app, revision);
    const built = workloadObject("Deployment", app, { namespace, app, image, replicas, labels: { app } });
    const metadata = { ...built.metadata, creationTimestamp: this.#simulation.time(ageMs) };
    const deployment = server.create(DEPLOYMENTS, { ...built, metadata });
    if (revision > 1) this.#addSet(deployment, { revision: revision - 1, replicas: 0, ageMs });
    const set = this.#addSet(deployment, { revision, replicas, ageMs: ageMs - HOUR_MS / 2 });
    for (let i = 0; i < replicas; i++) {
      const podAgeMs = this.#simulation.between(HOUR_MS, ageMs - HOUR_MS / 2);
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
    const set = this.#setsOf(deployment).at(-1)!;
    this.#simulation.server.patch(DEPLOYMENTS, deployment, { spec: { replicas } });
    const message = `Scaled replica set ${set.metadata.name} from ${before} to ${replicas}`;
    this.#simulation.record(deployment, "deployment-controller", ["ScalingReplicaSet", message]);
    this.#reconcileSoon(deployment);
  }

  /** Starts to replace a deployment's pods by ones of a new image, one by one; not during a rollout. */
  rollOut(deployment: BuiltSpecObject): void {
    const sets = this.#setsOf(deployment);
    if (sets.slice(0, -1).some(({ spec }) => spec.replicas > 0)) return;
    const revision = revisionOf(sets.at(-1)!) + 1;
    const set = this.#addSet(deployment, { revision, replicas: 0, ageMs: 0 });
    this.#simulation.server.patch(DEPLOYMENTS, deployment, {
      spec: { template: { spec: set.spec.template.spec } },
    });
    const message = `Scaled up replica set ${set.metadata.name} from 0 to 1`;
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
  end(
    pod: BuiltSpecObject,
    reason = "Killing",
    message = `Stopping container ${pod.metadata.labels?.app}`,
  ): void {
    const { server } = this.#simulation;
    const { name, namespace } = pod.metadata;
    this.#simulation.record(pod, "kubelet", [reason, message]);
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

  /** One of the open nodes with the fewest pods, and the addresses of a pod there. */
  #place(): { readonly nodeName: string; readonly status: Record<string, unknown> } {
    const pods = this.#list(PODS);
    const load = ({ metadata }: BuiltSpecObject) =>
      pods.filter(({ spec }) => spec.nodeName === metadata.name).length + this.#simulation.between(0, 4);
    const open = this.#list("v1/nodes").filter(({ spec }) => !spec.unschedulable).map((node) => ({
      node,
      load: load(node),
    }));
    const { node } = open.reduce((best, one) => one.load < best.load ? one : best);
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

  /** Takes one step towards the desired state, and writes the present status. */
  #reconcile(deployment: BuiltSpecObject): void {
    const { server } = this.#simulation;
    const sets = this.#setsOf(deployment);
    const newest = sets.at(-1)!;
    const old = sets.find((set) => set !== newest && set.spec.replicas > 0);
    const wanted: number = deployment.spec.replicas;
    const total = sets.reduce((sum, set) => sum + set.spec.replicas, 0);
    const resized = new Map<BuiltSpecObject, number>();
    if (old === undefined) resized.set(newest, wanted);
    else if (total > wanted + 1) resized.set(old, old.spec.replicas - 1);
    else if (newest.spec.replicas < wanted && total <= wanted) resized.set(newest, newest.spec.replicas + 1);
    else if (readyOf(this.#podsOf(deployment)) >= wanted) resized.set(old, old.spec.replicas - 1);
    for (const set of sets) this.#reconcileSet(set, resized.get(set) ?? set.spec.replicas);
    // One empty replica set is kept for a rollback.
    const empty = sets.filter((set) => set !== newest && this.#podsOf(set).length === 0);
    for (const set of empty.slice(0, -1)) server.delete(SETS, set);
    const [pods, current] = [this.#podsOf(deployment), this.#podsOf(newest)];
    const counts = { wanted, replicas: pods.length, ready: readyOf(pods), updated: current.length };
    server.patch(DEPLOYMENTS, deployment, {
      status: deploymentStatus(counts, deployment.metadata.generation ?? 1),
    });
  }

  #reconcileSet(set: BuiltSpecObject, replicas: number): void {
    const pods = this.#podsOf(set);
    for (let i = pods.length; i < replicas; i++) this.#addPod(set);
    // Pods that are not ready end first, then the youngest.
    const age = ({ metadata }: BuiltSpecObject) => metadata.creationTimestamp ?? "";
    pods.sort((a, b) => readyOf([a]) - readyOf([b]) || age(b).localeCompare(age(a)));
    for (const pod of pods.slice(0, Math.max(0, pods.length - replicas))) this.end(pod);
    const now = this.#podsOf(set);
    const status = replicaSetStatus(now.length, readyOf(now));
    this.#simulation.server.patch(SETS, set, { spec: { replicas }, status });
  }

  #addSet(
    deployment: BuiltSpecObject,
    { revision, replicas, ageMs }: Readonly<Record<"revision" | "replicas" | "ageMs", number>>,
  ): BuiltSpecObject {
    const { apiVersion, kind, metadata: { name: app, namespace = "", uid = "" } } = deployment;
    const random = () => this.#simulation.between(0, 999) / 1_000;
    const hash = randomSuffix(random) + randomSuffix(random);
    const built = workloadObject("ReplicaSet", `${app}-${hash}`, {
      namespace,
      app,
      image: imageOf(namespace, app, revision),
      replicas,
      labels: { app, "pod-template-hash": hash },
      annotations: { [REVISION]: String(revision) },
      ownerReferences: [{ apiVersion, kind, name: app, uid, controller: true, blockOwnerDeletion: true }],
    });
    const metadata = { ...built.metadata, creationTimestamp: this.#simulation.time(ageMs) };
    return this.#simulation.server.create(SETS, { ...built, metadata });
  }

  /** The replica sets of a deployment; the last one is of its present image. */
  #setsOf({ metadata: { name, namespace } }: BuiltSpecObject): BuiltSpecObject[] {
    return this.#list(SETS, { namespace, labelSelector: `app=${name}` }).sort((a, b) =>
      revisionOf(a) - revisionOf(b)
    );
  }

  /** The pods of a deployment or replica set. Terminating pods do not count, as in Kubernetes. */
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

function revisionOf({ metadata }: BuiltSpecObject): number {
  return Number(metadata.annotations?.[REVISION]);
}
