import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { describe, it } from "node:test";
import { objectOfPath, objectPath, pathOfFragment } from "../../../src/cli/dashboard/browser/object_path.ts";
import { SILENCE_MS } from "../../../src/cli/dashboard/browser/view.ts";
import type { DashboardMessage } from "../../../src/cli/dashboard/dashboard_message.ts";
import { CONTENT_SECURITY_POLICY, renderPage } from "../../../src/cli/dashboard/dashboard.ts";
import { PAGE, SCRIPT, STYLE } from "../../../src/cli/dashboard/page_bundle.ts";
import { HEARTBEAT_MS } from "../../../src/cli/dashboard/state_stream.ts";

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

const EVIL = `</script><script>alert(1)</script><!-- <img src=x onerror=alert(1)> "' \u2028 $& $'`;

function stateIn(page: string): unknown {
  return JSON.parse(/<script type="application\/json" id="state">([^<]*)<\/script>/.exec(page)?.[1] ?? "");
}

describe("renderPage", () => {
  it("embeds the state as data that no name can escape from", () => {
    const page = renderPage(message(EVIL));
    const plain = renderPage(message("harmless"));
    assert.equal(page.match(/<script/g)?.length, plain.match(/<script/g)?.length);
    assert.equal(page.match(/<\/script/g)?.length, plain.match(/<\/script/g)?.length);
    assert.ok(!page.includes("<img"));
    assert.ok(!page.includes("<!--"));
    assert.deepEqual(stateIn(page), JSON.parse(JSON.stringify(message(EVIL))));
  });

  it("is the document of the file page.html, with nothing but the state in it", async () => {
    const file = new URL("../../../src/cli/dashboard/browser/page.html", import.meta.url);
    assert.equal(PAGE, await readFile(file, "utf8"));
    assert.equal(stateIn(PAGE), "STATE");
    const shown = renderPage(message("shop"));
    assert.equal(shown.replace(/(id="state">\s*)\{.*\}/, '$1"STATE"'), PAGE);
  });

  it("has a policy without inline code and other origins, and complies with it", () => {
    assert.match(CONTENT_SECURITY_POLICY, /^default-src 'none'; script-src 'self'; style-src 'self'/);
    assert.doesNotMatch(CONTENT_SECURITY_POLICY, /unsafe|\*|https?:/);
    const page = renderPage(message("harmless"));
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

  it("has a script that misses no heartbeat before it takes the connection for lost", () => {
    assert.ok(SILENCE_MS >= 2 * HEARTBEAT_MS);
  });

  it("has every element that its script uses", () => {
    const wanted = [...SCRIPT.matchAll(/byId\("([^"]+)"\)/g)].map(([, id]) => id);
    assert.ok(wanted.length > 20);
    for (const id of wanted) assert.ok(PAGE.includes(`id="${id}"`), `the page has no ${id}`);
  });
});

describe("pathOfFragment", () => {
  it("is the path of an object of the read API, and no other one", () => {
    assert.equal(pathOfFragment("#/api/v1/namespaces/shop/pods/web-1"), "/api/v1/namespaces/shop/pods/web-1");
    assert.equal(pathOfFragment("#/apis/apps/v1/deployments/a%2Fb"), "/apis/apps/v1/deployments/a%2Fb");
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
      assert.equal(pathOfFragment(hash), "", hash);
    }
  });

  it("reads the paths that objectPath writes, of any name", () => {
    for (const name of ["web-1", "system:node", "a/b", "ä%"]) {
      for (const namespace of [undefined, "shop"]) {
        const path = objectPath({ path: "/apis/apps/v1/deployments", namespace, name });
        assert.equal(pathOfFragment(`#${path}`), path);
        assert.deepEqual(objectOfPath(path), { name, resource: "deployments", namespace });
      }
    }
  });
});
