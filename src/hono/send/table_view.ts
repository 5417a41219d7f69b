/** Tables, as command-line clients show them. */

import { partialMetadata } from "../../protocol/representations.ts";
import type { ApiResource } from "../../protocol/api_resource.ts";
import type { KubernetesObject, ListMeta } from "../../meta/object.ts";
import type { ScreenFieldPath } from "../../protocol/screen_query.ts";
import { newRowCut } from "../request/fields_views.ts";
import type { Column, Printer } from "../tables/columns.ts";
import type { TextAround, View } from "../request/requested_read.ts";
import { partialMetadataText, withType, withTypeText } from "./view_text.ts";

/** Serves objects as rows of a Table. In a watch only the first event has the columns. */
export function newTableView(
  resource: ApiResource,
  { apiVersion, includeObject, nowMs, printer, fields }: {
    readonly apiVersion: string;
    readonly includeObject: "None" | "Metadata" | "Object";
    readonly nowMs: () => number;
    readonly printer: Printer;
    /** The only fields of the objects in its rows; all by default. */
    readonly fields?: readonly ScreenFieldPath[];
  },
): View {
  const cut = fields && newRowCut(fields);
  let columnsAreSent = false;

  const cellsOf = (object: KubernetesObject) => {
    const conditions = printer.conditions?.(object);
    return { cells: printer.cells(object, nowMs()), ...(conditions && { conditions }) };
  };
  const row = (object: KubernetesObject) => ({ ...cellsOf(object), object: rowObject(object) });
  const rowObject = (whole: KubernetesObject) => {
    if (includeObject === "None") return null;
    const object = cut === undefined ? whole : cut.object(whole) as KubernetesObject;
    return includeObject === "Object" ? withType(resource, object) : partialMetadata(object, apiVersion);
  };
  const table = (metadata: ListMeta, columns: readonly Column[] | null) => ({
    kind: "Table",
    apiVersion,
    metadata,
    columnDefinitions: columns,
  });
  const nextColumns = () => {
    const columns = columnsAreSent ? null : printer.columns;
    columnsAreSent = true;
    return columns;
  };
  const event = (object: KubernetesObject) => ({
    ...table(versionOf(object), nextColumns()),
    rows: [row(object)],
  });
  const rowText: TextAround = (object, json) => {
    const own = includeObject === "Object"
      ? withTypeText(resource, json)
      : partialMetadataText(json, apiVersion);
    if (own === undefined) return undefined;
    return `${JSON.stringify(cellsOf(object)).slice(0, -1)},"object":${own}}`;
  };
  const tableText = (columnsOf: () => readonly Column[] | null): TextAround => (object, json) => {
    const row = rowText(object, json);
    if (row === undefined) return undefined;
    return `${JSON.stringify(table(versionOf(object), columnsOf())).slice(0, -1)},"rows":[${row}]}`;
  };
  return {
    // A row has the age, and the first one of a watch comes with columns.
    sharedAs: undefined,
    itemsSharedAs: JSON.stringify([apiVersion, includeObject, ...(fields ?? []).map(({ text }) => text)]),
    one: (object) => ({ ...table(versionOf(object), printer.columns), rows: [row(object)] }),
    list: (metadata) => table(metadata, printer.columns),
    itemsField: "rows",
    hasAges: true,
    item: row,
    event,
    ...(includeObject !== "None" && {
      withText: { one: tableText(() => printer.columns), item: rowText, event: tableText(nextColumns) },
    }),
    ...(cut && { cut }),
    bookmark: (metadata) => event({ metadata }),
  };
}

function versionOf(object: KubernetesObject): ListMeta {
  const resourceVersion = object.metadata?.resourceVersion;
  return resourceVersion === undefined ? {} : { resourceVersion };
}
