/**
 * The base class of the library's errors: an `Error` with a stable {@linkcode CacheError.code}. Misuse of an
 * API throws a built-in `TypeError` or `RangeError` instead.
 *
 * @example
 * ```ts
 * import { CacheError, metaNamespaceKey } from "@listwatch/cache";
 * try {
 *   metaNamespaceKey("not an object");
 * } catch (error) {
 *   if (error instanceof CacheError) console.log(error.code); // NoMeta
 * }
 * ```
 *
 * @category Objects and errors
 */
export class CacheError extends Error {
  /** The kind of error; stable across releases, unlike the message. */
  readonly code: string;

  constructor(code: string, message: string, { cause }: { readonly cause?: unknown } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.name = new.target.name;
  }
}

/** A thrown value's text: an `Error`'s message, or the value as a string. */
export function errorMessage(error: unknown): string {
  try {
    return error instanceof Error ? String(error.message) : String(error);
  } catch {
    return "something without a text"; // an object without a prototype, or whose text throws
  }
}

/** A thrown value as an `Error`. */
export function toError(error: unknown): Error {
  return error instanceof Error ? error : new Error(errorMessage(error));
}

/**
 * An error, the first four that an AggregateError joins, its cause, and theirs: up to sixteen, as they may be
 * a circle. What has a message is an error: one of another realm is no instance of this one's `Error`.
 */
export function errorChain(error: unknown): Error[] {
  const chain: Error[] = [];
  const pending = [error];
  while (pending.length > 0 && chain.length < 16) {
    const next = pending.shift() as AggregateError | null | undefined;
    if (typeof next?.message !== "string") continue;
    chain.push(next);
    if (Array.isArray(next.errors)) pending.push(...next.errors.slice(0, 4));
    pending.push(next.cause);
  }
  return chain;
}

/** Finds the first error of a class in an error, its causes and what it joins: as Go's `errors.As`. */
export function findCause<E>(
  error: unknown,
  errorClass: abstract new (...args: never[]) => E,
): E | undefined {
  return errorChain(error).find((each) => each instanceof errorClass) as E | undefined;
}

/** Whether a value must be awaited: a function without types may return anything. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as PromiseLike<unknown> | null | undefined)?.then === "function";
}

/**
 * The result of a function, unless that is a promise: it has no value now, and its rejection would end the
 * program.
 * @throws {TypeError} The result is a promise.
 */
export function atOnce<R>(result: R): R {
  if (!isThenable(result)) return result;
  result.then(undefined, () => {});
  throw new TypeError("it must return no promise");
}

/**
 * Calls a function, with an argument if it takes one, and ignores its result. `onError` receives what it
 * throws, and the rejection of the promise that it returns: an `async` function is assignable to one that
 * returns nothing, and its rejection would end the program.
 */
export function callGuarded(call: () => unknown, onError: (error: unknown) => void): void;
export function callGuarded<A>(call: (arg: A) => unknown, onError: (error: unknown) => void, arg: A): void;
export function callGuarded<A>(call: (arg: A) => unknown, onError: (error: unknown) => void, arg?: A): void {
  try {
    const result = call(arg as A);
    if (isThenable(result)) result.then(undefined, onError);
  } catch (error) {
    onError(error);
  }
}

/** Functions that are called with each of some events; one that throws, or rejects, ends no other one. */
export class Listeners<E> {
  readonly #all = new Set<(event: E) => void>();
  readonly #onError: (error: unknown) => void;

  constructor(onError: (error: unknown) => void) {
    this.#onError = onError;
  }

  get size(): number {
    return this.#all.size;
  }

  /** Adds one; returns a function that removes it, and says whether it was still there. */
  add(listener: (event: E) => void): () => boolean {
    this.#all.add(listener);
    return () => this.#all.delete(listener);
  }

  /** Calls them, in the order in which they were added. */
  call(event: E): void {
    for (const listener of this.#all) callGuarded(listener, this.#onError, event);
  }
}
