/**
 * The types of a kubeconfig's fields.
 * @module
 */

/** The type of a field; `[Shape]` is a list of such mappings. `null` means absent, as in Go. */
type FieldType = "boolean" | "string" | "strings" | "lists of strings" | Shape | readonly [Shape];

interface Shape {
  readonly [field: string]: FieldType;
}

const EXEC: Shape = {
  apiVersion: "string",
  command: "string",
  args: "strings",
  env: [{ name: "string", value: "string" }],
  installHint: "string",
  provideClusterInfo: "boolean",
  interactiveMode: "string",
};

/** The fields of each kind of entry that are read; other fields are ignored, as by kubectl. */
export const ENTRY_FIELDS: Readonly<Record<"context" | "cluster" | "user", Shape>> = {
  context: { cluster: "string", user: "string", namespace: "string" },
  cluster: {
    server: "string",
    "tls-server-name": "string",
    "insecure-skip-tls-verify": "boolean",
    "certificate-authority": "string",
    "certificate-authority-data": "string",
    "proxy-url": "string",
    "disable-compression": "boolean",
  },
  user: {
    "client-certificate": "string",
    "client-certificate-data": "string",
    "client-key": "string",
    "client-key-data": "string",
    token: "string",
    tokenFile: "string",
    username: "string",
    password: "string",
    as: "string",
    "as-uid": "string",
    "as-groups": "strings",
    "as-user-extra": "lists of strings",
    exec: EXEC,
    "auth-provider": { name: "string" },
  },
};

/** The boolean fields: YAML 1.1 has more words for them than YAML 1.2. */
export const BOOLEAN_FIELDS: ReadonlySet<string> = new Set(
  [ENTRY_FIELDS.cluster, EXEC].flatMap((shape) =>
    Object.keys(shape).filter((field) => shape[field] === "boolean")
  ),
);

/**
 * Describes the first field of a wrong type, `undefined` if there is none. Names types and never values, which may be
 * credentials.
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
      return typeof value === "boolean" ? undefined : describe(path, "true or false", value);
    case "string":
      return typeof value === "string"
        ? undefined
        : describe(path, "a string (use quotes if it looks like a number or boolean)", value);
    case "strings":
      return isStrings(value) ? undefined : describe(path, "a list of strings", value);
    case "lists of strings":
      return isMapping(value) && Object.values(value).every(isStrings)
        ? undefined
        : describe(path, "a mapping of lists of strings", value);
  }
  if (!isArray(type)) {
    return isMapping(value) ? wrongField(value, type, `${path}.`) : describe(path, "a mapping", value);
  }
  if (!Array.isArray(value)) return describe(path, "a list", value);
  for (const [i, item] of value.entries()) {
    const wrong = isMapping(item)
      ? wrongField(item, type[0], `${path}[${i}].`)
      : describe(`${path}[${i}]`, "a mapping", item);
    if (wrong !== undefined) return wrong;
  }
  return undefined;
}

function isArray(type: Shape | readonly [Shape]): type is readonly [Shape] {
  return Array.isArray(type);
}

function isStrings(value: unknown): boolean {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}

/** Whether a YAML value is a mapping. */
export function isMapping(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function describe(path: string, wanted: string, value: unknown): string {
  return `its ${path} must be ${wanted}, and is ${typeName(value)}`;
}

function typeName(value: unknown): string {
  if (Array.isArray(value)) return "a list of something else";
  switch (typeof value) {
    case "string":
      return "a string";
    case "number":
    case "bigint":
      return "a number";
    case "boolean":
      return "a boolean";
    default:
      return "a mapping of something else";
  }
}
