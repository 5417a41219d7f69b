import { argument, type Outcome, type Step, unknownOp } from "./harness.ts";
import { decodeValue, encodeValue, type Json } from "./values.ts";

/** What finds values by their keys: stores, heaps, queues that merge. */
export interface Lookups<V> {
  list(): unknown[];
  listKeys(): string[];
  get(object: unknown): V | undefined;
  getByKey(key: string): V | undefined;
}

/** Between JSON forms and values; those of objects as they are by default. */
export interface LookupForms<V> {
  readonly decode?: (json: Json) => unknown;
  readonly encode?: (value: unknown) => Json;
  /** For what `get` and `getByKey` return, if that is something else than an object. */
  readonly encodeFound?: (value: V) => Json;
}

/** Performs a step that only looks: `list`, `listKeys`, `get`, `getByKey`. */
export function lookUp<V>(
  values: Lookups<V>,
  step: Step,
  { decode = decodeValue, encode = encodeValue, encodeFound = encode }: LookupForms<V> = {},
): Outcome {
  const found = (value: V | undefined): Outcome => ({
    exists: value !== undefined,
    value: value === undefined ? null : encodeFound(value),
  });
  switch (step.op) {
    case "list":
      return { value: values.list().map(encode) };
    case "listKeys":
      return { value: values.listKeys() };
    case "get":
      return found(values.get(decode(argument(step, "object"))));
    case "getByKey":
      return found(values.getByKey(argument(step, "key")));
    default:
      return unknownOp(step);
  }
}
