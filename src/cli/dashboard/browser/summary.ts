/**
 * The sentence at the top of the page.
 * @module
 */

import { byId, setClass, setText } from "./dom.ts";
import { commonReason, isShown, type View } from "./view.ts";
import { ago } from "./words.ts";

/** Shows whether the state can be trusted, and why not. */
export function showSummary(view: View): void {
  const { resources, cluster: { namespace } } = view.state;
  const isFailing = resources.some(({ attempt }) => attempt > 0);
  const isRestored = resources.some(({ restored }) => restored !== undefined);
  const only = namespace !== undefined && !view.isLost ? ` Only namespace ${namespace} is reflected.` : "";
  setText(byId("summary"), summaryOf(view) + only);
  setClass(byId("summary"), view.isLost || isFailing || isRestored ? "summary trouble" : "summary");
}

function summaryOf({ state, nowMs, ageMs, isLost }: View): string {
  if (isLost) {
    return `This is the state of ${ago(ageMs)}. The page reconnects automatically.`;
  }
  const { resources } = state;
  const failing = resources.filter(({ attempt }) => attempt > 0);
  const waiting = resources.filter((resource) => !isShown(resource));
  const saved = resources.flatMap(({ restored }) => restored === undefined ? [] : [restored.savedAtMs]);
  const snapshot = saved.length === 0 ? "" : `a snapshot of ${ago(nowMs - Math.min(...saved))}`;
  if (failing.length > 0) {
    const which = failing.length === resources.length
      ? "No resource can"
      : failing.length === 1
      ? `${failing[0].name} cannot`
      : `${failing.length} of ${resources.length} resources cannot`;
    const reason = commonReason(state);
    const next = waiting.length > 0
      ? "Retrying."
      : snapshot !== ""
      ? `Stale: ${snapshot} is shown.`
      : "The last known state is shown.";
    return `${which} be read at present${reason === "" ? "" : `: ${reason}`}. ${next}`;
  }
  if (snapshot !== "") {
    return `Stale: ${snapshot} is shown until the server confirms it.`;
  }
  if (waiting.length > 0) {
    const listed = resources.length - waiting.length;
    return `Syncing: ${listed} of ${resources.length} resources have their first list.`;
  }
  const all = resources.length === 1 ? "The resource is" : `All ${resources.length} resources are`;
  return `${all} up to date with the server.`;
}
