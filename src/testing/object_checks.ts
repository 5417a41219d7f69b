/** Checks of an object before it is stored, and what the server writes into its metadata. */

import { formatObjectName, type ObjectName } from "../meta/object.ts";
import { DNS_LABEL, DNS_SUBDOMAIN, groupVersion } from "../meta/resource.ts";
import type { StatusCause } from "../meta/status.ts";
import { forbiddenField } from "../protocol/statuses.ts";
import { errorMessage } from "../util/errors.ts";
import {
  badRequest,
  conflictBecause,
  internal,
  invalid,
  invalidAs,
  invalidValue,
  preconditionFailed,
  required,
} from "./api_errors.ts";
import type { StoredObject } from "./cluster_state.ts";
import { isRecord, recordOf } from "../util/json.ts";
import { type JsonObject, parseJson } from "./json.ts";
import type { ServedResource } from "./served_resources.ts";

export function decodeObject(resource: ServedResource, body: string): JsonObject {
  const shown = body === "" ? "<empty>" : body.length > 32 ? `${body.slice(0, 28)} ...` : body;
  const unrecognized = (reason: string) =>
    badRequest(
      `the object provided is unrecognized (must be of type ${resource.kind}): ${reason} (${shown})`,
    );
  let object: unknown;
  try {
    object = parseJson(body);
  } catch (error) {
    throw unrecognized(`couldn't get version/kind; json parse error: ${errorMessage(error)}`);
  }
  if (!isRecord(object)) {
    throw unrecognized("couldn't get version/kind; json parse error: json: cannot unmarshal into a struct");
  }
  if (resource.isCustom && typeof object.kind !== "string") {
    throw unrecognized(`Object 'Kind' is missing in '${body}'`);
  }
  if (resource.isCustom && !object.apiVersion) {
    const expected = groupVersion(resource);
    throw badRequest(
      `the API version in the data () does not match the expected API version (${expected})`,
    );
  }
  return object;
}

export function checkType(resource: ServedResource, object: JsonObject): void {
  const { kind = resource.kind, apiVersion = groupVersion(resource) } = object;
  const cannot = `${kind} in version ${JSON.stringify(apiVersion)} cannot be handled as a ${resource.kind}: `;
  if (apiVersion !== groupVersion(resource)) {
    throw badRequest(
      `${cannot}no kind ${JSON.stringify(kind)} is registered for version ${JSON.stringify(apiVersion)}`,
    );
  }
  if (kind === resource.kind) return;
  if (!resource.isCustom) {
    throw badRequest(
      `${cannot}converting (${resource.version}.${kind}) to (${resource.kind}): unknown conversion`,
    );
  }
  const name = String(metadataOf(object).name ?? "");
  throw invalidAs(`${kind}.${resource.group}`, {
    name,
    group: resource.group,
    kind: String(kind),
    causes: [invalidValue("kind", kind, `must be ${resource.kind}`)],
  });
}

export function metadataOf(object: JsonObject): JsonObject {
  return recordOf(object.metadata);
}

/** The text of a metadata field; `""` if it is absent. */
export function metaText(object: JsonObject, field: string): string {
  const value = metadataOf(object)[field];
  return typeof value === "string" ? value : "";
}

const LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN = `${LABEL}(\\.${LABEL})*`;
const LABEL_TEXT =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must " +
  "start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is " +
  `'${LABEL}')`;
const SUBDOMAIN_TEXT =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or " +
  "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is " +
  `'${SUBDOMAIN}')`;
const LABEL_NAMES: ReadonlySet<string> = new Set(["namespaces", "services"]);

export function checkName(resource: ServedResource, name: string): void {
  const refuse = (detail: string) => invalid(resource, name, [invalidValue("metadata.name", name, detail)]);
  if (resource.group === "rbac.authorization.k8s.io") {
    if (name === "." || name === "..") throw refuse(`may not be '${name}'`);
    for (const bad of ["/", "%"]) if (name.includes(bad)) throw refuse(`may not contain '${bad}'`);
    return;
  }
  const isLabel = LABEL_NAMES.has(resource.resource) && resource.group === "";
  const longest = isLabel ? 63 : 253;
  if (!(isLabel ? DNS_LABEL : DNS_SUBDOMAIN).test(name)) {
    throw refuse(isLabel ? LABEL_TEXT : SUBDOMAIN_TEXT);
  }
  if (name.length > longest) throw refuse(`must be no more than ${longest} characters`);
}

export function nameRequired(resource: ServedResource): Error {
  return invalid(resource, "", [required("metadata.name", "name or generateName is required")]);
}

export function checkNamespace(object: JsonObject, namespace: string): void {
  const own = metaText(object, "namespace");
  if (own === "" || own === namespace) return;
  throw badRequest("the namespace of the provided object does not match the namespace sent on the request");
}

export function checkSameName(object: JsonObject, name: string): void {
  const own = metaText(object, "name");
  if (own === "") {
    throw badRequest(
      `the name of the object (${name} based on URL) was undeterminable: name must be provided`,
    );
  }
  if (own !== name) {
    throw badRequest(`the name of the object (${own}) does not match the name on the URL (${name})`);
  }
}

/** Whether an object names no version. */
export function hasNoVersion(object: JsonObject): boolean {
  return /^0?$/.test(metaText(object, "resourceVersion"));
}

/** Checks that an object is the one with a uid, if it names any; `""`: there is none. */
export function checkUid(
  resource: ServedResource,
  object: JsonObject,
  { uid, ...address }: ObjectName & { readonly uid: string },
): void {
  const given = metaText(object, "uid");
  if (given === "" || given === uid) return;
  const key = `/registry/${resource.resource}/${formatObjectName(address)}`;
  const cause = `StorageError: invalid object, Code: 4, Key: ${key}, ResourceVersion: 0, ` +
    `AdditionalErrorMsg: Precondition failed: UID in precondition: ${given}, UID in object meta: ${uid}`;
  throw conflictBecause(resource, address.name, cause);
}

