/** Columns of the kinds of the core group, but for pods. */

import {
  AGE,
  at,
  type Cell,
  type CellColumn,
  count,
  countOf,
  CREATED_AT,
  firstOf,
  INTEGER,
  integer,
  integerAt,
  itemsAt,
  labels,
  NAME,
  ofContainers,
  type Printer,
  printer,
  scalar,
  scalarText,
  since,
  text,
  textAt,
  textsAt,
  WIDE,
} from "./columns.ts";
import { podPrinter } from "./pod_printer.ts";

const CONTAINERS_TEXT = "The names of the containers in the template.";
const IMAGES_TEXT = "The images of the containers in the template.";

export function containerColumns(template: string): [CellColumn, CellColumn] {
  return [
    ["Containers", CONTAINERS_TEXT, (object) => ofContainers(object, template, "name"), WIDE],
    ["Images", IMAGES_TEXT, (object) => ofContainers(object, template, "image"), WIDE],
  ];
}

export const REPLICA_COLUMNS: readonly CellColumn[] = [
  NAME,
  ["Desired", "The wanted number of pods.", integer("spec.replicas"), INTEGER],
  ["Current", "The number of pods.", integer("status.replicas"), INTEGER],
  ["Ready", "The number of ready pods.", integer("status.readyReplicas"), INTEGER],
  AGE,
  ...containerColumns("spec.template"),
];

const ROLE_PREFIX = "node-role.kubernetes.io/";

function nodeStatus(node: unknown): string {
  const ready = itemsAt(node, "status.conditions").findLast((condition) => at(condition, "type") === "Ready");
  const status = ready === undefined ? "Unknown" : at(ready, "status") === "True" ? "Ready" : "NotReady";
  return at(node, "spec.unschedulable") === true ? `${status},SchedulingDisabled` : status;
}

function nodeRoles(node: unknown): string {
  const roles = new Set<string>();
  for (const [key, value] of Object.entries(at(node, "metadata.labels") ?? {})) {
    if (key.startsWith(ROLE_PREFIX) && key.length > ROLE_PREFIX.length) {
      roles.add(key.slice(ROLE_PREFIX.length));
    } else if (key === "kubernetes.io/role" && value !== "") roles.add(value);
  }
  return Array.from(roles).sort().join(",") || "<none>";
}

const nodeAddress = (type: string): Cell => (node) =>
  textAt(itemsAt(node, "status.addresses").find((one) => at(one, "type") === type), "address", "<none>");

const nodeInfo = (field: string) => (node: unknown) =>
  textAt(node, `status.nodeInfo.${field}`) || "<unknown>";

function kernelVersion(node: unknown): string {
  const architecture = textAt(node, "status.nodeInfo.architecture");
  return nodeInfo("kernelVersion")(node) + (architecture && ` (${architecture})`);
}

const clusterIP: Cell = (service) => textsAt(service, "spec.clusterIPs")[0] ?? "<none>";

const servicePorts: Cell = (service) =>
  itemsAt(service, "spec.ports").map((port) => {
    const nodePort = integerAt(port, "nodePort");
    return `${integerAt(port, "port")}${nodePort > 0 ? `:${nodePort}` : ""}/${textAt(port, "protocol")}`;
  }).join(",") || "<none>";

/** The addresses of a load balancer, each once, in order. */
export function loadBalancerAddresses(object: unknown): string[] {
  const found = new Set<string>();
  for (const ingress of itemsAt(object, "status.loadBalancer.ingress")) {
    const address = textAt(ingress, "ip") || textAt(ingress, "hostname");
    if (address) found.add(address);
  }
  return Array.from(found).sort();
}

function externalIP(service: unknown): string {
  const externalIPs = textsAt(service, "spec.externalIPs");
  switch (at(service, "spec.type")) {
    case "ClusterIP":
    case "NodePort":
      return externalIPs.join(",") || "<none>";
    case "LoadBalancer":
      return [...loadBalancerAddresses(service), ...externalIPs].join(",") || "<pending>";
    case "ExternalName":
      return textAt(service, "spec.externalName");
    default:
      return "<unknown>";
  }
}

