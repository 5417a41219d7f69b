/**
 * Which objects of a resource a request is about.
 * @module
 */

import type { FieldSelector } from "../meta/fields.ts";
import type { LabelSelector } from "../meta/labels.ts";
import { selectableFields } from "../protocol/selectable_fields.ts";
import type { StoredObject } from "./cluster_state.ts";
import type { ServedResource } from "./served_resources.ts";

/** Objects of one resource: those of a namespace, or of all, that match the selectors. */
export interface Selection {
  readonly resource: ServedResource;
  /** What the keys of all of them begin with. */
  readonly keyPrefix: string;
  /** Whether there is a selector. */
  readonly isNarrowed: boolean;
  /** Whether an object is in the namespace and matches the selectors. */
  matches(object: StoredObject): boolean;
}

/** What narrows a {@linkcode Selection}. */
export interface SelectionOptions {
  /** `""` or absent: all namespaces, or a cluster-scoped resource. */
  readonly namespace?: string;
  readonly labels?: LabelSelector;
  readonly fields?: FieldSelector;
}

/** Makes a {@linkcode Selection}. */
export function newSelection(resource: ServedResource, options: SelectionOptions): Selection {
  const { namespace = "", labels, fields } = options;
  const read = selectableFields(resource);
  return {
    resource,
    keyPrefix: namespace === "" ? "" : `${namespace}/`,
    isNarrowed: labels !== undefined || fields !== undefined,
    matches: (object) =>
      (namespace === "" || object.metadata.namespace === namespace) &&
      (labels === undefined || labels.matches(object.metadata.labels)) &&
      (fields === undefined || fields.matches(read(object))),
  };
}
