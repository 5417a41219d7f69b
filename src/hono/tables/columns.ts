/** Columns and printers of Tables. */

import type { KubernetesObject } from "../../meta/object.ts";
import { at, countOf, integerAt, textAt } from "./fields.ts";
import { since } from "./human_duration.ts";

/** A column of a Table. */
export interface Column {
  readonly name: string;
  readonly type: string;
  readonly format: string;
  readonly description: string;
  /** 0: always shown; 1: shown in wide output. */
  readonly priority: number;
}

/** What a Table shows of one kind. */
export interface Printer {
  readonly columns: readonly Column[];
  /** The cells of a row. */
  cells(object: KubernetesObject, nowMs: number): unknown[];
  /** The conditions of a row: whether its object has run to completion. */
  conditions?(object: KubernetesObject): unknown[] | undefined;
}

/** Computes one cell. */
export type Cell = (object: KubernetesObject, nowMs: number) => unknown;

/** A column and its cell. */
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

/** For wide output only. */
export const WIDE = { priority: 1 } as const;
/** A column of integers. */
export const INTEGER = { type: "integer" } as const;
/** A column of booleans. */
export const BOOLEAN = { type: "boolean" } as const;

/** A cell of the text at a path. */
export const text = (path: string, absent = ""): Cell => (object) => textAt(object, path, absent);
/** A cell of the integer at a path; 0 if absent. */
export const integer = (path: string): Cell => (object) => integerAt(object, path);
/** A cell of the number of items or entries at a path. */
export const count = (path: string): Cell => (object) => countOf(object, path);
/** A cell of the boolean at a path. */
export const flag = (path: string, absent = false): Cell => (object) => {
  const value = at(object, path);
  return typeof value === "boolean" ? value : absent;
};
/** A cell of the age at a path. */
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

/** How long ago an object was created. */
export const AGE: CellColumn = [
  "Age",
  "The time since the API server created the object.",
  ageAt("metadata.creationTimestamp"),
];

/** When an object was created. */
export const CREATED_AT: CellColumn = [
  "Created At",
  "The time at which the API server created the object, in UTC.",
  text("metadata.creationTimestamp", "0001-01-01T00:00:00Z"),
  { type: "date" },
];
