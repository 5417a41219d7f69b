/**
 * The shared parts of Tables: columns and readable ages.
 * @module
 */

import type { KubernetesObject } from "../meta/object.ts";

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
  /** One cell per column. May throw on an object of another shape. */
  cells(object: KubernetesObject, nowMs: number): unknown[];
  /** The conditions of a row: whether its object has run to completion. */
  conditions?(object: KubernetesObject): unknown[] | undefined;
}

/** Makes a column; a priority of 1 keeps it for wide output. */
export function column(name: string, description: string, priority: 0 | 1 = 0): Column {
  return { name, type: "string", format: "", description, priority };
}

/** The first column of every Table. */
export const NAME_COLUMN: Column = {
  ...column("Name", "Name must be unique within a namespace."),
  format: "name",
};

/** The column of an object's age. */
export const AGE_COLUMN: Column = column(
  "Age",
  "The time since the object was created; it is set by the server, in UTC.",
);

/** How long ago an object was created, in two or three figures. */
export function age(object: KubernetesObject, nowMs: number): string {
  return since(object.metadata?.creationTimestamp, nowMs);
}

/** How long ago a time was, in two or three figures. Mirrors apimachinery's `HumanDuration`. */
export function since(time: string | null | undefined, nowMs: number): string {
  const thenMs = time ? Date.parse(time) : NaN;
  return Number.isNaN(thenMs) ? "<unknown>" : humanDuration(Math.trunc((nowMs - thenMs) / 1000));
}

function humanDuration(seconds: number): string {
  // Clocks of two machines may differ a little.
  if (seconds < -1) return "<invalid>";
  if (seconds < 0) return "0s";
  if (seconds < 120) return `${seconds}s`;
  const minutes = Math.trunc(seconds / 60);
  if (minutes < 10) return two(minutes, "m", seconds % 60, "s");
  if (minutes < 180) return `${minutes}m`;
  const hours = Math.trunc(minutes / 60);
  if (hours < 8) return two(hours, "h", minutes % 60, "m");
  if (hours < 48) return `${hours}h`;
  const days = Math.trunc(hours / 24);
  if (hours < 24 * 8) return two(days, "d", hours % 24, "h");
  if (days < 365 * 2) return `${days}d`;
  const years = Math.trunc(days / 365);
  return days < 365 * 8 ? two(years, "y", days % 365, "d") : `${years}y`;
}

function two(large: number, largeUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${large}${largeUnit}` : `${large}${largeUnit}${small}${smallUnit}`;
}
