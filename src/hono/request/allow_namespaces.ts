/** Ready-made authorization rules. */

import type { Authorize, RequestAttributes } from "./gate.ts";
import { formatGroupResource } from "../../meta/resource.ts";

/** Options of {@linkcode allowNamespaces}. */
export interface AllowNamespacesOptions {
  /** The resources that may be read, as `pods` or `deployments.apps`; all that are served by default. */
  readonly resources?: readonly string[];
  /** The verbs that are allowed; all by default. A list that is watched is `watch`. */
  readonly verbs?: readonly RequestAttributes["verb"][];
  /**
   * Resources that may be read as a whole, such as `nodes`, or a namespaced one in all namespaces; none by
   * default.
   */
  readonly clusterResources?: readonly string[];
}

// Discovery and health; not the metrics, which count what is in all namespaces.
const DISCOVERY = /^\/(?:api|apis|healthz|indices|livez|openapi|readyz|version)(?:\/|$)/;

const VERBS: readonly string[] = ["get", "list", "watch"];

/**
 * Makes an `authorize` hook that lets read what is in some namespaces, and discovery, and nothing else: no
 * metrics, which count what is in all namespaces.
 *
 * A request for all namespaces, and one for objects that live in none, is refused, as an API server refuses
 * it to users that have Roles and no ClusterRole; it is not narrowed, since an informer would take a part for
 * the whole. The namespaces themselves can be read by name (`kubectl get namespace shop`), and other
 * resources as `clusterResources` says.
 *
 * @throws {TypeError} There is no namespace, or a name is empty,
 * a pattern or no text, or a verb is not known.
 *
 * @example
 * ```ts
 * import { newCluster, SharedIndexInformer } from "@listwatch/cache";
 * import { allowNamespaces, readApi } from "@listwatch/cache/hono";
 * const pods = new SharedIndexInformer(newCluster({ server: "http://127.0.0.1:8001" }).resource("v1/pods"));
 * const api = readApi({
 *   resources: [{ informer: pods, resource: "v1/pods" }],
 *   authorize: allowNamespaces(["shop"]),
 * });
 * console.log((await api.request("/api/v1/pods")).status); // 403
 * ```
 */
export function allowNamespaces(
  namespaces: readonly string[],
  options: AllowNamespacesOptions = {},
): Authorize {
  const inNamespaces = names("namespaces", namespaces);
  const resources = options.resources && names("resources", options.resources);
  const clusterResources = names("clusterResources", options.clusterResources ?? []);
  const verbs = options.verbs && names("verbs", options.verbs);
  if (inNamespaces.size === 0 && clusterResources.size === 0) {
    throw new TypeError("Cannot allow anything: allowNamespaces was given no namespace");
  }
  for (const verb of verbs ?? []) {
    if (!VERBS.includes(verb)) {
      throw new TypeError(`Cannot allow the verb ${JSON.stringify(verb)}: there are get, list and watch`);
    }
  }
  const list = Array.from(inNamespaces, (name) => JSON.stringify(name)).join(", ");
  const where = inNamespaces.size === 0
    ? "no namespace"
    : inNamespaces.size === 1
    ? `the namespace ${list}`
    : `the namespaces ${list}`;
  return (request) => {
    if (request.scope === "path") return DISCOVERY.test(request.path) || "only discovery may be read";
    if (verbs?.has(request.verb) === false) return `only ${Array.from(verbs).join(", ")} is allowed here`;
    const resource = formatGroupResource(request);
    if (clusterResources.has(resource)) return true;
    if (request.scope !== "namespace" || !inNamespaces.has(request.namespace)) {
      return `only ${where} may be read`;
    }
    return resources === undefined || resources.has(resource) ||
      `only ${Array.from(resources).join(", ")} may be read`;
  };
}

/**
 * Makes an `authorize` hook that lets through what all the given ones let through. They run in order, up to
 * the first that does not say `true`.
 *
 * @throws {TypeError} There is none, or one is no function.
 *
 * @example
 * ```ts
 * import { allOf, allowNamespaces, type Authorize } from "@listwatch/cache/hono";
 * const byDay: Authorize = () => new Date().getHours() < 18 || "come back tomorrow";
 * const authorize = allOf(allowNamespaces(["shop"]), byDay);
 * ```
 */
export function allOf(...rules: readonly Authorize[]): Authorize {
  if (rules.length === 0 || rules.some((rule) => typeof rule !== "function")) {
    throw new TypeError("Cannot join rules: allOf takes one authorize hook or more");
  }
  return async (request, c) => {
    for (const rule of rules) {
      const decision = await rule(request, c);
      if (decision !== true) return decision;
    }
    return true;
  };
}

function names(what: string, given: readonly string[]): ReadonlySet<string> {
  if (!Array.isArray(given)) {
    throw new TypeError(`Cannot allow ${what}: give an array of names, such as ["shop"]`);
  }
  for (const name of given) {
    if (typeof name === "string" && name !== "" && !/[*\s]/.test(name)) continue;
    throw new TypeError(`Cannot allow ${JSON.stringify(name)} among ${what}: it must be a whole name`);
  }
  return new Set(given);
}
