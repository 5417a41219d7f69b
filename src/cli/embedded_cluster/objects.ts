/** The objects of the embedded cluster, with what people look at in a table or on the page. */

import {
  type BuilderMeta,
  type BuiltSpecObject,
  deployment,
  node,
  pod,
  replicaSet,
  service,
} from "../../testing/builders.ts";

export function imageOf(namespace: string, app: string): string {
  return `registry.example/${namespace}/${app}:1.0.0`;
}

export function serviceObject(app: string, clusterIP: string, meta: BuilderMeta): BuiltSpecObject {
  const built = service(app, meta);
  const ports = [{ name: "http", port: 80, targetPort: 8080, protocol: "TCP" }];
  return {
    ...built,
    spec: { ...built.spec, clusterIP, clusterIPs: [clusterIP], ports, sessionAffinity: "None" },
  };
}

export function workloadObject(
  kind: "Deployment" | "ReplicaSet",
  name: string,
  { app, image, replicas, ...meta }: BuilderMeta & {
    readonly app: string;
    readonly image: string;
    readonly replicas: number;
  },
): BuiltSpecObject {
  const built = kind === "Deployment"
    ? deployment(name, { ...meta, replicas })
    : replicaSet(name, { ...meta, replicas });
  const { labels = { app } } = meta;
  return {
    ...built,
    spec: {
      ...built.spec,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: podSpec(app, image) },
      ...(kind === "Deployment" && {
        strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
        revisionHistoryLimit: 1,
        progressDeadlineSeconds: 600,
      }),
    },
  };
}

/** How many pods there should be, are, and are ready. */
export type PodCounts = Readonly<Record<"wanted" | "replicas" | "ready", number>>;

export function replicaSetStatus({ replicas, ready }: PodCounts): Record<string, unknown> {
  return { replicas, fullyLabeledReplicas: replicas, readyReplicas: ready, availableReplicas: ready };
}

/** The status of a deployment with so many pods, as a merge patch. */
export function deploymentStatus(
  { wanted, replicas, ready }: PodCounts,
  observedGeneration: number,
): Record<string, unknown> {
  const isAvailable = ready >= wanted - Math.floor(wanted / 4);
  const available = isAvailable
    ? { status: "True", reason: "MinimumReplicasAvailable" }
    : { status: "False", reason: "MinimumReplicasUnavailable" };
  const reason = ready >= wanted ? "NewReplicaSetAvailable" : "ReplicaSetUpdated";
  return {
    observedGeneration,
    replicas,
    updatedReplicas: replicas,
    readyReplicas: ready,
    availableReplicas: ready,
    unavailableReplicas: ready < wanted ? wanted - ready : null,
    conditions: [{ type: "Available", ...available }, { type: "Progressing", status: "True", reason }],
  };
}

export function nodeObject(name: string, index: number, bornAt: string): BuiltSpecObject {
  const architecture = index % 3 === 2 ? "arm64" : "amd64";
  const capacity = { cpu: "8", "ephemeral-storage": "99Gi", memory: "32Gi", pods: "32" };
  const built = node(name, {
    labels: {
      "kubernetes.io/arch": architecture,
      "kubernetes.io/hostname": name,
      "kubernetes.io/os": "linux",
      "topology.kubernetes.io/zone": `zone-${"abc"[index % 3]}`,
    },
  });
  return {
    ...built,
    metadata: { ...built.metadata, creationTimestamp: bornAt },
    spec: { podCIDR: `10.244.${index}.0/24` },
    status: {
      addresses: [{ type: "InternalIP", address: `10.0.0.${10 + index}` }, {
        type: "Hostname",
        address: name,
      }],
      capacity,
      allocatable: capacity,
      conditions: nodeConditions(bornAt, bornAt),
      nodeInfo: {
        architecture,
        bootID: `boot-${name}`,
        containerRuntimeVersion: "containerd://2.2.1",
        kernelVersion: "6.12.0",
        kubeletVersion: "v1.36.3",
        kubeProxyVersion: "",
        machineID: `machine-${name}`,
        operatingSystem: "linux",
        osImage: "Debian GNU/Linux 13",
        systemUUID: `system-${name}`,
      },
    },
  };
}

export function nodeConditions(bornAt: string, heartbeatAt: string): unknown[] {
  return [
    ["MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"],
    ["DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"],
    ["Ready", "True", "KubeletReady", "kubelet is posting ready status"],
  ].map(([type, status, reason, message]) => (
    { type, status, lastHeartbeatTime: heartbeatAt, lastTransitionTime: bornAt, reason, message }
  ));
}

export type PodStage = "pending" | "creating" | "starting" | "ready" | "crashed";

export function stageOf({ spec, status }: BuiltSpecObject): PodStage {
  if (spec.nodeName === undefined) return "pending";
  const [{ ready, state }] = status.containerStatuses;
  if (ready) return "ready";
  const reason = state.waiting?.reason;
  return reason === "CrashLoopBackOff" ? "crashed" : reason === undefined ? "starting" : "creating";
}

/** A pod of a replica set, which is pending; its name is generated. */
export function podObject(set: BuiltSpecObject, creationTimestamp: string): BuiltSpecObject {
  const { apiVersion, kind, metadata: { name, namespace, labels, uid = "" }, spec } = set;
  const owner = { apiVersion, kind, name, uid, controller: true, blockOwnerDeletion: true };
  const built = pod("", { namespace, labels, ownerReferences: [owner] });
  return {
    ...built,
    metadata: { ...built.metadata, generateName: `${name}-`, creationTimestamp },
    spec: spec.template.spec,
    status: {
      phase: "Pending",
      conditions: [{ type: "PodScheduled", status: "False", lastTransitionTime: creationTimestamp }],
      qosClass: "Burstable",
    },
  };
}

export function podStatus(
  { metadata, spec, status }: BuiltSpecObject,
  stage: Exclude<PodStage, "pending">,
  sinceAt: string,
): Record<string, unknown> {
  const isStarted = stage !== "creating";
  const conditions = Object.entries({
    PodScheduled: true,
    Initialized: true,
    ContainersReady: stage === "ready",
    Ready: stage === "ready",
  });
  const [{ name, image }] = spec.containers;
  const message = "back-off restarting failed container";
  const startedAt = stage === "starting" ? sinceAt : metadata.creationTimestamp;
  return {
    phase: isStarted ? "Running" : "Pending",
    conditions: conditions.map(([type, isMet]) => (
      { type, status: isMet ? "True" : "False", lastTransitionTime: sinceAt }
    )),
    startTime: metadata.creationTimestamp,
    containerStatuses: [{
      name,
      image,
      imageID: stage === "creating" ? "" : image,
      ready: stage === "ready",
      started: stage === "ready",
      restartCount: (status.containerStatuses?.[0].restartCount ?? 0) + (stage === "crashed" ? 1 : 0),
      state: stage === "crashed"
        ? { waiting: { reason: "CrashLoopBackOff", message } }
        : stage === "creating"
        ? { waiting: { reason: "ContainerCreating" } }
        : { running: { startedAt } },
    }],
  };
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
