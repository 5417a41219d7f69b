/**
 * The objects of the living cluster: what a controller, a scheduler or a kubelet would write.
 * @module
 */

import type { KubernetesObject, ObjectMeta, OwnerReference } from "../meta/object.ts";

/** Any object of the living cluster; `metadata.name`, `apiVersion` and `kind` are always there. */
export interface ClusterObject extends KubernetesObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: ObjectMeta & { readonly name: string };
  readonly [field: string]: unknown;
}

/** What is needed to identify and date an object. */
export interface NewMeta {
  readonly name: string;
  readonly namespace?: string;
  readonly uid: string;
  readonly createdMs: number;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly owner?: ClusterObject;
}

/** A time as Kubernetes writes it: whole seconds. */
export function timestamp(ms: number): string {
  return new Date(ms).toISOString().replace(/\.[0-9]+Z$/, "Z");
}

function metadata(of: NewMeta, generation?: number): ObjectMeta & { readonly name: string } {
  const ownerReferences: OwnerReference[] | undefined = of.owner && [{
    apiVersion: of.owner.apiVersion,
    kind: of.owner.kind,
    name: of.owner.metadata.name,
    uid: of.owner.metadata.uid ?? "",
    controller: true,
    blockOwnerDeletion: true,
  }];
  return {
    name: of.name,
    ...(of.namespace !== undefined && { namespace: of.namespace }),
    uid: of.uid,
    ...(generation !== undefined && { generation }),
    creationTimestamp: timestamp(of.createdMs),
    ...(of.labels && { labels: of.labels }),
    ...(of.annotations && { annotations: of.annotations }),
    ...(ownerReferences && { ownerReferences }),
  };
}

/** A namespace that is in use. */
export function namespaceObject(of: NewMeta): ClusterObject {
  return {
    apiVersion: "v1",
    kind: "Namespace",
    metadata: metadata({ ...of, labels: { "kubernetes.io/metadata.name": of.name } }),
    spec: { finalizers: ["kubernetes"] },
    status: { phase: "Active" },
  };
}

/** What changes about a node. */
export interface NodeState {
  readonly index: number;
  readonly unschedulable: boolean;
  readonly heartbeatMs: number;
}

/** A node that is ready. */
export function nodeObject(of: NewMeta, state: NodeState): ClusterObject {
  const heartbeat = timestamp(state.heartbeatMs);
  const condition = (type: string, status: string, reason: string, message: string) => ({
    type,
    status,
    lastHeartbeatTime: heartbeat,
    lastTransitionTime: timestamp(of.createdMs + 20_000),
    reason,
    message,
  });
  const taint = { key: "node.kubernetes.io/unschedulable", effect: "NoSchedule" };
  const room = { cpu: "8", "ephemeral-storage": "99Gi", memory: "32Gi", pods: "32" };
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: metadata({
      ...of,
      labels: {
        "kubernetes.io/arch": state.index % 3 === 2 ? "arm64" : "amd64",
        "kubernetes.io/hostname": of.name,
        "kubernetes.io/os": "linux",
        "topology.kubernetes.io/zone": `zone-${"abc"[state.index % 3]}`,
      },
    }),
    spec: {
      podCIDR: `10.244.${state.index}.0/24`,
      ...(state.unschedulable && { unschedulable: true, taints: [taint] }),
    },
    status: {
      addresses: [
        { type: "InternalIP", address: nodeAddress(state.index) },
        { type: "Hostname", address: of.name },
      ],
      capacity: room,
      allocatable: room,
      conditions: [
        condition(
          "MemoryPressure",
          "False",
          "KubeletHasSufficientMemory",
          "kubelet has sufficient memory available",
        ),
        condition("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        condition("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
      ],
      nodeInfo: {
        architecture: state.index % 3 === 2 ? "arm64" : "amd64",
        containerRuntimeVersion: "containerd://2.2.1",
        kernelVersion: "6.12.0",
        kubeletVersion: "v1.36.3",
        operatingSystem: "linux",
        osImage: "Debian GNU/Linux 13",
      },
    },
  };
}

