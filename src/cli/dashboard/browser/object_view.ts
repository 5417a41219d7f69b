/** The view of one object: its text, what belongs to it, its events, and what has changed. */

import type { KubernetesObject } from "../../../meta/object.ts";
import { openWindow, type WindowStore } from "../../../screens/mod.ts";
import { refusalOf } from "../../../screens/window_store.ts";
import { errorMessage } from "../../../util/errors.ts";
import type { ResourceState } from "../dashboard_message.ts";
import { changesBetween, type FieldChange } from "./changes.ts";
import { byId, keyed, make, makeLink, setClass, setLink, setText } from "./dom.ts";
import { EVENT_FIELDS, type EventObject, eventTimeMs, NEWEST_FIRST } from "./events.ts";
import { readJson, repeat, request, type View } from "./reading.ts";
import { factsOf, type Owned, ownedBy, ownersOf, type Relation } from "./relations.ts";
import { listPath, objectPath, type ObjectRoute, tableLink } from "./route.ts";
import { age, ago, visible } from "./texts.ts";

const OWNED_MS = 5_000;
const EVENTS_MS = 3_000;
const MOST_EVENTS = 50;
const MOST_CHANGES = 20;
const COPIED_MS = 1_500;

interface SeenChange {
  readonly atMs: number;
  readonly fields: readonly FieldChange[];
}

interface EventList {
  readonly items: readonly EventObject[];
  readonly window: { readonly total: number };
}

export class ObjectView {
  readonly #viewOf: () => View;
  readonly #onChange: () => void;
  #route: ObjectRoute<ResourceState> | undefined;
  #object: KubernetesObject | undefined;
  window: WindowStore<KubernetesObject> | undefined;
  #events: EventList | undefined;
  #stop = new AbortController();
  #stopOwned = () => {};
  #stopEvents = () => {};
  #text = "";
  /** The state of the object that the text is of, or a state before. */
  #textOf: KubernetesObject | undefined;
  #lines: ReadonlySet<string> | undefined;
  #isReading = false;
  #changes: SeenChange[] = [];

