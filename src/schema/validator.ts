/** Validates lists, events and objects. */

import type { Quarantined, WatchItem } from "../meta/list_watch.ts";
import { checkList, eventCheck, objectCheck, type ValidatorOptions } from "./checks.ts";
import * as schemas from "./kubernetes_schemas.ts";

/**
 * Makes the validator of a watch's events. What it accepts is the decoded frame itself, never a copy of it,
 * with all its fields; what it refuses becomes an `QUARANTINED` item that says what is wrong and where
 * (`object.metadata.name`).
 *
 * - ADDED, MODIFIED: the metadata, then the user's schema.
 * - DELETED: the metadata alone. A delete that was held back would leave a ghost in the cache.
 * - BOOKMARK: it must have a resourceVersion.
 * - ERROR: never refused, so that no error is lost. If its object is no Status, one of code 500 says so.
 * - A `Table` is refused, as client-go does: its rows are no objects.
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
 * @param subject What is listed, for error texts: `"pods" in "default"`.
 *
 * @throws {StatusError} It is a Status that says Failure.
 * @throws {DecodeError} It is a Table, or no list.
 */
export function validateList(
  list: Readonly<Record<string, unknown>>,
  subject: string,
): schemas.LooseList {
  return checkList(schemas, list, subject);
}