/** The address of a node. */
export function nodeAddress(index: number): string {
  return `10.0.0.${10 + index}`;
}

/** A service in front of an app's pods. */
export function serviceObject(
  of: NewMeta,
  clusterIP: string,
  selector?: Record<string, string>,
): ClusterObject {
  const port = selector
    ? { name: "http", port: 80, targetPort: 8080 }
    : { name: "https", port: 443, targetPort: 6443 };
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: metadata(of),
    spec: {
      type: "ClusterIP",
      clusterIP,
      clusterIPs: [clusterIP],
      ports: [{ ...port, protocol: "TCP" }],
      ...(selector && { selector }),
      sessionAffinity: "None",
    },
    status: { loadBalancer: {} },
  };
}

/** A config map. */
export function configMapObject(of: NewMeta, data: Record<string, string>): ClusterObject {
  return { apiVersion: "v1", kind: "ConfigMap", metadata: metadata(of), data };
}

/** How many pods there are of a deployment or replica set. */
export interface ReplicaCounts {
  readonly replicas: number;
  readonly ready: number;
  readonly updated: number;
}

/** What changes about a deployment. */
export interface DeploymentState {
  readonly image: string;
  readonly generation: number;
  readonly replicas: number;
  readonly counts: ReplicaCounts;
}

/** A deployment. */
export function deploymentObject(of: NewMeta, state: DeploymentState): ClusterObject {
  const { replicas, ready, updated } = state.counts;
  const app = of.labels?.app ?? of.name;
  const available = ready >= state.replicas - Math.floor(state.replicas / 4);
  const rolledOut = updated >= state.replicas && ready >= state.replicas;
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: metadata(of, state.generation),
    spec: {
      replicas: state.replicas,
      selector: { matchLabels: { app } },
      template: podTemplate(app, state.image, { app }),
      strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
      revisionHistoryLimit: 1,
      progressDeadlineSeconds: 600,
    },
    status: {
      observedGeneration: state.generation,
      replicas,
      updatedReplicas: updated,
      readyReplicas: ready,
      availableReplicas: ready,
      ...(ready < state.replicas && { unavailableReplicas: state.replicas - ready }),
      conditions: [
        {
          type: "Available",
          status: available ? "True" : "False",
          reason: available ? "MinimumReplicasAvailable" : "MinimumReplicasUnavailable",
        },
        {
          type: "Progressing",
          status: "True",
          reason: rolledOut ? "NewReplicaSetAvailable" : "ReplicaSetUpdated",
        },
      ],
    },
  };
}

/** What changes about a replica set. */
export interface ReplicaSetState {
  readonly image: string;
  readonly generation: number;
  readonly replicas: number;
  readonly counts: ReplicaCounts;
}

/** A replica set; its labels are its pods' too. */
export function replicaSetObject(of: NewMeta, state: ReplicaSetState): ClusterObject {
  const labels = { ...of.labels };
  return {
    apiVersion: "apps/v1",
    kind: "ReplicaSet",
    metadata: metadata(of, state.generation),
    spec: {
      replicas: state.replicas,
      selector: { matchLabels: labels },
      template: podTemplate(labels.app, state.image, labels),
    },
    status: {
      observedGeneration: state.generation,
      replicas: state.counts.replicas,
      fullyLabeledReplicas: state.counts.replicas,
      readyReplicas: state.counts.ready,
      availableReplicas: state.counts.ready,
    },
  };
}

function podTemplate(app: string, image: string, labels: Readonly<Record<string, string>>): unknown {
  return { metadata: { labels }, spec: podSpec(app, image) };
}

function podSpec(app: string, image: string): Record<string, unknown> {
  return {
    containers: [{
      name: app,
      image,
      ports: [{ containerPort: 8080, protocol: "TCP" }],
      resources: { requests: { cpu: "100m", memory: "128Mi" } },
      envFrom: [{ configMapRef: { name: app } }],
    }],
    restartPolicy: "Always",
    schedulerName: "default-scheduler",
    serviceAccountName: "default",
  };
}

