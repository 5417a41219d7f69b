/**
 * The objects of the living cluster, as an API server would hold them.
 * @module
 */

import type { KubernetesObject, ObjectMeta, OwnerReference } from "../../meta/object.ts";

/** Any object of the living cluster; it always has `metadata.name`, `apiVersion` and `kind`. */
export interface ClusterObject extends KubernetesObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: ObjectMeta & { readonly name: string };
  readonly [field: string]: unknown;
}

/** The identity, creation time, labels and owner of an object. */
export interface NewMeta {
  readonly name: string;
  readonly namespace?: string;
  readonly uid: string;
  readonly createdMs: number;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly owner?: ClusterObject;
}

/** A time in the form that Kubernetes uses: RFC 3339, whole seconds. */
export function timestamp(ms: number): string {
  return new Date(ms).toISOString().replace(/\.[0-9]+Z$/, "Z");
}

/** The metadata of an object. */
export function metadata(of: NewMeta, generation?: number): ObjectMeta & { readonly name: string } {
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

/** An Event about an object. */
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

/** The content of an Event. */
export interface ClusterEvent {
  readonly reason: string;
  readonly message: string;
  readonly component: string;
  readonly warning?: boolean;
}
