/** Checks of lists, events and objects. The schemas are arguments, so that zod can be loaded separately. */

import { DecodeError } from "../meta/request.ts";
import { isTable, metaNamespaceKey } from "../meta/object.ts";
import type { Quarantined, WatchItem } from "../meta/list_watch.ts";
import { newStatus, type Status, StatusError } from "../meta/status.ts";
import { defined, isRecord, isTextOrAbsent, recordOf } from "../util/json.ts";
import type { LooseEvent, LooseList } from "./kubernetes_schemas.ts";
import { formatPath, issuesOf, joinPath, type Schema, type SchemaIssue } from "./schema.ts";

/** The module `kubernetes_schemas.ts`, and zod with it. */
export type KubernetesSchemas = typeof import("./kubernetes_schemas.ts");

/** Options of {@linkcode newEventValidator} and {@linkcode newObjectValidator}. */
export interface ValidatorOptions<T> {
  /** The schema of the kind's objects, beyond the metadata that every kind has. */
  readonly schema?: Schema<T>;
  /** Receives each quarantined value and its report, within that turn; must not throw. */
  readonly onInvalid?: (quarantined: Quarantined, value: unknown) => void;
}

/** The check that `newEventValidator` returns. */
export function eventCheck<T>(
  schemas: KubernetesSchemas,
  options: ValidatorOptions<T>,
): (frame: unknown) => WatchItem<T> {
  const { schema, onInvalid } = options;
  return (frame) => {
    const fault = checkEvent(schemas, frame, schema);
    if (fault === undefined) return frame as WatchItem<T>;
    const { type, object } = recordOf(frame);
    if (type === "ERROR") return { type, object: unreadableStatus(fault) };
    const quarantined = report(fault, object, typeof type === "string" ? type : undefined);
    onInvalid?.(quarantined, frame);
    return { type: "QUARANTINED", quarantined };
  };
}

/** The check that `newObjectValidator` returns. */
export function objectCheck<T>(
  schemas: KubernetesSchemas,
  options: ValidatorOptions<T>,
): (value: unknown, path: string) => Quarantined | undefined {
  const { schema, onInvalid } = options;
  return (value, path) => {
    const fault = checkObject(schemas, value, path, schema);
    if (fault === undefined) return undefined;
    const quarantined = report(fault, value);
    onInvalid?.(quarantined, value);
    return quarantined;
  };
}

/** As `validateList`. */
export function checkList(
  schemas: KubernetesSchemas,
  list: Readonly<Record<string, unknown>>,
  subject: string,
): LooseList {
  if (isTable(list)) {
    throw new DecodeError(
      `Cannot list ${subject}: unsupported list: the server answered with a Table (${list.apiVersion}), ` +
        "whose rows are no objects; ask for application/json without as=Table",
    );
  }
  if (list.status === "Failure" && isStatus(schemas, list)) throw new StatusError(list);
  // Fields that a list of a named kind leaves out are empty, as for Go's clients.
  const isWhole = "items" in list && "metadata" in list;
  const isByKind = typeof list.kind === "string" && list.kind.endsWith("List");
  const whole = isByKind && !isWhole ? { items: null, metadata: {}, ...list } : list;
  const fault = firstFault(schemas.listSchema(), whole, "") ??
    ("items" in whole ? undefined : { path: "items", reason: "is missing" });
  if (fault !== undefined) {
    throw new DecodeError(`Cannot list ${subject}: the answer is no list: ${fault.path} ${fault.reason}`);
  }
  return whole as unknown as LooseList;
}

/** Whether a value is a Status as an API server writes it. */
export function isStatus(schemas: KubernetesSchemas, value: unknown): value is Status {
  return isRecord(value) && value.kind === "Status" && issuesOf(schemas.statusSchema(), value) === undefined;
}

type Fault = Pick<Quarantined, "path" | "reason">;

function checkEvent(
  schemas: KubernetesSchemas,
  frame: unknown,
  schema: Schema<unknown> | undefined,
): Fault | undefined {
  if (!isRecord(frame) || typeof frame.type !== "string") {
    return firstFault(schemas.eventSchema(), frame, "");
  }
  const { type, object } = frame as unknown as LooseEvent;
  switch (type) {
    case "ADDED":
    case "MODIFIED":
      return checkObject(schemas, object, "object", schema);
    case "DELETED":
      return checkObject(schemas, object, "object", undefined);
    case "BOOKMARK":
      return isOrdinaryBookmark(object) ? undefined : firstFault(schemas.bookmarkSchema(), object, "object");
    case "ERROR":
      return firstFault(schemas.statusSchema(), object, "object");
    default:
      return { path: "type", reason: `is ${JSON.stringify(type)}, which is no type of event` };
  }
}

