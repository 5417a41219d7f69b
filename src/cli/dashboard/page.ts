/**
 * The HTML of the page.
 * @module
 */

import type { DashboardMessage } from "./dashboard_state.ts";

/**
 * Allows no other origin, no inline script or style, and no frame. The state in the document is data: a script element
 * of a type that is not executed.
 */
export const CONTENT_SECURITY_POLICY: string = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

// Two overlapping sheets: the cluster and its copy.
const ICON = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'%3E" +
  "%3Crect x='3' y='3' width='18' height='18' rx='4' fill='%239db4d6'/%3E" +
  "%3Crect x='11' y='11' width='18' height='18' rx='4' fill='%232f6fd0'/%3E%3C/svg%3E";

/** Renders the document with the present state, so that the first paint is complete. */
export function renderPage(message: DashboardMessage): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>listwatch</title>
<link rel="icon" href="${ICON}">
<link rel="stylesheet" href="/dashboard/style.css">
</head>
<body>
<header>
  <svg viewBox="0 0 32 32" width="28" height="28" aria-hidden="true"><rect class="sheet-back" x="3" y="3" width="18" height="18" rx="4"/><rect class="sheet-front" x="11" y="11" width="18" height="18" rx="4"/></svg>
  <h1>listwatch</h1>
  <p id="cluster" class="muted">&nbsp;</p>
  <div id="finder" class="finder" role="search">
    <input id="search" type="search" placeholder="Search: web, pods web, app=web" aria-label="Search objects by name or label" role="combobox" aria-expanded="false" aria-controls="results" aria-autocomplete="list" autocomplete="off" autocapitalize="off" spellcheck="false" enterkeyhint="search"><kbd aria-hidden="true">/</kbd>
    <div id="results-panel" class="results" hidden><ul id="results" role="listbox" aria-label="Objects"></ul><p id="results-note" class="muted" role="status"></p></div>
  </div>
  <p id="connection" class="pill" role="status"><span class="dot" aria-hidden="true"></span><span id="connection-text">Live</span></p>
</header>
<noscript><p class="notice">This page needs JavaScript. The same data is at <a href="/api">/api</a>.</p></noscript>
<main id="main" class="waiting">
  <p id="summary" class="summary">&nbsp;</p>
  <section class="tiles" aria-label="At a glance">
    <div class="tile"><span class="label">Objects</span><span class="figure" id="figure-objects">–</span><span class="detail" id="detail-objects">&nbsp;</span></div>
    <div class="tile"><span class="label">Pods ready</span><span class="figure" id="figure-pods">–</span><span class="detail" id="detail-pods">&nbsp;</span></div>
    <div class="tile"><span class="label">Nodes</span><span class="figure" id="figure-nodes">–</span><span class="detail" id="detail-nodes">&nbsp;</span></div>
    <div class="tile"><span class="label">Changes per second</span><span class="figure" id="figure-rate">–</span><svg id="spark" class="spark" viewBox="0 0 120 28" preserveAspectRatio="none" role="img" aria-label="Changes per second in the last minute"><path id="spark-area" class="spark-area"/><path id="spark-line" class="spark-line" vector-effect="non-scaling-stroke"/></svg></div>
  </section>
  <div class="column">
  <section class="card resources" aria-labelledby="heading-resources">
    <h2 id="heading-resources">Resources</h2>
    <table>
      <thead><tr><th scope="col">Resource</th><th scope="col" class="number">Objects</th><th scope="col">Reflector</th><th scope="col" class="number" title="Open watches of readers">Readers</th><th scope="col" class="number" title="The time since the last news of the API server">Lag</th><th scope="col" class="number">resourceVersion</th><th scope="col" class="number">Last event</th></tr></thead>
      <tbody id="resources"></tbody>
    </table>
  </section>
  <section class="card namespaces" aria-labelledby="heading-namespaces">
    <h2 id="heading-namespaces">Objects per namespace</h2>
    <div class="scroll" tabindex="0" role="region" aria-labelledby="heading-namespaces"><table class="counts">
      <thead><tr id="namespaces-head"></tr></thead>
      <tbody id="namespaces"></tbody>
    </table></div>
  </section>
  <section class="card indices" aria-labelledby="heading-indices">
    <h2 id="heading-indices">Indices</h2>
    <table>
      <thead><tr><th scope="col">Resource</th><th scope="col">Index</th><th scope="col" class="number">Values</th><th scope="col">Largest value</th><th scope="col" class="number">Objects</th></tr></thead>
      <tbody id="indices"></tbody>
    </table>
  </section>
  </div>
  <div class="column">
  <section class="card nodes" aria-labelledby="heading-nodes">
    <div class="heading"><h2 id="heading-nodes">Pods per node</h2><p class="legend"><span><i></i>ready</span><span><i class="unready"></i>not ready</span></p></div>
    <div class="scroll" tabindex="0" role="region" aria-labelledby="heading-nodes"><ul id="nodes" class="bars"></ul></div>
    <p id="nodes-note" class="note">&nbsp;</p>
  </section>
  <section class="card changes" aria-labelledby="heading-changes">
    <h2 id="heading-changes">Changes</h2>
    <div class="scroll" tabindex="0" role="region" aria-labelledby="heading-changes"><ol id="changes" class="feed"></ol></div>
  </section>
  </div>
</main>
<dialog id="object" aria-labelledby="object-name">
  <header class="object-header">
    <h2 id="object-name"></h2>
    <p id="object-where" class="muted"></p>
    <p id="object-state" class="pill" role="status"><span class="dot" aria-hidden="true"></span><span id="object-state-text"></span></p>
    <button id="object-close" type="button" aria-label="Close">✕</button>
  </header>
  <pre id="object-text" tabindex="0"></pre>
  <p class="object-footer muted"><label><input id="object-managed" type="checkbox"> managedFields</label><a id="object-json">JSON</a></p>
</dialog>
<footer class="muted"><p>Readers: <span id="readers"></span>.</p><p>With kubectl: <code>kubectl --server=<span id="origin"></span> get pods -A</code></p></footer>
<script type="application/json" id="state">${inScript(message)}</script>
<script src="/dashboard/script.js"></script>
<script src="/dashboard/finder.js"></script>
</body>
</html>
`;
}

/** JSON that can neither end its script element nor start a comment in it. */
function inScript(value: unknown): string {
  return JSON.stringify(value).replace(/</g, "\\u003c").replace(/\u2028/g, "\\u2028").replace(
    /\u2029/g,
    "\\u2029",
  );
}
