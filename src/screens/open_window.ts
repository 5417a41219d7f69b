import type { KubernetesObject, ObjectMeta } from "../meta/object.ts";
import { type OpenWindowOptions, type WindowQuery, WindowStore } from "./window_store.ts";

/** A row of a Table. */
export interface TableRow {
  /** The values of the columns. */
  readonly cells: readonly unknown[];
  /** The identity of the row's object. */
  readonly object: { readonly metadata: ObjectMeta };
}

/** Objects with the same values of some fields. */
export interface Group {
  /** The value of each field of `groupBy`; `null` where objects have none. */
  readonly group: Readonly<Record<string, string | number | boolean | null>>;
  /** How many objects there are. */
  readonly count: number;
  /** The sum of each field of `sum`. */
  readonly sums?: Readonly<Record<string, number>>;
}

/**
 * Opens a window on a collection of a served cache: its rows in an order, from a place on, and whatever
 * changes in them. It opens itself again whenever its stream ends.
 *
 * @returns The rows of the Table with `table: true`, otherwise objects.
 * @throws {TypeError} `url` is none; or there is no order, or no number of rows.
 *
 * @example
 * ```ts
 * import { openWindow } from "@listwatch/cache/screens";
 * const newest = openWindow({
 *   url: "https://cache.example.com/api/v1/pods",
 *   sortBy: "metadata.creationTimestamp:desc",
 *   limit: 20,
 *   fields: ["status.phase"],
 * });
 * newest.show({ offset: 20 }); // the next ones
 * console.log(newest.getSnapshot().state); // connecting
 * newest.close();
 * ```
 */
export function openWindow(options: OpenWindowOptions & { readonly table: true }): WindowStore<TableRow>;
export function openWindow<T extends KubernetesObject = KubernetesObject>(
  options: OpenWindowOptions & { readonly table?: false },
): WindowStore<T>;
export function openWindow(options: OpenWindowOptions): WindowStore<unknown> {
  return new WindowStore(options, requireWindow);
}

function requireWindow({ sortBy, limit }: WindowQuery): void {
  if (sortBy === undefined || sortBy.length === 0) {
    throw new TypeError("Cannot open a window without an order: say by what its rows are sorted in `sortBy`");
  }
  if (limit === undefined) {
    throw new TypeError("Cannot open a window of all rows: say how many it has in `limit`, 1,000 at most");
  }
}

/**
 * Opens the groups of a collection of a served cache: how many objects there are for each value of some
 * fields, and sums over them, live.
 *
 * @throws {TypeError} `url` is none, or `groupBy` is empty.
 *
 * @example
 * ```ts
 * import { openGroups } from "@listwatch/cache/screens";
 * const phases = openGroups({
 *   url: "https://cache.example.com/api/v1/pods",
 *   groupBy: ["metadata.namespace", "status.phase"],
 * });
 * phases.subscribe(() => {
 *   for (const { group, count } of phases.getSnapshot().rows) console.log(group["status.phase"], count);
 * });
 * phases.close();
 * ```
 */
export function openGroups(
  options: Omit<OpenWindowOptions, "sortBy" | "limit" | "offset" | "around" | "fields" | "table">,
): WindowStore<Group> {
  return new WindowStore(options, requireGroups);
}

function requireGroups({ groupBy }: WindowQuery): void {
  if (groupBy === undefined || groupBy.length === 0) {
    throw new TypeError(
      "Cannot open groups without a field: say by which values objects are counted in `groupBy`",
    );
  }
}
