/** The view of a resource: its rows in an order, filtered, live. */

import { openWindow, type TableRow, type WindowColumn, type WindowStore } from "../../../screens/mod.ts";
import { isCutColumn } from "../../../hono/tables/cut_columns.ts";
import type { ResourceState } from "../dashboard_message.ts";
import { byId, keyed, make, makeLink, setClass, setText } from "./dom.ts";
import { NEWEST_FIRST } from "./events.ts";
import { type CountedGroup, type StateCount, stateCountsOf, toneOf } from "./kinds.ts";
import { readGroups, repeat, scopesOf, type View } from "./reading.ts";
import { listPath, objectLink, tableLink, type TableRoute } from "./route.ts";
import { isNarrow, type RowCell, type RowColumn, Rows } from "./rows.ts";
import { parseSearch, type Term, wantedOf } from "./search.ts";
import { ageLater, later, number, visible } from "./texts.ts";

/** The fields that are read of a row's object besides its identity. */
const ROW_FIELDS = ["metadata.creationTimestamp"];
const COUNT_MS = 3_000;
const SCROLL_MS = 80;
const TYPING_MS = 200;
const LEAST_ROWS = 60;
const MOST_ROWS = 400;

type Place = Rows<TableRow>["place"];

export class TableView {
  readonly #rows: Rows<TableRow>;
  readonly #viewOf: () => View;
  readonly #onChange: () => void;
  /** The scrolled places of this session's tables, by their fragments. */
  readonly #places = new Map<string, Place>();
  #route: TableRoute<ResourceState> | undefined;
  window: WindowStore<TableRow> | undefined;
  /** The path of the list that the store has opened. */
  #url = "";
  #asked = { offset: 0, limit: LEAST_ROWS };
  /** The rows of another search or order, which are shown until those of this one are there. */
  #others: readonly TableRow[] | undefined;
  #scrolling = 0;
  #typing = 0;
  #stopCounting = () => {};
  #isCounting = false;
  /** When rows arrived whose cells have durations. */
  readonly #arrivals = new WeakMap<TableRow, number>();

