import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { describe, it } from "node:test";
import type { DashboardState } from "../../../src/cli/dashboard/dashboard_message.ts";
import { CONTENT_SECURITY_POLICY, renderPage } from "../../../src/cli/dashboard/dashboard.ts";
import { PAGE, SCRIPT, STYLE } from "../../../src/cli/dashboard/page_bundle.ts";

const BROWSER = new URL("../../../src/cli/dashboard/browser/", import.meta.url);

function state(name: string): DashboardState {
  return { nowMs: 1, cluster: { name, server: "https://10.0.0.1:6443" }, resources: [] };
}

const EVIL = `</script><script>alert(1)</script><!-- <img src=x onerror=alert(1)> "' \u2028 $& $'`;

function stateIn(page: string): unknown {
  return JSON.parse(/<script type="application\/json" id="state">([^<]*)<\/script>/.exec(page)?.[1] ?? "");
}

describe("renderPage", () => {
  it("embeds the state as data that no name can escape from", () => {
    const page = renderPage(state(EVIL));
    const plain = renderPage(state("harmless"));
    assert.equal(page.match(/<script/g)?.length, plain.match(/<script/g)?.length);
    assert.equal(page.match(/<\/script/g)?.length, plain.match(/<\/script/g)?.length);
    assert.ok(!page.includes("<img"));
    assert.ok(!page.includes("<!--"));
    assert.deepEqual(stateIn(page), JSON.parse(JSON.stringify(state(EVIL))));
  });

  it("is the document of the file page.html, with nothing but the state in it", async () => {
    assert.equal(PAGE, await readFile(new URL("page.html", BROWSER), "utf8"));
    assert.equal(stateIn(PAGE), "STATE");
    const shown = renderPage(state("shop"));
    assert.equal(shown.replace(/(id="state">\s*)\{.*\}/, '$1"STATE"'), PAGE);
  });

  it("has a policy without inline code and other origins, and complies with it", () => {
    assert.match(CONTENT_SECURITY_POLICY, /^default-src 'none'; script-src 'self'; style-src 'self'/);
    assert.doesNotMatch(CONTENT_SECURITY_POLICY, /unsafe|\*|https?:/);
    const page = renderPage(state("harmless"));
    assert.doesNotMatch(page, /\s(on[a-z]+|style)=/);
    assert.doesNotMatch(page, /<style/);
    for (const text of [page, STYLE, SCRIPT]) {
      const elsewhere = text.match(/https?:\/\/[^\s'"<]+/g) ?? [];
      assert.deepEqual(elsewhere.filter((url) => !/w3\.org\/2000\/svg|10\.0\.0\.1/.test(url)), []);
    }
  });

  it("has a valid script that writes text, never markup", () => {
    assert.doesNotThrow(() => new Function(SCRIPT));
    assert.doesNotMatch(
      SCRIPT,
      /innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|srcdoc|setAttribute\("on/,
    );
  });

  it("has every element that its script uses", async () => {
    const files = (await readdir(BROWSER)).filter((name) => name.endsWith(".ts"));
    const sources = await Promise.all(files.map((name) => readFile(new URL(name, BROWSER), "utf8")));
    const wanted = sources.flatMap((text) =>
      Array.from(text.matchAll(/byId(?:<\w+>)?\("([^"]+)"\)/g), ([, id]) => id)
    );
    assert.ok(wanted.length > 40);
    for (const id of wanted) assert.ok(PAGE.includes(`id="${id}"`), `the page has no ${id}`);
  });
});
