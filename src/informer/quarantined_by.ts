/**
 * The reports of objects that an informer could not take in.
 * @module
 */

import type { KeyFunc } from "../meta/keys.ts";
import type { Quarantined } from "../meta/list_watch.ts";
import { metaOf } from "../meta/object.ts";
import type { Quarantine } from "../reflector/quarantine.ts";
import { IndexFuncError } from "../store/errors.ts";
import type { OnTransformRejected } from "../store/transform.ts";

/** The report of an object that could not be stored. */
export function quarantinedBy(error: Error, object: unknown): Quarantined {
  const metadata = metaOf(object);
  const key = error instanceof IndexFuncError ? error.key : undefined;
  return {
    reason: error.message,
    path: "",
    ...(key === undefined ? {} : { key }),
    ...(metadata?.resourceVersion === undefined ? {} : { resourceVersion: metadata.resourceVersion }),
  };
}

/** Reports what a queue could not take in, and gives it what the store holds instead. */
export function rejecter<T>(
  keyFunc: KeyFunc,
  store: { getByKey(key: string): T | undefined },
  quarantine: Quarantine,
): OnTransformRejected<T> {
  return (error, object) => {
    let key: string | undefined;
    try {
      key = keyFunc(object);
    } catch {
      // it has none: the report says what is wrong
    }
    quarantine.add({ ...quarantinedBy(error, object), ...(key === undefined ? {} : { key }) });
    return key === undefined ? undefined : store.getByKey(key);
  };
}
