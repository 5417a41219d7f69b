/**
 * The quick yes: hand-written checks that accept what API servers send day in, day out.
 *
 * They say exactly what the schemas of `kubernetes_schemas.ts` say, at a hundredth of the cost; tests hold the two
 * against each other. A no is only a reason to ask the schema, which then also tells what is wrong.
 * @module
 */

type Loose = Readonly<Record<string, unknown>>;

/** Whether a value is an object that a cache can hold. */
export function isOrdinaryObject(value: unknown): boolean {
  if (!isObject(value) || !isObject(value.metadata)) return false;
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

/** Whether a value is a bookmark's object. */
export function isOrdinaryBookmark(value: unknown): boolean {
  if (!isObject(value) || !isObject(value.metadata)) return false;
  const { metadata } = value;
  return typeof metadata.resourceVersion === "string" && metadata.resourceVersion !== "" &&
    isTextOrAbsent(value.apiVersion) && isTextOrAbsent(value.kind) && areTextsOrAbsent(metadata.annotations);
}

/** Whether a value is an object: no array, no null. */
export function isObject(value: unknown): value is Loose {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isTextOrAbsent(value: unknown): boolean {
  return typeof value === "string" || value === undefined;
}

function isTimeOrAbsent(value: unknown): boolean {
  return typeof value === "string" || value === undefined || value === null;
}

function areTextsOrAbsent(value: unknown): boolean {
  if (value === undefined) return true;
  if (!isObject(value)) return false;
  for (const key in value) {
    if (typeof value[key] !== "string" && Object.hasOwn(value, key)) return false;
  }
  return true;
}
