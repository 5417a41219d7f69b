/** Small Kubernetes objects for tests. */

import { defined } from "../util/json.ts";
import type { KubernetesObject, ObjectMeta, OwnerReference } from "../meta/object.ts";
import { toBase64 } from "../util/bytes.ts";

/** Metadata options of every builder. */
export interface BuilderMeta {
  /** `default` by default, for namespaced kinds. */
  readonly namespace?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly finalizers?: readonly string[];
  readonly ownerReferences?: readonly OwnerReference[];
  readonly uid?: string;
  readonly resourceVersion?: string;
}

/** An object with a name. */
export interface BuiltObject extends KubernetesObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: ObjectMeta & { readonly name: string };
}

/** An object with loosely typed spec and status. */
export interface BuiltSpecObject extends BuiltObject {
  // deno-lint-ignore no-explicit-any -- tests read fields without a type
  readonly spec: Record<string, any>;
  // deno-lint-ignore no-explicit-any
  readonly status: Record<string, any>;
}

/** An object with data. */
export interface BuiltDataObject extends BuiltObject {
  readonly data: Record<string, string>;
}

/** Options of {@linkcode pod}. */
export interface PodOptions extends BuilderMeta {
  readonly nodeName?: string;
  /** `Running` if it is on a node, else `Pending`. */
  readonly phase?: "Pending" | "Running" | "Succeeded" | "Failed" | "Unknown";
  /** Whether its containers are ready; `true` if it is running. */
  readonly ready?: boolean;
  readonly image?: string;
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly status?: Readonly<Record<string, unknown>>;
}

/**
 * A pod with one container.
 *
 * @example
 * ```ts
 * import * as make from "@listwatch/cache/testing";
 * const web = make.pod("web-1", { namespace: "shop", labels: { app: "web" }, nodeName: "node-1" });
 * console.log(web.spec.nodeName, web.status.phase); // node-1 Running
 * console.log(make.node("n1", { ready: false }).status.conditions[0].status); // False
 * console.log(make.namespace("shop", { labels: { team: "blue" } }).metadata.labels); // { team: "blue" }
 * console.log(make.configMap("settings", { data: { mode: "fast" } }).data.mode); // fast
 * console.log(make.secret("login", { data: { user: "me" } }).data.user); // bWU=
 * console.log(make.service("web", { port: 8080 }).spec.selector); // { app: "web" }
 * console.log(make.deployment("web", { replicas: 3, readyReplicas: 1 }).status.readyReplicas); // 1
 * console.log(make.replicaSet("web-5d9c7b").spec.replicas); // 1
 * const killed = make.event("e-1", { type: "Warning", reason: "OOMKilled", involvedObject: web });
 * console.log(killed.involvedObject.name); // web-1
 * const type = { apiVersion: "example.com/v1", kind: "Widget" };
 * console.log(make.customObject(type, { name: "w-1", fields: { spec: { color: "red" } } }).spec.color); // red
 * ```
 */
export function pod(name: string, options: PodOptions = {}): BuiltSpecObject {
  const { nodeName, image = "registry.example/app:1" } = options;
  const phase = options.phase ?? (nodeName === undefined ? "Pending" : "Running");
  const ready = options.ready ?? phase === "Running";
  return {
    ...typed("v1", "Pod", name, { namespace: "default", ...options }),
    spec: {
      containers: [{ name: "main", image }],
      ...(nodeName !== undefined && { nodeName }),
      ...options.spec,
    },
    status: { phase, conditions: [{ type: "Ready", status: ready ? "True" : "False" }], ...options.status },
  };
}

/** Options of {@linkcode node}. */
export interface NodeOptions extends Omit<BuilderMeta, "namespace"> {
  /** `true` by default. */
  readonly ready?: boolean;
  readonly unschedulable?: boolean;
}

/** A node with the capacity of a small machine. */
export function node(name: string, options: NodeOptions = {}): BuiltSpecObject {
  const { ready = true, unschedulable } = options;
  const capacity = { cpu: "4", memory: "8Gi", pods: "110" };
  return {
    ...typed("v1", "Node", name, options),
    spec: { ...(unschedulable !== undefined && { unschedulable }) },
    status: {
      capacity,
      allocatable: capacity,
      conditions: [{ type: "Ready", status: ready ? "True" : "False" }],
    },
  };
}

/** A namespace. */
export function namespace(name: string, options: Omit<BuilderMeta, "namespace"> = {}): BuiltSpecObject {
  return {
    ...typed("v1", "Namespace", name, options),
    spec: {},
    status: { phase: "Active" },
  };
}

