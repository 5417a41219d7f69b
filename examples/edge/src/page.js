/**
 * The page: fifty pods in the order of any column, kept up to date by a window.
 *
 * @module
 */

import { openWindow } from "@listwatch/cache/screens";

const LIMIT = 50;
const [form, output, head, body] = ["form", "output", "thead", "tbody"].map((name) =>
  document.querySelector(name)
);
let pods;
let order = { column: "Name", isDescending: false };

form.addEventListener("submit", (event) => {
  event.preventDefault();
  open(form.elements.namespace.value, form.elements.token.value);
});
form.elements.filter.addEventListener(
  "input",
  ({ target }) => pods?.show({ filter: filterOf(target.value) }),
);
// For a look at it without typing: #namespace=default&token=...
const given = new URLSearchParams(location.hash.slice(1));
if (given.has("token")) open(given.get("namespace") ?? "default", given.get("token"));

function open(namespace, token) {
  pods?.close();
  pods = openWindow({
    url: `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods`,
    sortBy: sortBy(),
    limit: LIMIT,
    table: true,
    fetch: (request) => {
      request.headers.set("Authorization", `Bearer ${token}`);
      return fetch(request);
    },
  });
  pods.subscribe(show);
}

function sortBy() {
  return `column(${JSON.stringify(order.column)})${order.isDescending ? ":desc" : ""}`;
}

function filterOf(text) {
  return text === "" ? undefined : `metadata.name~${JSON.stringify(text)}`;
}

function show() {
  const { state, rows, columns, total, error } = pods.getSnapshot();
  output.textContent = `${state}, ${rows.length} of ${total} pods${error ? `: ${error.message}` : ""}`;
  const shown = columns.flatMap(({ name, priority }, i) => priority === 0 ? [{ name, i }] : []);
  head.replaceChildren(line("th", shown.map(({ name }) => button(name))));
  body.replaceChildren(...rows.map(({ cells }) => line("td", shown.map(({ i }) => String(cells[i] ?? "")))));
}

function button(name) {
  const sorted = order.column === name ? order.isDescending ? " ↓" : " ↑" : "";
  const element = Object.assign(document.createElement("button"), { textContent: name + sorted });
  element.onclick = () => {
    order = { column: name, isDescending: order.column === name && !order.isDescending };
    pods.show({ sortBy: sortBy() });
  };
  return element;
}

function line(tag, contents) {
  const row = document.createElement("tr");
  for (const content of contents) {
    const cell = document.createElement(tag);
    cell.append(content);
    row.append(cell);
  }
  return row;
}
