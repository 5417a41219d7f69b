/** The access check of every request: its hooks, what they decide on, and what they let through. */

import type { Context } from "hono";
import { isTooManyRequests, newStatus, type Status } from "../../meta/status.ts";
import { withTimeLimit } from "../../util/abort.ts";
import { type Clock, monotonicNow } from "../../util/clock.ts";
import { errorMessage, isThenable } from "../../util/errors.ts";
import { recordOf } from "../../util/json.ts";
import { limitedLogger, type Logger } from "../../util/logger.ts";
import { formatGroupResource } from "../../meta/resource.ts";
import { isStatus, quotedByGo, resourceDetails } from "../../protocol/statuses.ts";
import { tooManyRequests } from "./refusals.ts";
import type { ResourcePath } from "../../protocol/request_url.ts";

/** The user of a request, as an `authenticate` hook found it. */
export interface UserInfo {
  readonly name: string;
  readonly uid?: string;
  readonly groups?: readonly string[];
  /** Anything else that the `authorize` hook wants to know. */
  readonly extra?: unknown;
  /**
   * When the credential ends, in milliseconds since the Unix epoch. The hooks run again shortly before, for
   * each open watch; unless they permit it, the watch ends then.
   */
  readonly expiresAtMs?: number;
}

interface ResourceAttributes {
  readonly verb: "get" | "list" | "watch";
  /** The request's path, without what the app is mounted under. */
  readonly path: string;
  /** The user; `undefined` if there is no `authenticate` hook. */
  readonly user: UserInfo | undefined;
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  /** `pods`. */
  readonly resource: string;
  /** `status`, `scale` and so on; absent for the object itself. */
  readonly subresource?: string;
  /** The name of one object, from the path or the field selector `metadata.name=NAME`. Empty otherwise. */
  readonly name: string;
}

/**
 * The attributes of a request, in Kubernetes' words. `scope` says how far the request reaches:
 *
 * - `"namespace"`: one namespace, which `namespace` names. The object `namespaces/shop` is in the namespace
 *   `shop`, as for an API server.
 * - `"cluster"`: all namespaces, or objects that live in none. `namespace` is `undefined`: a rule that lists
 *   what may be read refuses, one that lists what may not (`namespace !== "kube-system"`) would show
 *   everything.
 * - `"path"`: no resource but discovery, or an unknown path. `resource` is empty; see `path`.
 */
export type RequestAttributes =
  | ResourceAttributes & { readonly scope: "namespace"; readonly namespace: string }
  | ResourceAttributes & { readonly scope: "cluster"; readonly namespace: undefined }
  | ResourceAttributes & { readonly scope: "path"; readonly resource: ""; readonly namespace: undefined };

/**
 * Finds the user of a request: an object with a name. Anything else (no known user), a failure, and an answer
 * that does not come within `hookTimeoutMs` are answered with 401. Requests with `Impersonate-User` or
 * another header of impersonation are refused with 403 before it is called.
 */
export type Authenticate = (c: Context) => UserInfo | undefined | Promise<UserInfo | undefined>;

/**
 * Decides on one request. Only `true` lets it through. `false`, a text that says why, and any other answer
 * with 403. If it throws, or does not answer within `hookTimeoutMs`, the answer is 500, or 429 for a
 * `StatusError` of 429; nothing is served. An open watch for which a hook is called again stays open at a
 * 429, and the hook is called once more after 5 s.
 *
 * {@linkcode allowNamespaces} and {@linkcode subjectAccessReview} make such hooks.
 */
export type Authorize = (
  attributes: RequestAttributes,
  c: Context,
) => boolean | string | Promise<boolean | string>;

/** A request's attributes without the user. */
export type Asked = RequestAttributes extends infer Each ? Each extends unknown ? Omit<Each, "user"> : never
  : never;

/** The attributes of a request for a resource. */
export function askedOf(
  path: ResourcePath,
  { verb, name }: { readonly verb: RequestAttributes["verb"]; readonly name: string },
): Asked {
  const { group, version, resource, subresource } = path;
  const of = { group, version, resource, ...(subresource !== "" && { subresource }) };
  const common = { verb, name, ...of, path: path.path };
  // A path of a namespace itself is one in that namespace, as API servers have it.
  const namespace = path.namespace || (group === "" && resource === "namespaces" ? path.name : "");
  return namespace === ""
    ? { ...common, scope: "cluster", namespace: undefined }
    : { ...common, scope: "namespace", namespace };
}

