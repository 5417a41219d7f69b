/** Reads fields of objects of any shape. */

import { labelSelectorFromSpec, type LabelSelectorSpec } from "../../meta/labels.ts";
import { valueAt as at } from "../../protocol/selectable_fields.ts";
import { isRecord } from "../../util/json.ts";

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

export function conditionOf(object: unknown, type: string, path = "status.conditions"): unknown {
  return itemsAt(object, path).find((condition) => at(condition, "type") === type);
}

/** Whether the first condition of a type is true. */
export function isConditionTrue(object: unknown, type: string): boolean {
  return at(conditionOf(object, type), "status") === "True";
}

/** `key=value` pairs in the order of their text. Mirrors apimachinery's `FormatLabels`. */
export function labelsText(object: unknown, path: string): string {
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

/** One field of all containers of a pod template. */
export function ofContainers(object: unknown, template: string, field: "name" | "image"): string {
  return itemsAt(object, `${template}.spec.containers`).map((container) => textAt(container, field)).join(
    ",",
  );
}

/** The first items, and how many more there are. */
export function firstOf(items: readonly string[], { most, all = items.length, separator = "," }: {
  readonly most: number;
  readonly all?: number;
  readonly separator?: string;
}): string {
  const shown = items.slice(0, most).join(separator);
  return items.length > most || all > items.length ? `${shown} + ${all - most} more...` : shown;
}
