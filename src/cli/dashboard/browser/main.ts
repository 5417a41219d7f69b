/** The script of the page: asks the server how it is doing, and shows what the URL's fragment names. */

import type { WindowSnapshot } from "../../../screens/mod.ts";
import type { DashboardState, ResourceState } from "../dashboard_message.ts";
import { byId, keyed, make, makeLink, setClass, setText } from "./dom.ts";
import { Finder } from "./finder.ts";
import { freshnessOf } from "./freshness.ts";
import { Home } from "./home.ts";
import { ObjectView } from "./object_view.ts";
import { isDenial, readJson, type View } from "./reading.ts";
import { isShown } from "./resources_card.ts";
import { parseRoute, type Route, tableLink } from "./route.ts";
import { TableView } from "./table_view.ts";
import { number, visible } from "./texts.ts";

const ASK_MS = 2_000;
const ANSWER_MS = 8_000;
/** A page that is not seen holds no connections after this time. */
const HIDDEN_MS = 30_000;
/** After this time without a second the page was suspended: its streams may be dead, and not say so. */
const SUSPENDED_MS = 4_000;
/** A view whose window was denied is opened again so often, while the server answers the page itself. */
const DENIED_MS = 5_000;

let state: DashboardState = JSON.parse(byId("state").textContent ?? "");
let arrivedMs = Date.now();
let isLost = false;
let isRefused = false;
/** When the view was opened again last, as the server had denied it. */
let againMs = 0;
let route: Route<ResourceState> | undefined;
/** Below 0 while the page is not seen, and holds none; a browser has six for all of its tabs. */
let hiding = document.hidden ? -1 : 0;
/** How many times another place of this page was opened: there is one to go back to. */
let steps = 0;

function viewOf(): View {
  const ageMs = Date.now() - arrivedMs;
  return { state, nowMs: state.nowMs + ageMs, ageMs, isLost, isRefused };
}

const onChange = () => showFreshness();
const home = new Home({ viewOf, onChange });
const table = new TableView({ viewOf, onChange });
const object = new ObjectView({ viewOf, onChange });
const finder = new Finder({ viewOf });
const views = { home, table, object };

async function ask(): Promise<void> {
  try {
    const signal = AbortSignal.timeout(ANSWER_MS);
    const names = state.resources.map(({ path }) => path).join();
    const wasLost = isLost;
    state = await readJson<DashboardState>("/dashboard/state", { signal, cache: "no-store" });
    arrivedMs = Date.now();
    isLost = false;
    // What was refused, as the token had expired, may be allowed again; a window does not ask by itself. It
    // may have been renewed before the page itself was refused.
    const { state: windowState, error } = shownWindow() ?? {};
    const isAllowed = windowState === "refused" &&
      (wasLost || isDenial(error) && arrivedMs - againMs > DENIED_MS);
    if (isAllowed) againMs = arrivedMs;
    if (isAllowed || names !== state.resources.map(({ path }) => path).join()) follow({ isForced: true });
  } catch (error) {
    isLost = true;
    isRefused = isDenial(error);
  }
  show();
  setTimeout(ask, ASK_MS);
}

function follow({ isForced = false } = {}): void {
  const next = parseRoute(location.hash, state.resources);
  if (route !== undefined && (isForced || route.view !== next.view)) views[route.view].close();
  // Another place of the tables keeps what is scrolled and focused; another object is another page.
  const isOther = route?.view !== next.view || next.view === "object" && !isForced;
  route = next;
  for (const name of ["home", "table", "object"] as const) byId(name).hidden = name !== next.view;
  setClass(document.body, `view-${next.view}`);
  if (next.view === "table") table.open(next);
  else if (next.view === "object") object.open(next);
  else if (isOther || isForced) home.open();
  if (hiding < 0) views[next.view].close();
  if (isOther) {
    scrollTo(0, 0);
    const { activeElement } = document;
    // A link has led here, or the focus is in the view before, which the keyboard does not reach any more.
    const isFree = activeElement === document.body || activeElement instanceof HTMLAnchorElement;
    if (isFree || byId("main").contains(activeElement)) focus();
  }
  show();
}