/** Options of {@linkcode configMap} and {@linkcode secret}. */
export interface DataOptions extends BuilderMeta {
  readonly data?: Readonly<Record<string, string>>;
}

/** A ConfigMap. */
export function configMap(name: string, options: DataOptions = {}): BuiltDataObject {
  return {
    ...typed("v1", "ConfigMap", name, { namespace: "default", ...options }),
    data: { ...options.data },
  };
}

/** A Secret of type Opaque; its data is plain text here and base64 in the object. */
export function secret(name: string, options: DataOptions = {}): BuiltDataObject & { readonly type: string } {
  const data = Object.entries(options.data ?? {}).map(([key, text]) => [key, toBase64(text)]);
  return {
    ...typed("v1", "Secret", name, { namespace: "default", ...options }),
    type: "Opaque",
    data: Object.fromEntries(data),
  };
}

/** Options of {@linkcode service}. */
export interface ServiceOptions extends BuilderMeta {
  /** The labels of its pods; `app` = its name by default. */
  readonly selector?: Readonly<Record<string, string>>;
  /** 80 by default. */
  readonly port?: number;
}

/** A Service with one port. */
export function service(name: string, options: ServiceOptions = {}): BuiltSpecObject {
  const { selector = { app: name }, port = 80 } = options;
  return {
    ...typed("v1", "Service", name, { namespace: "default", ...options }),
    spec: { type: "ClusterIP", selector, ports: [{ port, protocol: "TCP", targetPort: port }] },
    status: { loadBalancer: {} },
  };
}

/** Options of {@linkcode deployment} and {@linkcode replicaSet}. */
export interface WorkloadOptions extends BuilderMeta {
  /** 1 by default. */
  readonly replicas?: number;
  /** How many of them are ready; all by default. */
  readonly readyReplicas?: number;
  readonly image?: string;
}

/** A Deployment of pods that carry the label `app` with its name. */
export function deployment(name: string, options: WorkloadOptions = {}): BuiltSpecObject {
  return workload("Deployment", name, options);
}

/** A ReplicaSet of pods that carry the label `app` with its name. */
export function replicaSet(name: string, options: WorkloadOptions = {}): BuiltSpecObject {
  return workload("ReplicaSet", name, options);
}

function workload(kind: string, name: string, options: WorkloadOptions): BuiltSpecObject {
  const { replicas = 1, readyReplicas = replicas, image = "registry.example/app:1" } = options;
  const labels = { app: name };
  return {
    ...typed("apps/v1", kind, name, { namespace: "default", labels, ...options }),
    spec: {
      replicas,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [{ name: "main", image }] } },
    },
    status: { replicas, readyReplicas, availableReplicas: readyReplicas },
  };
}

/** Options of {@linkcode event}. */
export interface EventOptions extends BuilderMeta {
  /** `Normal` by default. */
  readonly type?: "Normal" | "Warning";
  readonly reason?: string;
  readonly message?: string;
  /** The object of the event. */
  readonly involvedObject?: KubernetesObject;
}

/** An object of kind Event. */
export interface BuiltEvent extends BuiltObject {
  readonly involvedObject: Readonly<Record<string, string | undefined>>;
  readonly type: string;
  readonly reason: string;
  readonly message: string;
}

/** An Event about an object. */
export function event(name: string, options: EventOptions = {}): BuiltEvent {
  const { type = "Normal", reason = "Tested", message = "", involvedObject: about } = options;
  const place = about?.metadata?.namespace ?? "default";
  return {
    ...typed("v1", "Event", name, { namespace: place, ...options }),
    involvedObject: {
      apiVersion: about?.apiVersion,
      kind: about?.kind,
      namespace: about?.metadata?.namespace,
      name: about?.metadata?.name,
      uid: about?.metadata?.uid,
    },
    type,
    reason,
    message,
  };
}

/** An object of any kind, such as a custom resource. */
export function customObject<Fields extends object>(
  type: { readonly apiVersion: string; readonly kind: string },
  options: BuilderMeta & { readonly name: string; readonly fields?: Fields },
): BuiltObject & Fields {
  const { name, fields, ...rest } = options;
  return { ...typed(type.apiVersion, type.kind, name, rest), ...fields } as BuiltObject & Fields;
}

function typed(apiVersion: string, kind: string, name: string, options: BuilderMeta): BuiltObject {
  const { namespace, labels, annotations, finalizers, ownerReferences, uid, resourceVersion } = options;
  const others = { labels, annotations, finalizers, ownerReferences };
  return { apiVersion, kind, metadata: defined({ name, namespace, uid, resourceVersion, ...others }) };
}
