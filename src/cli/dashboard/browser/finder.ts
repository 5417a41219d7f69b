/** The search: by names through `/dashboard/search`, by labels through the read API. */

import type { FoundObject, SearchedList, SearchResult } from "../dashboard_message.ts";
import { byId, make, number, visible } from "./dom.ts";
import { objectPath } from "./object_path.ts";

const DELAY_MS = 120;
/** The objects of each list that a search by labels reads. */
const PAGE = 100;
const MAX_FOUND = 200;
const METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";

const input = byId<HTMLInputElement>("search");
const list = byId("results");
const note = byId("results-note");
const panel = byId("results-panel");

let running = new AbortController();
let timer = 0;
let selected = -1;

export function leaveFinder(): void {
  input.focus({ preventScroll: true });
  open(false);
}

export function startFinder({ isBlocked }: { readonly isBlocked: () => boolean }): void {
  input.addEventListener("input", () => {
    clearTimeout(timer);
    const query = input.value.trim();
    if (query !== "") {
      timer = setTimeout(() => find(query), DELAY_MS);
      return;
    }
    running.abort();
    open(false);
  });
  input.addEventListener("focus", () => {
    if (input.value.trim() !== "") find(input.value.trim());
  });
  input.addEventListener("keydown", onKey);
  list.addEventListener("click", () => open(false));
  document.addEventListener("pointerdown", ({ target }) => {
    if (!panel.hidden && !byId("finder").contains(target as Node)) open(false);
  });
  document.addEventListener("keydown", (event) => {
    const { key, ctrlKey, metaKey, altKey } = event;
    const target = event.target as HTMLElement;
    if (key !== "/" || ctrlKey || metaKey || altKey || isBlocked() || target.isContentEditable) return;
    if (/^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) return;
    event.preventDefault();
    input.focus();
    input.select();
  });
}

function onKey(event: KeyboardEvent): void {
  const { key } = event;
  const count = list.children.length;
  if (key === "Escape") {
    event.preventDefault();
    if (!panel.hidden) return open(false);
    input.value = "";
    input.blur();
  } else if (panel.hidden || count === 0) {
    return;
  } else if (key === "ArrowDown" || key === "ArrowUp") {
    event.preventDefault();
    select((selected + (key === "ArrowDown" ? 1 : count - 1)) % count);
  } else if (key === "Enter") {
    event.preventDefault();
    list.children[selected].querySelector("a")?.click();
  }
}

async function find(query: string): Promise<void> {
  running.abort();
  running = new AbortController();
  const { signal } = running;
  panel.setAttribute("aria-busy", "true");
  try {
    const url = `/dashboard/search?q=${encodeURIComponent(query)}`;
    const { objects, total, byLabels } = await readJson<SearchResult>(url, { signal });
    if (byLabels !== undefined) await findByLabels(byLabels, signal);
    else showFound(objects, total, "");
  } catch (error) {
    if (!signal.aborted) showFound([], 0, messageOf(error));
  }
  if (!signal.aborted) panel.setAttribute("aria-busy", "false");
}

/** The part of a list of metadata that is read. */
interface MetadataList {
  readonly metadata: { readonly continue?: string };
  readonly items: readonly {
    readonly metadata: { readonly namespace?: string; readonly name: string };
  }[];
}

async function findByLabels(
  { labelSelector, lists }: {
    readonly labelSelector: string;
    readonly lists: readonly SearchedList[];
  },
  signal: AbortSignal,
): Promise<void> {
  const objects: FoundObject[] = [];
  let isWhole = true;
  let failure = "";
  for (const { resource, path, words } of lists) {
    if (objects.length >= MAX_FOUND) {
      isWhole = false;
      break;
    }
    const url = `${path}?limit=${PAGE}&labelSelector=${encodeURIComponent(labelSelector)}`;
    try {
      const { items, metadata } = await readJson<MetadataList>(url, {
        signal,
        headers: { Accept: METADATA_LIST },
      });
      if (metadata.continue) isWhole = false;
      for (const { metadata: { namespace, name } } of items) {
        const key = `${namespace ?? ""}/${name}`;
        if (!words.every((word) => key.includes(word))) continue;
        objects.push({ resource, path, name, ...(namespace !== undefined && { namespace }) });
      }
    } catch (error) {
      if (signal.aborted) throw error;
      failure = messageOf(error);
    }
  }
  const rest = isWhole ? "" : "Only the first objects of each resource are shown.";
  showFound(objects, objects.length, objects.length === 0 ? failure : rest);
}

async function readJson<T>(url: string, init: RequestInit): Promise<T> {
  const response = await fetch(url, init);
  if (response.ok) return await response.json();
  const text = await response.text();
  let message = text;
  try {
    message = JSON.parse(text).message || text;
  } catch {
    // It is text for people.
  }
  throw new Error(message.slice(0, 300) || `The server answered ${response.status}.`);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function showFound(objects: readonly FoundObject[], total: number, text: string): void {
  list.replaceChildren(...objects.map(rowOf));
  const more = total - objects.length;
  note.textContent = text !== ""
    ? text
    : total === 0
    ? "Nothing found."
    : more > 0
    ? `${number(more)} more. Add words to see fewer.`
    : "";
  note.hidden = note.textContent === "";
  select(objects.length > 0 ? 0 : -1);
  open(true);
}

function rowOf(object: FoundObject, i: number): HTMLLIElement {
  const row = make("li");
  row.id = `result-${i}`;
  row.setAttribute("role", "option");
  const link = make("a");
  link.href = `#${objectPath(object)}`;
  link.tabIndex = -1;
  const name = make("span", "key");
  if (object.namespace !== undefined) {
    name.append(make("span", "muted", `${visible(object.namespace)} / `));
  }
  name.append(visible(object.name));
  link.append(name, make("span", "what muted", object.resource));
  row.append(link);
  return row;
}

function open(isOpen: boolean): void {
  panel.hidden = !isOpen;
  input.setAttribute("aria-expanded", String(isOpen));
  if (!isOpen) input.removeAttribute("aria-activedescendant");
}

function select(index: number): void {
  list.children[selected]?.setAttribute("aria-selected", "false");
  selected = index;
  const row = list.children[index];
  if (row === undefined) return input.removeAttribute("aria-activedescendant");
  row.setAttribute("aria-selected", "true");
  row.scrollIntoView({ block: "nearest" });
  input.setAttribute("aria-activedescendant", row.id);
}