function endpoints(object: unknown): string {
  const subsets = itemsAt(object, "subsets");
  if (subsets.length === 0) return "<none>";
  const found: string[] = [];
  for (const subset of subsets) {
    const ips = itemsAt(subset, "addresses").map((address) => textAt(address, "ip"));
    const ports = itemsAt(subset, "ports");
    if (ports.length === 0) found.push(...ips);
    for (const port of ports) {
      for (const ip of ips) {
        found.push(`${ip.includes(":") ? `[${ip}]` : ip}:${integerAt(port, "port")}`);
      }
    }
  }
  return firstOf(found, { most: 3 });
}

const quota = (isLimits: boolean): Cell => (object) => {
  const hard = Object.entries(at(object, "status.hard") ?? {});
  const used = at(object, "status.used") as Record<string, unknown> | undefined;
  return hard.filter(([name]) => name.startsWith("limits.") === isLimits).sort(([a], [b]) => a < b ? -1 : 1)
    .map(([name, value]) => `${name}: ${scalarText(used?.[name], "0")}/${scalarText(value, "0")}`).join(", ");
};

const ACCESS_MODES = [
  ["ReadWriteOnce", "RWO"],
  ["ReadOnlyMany", "ROX"],
  ["ReadWriteMany", "RWX"],
  ["ReadWriteOncePod", "RWOP"],
];

const accessModes = (path: string) => (object: unknown): string => {
  const modes = itemsAt(object, path);
  return ACCESS_MODES.flatMap(([mode, short]) => modes.includes(mode) ? [short] : []).join(",");
};

const phase: Cell = (object) =>
  object.metadata?.deletionTimestamp ? "Terminating" : textAt(object, "status.phase");

const storageClass: Cell = (object) =>
  object.metadata?.annotations?.["volume.beta.kubernetes.io/storage-class"] ??
    textAt(object, "spec.storageClassName");

function claim(volume: unknown): string {
  const ref = at(volume, "spec.claimRef");
  return ref === undefined ? "" : `${textAt(ref, "namespace")}/${textAt(ref, "name")}`;
}

const ofBound = (cell: Cell): Cell => (claim, nowMs) =>
  textAt(claim, "spec.volumeName") === "" ? "" : cell(claim, nowMs);

const VOLUME_COLUMNS: CellColumn[] = [
  ["StorageClass", "The storage class.", storageClass],
  ["VolumeAttributesClass", "The attributes class.", text("spec.volumeAttributesClassName", "<unset>")],
];
const VOLUME_MODE: CellColumn = [
  "VolumeMode",
  "Whether the volume has a file system or is a block device.",
  text("spec.volumeMode", "<unset>"),
  WIDE,
];

const firstSeen: Cell = (event, nowMs) => since(at(event, "firstTimestamp") ?? at(event, "eventTime"), nowMs);

const lastSeen: Cell = (event, nowMs) => {
  if (at(event, "series")) return since(at(event, "series.lastObservedTime"), nowMs);
  const last = at(event, "lastTimestamp");
  return last ? since(last, nowMs) : firstSeen(event, nowMs);
};

function regarding(event: unknown): string {
  const kind = textAt(event, "involvedObject.kind").toLowerCase();
  const name = textAt(event, "involvedObject.name");
  return name === "" ? kind : `${kind}/${name}`;
}

function source(event: unknown): string {
  const component = textAt(event, "source.component") || textAt(event, "reportingComponent");
  const instance = textAt(event, "source.host") || textAt(event, "reportingInstance");
  return instance === "" ? component : `${component}, ${instance}`;
}

const times: Cell = (event) =>
  at(event, "series") ? integerAt(event, "series.count") : integerAt(event, "count") || 1;

