/** The beginning: how the cache is doing, and what is in it, with a link on each name and count. */

import { openWindow, type WindowStore } from "../../../screens/mod.ts";
import type { ResourceState } from "../dashboard_message.ts";
import { byId, keyed, make, makeLink, makeRow, setClass, setLink, setText } from "./dom.ts";
import { EVENT_FIELDS, type EventObject, eventTimeMs, NEWEST_FIRST, objectOfEvent } from "./events.ts";
import { READY, type StateCount, stateCountsOf } from "./kinds.ts";
import { type FoundObject, readGroups, readObjects, repeat, scopesOf, type View } from "./reading.ts";
import { isShown, showResources, showSummary } from "./resources_card.ts";
import { listPath, objectLink, tableLink } from "./route.ts";
import { age, NO_TEXT, number, plural, visible } from "./texts.ts";

const COUNT_MS = 4_000;
const MOST_TILES = 4;
const MOST_COLUMNS = 7;
const MOST_BARS = 40;
const MOST_NAMESPACES = 40;
const NEWEST = 30;
const FIRST = ["pods", "nodes", "deployments.apps", "events", "jobs.batch", "namespaces"];
const PHASE = "status.phase";

export class Home {
  readonly #viewOf: () => View;
  readonly #onChange: () => void;
  #stop = () => {};
  window: WindowStore<EventObject> | undefined;
  readonly #states = new Map<string, readonly StateCount[]>();

  constructor({ viewOf, onChange }: { readonly viewOf: () => View; readonly onChange: () => void }) {
    this.#viewOf = viewOf;
    this.#onChange = onChange;
  }

