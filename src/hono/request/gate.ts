/** The access check of every request. */

import type { Context } from "hono";
import { isTooManyRequests, newStatus, type Status } from "../../meta/status.ts";
import type { Clock, TimerHandle } from "../../util/clock.ts";
import { errorMessage } from "../../util/errors.ts";
import type { Logger } from "../../util/logger.ts";
import {
  type Asked,
  type Authenticate,
  type Authorize,
  type RequestAttributes,
  unauthorized,
  type UserInfo,
} from "./authorization.ts";
import { formatGroupResource } from "../../meta/resource.ts";
import { isStatus, resourceDetails } from "../../protocol/statuses.ts";
import { tooManyRequests } from "./refusals.ts";

/** Options of {@linkcode newGate}. */
export interface GateOptions {
  readonly authenticate?: Authenticate | undefined;
  readonly authorize?: Authorize | undefined;
  readonly allowAnonymous?: boolean | undefined;
  /** How long a hook may take. */
  readonly hookTimeoutMs: number;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The yes to one request. */
export interface Permission {
  /** The user; `undefined` if there is no `authenticate` hook. */
  readonly user: UserInfo | undefined;
  /** Runs the hooks again for the same request. */
  readonly renew: () => Promise<Permission | Status>;
}

/**
 * Lets a request through that asks for one thing, or for all of several; or returns the Status that refuses
 * it.
 */
export type Gate = (asked: Asked | readonly Asked[], c: Context) => Promise<Permission | Status>;

/**
 * Finds the user of a request; `undefined` if there is no `authenticate` hook, a Status if the request is
 * refused.
 */
export type Authentication = (c: Context, path: string) => Promise<UserInfo | undefined | Status>;

/** Makes the part of the gate that decides nothing but who the user is. */
export function newAuthentication(
  options: Pick<GateOptions, "authenticate" | "hookTimeoutMs" | "clock" | "logger">,
): Authentication {
  const { authenticate, clock, logger } = options;
  const log = newDecisionLog(logger);
  return async (c, path) => {
    if (authenticate === undefined) return undefined;
    try {
      const user: unknown = await answerOf(() => authenticate(c), options);
      if (isUser(user)) return isOver(user, clock) ? unauthorized() : user;
      if (user !== undefined) log("authenticate", user, "only an object with a name is a user");
      return unauthorized();
    } catch (error) {
      if (isTooManyRequests(error)) return tooManyRequests();
      logger.error(`Cannot authenticate the request for ${path}: ${errorMessage(error)}`, { error });
      return unauthorized();
    }
  };
}

/**
 * Makes the gate. It is fail-closed: an `authenticate` hook must return a user with a name, an `authorize`
 * hook must return `true`, and without one `allowAnonymous` must be `true`.
 */
export function newGate(options: GateOptions): Gate {
  const { authorize, allowAnonymous, logger } = options;
  const log = newDecisionLog(logger);
  const userOf = newAuthentication(options);

  async function decide(attributes: RequestAttributes, c: Context): Promise<Status | undefined> {
    if (authorize === undefined) return allowAnonymous === true ? undefined : forbidden(attributes, "");
    try {
      const decision: unknown = await answerOf(() => authorize(attributes, c), options);
      if (decision === true) return undefined;
      if (typeof decision === "string") return forbidden(attributes, decision);
      if (decision !== false) {
        log(
          "authorize",
          decision,
          "only true lets a request through; false, or a text that says why, refuses it",
        );
      }
      return forbidden(attributes, "");
    } catch (error) {
      if (isTooManyRequests(error)) return tooManyRequests();
      const { verb, path } = attributes;
      logger.error(`Cannot decide on ${verb} ${path}: ${errorMessage(error)}`, { error });
      return newStatus(500, "InternalError", "Internal error occurred: the authorization check failed");
    }
  }

  const gate: Gate = async (asked, c) => {
    if (impersonates(c)) return noImpersonation();
    const all: readonly Asked[] = Array.isArray(asked) ? asked : [asked];
    const user = await userOf(c, all[0].path);
    if (user !== undefined && isStatus(user)) return user;
    for (const one of all) {
      const refusal = await decide({ ...one, user }, c);
      if (refusal !== undefined) return refusal;
    }
    return { user, renew: () => gate(asked, c) };
  };
  return gate;
}

/**
 * Whether a request wants to be answered as another user would be: with a header such as `Impersonate-User`.
 */
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

/** What a hook returns, if it does in time. */
async function answerOf(
  ask: () => unknown,
  { clock, hookTimeoutMs }: Pick<GateOptions, "clock" | "hookTimeoutMs">,
): Promise<unknown> {
  const answer = ask();
  if (typeof (answer as PromiseLike<unknown> | undefined)?.then !== "function") return answer;
  let timer: TimerHandle;
  const late = new Promise<never>((_, reject) => {
    timer = clock.setTimeout(
      () => reject(new Error(`the hook has not answered within ${hookTimeoutMs} ms`)),
      hookTimeoutMs,
    );
  });
  try {
    return await Promise.race([answer, late]);
  } finally {
    clock.clearTimeout(timer);
  }
}

function isUser(user: unknown): user is UserInfo {
  if (typeof user !== "object" || user === null || Array.isArray(user)) return false;
  const { name, expiresAtMs } = user as Partial<UserInfo>;
  if (typeof name !== "string" || name === "") return false;
  // A time that is none would be one that never comes.
  return expiresAtMs === undefined || (typeof expiresAtMs === "number" && !Number.isNaN(expiresAtMs));
}

/** Whether a user's credential has ended. */
function isOver(user: UserInfo | undefined, clock: Clock): boolean {
  return user?.expiresAtMs !== undefined && user.expiresAtMs <= clock.now();
}

/** Says once of each hook that it answered with something that is no decision. */
function newDecisionLog(logger: Logger): (hook: string, answer: unknown, rule: string) => void {
  const logged = new Set<string>();
  return (hook, answer, rule) => {
    if (logged.has(hook)) return;
    logged.add(hook);
    const what = answer === null
      ? "null"
      : Array.isArray(answer)
      ? "an array"
      : `a value of type ${typeof answer}`;
    logger.error(
      `The ${hook} hook answered with ${
        answer === undefined ? "undefined" : what
      }, which is no decision: ${rule}. ` +
        "The request was refused; this is logged once",
      { hook },
    );
  };
}

function forbidden(attributes: RequestAttributes, why: string): Status {
  const { verb, group, resource, name, path } = attributes;
  const user = JSON.stringify(attributes.user?.name ?? "system:anonymous");
  const reason = why === "" ? "" : `: ${why}`;
  if (attributes.scope === "path") {
    return newStatus(403, "Forbidden", `forbidden: User ${user} cannot ${verb} path "${path}"${reason}`, {});
  }
  const qualified = attributes.subresource === undefined ? resource : `${resource}/${attributes.subresource}`;
  const what = name === ""
    ? formatGroupResource(attributes)
    : `${formatGroupResource(attributes)} ${JSON.stringify(name)}`;
  const where = attributes.scope === "cluster"
    ? "at the cluster scope"
    : `in the namespace "${attributes.namespace}"`;
  return newStatus(
    403,
    "Forbidden",
    `${what} is forbidden: User ${user} cannot ${verb} resource "${qualified}" in API group "${group}" ${where}${reason}`,
    { ...(name !== "" && { name }), ...resourceDetails(attributes) },
  );
}
