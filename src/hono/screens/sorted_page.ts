/** Pages of lists that are sorted by values: places are numbers of rows, in one state. */

import type { KubernetesObject, ListMeta } from "../../meta/object.ts";
import { newStatus, type Status } from "../../meta/status.ts";
import type { Held } from "../../store/holding.ts";
import { decodeContinue, encodeContinue, LATEST } from "../../protocol/continue_token.ts";
import type { ScreenQuery } from "../../protocol/screen_query.ts";
import { continueTooOld, isStatus } from "../../protocol/statuses.ts";
import type { Content } from "../content/content.ts";
import { isRewritten, type ListRequest, type Page, stateTooOld } from "../content/selection.ts";
import type { Order } from "./orders.ts";
import type { RowsState } from "./rows_state.ts";

/** Where a page or a window begins; `undefined` if the object that it is around is not there. */
export function offsetOf(
  order: Pick<Order<KubernetesObject>, "indexOf" | "length">,
  { limit, offset = 0, around }: Pick<ScreenQuery, "limit" | "offset" | "around">,
): number | undefined {
  if (around === undefined) return Math.min(offset, order.length);
  const index = order.indexOf(around);
  if (index === undefined) return undefined;
  const rows = limit || order.length;
  return Math.max(0, Math.min(index - Math.floor(rows / 2), order.length - rows));
}

export function notAround(around: string): Status {
  const message = `around: ${JSON.stringify(around)} is none of the objects that are selected`;
  const cause = { reason: "FieldValueNotFound", message, field: "around" };
  return newStatus(404, "NotFound", message, { causes: [cause] });
}

/**
 * How many of the first rows are enough for a page or a window of the present state; `undefined` if the whole
 * order is wanted.
 */
export function firstRows({ limit, offset = 0, around }: ScreenQuery): number | undefined {
  return around === undefined && limit ? offset + limit : undefined;
}

/**
 * Cuts a page out of an order, in one turn: the present state, or that of a token or of an exact version.
 * @param first The first rows of the present state, where the order is not ready.
 */
export function cutSortedPage<T extends KubernetesObject>(
  { log }: Content<T>,
  order: Order<T>,
  request: ListRequest & { readonly screen: ScreenQuery; readonly first?: RowsState<Held<T>> | undefined },
): Page<T> | Status {
  const { options, screen, first } = request;
  const placed = first === undefined
    ? place(log.window, order, request)
    : { state: first, offset: screen.offset ?? 0 };
  if (isStatus(placed)) return placed;
  const { state, offset } = placed;
  const limit = options.limit ?? screen.limit ?? 0;
  const from = Math.min(offset, state.length);
  const to = limit === 0 ? state.length : Math.min(state.length, from + limit);
  const page = {
    resourceVersion: state.resourceVersion,
    object: state.value,
    from,
    to,
    bytes: 0, // the order has them
    window: { total: state.length, offset: from },
  };
  if (to === state.length) return page;
  const epoch = request.epochOf(log.window.rewrites);
  const next = (resourceVersion: string): ListMeta => ({
    continue: encodeContinue({ resourceVersion, epoch, start: String(to), list: request.identity() }),
    remainingItemCount: state.length - to,
  });
  return { ...page, next };
}

function place<T extends KubernetesObject>(
  window: Content<T>["log"]["window"],
  order: Order<T>,
  request: ListRequest & { readonly screen: ScreenQuery },
): { readonly state: RowsState<Held<T>>; readonly offset: number } | Status {
  const { options, screen } = request;
  if (options.continue !== undefined) {
    const token = decodeContinue(options.continue);
    if (isStatus(token)) return token;
    const offset = Number(token.start);
    // The API server has none of sorted lists.
    if (token.list !== request.identity() || !/^[0-9]{1,9}$/.test(token.start)) {
      return newStatus(
        400,
        "BadRequest",
        "invalid continue token: it is of another list; continue with the same path, order, selectors and user",
      );
    }
    if (token.resourceVersion === LATEST) return { state: order.present(), offset };
    const isSameEpoch = !isRewritten(token.epoch, request.epochOf(window.rewrites));
    const isPresent = token.resourceVersion === window.resourceVersion;
    const state = !isSameEpoch ? undefined : isPresent ? order.present() : order.at(token.resourceVersion);
    if (state !== undefined) return { state, offset };
    const rest = { resourceVersion: LATEST, start: token.start, list: request.identity() };
    return continueTooOld(encodeContinue(rest));
  }
  const { resourceVersion = "0", resourceVersionMatch } = options;
  if (resourceVersionMatch === "Exact") {
    const state = order.at(resourceVersion);
    return state === undefined ? stateTooOld(resourceVersion) : { state, offset: screen.offset ?? 0 };
  }
  const state = order.present();
  const offset = offsetOf(order, screen);
  return offset === undefined ? notAround(screen.around!) : { state, offset };
}
