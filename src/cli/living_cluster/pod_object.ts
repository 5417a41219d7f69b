/**
 * The Pod objects of the living cluster.
 * @module
 */

import { nodeAddress } from "./nodes.ts";
import { type ClusterObject, metadata, type NewMeta, timestamp } from "./objects.ts";

/** The stages of a pod's life. */
export type PodStage = "pending" | "creating" | "starting" | "ready" | "crashed" | "terminating";

/** What changes about a pod. */
export interface PodState {
  readonly image: string;
  readonly stage: PodStage;
  /** When this stage began. */
  readonly sinceMs: number;
  readonly restarts: number;
  readonly node?: string;
  readonly nodeIndex?: number;
  readonly podIP?: string;
  /** The stage in which its deletion was requested. */
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

/** The spec of a pod that runs an app. */
export function podSpec(app: string, image: string): Record<string, unknown> {
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
