/** Documents as YAML. */

import type { CreateNodeOptions, DocumentOptions, ScalarTag, SchemaOptions, ToStringOptions } from "yaml";

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
  const { stringify } = await import("yaml");
  return {
    document(json) {
      const value = exactValue(json);
      return isDeep(value) ? `${onOneLine(json)}\n` : stringify(value, OPTIONS);
    },
    item(json) {
      const value = exactValue(json);
      return isDeep(value) ? `- ${onOneLine(json)}\n` : stringify([value], OPTIONS);
    },
  };
}

/** The value of a JSON text, with bigints for integers that are not safe in a number. */
function exactValue(json: string): unknown {
  // Most texts have no number of so many digits; a reviver is slow.
  if (!/[0-9]{16}/.test(json)) return JSON.parse(json);
  try {
    return JSON.parse(json, exactInteger);
  } catch (error) {
    // A reviver takes the stack of a call for each level, and there are not enough for some thousands of
    // them.
    if (error instanceof RangeError) return JSON.parse(json);
    throw error;
  }
}

function exactInteger(_name: string, value: unknown, context?: { readonly source?: string }): unknown {
  if (typeof value !== "number" || Number.isSafeInteger(value)) return value;
  const source = context?.source;
  return source !== undefined && /^-?[0-9]+$/.test(source) ? BigInt(source) : value;
}

// Each level costs an indent of every line below it, and calls of the library. No built-in object has as
// many.
const BLOCK_LEVELS = 100;

function isDeep(value: unknown, levels = BLOCK_LEVELS): boolean {
  if (typeof value !== "object" || value === null) return false;
  return levels === 0 || Object.values(value).some((field) => isDeep(field, levels - 1));
}

// Characters that JSON does not escape, and YAML 1.1 takes for the end of a line, or does not permit.
const SPECIAL = /[\x7F-\x9F\u2028\u2029\uFEFF\uFFFE\uFFFF]/;
const ALL_SPECIAL = /[\x7F-\x9F\u2028\u2029\uFEFF\uFFFE\uFFFF]/g;
// Octal numbers of YAML 1.2, hexadecimal ones, merge keys, default values, and marks of documents.
const OTHER_MEANING = /^(?:[-+]?0[oOxX]|<<$|=$|---|\.\.\.)/;

function onOneLine(json: string): string {
  return json.replace(/[\n\r]/g, " ").replace(
    ALL_SPECIAL,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

// A block of such lines loses its blanks, as nothing shows how far it is indented.
const BLANK_LINES = /^[ \n]+$/;

/** Strings that the library would write in a form that another reader takes for something else. */
const QUOTED: ScalarTag = {
  tag: "tag:yaml.org,2002:str",
  default: true,
  identify: (value) =>
    typeof value === "string" &&
    (SPECIAL.test(value) || OTHER_MEANING.test(value) || BLANK_LINES.test(value)),
  // The library prefers tags with a test.
  test: OTHER_MEANING,
  resolve: (text) => text,
  stringify: ({ value }) => onOneLine(JSON.stringify(value)),
};

const OPTIONS: CreateNodeOptions & DocumentOptions & SchemaOptions & ToStringOptions = {
  // The version of API servers and kubectl, in which `yes` and dates have types of their own.
  version: "1.1",
  sortMapEntries: true,
  aliasDuplicateObjects: false,
  customTags: (tags) => [QUOTED, ...tags],
  indentSeq: false,
  lineWidth: 0,
};
