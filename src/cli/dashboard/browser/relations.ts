/** The objects around an object: its owners, what it owns, and what it selects. */

import type { KubernetesObject } from "../../../meta/object.ts";
import type { ResourceState } from "../dashboard_message.ts";
import { resourceOf } from "./events.ts";
import { readJson, readObjects, type View } from "./reading.ts";
import { objectLink, objectPath, type ObjectRoute, tableLink } from "./route.ts";
import { objectsText } from "./texts.ts";

/** A name or a count, with a link if it leads somewhere. */
export interface Relation {
  readonly text: string;
  readonly href: string | undefined;
}

/** Objects of one resource that belong to an object. */
export interface Owned extends Relation {
  readonly objects: readonly Relation[];
}

const MOST_OWNERS = 5;
const MOST_OWNED = 6;

interface Owner {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly name?: string;
}

interface Selecting extends KubernetesObject {
  readonly spec?: {
    readonly nodeName?: string;
    readonly selector?: unknown;
  };
}

/** The owners of an object, the nearest first: a pod's ReplicaSet, and the Deployment of that. */
export async function ownersOf(
  object: KubernetesObject,
  { resources, signal }: { readonly resources: readonly ResourceState[]; readonly signal: AbortSignal },
): Promise<readonly Relation[]> {
  const found: Relation[] = [];
  const namespace = object.metadata?.namespace;
  let owners = ownersIn(object);
  while (owners.length > 0 && found.length < MOST_OWNERS) {
    let next: readonly Owner[] = [];
    for (const { apiVersion = "", kind = "", name = "" } of owners) {
      const resource = resourceOf(resources, { apiVersion, kind });
      const place = { namespace: resource?.namespaced ? namespace : undefined, name };
      found.push({ text: `${kind} ${name}`, href: resource && objectLink(resource, place) });
      if (resource === undefined) continue;
      const path = `${objectPath(resource, place)}?fields=metadata.ownerReferences`;
      const owner = await readJson<KubernetesObject>(path, { signal }).catch(() => undefined);
      if (owner !== undefined) next = [...next, ...ownersIn(owner)];
    }
    owners = next;
  }
  return found;
}

function ownersIn({ metadata }: KubernetesObject): readonly Owner[] {
  const { ownerReferences } = metadata as { readonly ownerReferences?: unknown };
  return Array.isArray(ownerReferences) ? ownerReferences : [];
}

/** The objects that an object owns: by references, the pods on a node, all in a namespace, selected ones. */
export async function ownedBy(
  object: KubernetesObject,
  route: ObjectRoute<ResourceState>,
  { view, signal }: { readonly view: View; readonly signal: AbortSignal },
): Promise<readonly Owned[]> {
  const { resource: { name: resource }, namespace, name } = route;
  const { resources } = view.state;
  const pods = resources.filter(({ name }) => name === "pods");
  if (resource === "nodes") {
    const filter = `spec.nodeName=${JSON.stringify(name)}`;
    return await readAll(pods, { view, signal, filter, search: `node=${name}` });
  }
  if (resource === "namespaces") {
    const inIt = resources.filter(({ namespaced, objects }) => namespaced && objects > 0);
    return await readAll(inIt, { view, signal, namespace: name, search: "" });
  }
  const labels = resource === "services" ? selectorOf(object) : undefined;
  const selected = labels === undefined ? [] : await readAll(pods, {
    view,
    signal,
    namespace,
    labelSelector: labels,
    search: labels.replaceAll(",", " "),
  });
  const uid = object.metadata?.uid;
  if (typeof uid !== "string" || ["pods", "events"].includes(resource)) return selected;
  const filter = `metadata.ownerReferences[].uid=${JSON.stringify(uid)}`;
  const mayBeOwned = resources.filter(({ name, namespaced, objects }) =>
    name !== "events" && objects > 0 && (namespaced || namespace === undefined)
  );
  const owned = await readAll(mayBeOwned, { view, signal, namespace, filter, search: `owner=${name}` });
  return [...selected, ...owned];
}

function selectorOf({ spec }: Selecting): string | undefined {
  const selector = spec?.selector;
  if (typeof selector !== "object" || selector === null) return undefined;
  const labels = Object.entries(selector).map(([key, value]) => `${key}=${value}`);
  return labels.length === 0 ? undefined : labels.join(",");
}

async function readAll(
  resources: readonly ResourceState[],
  { view: { state }, signal, namespace, filter, labelSelector, search }: {
    readonly view: View;
    readonly signal: AbortSignal;
    readonly namespace?: string | undefined;
    readonly filter?: string;
    readonly labelSelector?: string;
    readonly search: string;
  },
): Promise<readonly Owned[]> {
  const found: Owned[] = [];
  // One after the other: a browser has six connections to a server.
  for (const resource of resources) {
    const of = { state, namespace, filter, labelSelector, limit: MOST_OWNED, signal };
    const { items, total } = await readObjects(resource, of);
    if (total === 0) continue;
    found.push({
      text: objectsText(total, resource),
      href: tableLink(resource, { namespace: resource.namespaced ? namespace : undefined, search }),
      objects: items.slice(0, MOST_OWNED).map(({ metadata }) => ({
        text: metadata.name,
        href: objectLink(resource, metadata),
      })),
    });
  }
  return found;
}

/** Links from an object to its node, its namespace, its labels. */
export function factsOf(
  object: KubernetesObject,
  { resource, namespace }: ObjectRoute<ResourceState>,
  resources: readonly ResourceState[],
): readonly { readonly label: string; readonly values: readonly Relation[] }[] {
  const { spec, metadata } = object as Selecting;
  const of = (name: string) => resources.find((resource) => resource.name === name);
  const [nodes, namespaces] = [of("nodes"), of("namespaces")];
  const node = resource.name === "pods" && typeof spec?.nodeName === "string" ? spec.nodeName : undefined;
  const labels = Object.entries(metadata?.labels ?? {});
  const created = typeof metadata?.creationTimestamp === "string" ? metadata.creationTimestamp : "unknown";
  return [
    { label: "Created", values: [{ text: created.replace("T", " "), href: undefined }] },
    ...(namespace === undefined ? [] : [{
      label: "Namespace",
      values: [{
        text: namespace,
        href: namespaces ? objectLink(namespaces, { name: namespace }) : tableLink(resource, { namespace }),
      }],
    }]),
    ...(node === undefined
      ? []
      : [{ label: "Node", values: [{ text: node, href: nodes && objectLink(nodes, { name: node }) }] }]),
    ...(labels.length === 0 ? [] : [{
      label: "Labels",
      values: labels.map(([key, value]) => ({
        text: `${key}=${value}`,
        href: tableLink(resource, { namespace, search: `${key}=${value}` }),
      })),
    }]),
  ];
}