  constructor({ viewOf, onChange }: { readonly viewOf: () => View; readonly onChange: () => void }) {
    this.#viewOf = viewOf;
    this.#onChange = onChange;
    byId("object-managed").addEventListener("change", () => this.#writeText(undefined));
    byId("object-copy").addEventListener("click", () => this.#copy());
  }

  open(route: ObjectRoute<ResourceState>): void {
    this.close();
    this.#route = route;
    this.#stop = new AbortController();
    const { resource, namespace, name } = route;
    byId("object-name").textContent = visible(name);
    const all = byId<HTMLAnchorElement>("object-resource");
    setLink(all, tableLink(resource, { namespace }), resource.name);
    byId<HTMLAnchorElement>("object-json").href = objectPath(resource, { namespace, name });
    this.#showState("Loading");
    byId("object-text").replaceChildren();
    for (const id of ["object-facts", "object-owners", "object-owned", "object-events", "object-changes"]) {
      keyed(byId(id), { items: [], keyOf: String, create: () => make("li") });
    }
    for (const id of ["card-owners", "card-owned", "card-events"]) byId(id).hidden = true;
    this.#showChanges();
    const store = openWindow<KubernetesObject>({
      url: listPath(resource, namespace),
      fieldSelector: `metadata.name=${name.replace(/[\\,=]/g, "\\$&")}`,
      sortBy: "metadata.name",
      limit: 1,
    });
    this.window = store;
    store.subscribe(() => this.#receive(store));
    this.#followEvents(route);
  }

  close(): void {
    this.#stop.abort();
    this.#stopOwned();
    this.#stopEvents();
    this.window?.close();
    this.window =
      this.#events =
      this.#object =
      this.#textOf =
      this.#route =
      this.#lines =
        undefined;
    this.#text = "";
    this.#changes = [];
  }

  tick(): void {
    this.#showEvents();
    this.#showChanges();
    const [object] = this.window?.getSnapshot().rows ?? [];
    // The last read of the text has failed.
    if (object !== undefined && object !== this.#textOf) this.#read();
  }

  focus(): void {
    byId("object-text").focus({ preventScroll: true });
  }

  #receive(store: WindowStore<KubernetesObject>): void {
    if (store !== this.window) return;
    const { state, rows: [object], error } = store.getSnapshot();
    const before = this.#object;
    if (state === "refused") this.#showState(error?.message ?? "Refused", { isLost: true });
    else if (object === undefined && state === "live") {
      this.#showState(before === undefined ? "It does not exist" : "Deleted", { isLost: true });
    } else if (object !== undefined && object !== before) {
      this.#object = object;
      this.#showState("");
      if (before !== undefined) this.#compare(before, object);
      this.#read();
      this.#showFacts(object);
      if (before?.metadata?.uid !== object.metadata?.uid) this.#followRelations();
    }
    this.#onChange();
  }

  #compare(before: KubernetesObject, object: KubernetesObject): void {
    const fields = changesBetween(before, object);
    if (fields.length === 0) return;
    this.#changes = [{ atMs: this.#viewOf().nowMs, fields }, ...this.#changes].slice(0, MOST_CHANGES);
    this.#showChanges();
  }

  /** Reads the text of the object; once more if it has changed meanwhile. */
  async #read(): Promise<void> {
    if (this.#isReading || this.#route === undefined) return;
    this.#isReading = true;
    const { signal } = this.#stop;
    const object = this.#object;
    try {
      const response = await request(objectPath(this.#route.resource, this.#route), {
        signal,
        headers: { Accept: "application/yaml, application/json;q=0.5" },
        cache: "no-store",
      });
      if (!response.ok) throw await refusalOf(response);
      const body = await response.text();
      const isYaml = (response.headers.get("Content-Type") ?? "").includes("yaml");
      this.#text = isYaml ? body : JSON.stringify(JSON.parse(body), undefined, 2);
      this.#textOf = object;
      this.#writeText(this.#lines);
      if (this.window?.getSnapshot().rows[0] !== undefined) this.#showState("");
    } catch (error) {
      if (!signal.aborted && this.#text === "") this.#showState(errorMessage(error), { isLost: true });
    } finally {
      this.#isReading = false;
    }
    if (this.#object !== undefined && (signal.aborted || object !== this.#object)) this.#read();
  }

  /** The lines of the text that are shown. */
  get #shown(): readonly string[] {
    const lines = this.#text.trimEnd().split("\n");
    return byId<HTMLInputElement>("object-managed").checked ? lines : withoutManagedFields(lines);
  }

  /** Shows the text; `before` has the lines of the text before, if it was of the same object. */
  #writeText(before: ReadonlySet<string> | undefined): void {
    const lines = this.#shown;
    showLines(byId("object-text"), lines, before);
    this.#lines = new Set(lines);
  }

  #showState(text: string, { isLost = false } = {}): void {
    const state = byId("object-state");
    state.hidden = text === "";
    setClass(state, isLost ? "tone bad" : "muted");
    setText(state, text);
    // The cards are empty, as nothing is known of the object.
    byId("object").classList.toggle("missing", isLost && this.#object === undefined);
  }

  #showFacts(object: KubernetesObject): void {
    keyed(byId("object-facts"), {
      items: factsOf(object, this.#route!, this.#viewOf().state.resources),
      keyOf: ({ label, values }) => `${label} ${values.map(({ text }) => text).join()}`,
      create: ({ label, values }) => {
        const links = values.map((value) => linkOf(value, label === "Labels" ? "chip" : ""));
        return make("li", "", make("span", "label", label), make("span", "values", ...links));
      },
    });
  }

  /** Shows the owners of the object, and what it owns, again and again. */
  #followRelations(): void {
    const route = this.#route!;
    this.#stopOwned();
    this.#stopOwned = repeat(async (signal) => {
      const object = this.#object!;
      const view = this.#viewOf();
      const owners = await ownersOf(object, { resources: view.state.resources, signal });
      if (signal.aborted) return;
      showOwners(owners);
      const owned = await ownedBy(object, route, { view, signal });
      if (!signal.aborted) showOwned(owned);
    }, OWNED_MS);
  }

  /**
   * Reads the events of the object again and again. A window would take a second connection: over HTTP/1.1 a
   * browser has six, for all of its tabs, and three visible objects would leave none.
   */
  #followEvents({ resource, namespace, name }: ObjectRoute<ResourceState>): void {
    const { state: { resources, cluster } } = this.#viewOf();
    const events = resources.find((resource) => resource.name === "events");
    if (events === undefined || resource.name === "events") return;
    // The events of objects without a namespace may be in any namespace.
    const scope = namespace ?? cluster.namespaces?.[0];
    const query = new URLSearchParams({
      filter: `involvedObject.name=${JSON.stringify(name)},involvedObject.kind=${
        JSON.stringify(resource.kind)
      }`,
      sortBy: NEWEST_FIRST,
      fields: EVENT_FIELDS.join(),
      limit: String(MOST_EVENTS),
    });
    this.#stopEvents = repeat(async (signal) => {
      const list = await readJson<EventList>(`${listPath(events, scope)}?${query}`, { signal });
      if (signal.aborted) return;
      this.#events = list;
      this.#showEvents();
    }, EVENTS_MS);
  }

  #showEvents(): void {
    if (this.#events === undefined) return;
    const { items, window: { total } } = this.#events;
    byId("card-events").hidden = false;
    setText(byId("object-events-count"), total === 0 ? "none" : String(total));
    const { nowMs } = this.#viewOf();
    keyed(byId("object-events"), {
      items,
      keyOf: ({ metadata: { uid = "", name } = {} }) => uid || String(name),
      create: () => {
        const what = make("span", "what", make("span", "key"), make("span", "how"));
        return make("li", "", make("span", "verb"), what, make("time"));
      },
      update: ({ children: [verb, what, time] }, event) => {
        const { type, reason = "", message = "", count = 1 } = event;
        setText(verb, count > 1 ? `${count}×` : type ?? "");
        setClass(verb, `verb ${type === "Warning" ? "warn" : "plain"}`);
        setText(what.children[0], visible(reason));
        setText(what.children[1], visible(message));
        setText(time, age(nowMs - eventTimeMs(event)));
      },
    });
  }

  #showChanges(): void {
    const { nowMs } = this.#viewOf();
    byId("object-unchanged").hidden = this.#changes.length > 0;
    keyed(byId("object-changes"), {
      items: this.#changes,
      keyOf: ({ atMs, fields }) => `${atMs} ${fields.length} ${fields[0].path}`,
      create: ({ fields }) => make("li", "", make("time"), ...fields.map(newChange)),
      update: ({ children: [time] }, { atMs }) => setText(time, ago(nowMs - atMs)),
    });
  }

  async #copy(): Promise<void> {
    const button = byId("object-copy");
    try {
      await navigator.clipboard.writeText(`${this.#shown.join("\n")}\n`);
      setText(button, "Copied");
    } catch {
      // Over http no page may write to the clipboard: the selected text can be copied by hand.
      getSelection()?.selectAllChildren(byId("object-text"));
      setText(button, "Selected");
    }
    setTimeout(() => setText(button, "Copy"), COPIED_MS);
  }
}

