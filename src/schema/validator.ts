/** Validates lists, events and objects. */

import type { Quarantined, WatchItem } from "../meta/list_watch.ts";
import { checkList, eventCheck, objectCheck, type ValidatorOptions } from "./checks.ts";
import * as schemas from "./kubernetes_schemas.ts";

/**
 * Makes the validator of a watch's events. An accepted event is the decoded frame itself, never a copy of it,
 * with all its fields; a refused one becomes a `QUARANTINED` item that says what is wrong and where
 * (`object.metadata.name`).
 *
 * - ADDED, MODIFIED: the metadata, then the user's schema.
 * - DELETED: the metadata alone. A delete that was held back would leave a ghost in the cache.
 * - BOOKMARK: it must have a resourceVersion.
 * - ERROR: never refused, so that no error is lost. If its object is no Status, one of code 500 says so.
 * - A `Table` is refused, as client-go does: its rows are no objects.
 *
 * @example
 * ```ts
 * import { newEventValidator } from "@listwatch/cache/client";
 * const validate = newEventValidator();
 * const item = validate({ type: "ADDED", object: { metadata: { name: 42 } } });
 * if (item.type === "QUARANTINED") console.log(item.quarantined.path); // object.metadata.name
 * ```
 *
 * @throws {TypeError} (by the validator) The schema is asynchronous.
 */
export function newEventValidator<T>(options: ValidatorOptions<T> = {}): (frame: unknown) => WatchItem<T> {
  return eventCheck(schemas, options);
}

/**
 * Makes the validator of single objects: list items, and what `get` or `create` return. It answers what is
 * wrong, or `undefined`. The path it is given is put before the one of what is wrong.
 *
 * @example
 * ```ts
 * import { newObjectValidator } from "@listwatch/cache/client";
 * const validate = newObjectValidator();
 * console.log(validate({ metadata: { name: "web-1" } }, "items[0]")); // undefined
 * console.log(validate({ metadata: { name: "" } }, "items[1]")?.path); // items[1].metadata.name
 * ```
 *
 * @throws {TypeError} (by the validator) The schema is asynchronous.
 */
export function newObjectValidator<T>(
  options: ValidatorOptions<T> = {},
): (value: unknown, path: string) => Quarantined | undefined {
  return objectCheck(schemas, options);
}

/**
 * Validates the envelope of a list, and returns it typed.
 *
 * @param subject The listed objects, for error texts: `"pods" in "default"`.
 *
 * @example
 * ```ts
 * import { validateList } from "@listwatch/cache/client";
 * const { metadata } = validateList({ kind: "PodList", metadata: { resourceVersion: "7" }, items: [] }, '"pods"');
 * console.log(metadata.resourceVersion); // 7
 * ```
 *
 * @throws {StatusError} The value is a Status of a failure.
 * @throws {DecodeError} The value is a Table, or no list.
 */
export function validateList(
  list: Readonly<Record<string, unknown>>,
  subject: string,
): schemas.LooseList {
  return checkList(schemas, list, subject);
}