/** The attributes of a request for a path without a resource. */
export function askedOfPath(path: string): Asked {
  const nothing = { group: "", version: "", resource: "", name: "" } as const;
  return { ...nothing, verb: "get", scope: "path", namespace: undefined, path };
}

export function unauthorized(): Status {
  return newStatus(401, "Unauthorized", "Unauthorized");
}

/** The yes to one request. */
export interface Permission {
  /** The user; `undefined` if there is no `authenticate` hook. */
  readonly user: UserInfo | undefined;
  /** Runs the hooks again for the same request. */
  readonly renew: () => Promise<Permission | Status>;
}

export type Answer = Response | Status;

/**
 * A request's attributes, and the function that answers it once it is permitted. Nothing is read before:
 * `answer` makes what a route answers with, 404 and 400 included.
 */
export type Route<Target = unknown> =
  | {
    /** The hooks decide. */
    readonly access: "hooks";
    /** The attributes of the request; all of several must be permitted. */
    readonly asked: Asked | readonly Asked[];
    /** The resource whose freshness the headers of the answer show. */
    readonly target?: Target;
    /** Whether the request is a watch, which a WebSocket may have. */
    readonly isWatch?: boolean;
    answer(permission: Permission): Answer | Promise<Answer>;
  }
  | {
    /** The API server decides, by the reader's own credentials, which are all that is sent there. */
    readonly access: "API server";
    readonly path: string;
    /** Whether its answer is a stream that may last: a watch, or a log that is followed. */
    readonly isStream: boolean;
    /** Whether the request is a watch, which a WebSocket may have. */
    readonly isWatch?: boolean;
    answer(user: UserInfo | undefined): Answer | Promise<Answer>;
  }
  | {
    /** Every client may have the answer: it shows nothing of what is served. */
    readonly access: "open";
    answer(): Answer | Promise<Answer>;
  };

export interface GateOptions {
  readonly authenticate?: Authenticate | undefined;
  readonly authorize?: Authorize | undefined;
  readonly allowAnonymous?: boolean | undefined;
  /** How long a hook may take. */
  readonly hookTimeoutMs: number;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * The access check. It is fail-closed: an `authenticate` hook must return a user with a name, an `authorize`
 * hook must return `true`, and without one `allowAnonymous` must be `true`.
 */
export class Gate {
  readonly #options: GateOptions;
  readonly #failures: Pick<Logger, "error">;
  /** The hooks that have answered with something that is no decision. */
  readonly #logged = new Set<string>();

  constructor(options: GateOptions) {
    this.#options = options;
    this.#failures = limitedLogger(options.logger, () => monotonicNow(options.clock));
  }

  /** Lets a request through that asks for one thing, or for all of several; or the Status that refuses it. */
  async permit(asked: Asked | readonly Asked[], c: Context): Promise<Permission | Status> {
    if (impersonates(c)) return noImpersonation();
    const all: readonly Asked[] = Array.isArray(asked) ? asked : [asked];
    const user = await this.userOf(c, all[0].path);
    if (user !== undefined && isStatus(user)) return user;
    for (const one of all) {
      const refusal = await this.#decide({ ...one, user }, c);
      if (refusal !== undefined) return refusal;
    }
    return { user, renew: () => this.permit(asked, c) };
  }

