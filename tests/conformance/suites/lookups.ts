import { argument, type Outcome, type Step, unknownOp } from "./harness.ts";
import { decodeValue, encodeValue, type Json } from "./values.ts";

/** What finds values by their keys: stores, heaps, queues that merge. */
export interface Lookups<V> {
  list(): unknown[];
  listKeys(): string[];
  get(object: unknown): V | undefined;
  getByKey(key: string): V | undefined;
}

/** Performs a step that only looks: `list`, `listKeys`, `get`, `getByKey`. */
export function lookUp<V>(values: Lookups<V>, step: Step, encode: (value: V) => Json = encodeValue): Outcome {
  const found = (value: V | undefined): Outcome => ({
    exists: value !== undefined,
    value: value === undefined ? null : encode(value),
  });
  switch (step.op) {
    case "list":
      return { value: values.list().map(encodeValue) };
    case "listKeys":
      return { value: values.listKeys() };
    case "get":
      return found(values.get(decodeValue(argument(step, "object"))));
    case "getByKey":
      return found(values.getByKey(argument(step, "key")));
    default:
      return unknownOp(step);
  }
}
