/** The rows of a long table, of which only those that are seen are in the document. */

import { make, setClass, setLink } from "./dom.ts";
import type { Tone } from "./kinds.ts";

export interface RowCell {
  readonly text: string;
  readonly href?: string | undefined;
  readonly tone?: Tone | undefined;
}

export interface RowColumn<Row> {
  readonly name: string;
  readonly description: string;
  readonly isNumber: boolean;
  readonly isSortable: boolean;
  cellOf(row: Row): RowCell;
}

export interface RowsOptions<Row> {
  readonly onSort: (column: string) => void;
  /** The rows that are seen, from the first to behind the last one. */
  readonly onRange: (first: number, end: number) => void;
  readonly hrefOf: (row: Row) => string;
}

interface Place<Row> {
  readonly element: HTMLElement;
  readonly cells: readonly HTMLAnchorElement[];
  index: number;
  row: Row | undefined;
  version: number;
}

/** Browsers draw nothing that is further down. */
const MOST_HEIGHT = 12_000_000;
const MARGIN = 6;
/** Columns of longer texts become narrower, down to this, before rows scroll sideways. */
const WIDEST = 60;
const LEAST_WIDE = 22;
/** The first column stays where rows scroll sideways: on a narrow page it leaves room for others. */
const LEAST_FIRST = 36;
const LEAST_NARROW = 17;
const narrow = matchMedia("(max-width: 800px)");
/** Room for the padding of a cell and the arrow of an order, in characters. */
const PADDING = 3;

/** Whether rows have room for little more than names. */
export function isNarrow(): boolean {
  return narrow.matches;
}

/** A grid in a scrolling element: a header that stays, and rows of one height. */
export class Rows<Row> {
  readonly #scroller: HTMLElement;
  readonly #head: HTMLElement;
  readonly #body: HTMLElement;
  readonly #options: RowsOptions<Row>;
  #columns: readonly RowColumn<Row>[] = [];
  #widths: number[] = [];
  #rows: readonly Row[] = [];
  #offset = 0;
  #total = 0;
  /** The first row that is drawn. */
  #first = 0;
  /** The row that the keyboard is at. */
  #active = -1;
  /** Moves with the columns and the time: rows are written again. */
  #version = 0;
  #places: Place<Row>[] = [];
  #frame = 0;