  open(): void {
    const { resources } = this.#viewOf().state;
    const of = (name: string) => resources.find((resource) => resource.name === name);
    this.#stop();
    this.#openNewest(of("events"));
    this.#stop = repeat(async (signal) => {
      const tiles = tilesOf(this.#viewOf().state.resources).map((tile) => this.#countStates(tile, signal));
      await Promise.all([
        ...tiles,
        this.#countNamespaces(signal),
        this.#countNodes(of("pods"), of("nodes"), signal),
      ]);
      this.tick();
    }, COUNT_MS);
    this.tick();
  }

  close(): void {
    this.#stop();
    this.window?.close();
    this.window = undefined;
  }

  tick(): void {
    const view = this.#viewOf();
    showSummary(view);
    showResources(view);
    this.#showTiles(view);
    this.#showNewest();
  }

  async #countStates(resource: ResourceState, signal: AbortSignal): Promise<void> {
    const counts = stateCountsOf(resource.name);
    if (counts === undefined || !isShown(resource)) return;
    const namespaces = scopesOf(resource, this.#viewOf().state);
    const answers = counts.groupBy.map((groupBy) => readGroups(resource, { namespaces, groupBy, signal }));
    this.#states.set(resource.name, counts.states(await Promise.all(answers)));
  }

  #showTiles({ state: { resources } }: View): void {
    keyed(byId("tiles"), {
      items: tilesOf(resources),
      keyOf: ({ name }) => name,
      create: (resource) => {
        const href = tableLink(resource);
        const [label, figure] = [makeLink(href, resource.name, "label"), makeLink(href, "", "figure")];
        return make("div", "tile", label, figure, make("ul", "detail"));
      },
      update: ({ children: [, figure, detail] }, resource) => {
        setText(figure, isShown(resource) ? number(resource.objects) : "–");
        const of = (tone: string) =>
          (this.#states.get(resource.name) ?? []).filter((state) => state.count > 0 && state.tone === tone);
        const bad = [...of("bad"), ...of("warn")];
        const isKnown = this.#states.get(resource.name)?.some(({ tone }) => tone === "bad") === true;
        const items: readonly (StateCount | undefined)[] = bad.length > 0 ? bad.slice(0, 3) : [undefined];
        keyed(detail, {
          items,
          keyOf: (state) => state?.label ?? "",
          create: () => make("li", "", make("a")),
          update: (item, state) => {
            const link = item.children[0] as HTMLAnchorElement;
            if (state === undefined) {
              return setLink(link, undefined, isKnown && resource.objects > 0 ? "all ready" : NO_TEXT);
            }
            setClass(link, `tone ${state.tone}`);
            const href = tableLink(resource, { search: state.search });
            setLink(link, href, `${number(state.count)} ${wordsOf(state.label)}`);
          },
        });
      },
    });
  }

  async #countNamespaces(signal: AbortSignal): Promise<void> {
    const { state } = this.#viewOf();
    const columns = state.resources
      .filter((resource) => resource.namespaced && resource.objects > 0 && isShown(resource))
      .slice(0, MOST_COLUMNS);
    byId("card-namespaces").hidden = columns.length === 0;
    const groups = await Promise.all(columns.map((resource) => {
      const namespaces = scopesOf(resource, state);
      return readGroups(resource, { namespaces, groupBy: ["metadata.namespace"], signal });
    }));
    if (signal.aborted) return;
    const counts = groups.map((of) =>
      new Map(of.map(({ group, count }) => [String(group["metadata.namespace"]), count]))
    );
    const sums = new Map<string, number>();
    for (const column of counts) {
      for (const [name, count] of column) sums.set(name, (sums.get(name) ?? 0) + count);
    }
    const names = fullest(sums, MOST_NAMESPACES);
    showNamespaces(
      columns,
      names.map((name) => ({ name, counts: counts.map((column) => column.get(name) ?? 0) })),
      {
        others: sums.size - names.length,
        namespaces: state.resources.find(({ name }) => name === "namespaces"),
      },
    );
  }

  async #countNodes(
    pods: ResourceState | undefined,
    nodes: ResourceState | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    byId("card-nodes").hidden = pods === undefined;
    if (pods === undefined) return;
    const namespaces = scopesOf(pods, this.#viewOf().state);
    const groups = await readGroups(pods, { namespaces, groupBy: ["spec.nodeName", PHASE, READY], signal });
    const bars = new Map<string, Bar>();
    const without = { pods: 0, ready: 0, unready: 0 };
    for (const { group: { "spec.nodeName": node, [PHASE]: phase, [READY]: ready }, count } of groups) {
      const name = node === null ? undefined : String(node);
      const bar = name === undefined ? without : bars.get(name) ?? { name, pods: 0, ready: 0, unready: 0 };
      bar.pods += count;
      if (ready === "True") bar.ready += count;
      else if (phase !== "Succeeded") bar.unready += count;
      if (name !== undefined) bars.set(name, bar as Bar);
    }
    const names = fullest(new Map(Array.from(bars, ([name, bar]) => [name, bar.pods])), MOST_BARS);
    const found = nodes === undefined || names.length === 0
      ? []
      : await this.#readRooms(nodes, names, signal);
    for (const { metadata: { name }, status, spec } of found) {
      const room = Number(status?.allocatable?.pods ?? NaN);
      Object.assign(bars.get(name) ?? {}, { room, isCordoned: spec?.unschedulable === true });
    }
    if (signal.aborted) return;
    showNodes(names.map((name) => bars.get(name)!), {
      pods,
      nodes,
      others: bars.size - names.length,
      without,
    });
  }

  async #readRooms(nodes: ResourceState, names: readonly string[], signal: AbortSignal): Promise<NodeRoom[]> {
    const filter = `metadata.name in (${names.map((name) => JSON.stringify(name)).join(",")})`;
    const fields = "spec.unschedulable,status.allocatable.pods";
    const { state } = this.#viewOf();
    return (await readObjects<NodeRoom>(nodes, { state, filter, fields, limit: MOST_BARS, signal })).items;
  }

  /** Opens the latest events; the newest objects in a cache without events. */
  #openNewest(events: ResourceState | undefined): void {
    const { state } = this.#viewOf();
    const resource = events ?? tilesOf(state.resources)[0];
    this.window?.close();
    this.window = undefined;
    byId("card-newest").hidden = resource === undefined;
    if (resource === undefined) return;
    // A window is of one list: of the first namespace, where the cache has several by name.
    const [namespace, ...others] = scopesOf(resource, state);
    const where = others.length > 0 ? ` in ${visible(namespace!)}` : "";
    const title = events === undefined ? `Newest ${resource.name}` : "Latest events";
    setText(byId("heading-newest"), title + where);
    this.window = openWindow<EventObject>({
      url: listPath(resource, namespace),
      sortBy: events === undefined ? "metadata.creationTimestamp:desc" : NEWEST_FIRST,
      fields: events === undefined ? ["metadata.creationTimestamp"] : EVENT_FIELDS,
      limit: NEWEST,
    });
    this.window.subscribe(() => {
      this.#showNewest();
      this.#onChange();
    });
    this.#showNewest();
  }

  #showNewest(): void {
    if (this.window === undefined) return;
    const { state: { resources }, nowMs } = this.#viewOf();
    const events = resources.find(({ name }) => name === "events");
    const resource = events ?? tilesOf(resources)[0];
    keyed(byId("newest"), {
      items: this.window.getSnapshot().rows,
      keyOf: ({ metadata: { uid, namespace, name } = {} }) => uid ?? `${namespace}/${name}`,
      create: (object) => newLine(object, resource, events !== undefined, resources),
      update: (line, object) => updateLine(line, object, events !== undefined, nowMs),
    });
  }
}

