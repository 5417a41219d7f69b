/** The dialog with an object as YAML, and again after each of its changes. */

import { byId, make, visible } from "./dom.ts";
import { objectOfPath, pathOfFragment } from "./object_path.ts";

const RETRY_MS = 2_000;
/** Longer texts are shown without colors. */
const MAX_MARKED_LINES = 5_000;

const dialog = byId<HTMLDialogElement>("object");
const pre = byId("object-text");
const withManagedFields = byId<HTMLInputElement>("object-managed");

let viewing = new AbortController();
let text = "";
let path = "";
/** What is shown, if it is of `path`. */
let shown:
  | { readonly path: string; readonly lines: ReadonlySet<string> }
  | undefined;

export function isObjectOpen(): boolean {
  return dialog.open;
}

export function startObjectView({ onClose }: { readonly onClose: () => void }): void {
  withManagedFields.addEventListener("change", () => showText(text));
  byId("object-close").addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close(); // The backdrop.
  });
  dialog.addEventListener("close", () => {
    viewing.abort();
    // Without a jump to the top, and without an entry in the history.
    if (location.hash !== "") {
      history.replaceState(undefined, "", location.pathname + location.search);
    }
    onClose();
  });
  addEventListener("hashchange", follow);
  follow();
}

function follow(): void {
  viewing.abort();
  path = pathOfFragment(location.hash);
  if (path === "") {
    if (dialog.open) dialog.close();
    return;
  }
  viewing = new AbortController();
  const { name, resource, namespace } = objectOfPath(path);
  byId("object-name").textContent = visible(name);
  byId("object-where").textContent = visible(resource) +
    (namespace === undefined ? "" : ` in ${visible(namespace)}`);
  byId<HTMLAnchorElement>("object-json").href = path;
  showText("");
  setState("waiting", "Loading");
  if (!dialog.open) dialog.showModal();
  pre.focus();
  view(name, viewing.signal);
}

async function view(name: string, signal: AbortSignal): Promise<void> {
  const object = path;
  const selector = encodeURIComponent(`metadata.name=${name}`);
  const url = `${object.slice(0, object.lastIndexOf("/"))}?watch=true&fieldSelector=${selector}`;
  while (!signal.aborted) {
    try {
      await refresh(object, signal);
      const { ok, status, body } = await fetch(url, { signal });
      if (!ok || body === null) {
        throw new Error(`The server answered ${status}.`);
      }
      // The first event is the present state.
      for await (const line of linesOf(body)) {
        if (line !== "") await refresh(object, signal);
      }
    } catch (error) {
      if (signal.aborted) return;
      const reason = error instanceof Error ? error.message : String(error);
      setState("lost", text === "" ? reason : "Connection lost");
    }
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}

/** The last line of each chunk: the latest state is read, once for all events of a chunk. */
async function* linesOf(body: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<string> {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop() ?? "";
    const last = lines.at(-1);
    if (last !== undefined) yield last;
  }
}

async function refresh(object: string, signal: AbortSignal): Promise<void> {
  const response = await fetch(object, {
    signal,
    headers: { Accept: "application/yaml, application/json;q=0.5" },
    cache: "no-store",
  });
  const body = await response.text();
  if (response.status === 404) return setState("deleted", text === "" ? "It does not exist" : "Deleted");
  if (!response.ok) throw new Error(`The server answered ${response.status}.`);
  const isYaml = (response.headers.get("Content-Type") ?? "").includes("yaml");
  showText(isYaml ? body : JSON.stringify(JSON.parse(body), undefined, 2));
  setState("live", "Live");
}

function setState(className: string, words: string): void {
  byId("object-state").className = `pill ${className}`;
  byId("object-state-text").textContent = words;
}

/** Shows YAML with its keys colored, and the lines marked that the text before did not have. */
function showText(next: string): void {
  text = next;
  const all = text.trimEnd().split("\n");
  const lines = withManagedFields.checked ? all : withoutManagedFields(all);
  const before = shown?.path === path ? shown.lines : undefined;
  shown = undefined;
  if (lines.length > MAX_MARKED_LINES) {
    return pre.replaceChildren(lines.join("\n"));
  }
  pre.replaceChildren(...lines.map((line) => {
    const row = make("span", before === undefined || before.has(line) ? "line" : "line changed");
    const [start, end] = keyIn(line);
    row.append(visible(line.slice(0, start)), make("span", "yaml-key", line.slice(start, end)));
    row.append(visible(line.slice(end)), "\n");
    return row;
  }));
  if (text !== "") shown = { path, lines: new Set(lines) };
}

/** Where a line of YAML has its key, with the colon; nowhere if it has none. */
function keyIn(line: string): [start: number, end: number] {
  const start = /^[ -]*/.exec(line)?.[0].length ?? 0;
  const colon = line.indexOf(":", start);
  const isKey = /^"?[\w./-]+"?$/.test(line.slice(start, colon)) && /^(?: |$)/.test(line.slice(colon + 1));
  return colon >= 0 && isKey ? [start, colon + 1] : [0, 0];
}

/** The lines without managedFields, if they are YAML as the read API writes it. */
function withoutManagedFields(lines: readonly string[]): readonly string[] {
  const begin = lines.indexOf("  managedFields:");
  if (begin < 0) return lines;
  const length = lines.slice(begin + 1).findIndex((line) => !/^ {2}(?:- | )/.test(line));
  return [...lines.slice(0, begin), ...(length < 0 ? [] : lines.slice(begin + 1 + length))];
}