function focus(): void {
  if (route?.view === "table") table.focus();
  else if (route?.view === "object") object.focus();
}

function show(): void {
  const { name, server, version, readers } = state.cluster;
  setText(byId("cluster"), [name, server, version].filter(Boolean).join(" · "));
  setText(byId("readers"), readers ?? "");
  showResources();
  if (route !== undefined) views[route.view].tick();
  showFreshness();
}

/** The resource of the menu that was chosen last. */
let scrolledTo: string | undefined;

function showResources(): void {
  const chosen = route === undefined || route.view === "home" ? undefined : route.resource.name;
  keyed(byId("menu"), {
    items: [undefined, ...state.resources],
    keyOf: (resource) => resource?.path ?? "",
    create: (resource) => {
      const link = makeLink(resource === undefined ? "#" : tableLink(resource), "");
      link.append(make("span", "", resource?.name ?? "Overview"), make("b"));
      return make("li", "", link);
    },
    update: ({ children: [link] }, resource) => {
      const isChosen = chosen === resource?.name;
      if (isChosen) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
      setText(link.children[1], resource === undefined || !isShown(resource) ? "" : number(resource.objects));
    },
  });
  if (chosen === scrolledTo) return;
  scrolledTo = chosen;
  // Once all of them are there, or there is nothing to scroll.
  byId("menu").querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
}

function shownWindow(): WindowSnapshot<unknown> | undefined {
  return route && views[route.view].window?.getSnapshot();
}

function showFreshness(): void {
  if (route === undefined) return;
  const { resources } = state;
  const shown = route.view === "home"
    ? resources
    : resources.filter(({ path }) => route?.view !== "home" && path === route?.resource.path);
  const { level, text } = freshnessOf({
    ...viewOf(),
    resources: shown,
    window: shownWindow()?.state,
  });
  setClass(byId("badge"), `pill ${level}`);
  setText(byId("badge-text"), text);
  setClass(byId("main"), level === "live" || level === "loading" ? "" : "stale");
  const title = route.view === "home"
    ? ""
    : route.view === "table"
    ? route.resource.name
    : visible(route.name);
  document.title = [
    ...(level === "lost" ? [`(${text.split(" · ")[0].toLowerCase()})`] : []),
    title,
    "listwatch",
  ].filter(Boolean)
    .join(" ");
}

document.addEventListener("keydown", (event) => {
  const { key, ctrlKey, metaKey, altKey, target } = event;
  if (ctrlKey || metaKey || altKey || event.defaultPrevented) return;
  const isTyping = target instanceof HTMLElement &&
    (target.isContentEditable || /^(?:INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
  if (key === "/" && !isTyping) {
    event.preventDefault();
    finder.focus();
  } else if (key === "Escape") {
    if (isTyping) {
      target.blur();
      focus();
    } else if (route?.view === "object") {
      const { resource, namespace } = route;
      if (steps > 0) history.back();
      else location.hash = tableLink(resource, { namespace });
    } else if (route?.view === "table") {
      location.hash = route.search === "" ? "" : tableLink(route.resource, { ...route, search: "" });
    }
  }
});
document.addEventListener("visibilitychange", () => {
  clearTimeout(hiding);
  if (!document.hidden) {
    const wasClosed = hiding < 0;
    hiding = 0;
    if (wasClosed) follow({ isForced: true });
    return;
  }
  hiding = setTimeout(() => {
    if (route !== undefined) views[route.view].close();
    hiding = -1;
  }, HIDDEN_MS);
});
addEventListener("hashchange", () => {
  steps++;
  follow();
});
setText(byId("origin"), location.origin);
follow();
setTimeout(ask, ASK_MS);
let secondMs = Date.now();
setInterval(() => {
  const wasSuspended = Date.now() - secondMs > SUSPENDED_MS;
  secondMs = Date.now();
  if (wasSuspended && hiding >= 0) follow({ isForced: true });
  else show();
}, 1_000);
byId("main").classList.remove("waiting");
