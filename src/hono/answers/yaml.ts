/**
 * Documents as YAML, as kube-apiserver writes them.
 * @module
 */

import type { ScalarTag } from "yaml";
import { compareKeys, isSimpleKey, yamlNumber, yamlString } from "./yaml_scalar.ts";

/** Writes YAML. Keys are sorted. */
export interface YamlWriter {
  /** A JSON text as a YAML document, with a line break at its end. */
  document(json: string): string;
  /** An item of a list that is a field of the document, from its JSON text, with a line break at its end. */
  item(json: string): string;
}

let writer: Promise<YamlWriter> | undefined;

/** Loads the YAML library, once: a program that never answers in YAML does not load it. */
export function loadYaml(): Promise<YamlWriter> {
  return writer ??= newWriter();
}

async function newWriter(): Promise<YamlWriter> {
  const { Document, Pair, Scalar, YAMLMap, YAMLSeq } = await import("yaml");
  const node = (value: unknown, level = 0): Node => {
    if (typeof value !== "object" || value === null) return new Scalar(value);
    if (level === BLOCK_LEVELS) return new Scalar(new Flow(value));
    if (Array.isArray(value)) {
      const list = new YAMLSeq();
      for (const item of value) list.items.push(node(item ?? null, level + 1));
      return list;
    }
    const map = new YAMLMap();
    for (const [name, field] of Object.entries(value).sort(([a], [b]) => compareKeys(a, b))) {
      if (field === undefined) continue;
      const key = new Scalar(name);
      // The library writes a question mark before such a key.
      if (!isSimpleKey(name)) key.type = "BLOCK_LITERAL";
      map.items.push(new Pair(key, node(field, level + 1)));
    }
    return map;
  };
  const write = (value: unknown): string => {
    const document = new Document(node(value), {
      schema: "failsafe",
      customTags: (tags) => [...SCALAR_TAGS, ...tags],
    });
    return document.toString({ indentSeq: false, lineWidth: 0 });
  };
  return {
    document: (json) => write(exactValue(json)),
    item: (json) => write({ items: [exactValue(json)] }).slice("items:\n".length),
  };
}

/** The value of a JSON text, with bigints for integers that are not safe in a number. */
function exactValue(json: string): unknown {
  // Most texts have no number of so many digits; a reviver is slow.
  if (!/[0-9]{16}/.test(json)) return JSON.parse(json);
  try {
    return JSON.parse(json, exactInteger);
  } catch (error) {
    // A reviver takes the stack of a call for each level, and there are not enough for some thousands of them.
    if (error instanceof RangeError) return JSON.parse(json);
    throw error;
  }
}

function exactInteger(_name: string, value: unknown, context?: { readonly source?: string }): unknown {
  if (typeof value !== "number" || Number.isSafeInteger(value)) return value;
  const source = context?.source;
  return source !== undefined && /^-?[0-9]+$/.test(source) ? BigInt(source) : value;
}

// Each level costs an indent of every line below it, and calls of the library. No object of Kubernetes' own has as many.
const BLOCK_LEVELS = 100;

/** A value on one line, as JSON, which is YAML. */
class Flow {
  readonly #value: unknown;

  constructor(value: unknown) {
    this.#value = value;
  }

  /** Without recursion: an object has up to 10,000 levels. */
  toString(): string {
    const pieces: (string | { readonly value: unknown })[] = [{ value: this.#value }];
    let text = "";
    for (let piece = pieces.pop(); piece !== undefined; piece = pieces.pop()) {
      if (typeof piece === "string") {
        text += piece;
        continue;
      }
      const { value } = piece;
      if (typeof value !== "object" || value === null) {
        text += flowScalar(value);
        continue;
      }
      const fields = Array.isArray(value)
        ? value.flatMap((item) => [", ", { value: item ?? null }])
        : Object.entries(value).sort(([a], [b]) => compareKeys(a, b))
          .flatMap(([name, field]) => [", ", `? ${flowScalar(name)} : `, { value: field }]);
      const [open, close] = Array.isArray(value) ? "[]" : "{}";
      pieces.push(close, ...fields.slice(1).reverse(), open);
    }
    return text;
  }
}

function flowScalar(value: unknown): string {
  if (typeof value === "number" || typeof value === "bigint") return yamlNumber(value);
  // What JSON does not escape, and YAML does not permit.
  return JSON.stringify(value).replace(
    /[\x7F-\x9F\u2028\u2029\uFEFF\uFFFE\uFFFF]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

type Node = import("yaml").YAMLMap | import("yaml").YAMLSeq | import("yaml").Scalar;

const SCALAR_TAGS: readonly ScalarTag[] = [
  scalarTag("flow", (value) => value instanceof Flow, String),
  scalarTag("str", (value) => typeof value === "string", (value, context) => {
    const { indent, indentAtStart, implicitKey: isKey = false } = context;
    // The library says how far the text begins behind its key, whose indent is less by one step.
    const column = indent.length +
      (indentAtStart === undefined ? 0 : indentAtStart - context.indentStep.length);
    return yamlString(value as string, { indent, column, isKey });
  }),
  scalarTag(
    "float",
    (value) => typeof value === "number" || typeof value === "bigint",
    (value) => yamlNumber(value as number | bigint),
  ),
  scalarTag("bool", (value) => typeof value === "boolean", String),
  scalarTag("null", (value) => value === null, () => "null"),
];

function scalarTag(
  name: string,
  identify: (value: unknown) => boolean,
  text: (value: unknown, context: StringifyContext) => string,
): ScalarTag {
  return {
    tag: `tag:yaml.org,2002:${name}`,
    default: true,
    identify,
    resolve: (source) => source,
    stringify: (item, context) => text(item.value, context),
  };
}

type StringifyContext = Parameters<NonNullable<ScalarTag["stringify"]>>[1];
