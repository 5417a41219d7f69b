/**
 * The JSON forms of values, and back.
 * @module
 */

import {
  DeletedFinalStateUnknown,
  deletionHandlingMetaNamespaceKey,
  type Indexers,
  type KeyFunc,
  metaNamespaceIndex,
  metaNamespaceKey,
} from "@listwatch/cache";
import { ExplicitKey, NoMetaError } from "@listwatch/cache/store";
import { type CaseHolding, newHolding } from "../holdings.ts";
import { canonical, type Step } from "./harness.ts";

/** A value as a case holds it. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };

type JsonObject = { readonly [name: string]: Json };

/** The value that a JSON form means. */
export function decodeValue(json: Json): unknown {
  if (json === null || typeof json !== "object" || Array.isArray(json)) {
    throw new Error(`not the form of a value: ${JSON.stringify(json)}`);
  }
  const form = json as JsonObject;
  if ("$raw" in form) return form.$raw;
  if ("$key" in form) return new ExplicitKey(form.$key as string);
  if ("$tombstone" in form) {
    const { key, object } = form.$tombstone as JsonObject;
    return new DeletedFinalStateUnknown(key as string, object === null ? undefined : decodeValue(object));
  }
  return form;
}

/** The values that a queue has for the JSON forms of a case: those objects, as a holding holds them. */
export interface Values {
  /** The key function, for the values. */
  readonly keyFunc: KeyFunc;
  /** What the queue runs on objects: the transform, then what holds them. */
  readonly transform?: (value: unknown) => unknown;
  readonly decode: (json: Json) => unknown;
  readonly encode: (value: unknown) => Json;
}

/**
 * Makes them for a case with these keys. With a transform the queue
 * receives objects, and holds what it makes of them.
 */
export function valuesOf(
  holding: CaseHolding,
  keyFunc: KeyFunc,
  transform?: (value: unknown) => unknown,
): Values {
  const held = newHolding(holding, keyFunc);
  if (held === undefined) return { keyFunc, transform, decode: decodeValue, encode: encodeValue };
  const converted = (value: unknown, convert: (object: unknown) => unknown): unknown =>
    value instanceof DeletedFinalStateUnknown
      ? new DeletedFinalStateUnknown(value.key, converted(value.object, convert))
      : convert(value);
  return {
    keyFunc: held.keyFunc,
    ...(transform && { transform: held.heldTransform(transform) }),
    decode: (json) =>
      transform === undefined
        ? converted(decodeValue(json), (object) => held.hold(object))
        : decodeValue(json),
    encode: (value) => encodeValue(converted(value, (object) => held.open(object))),
  };
}

/** Decodes an array of values. */
export function decodeValues(json: Json): unknown[] {
  return (json as readonly Json[]).map(decodeValue);
}

/** The JSON form of a value; `null` for `undefined`, which is how "absent" is written. */
export function encodeValue(value: unknown): Json {
  if (value === undefined) return null;
  if (value instanceof ExplicitKey) return { $key: value.key };
  if (value instanceof DeletedFinalStateUnknown) {
    return { $tombstone: { key: value.key, object: encodeValue(value.object) } };
  }
  if (typeof value === "object" && value !== null) return value as Json;
  return { $raw: value as Json };
}

/** Encodes the payload and the type of a delta. */
export function encodeDelta(
  delta: { readonly type: string; readonly object: unknown },
  encode: (value: unknown) => Json,
): Json {
  switch (delta.type) {
    case "ReplacedAll": {
      const { resourceVersion, objects } = delta.object as { resourceVersion: string; objects: unknown[] };
      return {
        type: delta.type,
        object: { $replacedAll: { resourceVersion, objects: objects.map(encode) } },
      };
    }
    case "SyncAll":
      return { type: delta.type, object: { $syncAll: true } };
    case "Bookmark": {
      const { resourceVersion } = delta.object as { resourceVersion: string };
      return { type: delta.type, object: { $bookmark: { resourceVersion } } };
    }
    default:
      return { type: delta.type, object: encode(delta.object) };
  }
}

/** The key function that a case names. */
export function keyFuncOf(name: string): KeyFunc {
  switch (name) {
    case "metaNamespace":
      return metaNamespaceKey;
    case "deletionHandling":
      return deletionHandlingMetaNamespaceKey;
    case "name":
      return (value) => {
        const metadata = (value as { metadata?: { name?: string } } | null)?.metadata;
        if (typeof value !== "object" || metadata === undefined) throw new NoMetaError(value);
        return metadata.name ?? "";
      };
    default:
      throw new Error(`unknown key function ${JSON.stringify(name)}`);
  }
}

/** An object as far as the functions below look at it. */
interface CaseObject {
  readonly metadata?: { readonly name?: string; readonly labels?: Readonly<Record<string, string>> };
  readonly spec?: { readonly nodeName?: string; readonly users?: readonly string[] };
}