/** How far a pod has come. */
export type PodStage = "pending" | "creating" | "starting" | "ready" | "crashed" | "terminating";

/** What changes about a pod. */
export interface PodState {
  readonly image: string;
  readonly stage: PodStage;
  /** When it came to this stage. */
  readonly sinceMs: number;
  readonly restarts: number;
  readonly node?: string;
  readonly nodeIndex?: number;
  readonly podIP?: string;
  /** The stage in which it was told to end. */
  readonly endedFrom?: PodStage;
}

const GRACE_SECONDS = 30;

/** A pod; `of.owner` is its replica set. */
export function podObject(of: NewMeta, state: PodState): ClusterObject {
  const stage = state.stage === "terminating" ? state.endedFrom ?? "ready" : state.stage;
  const started = stage === "starting" || stage === "ready" || stage === "crashed";
  const ready = stage === "ready" && state.stage !== "terminating";
  const since = timestamp(state.sinceMs);
  const condition = (type: string, met: boolean) => ({
    type,
    status: met ? "True" : "False",
    lastTransitionTime: since,
  });
  const name = of.labels?.app ?? "app";
  const base = metadata(of);
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      ...base,
      generateName: of.name.slice(0, of.name.lastIndexOf("-") + 1),
      ...(state.stage === "terminating" && {
        deletionTimestamp: timestamp(state.sinceMs + GRACE_SECONDS * 1_000),
        deletionGracePeriodSeconds: GRACE_SECONDS,
      }),
    },
    spec: { ...podSpec(name, state.image), ...(state.node && { nodeName: state.node }) },
    status: {
      phase: started ? "Running" : "Pending",
      conditions: [
        condition("PodScheduled", state.node !== undefined),
        ...(state.node === undefined
          ? []
          : [condition("Initialized", true), condition("ContainersReady", ready), condition("Ready", ready)]),
      ],
      ...(state.nodeIndex !== undefined && { hostIP: nodeAddress(state.nodeIndex) }),
      ...(started && state.podIP && { podIP: state.podIP, podIPs: [{ ip: state.podIP }] }),
      qosClass: "Burstable",
      ...(state.node !== undefined && {
        startTime: timestamp(of.createdMs),
        containerStatuses: [{
          name,
          image: state.image,
          ready,
          started: stage === "ready",
          restartCount: state.restarts,
          state: containerState(stage, of.createdMs, state),
        }],
      }),
    },
  };
}

function containerState(stage: PodStage, createdMs: number, state: PodState): unknown {
  if (stage === "crashed") {
    const message = "back-off restarting failed container";
    return { waiting: { reason: "CrashLoopBackOff", message } };
  }
  if (stage === "creating") return { waiting: { reason: "ContainerCreating" } };
  return { running: { startedAt: timestamp(stage === "starting" ? state.sinceMs : createdMs + 2_000) } };
}

/** An event about an object. */
export function eventObject(of: NewMeta, about: ClusterObject, event: ClusterEvent): ClusterObject {
  const time = timestamp(of.createdMs);
  const { apiVersion, kind } = about;
  const { name, namespace, uid } = about.metadata;
  return {
    apiVersion: "v1",
    kind: "Event",
    metadata: metadata(of),
    involvedObject: { apiVersion, kind, name, ...(namespace && { namespace }), uid },
    reason: event.reason,
    message: event.message,
    type: event.warning ? "Warning" : "Normal",
    source: { component: event.component },
    reportingComponent: event.component,
    reportingInstance: "",
    firstTimestamp: time,
    lastTimestamp: time,
    count: 1,
  };
}

/** What an event tells. */
export interface ClusterEvent {
  readonly reason: string;
  readonly message: string;
  readonly component: string;
  readonly warning?: boolean;
}
