/**
 * The printers of all kinds: kube-apiserver's columns for the groups that people list by hand (core, apps,
 * autoscaling, batch, networking, policy, RBAC and storage), names and ages for all others.
 * @module
 */

import type { ApiResource } from "../../protocol/api_resource.ts";
import { AGE, NAME, type Printer, printer } from "./columns.ts";
import { CORE_PRINTERS } from "./core_printers.ts";
import { customPrinter } from "./custom_printer.ts";
import { NETWORK_PRINTERS } from "./network_printers.ts";
import { POLICY_PRINTERS } from "./policy_printers.ts";
import { STORAGE_PRINTERS } from "./storage_printers.ts";
import { WORKLOAD_PRINTERS } from "./workload_printers.ts";

const PRINTERS: ReadonlyMap<string, Printer> = new Map(
  [CORE_PRINTERS, WORKLOAD_PRINTERS, NETWORK_PRINTERS, STORAGE_PRINTERS, POLICY_PRINTERS].flatMap(
    Object.entries,
  ),
);

const NAME_AND_AGE = printer(NAME, [AGE[0], AGE[1], AGE[2], { type: "date" }]);

export function printerOf(resource: ApiResource): Printer {
  const { group, resource: name } = resource;
  if (resource.printerColumns?.length) return customPrinter(resource.printerColumns);
  return PRINTERS.get(group === "" ? name : `${group}/${name}`) ?? NAME_AND_AGE;
}
