/** The elements of the page, and texts in them. Text of the server becomes text nodes, never markup. */

export function byId<E extends HTMLElement = HTMLElement>(id: string): E {
  const element = document.getElementById(id);
  if (element === null) throw new Error(`The page has no element ${id}`);
  return element as E;
}

export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  className?: string,
  text?: string,
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
}

/**
 * Sets the text of an element. Only differences are written, so that selections and scroll positions stay.
 */
export function setText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

export function setClass(element: Element, className: string): void {
  if (element.className !== className) element.className = className;
}

/** What {@linkcode keyed} needs to know of items. */
export interface KeyedItems<T, E extends HTMLElement> {
  readonly items: readonly T[];
  readonly keyOf: (item: T) => string;
  readonly create: (item: T) => E;
  readonly update?: (element: E, item: T) => void;
}

const childrenOf = new WeakMap<Element, Map<string, HTMLElement>>();

/**
 * Gives an element one child for each item, in their order, and keeps the children that it has for their
 * keys.
 */
export function keyed<T, E extends HTMLElement>(parent: Element, options: KeyedItems<T, E>): void {
  const { items, keyOf, create, update = () => {} } = options;
  const old = childrenOf.get(parent) ?? new Map<string, HTMLElement>();
  const now = new Map<string, HTMLElement>();
  let next = parent.firstChild;
  for (const item of items) {
    let key = keyOf(item);
    while (now.has(key)) key += " "; // Shortened names may be equal.
    const child = old.get(key) as E | undefined ?? create(item);
    old.delete(key);
    now.set(key, child);
    update(child, item);
    if (child === next) next = next.nextSibling;
    else parent.insertBefore(child, next);
  }
  while (next !== null) {
    const after: ChildNode | null = next.nextSibling;
    next.remove();
    next = after;
  }
  childrenOf.set(parent, now);
}

export function makeRow(...cells: readonly string[]): HTMLTableRowElement {
  const row = make("tr");
  row.append(...cells.map((className) => make("td", className)));
  return row;
}

/** A row with one cell, over all columns, that says why there are no others. */
export function makeEmptyRow(text: string, columns: number): HTMLTableRowElement {
  const row = make("tr");
  const cell = make("td", "empty", text);
  cell.colSpan = columns;
  row.append(cell);
  return row;
}

/** A space that keeps the height of a line without text. */
export const NO_TEXT = "\u00a0";

/** `12,000`. */
export function number(value: number): string {
  return value.toLocaleString("en");
}

/** `1 pod`, `2 pods`. */
export function plural(count: number, one: string, many: string): string {
  return `${number(count)} ${count === 1 ? one : many}`;
}

/** `now`, `3 s`, `2 min`. */
export function duration(ms: number): string {
  const s = Math.max(0, Math.round(ms / 1_000));
  if (s < 1) return "now";
  if (s < 60) return `${s} s`;
  if (s < 3_600) return `${Math.floor(s / 60)} min`;
  if (s < 86_400) return `${Math.floor(s / 3_600)} h`;
  return `${Math.floor(s / 86_400)} d`;
}

/** `just now`, `3 s ago`. */
export function ago(ms: number): string {
  const text = duration(ms);
  return text === "now" ? "just now" : `${text} ago`;
}

/** A text with its invisible characters escaped. */
export function visible(text: string): string {
  return text.replace(
    /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/gu,
    (c) => `\\u{${c.codePointAt(0)?.toString(16)}}`,
  );
}
