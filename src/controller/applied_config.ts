/**
 * Whether an object already is as a configuration that is to be
 * applied to it says, so that no request is needed.
 *
 * The server changes what it is given (defaults, quantities in their canonical form, lists that others add
 * to), so an object is compared with what the server answered to the same configuration before. Before the
 * first answer its managed fields tell: which fields this manager has applied, no more and no fewer.
 */

import type { KubernetesObject } from "../meta/object.ts";
import { isRecord, isSameJson } from "../util/json.ts";

/** What each controller has applied last, by key of the object, while the object is there. */
export class AppliedConfigs {
  readonly #byManager = new Map<string, Map<string, string>>();

  get(manager: string, key: string): string | undefined {
    return this.#byManager.get(manager)?.get(key);
  }

  /** Remembers a configuration and what the server made of it. */
  set(manager: string, key: string, applied: string): void {
    let byKey = this.#byManager.get(manager);
    if (byKey === undefined) this.#byManager.set(manager, byKey = new Map());
    byKey.set(key, applied);
  }

  forget(key: string): void {
    for (const byKey of this.#byManager.values()) byKey.delete(key);
  }
}

/** What is remembered of an apply: the configuration, and what the answer had in its place. */
export function appliedConfig(config: KubernetesObject, answer: KubernetesObject): string {
  return JSON.stringify([answer.metadata?.uid, config, inPlaceOf(config, answer)]);
}

/**
 * Whether an object is as the configuration says.
 *
 * @param remembered What {@linkcode appliedConfig} made of the last apply; `undefined` if there is none.
 */
export function isApplied(
  config: KubernetesObject,
  live: KubernetesObject,
  { manager, remembered }: { readonly manager: string; readonly remembered: string | undefined },
): boolean {
  if (remembered !== undefined) return remembered === appliedConfig(config, live);
  const fields = fieldsAppliedBy(manager, live);
  const { apiVersion: _1, kind: _2, metadata, ...rest } = config;
  const { name: _3, namespace: _4, ...settable } = metadata ?? {};
  const applied = Object.keys(settable).length === 0 ? rest : { ...rest, metadata: settable };
  return fields !== undefined && isCovered(applied, fields, live);
}

/** The part of a value that is where a configuration has something; lists as a whole. */
function inPlaceOf(config: unknown, value: unknown): unknown {
  if (!isRecord(config) || !isRecord(value)) return value;
  const part = new Map<string, unknown>();
  for (const name of Object.keys(config)) {
    if (config[name] !== undefined && Object.hasOwn(value, name)) {
      part.set(name, inPlaceOf(config[name], value[name]));
    }
  }
  return Object.fromEntries(part); // keeps a field named __proto__ a field
}

/** A set of fields, as `metadata.managedFields[].fieldsV1` writes it. */
type Fields = Readonly<Record<string, unknown>>;

function fieldsAppliedBy(manager: string, live: KubernetesObject): Fields | undefined {
  for (const entry of live.metadata?.managedFields ?? []) {
    if (!isRecord(entry) || entry.manager !== manager || entry.operation !== "Apply" || entry.subresource) {
      continue;
    }
    return isRecord(entry.fieldsV1) ? entry.fieldsV1 : undefined;
  }
  return undefined;
}

/**
 * Whether a configuration has the fields of a set and no others, and an object has its values there.
 *
 * @see https://kubernetes.io/docs/reference/using-api/server-side-apply/
 */
function isCovered(config: unknown, fields: Fields, live: unknown): boolean {
  const names = Object.keys(fields).filter((name) => name !== ".");
  if (names.length === 0) return isSameJson(config, live); // a leaf, or a value that is replaced as a whole
  if (Array.isArray(config)) {
    if (!Array.isArray(live) || names.length !== config.length) return false;
    return config.every((element) => {
      const name = names.find((name) => isElement(element, name));
      if (name === undefined) return false;
      const there = live.find((other) => isElement(other, name));
      const inside = fields[name];
      return there !== undefined && isRecord(inside) && isCovered(element, withoutKey(inside, name), there);
    });
  }
  if (!isRecord(config) || !isRecord(live)) return false;
  const set = Object.keys(config).filter((name) => config[name] !== undefined);
  if (set.length !== names.length) return false;
  return set.every((name) => {
    const inside = fields[`f:${name}`];
    return isRecord(inside) && isCovered(config[name], inside, live[name]);
  });
}

/** Whether an element of a list is the one that a set of fields names, by its keys or by its value. */
function isElement(element: unknown, name: string): boolean {
  const text = name.slice(2);
  if (name.startsWith("v:")) return JSON.stringify(element) === text;
  if (!name.startsWith("k:") || !isRecord(element)) return false;
  const keys: unknown = JSON.parse(text);
  return isRecord(keys) &&
    Object.entries(keys).every(([key, value]) => element[key] === value);
}

// An element that is named by its value has no fields.
function withoutKey(fields: Fields, name: string): Fields {
  return name.startsWith("v:") ? {} : fields;
}
