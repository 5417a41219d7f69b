/**
 * The columns of merged Tables.
 * @module
 */

import type { ApiResource } from "../../protocol/api_resource.ts";
import { printerOf } from "../tables/printers.ts";

/**
 * The columns of a Table: those of this package, if the shard has the same by name. Servers describe the same columns in other
 * words, and kubectl prints the header again where the columns change.
 */
export function mergedColumns(resource: ApiResource, columns: unknown): unknown {
  if (!Array.isArray(columns)) return columns;
  const { columns: own } = printerOf(resource);
  const isSame = columns.length === own.length && own.every(({ name }, i) => columns[i]?.name === name);
  return isSame ? own : columns;
}
