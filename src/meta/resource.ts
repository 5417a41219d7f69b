/** Resources of the API: their names and paths. */

/** A resource of the API: `group` is `""` for the core group. */
export interface GroupVersionResource {
  readonly group: string;
  readonly version: string;
  /** The plural, lower-case name in the path, such as `pods`. */
  readonly resource: string;
}

/** A kind of object: `group` is `""` for the core group. */
export interface GroupVersionKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

/**
 * A resource as text: `version/resource` for the core group, otherwise `group/version/resource`. The resource
 * is the lower-case plural, not the kind. A text that is known only at run time is read by {@linkcode
 * parseResource}.
 */
export type ResourceName = `${Lowercase<string>}/${Lowercase<string>}`;

/** RFC 1123 labels, without their limit of 63 characters. */
export const DNS_LABEL: RegExp = /^[a-z0-9]+(?:-+[a-z0-9]+)*$/;
/** RFC 1123 subdomains, without their limit of 253 characters. */
export const DNS_SUBDOMAIN: RegExp = /^[a-z0-9]+(?:-+[a-z0-9]+)*(?:\.[a-z0-9]+(?:-+[a-z0-9]+)*)*$/;

/**
 * Reads `version/resource` (core group) or `group/version/resource`.
 * @throws {TypeError} The text has another form.
 *
 * @example
 * ```ts
 * import { parseResource } from "@listwatch/cache";
 * console.log(parseResource("v1/pods").group); // (empty)
 * console.log(parseResource("apps/v1/deployments").group); // apps
 * ```
 *
 * @category Cluster
 */
export function parseResource(text: string): GroupVersionResource {
  const parts = text.split("/");
  const [group, version, resource] = parts.length === 2 ? ["", ...parts] : parts;
  const wellFormed = (parts.length === 2 || parts.length === 3) &&
    (group === "" || DNS_SUBDOMAIN.test(group)) && DNS_LABEL.test(version) && DNS_LABEL.test(resource);
  if (!wellFormed || (parts.length === 3 && group === "")) {
    const given = JSON.stringify(text);
    throw new TypeError(
      `Cannot read ${given} as a resource: write "version/resource" for the core group, such as "v1/pods", ` +
        `or "group/version/resource", such as "apps/v1/deployments"` +
        (parts.length === 1 ? "; findResource of ./client finds it by such a name" : ""),
    );
  }
  return { group, version, resource };
}

/** A resource whose objects have type `T`. */
export interface ResourceOf<T> extends GroupVersionResource {
  /** The type of the objects, for the type checker only; the property does not exist at run time. */
  readonly objectType: T;
}

/**
 * Reads a resource, as {@linkcode parseResource}, and gives its objects a type. Use it where `keep` or `drop`
 * changes the type: the compiler then infers which fields remain.
 * @throws {TypeError} The text has another form.
 *
 * @example
 * ```ts
 * import { type KubernetesObject, newCluster, resourceOf } from "@listwatch/cache";
 * type Pod = KubernetesObject & { spec?: { nodeName?: string; volumes?: unknown[] } };
 * const cluster = newCluster({ server: "http://127.0.0.1:8001" });
 * const pods = cluster.resource(resourceOf<Pod>("v1/pods"), { drop: ["metadata.managedFields", "spec.volumes"] });
 * // @ts-expect-error -- it is not there
 * pods.list().then(({ items }) => items[0].spec?.volumes);
 * ```
 *
 * @category Cluster
 */
export function resourceOf<T>(text: ResourceName): ResourceOf<T> {
  return parseResource(text) as ResourceOf<T>;
}

/** A resource as text: what {@linkcode parseResource} reads. */
export function formatResource(gvr: GroupVersionResource): string {
  return `${groupVersion(gvr)}/${gvr.resource}`;
}

/**
 * A resource without its version: `deployments.apps`, `pods`. Mirrors apimachinery's `GroupResource.String`.
 */
export function formatGroupResource(of: { readonly group: string; readonly resource: string }): string {
  return of.group === "" ? of.resource : `${of.resource}.${of.group}`;
}

/** The `apiVersion` of a group and version: `v1`, `apps/v1`. */
export function groupVersion(of: { readonly group: string; readonly version: string }): string {
  return of.group === "" ? of.version : `${of.group}/${of.version}`;
}

/**
 * The path of a resource on an API server, without a query.
 * @param options.namespace Only this namespace; absent or empty:
 * all namespaces, or a cluster-scoped resource.
 * @param options.name The name of one object.
 * @throws {TypeError} The namespace or the name cannot be part of a path: `.`, `..`, or anything with a slash
 * or a percent sign. API servers refuse them too, and a URL with dots has another path.
 *
 * @example
 * ```ts
 * import { parseResource } from "@listwatch/cache";
 * import { formatResource, groupVersion, resourcePath } from "@listwatch/cache/client";
 * const deployments = parseResource("apps/v1/deployments");
 * console.log(groupVersion(deployments), formatResource(deployments)); // apps/v1 apps/v1/deployments
 * console.log(resourcePath(deployments, { namespace: "shop", name: "web" }));
 * // /apis/apps/v1/namespaces/shop/deployments/web
 * ```
 */
export function resourcePath(
  gvr: GroupVersionResource,
  { namespace, name }: { readonly namespace?: string; readonly name?: string } = {},
): string {
  let path = gvr.group === "" ? `/api/${gvr.version}` : `/apis/${gvr.group}/${gvr.version}`;
  if (namespace) path += `/namespaces/${pathSegment(namespace, "namespace")}`;
  path += `/${gvr.resource}`;
  if (name) path += `/${pathSegment(name, "name")}`;
  return path;
}

// A URL takes "." and ".." as steps, encoded or not, and would lead to another object.
function pathSegment(text: string, what: string): string {
  if (text === "." || text === ".." || /[/%]/.test(text)) {
    const given = JSON.stringify(text);
    throw new TypeError(
      `Cannot make a path with the ${what} ${given}: it must not be "." or "..", nor contain "/" or "%"`,
    );
  }
  return encodeURIComponent(text);
}
