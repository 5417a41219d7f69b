import { failureInWords } from "../../meta/request.ts";
import { statusErrorOf } from "../../meta/status.ts";
import { errorChain } from "../../util/errors.ts";

/** An object appeared. */
export const ADD = "add";
/** The type of {@linkcode ADD}. */
export type ADD = typeof ADD;
/** An object changed. */
export const UPDATE = "update";
/** The type of {@linkcode UPDATE}. */
export type UPDATE = typeof UPDATE;
/** An object appeared, changed or was deleted. */
export const CHANGE = "change";
/** The type of {@linkcode CHANGE}. */
export type CHANGE = typeof CHANGE;
/** An object was deleted. */
export const DELETE = "delete";
/** The type of {@linkcode DELETE}. */
export type DELETE = typeof DELETE;
/** The server has answered: after the start, and after each watch that ended. */
export const CONNECT = "connect";
/** The type of {@linkcode CONNECT}. */
export type CONNECT = typeof CONNECT;
/** A list or a watch failed; it is tried again. */
export const ERROR = "error";
/** The type of {@linkcode ERROR}. */
export type ERROR = typeof ERROR;

/**
 * The part of an object that an informer needs. The classes of client-node fit, and so do the interfaces of
 * `kubernetes-types`.
 */
export interface ClientNodeObject {
  /** The API version, such as `v1`. */
  readonly apiVersion?: string;
  /** The kind, such as `Pod`. */
  readonly kind?: string;
  /** The object's names and versions. */
  readonly metadata?: {
    readonly name?: string;
    readonly namespace?: string;
    readonly uid?: string;
    readonly resourceVersion?: string;
  };
}

/** Receives the object that changed. Its result is ignored; its errors and rejections are logged. */
// deno-lint-ignore no-explicit-any -- client-node's callbacks may be async: any result fits
export type ObjectCallback<T extends ClientNodeObject> = (object: T) => any;

/** Receives a `ListWatchError` for the verb `error`, and nothing for `connect`. */
// deno-lint-ignore no-explicit-any -- as client-node declares it: programs read its properties
export type ErrorCallback = (error?: any) => any;

/** A list, as client-node's API returns it. Its type gives that of the objects; it is not called. */
export type ListPromise<T extends ClientNodeObject> = () => Promise<{ readonly items: T[] }>;

/** The objects of an informer, to look up. */
export interface ObjectCache<T extends ClientNodeObject> {
  /** An object by its name; `undefined` if there is none. */
  get(name: string, namespace?: string): T | undefined;
  /** All objects, or those of one namespace. */
  list(namespace?: string): ReadonlyArray<T>;
}

/** client-node's informer. */
export interface ClientNodeInformer<T extends ClientNodeObject> {
  /** Adds a callback. */
  on(verb: ADD | UPDATE | DELETE | CHANGE, callback: ObjectCallback<T>): void;
  /** Adds a callback of the connection. */
  on(verb: ERROR | CONNECT, callback: ErrorCallback): void;
  /** Removes a callback. */
  off(verb: ADD | UPDATE | DELETE | CHANGE, callback: ObjectCallback<T>): void;
  /** Removes a callback of the connection. */
  off(verb: ERROR | CONNECT, callback: ErrorCallback): void;
  /** Starts it; does nothing while it runs. */
  start(): Promise<void>;
  /** Stops it; the stored objects can still be read. */
  stop(): Promise<void>;
}

/**
 * A list or watch that failed, with the properties that programs read of client-node's errors. The
 * informer tries again by itself. Its `cause` is the error of this package: a `StatusError`, a
 * `NetworkError` or what the `KubeConfig` threw.
 *
 * @example
 * ```ts
 * import { isForbidden } from "@listwatch/cache";
 * import { ListWatchError } from "@listwatch/cache/compat/client-node";
 * function onError(error: unknown) {
 *   if (error instanceof ListWatchError && isForbidden(error.cause)) console.log(error.statusCode, error.message); // 403
 * }
 * ```
 */
export class ListWatchError extends Error {
  /** The HTTP status of the server's answer; `undefined` if there was no answer. */
  readonly statusCode: number | undefined;
  /**
   * The HTTP status, as client-node's `ApiException` has it;
   * without an answer the system's code: `ECONNREFUSED`.
   */
  readonly code: number | string | undefined;

  /** @param error The failure. */
  constructor(error: Error) {
    super(error.message, { cause: error });
    this.name = "ListWatchError";
    const status = statusErrorOf(error)?.httpStatus;
    this.statusCode = status || undefined;
    this.code = this.statusCode ?? systemCodeOf(error);
  }

  /** Why it failed, in a few words that are the same on every runtime. */
  get reason(): string {
    return failureInWords(this.cause);
  }
}

/** The code of the innermost error that has one: runtimes wrap what the system said. */
function systemCodeOf(error: unknown): string | undefined {
  const codes = errorChain(error).map((each) => (each as { code?: unknown }).code);
  return codes.findLast((code) => typeof code === "string");
}
