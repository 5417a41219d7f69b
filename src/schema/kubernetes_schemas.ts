/**
 * The schemas of what every Kubernetes API server sends, whatever the kind. All objects are loose: fields that nobody
 * here knows are kept, and not looked at.
 *
 * Each is built when it is first asked for: building them costs more than a thousand validations, and a cache that never
 * meets a broken object needs none.
 * @module
 */

import * as z from "zod/mini";
import type { BookmarkObject } from "../meta/watch_event.ts";
import type { KubernetesObject, ListMeta } from "../meta/object.ts";
import type { Status } from "../meta/status.ts";
import type { Schema } from "./schema.ts";

/**
 * A list, with or without its items.
 *
 * @example
 * ```ts
 * import { type LooseList, validateList } from "@listwatch/cache/client";
 * const list: LooseList = validateList({ kind: "PodList", metadata: { resourceVersion: "7" }, items: [] }, '"pods"');
 * ```
 *
 * @category Decoding
 */
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
    metadata: object({ resourceVersion: nonEmptyText(), annotations: z.optional(texts()) }),
  });
}

/** What an ERROR event carries, and the body of a refusal. */
export function statusSchema(): Schema<Status> {
  return built.status ??= object({
    status: z.optional(text()),
    message: z.optional(text()),
    reason: z.optional(text()),
    code: z.optional(number()),
    details: z.optional(statusDetails()),
  });
}

/** The envelope of a list; its items are judged one by one, by {@linkcode objectSchema}. */
export function listSchema(): Schema<LooseList> {
  return built.list ??= object({ ...typeMeta(), metadata: listMeta() });
}

/** The envelope of an event; its object is judged by the schema that the event's type asks for. */
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
    namespace: z.optional(text()),
    uid: z.optional(text()),
    resourceVersion: z.optional(text()),
    creationTimestamp: z.optional(z.nullable(text())),
    deletionTimestamp: z.optional(z.nullable(text())),
    labels: z.optional(texts()),
    annotations: z.optional(texts()),
  });

const listMeta = () =>
  object({
    resourceVersion: z.optional(text()),
    continue: z.optional(text()),
    remainingItemCount: z.optional(number()),
  });

const statusDetails = () =>
  object({
    name: z.optional(text()),
    group: z.optional(text()),
    kind: z.optional(text()),
    uid: z.optional(text()),
    causes: z.optional(z.array(statusCause(), "must be an array")),
    retryAfterSeconds: z.optional(number()),
  });

const statusCause = () =>
  object({ reason: z.optional(text()), message: z.optional(text()), field: z.optional(text()) });

const typeMeta = () => ({ apiVersion: z.optional(text()), kind: z.optional(text()) });

// The messages are given here, as zod/mini comes without any.
const object = <S extends z.core.$ZodLooseShape>(shape: S) => z.looseObject(shape, "must be an object");
const text = () => z.string("must be a string");
const nonEmptyText = () => text().check(z.minLength(1, "must not be empty"));
const texts = () => z.record(z.string(), text(), "must be an object");
const number = () => z.number("must be a number");
