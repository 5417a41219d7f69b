/**
 * The validators, and zod with them, loaded with the first request: zod is 80 modules, a third of the time that an import
 * of the library would take.
 *
 * @module
 */

/** The exports of the module with the validators. */
export type Validators = typeof import("../schema/validator.ts");

let loading: Promise<Validators> | undefined;

/** Loads the validators once. After a failure, as of a network that serves modules, the next call tries again. */
export function loadValidators(): Promise<Validators> {
  return loading ??= import("../schema/validator.ts").catch((error) => {
    loading = undefined;
    throw error;
  });
}
