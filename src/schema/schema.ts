/** A user's schema for a kind of object. */

/**
 * Checks whether a value is a `T`: any [Standard Schema](https://standardschema.dev) version 1, such as a
 * schema of zod, Valibot or ArkType, or an object of your own with this one property.
 *
 * It only gives a verdict. The value itself is passed on, never the schema's output, so `T` is the schema's
 * input: defaults are not filled in, unknown fields are kept. It must answer at once, without a promise.
 */
export interface Schema<T> {
  /** The properties that Standard Schema asks for. */
  readonly "~standard": SchemaProperties<T>;
}

/** The properties of a {@linkcode Schema}. */
export interface SchemaProperties<T> {
  readonly version: 1;
  readonly vendor: string;
  /** Validates a value. A promise is refused. */
  readonly validate: (value: unknown) => SchemaResult | PromiseLike<SchemaResult>;
  /** Types for the type checker only. */
  readonly types?: { readonly input: T; readonly output: unknown } | undefined;
}

/** A schema's verdict: without issues, the value is accepted. */
export type SchemaResult =
  | { readonly value: unknown; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] };

/** A fault of a value. */
export interface SchemaIssue {
  readonly message: string;
  /** The path of the fault: the properties from the outside in. */
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** Asks a schema about a value: what is wrong with it, or `undefined`. */
export function issuesOf(schema: Schema<unknown>, value: unknown): readonly SchemaIssue[] | undefined {
  let result: SchemaResult | PromiseLike<SchemaResult>;
  try {
    result = schema["~standard"].validate(value);
  } catch (error) {
    return [{
      message: `the schema threw ${error instanceof Error ? `${error.name}: ${error.message}` : error}`,
    }];
  }
  if ("then" in result) {
    result.then(undefined, () => {}); // so that its failure is not reported as unhandled
    throw new TypeError(
      `Cannot validate with an asynchronous schema (${schema["~standard"].vendor}): ` +
        "events must be validated in one turn, in their order; use a schema without async refinements or transforms",
    );
  }
  return result.issues !== undefined && result.issues.length > 0 ? result.issues : undefined;
}

/** A path as it is read: `spec.containers[0].image`; a key that is no name is quoted. */
export function formatPath(path: SchemaIssue["path"]): string {
  let text = "";
  for (const segment of path ?? []) {
    const key = typeof segment === "object" ? segment.key : segment;
    if (typeof key === "number") text += `[${key}]`;
    else if (typeof key === "string" && /^[A-Za-z_$][\w$-]*$/.test(key)) {
      text += text === "" ? key : `.${key}`;
    } else text += `[${JSON.stringify(String(key))}]`;
  }
  return text;
}

/** A path inside another. */
export function joinPath(outer: string, inner: string): string {
  if (outer === "" || inner === "") return outer + inner;
  return inner.startsWith("[") ? outer + inner : `${outer}.${inner}`;
}