/** The resources that have a tile: the cached resources decide. */
function tilesOf(resources: readonly ResourceState[]): readonly ResourceState[] {
  const rank = ({ name }: ResourceState) => {
    const at = FIRST.indexOf(name);
    return at >= 0 ? at : stateCountsOf(name) !== undefined ? FIRST.length : FIRST.length + 1;
  };
  return [...resources].sort((a, b) => rank(a) - rank(b)).slice(0, MOST_TILES);
}

function wordsOf(label: string): string {
  return /^[A-Z][a-z]+(?: [a-z]+)*$/.test(label) ? label.toLowerCase() : visible(label);
}

const collator = new Intl.Collator("en", { numeric: true });

/** The names with the highest counts, sorted by name. */
function fullest(counts: ReadonlyMap<string, number>, most: number): string[] {
  const names = Array.from(counts.keys()).sort((a, b) =>
    counts.get(b)! - counts.get(a)! || collator.compare(a, b)
  );
  return names.slice(0, most).sort(collator.compare);
}

/** Shows the objects of each namespace, in one column for each resource that has any. */
function showNamespaces(
  columns: readonly ResourceState[],
  rows: readonly { readonly name: string; readonly counts: readonly number[] }[],
  { others, namespaces }: { readonly others: number; readonly namespaces: ResourceState | undefined },
): void {
  keyed(byId("namespaces-head"), {
    items: ["Namespace", ...columns.map(({ name }) => name)],
    keyOf: (name) => name,
    create: (name) => {
      const cell = make("th", name === "Namespace" ? "" : "number", name.split(".")[0]);
      cell.scope = "col";
      cell.title = name;
      return cell;
    },
  });
  // Rows with other columns are other rows.
  const shape = columns.map(({ name }) => name).join(",");
  keyed(byId("namespaces"), {
    items: rows,
    keyOf: ({ name }) => `${shape}:${name}`,
    create: ({ name }) => {
      const row = makeRow("", ...columns.map(() => "number"));
      row.cells[0].append(makeLink(namespaces && objectLink(namespaces, { name }), visible(name)));
      columns.forEach((resource, i) => {
        row.cells[i + 1].dataset["label"] = resource.name.split(".")[0];
        row.cells[i + 1].append(make("a"));
      });
      return row;
    },
    update: ({ cells }, { name, counts }) =>
      counts.forEach((count, i) => {
        const href = count === 0 ? undefined : tableLink(columns[i], { namespace: name });
        setLink(cells[i + 1].children[0] as HTMLAnchorElement, href, count === 0 ? "·" : number(count));
        setClass(cells[i + 1], count === 0 ? "number none" : "number");
      }),
  });
  const note = byId("namespaces-note");
  note.hidden = others <= 0;
  setText(note, `${plural(others, "namespace has", "namespaces have")} fewer objects.`);
}

