/** A view of nothing but some fields of objects. */

import type { KubernetesObject } from "../../meta/object.ts";
import type { ScreenFieldPath } from "../../protocol/screen_query.ts";
import { FieldCut } from "../../text/field_cut.ts";
import type { FieldPathSegment } from "../../text/field_path.ts";
import type { View } from "./requested_read.ts";

/** What identifies an object and its state: without it no reader could apply an event. */
const IDENTITY = ["name", "namespace", "uid", "resourceVersion"];

/** Shows some fields of what a view of whole objects shows, and the type and identity of each object. */
export function newFieldsView(
  view: View,
  fields: readonly ScreenFieldPath[],
  newCut: (paths: readonly (readonly FieldPathSegment[])[]) => FieldCut,
): View {
  const paths = fields.map(({ segments }) => segments);
  const hasMetadata = fields.some(({ text }) => text === "metadata");
  const identity = hasMetadata ? [] : IDENTITY.map((name) => ["metadata", name]);
  const besides = [["apiVersion"], ["kind"], ...identity];
  const cut = newCut([...besides, ...paths]);
  const cutObject = (object: KubernetesObject) => cut.object(object) as KubernetesObject;
  return {
    ...view,
    sharedAs: JSON.stringify([view.sharedAs, ...fields.map(({ text }) => text)]),
    one: (object) => view.one(cutObject(object)),
    item: (object) => view.item(cutObject(object)),
    event: (object) => view.event(cutObject(object)),
    cut,
    // Each event has another resourceVersion.
    shown: new FieldCut([...besides.filter((path) => path.at(-1) !== "resourceVersion"), ...paths]),
  };
}
