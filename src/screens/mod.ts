/**
 * Screens of a served cache, in a page: windows on sorted rows, and live counts. The module is small, has no
 * framework, and runs in browsers as well.
 *
 * @example
 * ```ts
 * import { openWindow } from "@listwatch/cache/screens";
 * const pods = openWindow({
 *   url: "https://cache.example.com/api/v1/namespaces/shop/pods",
 *   sortBy: "column(Restarts):desc",
 *   limit: 50,
 *   table: true,
 * });
 * const stop = pods.subscribe(() => {
 *   const { state, rows, total } = pods.getSnapshot();
 *   console.log(state, `${rows.length} of ${total}`);
 * });
 * stop();
 * pods.close();
 * ```
 *
 * @module
 */

export { type Group, openGroups, openWindow, type TableRow } from "./open_window.ts";
export type {
  OpenWindowOptions,
  WindowColumn,
  WindowQuery,
  WindowRows,
  WindowSnapshot,
  WindowStore,
} from "./window_store.ts";
