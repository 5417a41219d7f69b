/** The types of the access hooks, and the attributes of a request. */

import type { Context } from "hono";
import { newStatus, type Status } from "../../meta/status.ts";
import type { ResourcePath } from "../../protocol/resource_path.ts";

/**
 * The user of a request, as an `authenticate` hook found it.
 *
 * @category HTTP adapter
 */
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

/** What all requests have. */
interface CommonAttributes {
  readonly verb: "get" | "list" | "watch";
  /** The request's path, without what the app is mounted under. */
  readonly path: string;
  /** The user; `undefined` if there is no `authenticate` hook. */
  readonly user: UserInfo | undefined;
}

/** What all requests for a resource have. */
interface ResourceAttributes extends CommonAttributes {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  /** `pods`. */
  readonly resource: string;
  /** `status`, `scale` and so on; absent for the object itself. */
  readonly subresource?: string;
  /** One object: by its path, or by the field selector `metadata.name=NAME`. Empty otherwise. */
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
 *
 * @category HTTP adapter
 */
export type RequestAttributes =
  | ResourceAttributes & { readonly scope: "namespace"; readonly namespace: string }
  | ResourceAttributes & { readonly scope: "cluster"; readonly namespace: undefined }
  | ResourceAttributes & { readonly scope: "path"; readonly resource: ""; readonly namespace: undefined };

/**
 * Finds the user of a request: an object with a name. Anything else (no known user), a failure, and an answer
 * that does not come within `hookTimeoutMs` are answered with 401. Requests with `Impersonate-User` or
 * another header of impersonation are refused with 403 before it is called.
 *
 * @category HTTP adapter
 */
export type Authenticate = (c: Context) => UserInfo | undefined | Promise<UserInfo | undefined>;

/**
 * Decides on one request. Only `true` lets it through. `false`, a text that says why, and any other answer
 * with 403. What it throws, or not answering within `hookTimeoutMs`, is answered with 500, and a
 * `StatusError` of 429 as that; nothing is served. An open watch for which a hook is called again stays open
 * at a 429, and the hook is called once more after 5 s.
 *
 * {@linkcode allowNamespaces} and {@linkcode subjectAccessReview} make such hooks.
 *
 * @category HTTP adapter
 */
export type Authorize = (
  attributes: RequestAttributes,
  c: Context,
) => boolean | string | Promise<boolean | string>;

/** A request's attributes without the user. */
export type Asked = RequestAttributes extends infer Each ? Each extends unknown ? Omit<Each, "user"> : never
  : never;

/** What a request for a resource asks for. */
export function askedOf(
  path: ResourcePath,
  what: { readonly verb: RequestAttributes["verb"]; readonly name: string },
): Asked {
  const { group, version, resource } = path;
  const { subresource } = path;
  const common = {
    ...what,
    group,
    version,
    resource,
    ...(subresource !== "" && { subresource }),
    path: path.path,
  };
  // A path of a namespace itself is one in that namespace, as API servers have it.
  const namespace = path.namespace || (group === "" && resource === "namespaces" ? path.name : "");
  return namespace === ""
    ? { ...common, scope: "cluster", namespace: undefined }
    : { ...common, scope: "namespace", namespace };
}

/** What a request asks for that is none for a resource. */
export function askedOfPath(path: string): Asked {
  const nothing = { group: "", version: "", resource: "", name: "" } as const;
  return { ...nothing, verb: "get", scope: "path", namespace: undefined, path };
}

/** 401: no known user. */
export function unauthorized(): Status {
  return newStatus(401, "Unauthorized", "Unauthorized");
}
