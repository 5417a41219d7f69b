/**
 * The schemas of what every API server sends, whatever the kind; unknown fields are kept unchecked. Each is
 * built at its first use: a cache that never receives a broken object needs none.
 */

import * as z from "zod/v4/core";
import type { BookmarkObject } from "../meta/list_watch.ts";
import type { KubernetesObject, ListMeta } from "../meta/object.ts";
import type { Status } from "../meta/status.ts";
import type { Schema } from "./schema.ts";

/** A list, with or without its items. */
export interface LooseList {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ListMeta;
}

/** An event of which nothing is known yet but that it is one. */
export interface LooseEvent {
  readonly type: string;
  readonly object: Readonly<Record<string, unknown>>;
}

/** An object that a cache can hold. */
export function objectSchema(): Schema<KubernetesObject> {
  return built.object ??= object({ ...typeMeta(), metadata: objectMeta() });
}

/** A bookmark: it has a resourceVersion, and not even a name. */
export function bookmarkSchema(): Schema<BookmarkObject> {
  return built.bookmark ??= object({
    ...typeMeta(),
    metadata: object({ resourceVersion: nonEmptyText(), annotations: optional(texts()) }),
  });
}

/** The schema of a Status: the object of an ERROR event, and the body of a refusal. */
export function statusSchema(): Schema<Status> {
  return built.status ??= object({
    status: optional(text()),
    message: optional(text()),
    reason: optional(text()),
    code: optional(number()),
    details: optional(statusDetails()),
  });
}

/** The envelope of a list; its items are validated one by one, by {@linkcode objectSchema}. */
export function listSchema(): Schema<LooseList> {
  return built.list ??= object({ ...typeMeta(), metadata: listMeta() });
}

/** The envelope of an event; its object is validated by the schema of the event type. */
export function eventSchema(): Schema<LooseEvent> {
  return built.event ??= object({ type: text(), object: object({}) });
}

const built: {
  object?: Schema<KubernetesObject>;
  bookmark?: Schema<BookmarkObject>;
  status?: Schema<Status>;
  list?: Schema<LooseList>;
  event?: Schema<LooseEvent>;
} = {};

// Metadata that a cache can work with: a name, and the fields that keys, versions and selectors read.
const objectMeta = () =>
  object({
    name: nonEmptyText(),
    namespace: optional(text()),
    uid: optional(text()),
    resourceVersion: optional(text()),
    creationTimestamp: optional(nullable(text())),
    deletionTimestamp: optional(nullable(text())),
    labels: optional(texts()),
    annotations: optional(texts()),
  });

const listMeta = () =>
  object({
    resourceVersion: optional(text()),
    continue: optional(text()),
    remainingItemCount: optional(number()),
  });

const statusDetails = () =>
  object({
    name: optional(text()),
    group: optional(text()),
    kind: optional(text()),
    uid: optional(text()),
    causes: optional(array(statusCause())),
    retryAfterSeconds: optional(number()),
  });

const statusCause = () =>
  object({ reason: optional(text()), message: optional(text()), field: optional(text()) });

const typeMeta = () => ({ apiVersion: optional(text()), kind: optional(text()) });

// The constructor of zod's core: 1 KB less in a bundle than `zod/mini`, and 10 modules less to open. Its
// constructors are not generic.
const object = <S extends z.$ZodLooseShape>(shape: S) =>
  new z.$ZodObject({
    type: "object",
    shape,
    catchall: new z.$ZodUnknown({ type: "unknown" }),
    error: () => "must be an object",
  }) as z.$ZodObject<S, z.$loose>;
const text = (...checks: z.$ZodCheck<string>[]) =>
  new z.$ZodString({ type: "string", checks, error: () => "must be a string" }) as z.$ZodString<string>;
const nonEmptyText = () => text(z._minLength(1, "must not be empty"));
const number = () =>
  new z.$ZodNumber({ type: "number", error: () => "must be a number" }) as z.$ZodNumber<number>;
const texts = () =>
  new z.$ZodRecord({
    type: "record",
    keyType: text(),
    valueType: text(),
    error: () => "must be an object",
  }) as z.$ZodRecord<z.$ZodString<string>, z.$ZodString<string>>;
const array = <E extends z.$ZodType>(element: E) =>
  new z.$ZodArray({ type: "array", element, error: () => "must be an array" }) as z.$ZodArray<E>;
const optional = <T extends z.$ZodType>(innerType: T) =>
  new z.$ZodOptional({ type: "optional", innerType }) as z.$ZodOptional<T>;
const nullable = <T extends z.$ZodType>(innerType: T) =>
  new z.$ZodNullable({ type: "nullable", innerType }) as z.$ZodNullable<T>;
