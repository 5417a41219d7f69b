/**
 * The page's style sheet.
 * @module
 */

/** Light or dark by the preference of the browser; one column on a phone, two on a wide screen. */
export const STYLE: string = String.raw`
:root {
  color-scheme: light dark;
  --page: #f4f6f8; --card: #ffffff; --edge: #dfe4ea; --row: #f0f2f5;
  --text: #1a222d; --muted: #566273; --accent: #2f6fd0; --accent-soft: #9db4d6;
  --good: #1c7a48; --good-soft: #dff2e7; --warn: #875400; --warn-soft: #fcefd2; --bad: #b3273a; --bad-soft: #fbe3e5;
  --info: #285fb8; --bar: #5b8fdc; --bar-rest: #d5a03c; --track: #e8ecf1;
  --mono: ui-monospace, SFMono-Regular, "Cascadia Mono", "Liberation Mono", Menlo, monospace;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #0f1419; --card: #171d25; --edge: #29323d; --row: #1e2630;
    --text: #e3e8ee; --muted: #9aa7b7; --accent: #6aa1f4; --accent-soft: #3d5478;
    --good: #62cf95; --good-soft: #16311f; --warn: #e9b75a; --warn-soft: #382a0f; --bad: #f48a93; --bad-soft: #3b1a1f;
    --info: #86b3f7; --bar: #4f83cf; --bar-rest: #b98a34; --track: #26303b;
  }
}
* { box-sizing: border-box; }
[hidden] { display: none !important; }
html { -webkit-text-size-adjust: 100%; }
body {
  margin: 0 auto; padding: 0 24px 24px; max-width: 1360px; background: var(--page); color: var(--text);
  font: 14px/1.45 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  font-variant-numeric: tabular-nums;
}
h1, h2, p, ul, ol { margin: 0; padding: 0; }
ul, ol { list-style: none; }
h1 { font-size: 17px; line-height: 1.2; letter-spacing: -0.01em; }
h2 { font-size: 13px; font-weight: 600; padding: 14px 16px 10px; }
a { color: var(--accent); }
code, .mono { font-family: var(--mono); font-size: 12px; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
.muted, .label, .detail, .note, th { color: var(--muted); }
.sheet-back { fill: var(--accent-soft); }
.sheet-front { fill: var(--accent); }

header {
  display: grid; grid-template: "icon title find pill" "icon cluster find pill" / auto minmax(0, 2fr) minmax(0, 3fr) auto;
  align-items: center; gap: 0 12px; padding: 16px 0 12px;
}
header svg { grid-area: icon; }
h1 { grid-area: title; align-self: end; }
#cluster { grid-area: cluster; align-self: start; font-size: 13px; overflow-wrap: anywhere; }
#connection { grid-area: pill; }
.pill {
  flex: none; display: inline-flex; align-items: center; gap: 8px; min-height: 30px; padding: 4px 12px;
  border: 1px solid var(--edge); border-radius: 999px; background: var(--card); font-size: 13px;
}
.dot { width: 8px; height: 8px; border-radius: 50%; background: var(--muted); }
.live .dot { background: var(--good); }
.lost { border-color: var(--warn); background: var(--warn-soft); color: var(--warn); }
.lost .dot { background: var(--warn); }

main { display: grid; gap: 16px; grid-template-columns: minmax(0, 7fr) minmax(0, 5fr); }
.column { display: flex; flex-direction: column; gap: 16px; min-width: 0; }
main.waiting, main.waiting + footer { visibility: hidden; }
/* The state is old while the connection is lost. */
main.stale .tile, main.stale .card { opacity: 0.65; }
.summary, .tiles { grid-column: 1 / -1; }
.summary { min-height: 21px; overflow-wrap: anywhere; }
.summary.trouble { color: var(--warn); }
.tiles { display: grid; grid-template-columns: repeat(4, minmax(0, 1fr)); gap: 16px; }
.changes { flex: 1 0 auto; display: flex; flex-direction: column; }
.tile, .card { background: var(--card); border: 1px solid var(--edge); border-radius: 10px; min-width: 0; }
.tile { position: relative; display: flex; flex-direction: column; padding: 12px 16px; min-height: 98px; overflow: hidden; }
.label, .detail { font-size: 13px; }
.figure { font-size: 28px; line-height: 1.25; font-weight: 600; letter-spacing: -0.02em; white-space: nowrap; }
.figure small { font-size: 16px; font-weight: 500; color: var(--muted); letter-spacing: 0; }
.spark { width: 100%; height: 22px; margin-top: auto; display: block; }
.spark-line { fill: none; stroke: var(--accent); stroke-width: 1.5; stroke-linejoin: round; }
.spark-area { fill: var(--accent); opacity: 0.13; }

table { width: 100%; border-collapse: collapse; }
th { text-align: left; font-size: 12px; font-weight: 500; padding: 0 8px 6px; white-space: nowrap; vertical-align: bottom; }
td { padding: 7px 8px; border-top: 1px solid var(--row); vertical-align: baseline; overflow-wrap: anywhere; }
th:first-child, td:first-child { padding-left: 16px; }
th:last-child, td:last-child { padding-right: 16px; }
.number { text-align: right; white-space: nowrap; }
.resources td { height: 35px; }
.resources table, .counts { table-layout: fixed; }
.resources th:nth-child(1) { width: 23%; }
.resources th:nth-child(2) { width: 10%; }
.resources th:nth-child(3) { width: 22%; }
.resources th:nth-child(4) { width: 9%; }
.resources th:nth-child(5) { width: 9%; }
.resources th:nth-child(6) { width: 15%; }
.resources th:nth-child(7) { width: 12%; }
.indices th:nth-child(1) { width: 26%; }
.resources a { color: inherit; text-decoration-color: var(--edge); text-underline-offset: 3px; }
.resources a:hover { text-decoration-color: currentColor; }
.resources .problem td {
  height: auto; padding: 0 16px 8px; border: 0; color: var(--warn); font-size: 12px;
  white-space: nowrap; overflow: hidden; text-overflow: ellipsis;
}
.resources .problem.over td { color: var(--muted); }
.phase { display: inline-flex; align-items: center; gap: 7px; }
.phase .dot { flex: none; width: 7px; height: 7px; }
.phase.watching .dot { background: var(--good); }
.phase.listing .dot, .phase.streaming .dot { background: var(--info); }
.phase.backingOff { color: var(--warn); }
.phase.backingOff .dot { background: var(--warn); }
.counts th { font-size: 11px; white-space: normal; overflow-wrap: anywhere; line-height: 1.2; }
.counts th:first-child { width: 22%; }
.counts .number { padding-left: 4px; }
.counts .none { color: var(--muted); opacity: 0.55; }
.counts .others td { color: var(--muted); }

.bars { padding: 0 16px; display: grid; gap: 11px; }
.bars li { display: grid; grid-template-columns: minmax(0, 1fr) auto; gap: 4px 12px; }
.bars .name { overflow-wrap: anywhere; min-height: 20px; line-height: 20px; }
.bars .value { color: var(--muted); font-size: 13px; }
.tag { margin-left: 8px; padding: 0 7px; border-radius: 999px; font-size: 12px; line-height: 18px; display: inline-block; vertical-align: top; background: var(--warn-soft); color: var(--warn); white-space: nowrap; }
.track { grid-column: 1 / -1; display: flex; height: 8px; border-radius: 4px; overflow: hidden; background: var(--track); }
.track span { display: block; height: 100%; transition: width 0.4s ease-out; }
.track .ready { background: var(--bar); }
.track .unready { background: var(--bar-rest); }
.note { padding: 12px 16px 14px; font-size: 13px; min-height: 45px; }
.heading { display: flex; justify-content: space-between; align-items: baseline; gap: 12px; padding-right: 16px; }
.legend { display: flex; gap: 14px; font-size: 12px; color: var(--muted); }
.legend span { display: inline-flex; align-items: center; gap: 6px; white-space: nowrap; }
.legend i { width: 9px; height: 9px; border-radius: 3px; background: var(--bar); }
.legend i.unready { background: var(--bar-rest); }

.scroll { overflow-y: auto; overscroll-behavior: contain; scrollbar-width: thin; scrollbar-color: var(--edge) transparent; }
.nodes .scroll { max-height: 560px; padding: 2px 0; }
.namespaces .scroll { max-height: 760px; padding-top: 2px; border-radius: 0 0 10px 10px; }
.changes .scroll { flex: 1 1 0; min-height: 380px; max-height: 800px; border-top: 1px solid var(--row); border-radius: 0 0 10px 10px; }
/* Every line has the same height, so that the layout does not move. */
.feed li {
  display: grid; grid-template-columns: 64px minmax(0, 1fr) auto; gap: 0 10px; padding: 6px 16px; align-items: baseline;
  height: 51px; border-bottom: 1px solid var(--row);
}
.feed .what { min-width: 0; }
.feed .key, .feed .how { display: block; white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
.feed .how { color: var(--muted); font-size: 12px; line-height: 17px; }
.feed time { color: var(--muted); font-size: 12px; text-align: right; white-space: nowrap; min-width: 38px; }
.verb { justify-self: start; padding: 1px 7px; border-radius: 999px; font-size: 12px; }
.verb.added { color: var(--good); background: var(--good-soft); }
.verb.updated, .verb.listed { color: var(--muted); background: var(--row); }
.verb.deleted { color: var(--bad); background: var(--bad-soft); }
.empty { padding: 14px 16px; color: var(--muted); display: block !important; border: 0 !important; }
.bars .empty { padding: 4px 0; }
td.empty { padding: 14px 16px; }
footer { padding: 18px 2px 0; font-size: 13px; overflow-wrap: anywhere; }
.notice { padding: 12px 16px; margin-bottom: 16px; border: 1px solid var(--edge); border-radius: 10px; background: var(--card); }

.finder { grid-area: find; position: relative; width: min(420px, 100%); justify-self: end; }
.finder input {
  width: 100%; height: 32px; padding: 0 34px 0 12px; border: 1px solid var(--edge); border-radius: 8px;
  background: var(--card); color: inherit; font: inherit; font-size: 14px; -webkit-appearance: none; appearance: none;
}
.finder input::placeholder { color: var(--muted); opacity: 1; }
.finder input::-webkit-search-cancel-button { display: none; }
.finder kbd {
  position: absolute; right: 9px; top: 7px; padding: 0 6px; border: 1px solid var(--edge); border-radius: 4px;
  color: var(--muted); font: 11px/16px var(--mono); pointer-events: none;
}
.finder input:focus + kbd { visibility: hidden; }
.results {
  position: absolute; z-index: 2; top: 38px; right: 0; width: max(100%, min(560px, 60vw)); border: 1px solid var(--edge);
  border-radius: 10px; background: var(--card); box-shadow: 0 12px 32px rgb(0 0 0 / 0.18); overflow: hidden;
}
.results[aria-busy="true"] { opacity: 0.75; }
.results ul { max-height: min(440px, 60vh); overflow-y: auto; overscroll-behavior: contain; scrollbar-width: thin; }
.results a {
  display: flex; justify-content: space-between; gap: 2px 14px; padding: 7px 14px; color: inherit; text-decoration: none;
}
.results .key { overflow-wrap: anywhere; }
.results .what { flex: none; font-size: 12px; line-height: 20px; }
.results li[aria-selected="true"] { background: var(--row); box-shadow: inset 3px 0 var(--accent); }
.results li:hover { background: var(--row); }
.results p { padding: 8px 14px 9px; font-size: 13px; border-top: 1px solid var(--row); }
.results ul:empty + p { border: 0; }
.feed a.key { color: inherit; text-decoration: none; }
.feed a.key:hover { text-decoration: underline; text-decoration-color: var(--edge); text-underline-offset: 3px; }

dialog {
  width: min(920px, calc(100vw - 48px)); height: min(860px, calc(100vh - 48px)); padding: 0; border: 1px solid var(--edge);
  border-radius: 12px; background: var(--card); color: inherit; box-shadow: 0 24px 64px rgb(0 0 0 / 0.35); overflow: hidden;
}
dialog[open] { display: grid; grid-template-rows: auto minmax(0, 1fr) auto; }
dialog::backdrop { background: rgb(10 14 20 / 0.45); }
.object-header {
  grid-template: "name state close" "where state close" / minmax(0, 1fr) auto auto; gap: 0 10px; padding: 12px 12px 12px 16px;
  border-bottom: 1px solid var(--edge);
}
.object-header h2 { grid-area: name; padding: 0; font-size: 15px; overflow-wrap: anywhere; }
#object-where { grid-area: where; font-size: 13px; overflow-wrap: anywhere; }
#object-state { grid-area: state; }
#object-close {
  grid-area: close; width: 34px; height: 34px; border: 0; border-radius: 8px; background: none; color: var(--muted);
  font: inherit; cursor: pointer;
}
#object-close:hover { background: var(--row); color: inherit; }
.deleted { border-color: var(--bad); background: var(--bad-soft); color: var(--bad); }
.deleted .dot { background: var(--bad); }
#object-text {
  margin: 0; padding: 12px 0; overflow: auto; overscroll-behavior: contain; font: 12.5px/1.5 var(--mono); tab-size: 2;
  scrollbar-width: thin; scrollbar-color: var(--edge) transparent;
}
#object-text:focus-visible { outline-width: 1px; outline-offset: -1px; }
#object-text .line { display: block; padding: 0 16px; white-space: pre-wrap; overflow-wrap: anywhere; }
#object-text .changed { background: var(--warn-soft); }
.yaml-key { color: var(--info); }
.object-footer { display: flex; justify-content: space-between; gap: 16px; padding: 9px 16px; border-top: 1px solid var(--edge); font-size: 13px; }
.object-footer label { display: inline-flex; align-items: center; gap: 7px; }
.object-footer input { margin: 0; accent-color: var(--accent); }

@media (prefers-reduced-motion: no-preference) {
  #object-text .changed { animation: fade 4s ease-in forwards; }
  @keyframes fade { to { background: transparent; } }
  .feed li.new { animation: arrive 1.2s ease-out; }
  @keyframes arrive { from { background: var(--row); } }
}
@media (prefers-reduced-motion: reduce) { .track span { transition: none; } }

@media (max-width: 900px) {
  body { padding: 0 16px 20px; }
  main { grid-template-columns: minmax(0, 1fr); }
  /* The parts that change come first. */
  .column { display: contents; }
  .nodes { order: 1; }
  .changes { order: 2; }
  .resources { order: 3; }
  .namespaces { order: 4; }
  .indices { order: 5; }
  .tiles { grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 12px; }
  main { gap: 12px; }

}
@media (max-width: 620px) {
  .summary { min-height: 42px; }
  header { grid-template: "icon title pill" "cluster cluster cluster" "find find find" / auto minmax(0, 1fr) auto; gap: 8px 10px; }
  .object-header { grid-template: "name close" "where close" "state state" / minmax(0, 1fr) auto; gap: 2px 10px; }
  #object-state { justify-self: start; margin-top: 6px; }
  /* Below 16 px, iOS zooms in. */
  .finder input { height: 40px; font-size: 16px; }
  .finder kbd { display: none; }
  .finder { width: 100%; }
  .results { top: 46px; width: 100%; }
  .results a { flex-direction: column; padding: 9px 14px; }
  dialog { width: 100vw; height: 100dvh; max-width: none; max-height: none; border: 0; border-radius: 0; }
  h1 { align-self: center; }
  .figure { font-size: 24px; }
  .figure small { font-size: 14px; }
  .tile { padding: 10px 14px; min-height: 92px; }
  /* Tables become lists: a row is a block, and a cell has its heading. */
  thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  table, tbody, tr, td { display: block; }
  .resources tr.problem { display: block; padding: 0 16px 10px; border: 0; }
  .resources .problem td, .resources .problem td:nth-child(1) { padding: 0; }
  tr { border-top: 1px solid var(--row); padding: 9px 16px 10px; }
  td, td:first-child, td:last-child { padding: 0; border: 0; height: auto; text-align: left; }
  .resources td { height: auto; }
  .resources tr { display: grid; grid-template-columns: minmax(0, 1fr) auto; gap: 2px 12px; }
  .resources td:nth-child(1) { grid-area: 1 / 1; }
  .resources td:nth-child(2) { grid-area: 1 / 2; text-align: right; }
  .resources td:nth-child(3) { grid-area: 2 / 1; }
  .resources td:nth-child(4) { grid-area: 3 / 2; }
  .resources td:nth-child(5) { grid-area: 2 / 2; }
  .resources td:nth-child(6) { grid-area: 3 / 1; }
  .resources td:nth-child(7) { display: none; }
  .resources td:nth-child(n + 4) { font-size: 13px; color: var(--muted); text-align: right; }
  .resources td:nth-child(6) { text-align: left; white-space: normal; }
  .resources td:nth-child(4)::before { content: "readers "; }
  .resources td:nth-child(5)::before { content: "lag "; }
  .resources td:nth-child(6)::before { content: "resourceVersion "; }
  .indices tr { display: grid; grid-template-columns: minmax(0, 1fr) auto; gap: 1px 12px; }
  .indices td:nth-child(1) { grid-area: 1 / 1; }
  .indices td:nth-child(2) { grid-area: 2 / 1; font-size: 13px; color: var(--muted); }
  .indices td:nth-child(3) { grid-area: 1 / 2; text-align: right; }
  .indices td:nth-child(3)::after { content: " values"; color: var(--muted); }
  .indices td:nth-child(4) { grid-area: 2 / 2; font-size: 13px; color: var(--muted); text-align: right; }
  .indices td:nth-child(5) { display: none; }
  .counts tr { display: flex; flex-wrap: wrap; gap: 1px 14px; }
  .counts td:first-child { flex: 0 0 100%; }
  .counts td.number { font-size: 13px; padding: 0; }
  .counts td.number::before { content: attr(data-label) " "; color: var(--muted); }
  .counts td.none { display: none; }
  .feed li { grid-template-columns: 62px minmax(0, 1fr) auto; gap: 0 8px; padding: 6px 12px; }
}
`;
