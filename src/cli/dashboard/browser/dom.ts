/** The elements of the page. Text of the server becomes text nodes, never markup. */

export function byId<E extends HTMLElement = HTMLElement>(id: string): E {
  const element = document.getElementById(id);
  if (element === null) throw new Error(`The page has no element ${id}`);
  return element as E;
}

export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  className?: string,
  ...content: readonly (string | Node)[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...content);
  return element;
}

/** Sets the text of an element. Only differences are written: selections and scroll positions stay. */
export function setText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

export function setClass(element: Element, className: string): void {
  if (element.className !== className) element.className = className;
}

const childrenOf = new WeakMap<Element, Map<string, HTMLElement>>();

/** Gives an element one child for each item, in their order; keeps those that it has for their keys. */
export function keyed<T, E extends HTMLElement>(
  parent: Element,
  { items, keyOf, create, update = () => {} }: {
    readonly items: readonly T[];
    readonly keyOf: (item: T) => string;
    readonly create: (item: T) => E;
    readonly update?: (element: E, item: T) => void;
  },
): void {
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

/** Makes a link, or a plain text that leads nowhere. */
export function makeLink(href: string | undefined, text: string, className?: string): HTMLAnchorElement {
  const link = make("a", className, text);
  if (href !== undefined) link.href = href;
  return link;
}

/** Makes a text a link, or a plain text again. Only differences are written. */
export function setLink(link: HTMLAnchorElement, href: string | undefined, text: string): void {
  setText(link, text);
  if (href === undefined) link.removeAttribute("href");
  else if (link.getAttribute("href") !== href) link.setAttribute("href", href);
}

export function makeRow(...cells: readonly string[]): HTMLTableRowElement {
  return make("tr", "", ...cells.map((className) => make("td", className)));
}
