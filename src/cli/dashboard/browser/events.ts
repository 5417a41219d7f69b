/** Events, as far as the page shows them. */

import type { KubernetesObject } from "../../../meta/object.ts";
import type { ResourceState } from "../dashboard_message.ts";
import { objectLink } from "./route.ts";

export interface EventObject extends KubernetesObject {
  readonly type?: string;
  readonly reason?: string;
  readonly message?: string;
  readonly count?: number;
  readonly lastTimestamp?: string | null;
  readonly eventTime?: string | null;
  readonly involvedObject?: {
    readonly kind?: string;
    readonly namespace?: string;
    readonly name?: string;
    readonly apiVersion?: string;
  };
}

export const EVENT_FIELDS: readonly string[] = [
  "type",
  "reason",
  "message",
  "count",
  "lastTimestamp",
  "eventTime",
  "involvedObject",
  "metadata.creationTimestamp",
];

export const NEWEST_FIRST = "lastTimestamp:desc,metadata.creationTimestamp:desc";

export function eventTimeMs({ lastTimestamp, eventTime, metadata }: EventObject): number {
  return Date.parse(String(lastTimestamp ?? eventTime ?? metadata?.creationTimestamp ?? ""));
}

/** The object of an event, with a link to it if it is cached. */
export function objectOfEvent(
  { involvedObject: { kind = "", namespace, name = "", apiVersion = "" } = {} }: EventObject,
  resources: readonly ResourceState[],
): { readonly text: string; readonly href: string | undefined } {
  const resource = resourceOf(resources, { apiVersion, kind });
  const place = resource?.namespaced === false ? { name } : { namespace, name };
  return {
    text: namespace === undefined || namespace === "" ? `${kind} ${name}` : `${kind} ${namespace}/${name}`,
    href: resource && objectLink(resource, place),
  };
}

/** The cached resource of a kind, in whatever version; an empty `apiVersion` is of any group. */
export function resourceOf(
  resources: readonly ResourceState[],
  { apiVersion, kind }: { readonly apiVersion: string; readonly kind: string },
): ResourceState | undefined {
  const group = apiVersion.includes("/") ? apiVersion.split("/")[0] : "";
  return resources.find(({ kind: ofResource, path }) =>
    ofResource === kind &&
    (apiVersion === "" || (group === "" ? path.startsWith("/api/") : path.startsWith(`/apis/${group}/`)))
  );
}
