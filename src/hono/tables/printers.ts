/** The printers of all resources; those of networking, policies, storage and other small groups are here. */

import type { ApiResource, PrinterColumn } from "../../protocol/api_resource.ts";
import {
  AGE,
  at,
  BOOLEAN,
  type Cell,
  type CellColumn,
  count,
  CREATED_AT,
  flag,
  INTEGER,
  integer,
  itemsAt,
  NAME,
  type Printer,
  printer,
  reference,
  scalar,
  selected,
  since,
  text,
  textAt,
  textsAt,
  WIDE,
} from "./columns.ts";
import { CORE_PRINTERS, loadBalancerAddresses } from "./core_printers.ts";
import { WORKLOAD_PRINTERS } from "./workload_printers.ts";
import { escaped } from "../../protocol/representations.ts";
import { type JsonPath, parseJsonPath } from "./json_path.ts";

/** The name, marked if an annotation says that the object is the default of its kind. */
function defaultName(...annotations: readonly string[]): CellColumn {
  const cell: Cell = ({ metadata }) => {
    const isDefault = annotations.some((name) => metadata?.annotations?.[name] === "true");
    return `${metadata?.name ?? ""}${isDefault ? " (default)" : ""}`;
  };
  return [NAME[0], NAME[1], cell, NAME[3]];
}

function hosts(ingress: unknown): string {
  const rules = itemsAt(ingress, "spec.rules");
  const shown: string[] = [];
  // Rules without a host count, too, as soon as three others have been found.
  const rest = rules.findIndex((rule) => {
    if (shown.length === 3) return true;
    const host = textAt(rule, "host");
    if (host !== "") shown.push(host);
    return false;
  });
  if (shown.length === 0) return "*";
  return rest < 0 ? shown.join(",") : `${shown.join(",")} + ${rules.length - 3} more...`;
}

function parameters(ingressClass: unknown): string {
  const reference = at(ingressClass, "spec.parameters");
  if (reference === undefined) return "<none>";
  const group = at(reference, "apiGroup");
  const kind = textAt(reference, "kind") + (typeof group === "string" ? `.${group}` : "");
  return `${kind}/${textAt(reference, "name")}`;
}

function parent(ipAddress: unknown): string {
  const reference = at(ipAddress, "spec.parentRef");
  if (reference === undefined) return "<none>";
  const [group, namespace] = [textAt(reference, "group"), textAt(reference, "namespace")];
  const resource = textAt(reference, "resource") + (group && `.${group}`);
  return `${resource.toLowerCase()}/${namespace && `${namespace}/`}${textAt(reference, "name")}`;
}

const ipAddresses = printer(NAME, ["ParentRef", "The object that uses the address.", parent], AGE);

const subjects = (kind: string): Cell => (binding) =>
  itemsAt(binding, "subjects").filter((subject) => at(subject, "kind") === kind).map((subject) => {
    const name = textAt(subject, "name");
    return kind === "ServiceAccount" ? `${textAt(subject, "namespace")}/${name}` : name;
  }).join(", ");

const roleBindings = printer(
  NAME,
  ["Role", "The role.", reference("roleRef")],
  AGE,
  ["Users", "The users that have the role.", subjects("User"), WIDE],
  ["Groups", "The groups that have the role.", subjects("Group"), WIDE],
  ["ServiceAccounts", "The service accounts that have the role.", subjects("ServiceAccount"), WIDE],
);

function tokenRequests(driver: unknown): string {
  const requests = at(driver, "spec.tokenRequests");
  if (!Array.isArray(requests)) return "<unset>";
  return requests.map((request) => textAt(request, "audience")).join(",");
}

const modes: Cell = (driver) => textsAt(driver, "spec.volumeLifecycleModes").join(",") || "<none>";