interface Bar {
  readonly name: string;
  pods: number;
  ready: number;
  /** Pods that are not ready, without those that have completed. */
  unready: number;
  room?: number;
  isCordoned?: boolean;
}

interface NodeRoom extends FoundObject {
  readonly spec?: { readonly unschedulable?: boolean };
  readonly status?: { readonly allocatable?: { readonly pods?: string | number } };
}

function showNodes(
  bars: readonly Bar[],
  { pods, nodes, others, without }: {
    readonly pods: ResourceState;
    readonly nodes: ResourceState | undefined;
    readonly others: number;
    readonly without: { readonly pods: number };
  },
): void {
  const most = Math.max(...bars.map((bar) => bar.pods), 1);
  keyed(byId("nodes"), {
    items: bars,
    keyOf: ({ name }) => name,
    create: ({ name }) => {
      const link = makeLink(nodes && objectLink(nodes, { name }), visible(name));
      const search = `node=${name}`;
      const unready = makeLink(tableLink(pods, { search: `${search} not ready` }), "", "tone warn");
      const value = make("span", "value", unready, makeLink(tableLink(pods, { search }), ""));
      const track = make("span", "track", make("span", "ready"), make("span", "unready"));
      return make("li", "", make("span", "name", link, make("span", "tag", "cordoned")), value, track);
    },
    update: ({ children: [label, value, track] }, bar) => {
      (label.children[1] as HTMLElement).hidden = bar.isCordoned !== true;
      const isRoomKnown = Number.isFinite(bar.room ?? NaN);
      const whole = isRoomKnown ? Math.max(bar.room!, bar.pods) : most;
      // An empty link would be a stop of the keyboard without a name.
      (value.children[0] as HTMLElement).hidden = bar.unready === 0;
      setText(value.children[0], bar.unready === 0 ? "" : `${number(bar.unready)} not ready`);
      setText(value.children[1], number(bar.pods) + (isRoomKnown ? ` of ${number(bar.room!)}` : ""));
      const [ready, rest] = Array.from(track.children, (part) => (part as HTMLElement).style);
      ready.width = `${100 * bar.ready / whole}%`;
      rest.width = `${100 * bar.unready / whole}%`;
    },
  });
  const notes = [
    ...(others > 0 ? [`${plural(others, "node has", "nodes have")} fewer pods.`] : []),
    ...(without.pods > 0 ? [`${plural(without.pods, "pod is", "pods are")} on no node.`] : []),
    ...(bars.length === 0 ? ["No pods on nodes."] : []),
  ];
  byId("nodes-note").hidden = notes.length === 0;
  setText(byId("nodes-note"), notes.join(" "));
}

function newLine(
  object: EventObject,
  resource: ResourceState,
  isEvent: boolean,
  resources: readonly ResourceState[],
): HTMLLIElement {
  const { namespace, name = "" } = object.metadata ?? {};
  const own = objectLink(resource, { namespace, name });
  const { href, text } = isEvent
    ? objectOfEvent(object, resources)
    : { href: own, text: namespace === undefined ? name : `${namespace}/${name}` };
  const what = make("span", "what", makeLink(href, visible(text), "key"), make("span", "how"));
  return make("li", "", makeLink(own, "", "verb"), what, make("time"));
}

function updateLine({ children }: HTMLLIElement, object: EventObject, isEvent: boolean, nowMs: number): void {
  const [verb, what, time] = children;
  const { reason = "", message = "", type } = object;
  setText(verb, isEvent ? visible(reason) : "created");
  setClass(verb, `verb ${type === "Warning" ? "warn" : "plain"}`);
  setText(what.children[1], isEvent ? visible(message) : "");
  (what as HTMLElement).title = visible(message);
  setText(time, age(nowMs - eventTimeMs(object)));
}
