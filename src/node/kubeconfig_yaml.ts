/**
 * Parses the YAML of a kubeconfig.
 * @module
 */

import { KubeconfigError } from "./kubeconfig.ts";
import { BOOLEAN_FIELDS } from "./kubeconfig_fields.ts";

// Booleans in YAML 1.1, strings in YAML 1.2: https://yaml.org/type/bool.html
const TRUE_WORDS: readonly string[] = ["y", "Y", "yes", "Yes", "YES", "on", "On", "ON"];
const FALSE_WORDS: readonly string[] = ["n", "N", "no", "No", "NO", "off", "Off", "OFF"];
const BOOL_TAG = "tag:yaml.org,2002:bool";

/**
 * Parses YAML 1.2. In boolean fields, plain words such as `yes` are booleans, as in YAML 1.1, which kubectl reads;
 * elsewhere they are strings.
 *
 * @throws {KubeconfigError} It is not YAML. The message quotes nothing of the text, which may hold credentials.
 */
export async function parseKubeconfigYaml(text: string, path: string): Promise<unknown> {
  // Loaded here, as most programs run in a pod and read no kubeconfig.
  const { isAlias, isScalar, LineCounter, parseDocument, Scalar, visit } = await import("yaml");
  const fail = (what: string, line?: number) =>
    new KubeconfigError(
      `Cannot read the kubeconfig ${path}: it is not YAML: ${what}${
        line === undefined ? "" : ` at line ${line}`
      }`,
    );
  const lineCounter = new LineCounter();
  const document = parseDocument(text, { merge: true, prettyErrors: false, lineCounter, logLevel: "silent" });
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
