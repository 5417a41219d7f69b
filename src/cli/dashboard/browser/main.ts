/** The script of the page: shows the state in the document, then every state that the server sends. */

import type { DashboardMessage } from "../dashboard_message.ts";
import { addChanges, clearChanges, showAges } from "./changes.ts";
import { showIndices, showNamespaces, showNodes, showResources } from "./tables.ts";
import { byId, setClass, setText } from "./dom.ts";
import { leaveFinder, startFinder } from "./finder.ts";
import { isObjectOpen, startObjectView } from "./object_view.ts";
import { showSummary, showTiles } from "./overview.ts";
import { SILENCE_MS, type View } from "./view.ts";

const RETRY_MS = 2_000;

let state: DashboardMessage = JSON.parse(byId("state").textContent ?? "");
let arrivedMs = Date.now();
let isLost = false;
let source: EventSource | undefined;

function view(): View {
  const ageMs = Date.now() - arrivedMs;
  return { state, nowMs: state.nowMs + ageMs, ageMs, isLost };
}

function receive(message: DashboardMessage, { isFirst }: { readonly isFirst: boolean }): void {
  if (state.startedMs !== message.startedMs) clearChanges();
  state = message;
  arrivedMs = Date.now();
  const { name, server, version, readers } = message.cluster;
  setText(byId("cluster"), [name, server, version].filter(Boolean).join(" · "));
  setText(byId("readers"), readers ?? "");
  addChanges(message, { isFirst });
  show();
}

function show(): void {
  const now = view();
  showSummary(now);
  showTiles(now);
  showResources(now);
  showNodes(now);
  showNamespaces(now);
  showIndices(now);
  showAges(now.nowMs);
}

function setConnection(status: "live" | "lost"): void {
  isLost = status === "lost";
  setClass(byId("connection"), `pill ${status}`);
  setText(byId("connection-text"), isLost ? "Connection lost" : "Live");
  setClass(byId("main"), isLost ? "stale" : "");
  document.title = isLost ? "(connection lost) listwatch" : "listwatch";
  showSummary(view());
}

function connect(): void {
  source?.close();
  const mine = new EventSource("/dashboard/events");
  source = mine;
  mine.onmessage = ({ data }) => {
    receive(JSON.parse(data), { isFirst: false });
    setConnection("live");
  };
  mine.onerror = () => {
    setConnection("lost");
    // The browser reconnects by itself unless the server refused.
    if (mine.readyState !== EventSource.CLOSED || mine !== source) return;
    source = undefined;
    setTimeout(connect, RETRY_MS);
  };
}

setText(byId("origin"), location.origin);
receive(state, { isFirst: true });
setClass(byId("main"), "");
connect();
setInterval(() => {
  if (!isLost && Date.now() - arrivedMs > SILENCE_MS) {
    setConnection("lost");
    connect();
  }
  show();
}, 1_000);
startFinder({ isBlocked: isObjectOpen });
startObjectView({ onClose: leaveFinder });
