/** What the parts of the page show; the sentence at its top, and the tiles. */

import { ago, byId, make, NO_TEXT, number, plural, setClass, setText } from "./dom.ts";
import { phaseText } from "./tables.ts";
import { commonReason, isShown, knows, type View } from "./view.ts";

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

export function showTiles(view: View): void {
  showObjects(view);
  showPods(view);
  showNodes(view);
  showRate(view.state.changesPerSecond.slice(0, -1)); // The last second is incomplete.
}

function showObjects({ state: { resources, namespaces } }: View): void {
  const objects = resources.reduce((sum, resource) => sum + resource.objects, 0);
  setText(byId("figure-objects"), resources.some(isShown) ? number(objects) : "–");
  const shown = (namespaces?.rows.length ?? 0) +
    (namespaces?.others?.namespaces ?? 0);
  setText(byId("detail-objects"), shown > 0 ? `in ${plural(shown, "namespace", "namespaces")}` : NO_TEXT);
}

function showPods(view: View): void {
  const { nodes, resources } = view.state;
  const [figure, detail] = [byId("figure-pods"), byId("detail-pods")];
  if (nodes === undefined || !knows(view.state, "pods")) {
    figure.dataset["text"] = "";
    setText(figure, "–");
    const pods = resources.find(({ name }) => name === "pods");
    return setText(detail, pods === undefined ? "not reflected" : phaseText(pods, view));
  }
  const of = nodes.pods === 0 ? "" : `of ${number(nodes.pods)}`;
  const text = `${number(nodes.ready)} ${of}`;
  if (figure.dataset["text"] !== text) {
    figure.dataset["text"] = text;
    figure.replaceChildren(`${number(nodes.ready)} `, make("small", "", of));
  }
  const rest = nodes.pods - nodes.ready;
  setText(detail, nodes.pods === 0 ? "none" : rest === 0 ? "all ready" : `${number(rest)} not ready`);
}

function showNodes({ state }: View): void {
  const { nodes, resources } = state;
  const [figure, detail] = [byId("figure-nodes"), byId("detail-nodes")];
  if (nodes === undefined || !knows(state, "nodes")) {
    setText(figure, "–");
    return setText(detail, resources.some(({ name }) => name === "nodes") ? NO_TEXT : "not reflected");
  }
  const closed = nodes.rows.filter((node) => node.closed).length;
  setText(figure, number(nodes.rows.length + nodes.others));
  setText(
    detail,
    nodes.rows.length === 0 ? "none" : closed === 0 ? "all schedulable" : `${number(closed)} cordoned`,
  );
}

function showRate(rates: readonly number[]): void {
  const mean = rates.slice(-10).reduce((sum, rate) => sum + rate, 0) / 10;
  setText(byId("figure-rate"), mean >= 100 ? number(Math.round(mean)) : mean.toFixed(1));
  const highest = Math.max(8, ...rates);
  const points = rates.map((rate, i) =>
    `${(i * 120 / (rates.length - 1)).toFixed(1)},${(26 - rate * 24 / highest).toFixed(1)}`
  );
  byId("spark-line").setAttribute("d", `M${points.join("L")}`);
  byId("spark-area").setAttribute("d", `M${points.join("L")}L120,28L0,28Z`);
}
