/**
 * What the fields of a kubeconfig may hold.
 * @module
 */

/** What a field must be; an array is a list of such mappings. `null` counts as absent everywhere, as Go reads it. */
type FieldType = "boolean" | "text" | "texts" | "lists of texts" | Shape | readonly [Shape];

interface Shape {
  readonly [field: string]: FieldType;
}

const EXEC: Shape = {
  apiVersion: "text",
  command: "text",
  args: "texts",
  env: [{ name: "text", value: "text" }],
  installHint: "text",
  provideClusterInfo: "boolean",
  interactiveMode: "text",
};

/** The fields of each kind of entry that is read here; others are passed over, as kubectl passes them over. */
export const ENTRY_FIELDS: Readonly<Record<"context" | "cluster" | "user", Shape>> = {
  context: { cluster: "text", user: "text", namespace: "text" },
  cluster: {
    server: "text",
    "tls-server-name": "text",
    "insecure-skip-tls-verify": "boolean",
    "certificate-authority": "text",
    "certificate-authority-data": "text",
    "proxy-url": "text",
    "disable-compression": "boolean",
  },
  user: {
    "client-certificate": "text",
    "client-certificate-data": "text",
    "client-key": "text",
    "client-key-data": "text",
    token: "text",
    tokenFile: "text",
    username: "text",
    password: "text",
    as: "text",
    "as-uid": "text",
    "as-groups": "texts",
    "as-user-extra": "lists of texts",
    exec: EXEC,
    "auth-provider": { name: "text" },
  },
};

/** The fields that are `true` or `false`: YAML 1.1 writes these in more ways than YAML 1.2 does. */
export const BOOLEAN_FIELDS: ReadonlySet<string> = new Set(
  [ENTRY_FIELDS.cluster, EXEC].flatMap((shape) =>
    Object.keys(shape).filter((field) => shape[field] === "boolean")
  ),
);

/**
 * What is wrong with the first field of another type than it must have, `undefined` if nothing is. Tells the types and
 * never the value: it may be a credential.
 */
export function wrongField(entry: unknown, shape: Shape, path: string = ""): string | undefined {
  for (const [field, type] of Object.entries(shape)) {
    const wrong = wrongValue((entry as Record<string, unknown>)[field], type, path + field);
    if (wrong !== undefined) return wrong;
  }
  return undefined;
}

function wrongValue(value: unknown, type: FieldType, path: string): string | undefined {
  if (value === undefined || value === null) return undefined;
  switch (type) {
    case "boolean":
      return typeof value === "boolean" ? undefined : tell(path, "true or false", value);
    case "text":
      return typeof value === "string" ? undefined : tell(path, "a text (in quotes, if need be)", value);
    case "texts":
      return isTexts(value) ? undefined : tell(path, "a list of texts", value);
    case "lists of texts":
      return isMapping(value) && Object.values(value).every(isTexts)
        ? undefined
        : tell(path, "a mapping of lists of texts", value);
  }
  if (!isArray(type)) {
    return isMapping(value) ? wrongField(value, type, `${path}.`) : tell(path, "a mapping", value);
  }
  if (!Array.isArray(value)) return tell(path, "a list", value);
  for (const [i, item] of value.entries()) {
    const wrong = isMapping(item)
      ? wrongField(item, type[0], `${path}[${i}].`)
      : tell(`${path}[${i}]`, "a mapping", item);
    if (wrong !== undefined) return wrong;
  }
  return undefined;
}

function isArray(type: Shape | readonly [Shape]): type is readonly [Shape] {
  return Array.isArray(type);
}

function isTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}

/** Whether a value of YAML is a mapping. */
export function isMapping(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function tell(path: string, wanted: string, value: unknown): string {
  return `its ${path} must be ${wanted}, and is ${typeName(value)}`;
}

function typeName(value: unknown): string {
  if (Array.isArray(value)) return "a list with something else in it";
  switch (typeof value) {
    case "string":
      return "a text";
    case "number":
    case "bigint":
      return "a number";
    case "boolean":
      return "true or false";
    default:
      return "a mapping with something else in it";
  }
}
