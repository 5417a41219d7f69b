/**
 * Whether an object already is as a configuration that is to be
 * applied to it says, so that no request is needed.
 *
 * The server changes what it is given (defaults, quantities in their canonical form, lists that others add
 * to), so an object is compared with the server's earlier answer to the same configuration. Before the first
 * answer its managed fields tell: which fields this manager has applied, no more and no fewer.
 */

import type { KubernetesObject } from "../meta/object.ts";
import { isMetadataOnly } from "./objects.ts";
import { getOrMake } from "../util/collections.ts";
import { isRecord, isSameJson } from "../util/json.ts";

/** The last applied configuration of each controller, by key of the object, while the object is there. */
export class AppliedConfigs {
  readonly #byManager = new Map<string, Map<string, string>>();

  get(manager: string, key: string): string | undefined {
    return this.#byManager.get(manager)?.get(key);
  }

  /** Remembers a configuration and what the server made of it. */
  set(manager: string, key: string, applied: string): void {
    getOrMake(this.#byManager, manager, () => new Map()).set(key, applied);
  }

  forget(key: string): void {
    for (const byKey of this.#byManager.values()) byKey.delete(key);
  }
}

/** The memory of an apply: the configuration, and the values that the answer had in its place. */
export function appliedConfig(config: KubernetesObject, answer: KubernetesObject): string {
  return JSON.stringify([answer.metadata?.uid, config, inPlaceOf(config, answer)]);
}

/**
 * Whether an object is as the configuration says.
 *
 * @param remembered The result of {@linkcode appliedConfig} for the last apply; `undefined` if there is none.
 */
export function isApplied(
  config: KubernetesObject,
  live: KubernetesObject,
  { manager, remembered }: { readonly manager: string; readonly remembered: string | undefined },
): boolean {
  const { apiVersion: _1, kind: _2, metadata, ...rest } = config;
  // The rest of such an object is neither in the cache nor in answers: it may have changed.
  if (isMetadataOnly(live) && Object.values(rest).some((value) => value !== undefined)) return false;
  if (remembered !== undefined) return remembered === appliedConfig(config, live);
  const fields = fieldsAppliedBy(manager, live);
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
  let left = 0;
  for (const name in fields) if (name !== ".") left++;
  if (left === 0) return isSameJson(config, live); // a leaf, or a value that is replaced as a whole
  if (Array.isArray(config)) return Array.isArray(live) && areElementsCovered(config, fields, live);
  if (!isRecord(config) || !isRecord(live)) return false;
  for (const name of Object.keys(config)) {
    const value = config[name];
    if (value === undefined) continue;
    const inside = fields[`f:${name}`];
    if (!isRecord(inside) || !isCovered(value, inside, live[name])) return false;
    left--;
  }
  return left === 0;
}

/** As `isCovered`, for a list whose elements have names: their keys, or their values. */
function areElementsCovered(
  config: readonly unknown[],
  fields: Fields,
  live: readonly unknown[],
): boolean {
  const names = Object.keys(fields).filter((name) => name !== ".");
  if (names.length !== config.length) return false;
  const isNamed = names.map(elementTest);
  return config.every((element) => {
    const at = isNamed.findIndex((test) => test(element));
    if (at < 0) return false;
    const there = live.find(isNamed[at]);
    // An element that is named by its value has no fields.
    const inside = names[at].startsWith("v:") ? {} : fields[names[at]];
    return isRecord(inside) && isCovered(element, inside, there);
  });
}

/** The test whether an element of a list is the one of this name in a set of fields. */
function elementTest(name: string): (element: unknown) => boolean {
  const text = name.slice(2);
  if (name.startsWith("v:")) return (element) => JSON.stringify(element) === text;
  const keys: unknown = name.startsWith("k:") ? JSON.parse(text) : undefined;
  if (!isRecord(keys)) return () => false;
  const wanted = Object.entries(keys);
  return (element) => isRecord(element) && wanted.every(([key, value]) => element[key] === value);
}
