/** Columns and printers of Tables. */

import type { KubernetesObject } from "../../meta/object.ts";
import { at, countOf, integerAt, textAt } from "./fields.ts";
import { since } from "./human_duration.ts";

export interface Column {
  readonly name: string;
  readonly type: string;
  readonly format: string;
  readonly description: string;
  /** 0: always shown; 1: shown in wide output. */
  readonly priority: number;
}

export interface Printer {
  readonly columns: readonly Column[];
  cells(object: KubernetesObject, nowMs: number): unknown[];
  /** The conditions of a row: whether its object has run to completion. */
  conditions?(object: KubernetesObject): unknown[] | undefined;
}

export type Cell = (object: KubernetesObject, nowMs: number) => unknown;

export type CellColumn = readonly [
  name: string,
  description: string,
  cell: Cell,
  more?: Partial<Pick<Column, "type" | "format" | "priority">>,
];

const TEXT = { type: "string", format: "", priority: 0 };

/** Makes a printer; a cell that cannot be computed is `<unknown>`. */
export function printer(...columns: readonly CellColumn[]): Printer {
  return {
    columns: columns.map(([name, description, , more]) => ({ ...TEXT, name, description, ...more })),
    cells: (object, nowMs) =>
      columns.map(([, , cell]) => {
        // Objects of an unexpected shape must not keep their list from being shown.
        try {
          return cell(object, nowMs);
        } catch {
          return "<unknown>";
        }
      }),
  };
}

export const WIDE = { priority: 1 } as const;
export const INTEGER = { type: "integer" } as const;
export const BOOLEAN = { type: "boolean" } as const;

export const text = (path: string, absent = ""): Cell => (object) => textAt(object, path, absent);
export const integer = (path: string): Cell => (object) => integerAt(object, path);
export const count = (path: string): Cell => (object) => countOf(object, path);
export const flag = (path: string, absent = false): Cell => (object) => {
  const value = at(object, path);
  return typeof value === "boolean" ? value : absent;
};
export const ageAt = (path: string, absent = "<unknown>"): Cell => (object, nowMs) => {
  const value = at(object, path);
  return value === undefined || value === null ? absent : since(value, nowMs);
};

/** The name: the first column of almost every Table. */
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
];

export const CREATED_AT: CellColumn = [
  "Created At",
  "The time at which the API server created the object, in UTC.",
  text("metadata.creationTimestamp", "0001-01-01T00:00:00Z"),
  { type: "date" },
];
