/**
 * Which objects a list or a watch is about.
 * @module
 */

import type { FieldSelector } from "../meta/fields.ts";
import type { LabelSelector } from "../meta/labels.ts";
import type { KubernetesObject } from "../meta/object.ts";
import type { GroupVersionResource } from "../meta/resource.ts";
import { selectableFields } from "../meta/selectable_fields.ts";

/** What narrows a list or a watch. */
export interface Selectors {
  /** Only this namespace; all of them where empty. */
  readonly namespace: string;
  readonly labels: LabelSelector | undefined;
  readonly fields: FieldSelector | undefined;
}

/** Whether an object is among those that were asked for. */
export type Selection = (object: KubernetesObject) => boolean;

/** A test for the objects of a resource; `undefined` where all of them are meant. */
export function newSelection(of: GroupVersionResource, selectors: Selectors): Selection | undefined {
  const { namespace, labels, fields } = selectors;
  if (namespace === "" && labels === undefined && fields === undefined) return undefined;
  const fieldsOf = selectableFields(of);
  return (object) => {
    const metadata = object.metadata;
    if (namespace !== "" && metadata?.namespace !== namespace) return false;
    if (labels !== undefined && !labels.matches(metadata?.labels)) return false;
    return fields === undefined || fields.matches(fieldsOf(object));
  };
}
