/** What objects are sorted by: the keys of a query, read from objects. */

import type { KubernetesObject } from "../../meta/object.ts";
import type { Status } from "../../meta/status.ts";
import type { ScreenPath } from "../../protocol/screen_syntax.ts";
import { refusedParameter, type SortKey } from "../../protocol/screen_query.ts";
import { someValue, typedValue } from "../../protocol/screen_values.ts";
import { quotedStart } from "../../protocol/statuses.ts";
import { parseFieldPath } from "../../text/field_path.ts";
import { type Cell, Duration, type Printer } from "../tables/columns.ts";
import type { ReadField } from "./followed_objects.ts";
import { sortText } from "./sort_key.ts";

export interface OrderSpec {
  /** Specs of one resource with the same name order its objects alike. */
  readonly name: string;
  /** The only fields that are read of an object; `undefined`: any. */
  readonly reads: readonly ReadField[] | undefined;
  /** The text that compares as the object does. */
  textOf(object: KubernetesObject): string;
}

type Part = Omit<OrderSpec, "name">;

/** The order that keys mean; 400 if there is no such column. */
export function orderSpecOf(
  keys: readonly SortKey[],
  { printer, nowMs }: { readonly printer: Printer; readonly nowMs: number },
): OrderSpec | Status {
  const parts: Part[] = [];
  for (const key of keys) {
    const part = partOf(key, printer, nowMs);
    if (!("textOf" in part)) return part;
    parts.push(part);
  }
  return {
    name: keys.map(({ text }) => text).join(","),
    reads: parts.every(({ reads }) => reads !== undefined) ? parts.flatMap(({ reads }) => reads!) : undefined,
    textOf: (object) => {
      let text = "";
      for (const part of parts) text += part.textOf(object);
      return text;
    },
  };
}

function partOf({ by, isDescending }: SortKey, printer: Printer, nowMs: number): Part | Status {
  if (by.type === "column") return columnPart(by.name, isDescending, printer, nowMs);
  const { type, path } = by;
  const reads = [path];
  if (type !== "field") {
    return { reads, textOf: (object) => sortText(aggregate(type, path, object), { isDescending }) };
  }
  const order = { isDescending, isText: NAMES.has(path.text) };
  return { reads, textOf: (object) => sortText(firstValue(object, path), order) };
}

// They are names, also where they look like numbers.
const NAMES: ReadonlySet<string> = new Set(["metadata.name", "metadata.namespace", "metadata.uid"]);

function columnPart(name: string, isDescending: boolean, printer: Printer, nowMs: number): Part | Status {
  const i = printer.columns.findIndex((column) => column.name.toLowerCase() === name);
  if (i < 0) {
    const known = printer.columns.map((column) => column.name).join(", ");
    return refusedParameter("sortBy", `there is no column ${quotedStart(name)}; the columns are ${known}`);
  }
  const order = { isDescending, isText: printer.columns[i].format === "name" };
  const { each, reads, readsRarely } = printer;
  const cell: Cell = each?.[i] ?? ((object, nowMs) => printer.cells(object, nowMs)[i]);
  const segmentsOf = (path: string) => parseFieldPath(path, { mayEndInElements: true });
  const { fields, onlyWith } = readsRarely?.[i] ?? { fields: [] };
  const rarely = fields.map((path) => ({
    segments: segmentsOf(path),
    ...(onlyWith !== undefined && { onlyWith: segmentsOf(onlyWith) }),
  }));
  return {
    reads: reads?.[i]?.map((path): ReadField => ({ segments: segmentsOf(path) })).concat(rarely),
    textOf: (object) => sortText(cellValue(cell(object, nowMs)), order),
  };
}

// "5 (3m ago)", of restarts.
const COUNT = /^([0-9]+) \(/;
const NO_VALUES: ReadonlySet<unknown> = new Set(["<none>", "<unknown>", "<invalid>"]);

/** The value of a cell: a duration in seconds, what it begins with as a number, or itself. */
function cellValue(cell: unknown): unknown {
  // Ages are those at one time, and change with it; their order does not.
  if (cell instanceof Duration) return cell.seconds;
  const count = typeof cell === "string" ? COUNT.exec(cell) : null;
  if (count !== null) return Number(count[1]);
  return NO_VALUES.has(cell) ? undefined : cell;
}

function firstValue(object: unknown, { segments }: ScreenPath): unknown {
  let first: unknown;
  someValue(object, segments, (value) => {
    first = value ?? undefined;
    return first !== undefined;
  });
  return first;
}

const MOST_SUMMAND = 1e300;

/** The sum, number, least or greatest of the values at a path. */
export function aggregate(
  type: "sum" | "count" | "min" | "max",
  path: ScreenPath,
  object: unknown,
): number | undefined {
  let result: number | undefined = type === "count" ? 0 : undefined;
  eachValue(object, path, (value) => {
    if (type === "count") {
      result = result! + 1;
      return;
    }
    const typed = typedValue(value);
    if (typed === undefined || typed.type === "text") return;
    const { number } = typed;
    // The sum of a group would never be a number again.
    if (type === "sum" && Math.abs(number) > MOST_SUMMAND) return;
    if (result === undefined) result = number;
    else if (type === "sum") result += number;
    else result = type === "min" ? Math.min(result, number) : Math.max(result, number);
  });
  return result;
}

/** Calls with each of the values at a path that is not `null`. */
export function eachValue(object: unknown, { segments }: ScreenPath, call: (value: unknown) => void): void {
  someValue(object, segments, (value) => {
    if (value !== null && value !== undefined) call(value);
    return false;
  });
}
