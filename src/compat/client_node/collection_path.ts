/** The path of a collection, as client-node's informers are given it. */

import { formatResource, type GroupVersionResource } from "../../meta/resource.ts";
import { parseResourcePath, pathSegments } from "../../protocol/resource_path.ts";

/** What a path such as `/api/v1/namespaces/shop/pods` names. */
export interface CollectionPath {
  readonly resource: GroupVersionResource;
  /** `""` for all namespaces, and for what is in none. */
  readonly namespace: string;
  /** From the path's query, where it has one. */
  readonly labelSelector: string;
  readonly fieldSelector: string;
}

/**
 * Reads the path of a collection.
 *
 * @throws {TypeError} It is the path of something else.
 */
export function parseCollectionPath(path: string): CollectionPath {
  const [before, query = ""] = path.split("?", 2);
  const found = parseResourcePath(pathSegments(before) ?? []);
  if (found === undefined || found.name !== "" || found.isWatch) {
    throw new TypeError(
      `Cannot make an informer of ${JSON.stringify(path)}: it must be the path of a collection, such as ` +
        `"/api/v1/namespaces/shop/pods" or "/apis/apps/v1/deployments"` +
        (found?.name ? `; for one object, give the field selector "metadata.name=${found.name}"` : ""),
    );
  }
  const { group, version, resource, namespace } = found;
  const parameters = new URLSearchParams(query);
  return {
    resource: { group, version, resource },
    namespace,
    labelSelector: parameters.get("labelSelector") ?? "",
    fieldSelector: parameters.get("fieldSelector") ?? "",
  };
}

/** Its name in log lines: `v1/pods in shop`. */
export function describeCollection({ resource, namespace }: CollectionPath): string {
  return namespace === "" ? formatResource(resource) : `${formatResource(resource)} in ${namespace}`;
}