/** A write changes no uid, and marks nothing for deletion. */
export function checkImmutable(resource: ServedResource, object: JsonObject, existing: StoredObject): void {
  const { name, uid, deletionTimestamp } = existing.metadata;
  const refuse = (field: string) => {
    const cause = invalidValue(`metadata.${field}`, metaText(object, field), "field is immutable");
    throw invalid(resource, name, [cause]);
  };
  if (![uid, ""].includes(metaText(object, "uid"))) refuse("uid");
  if (!deletionTimestamp && metaText(object, "deletionTimestamp") !== "") refuse("deletionTimestamp");
}

/** Checks that a text can be a resourceVersion; `""` and `"0"` are none. */
export function checkResourceVersionText(resourceVersion: string): void {
  if (!/^[0-9]*$/.test(resourceVersion)) {
    throw internal(`strconv.ParseUint: parsing ${JSON.stringify(resourceVersion)}: invalid syntax`);
  }
}

export function checkPreconditions(
  resource: ServedResource,
  { metadata }: StoredObject,
  expected: { readonly uid?: string; readonly resourceVersion?: string },
): void {
  const { uid, resourceVersion } = expected;
  if (uid && uid !== metadata.uid) {
    const cause =
      `the UID in the precondition (${uid}) does not match the UID in record (${metadata.uid}). ` +
      "The object might have been deleted and then recreated";
    throw preconditionFailed(resource, metadata.name, cause);
  }
  if (resourceVersion && resourceVersion !== metadata.resourceVersion) {
    const cause = `the ResourceVersion in the precondition (${resourceVersion}) does not match the ` +
      `ResourceVersion in record (${metadata.resourceVersion}). The object might have been modified`;
    throw preconditionFailed(resource, metadata.name, cause);
  }
}

/** An object that is being deleted takes no new finalizers. */
export function checkFinalizers(resource: ServedResource, object: JsonObject, existing: StoredObject): void {
  if (!existing.metadata.deletionTimestamp) return;
  const before = existing.metadata.finalizers ?? [];
  const added = finalizersOf(object).filter((finalizer) => !before.includes(finalizer));
  if (added.length === 0) return;
  const list = added.map((finalizer) => JSON.stringify(finalizer)).join(", ");
  const detail = "no new finalizers can be added if the object is being deleted, " +
    `found new finalizers []string{${list}}`;
  throw invalid(resource, existing.metadata.name, [forbiddenField("metadata.finalizers", detail)]);
}

/**
 * Owners are whole references, and one of them at most is the controller:
 * https://github.com/kubernetes/apimachinery/blob/master/pkg/api/validation/objectmeta.go
 */
export function checkOwners(resource: ServedResource, object: JsonObject, name: string): void {
  const { ownerReferences } = metadataOf(object);
  if (!Array.isArray(ownerReferences)) return;
  const field = "metadata.ownerReferences";
  const causes: StatusCause[] = [];
  const references = ownerReferences.map((given) => {
    const { apiVersion = "", kind = "", name = "", uid = "", ...rest } = recordOf(given);
    const reference = { apiVersion, kind, name, uid };
    const refuse = (key: keyof typeof reference, detail = "must not be empty") =>
      causes.push(invalidValue(`${field}.${key}`, reference[key], detail));
    if (String(apiVersion).split("/").at(-1) === "") refuse("apiVersion", "version must not be empty");
    for (const key of ["kind", "name", "uid"] as const) if (reference[key] === "") refuse(key);
    return { ...reference, ...rest };
  });
  const [first, ...others] = references.filter((reference) =>
    "controller" in reference && reference.controller === true
  );
  for (const other of others) {
    const of = `${first.kind}/${first.name} and ${other.kind}/${other.name}`;
    const detail = `Only one reference can have Controller set to true. Found "true" in references for ${of}`;
    causes.push(invalidValue(field, references, detail));
  }
  if (causes.length > 0) throw invalid(resource, name, causes);
}

export function finalizersOf(object: JsonObject): string[] {
  const { finalizers } = metadataOf(object);
  return Array.isArray(finalizers) ? finalizers.map(String) : [];
}

/** RFC 3339, to the second, as `metav1.Time` writes it. */
export function timestamp(ms: number): string {
  return new Date(ms).toISOString().replace(/\.[0-9]+Z$/, "Z");
}

// No vowels, so that no words arise, and no digits that look like letters.
const LETTERS = "bcdfghjklmnpqrstvwxz2456789";

/** Five characters, as an API server appends them to `generateName`. */
export function randomSuffix(random: () => number): string {
  let suffix = "";
  for (let i = 0; i < 5; i++) suffix += LETTERS[Math.floor(random() * LETTERS.length)];
  return suffix;
}

export function randomUid(random: () => number): string {
  let hex = "";
  for (let i = 0; i < 32; i++) {
    const digit = i === 12 ? 4 : i === 16 ? 8 + Math.floor(random() * 4) : Math.floor(random() * 16);
    hex += digit.toString(16);
    if (i === 7 || i === 11 || i === 15 || i === 19) hex += "-";
  }
  return hex;
}

/** Metadata that only the server writes, or that is set already. */
export const SERVER_FIELDS: readonly string[] = [
  "name",
  "namespace",
  "uid",
  "resourceVersion",
  "generation",
  "creationTimestamp",
  "deletionTimestamp",
  "deletionGracePeriodSeconds",
];
