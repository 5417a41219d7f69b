/** Columns and printers of Tables. */

import type { KubernetesObject } from "../../meta/object.ts";
import { labelSelectorFromSpec, type LabelSelectorSpec } from "../../meta/labels.ts";
import { valueAt as at } from "../../protocol/selectable_fields.ts";
import { isRecord } from "../../util/json.ts";
import { humanDuration } from "./human_duration.ts";

export interface Column {
  readonly name: string;
  readonly type: string;
  readonly format: string;
  readonly description: string;
  /** The priority: 0 is always shown, 1 in wide output. */
  readonly priority: number;
}

export interface Printer {
  readonly columns: readonly Column[];
  cells(object: KubernetesObject, nowMs: number): unknown[];
  /** The cell of each column that can be made without the others. */
  readonly each?: readonly (Cell | undefined)[];
  /** The fields that each column is made of, where they are known. */
  readonly reads?: readonly (readonly string[] | undefined)[];
  /** The fields that it depends on in rare cases besides. */
  readonly readsRarely?: readonly {
    readonly fields: readonly string[];
    /** The field without which the others do not matter. */
    readonly onlyWith?: string;
  }[];
  /** The conditions of a row: whether its object has run to completion. */
  conditions?(object: KubernetesObject): unknown[] | undefined;
}

export type Cell = (object: KubernetesObject, nowMs: number) => unknown;

export type CellColumn = readonly [
  name: string,
  description: string,
  cell: Cell,
  more?: Partial<Pick<Column, "type" | "format" | "priority">> & {
    readonly reads?: readonly string[] | undefined;
  },
];

const TEXT = { type: "string", format: "", priority: 0 };

/** Makes a printer; a cell that cannot be computed is `<unknown>`. */
export function printer(...columns: readonly CellColumn[]): Printer {
  const each = columns.map(([, , cell]): Cell => (object, nowMs) => {
    // Objects of an unexpected shape must not keep their list from being shown.
    try {
      return cell(object, nowMs);
    } catch {
      return "<unknown>";
    }
  });
  return {
    columns: columns.map(([name, description, , { reads: _, ...more } = {}]) => (
      { ...TEXT, name, description, ...more }
    )),
    each,
    reads: columns.map(([, , , more]) => more?.reads),
    cells: (object, nowMs) => each.map((cell) => cell(object, nowMs)),
  };
}

export const WIDE = { priority: 1 } as const;
export const INTEGER = { type: "integer" } as const;
export const BOOLEAN = { type: "boolean" } as const;

export const text = (path: string, absent = ""): Cell => (object) => textAt(object, path, absent);
export const integer = (path: string): Cell => (object) => integerAt(object, path);
export const count = (path: string): Cell => (object) => countOf(object, path);
export const scalar = (path: string, absent: string): Cell => (object) =>
  scalarText(at(object, path), absent);
export const labels = (path: string): Cell => (object) => labelsText(object, path);
export const selected = (path: string): Cell => (object) => selectorText(object, path) || "<none>";
export const reference = (path: string): Cell => (object) =>
  `${textAt(object, `${path}.kind`)}/${textAt(object, `${path}.name`)}`;
export const flag = (path: string, absent = false): Cell => (object) => {
  const value = at(object, path);
  return typeof value === "boolean" ? value : absent;
};
export const ageAt = (path: string, absent = "<unknown>"): Cell => (object, nowMs) => {
  const value = at(object, path);
  return value === undefined || value === null ? absent : since(value, nowMs);
};

export const NAME: CellColumn = [
  "Name",
  "The name of the object; unique within its namespace.",
  text("metadata.name"),
  { format: "name" },
];

export const AGE: CellColumn = [
  "Age",
  "The time since the API server created the object.",
  ageAt("metadata.creationTimestamp"),
  { reads: ["metadata.creationTimestamp"] },
];

export const CREATED_AT: CellColumn = [
  "Created At",
  "The time at which the API server created the object, in UTC.",
  text("metadata.creationTimestamp", "0001-01-01T00:00:00Z"),
  { type: "date" },
];

/** A duration in a cell: shown in one or two units, and sorted by its length, below 0 for times to come. */
export class Duration {
  readonly seconds: number;

  constructor(ms: number) {
    this.seconds = ms / 1000;
  }

  toString(): string {
    return humanDuration(Math.trunc(this.seconds));
  }

  toJSON(): string {
    return this.toString();
  }
}

export function since(time: unknown, nowMs: number): Duration | "<unknown>" {
  const thenMs = typeof time === "string" && time !== "0001-01-01T00:00:00Z" ? Date.parse(time) : NaN;
  return Number.isNaN(thenMs) ? "<unknown>" : new Duration(nowMs - thenMs);
}

export { at };

export function textAt(object: unknown, path: string, absent = ""): string {
  const value = at(object, path);
  return typeof value === "string" ? value : absent;
}

export function integerAt(object: unknown, path: string): number {
  const value = at(object, path);
  return typeof value === "number" ? value : 0;
}

export function itemsAt(object: unknown, path: string): readonly unknown[] {
  const value = at(object, path);
  return Array.isArray(value) ? value : [];
}

export function textsAt(object: unknown, path: string): string[] {
  return itemsAt(object, path).filter((item) => typeof item === "string");
}

export function countOf(object: unknown, path: string): number {
  const value = at(object, path);
  return typeof value === "object" && value !== null ? Object.keys(value).length : 0;
}

/** The text of a label or an annotation, whose keys have dots. */
export function entryAt(object: unknown, path: string, key: string): string | undefined {
  const entries = at(object, path);
  const value = isRecord(entries) && Object.hasOwn(entries, key) ? entries[key] : undefined;
  return typeof value === "string" ? value : undefined;
}

/** The text of a number or of a text, such as a quantity or an `IntOrString`. */
export function scalarText(value: unknown, absent: string): string {
  return typeof value === "string" || typeof value === "number" ? String(value) : absent;
}

export function isConditionTrue(object: unknown, type: string): boolean {
  const found = itemsAt(object, "status.conditions").find((condition) => at(condition, "type") === type);
  return at(found, "status") === "True";
}

/** `key=value` pairs in the order of their text. Mirrors apimachinery's `FormatLabels`. */
function labelsText(object: unknown, path: string): string {
  const labels = at(object, path);
  const pairs = isRecord(labels) ? Object.entries(labels).map(([key, value]) => `${key}=${value}`) : [];
  return pairs.sort().join(",") || "<none>";
}

/** The label selector at a path. Mirrors apimachinery's `FormatLabelSelector`. */
export function selectorText(object: unknown, path: string, invalid = "<error>"): string {
  try {
    return labelSelectorFromSpec(at(object, path) as LabelSelectorSpec | undefined).toString();
  } catch {
    return invalid;
  }
}

export function ofContainers(object: unknown, template: string, field: "name" | "image"): string {
  return itemsAt(object, `${template}.spec.containers`).map((container) => textAt(container, field)).join(
    ",",
  );
}

/** The first items, and how many more there are. */
export function firstOf(items: readonly string[], { most, separator = "," }: {
  readonly most: number;
  readonly separator?: string;
}): string {
  const shown = items.slice(0, most).join(separator);
  return items.length > most ? `${shown} + ${items.length - most} more...` : shown;
}
