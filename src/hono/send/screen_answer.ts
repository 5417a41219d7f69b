/** Answers to screens: pages of orders, groups, and windows of both. */

import type { KubernetesObject } from "../../meta/object.ts";
import { isTooManyRequests, type Status } from "../../meta/status.ts";
import type { ApiResource } from "../../protocol/api_resource.ts";
import type { ScreenQuery } from "../../protocol/screen_query.ts";
import { isStatus } from "../../protocol/statuses.ts";
import type { Held } from "../../store/holding.ts";
import type { Clock } from "../../util/clock.ts";
import type { Pacer } from "../../util/turns.ts";
import type { Content } from "../content/content.ts";
import { type ListRequest, newSelection, type Page, type Selectors } from "../content/selection.ts";
import { tooManyRequests } from "../request/refusals.ts";
import type { View } from "../request/requested_read.ts";
import { type HasRoom, type KeptFollowers, sharedName } from "../screens/followed_objects.ts";
import { type Group, groupList, Groups } from "../screens/groups.ts";
import { orderSpecOf } from "../screens/order_spec.ts";
import { cutSortedPage, firstRows, notAround, offsetOf, Order } from "../screens/orders.ts";
import type { RowsState } from "../screens/row_changes.ts";
import { printerOf } from "../tables/printers.ts";
import { itemJson } from "./view_text.ts";
import type { RowSource } from "./windows.ts";

export interface ScreenRequest extends Selectors {
  readonly resource: ApiResource;
  readonly screen: ScreenQuery;
  readonly pacer: Pacer;
  readonly state: { readonly followers: KeptFollowers; readonly settings: { readonly clock: Clock } };
}

interface FoundOrder {
  readonly order: Order<KubernetesObject>;
  readonly name: string;
  /** The first rows that are wanted, while not all are ready to be read. */
  readonly first: RowsState<Held<KubernetesObject>> | undefined;
}

/** The order that a query means, ready to be read but for its first rows; 400 if there is no such column. */
async function orderOf(
  content: Content<KubernetesObject>,
  request: ScreenRequest,
  wanted: number | undefined,
): Promise<FoundOrder | Status> {
  const { state: { followers, settings }, resource, screen: { sortBy = [] }, pacer } = request;
  const spec = orderSpecOf(sortBy, { printer: printerOf(resource), nowMs: settings.clock.now() });
  if (isStatus(spec)) return spec;
  const selection = newSelection(resource, request);
  const make = (hasRoom: HasRoom) => new Order(content, spec, { selection, hasRoom });
  const name = `order ${spec.name}`;
  const order = followers.get(content, { name, selection, make });
  try {
    const first = wanted === undefined ? undefined : await order.first(wanted, pacer);
    while (first === undefined && order.isBehind) await order.ready(pacer);
    return { order, name: sharedName(name, selection), first };
  } catch (error) {
    return noRoom(error);
  }
}

/** The Status of an error that says that there is no room; throws any other. */
function noRoom(error: unknown): Status {
  if (!isTooManyRequests(error)) throw error;
  return tooManyRequests();
}

export async function sortedPage(
  content: Content<KubernetesObject>,
  request: ListRequest & ScreenRequest,
): Promise<Page<KubernetesObject> | Status> {
  const { options, screen } = request;
  const isPresent = options.continue === undefined && options.resourceVersionMatch !== "Exact";
  const limit = options.limit ?? screen.limit;
  const found = await orderOf(content, request, isPresent ? firstRows({ ...screen, limit }) : undefined);
  return isStatus(found) ? found : cutSortedPage(content, found.order, { ...request, first: found.first });
}

async function groupsOf(
  content: Content<KubernetesObject>,
  request: ScreenRequest,
): Promise<{ readonly groups: Groups<KubernetesObject>; readonly name: string } | Status> {
  const { state: { followers }, resource, screen: { groupBy = [], sum = [] }, pacer } = request;
  const selection = newSelection(resource, request);
  const make = (hasRoom: HasRoom) => new Groups(content, { groupBy, sum, selection, hasRoom });
  const name = `groups ${JSON.stringify([groupBy.map(({ text }) => text), sum.map(({ text }) => text)])}`;
  const groups = followers.get(content, { name, selection, make });
  try {
    while (groups.isBehind) await groups.ready(pacer);
  } catch (error) {
    return noRoom(error);
  }
  return { groups, name: sharedName(name, selection) };
}

export async function groupsList(
  content: Content<KubernetesObject>,
  request: ScreenRequest,
): Promise<Record<string, unknown> | Status> {
  const found = await groupsOf(content, request);
  if (isStatus(found)) return found;
  const { groups } = found;
  const { resourceVersion, length, value } = groups.present();
  return { ...groupList({ resourceVersion }), items: Array.from({ length }, (_, i) => value(i)) };
}

/**
 * The rows of a window of a client; 404 if the object that it is around is not there, 429 if the client shows
 * too much already.
 */
export async function windowSource(
  content: Content<KubernetesObject>,
  request: ScreenRequest & { readonly view: View; readonly client: string | undefined },
): Promise<RowSource | Status> {
  const source = await rowsOf(content, request);
  if (isStatus(source)) return source;
  return request.state.followers.mayShow(source.followed, request.client) ? source : tooManyRequests();
}

async function rowsOf(
  content: Content<KubernetesObject>,
  request: ScreenRequest & { readonly view: View },
): Promise<RowSource | Status> {
  const { screen, view } = request;
  if (screen.groupBy !== undefined) {
    const found = await groupsOf(content, request);
    if (isStatus(found)) return found;
    const { groups, name } = found;
    return {
      followed: groups,
      name,
      itemsField: "items",
      first: undefined,
      offset: () => 0,
      row: (group: Group) => ({ id: JSON.stringify(group.group), json: JSON.stringify(group) }),
      list: groupList,
      bookmark: (metadata) => ({ ...groupList({}), metadata }),
    };
  }
  const found = await orderOf(content, request, firstRows(screen));
  if (isStatus(found)) return found;
  const { order, name, first } = found;
  if (first === undefined && offsetOf(order, screen) === undefined) return notAround(screen.around!);
  const { holding } = content;
  return {
    followed: order,
    name: `${name} ${view.itemsSharedAs}`,
    itemsField: view.itemsField,
    hasAges: view.hasAges,
    first,
    // A window around an object stays where it was while that object is not there.
    offset: ({ length }, before) =>
      offsetOf({ length, indexOf: (key) => order.indexOf(key) }, screen) ?? Math.min(before, length),
    row: (held: Held<KubernetesObject>) => ({
      id: holding.head(held).key,
      json: itemJson(held, { view, holding }),
    }),
    list: (metadata) => view.list(metadata),
    bookmark: (metadata) => view.bookmark(metadata),
  };
}