  constructor(scroller: HTMLElement, options: RowsOptions<Row>) {
    this.#scroller = scroller;
    this.#options = options;
    this.#head = make("div", "grid-head");
    this.#head.setAttribute("role", "row");
    this.#body = make("div", "grid-body");
    this.#body.setAttribute("role", "rowgroup");
    scroller.replaceChildren(this.#head, this.#body);
    scroller.addEventListener("scroll", () => this.#draw(), { passive: true });
    scroller.addEventListener("keydown", (event) => this.#onKey(event));
    scroller.addEventListener("click", ({ target }) => {
      const place = this.#places.find(({ element }) => element.contains(target as Node));
      if (place !== undefined) this.#activate(place.index, { isSeen: true });
    });
    new ResizeObserver(() => this.#draw()).observe(scroller);
    narrow.addEventListener("change", () => this.#resize());
  }

  get capacity(): number {
    return Math.ceil(this.#height / this.#rowHeight);
  }

  /** The scrolled place, to come back there. */
  get place(): {
    readonly top: number;
    readonly first: number;
    readonly active: number;
    readonly total: number;
  } {
    return { top: this.#scroller.scrollTop, first: this.#first, active: this.#active, total: this.#total };
  }

  /** Begins anew: with no rows, at a place. */
  reset({ top, active, total }: Omit<typeof this.place, "first"> = { top: 0, active: -1, total: 0 }): void {
    this.#rows = [];
    this.#total = total;
    this.#active = active;
    this.#widths = [];
    this.#drawNow();
    this.#scroller.scrollTop = top;
    this.#draw();
  }

  show(
    { columns, rows, offset, total, sort }: {
      readonly columns: readonly RowColumn<Row>[];
      readonly rows: readonly Row[];
      readonly offset: number;
      readonly total: number;
      readonly sort: { readonly column: string; readonly isDescending: boolean };
    },
  ): void {
    const isSame =
      columns.map(({ name }) => name).join("\n") === this.#columns.map(({ name }) => name).join("\n");
    this.#columns = columns;
    if (!isSame) {
      this.#widths = [];
      for (const { element } of this.#places) element.remove();
      this.#places = [];
    }
    if (!isSame || this.#head.childElementCount === 0) this.#makeHead();
    this.#markSort(sort);
    this.#rows = rows;
    this.#offset = offset;
    this.#total = total;
    if (this.#active >= total) this.#active = total - 1;
    this.#scroller.setAttribute("aria-rowcount", String(total + 1));
    this.#measure();
    this.#draw();
  }

  /** Writes all rows again, as ages have changed. */
  renew(): void {
    this.#version++;
    this.#draw();
  }

  get #height(): number {
    return Math.max(0, this.#scroller.clientHeight - this.#head.offsetHeight);
  }

  get #rowHeight(): number {
    return matchMedia("(pointer: coarse)").matches ? 44 : 34;
  }

  #makeHead(): void {
    this.#head.replaceChildren(...this.#columns.map(({ name, description, isNumber, isSortable }) => {
      const cell = make("div", isNumber ? "number" : "");
      cell.setAttribute("role", "columnheader");
      if (!isSortable) {
        cell.title = description;
        cell.append(make("span", "", name));
        return cell;
      }
      const button = make("button", "", name);
      button.type = "button";
      button.title = description;
      button.addEventListener("click", () => this.#options.onSort(name));
      cell.append(button);
      return cell;
    }));
  }

  #markSort({ column, isDescending }: { readonly column: string; readonly isDescending: boolean }): void {
    this.#columns.forEach(({ name }, i) => {
      const cell = this.#head.children[i];
      if (name !== column) cell.removeAttribute("aria-sort");
      else cell.setAttribute("aria-sort", isDescending ? "descending" : "ascending");
    });
  }

  /** Columns are as wide as the widest text that was seen, and never become narrower. */
  #measure(): void {
    const widths = this.#columns.map(({ name }, i) => Math.max(this.#widths[i] ?? 0, name.length));
    for (const row of this.#rows) {
      this.#columns.forEach((column, i) => {
        if (widths[i] < WIDEST) {
          widths[i] = Math.max(widths[i], Math.min(WIDEST, column.cellOf(row).text.length));
        }
      });
    }
    if (widths.every((width, i) => width === this.#widths[i])) return;
    this.#widths = widths;
    this.#resize();
  }

  #resize(): void {
    const least = this.#widths.map((width, i) =>
      Math.min(width, isNarrow() ? LEAST_NARROW : i === 0 ? LEAST_FIRST : LEAST_WIDE) + PADDING
    );
    const tracks = this.#widths.map((width, i) => {
      const most = isNarrow() && i === 0 ? least[i] : width + PADDING;
      return `minmax(${least[i]}ch, ${most}fr)`;
    });
    this.#scroller.style.setProperty("--columns", tracks.join(" "));
    this.#scroller.style.setProperty("--least", `${least.reduce((sum, width) => sum + width, 0)}ch`);
  }

  #draw(): void {
    this.#frame ||= requestAnimationFrame(() => this.#drawNow());
  }

  #drawNow(): void {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    const rowHeight = this.#rowHeight;
    const whole = this.#total * rowHeight;
    const height = Math.min(whole, MOST_HEIGHT);
    this.#body.style.height = `${height}px`;
    this.#scroller.style.setProperty("--row", `${rowHeight}px`);
    const top = Math.max(0, Math.min(this.#scroller.scrollTop, height - this.#height));
    // Beyond the greatest height, a part of the way is the same part of the rows.
    const exact = whole <= MOST_HEIGHT
      ? top / rowHeight
      : top / (height - this.#height) * (this.#total - this.#height / rowHeight);
    const first = this.#first = Math.max(0, Math.floor(exact) - MARGIN);
    const end = Math.min(this.#total, Math.ceil(exact + this.capacity) + MARGIN);
    this.#reserve(Math.max(end - first, 0));
    for (const place of this.#places) place.element.hidden = true;
    for (let index = first; index < end; index++) {
      const place = this.#places[index % this.#places.length];
      const y = Math.round(top + (index - exact) * rowHeight);
      place.element.hidden = false;
      place.element.style.transform = `translateY(${y}px)`;
      this.#write(place, index);
    }
    const active = this.#places.find(({ index, element }) => index === this.#active && !element.hidden);
    if (active === undefined) this.#scroller.removeAttribute("aria-activedescendant");
    else this.#scroller.setAttribute("aria-activedescendant", active.element.id);
    if (this.#total > 0) this.#options.onRange(Math.max(0, Math.floor(exact)), end);
  }

  #reserve(count: number): void {
    while (this.#places.length < count) {
      const element = make("div", "grid-row");
      element.id = `row-${this.#places.length}`;
      element.setAttribute("role", "row");
      const cells = this.#columns.map(({ isNumber }) => {
        const cell = make("div", isNumber ? "number" : "");
        cell.setAttribute("role", "gridcell");
        const link = make("a");
        link.tabIndex = -1;
        cell.append(link);
        element.append(cell);
        return link;
      });
      this.#body.append(element);
      this.#places.push({ element, cells, index: -1, row: undefined, version: -1 });
    }
  }

  #write(place: Place<Row>, index: number): void {
    const row = this.#rows[index - this.#offset];
    const { element, cells } = place;
    setClass(
      element,
      `grid-row${row === undefined ? " waiting" : ""}${index === this.#active ? " active" : ""}`,
    );
    if (place.index === index && place.row === row && place.version === this.#version) return;
    const isUpdate = place.index === index && place.row !== undefined && row !== undefined &&
      place.row !== row;
    Object.assign(place, { index, row, version: this.#version });
    element.setAttribute("aria-rowindex", String(index + 2));
    this.#columns.forEach((column, i) => {
      const { text, href, tone } = row === undefined ? EMPTY : column.cellOf(row);
      if (isUpdate && cells[i].textContent !== text) flash(cells[i]);
      setLink(cells[i], href, text);
      cells[i].title = text;
      setClass(cells[i], tone === undefined || tone === "plain" ? "" : `tone ${tone}`);
    });
  }

  #onKey(event: KeyboardEvent): void {
    const { key, ctrlKey, metaKey, altKey } = event;
    if (event.target !== this.#scroller || ctrlKey || metaKey || altKey || this.#total === 0) return;
    const page = Math.max(1, this.capacity - 2);
    const steps: Readonly<Record<string, number>> = {
      ArrowDown: this.#active + 1,
      ArrowUp: this.#active - 1,
      PageDown: this.#active + page,
      PageUp: this.#active - page,
      Home: 0,
      End: this.#total - 1,
    };
    if (Object.hasOwn(steps, key)) {
      event.preventDefault();
      this.#activate(Math.max(0, Math.min(this.#total - 1, steps[key])), { isSeen: false });
    } else if (key === "Enter") {
      const row = this.#rows[this.#active - this.#offset];
      if (row === undefined) return;
      event.preventDefault();
      location.hash = this.#options.hrefOf(row);
    }
  }

  #activate(index: number, { isSeen }: { readonly isSeen: boolean }): void {
    this.#active = index;
    if (!isSeen) this.#scrollTo(index);
    this.#drawNow();
  }

  #scrollTo(index: number): void {
    const rowHeight = this.#rowHeight;
    if (this.#total * rowHeight > MOST_HEIGHT) {
      const part = index / Math.max(1, this.#total - 1);
      this.#scroller.scrollTop = part * (MOST_HEIGHT - this.#height);
      return;
    }
    const top = index * rowHeight;
    if (top < this.#scroller.scrollTop) this.#scroller.scrollTop = top;
    else if (top + rowHeight > this.#scroller.scrollTop + this.#height) {
      this.#scroller.scrollTop = top + rowHeight - this.#height;
    }
  }
}

const EMPTY: RowCell = { text: "" };

/** Shows for a moment that a text has changed. */
function flash(element: HTMLElement): void {
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  element.animate([{ backgroundColor: "var(--flash)" }, { backgroundColor: "transparent" }], 900);
}
