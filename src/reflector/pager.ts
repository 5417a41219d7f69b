/** Lists that come in pages. */

import type { ListOptions, ListPage, Quarantined } from "../meta/list_watch.ts";
import type { ListWatchContext } from "../text/object_text_reader.ts";
import type { ListMeta } from "../meta/object.ts";
import { isResourceExpired } from "../meta/status.ts";
import type { ListerWatcher } from "./lister_watcher.ts";

/**
 * A list put together from its pages.
 *
 * @category Reflector
 */
export interface PagedList<T> {
  readonly items: T[];
  /** The metadata of the first page: its resourceVersion is that of the whole list. */
  readonly metadata: ListMeta;
  /** Items that were not accepted. */
  readonly quarantined: readonly Quarantined[];
  /** Whether there was more than one page. */
  readonly paginated: boolean;
}

/**
 * Options of {@linkcode listAllPages}.
 *
 * @category Reflector
 */
export interface PagerOptions<T> extends ListWatchContext {
  /**
   * Called after each page, with the number of items so far and how many are still to come, where the server
   * says.
   */
  readonly onPage?: (items: number, remaining: number | undefined) => void;
  /** Looks at each page before its items are taken; throws to refuse the list. */
  readonly checkPage?: (page: ListPage<T>) => void;
  /** Whether a continue token that ran out is answered by one list without a limit; true by default. */
  readonly fullListIfExpired?: boolean;
}

/**
 * Lists page by page: `options.limit` is the page size, 0 or absent for one page.
 *
 * The pages after the first name no resourceVersion: their continue token holds it. When a token has run out,
 * the pages so far are dropped and everything is listed once more in one page.
 *
 * Mirrors client-go's [`ListPager.List`](https://github.com/kubernetes/client-go/blob/master/tools/pager/pager.go).
 *
 * @example
 * ```ts
 * import { type KubernetesObject, newCluster } from "@listwatch/cache";
 * import { listAllPages } from "@listwatch/cache/reflector";
 * import { InMemoryApiServer } from "@listwatch/cache/testing";
 * const { fetch } = new InMemoryApiServer();
 * const pods = newCluster({ server: "http://in-memory", fetch }).resource<KubernetesObject>("v1/pods");
 * const { items } = await listAllPages(pods, { limit: 500 }, { signal: AbortSignal.timeout(10_000) });
 * console.log(items.length); // 0
 * ```
 *
 * @throws Whatever the source throws.
 *
 * @category Reflector
 */
export async function listAllPages<T>(
  source: Pick<ListerWatcher<T>, "list">,
  options: ListOptions,
  pager: PagerOptions<T>,
): Promise<PagedList<T>> {
  const { signal, onPage, checkPage, fullListIfExpired = true } = pager;
  let page = await source.list(options, { signal });
  checkPage?.(page);
  const first = page;
  onPage?.(page.items.length, page.metadata.remainingItemCount);
  if (!page.metadata.continue) {
    return {
      items: page.items,
      metadata: page.metadata,
      quarantined: page.quarantined ?? [],
      paginated: false,
    };
  }
  const items = page.items.slice();
  const quarantined = [...(page.quarantined ?? [])];
  const { resourceVersion: _, resourceVersionMatch: __, ...rest } = options;
  while (page.metadata.continue) {
    try {
      page = await source.list({ ...rest, continue: page.metadata.continue }, { signal });
    } catch (error) {
      if (!fullListIfExpired || !isResourceExpired(error)) throw error;
      const { limit: ___, ...whole } = options;
      const full = await source.list(whole, { signal });
      checkPage?.(full);
      onPage?.(full.items.length, full.metadata.remainingItemCount);
      return {
        items: full.items,
        metadata: full.metadata,
        quarantined: full.quarantined ?? [],
        paginated: true,
      };
    }
    checkPage?.(page);
    for (const item of page.items) items.push(item);
    for (const one of page.quarantined ?? []) quarantined.push(one);
    onPage?.(items.length, page.metadata.remainingItemCount);
  }
  return { items, metadata: first.metadata, quarantined, paginated: true };
}
