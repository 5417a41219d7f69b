/**
 * Columns of the groups storage.k8s.io, resource.k8s.io and storagemigration.k8s.io.
 * @module
 */

import {
  AGE,
  ageAt,
  BOOLEAN,
  type Cell,
  count,
  CREATED_AT,
  flag,
  INTEGER,
  integer,
  NAME,
  type Printer,
  printer,
  text,
} from "./columns.ts";
import { at, integerAt, isConditionTrue, itemsAt, textAt, textsAt } from "./fields.ts";
import { since } from "./human_duration.ts";
import { defaultName } from "./network_printers.ts";

function tokenRequests(driver: unknown): string {
  const requests = at(driver, "spec.tokenRequests");
  if (!Array.isArray(requests)) return "<unset>";
  return requests.map((request) => textAt(request, "audience")).join(",");
}

const claimState: Cell = (claim) => {
  const states = claim.metadata?.deletionTimestamp ? ["deleted"] : [];
  if (at(claim, "status.allocation")) {
    states.push("allocated");
    if (itemsAt(claim, "status.reservedFor").length > 0) states.push("reserved");
  } else if (states.length === 0) states.push("pending");
  return states.join(",");
};

/** The sum of a count over the pools of a request's status. */
const devices = (field: string): Cell => (request) => {
  if (!at(request, "status") || isConditionTrue(request, "Failed")) return "-";
  return String(
    itemsAt(request, "status.pools").reduce<number>((sum, pool) => sum + integerAt(pool, field), 0),
  );
};

const invalidPools: Cell = (request) => {
  if (!at(request, "status") || isConditionTrue(request, "Failed")) return "-";
  return String(itemsAt(request, "status.pools").filter((pool) => at(pool, "validationError")).length);
};

function poolStatus(request: unknown): string {
  if (isConditionTrue(request, "Failed")) return "Failed";
  if (!isConditionTrue(request, "Complete")) return "Pending";
  const [shown, all] = [itemsAt(request, "status.pools").length, integerAt(request, "status.poolCount")];
  return all > shown ? `Complete (${shown}/${all} pools)` : "Complete";
}

const completedSince: Cell = (request, nowMs) => {
  const complete = itemsAt(request, "status.conditions").find((one) => at(one, "type") === "Complete");
  return at(complete, "status") === "True" ? since(at(complete, "lastTransitionTime"), nowMs) : "<none>";
};

function migrationStatus(migration: unknown): string {
  const states = itemsAt(migration, "status.conditions").filter((condition) =>
    at(condition, "status") === "True" &&
    ["Running", "Failed", "Succeeded"].includes(textAt(condition, "type"))
  );
  return textAt(states.at(-1), "type") || "Unknown";
}

function migrated(migration: unknown): string {
  const group = textAt(migration, "spec.resource.group");
  return textAt(migration, "spec.resource.resource") + (group && `.${group}`);
}

/** Printers by group and resource. */
export const STORAGE_PRINTERS: Readonly<Record<string, Printer>> = {
  "resource.k8s.io/deviceclasses": printer(NAME, AGE),
  "resource.k8s.io/devicetaintrules": printer(
    NAME,
    ["Key", "The key of the taint.", text("spec.taint.key")],
    ["Value", "The value of the taint.", text("spec.taint.value")],
    ["Effect", "The effect of the taint.", text("spec.taint.effect")],
    ["TimeAdded", "The time since the taint was added.", ageAt("spec.taint.timeAdded", "")],
    AGE,
  ),
  "resource.k8s.io/resourceclaims": printer(
    NAME,
    ["State", "Whether the claim is allocated and reserved.", claimState],
    AGE,
  ),
  "resource.k8s.io/resourceclaimtemplates": printer(NAME, AGE),
  "resource.k8s.io/resourcepoolstatusrequests": printer(
    NAME,
    ["Driver", "The driver of the pools.", text("spec.driver")],
    ["Total", "The number of devices.", devices("totalDevices")],
    ["Available", "The number of available devices.", devices("availableDevices")],
    ["Allocated", "The number of allocated devices.", devices("allocatedDevices")],
    ["Unavailable", "The number of unavailable devices.", devices("unavailableDevices")],
    ["Errors", "The number of invalid pools.", invalidPools],
    ["Pools", "The number of pools.", integer("status.poolCount"), INTEGER],
    ["Status", "Whether the request is answered.", poolStatus],
    ["Completed", "The time since the request was answered.", completedSince],
  ),
  "resource.k8s.io/resourceslices": printer(
    NAME,
    ["Node", "The node that has the devices.", text("spec.nodeName")],
    ["Driver", "The driver of the devices.", text("spec.driver")],
    ["Pool", "The pool of the devices.", text("spec.pool.name")],
    AGE,
  ),
  "storage.k8s.io/csidrivers": printer(
    NAME,
    ["AttachRequired", "Whether volumes are attached.", flag("spec.attachRequired", true), BOOLEAN],
    ["PodInfoOnMount", "Whether mounts need data of the pod.", flag("spec.podInfoOnMount"), BOOLEAN],
    ["StorageCapacity", "Whether the driver publishes its capacity.", flag("spec.storageCapacity"), BOOLEAN],
    ["TokenRequests", "The audiences of tokens that the driver needs.", tokenRequests],
    [
      "RequiresRepublish",
      "Whether volumes are published repeatedly.",
      flag("spec.requiresRepublish"),
      BOOLEAN,
    ],
    [
      "Modes",
      "The life cycles of volumes.",
      (driver) => textsAt(driver, "spec.volumeLifecycleModes").join(",") || "<none>",
    ],
    AGE,
  ),
  "storage.k8s.io/csinodes": printer(
    NAME,
    ["Drivers", "The number of drivers on the node.", count("spec.drivers"), INTEGER],
    AGE,
  ),
  "storage.k8s.io/csistoragecapacities": printer(NAME, CREATED_AT),
  "storage.k8s.io/storageclasses": printer(
    [
      NAME[0],
      NAME[1],
      defaultName(
        "storageclass.kubernetes.io/is-default-class",
        "storageclass.beta.kubernetes.io/is-default-class",
      ),
      NAME[3],
    ],
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
  "storagemigration.k8s.io/storageversionmigrations": printer(
    [NAME[0], NAME[1], NAME[2]],
    ["Resource", "What is migrated.", migrated],
    ["Status", "The state of the migration.", migrationStatus],
  ),
};