function checkObject(
  schemas: KubernetesSchemas,
  value: unknown,
  path: string,
  schema: Schema<unknown> | undefined,
): Fault | undefined {
  if (isRecord(value) && isTable(value)) {
    return { path: joinPath(path, "kind"), reason: "is Table, whose rows are no objects" };
  }
  if (!isOrdinaryObject(value)) return firstFault(schemas.objectSchema(), value, path);
  return schema === undefined ? undefined : firstFault(schema, value, path);
}

function firstFault(schema: Schema<unknown>, value: unknown, path: string): Fault | undefined {
  const issues = issuesOf(schema, value);
  if (issues === undefined) return undefined;
  const [issue] = issues;
  const more = issues.length > 1 ? ` (and ${issues.length - 1} more)` : "";
  return { path: joinPath(path, formatPath(issue.path)), reason: describeIssue(issue, value) + more };
}

// "must be a string" is half of the story: what is there instead?
function describeIssue(issue: SchemaIssue, value: unknown): string {
  if (!issue.message.startsWith("must ")) return issue.message;
  let found: unknown = value;
  for (const segment of issue.path ?? []) {
    const key = typeof segment === "object" ? segment.key : segment;
    found = (found as Record<PropertyKey, unknown> | null | undefined)?.[key];
  }
  if (found === undefined) return `is missing, ${issue.message}`;
  if (found === null) return `${issue.message}, is null`;
  if (Array.isArray(found)) return `${issue.message}, is an array`;
  return typeof found === "string" ? issue.message : `${issue.message}, is of type ${typeof found}`;
}

function report(fault: Fault, object: unknown, eventType?: string): Quarantined {
  const metadata = isRecord(object) && isRecord(object.metadata) ? object.metadata : {};
  const { name, namespace, resourceVersion } = metadata;
  const key =
    typeof name === "string" && name !== "" && (namespace === undefined || typeof namespace === "string")
      ? metaNamespaceKey({ metadata: { name, namespace } })
      : undefined;
  const version = typeof resourceVersion === "string" ? resourceVersion : undefined;
  return defined({ reason: fault.reason, path: fault.path, key, resourceVersion: version, eventType });
}

function unreadableStatus(fault: Fault): Status {
  return newStatus(
    500,
    "InternalError",
    `the watch ended with an error that cannot be read: ${fault.path} ${fault.reason}`,
    { causes: [{ reason: "UnexpectedServerResponse", field: fault.path, message: fault.reason }] },
  );
}

/**
 * Whether a value is an object that a cache can hold. The hand-written checks say exactly what the schemas of
 * `kubernetes_schemas.ts` say, at a hundredth of the cost; tests compare the two. After a no the schema says
 * what is wrong.
 */
export function isOrdinaryObject(value: unknown): boolean {
  if (!isRecord(value) || !isRecord(value.metadata)) return false;
  const { metadata } = value;
  return typeof metadata.name === "string" && metadata.name !== "" &&
    isTextOrAbsent(value.apiVersion) &&
    isTextOrAbsent(value.kind) &&
    isTextOrAbsent(metadata.namespace) &&
    isTextOrAbsent(metadata.uid) &&
    isTextOrAbsent(metadata.resourceVersion) &&
    isTimeOrAbsent(metadata.creationTimestamp) &&
    isTimeOrAbsent(metadata.deletionTimestamp) &&
    areTextsOrAbsent(metadata.labels) &&
    areTextsOrAbsent(metadata.annotations);
}

/** Whether a value is a bookmark's object; as {@linkcode isOrdinaryObject}. */
export function isOrdinaryBookmark(value: unknown): boolean {
  if (!isRecord(value) || !isRecord(value.metadata)) return false;
  const { metadata } = value;
  return typeof metadata.resourceVersion === "string" && metadata.resourceVersion !== "" &&
    isTextOrAbsent(value.apiVersion) && isTextOrAbsent(value.kind) && areTextsOrAbsent(metadata.annotations);
}

function isTimeOrAbsent(value: unknown): boolean {
  return isTextOrAbsent(value) || value === null;
}

function areTextsOrAbsent(value: unknown): boolean {
  if (value === undefined) return true;
  if (!isRecord(value)) return false;
  for (const key in value) {
    if (typeof value[key] !== "string" && Object.hasOwn(value, key)) return false;
  }
  return true;
}
