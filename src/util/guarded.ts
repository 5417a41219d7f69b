/**
 * Calling a user's function without being brought down by it.
 * @module
 */

/** Whether a value must be awaited: a function that was written without types may return anything. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as PromiseLike<unknown> | null | undefined)?.then === "function";
}

/**
 * Calls a function whose result nobody waits for. What it throws, or what the promise that it returns rejects with, goes
 * to `onError`: an `async` function passes for one that returns nothing, and its rejection would end the program.
 */
export function callGuarded(call: () => unknown, onError: (error: unknown) => void): void {
  try {
    const result = call();
    if (isThenable(result)) result.then(undefined, onError);
  } catch (error) {
    onError(error);
  }
}