  constructor({ viewOf, onChange }: { readonly viewOf: () => View; readonly onChange: () => void }) {
    this.#viewOf = viewOf;
    this.#onChange = onChange;
    this.#rows = new Rows(byId("rows"), {
      onSort: (column) => this.#sortBy(column),
      onRange: (first, end) => this.#want(first, end),
      hrefOf: (row) => this.#hrefOf(row),
    });
    const input = byId<HTMLInputElement>("filter");
    input.addEventListener("input", () => {
      clearTimeout(this.#typing);
      this.#typing = setTimeout(() => this.#go({ search: input.value.trim() }, { isTyped: true }), TYPING_MS);
    });
    input.addEventListener("keydown", (event) => {
      if (event.key !== "ArrowDown" && event.key !== "Enter") return;
      event.preventDefault();
      byId("rows").focus();
    });
    byId<HTMLSelectElement>("namespace").addEventListener("change", ({ target }) => {
      const { value } = target as HTMLSelectElement;
      this.#go({ namespace: value === "" ? undefined : value });
    });
    byId("wide").addEventListener("click", () => this.#go({ isWide: !this.#route?.isWide }));
  }

  open(route: TableRoute<ResourceState>): void {
    const before = this.#route;
    const isSameList = before !== undefined && this.window !== undefined &&
      before.resource.name === route.resource.name && before.namespace === route.namespace;
    this.#route = route;
    byId("table-name").textContent = route.resource.name;
    const input = byId<HTMLInputElement>("filter");
    if (document.activeElement !== input) input.value = route.search;
    byId("wide").setAttribute("aria-pressed", String(route.isWide));
    if (before?.resource.name !== route.resource.name) {
      this.#rows.show({ columns: [], rows: [], offset: 0, total: 0, sort: sortOf(route) });
    }
    if (!isSameList) {
      this.#showStates([]);
      this.#showNamespaces([]);
      byId("states").hidden = stateCountsOf(route.resource.name) === undefined;
    }
    if (isSameList && before.search === route.search && before.sort === route.sort) return this.#show();
    const place = this.#places.get(tableLink(route.resource, route));
    this.#rows.reset(place);
    this.#openWindow(route, place);
    if (!isSameList) {
      this.#stopCounting();
      this.#isCounting = false;
    }
    this.#show();
  }

  close(): void {
    const route = this.#route;
    if (route !== undefined) this.#places.set(tableLink(route.resource, route), this.#rows.place);
    clearTimeout(this.#typing);
    clearTimeout(this.#scrolling);
    this.#stopCounting();
    this.#closeWindow();
    this.#isCounting = false;
  }

  #closeWindow(): void {
    const store = this.window;
    this.window = undefined; // it calls back as it is closed, and shows nothing any more
    store?.close();
  }

  tick(): void {
    this.#rows.renew();
    this.#show();
  }

  focus(): void {
    byId("rows").focus({ preventScroll: true });
  }

  #openWindow(route: TableRoute<ResourceState>, place: Place | undefined): void {
    clearTimeout(this.#scrolling); // it would move this window to a place of the one before
    const { resource } = route;
    const terms = parseSearch(route.search);
    const wanted = wantedOf(terms, resource);
    const namespace = this.#namespaceOf(route, terms);
    if (
      wanted === undefined || wanted.namespace !== undefined && route.namespace !== undefined &&
        wanted.namespace !== route.namespace
    ) {
      this.#closeWindow();
      this.#message(`${resource.name} cannot be searched by this.`, route);
      return;
    }
    const limit = Math.min(MOST_ROWS, Math.max(LEAST_ROWS, this.#rows.capacity * 3));
    this.#asked = { offset: Math.max(0, (place?.first ?? 0) - limit / 3 | 0), limit };
    const { filter, labelSelector } = wanted;
    const query = { sortBy: sortByOf(route), ...this.#asked, filter, labelSelector };
    // A search may name a namespace, which has another path.
    const url = listPath(resource, namespace);
    if (this.window !== undefined && this.#url === url) {
      this.#others = this.window.getSnapshot().rows;
      return this.window.show(query);
    }
    this.#others = undefined;
    this.#closeWindow();
    this.#url = url;
    const store = openWindow({ url, table: true, fields: ROW_FIELDS, ...query });
    this.window = store;
    store.subscribe(() => {
      if (store === this.window) this.#show();
    });
  }

  #namespaceOf(route: TableRoute<ResourceState>, terms: readonly Term[]): string | undefined {
    if (!route.resource.namespaced) return undefined;
    const term = terms.find(({ type }) => type === "ns") as { readonly value: string } | undefined;
    return route.namespace ?? term?.value ?? scopesOf(route.resource, this.#viewOf().state)[0];
  }

  /** Moves the window to the rows that are seen. */
  #want(first: number, end: number): void {
    const { offset, limit } = this.#asked;
    if (this.window === undefined || first >= offset && end <= offset + limit) return;
    clearTimeout(this.#scrolling);
    this.#scrolling = setTimeout(() => {
      const next = Math.max(0, Math.round(first - (limit - (end - first)) / 2));
      this.#asked = { offset: next, limit };
      this.window?.show({ offset: next });
    }, SCROLL_MS);
  }

  #show(): void {
    const route = this.#route;
    if (route === undefined || this.window === undefined) return this.#onChange();
    const { state, rows, columns, total, offset, error } = this.window.getSnapshot();
    // The rows come first.
    if (state !== "connecting" && !this.#isCounting) {
      this.#isCounting = true;
      this.#count(route);
    }
    const { nowMs, state: { resources } } = this.#viewOf();
    for (const row of rows) if (!this.#arrivals.has(row)) this.#arrivals.set(row, nowMs);
    const isRefused = state === "refused";
    // Rows of another search are no answer to a search that is refused.
    const shown = isRefused && rows === this.#others
      ? { rows: [], offset: 0, total: 0 }
      : { rows, offset, total };
    if (columns.length > 0) {
      byId("wide").hidden = !columns.some(({ priority }) => priority > 0);
      this.#rows.show({ columns: this.#columnsOf(route, columns), ...shown, sort: sortOf(route) });
    }
    const isWaiting = !isRefused && (state === "connecting" || rows === this.#others);
    byId("rows").setAttribute("aria-busy", String(isWaiting));
    const { objects } = resources.find(({ path }) => path === route.resource.path) ?? route.resource;
    // The rows may be newer than the number of all.
    const of = route.search === "" ? "" : ` of ${number(Math.max(total, objects))}`;
    setText(byId("table-total"), isWaiting ? "…" : isRefused ? "" : number(total) + of);
    if (isRefused) this.#message(error?.message ?? "The server refuses this.", route);
    else if (!isWaiting && total === 0) this.#message(emptyText(route), route);
    else byId("table-message").hidden = true;
    this.#onChange();
  }

  #message(text: string, { resource, namespace, search }: TableRoute<ResourceState>): void {
    const message = byId("table-message");
    message.hidden = false;
    message.replaceChildren(make("p", "", text));
    if (search !== "") message.append(makeLink(tableLink(resource, { namespace }), "Remove the filter"));
    if (namespace !== undefined) {
      const [first] = scopesOf(resource, this.#viewOf().state);
      const others = first === undefined ? "All namespaces" : `Namespace ${visible(first)}`;
      message.append(makeLink(tableLink(resource, { search }), others));
    }
    if (this.window === undefined) setText(byId("table-total"), "");
  }

  #columnsOf(
    { resource, namespace, isWide }: TableRoute<ResourceState>,
    columns: readonly WindowColumn[],
  ): readonly RowColumn<TableRow>[] {
    const shown = columns.flatMap((column, i): RowColumn<TableRow>[] => {
      const { name, description, type, priority } = column;
      if (priority > 0 && !isWide && !(name === "Node" && resource.name === "pods")) return [];
      const isNumber = type === "integer" || type === "number" || name === "Ready" || name === "Age";
      const isSortable = !isCutColumn(column);
      return [{ name, description, isNumber, isSortable, cellOf: (row) => this.#cellOf(column, i, row) }];
    });
    if (!resource.namespaced || namespace !== undefined) return shown;
    const ofNamespace: RowColumn<TableRow> = {
      name: "Namespace",
      description: "The namespace of the object.",
      isNumber: false,
      isSortable: true,
      cellOf: ({ object: { metadata } }) => ({
        text: visible(metadata.namespace ?? ""),
        href: this.#linkTo({ namespace: metadata.namespace }),
      }),
    };
    const [first, ...others] = shown;
    if (!isNarrow()) return [first, ofNamespace, ...others];
    // Beside the name there is room for one more.
    const status = others.filter(({ name }) => name === "Status");
    return [first, ...status, ...others.filter(({ name }) => name !== "Status"), ofNamespace];
  }

  #cellOf({ name, type, format }: WindowColumn, i: number, row: TableRow): RowCell {
    const value = row.cells[i];
    const text = visible(value === null || value === undefined ? "" : String(value));
    const { nowMs, state: { resources } } = this.#viewOf();
    if (format === "name" || i === 0 && name === "Name") return { text, href: this.#hrefOf(row) };
    const shownMs = nowMs - (this.#arrivals.get(row) ?? nowMs);
    if (name === "Age") {
      return {
        text: ageLater(text, nowMs - Date.parse(String(row.object.metadata.creationTimestamp)), shownMs),
      };
    }
    const isRunning = name === "Duration" && row.cells.includes("Running");
    if (isRunning || type === "date" || /^(?:Last Seen|First Seen|Last Schedule|Restarts)$/.test(name)) {
      // An event has no column of its name: the first one leads to it.
      const href = i === 0 ? this.#hrefOf(row) : undefined;
      return { text: later(text, shownMs), href };
    }
    if (name === "Object" && this.#route?.resource.name === "events") {
      return { text, href: regardingLink(text, row, resources) };
    }
    if (name === "Node" && text !== "" && text !== "<none>") {
      const nodes = resources.find((resource) => resource.name === "nodes");
      return { text, href: nodes && objectLink(nodes, { name: text }) };
    }
    if (name === "Ready" && /^[0-9]+\/[0-9]+$/.test(text)) {
      const [ready, all] = text.split("/");
      const isDone = row.cells.includes("Completed");
      return { text, tone: ready === all || isDone ? "plain" : "warn" };
    }
    if (
      name === "Status" || name === "Phase" || name === "Type" && this.#route?.resource.name === "events" ||
      name === "Ready"
    ) {
      return { text, tone: toneOf(text) };
    }
    return { text };
  }

  #hrefOf({ object: { metadata: { namespace, name = "" } } }: TableRow): string {
    return objectLink(this.#route!.resource, { namespace, name });
  }

  #linkTo(change: Partial<TableRoute>): string | undefined {
    const route = this.#route;
    return route && tableLink(route.resource, { ...route, ...change });
  }

  #go(change: Partial<TableRoute>, { isTyped = false } = {}): void {
    const href = this.#linkTo(change);
    if (href === undefined || href === location.hash) return;
    // Typing makes no entries in the history.
    if (!isTyped) location.hash = href;
    else {
      history.replaceState(undefined, "", href);
      dispatchEvent(new HashChangeEvent("hashchange"));
    }
  }

  #sortBy(column: string): void {
    const { column: before, isDescending } = sortOf(this.#route!);
    this.#go({ sort: column === before && !isDescending ? `${column}:desc` : column });
  }

  /** Counts the objects of each namespace and state, again and again. */
  #count(route: TableRoute<ResourceState>): void {
    const { resource } = route;
    this.#stopCounting();
    const { state } = this.#viewOf();
    const scopes = scopesOf(resource, state);
    const counts = stateCountsOf(resource.name);
    this.#stopCounting = repeat(async (signal) => {
      const ofNamespaces = resource.namespaced
        ? readGroups(resource, { namespaces: scopes, groupBy: ["metadata.namespace"], signal })
        : [];
      // As the window, which is of one list.
      const namespaces = [route.namespace ?? scopes[0]];
      const ofStates = (counts?.groupBy ?? []).map((groupBy) =>
        readGroups(resource, { namespaces, groupBy, signal })
      );
      const [groups, ...answers] = await Promise.all([ofNamespaces, ...ofStates]);
      if (signal.aborted) return;
      this.#showNamespaces(groups);
      if (counts !== undefined) this.#showStates(counts.states(answers));
    }, COUNT_MS);
  }

  #showNamespaces(groups: readonly CountedGroup[]): void {
    const route = this.#route;
    const select = byId<HTMLSelectElement>("namespace");
    if (route === undefined) return;
    select.hidden = !route.resource.namespaced;
    const { cluster } = this.#viewOf().state;
    const counts = new Map<string, number>();
    for (const { group, count } of groups) counts.set(String(group["metadata.namespace"]), count);
    // The one that is chosen stays to be seen, also if it has no objects.
    if (route.namespace !== undefined && !counts.has(route.namespace)) counts.set(route.namespace, 0);
    const items = Array.from(counts, ([name, count]) => ({ name, count }));
    const all = cluster.namespaces === undefined ? [{ name: "", count: -1 }] : [];
    keyed(select, {
      items: [...all, ...items],
      keyOf: ({ name }) => `namespace:${name}`,
      create: ({ name }) => {
        const option = make("option");
        option.value = name;
        return option;
      },
      update: (option, { name, count }) =>
        setText(option, name === "" ? "All namespaces" : `${visible(name)} (${number(count)})`),
    });
    const chosen = route.namespace ?? (cluster.namespaces === undefined ? "" : cluster.namespaces[0]);
    if (document.activeElement !== select || select.value === "") select.value = chosen;
  }

  #showStates(states: readonly StateCount[]): void {
    const route = this.#route;
    if (route === undefined) return;
    const shown = states.filter(({ count, search }) => count > 0 || search === route.search);
    keyed(byId("states"), {
      items: shown.slice(0, 12),
      keyOf: ({ label }) => label,
      create: () => make("li", "", make("a", "chip", make("span"), make("b"))),
      update: (item, { label, count, search, tone }) => {
        const link = item.children[0] as HTMLAnchorElement;
        const isChosen = search === this.#route?.search;
        // A chosen one is left by the same link.
        link.href = this.#linkTo({ search: isChosen ? "" : search }) ?? "";
        link.setAttribute("aria-current", String(isChosen));
        setClass(link, `chip ${tone}`);
        setText(link.children[0], visible(label));
        setText(link.children[1], number(count));
      },
    });
  }
}

