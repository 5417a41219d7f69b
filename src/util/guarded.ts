/**
 * Calls of users' functions that may throw.
 * @module
 */

/** Whether a value must be awaited: a function without types may return anything. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as PromiseLike<unknown> | null | undefined)?.then === "function";
}

/**
 * Calls a function and ignores its result. `onError` receives what it throws, and the rejection of the
 * promise that it returns: an `async` function is assignable to one that returns nothing, and its rejection
 * would end the program.
 */
export function callGuarded(call: () => unknown, onError: (error: unknown) => void): void {
  try {
    const result = call();
    if (isThenable(result)) result.then(undefined, onError);
  } catch (error) {
    onError(error);
  }
}
