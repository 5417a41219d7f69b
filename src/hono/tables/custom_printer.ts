/** Columns of custom resources. */

import type { PrinterColumn } from "../../protocol/api_resource.ts";
import { escaped } from "../../protocol/responses.ts";
import { type Cell, type CellColumn, NAME, type Printer, printer, since } from "./columns.ts";
import { type JsonPath, parseJsonPath } from "./json_path.ts";

const PRINTERS = new WeakMap<readonly PrinterColumn[], Printer>();

/**
 * The printer of a custom resource. Mirrors apiextensions-apiserver's
 * [`tableconvertor`](https://github.com/kubernetes/apiextensions-apiserver/blob/master/pkg/registry/customresource/tableconvertor/tableconvertor.go):
 * a value that is absent or of the wrong type is `null`; columns from the
 * first one whose path cannot be read are left out.
 */
export function customPrinter(columns: readonly PrinterColumn[]): Printer {
  const known = PRINTERS.get(columns);
  if (known !== undefined) return known;
  const cells: CellColumn[] = [NAME];
  for (const column of columns) {
    const { name, type, format = "", priority = 0, jsonPath, description } = column;
    const path = readable(jsonPath);
    if (path === undefined) break;
    const text = description || `Custom resource definition column (in JSONPath format): ${jsonPath}`;
    cells.push([name, text, cellOf(type, path), { type, format, priority }]);
  }
  const made = printer(...cells);
  PRINTERS.set(columns, made);
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

function ageOf(time: string, nowMs: number): string {
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
  if (value === 0 || Math.abs(value) >= 1e-4) return String(value);
  return value.toExponential().replace(/-(\d)$/, "-0$1");
}

/** Compact JSON with sorted keys. */
function goJson(value: unknown): string {
  const json = JSON.stringify(value, (_, part: unknown) => {
    if (typeof part !== "object" || part === null || Array.isArray(part)) return part;
    return Object.fromEntries(Object.entries(part).sort(([a], [b]) => a < b ? -1 : 1));
  });
  return escaped(json);
}
