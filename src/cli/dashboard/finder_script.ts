/**
 * The script of the page's search, and of the view of an object.
 * @module
 */

/**
 * Finds objects by names through `/dashboard/search`, and by labels through the read API. The object that the URL's
 * fragment names is shown as YAML, and again after each of its changes. All of it becomes text, never markup.
 */
export const FINDER_SCRIPT: string = String.raw`"use strict";
(() => {
  const DELAY_MS = 120;
  const RETRY_MS = 2000;
  const PAGE = 100;
  const MAX_FOUND = 200;
  const MAX_MARKED_LINES = 5000; // Longer texts are shown without colors.
  const METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";

  const byId = (id) => document.getElementById(id);
  const input = byId("search");
  const list = byId("results");
  const note = byId("results-note");
  const panel = byId("results-panel");
  const dialog = byId("object");

  function make(tag, className, text) {
    const element = document.createElement(tag);
    if (className) element.className = className;
    if (text !== undefined) element.textContent = text;
    return element;
  }
  function visible(text) {
    return text.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/gu, (c) => "\\u{" + c.codePointAt(0).toString(16) + "}");
  }

  // Search

  let search; // The AbortController of the running search.
  let timer;
  let selected = -1;

  function objectPath({ path, namespace, name }) {
    const slash = path.lastIndexOf("/");
    const scope = namespace ? "/namespaces/" + encodeURIComponent(namespace) : "";
    return path.slice(0, slash) + scope + path.slice(slash) + "/" + encodeURIComponent(name);
  }

  async function find(query) {
    if (search) search.abort();
    search = new AbortController();
    const { signal } = search;
    panel.setAttribute("aria-busy", "true");
    try {
      const found = await readJson("/dashboard/search?q=" + encodeURIComponent(query), { signal });
      if (found.byLabels) await findByLabels(found.byLabels, signal);
      else showFound(found.objects, found.total, "");
    } catch (error) {
      if (!signal.aborted) showFound([], 0, error.message);
    }
    if (!signal.aborted) panel.setAttribute("aria-busy", "false");
  }

  async function findByLabels({ labelSelector, lists }, signal) {
    const objects = [];
    let isWhole = true;
    let failure = "";
    for (const { resource, path, words } of lists) {
      if (objects.length >= MAX_FOUND) isWhole = false;
      if (objects.length >= MAX_FOUND) break;
      const url = path + "?limit=" + PAGE + "&labelSelector=" + encodeURIComponent(labelSelector);
      try {
        const { items, metadata } = await readJson(url, { signal, headers: { Accept: METADATA_LIST } });
        if (metadata.continue) isWhole = false;
        for (const { metadata: { namespace, name } } of items) {
          const key = (namespace || "") + "/" + name;
          if (words.every((word) => key.includes(word))) objects.push({ resource, path, namespace, name });
        }
      } catch (error) {
        if (signal.aborted) throw error;
        failure = error.message;
      }
    }
    showFound(objects, objects.length, objects.length === 0 ? failure : isWhole ? "" : "Only the first objects of each resource are shown.");
  }

  async function readJson(url, options) {
    const response = await fetch(url, options);
    if (response.ok) return await response.json();
    const text = await response.text();
    let message = text;
    try {
      message = JSON.parse(text).message || text;
    } catch {
      // It is text for people.
    }
    throw new Error(message.slice(0, 300) || "The server answered " + response.status + ".");
  }

  function showFound(objects, total, text) {
    list.replaceChildren(...objects.map((object, i) => {
      const row = make("li");
      row.id = "result-" + i;
      row.setAttribute("role", "option");
      const link = make("a");
      link.href = "#" + objectPath(object);
      link.tabIndex = -1;
      const name = make("span", "key");
      if (object.namespace) name.append(make("span", "muted", visible(object.namespace) + " / "));
      name.append(visible(object.name));
      link.append(name, make("span", "what muted", object.resource));
      row.append(link);
      return row;
    }));
    const more = total - objects.length;
    note.textContent = text || (total === 0 ? "Nothing found." : more > 0 ? more.toLocaleString("en") + " more. Add words to see fewer." : "");
    note.hidden = note.textContent === "";
    select(objects.length > 0 ? 0 : -1);
    open(true);
  }

  function open(isOpen) {
    panel.hidden = !isOpen;
    input.setAttribute("aria-expanded", String(isOpen));
    if (!isOpen) input.removeAttribute("aria-activedescendant");
  }

  function select(index) {
    if (list.children[selected]) list.children[selected].setAttribute("aria-selected", "false");
    selected = index;
    const row = list.children[index];
    if (!row) return input.removeAttribute("aria-activedescendant");
    row.setAttribute("aria-selected", "true");
    row.scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", row.id);
  }

  input.addEventListener("input", () => {
    clearTimeout(timer);
    const query = input.value.trim();
    if (query === "") {
      if (search) search.abort();
      return open(false);
    }
    timer = setTimeout(() => find(query), DELAY_MS);
  });
  input.addEventListener("focus", () => {
    if (input.value.trim() !== "") find(input.value.trim());
  });
  input.addEventListener("keydown", (event) => {
    const count = list.children.length;
    if (event.key === "Escape") {
      event.preventDefault();
      if (!panel.hidden) return open(false);
      input.value = "";
      input.blur();
    } else if (panel.hidden || count === 0) {
      return;
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      select((selected + (event.key === "ArrowDown" ? 1 : count - 1)) % count);
    } else if (event.key === "Enter") {
      event.preventDefault();
      list.children[selected].firstChild.click();
    }
  });
  list.addEventListener("click", () => open(false));
  document.addEventListener("pointerdown", ({ target }) => {
    if (!panel.hidden && !byId("finder").contains(target)) open(false);
  });
  document.addEventListener("keydown", (event) => {
    const { key, target, ctrlKey, metaKey, altKey } = event;
    if (key !== "/" || ctrlKey || metaKey || altKey || dialog.open || target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) return;
    event.preventDefault();
    input.focus();
    input.select();
  });

  // An object

  let viewing; // The AbortController of the object that is shown.
  let shownText = "";
  let shownPath = "";

  // The path in the fragment, if it is one of an object of the read API.
  function pathOfFragment() {
    const path = location.hash.slice(1);
    return /^\/apis?\/[^?#\s]+\/[^?#\s]+$/.test(path) && !/(^|\/)\.{1,2}(\/|$)/.test(path) ? path : "";
  }

  function follow() {
    if (viewing) viewing.abort();
    const path = pathOfFragment();
    if (path === "") {
      if (dialog.open) dialog.close();
      return;
    }
    viewing = new AbortController();
    const segments = path.split("/").map(decoded);
    const isNamespaced = segments.at(-4) === "namespaces";
    byId("object-name").textContent = visible(segments.at(-1));
    byId("object-where").textContent = visible(segments.at(-2)) + (isNamespaced ? " in " + visible(segments.at(-3)) : "");
    byId("object-json").href = path;
    shownPath = path;
    showText("");
    setState("waiting", "Loading");
    if (!dialog.open) dialog.showModal();
    byId("object-text").focus();
    view(path, segments, viewing.signal);
  }

  function decoded(segment) {
    try {
      return decodeURIComponent(segment);
    } catch {
      return segment;
    }
  }

  async function view(path, segments, signal) {
    const name = segments.at(-1);
    const url = path.slice(0, path.lastIndexOf("/")) + "?watch=true&fieldSelector=" + encodeURIComponent("metadata.name=" + name);
    while (!signal.aborted) {
      try {
        await refresh(path, signal);
        const response = await fetch(url, { signal });
        if (!response.ok) throw new Error("The server answered " + response.status + ".");
        // The first event is the present state.
        for await (const line of linesOf(response.body)) if (line) await refresh(path, signal);
      } catch (error) {
        if (signal.aborted) return;
        setState("lost", shownText === "" ? error.message : "Connection lost");
      }
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }

  async function* linesOf(body) {
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      // The latest state is read: one reading for all lines of a chunk.
      if (lines.length > 0) yield lines.at(-1);
    }
  }

  async function refresh(path, signal) {
    const response = await fetch(path, { signal, headers: { Accept: "application/yaml, application/json;q=0.5" }, cache: "no-store" });
    const text = await response.text();
    if (response.status === 404) return setState("deleted", shownText === "" ? "It does not exist" : "Deleted");
    if (!response.ok) throw new Error("The server answered " + response.status + ".");
    const isYaml = (response.headers.get("Content-Type") || "").includes("yaml");
    showText(isYaml ? text : JSON.stringify(JSON.parse(text), undefined, 2));
    setState("live", "Live");
  }

  function setState(className, text) {
    byId("object-state").className = "pill " + className;
    byId("object-state-text").textContent = text;
  }

  // The text without managedFields, if it is YAML as the read API writes it.
  function withoutManagedFields(text) {
    return text.replace(/^  managedFields:\n(?:  - .*\n|   .*\n)*/m, "");
  }

  function showText(text) {
    shownText = text;
    const pre = byId("object-text");
    const isAll = byId("object-managed").checked;
    const lines = (isAll ? text : withoutManagedFields(text)).trimEnd().split("\n");
    if (lines.length > MAX_MARKED_LINES) return pre.replaceChildren(lines.join("\n"));
    const old = pre.dataset.path === shownPath && pre.lines_ ? new Set(pre.lines_) : undefined;
    pre.replaceChildren(...lines.map((line) => {
      const row = make("span", old && !old.has(line) ? "line changed" : "line");
      const parts = /^(\s*(?:- )*)("?[\w.\/-]+"?:)(.*)$/.exec(line);
      if (parts) row.append(visible(parts[1]), make("span", "yaml-key", parts[2]), visible(parts[3]));
      else row.append(visible(line));
      row.append("\n");
      return row;
    }));
    pre.dataset.path = shownPath;
    pre.lines_ = text === "" ? undefined : lines;
  }

  byId("object-managed").addEventListener("change", () => showText(shownText));
  byId("object-close").addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close(); // The backdrop.
  });
  dialog.addEventListener("close", () => {
    if (viewing) viewing.abort();
    // Without a jump to the top, and without an entry in the history.
    if (location.hash !== "") history.replaceState(undefined, "", location.pathname + location.search);
    input.focus({ preventScroll: true });
    open(false);
  });
  addEventListener("hashchange", follow);
  follow();
})();
`;
