export interface JsonObject {
  readonly [field: string]: unknown;
}

// Older runtimes do not have it; large numbers lose their last digits there.
const { rawJSON } = JSON as unknown as { rawJSON?: (text: string) => unknown };

// Every number beyond 2^53 has sixteen digits in a row; most texts have none.
const MAY_HOLD_A_LARGE_INTEGER = /[0-9]{16}/;

/**
 * Parses JSON. Integers beyond 2^53 keep all their digits, if the runtime has `JSON.rawJSON`:
 * `JSON.stringify` writes such values as they were.
 * @throws {SyntaxError} The text is not JSON.
 */
export function parseJson(text: string): unknown {
  if (rawJSON === undefined || !MAY_HOLD_A_LARGE_INTEGER.test(text)) return JSON.parse(text);
  return JSON.parse(text, function (_key: string, value: unknown, context?: { readonly source?: string }) {
    const isRounded = typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value);
    const source = context?.source;
    return isRounded && source !== undefined && /^-?[0-9]+$/.test(source) ? rawJSON(source) : value;
  });
}

/** A deep copy, as if the value had been sent and received. */
export function cloneJson<T>(value: T): T {
  return parseJson(JSON.stringify(value)) as T;
}

export function without(object: JsonObject, ...fields: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([field]) => !fields.includes(field)));
}
