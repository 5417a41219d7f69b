/**
 * The table of resources.
 * @module
 */

import type { ResourceState } from "../dashboard_message.ts";
import { byId, keyed, make, makeRow, setClass, setText } from "./dom.ts";
import { commonReason, isShown, type View } from "./view.ts";
import { ago, duration, number, plural } from "./words.ts";

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

/** What the reflector of a resource is doing. */
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

/** The last problem of a resource. */
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
    return {
      isOver: false,
      text: quarantined + (message === commonReason(state) ? "" : message),
    };
  }
  // A server without streaming lists answers with an Invalid error, which is no problem.
  if (code === "Invalid" || nowMs - timeMs > OLD_PROBLEM_MS) {
    return { isOver: true, text: quarantined };
  }
  return {
    isOver: true,
    text: `${quarantined}Recovered; ${ago(nowMs - timeMs)}: ${message}`,
  };
}

/** A row of the table: a resource, or its problem below. */
interface Row {
  readonly resource: ResourceState;
  readonly problem?: Problem;
}

/** Shows the table. */
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
