/** The differences between two states of an object. */

import { isRecord } from "../../../util/json.ts";

export interface FieldChange {
  readonly path: string;
  /** The value as JSON; `undefined` where the field is not there. */
  readonly before: string | undefined;
  readonly after: string | undefined;
}

const MOST = 50;
/** Fields that change with every write, or say who wrote. */
const SKIPPED: ReadonlySet<string> = new Set(["metadata.resourceVersion", "metadata.managedFields"]);
/** Members by which elements of an array are known in both states. */
const IDENTITIES = ["uid", "name", "type", "key", "ip"];

export function changesBetween(before: unknown, after: unknown): readonly FieldChange[] {
  const changes: FieldChange[] = [];
  compare(before, after, "", changes);
  return changes;
}

function compare(before: unknown, after: unknown, path: string, changes: FieldChange[]): void {
  if (changes.length >= MOST || before === after || SKIPPED.has(path)) return;
  if (isRecord(before) && isRecord(after)) {
    for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
      compare(before[name], after[name], below(path, name), changes);
    }
    return;
  }
  if (Array.isArray(before) && Array.isArray(after)) return compareElements(before, after, path, changes);
  const [old, now] = [textOf(before), textOf(after)];
  if (old !== now) changes.push({ path, before: old, after: now });
}

function compareElements(
  before: readonly unknown[],
  after: readonly unknown[],
  path: string,
  changes: FieldChange[],
): void {
  const identity = IDENTITIES.find((name) => isIdentity(before, name) && isIdentity(after, name));
  const keyed = (elements: readonly unknown[]) =>
    new Map(
      elements.map((element, i) =>
        identity === undefined
          ? [`${path}[${i}]`, element]
          : [`${path}[${identity}=${(element as Record<string, unknown>)[identity]}]`, element]
      ),
    );
  const [old, now] = [keyed(before), keyed(after)];
  for (const key of new Set([...old.keys(), ...now.keys()])) {
    compare(old.get(key), now.get(key), key, changes);
  }
}

function isIdentity(elements: readonly unknown[], name: string): boolean {
  const values = elements.map((element) => isRecord(element) ? element[name] : undefined);
  return values.every((value) => typeof value === "string") && new Set(values).size === values.length;
}

function below(path: string, name: string): string {
  if (!/^[A-Za-z_$][\w$-]*$/.test(name)) return `${path}[${JSON.stringify(name)}]`;
  return path === "" ? name : `${path}.${name}`;
}

function textOf(value: unknown): string | undefined {
  return value === undefined ? undefined : typeof value === "string" ? value : JSON.stringify(value);
}
