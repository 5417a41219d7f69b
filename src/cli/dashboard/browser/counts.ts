/**
 * The cards with counts: indices, pods per node, objects per namespace.
 * @module
 */

import type { IndexCounts, NodeCount } from "../dashboard_message.ts";
import { byId, keyed, make, makeEmptyRow, makeRow, setClass, setText } from "./dom.ts";
import { knows, type View } from "./view.ts";
import { NO_TEXT, number, plural } from "./words.ts";

/** Shows how many values indices have, and the one with the most objects. */
export function showIndices({ state: { indices } }: View): void {
  const table = byId("indices");
  if (indices.length === 0) return showEmpty(table, "No index has values.", 5);
  keyed(table, {
    items: indices,
    keyOf: ({ resource, index }) => `${resource} ${index}`,
    create: ({ resource, index }: IndexCounts) => {
      const row = makeRow("", "", "number", "", "number");
      setText(row.cells[0], resource);
      setText(row.cells[1], index);
      return row;
    },
    update: ({ cells }, { values, largest: { value, objects } }) => {
      setText(cells[2], number(values));
      setText(cells[3], value === "" ? "(empty)" : value);
      setText(cells[4], number(objects));
    },
  });
}

function showEmpty(table: Element, text: string, columns: number): void {
  keyed(table, {
    items: [text],
    keyOf: () => "empty",
    create: () => makeEmptyRow(text, columns),
  });
}

/** Shows the pods of each node. */
export function showNodes({ state }: View): void {
  const { nodes } = state;
  const [list, note] = [byId("nodes"), byId("nodes-note")];
  if (nodes === undefined || nodes.rows.length === 0) {
    const text = nodes ? "No pods on nodes." : "Pods are not reflected: add them with --resource.";
    keyed(list, {
      items: [text],
      keyOf: () => `empty:${text}`,
      create: () => make("li", "empty", text),
    });
    return setText(note, NO_TEXT);
  }
  const isKnown = knows(state, "pods");
  const most = Math.max(...nodes.rows.map(({ pods }) => pods), 1);
  keyed(list, {
    items: nodes.rows,
    keyOf: ({ name }) => `node:${name}`,
    create: newBar,
    update: (bar, node) => updateBar(bar, node, { most, isKnown }),
  });
  if (!isKnown) return setText(note, "Listing pods.");
  const { rows, others, pods, ready, unassigned } = nodes;
  const notes: string[] = [];
  if (others > 0) {
    const fewer = plural(others, "node has", "nodes have");
    notes.push(
      `Only the ${rows.length} nodes with the most pods are shown; ${fewer} fewer.`,
    );
  }
  const without = unassigned > 0 ? `, ${number(unassigned)} of them without a node` : "";
  notes.push(
    pods === ready
      ? "Every pod is ready."
      : `${plural(pods - ready, "pod is", "pods are")} not ready${without}.`,
  );
  setText(note, notes.join(" "));
}

function newBar({ name: node }: NodeCount): HTMLLIElement {
  const bar = make("li");
  const [name, track] = [make("span", "name"), make("span", "track")];
  name.append(make("span", "", node), make("span", "tag", "cordoned"));
  track.append(make("span", "ready"), make("span", "unready"));
  bar.append(name, make("span", "value"), track);
  return bar;
}

function updateBar(
  bar: HTMLLIElement,
  { pods, ready, room, closed = false }: NodeCount,
  { most, isKnown }: { readonly most: number; readonly isKnown: boolean },
): void {
  const [name, value, track] = bar.children;
  (name.children[1] as HTMLElement).hidden = !closed;
  const whole = room ? Math.max(room, pods) : most;
  setText(
    value,
    (isKnown ? number(pods) : "–") + (room ? ` of ${number(room)}` : ""),
  );
  const [readyPart, unreadyPart] = Array.from(track.children, (part) => (part as HTMLElement).style);
  readyPart.width = `${100 * ready / whole}%`;
  unreadyPart.width = `${100 * (pods - ready) / whole}%`;
}

/** Shows the objects of each namespace, in one column for each resource that has any. */
export function showNamespaces({ state: { namespaces } }: View): void {
  const { columns: all = [], rows: named = [], others } = namespaces ?? {};
  const rows: {
    readonly name: string;
    readonly counts: readonly number[];
    readonly isOthers?: boolean;
  }[] = [
    ...named,
    ...(others
      ? [{
        name: `${number(others.namespaces)} more`,
        counts: others.counts,
        isOthers: true,
      }]
      : []),
  ];
  const shown = Array.from(all.keys()).filter((i) => rows.some(({ counts }) => counts[i] > 0));
  const columns = shown.map((i) => all[i]);
  keyed(byId("namespaces-head"), {
    items: ["Namespace", ...columns],
    keyOf: (name) => name,
    create: (name) => {
      const cell = make("th", name === "Namespace" ? "" : "number", name.split(".")[0]);
      cell.scope = "col";
      cell.title = name;
      return cell;
    },
  });
  const table = byId("namespaces");
  if (rows.length === 0) {
    return showEmpty(table, "No namespaced objects.", columns.length + 1);
  }
  // Other columns need other rows.
  const shape = columns.join(",");
  keyed(table, {
    items: rows,
    keyOf: ({ name, isOthers }) => isOthers ? `${shape}:others` : `${shape}:row:${name}`,
    create: ({ isOthers }) => {
      const row = makeRow("", ...columns.map(() => "number"));
      if (isOthers) row.className = "others";
      columns.forEach((column, i) => (row.cells[i + 1].dataset["label"] = column.split(".")[0]));
      return row;
    },
    update: ({ cells }, { name, counts }) => {
      setText(cells[0], name);
      shown.forEach((column, i) => {
        const count = counts[column];
        setText(cells[i + 1], count === 0 ? "·" : number(count));
        setClass(cells[i + 1], count === 0 ? "number none" : "number");
      });
    },
  });
}
