/**
 * The Deployment and ReplicaSet objects of the living cluster.
 * @module
 */

import { type ClusterObject, metadata, type NewMeta } from "./objects.ts";
import { podSpec } from "./pod_object.ts";

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
