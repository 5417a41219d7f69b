/**
 * Judging what an API server sends.
 * @module
 */

export type { Schema, SchemaIssue, SchemaProperties, SchemaResult } from "./schema.ts";
export type { LooseList } from "./kubernetes_schemas.ts";
export { newEventValidator, newObjectValidator, validateList, type ValidatorOptions } from "./validator.ts";