const indexFuncs: Indexers<unknown> = {
  namespace: metaNamespaceIndex,
  byNode: (value) => {
    const { spec } = asCaseObject(value);
    return spec?.nodeName === undefined ? [] : [spec.nodeName];
  },
  byUser: (value) => asCaseObject(value).spec?.users ?? [],
  byApp: (value) => [asCaseObject(value).metadata?.labels?.app ?? ""],
  byName: (value) => [asCaseObject(value).metadata?.name ?? ""],
};

function asCaseObject(value: unknown): CaseObject {
  if (typeof value !== "object" || value === null || !("metadata" in value)) throw new NoMetaError(value);
  return value as CaseObject;
}

/** The index functions that a case names. */
export function indexersOf(names: readonly string[]): Indexers<unknown> {
  return Object.fromEntries(names.map((name) => {
    if (!Object.hasOwn(indexFuncs, name)) throw new Error(`unknown index ${JSON.stringify(name)}`);
    return [name, indexFuncs[name]];
  }));
}

/** The one transform function that cases install. */
export function transform(value: unknown): unknown {
  if (typeof value !== "object" || value === null || !("metadata" in value)) return value;
  const { spec: _, ...rest } = value as CaseObject;
  switch (rest.metadata?.labels?.transform) {
    case "fail":
      throw new Error("the transform fails as the case says");
    case "raw":
      return `raw:${rest.metadata?.name ?? ""}`;
    default:
      return rest;
  }
}

/** What the consumer of a queue knows: the map that `options.knownObjects` and the ops `known.*` describe. */
export class KnownObjects {
  readonly #objects = new Map<string, unknown>();
  readonly #values: Values;

  constructor(objects: readonly Json[], values: Values) {
    this.#values = values;
    for (const object of objects) this.#add(object);
  }

  /** Every key, ascending. */
  listKeys(): string[] {
    return [...this.#objects.keys()].sort();
  }

  /** The object of a key, or `undefined`. */
  getByKey(key: string): unknown {
    return this.#objects.get(key);
  }

  /** Performs an op `known.*`. */
  perform(step: Step): void {
    const { object, key } = step as { readonly object?: Json; readonly key?: string };
    switch (step.op) {
      case "known.add":
        return this.#add(object!);
      case "known.delete":
        this.#objects.delete(key!);
        return;
      case "known.addKeyOnly":
        this.#objects.set(key!, undefined);
        return;
      default:
        throw new Error(`unknown op ${JSON.stringify(step.op)}`);
    }
  }

  #add(json: Json): void {
    const added = this.#values.decode(json);
    this.#objects.set(this.#values.keyFunc(added), added);
  }
}

/** What a case's process callback says about an item by throwing. */
export class ProcessError extends Error {
  readonly code = "ProcessError";
}

const EMPTY_MEANS_MISSING = ["name", "namespace", "resourceVersion", "uid"];

/**
 * Whether two JSON forms mean the same: as `isSame`, but a piece of metadata that is the
 * empty string is the same as one that is missing.
 */
export function isSameValue(expected: unknown, actual: unknown): boolean {
  return canonical(withoutEmpty(expected)) === canonical(withoutEmpty(actual));
}

function withoutEmpty(json: unknown): unknown {
  if (Array.isArray(json)) return json.map(withoutEmpty);
  if (typeof json !== "object" || json === null) return json;
  return Object.fromEntries(
    Object.entries(json).map((
      [name, value],
    ) => [name, name === "metadata" ? trimmed(value) : withoutEmpty(value)]),
  );
}

function trimmed(metadata: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(metadata).filter(([name, value]) => value !== "" || !EMPTY_MEANS_MISSING.includes(name)),
  );
}

const STRINGS_WITHOUT_ORDER = ["listKeys", "listIndexFuncValues", "getIndexers"];
const OBJECTS_WITHOUT_ORDER = ["list", "index", "byIndex", "popRun"];

/**
 * Brings a step's result into the order in which it is compared, if it has none of its own: strings by code
 * unit, objects by key; a `$raw` value, which has no key, by its text. Everything else stays as it is.
 */
export function withoutOrder(step: Step, value: unknown, keyFunc: KeyFunc): unknown {
  if (!Array.isArray(value)) return value;
  if (STRINGS_WITHOUT_ORDER.includes(step.op)) return value.slice().sort();
  return OBJECTS_WITHOUT_ORDER.includes(step.op) ? sortedByKey(value, keyFunc) : value;
}

function sortedByKey(values: readonly Json[], keyFunc: KeyFunc): Json[] {
  const keyOf = (json: Json): string => {
    if (json !== null && typeof json === "object" && "$raw" in json) return JSON.stringify(json);
    const value = decodeValue(json);
    return value instanceof DeletedFinalStateUnknown ? value.key : keyFunc(value);
  };
  return values
    .map((json) => ({ json, key: keyOf(json) }))
    .sort((a, b) => a.key < b.key ? -1 : a.key > b.key ? 1 : 0)
    .map(({ json }) => json);
}
