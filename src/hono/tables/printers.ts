/**
 * The printers of all kinds.
 * @module
 */

import { type ApiResource, isBuiltinGroup } from "../../protocol/api_resource.ts";
import { AGE, CREATED_AT, NAME, type Printer, printer } from "./columns.ts";
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
const NAME_AND_TIME = printer(NAME, CREATED_AT);

/** The printer of a resource. */
export function printerOf(resource: ApiResource): Printer {
  const { group, resource: name } = resource;
  if (resource.printerColumns?.length) return customPrinter(resource.printerColumns);
  const known = PRINTERS.get(group === "" ? name : `${group}/${name}`);
  return known ?? (isBuiltinGroup(group) ? NAME_AND_TIME : NAME_AND_AGE);
}