  /** Finds the user of a request, or the Status that refuses it; `undefined` if there is no hook. */
  async userOf(c: Context, path: string): Promise<UserInfo | undefined | Status> {
    const { authenticate, clock } = this.#options;
    if (authenticate === undefined) return undefined;
    try {
      const user: unknown = await answerOf(() => authenticate(c), this.#options);
      if (isUser(user)) return isOver(user, clock) ? unauthorized() : user;
      if (user !== undefined) this.#log("authenticate", user, "only an object with a name is a user");
      return unauthorized();
    } catch (error) {
      if (isTooManyRequests(error)) return tooManyRequests();
      this.#failures.error(`Cannot authenticate the request for ${path}: ${errorMessage(error)}`, { error });
      return unauthorized();
    }
  }

  async #decide(attributes: RequestAttributes, c: Context): Promise<Status | undefined> {
    const { authorize, allowAnonymous } = this.#options;
    if (authorize === undefined) return allowAnonymous === true ? undefined : forbidden(attributes, "");
    try {
      const decision: unknown = await answerOf(() => authorize(attributes, c), this.#options);
      if (decision === true) return undefined;
      if (typeof decision === "string") return forbidden(attributes, decision);
      const rule = "only true lets a request through; false, or a text that says why, refuses it";
      if (decision !== false) this.#log("authorize", decision, rule);
      return forbidden(attributes, "");
    } catch (error) {
      if (isTooManyRequests(error)) return tooManyRequests();
      const { verb, path } = attributes;
      this.#failures.error(`Cannot decide on ${verb} ${path}: ${errorMessage(error)}`, { error });
      return newStatus(500, "InternalError", "Internal error occurred: the authorization check failed");
    }
  }

  /** Says once of each hook that it answered with something that is no decision. */
  #log(hook: string, answer: unknown, rule: string): void {
    if (this.#logged.has(hook)) return;
    this.#logged.add(hook);
    const what = `The ${hook} hook answered with ${typeOf(answer)}, which is no decision: ${rule}`;
    this.#options.logger.error(`${what}. The request was refused; this is logged once`, { hook });
  }
}

/** Whether a request wants to be answered as another user: by a header such as `Impersonate-User`. */
export function impersonates(c: Context): boolean {
  for (const name of c.req.raw.headers.keys()) if (name.startsWith("impersonate-")) return true;
  return false;
}

/**
 * 403: hooks decide on the user that sends the request. A proxy that sends its own credentials, and its user
 * in these headers, would read for every user what only the proxy may read.
 */
function noImpersonation(): Status {
  const text =
    "this cache does not impersonate users: leave out the Impersonate headers (kubectl --as), or use the API server itself";
  return newStatus(403, "Forbidden", text, {});
}

/** The answer of a hook, if it comes in time. */
async function answerOf(
  ask: () => unknown,
  { clock, hookTimeoutMs }: Pick<GateOptions, "clock" | "hookTimeoutMs">,
): Promise<unknown> {
  const answer = ask();
  if (!isThenable(answer)) return answer;
  const newError = () => new Error(`the hook has not answered within ${hookTimeoutMs} ms`);
  return await withTimeLimit(() => Promise.resolve(answer), { ms: hookTimeoutMs, newError, clock });
}

function isUser(user: unknown): user is UserInfo {
  const { name, expiresAtMs } = recordOf(user);
  if (typeof name !== "string" || name === "") return false;
  // A time that is none would be one that never comes.
  return expiresAtMs === undefined || (typeof expiresAtMs === "number" && !Number.isNaN(expiresAtMs));
}

function isOver(user: UserInfo | undefined, clock: Clock): boolean {
  return user?.expiresAtMs !== undefined && user.expiresAtMs <= clock.now();
}

/** The type of a value, for error texts. */
export function typeOf(value: unknown): string {
  if (value === undefined || value === null) return String(value);
  return Array.isArray(value) ? "an array" : `a value of type ${typeof value}`;
}

function forbidden(attributes: RequestAttributes, why: string): Status {
  const { verb, group, resource, name, path } = attributes;
  const user = quotedByGo(attributes.user?.name ?? "system:anonymous");
  const reason = why === "" ? "" : `: ${why}`;
  if (attributes.scope === "path") {
    const message = `forbidden: User ${user} cannot ${verb} path ${quotedByGo(path)}${reason}`;
    return newStatus(403, "Forbidden", message, {});
  }
  const qualified = attributes.subresource === undefined ? resource : `${resource}/${attributes.subresource}`;
  const what = name === ""
    ? formatGroupResource(attributes)
    : `${formatGroupResource(attributes)} ${quotedByGo(name)}`;
  const where = attributes.scope === "cluster"
    ? "at the cluster scope"
    : `in the namespace "${attributes.namespace}"`;
  const message =
    `${what} is forbidden: User ${user} cannot ${verb} resource "${qualified}" in API group "${group}" ${where}${reason}`;
  return newStatus(403, "Forbidden", message, {
    ...(name !== "" && { name }),
    ...resourceDetails(attributes),
  });
}