const OTHER_PRINTERS: Readonly<Record<string, Printer>> = {
  "networking.k8s.io/ingressclasses": printer(
    defaultName("ingressclass.kubernetes.io/is-default-class"),
    ["Controller", "The controller that handles the class.", text("spec.controller")],
    ["Parameters", "An object with further parameters.", parameters],
    AGE,
  ),
  "networking.k8s.io/ingresses": printer(
    NAME,
    ["Class", "The ingress class.", text("spec.ingressClassName", "<none>")],
    ["Hosts", "The hosts of the rules.", hosts],
    ["Address", "The addresses of the load balancer.", (ingress) => loadBalancerAddresses(ingress).join(",")],
    ["Ports", "The open ports.", (ingress) => itemsAt(ingress, "spec.tls").length > 0 ? "80, 443" : "80"],
    AGE,
  ),
  // The API server sends the age without a column for it.
  "networking.k8s.io/ipaddresses": { ...ipAddresses, columns: ipAddresses.columns.slice(0, 2) },
  "networking.k8s.io/networkpolicies": printer(
    NAME,
    ["Pod-Selector", "The labels of the pods that the policy is for.", selected("spec.podSelector")],
    AGE,
  ),
  "networking.k8s.io/servicecidrs": printer(
    NAME,
    ["CIDRs", "The address ranges.", (object) => textsAt(object, "spec.cidrs").join(",")],
    AGE,
  ),
  "policy/poddisruptionbudgets": printer(
    NAME,
    ["Min Available", "How many pods must stay available.", scalar("spec.minAvailable", "N/A")],
    ["Max Unavailable", "How many pods may be unavailable.", scalar("spec.maxUnavailable", "N/A")],
    ["Allowed Disruptions", "How many pods may be evicted.", integer("status.disruptionsAllowed"), INTEGER],
    AGE,
  ),
  "rbac.authorization.k8s.io/clusterrolebindings": roleBindings,
  "rbac.authorization.k8s.io/clusterroles": printer(NAME, CREATED_AT),
  "rbac.authorization.k8s.io/rolebindings": roleBindings,
  "rbac.authorization.k8s.io/roles": printer(NAME, CREATED_AT),
  "storage.k8s.io/csidrivers": printer(
    NAME,
    ["AttachRequired", "Whether volumes are attached.", flag("spec.attachRequired", true), BOOLEAN],
    ["PodInfoOnMount", "Whether mounts need data of the pod.", flag("spec.podInfoOnMount"), BOOLEAN],
    ["StorageCapacity", "Whether the driver publishes its capacity.", flag("spec.storageCapacity"), BOOLEAN],
    ["TokenRequests", "The audiences of tokens that the driver needs.", tokenRequests],
    ["RequiresRepublish", "Whether volumes are published again.", flag("spec.requiresRepublish"), BOOLEAN],
    ["Modes", "The life cycles of volumes.", modes],
    AGE,
  ),
  "storage.k8s.io/csinodes": printer(
    NAME,
    ["Drivers", "The number of drivers on the node.", count("spec.drivers"), INTEGER],
    AGE,
  ),
  "storage.k8s.io/csistoragecapacities": printer(NAME, CREATED_AT),
  "storage.k8s.io/storageclasses": printer(
    defaultName(
      "storageclass.kubernetes.io/is-default-class",
      "storageclass.beta.kubernetes.io/is-default-class",
    ),
    ["Provisioner", "What makes the volumes.", text("provisioner")],
    ["ReclaimPolicy", "How a volume is handled when its claim is deleted.", text("reclaimPolicy", "Delete")],
    ["VolumeBindingMode", "When volumes are bound.", text("volumeBindingMode", "Immediate")],
    ["AllowVolumeExpansion", "Whether volumes can grow.", flag("allowVolumeExpansion")],
    AGE,
  ),
  "storage.k8s.io/volumeattachments": printer(
    NAME,
    ["Attacher", "The driver that attaches the volume.", text("spec.attacher"), { format: "name" }],
    ["PV", "The volume.", text("spec.source.persistentVolumeName")],
    ["Node", "The node that the volume is attached to.", text("spec.nodeName")],
    ["Attached", "Whether the volume is attached.", flag("status.attached"), BOOLEAN],
    AGE,
  ),
  "storage.k8s.io/volumeattributesclasses": printer(
    NAME,
    ["DriverName", "The driver that the attributes are for.", text("driverName")],
    AGE,
  ),
};

const PRINTERS: ReadonlyMap<string, Printer> = new Map(
  [CORE_PRINTERS, WORKLOAD_PRINTERS, OTHER_PRINTERS].flatMap(Object.entries),
);

