/** What a server serves in place of a resource that it does not know. */

import { formatResource, type GroupVersionResource } from "../meta/resource.ts";
import type { Requests } from "./resource_options.ts";

/** A resource as aggregated discovery names it. */
interface Served {
  readonly id: string;
  readonly group: string;
  readonly version: string;
  /** The plural, the singular, the kind in lower case, short names. */
  readonly names: readonly string[];
}

interface DiscoveryList {
  readonly items?: readonly {
    readonly metadata?: { readonly name?: string };
    readonly versions?: readonly {
      readonly version: string;
      readonly resources?: readonly {
        readonly resource: string;
        readonly singularResource?: string;
        readonly shortNames?: readonly string[];
        readonly responseKind?: { readonly kind?: string };
      }[];
    }[];
  }[];
}

// https://kubernetes.io/docs/reference/using-api/api-concepts/#aggregated-discovery
const AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

/** A hint that follows the error of an unknown resource; `""` if the server says nothing that helps. */
export async function unknownResourceHint(
  cluster: Requests,
  resource: GroupVersionResource,
  signal: AbortSignal | undefined,
): Promise<string> {
  const served = (await Promise.all(["/api", "/apis"].map((path) => discover(cluster, path, signal)))).flat();
  if (served.length === 0) return "";
  const { group, version } = resource;
  const wanted = resource.resource.toLowerCase();
  const similar = served.filter(({ names }) => names.includes(wanted)).map(({ id }) => id);
  // What the server does serve and answers 404 for is another matter, such as an index of a proxy.
  if (similar.includes(formatResource(resource))) return "";
  if (similar.length > 0) return `; did you mean ${similar.slice(0, 3).map((id) => `"${id}"`).join(" or ")}?`;
  const versions = [...new Set(served.filter((one) => one.group === group).map((one) => one.version))];
  if (versions.length === 0) {
    return `; the server has no API group "${group}": is its definition (CRD) installed?`;
  }
  if (!versions.includes(version)) return `; the server has "${group}" in ${versions.join(", ")} only`;
  return "; the server has no resource of this name: is its definition (CRD) installed?";
}

async function discover(cluster: Requests, path: string, signal: AbortSignal | undefined): Promise<Served[]> {
  try {
    const answer = await cluster.request(path, { headers: { Accept: AGGREGATED }, signal }) as DiscoveryList;
    return (answer.items ?? []).flatMap(({ metadata, versions = [] }) =>
      versions.flatMap(({ version, resources = [] }) =>
        resources.map(({ resource, singularResource = "", shortNames = [], responseKind }) => {
          const group = metadata?.name ?? "";
          const kind = responseKind?.kind?.toLowerCase() ?? "";
          return {
            id: formatResource({ group, version, resource }),
            group,
            version,
            names: [resource, singularResource, kind, ...shortNames],
          };
        })
      )
    );
  } catch {
    return []; // the hint is not worth an error of its own
  }
}
