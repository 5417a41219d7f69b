/** The values of fields as they are sorted and compared: numbers, times, texts. */

/**
 * A value as it is compared: a number (also that of a quantity such as `100m` or `2Gi`), a time in
 * milliseconds, a boolean, or a text.
 */
export type TypedValue =
  | { readonly type: "boolean" | "number" | "time"; readonly number: number }
  | { readonly type: "text"; readonly text: string };

/** Kubernetes' suffixes of quantities. */
const FACTORS: Readonly<Record<string, number>> = {
  "": 1,
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
};

const QUANTITY = /^([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))((?:[KMGTPE]i|[numkMGTPE])?|[eE][+-]?[0-9]{1,3})$/;
const TIME =
  /^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?(?:Z|[+-][0-9]{2}:[0-9]{2})$/;
// Longer texts are neither.
const MAX_LENGTH = 64;

/** A scalar as it is compared; `undefined` for what has no order: null, objects, arrays. */
export function typedValue(value: unknown): TypedValue | undefined {
  if (typeof value === "number") return { type: "number", number: value };
  if (typeof value === "boolean") return { type: "boolean", number: value ? 1 : 0 };
  if (typeof value !== "string") return undefined;
  if (value.length <= MAX_LENGTH) {
    const quantity = QUANTITY.exec(value);
    if (quantity !== null) {
      const [, number, suffix] = quantity;
      const factor = FACTORS[suffix];
      return {
        type: "number",
        number: factor === undefined ? Number(number + suffix) : Number(number) * factor,
      };
    }
    if (TIME.test(value)) {
      const time = Date.parse(value);
      if (!Number.isNaN(time)) return { type: "time", number: time };
    }
  }
  return { type: "text", text: value };
}
