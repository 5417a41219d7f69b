/** Reads the read API, as every reader does. */

import { refusalOf } from "../../../screens/window_store.ts";
import { sleepUnlessAborted } from "../../../util/abort.ts";
import type { DashboardState, ResourceState } from "../dashboard_message.ts";
import type { CountedGroup } from "./kinds.ts";
import { listPath } from "./route.ts";

export interface View {
  readonly state: DashboardState;
  readonly nowMs: number;
  readonly ageMs: number;
  readonly isLost: boolean;
  /** Whether it was lost as the server denies this reader. */
  readonly isRefused: boolean;
}

/**
 * Reads what is cached, as the windows show it. Without a version the server makes sure at the API server
 * that it is the latest state, which takes seconds, again and again for each open page. The URL is a whole
 * one, as browsers refuse a path where the address of the page has a token.
 */
export function request(path: string, init: RequestInit): Promise<Response> {
  const url = new URL(path, location.origin);
  url.searchParams.set("resourceVersion", "0");
  return fetch(url, init);
}

export async function readJson<T>(path: string, init: RequestInit): Promise<T> {
  const response = await request(path, { cache: "no-cache", ...init });
  if (response.ok) return await response.json();
  throw await refusalOf(response);
}

/** Whether the reader has no credential, or not the right: with another credential it may have it. */
export function isDenial(error: unknown): boolean {
  const { httpStatus } = (error ?? {}) as { readonly httpStatus?: number };
  return httpStatus === 401 || httpStatus === 403;
}

/** The namespaces in which objects are to be read one by one; `undefined` is all at once. */
export function scopesOf(
  { namespaced }: Pick<ResourceState, "namespaced">,
  { cluster: { namespaces } }: DashboardState,
): readonly (string | undefined)[] {
  return namespaced && namespaces !== undefined ? namespaces : [undefined];
}

export async function readGroups(
  resource: Pick<ResourceState, "path">,
  { namespaces, groupBy, signal }: {
    readonly namespaces: readonly (string | undefined)[];
    readonly groupBy: readonly string[];
    readonly signal: AbortSignal;
  },
): Promise<readonly CountedGroup[]> {
  const lists = await Promise.all(namespaces.map((namespace) => {
    const query = new URLSearchParams({ groupBy: groupBy.join(",") });
    return readJson<{ items: readonly CountedGroup[] }>(`${listPath(resource, namespace)}?${query}`, {
      signal,
    });
  }));
  return lists.flatMap(({ items }) => items);
}

export interface FoundObject {
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
  };
  readonly [member: string]: unknown;
}

/** Reads the first objects of a resource by name, in one namespace or in all that are cached. */
export async function readObjects<T extends FoundObject = FoundObject>(
  resource: Pick<ResourceState, "path" | "namespaced">,
  { state, namespace, filter, labelSelector, fields = "metadata.name", limit, signal }: {
    readonly state: DashboardState;
    readonly namespace?: string | undefined;
    readonly filter?: string | undefined;
    readonly labelSelector?: string | undefined;
    readonly fields?: string;
    readonly limit: number;
    readonly signal: AbortSignal;
  },
): Promise<{ readonly items: T[]; readonly total: number }> {
  const query = new URLSearchParams({ sortBy: "metadata.name", limit: String(limit), fields });
  if (filter !== undefined) query.set("filter", filter);
  if (labelSelector !== undefined) query.set("labelSelector", labelSelector);
  const items: T[] = [];
  let total = 0;
  // One after the other: a browser has six connections to a server.
  for (
    const scope of namespace !== undefined && resource.namespaced ? [namespace] : scopesOf(resource, state)
  ) {
    const url = `${listPath(resource, scope)}?${query}`;
    const list = await readJson<{ items: readonly T[]; window: { total: number } }>(url, { signal });
    items.push(...list.items);
    total += list.window.total;
  }
  return { items, total };
}

/** Runs a task now and again a time after its end, while the page is visible; returns what ends it. */
export function repeat(task: (signal: AbortSignal) => Promise<void>, everyMs: number): () => void {
  const stop = new AbortController();
  const { signal } = stop;
  const run = async () => {
    do {
      if (!document.hidden) await task(signal).catch(() => {});
    } while (await sleepUnlessAborted(everyMs, { signal }));
  };
  run();
  return () => stop.abort();
}