function newChange({ path, before, after }: FieldChange): HTMLElement {
  const line = make("p", "", make("span", "path", visible(path)));
  if (before !== undefined) line.append(make("del", "", visible(before)));
  if (after !== undefined) line.append(make("ins", "", visible(after)));
  return line;
}

function linkOf({ text, href }: Relation, className = ""): HTMLAnchorElement {
  return makeLink(href, visible(text), className);
}

function showOwners(owners: readonly Relation[]): void {
  byId("card-owners").hidden = owners.length === 0;
  keyed(byId("object-owners"), {
    items: owners,
    keyOf: ({ text, href }) => `${text} ${href}`,
    create: (owner) => make("li", "", linkOf(owner)),
  });
}

function showOwned(owned: readonly Owned[]): void {
  byId("card-owned").hidden = owned.length === 0;
  keyed(byId("object-owned"), {
    items: owned,
    keyOf: ({ text, objects }) => `${text} ${objects.map((object) => object.text).join()}`,
    create: (group) =>
      make("li", "", linkOf(group, "count"), ...group.objects.map((object) => linkOf(object))),
  });
}

/** Longer texts are shown without colors. */
const MAX_MARKED_LINES = 5_000;

function showLines(
  pre: HTMLElement,
  lines: readonly string[],
  before: ReadonlySet<string> | undefined,
): void {
  if (lines.length > MAX_MARKED_LINES) pre.replaceChildren(lines.map(visible).join("\n"));
  else {
    pre.replaceChildren(...lines.map((line) => {
      const [start, end] = keyIn(line);
      const key = make("span", "yaml-key", line.slice(start, end));
      const className = before === undefined || before.has(line) ? "line" : "line changed";
      return make("span", className, visible(line.slice(0, start)), key, visible(line.slice(end)), "\n");
    }));
  }
}

/** Where a line of YAML has its key, with the colon; an empty range if it has none. */
function keyIn(line: string): [start: number, end: number] {
  const start = /^[ -]*/.exec(line)?.[0].length ?? 0;
  const colon = line.indexOf(":", start);
  const isKey = /^"?[\w./-]+"?$/.test(line.slice(start, colon)) && /^(?: |$)/.test(line.slice(colon + 1));
  return colon >= 0 && isKey ? [start, colon + 1] : [0, 0];
}

/** The lines without managedFields, if they are YAML as the read API writes it. */
function withoutManagedFields(lines: readonly string[]): readonly string[] {
  const begin = lines.indexOf("  managedFields:");
  if (begin < 0) return lines;
  const length = lines.slice(begin + 1).findIndex((line) => !/^ {2}(?:- | )/.test(line));
  return [...lines.slice(0, begin), ...(length < 0 ? [] : lines.slice(begin + 1 + length))];
}
