/** The tables of resources and namespaces, and the lists of nodes and indices. */

import type { IndexCounts, NodeCount, ResourceState } from "../dashboard_message.ts";
import {
  ago,
  byId,
  duration,
  keyed,
  make,
  makeEmptyRow,
  makeRow,
  NO_TEXT,
  number,
  plural,
  setClass,
  setText,
} from "./dom.ts";
import { commonReason, isShown, knows, type View } from "./view.ts";

/** The time after which a problem that is over is no longer shown. */
const OLD_PROBLEM_MS = 600_000;

const PHASES: Readonly<
  Record<Exclude<ResourceState["phase"], "backingOff">, string>
> = {
  idle: "not started",
  resuming: "resuming",
  listing: "listing",
  streaming: "listing",
  watching: "watching",
  stopped: "stopped",
};

export function phaseText(resource: ResourceState, { nowMs }: View): string {
  const { phase, progress, attempt, nextRetryTimeMs = 0 } = resource;
  if (phase === "backingOff") {
    const inMs = nextRetryTimeMs - nowMs;
    const failed = attempt > 0 ? ` · ${number(attempt)} failed` : "";
    return (inMs > 900 ? `retry in ${duration(inMs)}` : "retrying") + failed;
  }
  if (progress === undefined) return PHASES[phase];
  const { items, remaining } = progress;
  return `listing: ${number(items)}${remaining === undefined ? "" : ` of ${number(items + remaining)}`}`;
}

interface Problem {
  readonly isOver: boolean;
  readonly text: string;
}

function problemOf(resource: ResourceState, { state, nowMs }: View): Problem {
  const { lastError, attempt, quarantined: count } = resource;
  const quarantined = count > 0 ? `${plural(count, "invalid object", "invalid objects")} quarantined. ` : "";
  if (lastError === undefined) return { isOver: true, text: quarantined };
  const { code, message, timeMs } = lastError;
  // The summary has the common reason.
  if (attempt > 0) {
    return { isOver: false, text: quarantined + (message === commonReason(state) ? "" : message) };
  }
  // A server without streaming lists answers with an Invalid error, which is no problem.
  if (code === "Invalid" || nowMs - timeMs > OLD_PROBLEM_MS) {
    return { isOver: true, text: quarantined };
  }
  return { isOver: true, text: `${quarantined}Recovered; ${ago(nowMs - timeMs)}: ${message}` };
}

/** A row of the table: a resource, or its problem below. */
interface Row {
  readonly resource: ResourceState;
  readonly problem?: Problem;
}

export function showResources(view: View): void {
  const items = view.state.resources.flatMap((resource): Row[] => {
    const problem = problemOf(resource, view);
    return problem.text === "" ? [{ resource }] : [{ resource }, { resource, problem }];
  });
  keyed(byId("resources"), {
    items,
    keyOf: ({ resource, problem }) => `${problem === undefined ? "row" : "problem"}:${resource.name}`,
    create: ({ resource, problem }) => problem === undefined ? newRow(resource) : newProblemRow(),
    update: (row, { resource, problem }) =>
      problem === undefined ? updateRow(row, resource, view) : updateProblem(row, problem),
  });
}

function newProblemRow(): HTMLTableRowElement {
  const row = makeRow("");
  row.cells[0].colSpan = 7;
  return row;
}

function updateProblem(row: HTMLTableRowElement, { isOver, text }: Problem): void {
  setClass(row, isOver ? "problem over" : "problem");
  setText(row.cells[0], text);
  row.cells[0].title = text;
}

function newRow({ name, path }: ResourceState): HTMLTableRowElement {
  const row = makeRow("", "number", "", "number", "number", "number mono", "number");
  const link = make("a", "", name);
  if (path.startsWith("/api")) link.href = path;
  row.cells[0].append(link);
  const phase = make("span", "phase");
  phase.append(make("span", "dot"), make("span", "words"));
  row.cells[2].append(phase);
  return row;
}

function updateRow(row: HTMLTableRowElement, resource: ResourceState, view: View): void {
  const [, objects, phase, watches, lag, version, event] = row.cells;
  const { lagMs, lastEventTimeMs } = resource;
  setText(objects, isShown(resource) ? number(resource.objects) : "–");
  const chip = phase.children[0];
  setClass(chip, `phase ${resource.phase}`);
  setText(chip.children[1], phaseText(resource, view));
  setText(watches, number(resource.watches));
  // While this page is connected, the lag grows with the time since the message.
  setText(lag, lagMs === undefined ? "–" : duration(lagMs + view.ageMs));
  setText(version, resource.resourceVersion || "–");
  setText(event, lastEventTimeMs === undefined ? "–" : ago(view.nowMs - lastEventTimeMs));
}

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
  keyed(table, { items: [text], keyOf: () => "empty", create: () => makeEmptyRow(text, columns) });
}

export function showNodes({ state }: View): void {
  const { nodes } = state;
  const [list, note] = [byId("nodes"), byId("nodes-note")];
  if (nodes === undefined || nodes.rows.length === 0) {
    const text = nodes ? "No pods on nodes." : "Pods are not reflected: add them with --resource.";
    keyed(list, { items: [text], keyOf: () => `empty:${text}`, create: () => make("li", "empty", text) });
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
    notes.push(`Only the ${rows.length} nodes with the most pods are shown; ${fewer} fewer.`);
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
  setText(value, (isKnown ? number(pods) : "–") + (room ? ` of ${number(room)}` : ""));
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
    ...(others ? [{ name: `${number(others.namespaces)} more`, counts: others.counts, isOthers: true }] : []),
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