const NAME_AND_AGE = printer(NAME, [AGE[0], AGE[1], AGE[2], { ...AGE[3], type: "date" }]);

export function printerOf(resource: ApiResource): Printer {
  const { group, resource: name } = resource;
  if (resource.printerColumns?.length) return customPrinter(resource.printerColumns);
  return PRINTERS.get(group === "" ? name : `${group}/${name}`) ?? NAME_AND_AGE;
}

const FIELDS = /^(?:\.[A-Za-z_][A-Za-z0-9_]*)+$/;

const CUSTOM_PRINTERS = new WeakMap<readonly PrinterColumn[], Printer>();

/**
 * The printer of a custom resource. Mirrors apiextensions-apiserver's
 * [`tableconvertor`](https://github.com/kubernetes/apiextensions-apiserver/blob/master/pkg/registry/customresource/tableconvertor/tableconvertor.go):
 * a value that is absent or of the wrong type is `null`; columns from the
 * first one whose path cannot be read are left out.
 */
function customPrinter(columns: readonly PrinterColumn[]): Printer {
  const known = CUSTOM_PRINTERS.get(columns);
  if (known !== undefined) return known;
  const cells: CellColumn[] = [NAME];
  for (const column of columns) {
    const { name, type, format = "", priority = 0, jsonPath, description } = column;
    const path = readable(jsonPath);
    if (path === undefined) break;
    const text = description || `Custom resource definition column (in JSONPath format): ${jsonPath}`;
    const reads = FIELDS.test(jsonPath) ? [jsonPath.slice(1)] : undefined;
    cells.push([name, text, cellOf(type, path), { type, format, priority, reads }]);
  }
  const made = printer(...cells);
  CUSTOM_PRINTERS.set(columns, made);
  return made;
}

function readable(jsonPath: string): JsonPath | undefined {
  try {
    return parseJsonPath(jsonPath);
  } catch {
    return undefined;
  }
}

function cellOf(type: string, path: JsonPath): Cell {
  return (object, nowMs) => {
    let found: unknown[];
    try {
      found = path(object);
    } catch {
      return null;
    }
    return found.length === 0 ? null : cell(type, found[0], nowMs);
  };
}

function cell(type: string, value: unknown, nowMs: number): unknown {
  switch (type) {
    case "string":
      return textOf(value);
    case "integer":
      return typeof value === "number" ? Math.trunc(value) : null;
    case "number":
      return typeof value === "number" ? value : null;
    case "boolean":
      return typeof value === "boolean" ? value : null;
    case "date":
      return typeof value === "string" ? ageOf(value, nowMs) : null;
    default:
      return null;
  }
}

// As Go reads RFC 3339: no hour 24, no 30 February.
const TIME =
  /^(\d{4})-(0[1-9]|1[0-2])-(\d{2})T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:[.,]\d+)?(?:Z|[+-]\d{2}:\d{2})$/;

function ageOf(time: string, nowMs: number): unknown {
  if (time === "" || time === "null") return "<unknown>";
  const [, year, month, day] = TIME.exec(time) ?? [];
  const days = new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate();
  if (!(Number(day) >= 1 && Number(day) <= days)) return "<invalid>";
  return since(time.replace(",", "."), nowMs);
}

// As Go prints values.
function textOf(value: unknown): string {
  if (value === null) return "<no value>";
  if (typeof value === "number") return numberText(value);
  return typeof value === "object" ? goJson(value) : String(value);
}

function numberText(value: number): string {
  const size = Math.abs(value);
  // JSON's integers are of 64 bits in Go, as far as they fit; all others are floats.
  const isPlain = Number.isInteger(value) ? size < 2 ** 63 : size >= 1e-4 && size < 1e6;
  return isPlain ? String(value) : value.toExponential().replace(/(?<=[+-])\d$/, "0$&");
}

/** Compact JSON with sorted keys. */
function goJson(value: unknown): string {
  const json = JSON.stringify(value, (_, part: unknown) => {
    if (typeof part !== "object" || part === null || Array.isArray(part)) return part;
    return Object.fromEntries(Object.entries(part).sort(([a], [b]) => a < b ? -1 : 1));
  });
  return escaped(json);
}
