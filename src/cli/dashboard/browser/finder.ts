/** The search of all resources: by names, labels, nodes, namespaces, and states. */

import { errorMessage } from "../../../util/errors.ts";
import type { ResourceState } from "../dashboard_message.ts";
import { byId, make } from "./dom.ts";
import { readObjects, type View } from "./reading.ts";
import { objectLink, tableLink } from "./route.ts";
import { chooseResources, parseSearch, rankOf, type Term, wantedOf } from "./search.ts";
import { objectsText, visible } from "./texts.ts";

const DELAY_MS = 150;
/** How many objects of each resource are read, and how many shown. */
const READ = 100;
const SHOWN = 6;
const AT_ONCE = 3;

interface Found {
  readonly href: string;
  readonly namespace?: string | undefined;
  readonly text: string;
  readonly what: string;
  readonly rank: number;
}

export class Finder {
  readonly #viewOf: () => View;
  readonly #input = byId<HTMLInputElement>("search");
  readonly #list = byId("results");
  readonly #note = byId("results-note");
  readonly #panel = byId("results-panel");
  #running = new AbortController();
  #timer = 0;
  #selected = -1;
  /** Enter was pressed before there were results of the text. */
  #isEntered = false;

  constructor({ viewOf }: { readonly viewOf: () => View }) {
    this.#viewOf = viewOf;
    this.#input.addEventListener("input", () => {
      clearTimeout(this.#timer);
      this.#running.abort();
      this.#isEntered = false;
      if (this.#input.value.trim() === "") return this.#open(false);
      this.#panel.ariaBusy = "true";
      this.#timer = setTimeout(() => this.#find(), DELAY_MS);
    });
    this.#input.addEventListener("focus", () => {
      if (this.#input.value.trim() !== "") this.#find();
    });
    this.#input.addEventListener("keydown", (event) => this.#onKey(event));
    this.#list.addEventListener("click", () => this.#open(false));
    document.addEventListener("pointerdown", ({ target }) => {
      if (!byId("finder").contains(target as Node)) this.#open(false);
    });
  }

  focus(): void {
    this.#input.focus();
    this.#input.select();
  }

  #onKey(event: KeyboardEvent): void {
    const { key } = event;
    const count = this.#list.children.length;
    if (key === "Escape") {
      event.preventDefault();
      event.stopPropagation();
      if (!this.#panel.hidden) return this.#open(false);
      this.#input.value = "";
      this.#input.blur();
    } else if (key === "Enter" && this.#panel.ariaBusy === "true") {
      event.preventDefault();
      this.#isEntered = true;
    } else if (this.#panel.hidden || count === 0) {
      return;
    } else if (key === "ArrowDown" || key === "ArrowUp") {
      event.preventDefault();
      this.#select((this.#selected + (key === "ArrowDown" ? 1 : count - 1)) % count);
    } else if (key === "Enter") {
      event.preventDefault();
      this.#enter();
    }
  }

  #enter(): void {
    this.#input.blur();
    this.#list.children[this.#selected].querySelector("a")?.click();
  }

  async #find(): Promise<void> {
    this.#running.abort();
    this.#running = new AbortController();
    const { signal } = this.#running;
    const text = this.#input.value.trim();
    const { state } = this.#viewOf();
    const { resources, terms } = chooseResources(parseSearch(text), state.resources);
    const isNamed = resources.length < state.resources.length;
    const tables: Found[] = [];
    const objects: Found[] = [];
    let failure = "";
    this.#panel.ariaBusy = "true";
    const queue = [...resources];
    const work = async () => {
      for (let resource = queue.shift(); resource !== undefined; resource = queue.shift()) {
        try {
          const found = await this.#findIn(resource, terms, signal);
          tables.push(...found.tables);
          objects.push(...found.objects);
        } catch (error) {
          failure = errorMessage(error);
        }
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    if (signal.aborted) return;
    this.#panel.ariaBusy = "false";
    objects.sort((a, b) => a.rank - b.rank);
    // A search for a resource or a state is for its table; a search for an object is for the object.
    const isOfNames = !isNamed && terms.every(({ type }) => type === "word" || type === "ns") &&
      objects.some(({ rank }) => rank < 3);
    const found = isOfNames ? [...objects, ...tables] : [...tables, ...objects];
    this.#show(found, found.length === 0 ? failure || "Nothing found." : "");
    if (this.#isEntered && found.length > 0) this.#enter();
  }

  async #findIn(
    resource: ResourceState,
    terms: readonly Term[],
    signal: AbortSignal,
  ): Promise<{ readonly tables: readonly Found[]; readonly objects: readonly Found[] }> {
    const wanted = wantedOf(terms, resource);
    if (wanted === undefined) return { tables: [], objects: [] };
    const of = { state: this.#viewOf().state, ...wanted, limit: READ, signal };
    const { items, total } = await readObjects(resource, of);
    const objects = items.map(({ metadata }): Found => {
      const { namespace, name } = metadata;
      const href = objectLink(resource, metadata);
      return { href, namespace, text: name, what: resource.name, rank: rankOf(name, terms) };
    });
    const search = terms.filter(({ type }) => type !== "ns").map(textOf).join(" ");
    const table = {
      href: tableLink(resource, { namespace: resource.namespaced ? wanted.namespace : undefined, search }),
      text: objectsText(total, resource),
      what: search === "" ? "all" : search,
      rank: 0,
    };
    objects.sort((a, b) => a.rank - b.rank);
    return { tables: total > 0 ? [table] : [], objects: objects.slice(0, SHOWN) };
  }

  #show(found: readonly Found[], note: string): void {
    this.#list.replaceChildren(...found.map(rowOf));
    this.#note.textContent = note;
    this.#note.hidden = note === "";
    this.#select(found.length > 0 ? 0 : -1);
    this.#open(true);
  }

  #open(isOpen: boolean): void {
    if (!isOpen) {
      clearTimeout(this.#timer);
      this.#running.abort();
      this.#panel.ariaBusy = "false";
      this.#isEntered = false;
    }
    this.#panel.hidden = !isOpen;
    this.#input.setAttribute("aria-expanded", String(isOpen));
    if (!isOpen) this.#input.removeAttribute("aria-activedescendant");
  }

  #select(index: number): void {
    this.#list.children[this.#selected]?.setAttribute("aria-selected", "false");
    this.#selected = index;
    const row = this.#list.children[index];
    if (row === undefined) return this.#input.removeAttribute("aria-activedescendant");
    row.setAttribute("aria-selected", "true");
    row.scrollIntoView({ block: "nearest" });
    this.#input.setAttribute("aria-activedescendant", row.id);
  }
}

function textOf(term: Term): string {
  switch (term.type) {
    case "word":
      return term.word;
    case "label":
      return term.requirement;
    case "not ready":
      return "not ready";
    default:
      return `${term.type}=${term.value}`;
  }
}

function rowOf({ href, namespace, text, what }: Found, i: number): HTMLLIElement {
  const of = namespace === undefined ? [] : [make("span", "muted", `${visible(namespace)} / `)];
  const name = make("span", "key", ...of, visible(text));
  const link = make("a", "", name, make("span", "what muted", visible(what)));
  link.href = href;
  link.tabIndex = -1;
  const row = make("li", "", link);
  row.id = `result-${i}`;
  row.setAttribute("role", "option");
  return row;
}
