/** The entries of kubeconfig files: their types, the check of what a file has, and its YAML. */

import { CacheError } from "../../util/errors.ts";
import { isRecord } from "../../util/json.ts";

/** A cluster of a kubeconfig, with the field names of the file. */
export interface KubeconfigCluster {
  readonly server: string;
  readonly "tls-server-name"?: string;
  readonly "insecure-skip-tls-verify"?: boolean;
  /** A file; an absolute path after loading. */
  readonly "certificate-authority"?: string;
  /** Base64; refused together with the file. */
  readonly "certificate-authority-data"?: string;
  readonly "proxy-url"?: string;
  /** Requests uncompressed responses. */
  readonly "disable-compression"?: boolean;
  /** Data of other programs; `client.authentication.k8s.io/exec` is for a credential plugin. */
  readonly extensions?: readonly { readonly name: string; readonly extension?: unknown }[] | null;
}

/** A credential plugin: a program that prints credentials. */
export interface ExecConfig {
  readonly apiVersion?: string;
  readonly command: string;
  readonly args?: readonly string[] | null;
  readonly env?: readonly { readonly name: string; readonly value: string }[] | null;
  readonly installHint?: string;
  readonly provideClusterInfo?: boolean;
  /** `Always` is refused: the plugin gets no terminal. */
  readonly interactiveMode?: "Never" | "IfAvailable" | "Always";
}

/**
 * A user of a kubeconfig. A token file takes precedence over a token, which is used until the file can be
 * read. The credentials of a loaded user are redacted in logs and in JSON.
 */
export interface KubeconfigUser {
  readonly "client-certificate"?: string;
  readonly "client-certificate-data"?: string;
  readonly "client-key"?: string;
  readonly "client-key-data"?: string;
  readonly token?: string;
  readonly tokenFile?: string;
  readonly username?: string;
  readonly password?: string;
  readonly as?: string;
  readonly "as-uid"?: string;
  readonly "as-groups"?: readonly string[];
  readonly "as-user-extra"?: Readonly<Record<string, readonly string[]>>;
  readonly exec?: ExecConfig;
  readonly "auth-provider"?: { readonly name?: string };
}

/** A context of a kubeconfig: the names of a cluster and a user. */
export interface KubeconfigContext {
  readonly cluster: string;
  readonly user?: string;
  readonly namespace?: string;
}

/** A kubeconfig, merged from its files. */
export interface Kubeconfig {
  /** The files that were read. */
  readonly files: readonly string[];
  readonly "current-context"?: string;
  readonly clusters: ReadonlyMap<string, KubeconfigCluster>;
  readonly users: ReadonlyMap<string, KubeconfigUser>;
  readonly contexts: ReadonlyMap<string, KubeconfigContext>;
  /** The file of each entry, by `cluster NAME`, `user NAME` and `context NAME`; for error texts. */
  readonly origins?: ReadonlyMap<string, string>;
}

/** A kubeconfig, token file or service account cannot be read or used. */
export class KubeconfigError extends CacheError {
  constructor(message: string, options: { readonly cause?: unknown } = {}) {
    super("Kubeconfig", message, options);
  }
}

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
    extensions: [{ name: "string" }],
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
 * Describes the first field of a wrong type, `undefined` if there is none. Names types and never values,
 * which may be credentials.
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
      return isRecord(value) && Object.values(value).every(isStrings)
        ? undefined
        : describe(path, "a mapping of lists of strings", value);
  }
  if (!isArray(type)) {
    return isRecord(value) ? wrongField(value, type, `${path}.`) : describe(path, "a mapping", value);
  }
  if (!Array.isArray(value)) return describe(path, "a list", value);
  for (const [i, item] of value.entries()) {
    const wrong = isRecord(item)
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

function describe(path: string, wanted: string, value: unknown): string {
  return `its ${path} must be ${wanted}, and is ${typeName(value)}`;
}

const TYPE_NAMES: Readonly<Record<string, string>> = {
  string: "a string",
  number: "a number",
  bigint: "a number",
  boolean: "a boolean",
};

function typeName(value: unknown): string {
  if (Array.isArray(value)) return "a list of something else";
  return TYPE_NAMES[typeof value] ?? "a mapping of something else";
}

// Booleans in YAML 1.1, strings in YAML 1.2: https://yaml.org/type/bool.html
const TRUE_WORDS: readonly string[] = ["y", "Y", "yes", "Yes", "YES", "on", "On", "ON"];
const FALSE_WORDS: readonly string[] = ["n", "N", "no", "No", "NO", "off", "Off", "OFF"];
const BOOL_TAG = "tag:yaml.org,2002:bool";

/**
 * Parses YAML 1.2. In boolean fields, plain words such as `yes` are booleans, as in YAML 1.1, which kubectl
 * reads; elsewhere they are strings.
 *
 * @throws {KubeconfigError} The text is not YAML. The message quotes nothing of the text, which may hold
 * credentials.
 */
export async function parseKubeconfigYaml(text: string, path: string): Promise<unknown> {
  // Loaded here, as most programs run in a pod and read no kubeconfig.
  const { isAlias, isScalar, LineCounter, parseDocument, Scalar, visit } = await import("yaml");
  const fail = (what: string, line?: number) => {
    const where = line === undefined ? "" : ` at line ${line}`;
    return new KubeconfigError(`Cannot read the kubeconfig ${path}: it is not YAML: ${what}${where}`);
  };
  const lineCounter = new LineCounter();
  // In YAML a carriage return alone ends a line, too, which the parser does not know.
  const document = parseDocument(text.replace(/\r\n?/g, "\n"), {
    ...{ merge: true, prettyErrors: false, lineCounter, logLevel: "silent" },
    // The last value of a repeated key is read, as by kubectl.
    uniqueKeys: false,
  });
  const [error] = document.errors;
  if (error !== undefined) {
    throw fail(error.code.toLowerCase().replaceAll("_", " "), lineCounter.linePos(error.pos[0]).line);
  }
  let unknownAlias: number | undefined;
  visit(document, {
    Pair(_, pair) {
      if (!isScalar(pair.key) || !BOOLEAN_FIELDS.has(String(pair.key.value))) return;
      const scalar = isAlias(pair.value) ? pair.value.resolve(document) : pair.value;
      if (!isScalar(scalar) || scalar.type !== Scalar.PLAIN || typeof scalar.value !== "string") return;
      // `!!str yes` is a string.
      if (scalar.tag !== undefined && scalar.tag !== BOOL_TAG) return;
      if (TRUE_WORDS.includes(scalar.value)) pair.value = new Scalar(true);
      if (FALSE_WORDS.includes(scalar.value)) pair.value = new Scalar(false);
    },
    Alias(_, alias) {
      if (alias.resolve(document) === undefined) unknownAlias ??= alias.range?.[0] ?? 0;
    },
  });
  if (unknownAlias !== undefined) {
    throw fail("an alias without an anchor", lineCounter.linePos(unknownAlias).line);
  }
  try {
    return document.toJS();
  } catch {
    throw fail("too many aliases");
  }
}
