/**
 * Who may read what.
 * @module
 */

import type { Context } from "hono";
import { newStatus, type Status } from "../meta/status.ts";
import { errorMessage } from "../util/errors.ts";
import type { Logger } from "../util/logger.ts";
import { groupAndKind, qualified } from "./responses.ts";

/**
 * Who asks, as an `authenticate` hook found out.
 *
 * @example
 * ```ts
 * import type { UserInfo } from "@listwatch/cache/hono";
 * const user: UserInfo = { name: "jane", groups: ["developers"] };
 * ```
 */
export interface UserInfo {
  readonly name: string;
  readonly groups?: readonly string[];
  /** Anything else that the `authorize` hook wants to know. */
  readonly extra?: unknown;
}

/**
 * What is asked for, in Kubernetes' words. For what is no resource (discovery) `resource` is empty and `path` tells.
 *
 * @example
 * ```ts
 * import type { RequestAttributes } from "@listwatch/cache/hono";
 * function mayRead({ namespace, resource, user }: RequestAttributes): boolean {
 *   return resource === "pods" && namespace === user?.name;
 * }
 * ```
 */
export interface RequestAttributes {
  readonly verb: "get" | "list" | "watch";
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  /** `pods`; empty for discovery. */
  readonly resource: string;
  /** Empty: across all namespaces, or a cluster-scoped resource. */
  readonly namespace: string;
  /** One object: by its path, or by the field selector `metadata.name=NAME`. Empty otherwise. */
  readonly name: string;
  /** The request's path, without what the app is mounted under. */
  readonly path: string;
  /** Who asks; `undefined` where there is no `authenticate` hook. */
  readonly user: UserInfo | undefined;
}

/**
 * Finds out who asks; `undefined` (nobody that is known) is answered with 401.
 *
 * @example
 * ```ts
 * import type { Authenticate } from "@listwatch/cache/hono";
 * const tokens = new Map([["s3cret", "ci"]]);
 * const authenticate: Authenticate = (c) => {
 *   const name = tokens.get(c.req.header("Authorization")?.replace(/^Bearer /, "") ?? "");
 *   return name === undefined ? undefined : { name };
 * };
 * ```
 */
export type Authenticate = (c: Context) => UserInfo | undefined | Promise<UserInfo | undefined>;

/**
 * Decides on one request. `true` lets it through; `false`, or a text that tells why, is answered with 403. What it
 * throws is answered with 500, and nothing is served.
 *
 * @example
 * ```ts
 * import type { Authorize } from "@listwatch/cache/hono";
 * const authorize: Authorize = ({ resource, namespace }) =>
 *   resource === "" || namespace === "shop" || "only the namespace shop may be read";
 * ```
 */
export type Authorize = (
  attributes: RequestAttributes,
  c: Context,
) => boolean | string | Promise<boolean | string>;

/** Options of {@linkcode newGate}. */
export interface GateOptions {
  readonly authenticate?: Authenticate | undefined;
  readonly authorize?: Authorize | undefined;
  readonly logger: Logger;
}

/** Lets a request through (`undefined`) or says why not. */
export type Gate = (
  attributes: Omit<RequestAttributes, "user">,
  c: Context,
) => Promise<Status | undefined>;

/** Makes the gate that every request passes. Without an `authorize` hook it is open to whoever is authenticated. */
export function newGate(options: GateOptions): Gate {
  const { authenticate, authorize, logger } = options;
  return async (attributes, c) => {
    try {
      const user = await authenticate?.(c);
      if (authenticate !== undefined && user === undefined) {
        return newStatus(401, "Unauthorized", "Unauthorized");
      }
      const decision = await authorize?.({ ...attributes, user }, c) ?? true;
      if (decision === true) return undefined;
      return forbidden({ ...attributes, user }, decision === false ? "" : decision);
    } catch (error) {
      logger.error(`Cannot decide on ${attributes.verb} ${attributes.path}: ${errorMessage(error)}`, {
        error,
      });
      return newStatus(500, "InternalError", "Internal error occurred: the authorization check failed");
    }
  };
}

function forbidden(attributes: RequestAttributes, why: string): Status {
  const { verb, group, resource, namespace, name, path } = attributes;
  const user = JSON.stringify(attributes.user?.name ?? "system:anonymous");
  const reason = why === "" ? "" : `: ${why}`;
  if (resource === "") {
    return newStatus(403, "Forbidden", `forbidden: User ${user} cannot ${verb} path "${path}"${reason}`, {});
  }
  const what = name === "" ? qualified(attributes) : `${qualified(attributes)} ${JSON.stringify(name)}`;
  const where = namespace === "" ? "at the cluster scope" : `in the namespace "${namespace}"`;
  return newStatus(
    403,
    "Forbidden",
    `${what} is forbidden: User ${user} cannot ${verb} resource "${resource}" in API group "${group}" ${where}${reason}`,
    { ...(name !== "" && { name }), ...groupAndKind(attributes) },
  );
}
