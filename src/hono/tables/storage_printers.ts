/** Columns of the group storage.k8s.io. */

import {
  AGE,
  BOOLEAN,
  count,
  CREATED_AT,
  flag,
  INTEGER,
  NAME,
  type Printer,
  printer,
  text,
} from "./columns.ts";
import { at, textAt, textsAt } from "./fields.ts";
import { defaultName } from "./network_printers.ts";

function tokenRequests(driver: unknown): string {
  const requests = at(driver, "spec.tokenRequests");
  if (!Array.isArray(requests)) return "<unset>";
  return requests.map((request) => textAt(request, "audience")).join(",");
}

export const STORAGE_PRINTERS: Readonly<Record<string, Printer>> = {
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
};
