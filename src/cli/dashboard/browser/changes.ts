/** The feed of changes. */

import type { DashboardMessage, FeedEntry } from "../dashboard_message.ts";
import { byId, duration, make, setText } from "./dom.ts";
import { objectPath } from "./object_path.ts";

const MAX_LINES = 100;

let lastSeq = 0;

/** Forgets the lines of a server that was started again. */
export function clearChanges(): void {
  lastSeq = 0;
  byId("changes").replaceChildren();
}

export function addChanges(state: DashboardMessage, { isFirst }: { readonly isFirst: boolean }): void {
  const list = byId("changes");
  if (lastSeq === 0 && state.changes.length === 0 && list.firstChild === null) {
    list.append(make("li", "empty", "No changes yet."));
  }
  for (const change of state.changes) {
    if (change.seq <= lastSeq) continue;
    if (lastSeq === 0) list.replaceChildren();
    lastSeq = change.seq;
    list.prepend(lineOf(change, state, isFirst));
  }
  while (list.childNodes.length > MAX_LINES) list.lastChild?.remove();
}

function lineOf(change: FeedEntry, state: DashboardMessage, isFirst: boolean): HTMLLIElement {
  const { type, resource, key, note, timeMs } = change;
  const line = make("li", isFirst ? "" : "new");
  const what = make("span", "what");
  const how = resource + (note === undefined ? "" : ` · ${note}`);
  what.append(keyOf(change, state), make("span", "how", how));
  what.title = `${key}\n${how}`;
  const time = make("time");
  time.dateTime = new Date(timeMs).toISOString();
  time.dataset["ms"] = String(timeMs);
  line.append(make("span", `verb ${type}`, type), what, time);
  return line;
}

/** The key of an object, as a link to it while it is there. */
function keyOf({ type, resource, key }: FeedEntry, { resources }: DashboardMessage): HTMLElement {
  const isThere = type === "added" || type === "updated";
  const list = isThere ? resources.find(({ name }) => name === resource) : undefined;
  // A key that was shortened or escaped names no object.
  if (list === undefined || !/^[\w.:/-]+$/.test(key)) {
    return make("span", "key", key);
  }
  const [namespace, name] = key.includes("/") ? key.split("/") : [undefined, key];
  const link = make("a", "key", key);
  link.href = `#${objectPath({ path: list.path, namespace, name })}`;
  return link;
}

export function showAges(nowMs: number): void {
  for (const time of byId("changes").getElementsByTagName("time")) {
    setText(time, duration(nowMs - Number(time.dataset["ms"])));
  }
}