/** The link to what an event is about, by the words for it: `pod/web-1`. */
function regardingLink(
  text: string,
  { object: { metadata: { namespace } } }: TableRow,
  resources: readonly ResourceState[],
): string | undefined {
  const [kind, name, ...more] = text.split("/");
  const resource = resources.find((resource) => resource.kind.toLowerCase() === kind);
  if (resource === undefined || name === undefined || more.length > 0) return undefined;
  return objectLink(resource, { namespace: resource.namespaced ? namespace : undefined, name });
}

function emptyText({ resource, namespace, search }: TableRoute): string {
  const where = namespace === undefined ? "" : ` in namespace ${visible(namespace)}`;
  return search === "" ? `There are no ${resource.name}${where}.` : `No ${resource.name}${where} match.`;
}

function sortOf({ sort }: TableRoute): { readonly column: string; readonly isDescending: boolean } {
  return { column: sort.replace(/:desc$/, ""), isDescending: sort.endsWith(":desc") };
}

function sortByOf(route: TableRoute): string {
  const { column, isDescending } = sortOf(route);
  const direction = isDescending ? ":desc" : "";
  if (column === "") return route.resource.name === "events" ? NEWEST_FIRST : "metadata.name";
  if (column === "Namespace") return `metadata.namespace${direction},metadata.name`;
  return `column(${JSON.stringify(column)})${direction}`;
}
