import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { DashboardMessage } from "../../../src/cli/dashboard/dashboard_state.ts";
import { FINDER_SCRIPT } from "../../../src/cli/dashboard/finder_script.ts";
import { CONTENT_SECURITY_POLICY, renderPage } from "../../../src/cli/dashboard/page.ts";
import { SCRIPT } from "../../../src/cli/dashboard/script.ts";
import { HEARTBEAT_MS } from "../../../src/cli/dashboard/state_stream.ts";
import { STYLE } from "../../../src/cli/dashboard/style.ts";

function message(name: string): DashboardMessage {
  return {
    nowMs: 1,
    startedMs: 1,
    cluster: { name, server: "https://10.0.0.1:6443" },
    resources: [],
    namespaces: { columns: [name], rows: [{ name, counts: [1] }], others: undefined },
    nodes: undefined,
    indices: [],
    changesPerSecond: [],
    changes: [{ seq: 1, timeMs: 1, type: "added", resource: "pods", key: name }],
  };
}

const EVIL = `</script><script>alert(1)</script><!-- <img src=x onerror=alert(1)> "' \u2028`;

describe("renderPage", () => {
  it("embeds the state as data that no name can escape from", () => {
    const page = renderPage(message(EVIL));
    const plain = renderPage(message("harmless"));
    assert.equal(page.match(/<script/g)?.length, plain.match(/<script/g)?.length);
    assert.equal(page.match(/<\/script/g)?.length, plain.match(/<\/script/g)?.length);
    assert.ok(!page.includes("<img"));
    assert.ok(!page.includes("<!--"));
    const data = /<script type="application\/json" id="state">([^<]*)<\/script>/.exec(page)?.[1] ?? "";
    assert.deepEqual(JSON.parse(data), JSON.parse(JSON.stringify(message(EVIL))));
  });

  it("has a policy without inline code and other origins, and complies with it", () => {
    assert.match(CONTENT_SECURITY_POLICY, /^default-src 'none'; script-src 'self'; style-src 'self'/);
    assert.doesNotMatch(CONTENT_SECURITY_POLICY, /unsafe|\*|https?:/);
    const page = renderPage(message("harmless"));
    assert.doesNotMatch(page, /\s(on[a-z]+|style)=/);
    assert.doesNotMatch(page, /<style/);
    for (const text of [page, STYLE, SCRIPT, FINDER_SCRIPT]) {
      const elsewhere = text.match(/https?:\/\/[^\s'"<]+/g) ?? [];
      assert.deepEqual(elsewhere.filter((url) => !/w3\.org\/2000\/svg|10\.0\.0\.1/.test(url)), []);
    }
  });

  it("has a valid script that writes text, never markup, and knows the heartbeat interval", () => {
    for (const script of [SCRIPT, FINDER_SCRIPT]) {
      assert.doesNotThrow(() => new Function(script));
      assert.doesNotMatch(
        script,
        /innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|srcdoc|setAttribute\("on/,
      );
    }
    const silenceMs = Number(/SILENCE_MS = ([0-9]+)/.exec(SCRIPT)?.[1]);
    assert.ok(silenceMs >= 2 * HEARTBEAT_MS);
  });

  it("has every element that its script uses", () => {
    const page = renderPage(message("harmless"));
    for (const script of [SCRIPT, FINDER_SCRIPT]) {
      const wanted = [...script.matchAll(/byId\("([^"]+)"\)/g)].map(([, id]) => id);
      assert.ok(wanted.length > 10);
      for (const id of wanted) assert.ok(page.includes(`id="${id}"`), `the page has no ${id}`);
    }
  });

  it("shows no object but one of the read API, whatever the fragment of its URL", () => {
    const source = /function pathOfFragment\(\) \{([\s\S]*?)\n {2}\}/.exec(FINDER_SCRIPT)?.[1] ?? "";
    const pathOf = (hash: string) => new Function("location", source)({ hash }) as string;
    assert.equal(pathOf("#/api/v1/namespaces/shop/pods/web-1"), "/api/v1/namespaces/shop/pods/web-1");
    assert.equal(pathOf("#/apis/apps/v1/deployments/a%2Fb"), "/apis/apps/v1/deployments/a%2Fb");
    for (
      const hash of [
        "",
        "#javascript:alert(1)",
        "#//evil.example/api/v1/pods/x",
        "#https://evil.example/api/v1/pods/x",
        "#/api/../dashboard/events/x",
        "#/api/v1/./x",
        "#/api/v1/pods?watch=true",
        "#/api/v1/pods/x y",
        "#/apix/v1/pods",
        "#/dashboard/events",
      ]
    ) {
      assert.equal(pathOf(hash), "", hash);
    }
  });
});
