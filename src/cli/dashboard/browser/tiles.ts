/**
 * The four tiles: objects, pods, nodes, changes.
 * @module
 */

import { byId, make, setText } from "./dom.ts";
import { phaseText } from "./resources.ts";
import { isShown, knows, type View } from "./view.ts";
import { NO_TEXT, number, plural } from "./words.ts";

/** Shows the tiles. */
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
  setText(
    byId("detail-objects"),
    shown > 0 ? `in ${plural(shown, "namespace", "namespaces")}` : NO_TEXT,
  );
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
  setText(
    detail,
    nodes.pods === 0 ? "none" : rest === 0 ? "all ready" : `${number(rest)} not ready`,
  );
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