export const CORE_PRINTERS: Readonly<Record<string, Printer>> = {
  "configmaps": printer(
    NAME,
    ["Data", "The number of entries.", (object) => countOf(object, "data") + countOf(object, "binaryData")],
    AGE,
  ),
  "endpoints": printer(NAME, ["Endpoints", "The addresses and ports.", endpoints], AGE),
  "events": printer(
    ["Last Seen", "The time since the event was last seen.", lastSeen],
    ["Type", "Normal or Warning.", text("type")],
    ["Reason", "Why the event was sent, in one word.", text("reason")],
    ["Object", "The object that the event is about.", regarding],
    ["Subobject", "The part of the object that the event is about.", text("involvedObject.fieldPath"), WIDE],
    ["Source", "The component that sent the event.", source, WIDE],
    ["Message", "What happened.", (event) => textAt(event, "message").trim()],
    ["First Seen", "The time since the event was first seen.", firstSeen, WIDE],
    ["Count", "How many times the event was seen.", times, WIDE],
    [NAME[0], NAME[1], NAME[2], { ...NAME[3], ...WIDE }],
  ),
  "limitranges": printer(NAME, CREATED_AT),
  "namespaces": printer(
    NAME,
    ["Status", "Whether the namespace is active or terminating.", text("status.phase")],
    AGE,
  ),
  "nodes": printer(
    NAME,
    ["Status", "Whether the node is ready.", nodeStatus],
    ["Roles", "The node's roles, by its labels.", nodeRoles],
    AGE,
    ["Version", "The version of the kubelet.", text("status.nodeInfo.kubeletVersion")],
    ["Internal-IP", "The node's address inside the cluster.", nodeAddress("InternalIP"), WIDE],
    ["External-IP", "The node's address outside the cluster.", nodeAddress("ExternalIP"), WIDE],
    ["OS-Image", "The operating system.", nodeInfo("osImage"), WIDE],
    ["Kernel-Version", "The kernel and the architecture.", kernelVersion, WIDE],
    ["Container-Runtime", "The container runtime.", nodeInfo("containerRuntimeVersion"), WIDE],
  ),
  "persistentvolumeclaims": printer(
    NAME,
    ["Status", "The phase of the claim.", phase],
    ["Volume", "The volume that the claim is bound to.", text("spec.volumeName")],
    ["Capacity", "The size of the volume.", ofBound(scalar("status.capacity.storage", "0"))],
    ["Access Modes", "How the volume can be mounted.", ofBound(accessModes("status.accessModes"))],
    ...VOLUME_COLUMNS,
    AGE,
    VOLUME_MODE,
  ),
  "persistentvolumes": printer(
    NAME,
    ["Capacity", "The size.", scalar("spec.capacity.storage", "0")],
    ["Access Modes", "How the volume can be mounted.", accessModes("spec.accessModes")],
    ["Reclaim Policy", "How it is handled without its claim.", text("spec.persistentVolumeReclaimPolicy")],
    ["Status", "The phase of the volume.", phase],
    ["Claim", "The claim that is bound to the volume.", claim],
    ...VOLUME_COLUMNS,
    ["Reason", "Why the volume is in this phase.", text("status.reason")],
    AGE,
    VOLUME_MODE,
  ),
  "pods": podPrinter,
  "podtemplates": printer(
    NAME,
    ["Containers", CONTAINERS_TEXT, (object) => ofContainers(object, "template", "name")],
    ["Images", IMAGES_TEXT, (object) => ofContainers(object, "template", "image")],
    ["Pod Labels", "The labels of the template.", labels("template.metadata.labels")],
  ),
  "replicationcontrollers": printer(
    ...REPLICA_COLUMNS,
    ["Selector", "The labels of its pods.", labels("spec.selector"), WIDE],
  ),
  "resourcequotas": printer(
    NAME,
    ["Request", "Used and permitted amounts, but for limits.", quota(false)],
    ["Limit", "Used and permitted limits.", quota(true)],
    AGE,
  ),
  "secrets": printer(
    NAME,
    ["Type", "What the secret is used for.", text("type")],
    ["Data", "The number of entries.", count("data")],
    AGE,
  ),
  "serviceaccounts": printer(NAME, AGE),
  "services": printer(
    NAME,
    ["Type", "How the service is exposed.", text("spec.type")],
    ["Cluster-IP", "The service's address inside the cluster.", clusterIP],
    ["External-IP", "The service's addresses outside the cluster.", externalIP],
    ["Port(s)", "The ports that the service exposes.", servicePorts],
    AGE,
    ["Selector", "The labels of its pods.", labels("spec.selector"), WIDE],
  ),
};
