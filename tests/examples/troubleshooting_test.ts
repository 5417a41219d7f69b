/** docs/troubleshooting.md has each message that the log can have from warnings on, and each status. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { ROOT } from "../../scripts/lib/gate.ts";
import { sourceFiles } from "../../scripts/lib/module_graph.ts";

const page = readFileSync(join(ROOT, "docs/troubleshooting.md"), "utf8");
const CALL = /(?:[lL]ogger|failures|#log\(key\))\.(?:warn|error)\(/g;

/**
 * Files that log a text which was made before the call, or which is
 * the error of a call alone: what of it both the file and the page have.
 */
const MADE_BEFORE: Readonly<Record<string, readonly string[]>> = {
  "src/compat/client_node/kube_config.ts": ["Cannot use the KubeConfig"],
  "src/compat/client_node/list_watch.ts": [],
  "src/compat/fluent/watcher.ts": ["the callback of a watcher of"],
  "src/controller/reconcile_loop.ts": [],
  "src/controller/triggers.ts": [" cannot "],
  "src/hono/read_api.ts": ["failed: "],
  "src/informer/namespaces/namespace_set.ts": [" namespaces threw"],
  "src/informer/snapshot/content.ts": ["could not save the snapshot"],
  "src/node/reread.ts": [" stays in use"],
  "src/node/serving/serve_fetch.ts": ["failed: "],
  "src/reflector/failures.ts": [
    "lost the server",
    "the server refuses",
    "the request failed",
    "but retries cannot fix it",
  ],
  "src/reflector/quarantine.ts": ["quarantined"],
  "src/reflector/reports.ts": [],
  "src/reflector/store_writer.ts": ["unknown event type"],
  "src/reflector/transition.ts": ["listing instead for the next"],
  "src/screens/window_store.ts": ["a listener threw"],
  "src/util/logger.ts": [" threw: "],
  "src/workers/disk_history.ts": ["An event could not be written"],
};

/** The constant parts of the first argument of a call that begins at `at`. */
function constants(source: string, at: number): string[] {
  const argument = /^\s*(?:(?:`(?:\\.|[^`])*`|"(?:\\.|[^"\\])*")[\s+]*)+/.exec(source.slice(at))?.[0] ?? "";
  const text = Array.from(argument.matchAll(/`((?:\\.|[^`])*)`|"((?:\\.|[^"\\])*)"/g), ([, a, b]) => a ?? b)
    .join("");
  return text.split(/\$\{[^}]*\}/).map((part) => part.replace(/^[\s:;,.]+|[\s:;,.(]+$/g, ""))
    .filter((part) => part.length >= 8);
}

describe("troubleshooting.md", () => {
  it("has each warning and error of the log", async () => {
    const without: string[] = [];
    let calls = 0;
    for (const path of await sourceFiles(ROOT, "src", [".ts"])) {
      if (path.startsWith("src/testing/")) continue;
      const source = readFileSync(join(ROOT, path), "utf8").replace(/\/\*[\s\S]*?\*\//g, "");
      for (const { 0: call, index } of source.matchAll(CALL)) {
        const parts = constants(source, index + call.length);
        calls++;
        if (parts.length === 0 && path in MADE_BEFORE) continue;
        const longest = parts.sort((a, b) => b.length - a.length)[0] ?? "(no constant text)";
        if (!page.includes(longest)) without.push(`${path}: ${longest}`);
      }
    }
    assert.ok(calls > 30, `${calls} calls`);
    assert.deepEqual(without, []);
  });

  for (const [path, phrases] of Object.entries(MADE_BEFORE)) {
    it(`has the messages that ${path} makes`, () => {
      const source = readFileSync(join(ROOT, path), "utf8");
      for (const phrase of phrases) {
        assert.ok(source.includes(phrase), `${path} has no ${JSON.stringify(phrase)}`);
        assert.ok(page.includes(phrase), `the page has no ${JSON.stringify(phrase)}`);
      }
    });
  }

  it("has each status that an answer can have", async () => {
    const codes = new Set<string>();
    for (const path of await sourceFiles(ROOT, "src", [".ts"])) {
      if (path.startsWith("src/testing/")) continue;
      const source = readFileSync(join(ROOT, path), "utf8");
      for (const [, code] of source.matchAll(/\bnewStatus\(\s*(\d{3})\b/g)) codes.add(code);
    }
    assert.ok(codes.size >= 12);
    const rows = new Set(Array.from(page.matchAll(/^\| (\d{3}) +\|/gm), ([, code]) => code));
    assert.deepEqual([...codes].filter((code) => !rows.has(code)).sort(), []);
  });
});
