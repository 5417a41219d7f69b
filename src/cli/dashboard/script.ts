/**
 * The script of the page.
 * @module
 */

/**
 * Shows the state in the document, then every state that the server sends. Names become text, never markup.
 */
export const SCRIPT: string = String.raw`"use strict";
(() => {
  const SILENCE_MS = 12000; // The server sends a message at least every 5 s.
  const RETRY_MS = 2000;
  const MAX_LINES = 100;

  const byId = (id) => document.getElementById(id);
  const number = (value) => value.toLocaleString("en");
  let state;
  let clockOffsetMs = 0; // This clock minus the server's.
  let lastMessageMs = 0;
  let isLost = false;
  let lastSeq = 0;

  function make(tag, className, text) {
    const element = document.createElement(tag);
    if (className) element.className = className;
    if (text !== undefined) element.textContent = text;
    return element;
  }
  // Only differences are written, so that selections and scroll positions stay.
  function setText(element, text) {
    if (element.textContent !== text) element.textContent = text;
  }
  function setClass(element, className) {
    if (element.className !== className) element.className = className;
  }
  function plural(count, one, many) {
    return number(count) + " " + (count === 1 ? one : many);
  }

  // Makes one child for each item, and keeps the existing ones.
  function keyed(parent, items, keyOf, create, update) {
    const old = parent.children_ || new Map();
    const now = new Map();
    let next = parent.firstChild;
    for (const item of items) {
      let key = keyOf(item);
      while (now.has(key)) key += " "; // Shortened names may be equal.
      const child = old.get(key) || create(item);
      old.delete(key);
      now.set(key, child);
      update(child, item);
      if (child === next) next = next.nextSibling;
      else parent.insertBefore(child, next);
    }
    while (next) {
      const after = next.nextSibling;
      parent.removeChild(next);
      next = after;
    }
    parent.children_ = now;
  }

  function duration(ms) {
    const s = Math.max(0, Math.round(ms / 1000));
    if (s < 1) return "now";
    if (s < 60) return s + " s";
    if (s < 3600) return Math.floor(s / 60) + " min";
    if (s < 86400) return Math.floor(s / 3600) + " h";
    return Math.floor(s / 86400) + " d";
  }
  function age(timeMs) {
    return duration(Date.now() - clockOffsetMs - timeMs);
  }
  function since(timeMs) {
    const text = age(timeMs);
    return text === "now" ? "just now" : text + " ago";
  }

  // The summary and the tiles

  // The reason why resources cannot be read, if it is the same for all of them.
  function commonReason() {
    const reasons = new Set();
    for (const { attempt, lastError } of state.resources) if (attempt > 0 && lastError) reasons.add(lastError.message);
    return reasons.size === 1 ? [...reasons][0] : "";
  }

  // Whether there is content: of a list, or of a snapshot.
  function isShown(resource) {
    return resource.synced || resource.restored !== undefined;
  }

  function showSummary() {
    const failing = state.resources.filter((resource) => resource.attempt > 0);
    const waiting = state.resources.filter((resource) => !isShown(resource));
    const restored = state.resources.filter((resource) => resource.restored);
    const snapshot = restored.length === 0 ? "" : "a snapshot of " +
      since(Math.min(...restored.map((resource) => resource.restored.savedAtMs)));
    let text;
    if (isLost) {
      text = "This is the state of " + since(lastMessageMs - clockOffsetMs) + ". The page reconnects automatically.";
    } else if (failing.length > 0) {
      const isAll = failing.length === state.resources.length;
      const which = failing.length === 1 ? failing[0].name : failing.length + " of " + state.resources.length + " resources";
      const reason = commonReason();
      text = (isAll ? "No resource can" : which + " cannot") + " be read at present" + (reason ? ": " + reason : "") + ". " +
        (waiting.length > 0 ? "Retrying." : snapshot ? "Stale: " + snapshot + " is shown." : "The last known state is shown.");
    } else if (snapshot) {
      text = "Stale: " + snapshot + " is shown until the server confirms it.";
    } else if (waiting.length > 0) {
      text = "Syncing: " + (state.resources.length - waiting.length) + " of " + state.resources.length +
        " resources have their first list.";
    } else {
      text = (state.resources.length === 1 ? "The resource is" : "All " + state.resources.length + " resources are") +
        " up to date with the server.";
    }
    if (state.cluster.namespace && !isLost) text += " Only namespace " + state.cluster.namespace + " is reflected.";
    setText(byId("summary"), text);
    setClass(byId("summary"), isLost || failing.length > 0 || snapshot ? "summary trouble" : "summary");
  }

  function showTiles() {
    const synced = state.resources.filter(isShown);
    const objects = state.resources.reduce((sum, resource) => sum + resource.objects, 0);
    setText(byId("figure-objects"), synced.length > 0 ? number(objects) : "–");
    const { namespaces, nodes } = state;
    const inNamespaces = namespaces ? namespaces.rows.length + (namespaces.others ? namespaces.others.namespaces : 0) : 0;
    setText(byId("detail-objects"), inNamespaces > 0 ? "in " + plural(inNamespaces, "namespace", "namespaces") : "\u00a0");

    const knows = (name) => state.resources.some((resource) => resource.name === name && isShown(resource));
    const figure = byId("figure-pods");
    if (nodes && knows("pods")) {
      const text = number(nodes.ready) + " of " + number(nodes.pods);
      if (figure.dataset.text !== text) {
        figure.dataset.text = text;
        figure.replaceChildren(number(nodes.ready) + " ", make("small", "", nodes.pods === 0 ? "" : "of " + number(nodes.pods)));
      }
      const rest = nodes.pods - nodes.ready;
      setText(byId("detail-pods"), nodes.pods === 0 ? "none" : rest === 0 ? "all ready" : number(rest) + " not ready");
    } else {
      figure.dataset.text = "";
      setText(figure, "–");
      const pods = state.resources.find((resource) => resource.name === "pods");
      setText(byId("detail-pods"), pods ? phaseText(pods) : "not reflected");
    }
    if (nodes && knows("nodes")) {
      const closed = nodes.rows.filter((node) => node.closed).length;
      setText(byId("figure-nodes"), number(nodes.rows.length + nodes.others));
      setText(byId("detail-nodes"), nodes.rows.length === 0 ? "none" : closed === 0 ? "all schedulable" : number(closed) + " cordoned");
    } else {
      setText(byId("figure-nodes"), "–");
      setText(byId("detail-nodes"), state.resources.some((r) => r.name === "nodes") ? "\u00a0" : "not reflected");
    }

    const rates = state.changesPerSecond.slice(0, -1); // The last second is incomplete.
    const mean = rates.slice(-10).reduce((sum, rate) => sum + rate, 0) / 10;
    setText(byId("figure-rate"), mean >= 100 ? number(Math.round(mean)) : mean.toFixed(1));
    const highest = Math.max(8, ...rates);
    const points = rates.map((rate, i) => (i * 120 / (rates.length - 1)).toFixed(1) + "," + (26 - rate * 24 / highest).toFixed(1));
    byId("spark-line").setAttribute("d", "M" + points.join("L"));
    byId("spark-area").setAttribute("d", "M" + points.join("L") + "L120,28L0,28Z");
  }

  // Resources

  const PHASES = { idle: "not started", listing: "listing", streaming: "listing", watching: "watching", stopped: "stopped" };

  function phaseText(resource) {
    if (resource.phase === "backingOff") {
      const inMs = (resource.nextRetryTimeMs || 0) - (Date.now() - clockOffsetMs);
      const failed = resource.attempt > 0 ? " · " + number(resource.attempt) + " failed" : "";
      return (inMs > 900 ? "retry in " + duration(inMs) : "retrying") + failed;
    }
    const { progress } = resource;
    if (!progress) return PHASES[resource.phase] || resource.phase;
    const total = progress.remaining === undefined ? "" : " of " + number(progress.items + progress.remaining);
    return "listing: " + number(progress.items) + total;
  }

  // The last problem of a resource, and whether it is over.
  function problemOf(resource) {
    const error = resource.lastError;
    const quarantined = resource.quarantined > 0 ? plural(resource.quarantined, "invalid object", "invalid objects") + " quarantined. " : "";
    if (error && resource.attempt > 0) {
      // The summary has the common reason.
      return { isOver: false, text: quarantined + (error.message === commonReason() ? "" : error.message) };
    }
    // A server without streaming lists answers with an Invalid error, which is no problem.
    const isOld = !error || error.code === "Invalid" || Date.now() - clockOffsetMs - error.timeMs > 600000;
    return { isOver: true, text: isOld ? quarantined : quarantined + "Recovered; " + since(error.timeMs) + ": " + error.message };
  }

  function showResources() {
    const rows = [];
    for (const resource of state.resources) {
      rows.push({ key: "row:" + resource.name, resource });
      const problem = problemOf(resource);
      if (problem.text) rows.push({ key: "problem:" + resource.name, problem });
    }
    keyed(byId("resources"), rows, (item) => item.key, ({ resource, problem }) => {
      const row = make("tr", problem ? "problem" : "");
      if (problem) {
        row.append(make("td"));
        row.firstChild.colSpan = 7;
        return row;
      }
      const name = make("td");
      const link = make("a", "", resource.name);
      if (resource.path.startsWith("/api")) link.href = resource.path;
      name.append(link);
      const phase = make("td");
      const chip = make("span", "phase");
      chip.append(make("span", "dot"), make("span", "words"));
      phase.append(chip);
      row.append(name, make("td", "number"), phase, make("td", "number"), make("td", "number"), make("td", "number mono"), make("td", "number"));
      return row;
    }, (row, { resource, problem }) => {
      if (problem) {
        setClass(row, problem.isOver ? "problem over" : "problem");
        setText(row.firstChild, problem.text);
        row.firstChild.title = problem.text;
        return;
      }
      const [, objects, phase, watches, lag, version, event] = row.children;
      setText(objects, isShown(resource) ? number(resource.objects) : "–");
      setClass(phase.firstChild, "phase " + resource.phase);
      setText(phase.firstChild.lastChild, phaseText(resource));
      setText(watches, number(resource.watches));
      setText(lag, lagText(resource));
      setText(version, resource.resourceVersion || "–");
      setText(event, resource.lastEventTimeMs ? since(resource.lastEventTimeMs) : "–");
    });
  }

  // The time since the last news of the API server, while this page is connected.
  function lagText({ lagMs }) {
    return lagMs === undefined ? "–" : duration(lagMs + Date.now() - lastMessageMs);
  }

  // Indices

  function showIndices() {
    const rows = state.indices.map((item) => ({ ...item, key: item.resource + " " + item.index }));
    const empty = { key: "empty" };
    keyed(byId("indices"), rows.length > 0 ? rows : [empty], (item) => item.key, (item) => {
      const row = make("tr");
      if (item === empty) {
        const cell = make("td", "empty", "No index has values.");
        cell.colSpan = 5;
        row.append(cell);
      } else {
        row.append(make("td", "", item.resource), make("td", "", item.index), make("td", "number"), make("td"), make("td", "number"));
      }
      return row;
    }, (row, item) => {
      if (item === empty) return;
      setText(row.children[2], number(item.values));
      setText(row.children[3], item.largest.value === "" ? "(empty)" : item.largest.value);
      setText(row.children[4], number(item.largest.objects));
    });
  }

  // Nodes

  function showNodes() {
    const { nodes } = state;
    const list = byId("nodes");
    const note = byId("nodes-note");
    if (!nodes || nodes.rows.length === 0) {
      keyed(list, [nodes ? "No pods on nodes." : "Pods are not reflected: add them with --resource."], (text) => "empty:" + text,
        (text) => make("li", "empty", text), () => {});
      setText(note, "\u00a0");
      return;
    }
    const isKnown = state.resources.some((resource) => resource.name === "pods" && isShown(resource));
    const most = Math.max(...nodes.rows.map((node) => node.pods), 1);
    keyed(list, nodes.rows, (node) => "node:" + node.name, (node) => {
      const row = make("li");
      const name = make("span", "name");
      const track = make("span", "track");
      track.append(make("span", "ready"), make("span", "unready"));
      name.append(make("span", "", node.name), make("span", "tag", "cordoned"));
      row.append(name, make("span", "value"), track);
      return row;
    }, (row, node) => {
      const [name, value, track] = row.children;
      name.lastChild.hidden = !node.closed;
      const whole = node.room ? Math.max(node.room, node.pods) : most;
      setText(value, (isKnown ? number(node.pods) : "–") + (node.room ? " of " + number(node.room) : ""));
      track.children[0].style.width = (100 * node.ready / whole) + "%";
      track.children[1].style.width = (100 * (node.pods - node.ready) / whole) + "%";
    });
    if (!isKnown) return setText(note, "Listing pods.");
    const notes = [];
    if (nodes.others > 0) notes.push("Only the " + nodes.rows.length + " nodes with the most pods are shown; " + plural(nodes.others, "node has", "nodes have") + " fewer.");
    const rest = nodes.pods - nodes.ready;
    notes.push(rest === 0 ? "Every pod is ready." : plural(rest, "pod is", "pods are") + " not ready" + (nodes.unassigned > 0 ? ", " + number(nodes.unassigned) + " of them without a node." : "."));
    setText(note, notes.join(" "));
  }

  // Namespaces

  function showNamespaces() {
    const { namespaces } = state;
    const all = namespaces ? [...namespaces.rows, ...(namespaces.others ? [namespaces.others] : [])] : [];
    // Empty columns are not shown.
    const shown = (namespaces ? namespaces.columns : []).map((_, i) => i).filter((i) => all.some((row) => row.counts[i] > 0));
    const columns = shown.map((i) => namespaces.columns[i]);
    keyed(byId("namespaces-head"), ["Namespace", ...columns], (name) => name, (name) => {
      const cell = make("th", name === "Namespace" ? "" : "number", name.split(".")[0]);
      cell.scope = "col";
      cell.title = name;
      return cell;
    }, () => {});
    const rows = namespaces ? namespaces.rows.map((row) => ({ ...row, id: "row:" + row.name })) : [];
    // Other columns need other rows.
    const shape = columns.join(",") + ":";
    if (namespaces && namespaces.others) {
      const name = plural(namespaces.others.namespaces, "more", "more");
      rows.push({ id: "others", name, counts: namespaces.others.counts });
    }
    if (rows.length === 0) {
      keyed(byId("namespaces"), ["No namespaced objects."], () => "empty", (text) => {
        const row = make("tr");
        const cell = make("td", "empty", text);
        cell.colSpan = columns.length + 1;
        row.append(cell);
        return row;
      }, () => {});
      return;
    }
    keyed(byId("namespaces"), rows, (row) => shape + row.id, (item) => {
      const row = make("tr", item.id === "others" ? "others" : "");
      row.append(make("td", "", item.name));
      for (const column of columns) {
        const cell = make("td", "number");
        cell.dataset.label = column.split(".")[0];
        row.append(cell);
      }
      return row;
    }, (row, item) => {
      if (item.id === "others") setText(row.children[0], item.name);
      shown.forEach((column, i) => {
        const count = item.counts[column];
        const cell = row.children[i + 1];
        setText(cell, count === 0 ? "·" : number(count));
        setClass(cell, count === 0 ? "number none" : "number");
      });
    });
  }

  // The feed

  function addChanges(changes, isFirst) {
    const list = byId("changes");
    if (lastSeq === 0 && changes.length === 0 && !list.firstChild) {
      list.append(make("li", "empty", "No changes yet."));
    }
    for (const change of changes) {
      if (change.seq <= lastSeq) continue;
      if (lastSeq === 0) list.replaceChildren();
      lastSeq = change.seq;
      const line = make("li", isFirst ? "" : "new");
      const what = make("span", "what");
      const how = change.resource + (change.note ? " · " + change.note : "");
      what.append(keyOf(change), make("span", "how", how));
      what.title = change.key + "\n" + how;
      const time = make("time");
      time.dateTime = new Date(change.timeMs).toISOString();
      time.dataset.ms = String(change.timeMs);
      line.append(make("span", "verb " + change.type, change.type), what, time);
      list.prepend(line);
    }
    while (list.childNodes.length > MAX_LINES) list.lastChild.remove();
  }

  // The key of an object, as a link to it while it is there.
  function keyOf({ type, resource, key }) {
    const list = type === "listed" || type === "deleted" ? undefined : state.resources.find(({ name }) => name === resource);
    // A key that was shortened or escaped names no object.
    if (!list || !/^[\w.:/-]+$/.test(key)) return make("span", "key", key);
    const slash = list.path.lastIndexOf("/");
    const [namespace, name] = key.includes("/") ? key.split("/") : [undefined, key];
    const link = make("a", "key", key);
    link.href = "#" + list.path.slice(0, slash) + (namespace ? "/namespaces/" + namespace : "") + list.path.slice(slash) + "/" + name;
    return link;
  }

  function showAges() {
    for (const time of byId("changes").getElementsByTagName("time")) setText(time, age(Number(time.dataset.ms)));
  }

  // All of it

  function receive(message, isFirst) {
    clockOffsetMs = Date.now() - message.nowMs;
    lastMessageMs = Date.now();
    if (state && state.startedMs !== message.startedMs) {
      lastSeq = 0;
      byId("changes").replaceChildren();
    }
    state = message;
    const { name, server, version } = message.cluster;
    setText(byId("cluster"), [name, server, version].filter(Boolean).join(" · "));
    setText(byId("readers"), message.cluster.readers || "");
    addChanges(message.changes, isFirst);
    show();
  }

  function show() {
    showSummary();
    showTiles();
    showResources();
    showNodes();
    showNamespaces();
    showIndices();
    showAges();
  }

  function setConnection(status) {
    isLost = status === "lost";
    setClass(byId("connection"), "pill " + status);
    setText(byId("connection-text"), isLost ? "Connection lost" : "Live");
    if (state) setClass(byId("main"), isLost ? "stale" : "");
    document.title = isLost ? "(connection lost) listwatch" : "listwatch";
    if (state) showSummary();
  }

  let source;
  function connect() {
    if (source) source.close();
    source = new EventSource("/dashboard/events");
    const mine = source;
    mine.onmessage = (event) => {
      receive(JSON.parse(event.data), false);
      setConnection("live");
    };
    mine.onerror = () => {
      setConnection("lost");
      // The browser reconnects by itself unless the server refused.
      if (mine.readyState === EventSource.CLOSED && mine === source) {
        source = undefined;
        setTimeout(connect, RETRY_MS);
      }
    };
  }

  setText(byId("origin"), location.origin);
  receive(JSON.parse(byId("state").textContent), true);
  setClass(byId("main"), "");
  connect();
  setInterval(() => {
    if (!isLost && Date.now() - lastMessageMs > SILENCE_MS) {
      setConnection("lost");
      connect();
    }
    if (state) show();
  }, 1000);
})();
`;
