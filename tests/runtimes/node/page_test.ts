/**
 * The page of `serve` in headless Chromium, over an API server in memory.
 * @module
 */

import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { after, before, describe, it } from "node:test";
import { serve, type Served } from "@listwatch/cache/cli";
import { serveFetch } from "@listwatch/cache/node";
import { answerStatus, InMemoryApiServer } from "@listwatch/cache/testing";
import { ChromiumPage } from "../../../scripts/lib/chromium_page.ts";
import { kubeconfigOf } from "../../../scripts/lib/kubeconfig.ts";

/** The Chromium of CHROMIUM, or the one of npm; Deno does not know it, so it is imported by a variable. */
async function chromium(): Promise<string> {
  if (process.env.CHROMIUM) return process.env.CHROMIUM;
  const name = "@sparticuz/chromium";
  return await (await import(name)).default.executablePath();
}

const isHere = process.env.CHROMIUM !== undefined || process.platform === "linux" && process.arch === "x64";

const PODS = 5_000;

function pod(i: number, state: "ready" | "waiting" | "completed", restartCount = 0) {
  const ready = state === "ready";
  return {
    metadata: {
      name: `web-${i}`,
      namespace: i % 2 === 0 ? "shop" : "blog",
      labels: { app: "web" },
      ownerReferences: [{ apiVersion: "apps/v1", kind: "ReplicaSet", name: "web", uid: "uid-of-web" }],
    },
    spec: { nodeName: `worker-${i % 3}`, containers: [{ name: "main" }] },
    status: {
      phase: state === "completed" ? "Succeeded" : "Running",
      conditions: [{ type: "Ready", status: ready ? "True" : "False" }],
      containerStatuses: [{
        name: "main",
        ready,
        restartCount,
        state: state === "waiting" ? { waiting: { reason: "CrashLoopBackOff" } } : { running: {} },
      }],
    },
  };
}

/** A page's script that counts the watches that are open, as `window.streams`. */
const COUNTED_STREAMS = `
  const send = fetch;
  window.streams = 0;
  window.fetch = (request, init) => {
    if (String(request.url ?? request).includes("watch=true")) {
      window.streams++;
      request.signal.addEventListener("abort", () => window.streams--);
    }
    return send(request, init);
  };`;

describe("serve() has a page in Chromium that", {
  skip: isHere ? false : "npm has a Chromium for Linux on x64 only; name one by CHROMIUM",
}, () => {
  const server = new InMemoryApiServer();
  const stop = new AbortController();
  let folder: string;
  let served: Served;
  let page: ChromiumPage;

  before(async () => {
    for (let i = 0; i < PODS; i++) {
      const state = i === 7 || i === 8 ? "waiting" : i === 9 ? "completed" : "ready";
      server.create("v1/pods", pod(i, state, i === 4_321 ? 9 : 0));
    }
    for (let i = 0; i < 3; i++) server.create("v1/nodes", { metadata: { name: `worker-${i}` } });
    folder = await mkdtemp(join(tmpdir(), "listwatch-page-"));
    const api = await serveFetch(server.fetch, { signal: stop.signal });
    const path = join(folder, "config");
    await writeFile(path, kubeconfigOf({ server: api.url }));
    const source = { kind: "kubeconfig", path } as const;
    served = await serve({ source, resources: ["pods", "nodes"], port: 0, signal: stop.signal });
    await served.synced();
    page = await ChromiumPage.start(await chromium());
    await page.resize(1280, 860);
  });

  after(async () => {
    const { exceptions = [] } = page ?? {};
    await page?.[Symbol.asyncDispose]();
    stop.abort();
    await served?.finished;
    server.close();
    await rm(folder, { recursive: true, force: true });
    assert.deepEqual(exceptions, [], "what the page has thrown");
  });

  /** Waits until an expression has a value; says what it had otherwise. */
  async function until(expression: string, expected: unknown): Promise<void> {
    const last = await page.evaluate<unknown>(`(async () => {
      const wanted = ${JSON.stringify(JSON.stringify(expected))};
      for (let i = 0; i < 400; i++) {
        const value = (() => ${expression})();
        if (JSON.stringify(value) === wanted) return value;
        await new Promise((resolve) => setTimeout(resolve, 25));
      }
      return (() => ${expression})();
    })()`);
    assert.deepEqual(last, expected);
  }

  const text = (id: string) => `document.getElementById("${id}")?.textContent.trim()`;
  const SEEN = `[...document.querySelectorAll(".grid-row:not([hidden])")]
    .sort((a, b) => a.ariaRowIndex - b.ariaRowIndex)`;
  const firstName = `${SEEN}[0]?.querySelector("a").textContent`;

  async function open(fragment: string): Promise<void> {
    await page.open("about:blank");
    await page.open(`${served.url}/${fragment}`);
  }

  it("shows what is cached, with links on counts and names, and no card of what is not", async () => {
    await open("");
    await until(text("badge-text"), "Live");
    const tile = `[...document.querySelectorAll(".tile")]`;
    await until(`${tile}.map((tile) => tile.querySelector(".figure").textContent)`, ["5,000", "3"]);
    const details =
      `[...document.querySelectorAll(".tile:first-child .detail a")].map((link) => link.textContent)`;
    await until(details, ["2 not ready", "2 CrashLoopBackOff"]);
    await until(`document.getElementById("heading-newest").textContent`, "Newest pods");
    await until(`document.querySelectorAll("#nodes li").length`, 3);
    const unnamed = `[...document.querySelectorAll("a[href]")]
      .filter((link) => link.getClientRects().length > 0 && !link.textContent.trim() && !link.ariaLabel).length`;
    await until(unnamed, 0);
    await page.evaluate(`document.querySelector(".tile .detail a").click()`);
    await until(`location.hash`, "#/api/v1/pods?q=not+ready");
    await until(text("table-total"), "2 of 5,000");
    await until(`${SEEN}.map((row) => row.querySelector("a").textContent)`, ["web-7", "web-8"]);
  });

  it("shows all columns of the resources at any width, also beside a long name", async () => {
    await open("");
    await until(text("badge-text"), "Live");
    for (const width of [1600, 1440, 1366, 1280, 1201, 1200, 1024, 768, 390]) {
      await page.resize(width, 860);
      const hiddenPixels = `(() => {
        document.querySelector("#resources a").textContent = "validatingwebhookconfigurations.admissionregistration.k8s.io";
        for (const cell of document.querySelectorAll("#resources td:nth-child(6)")) cell.textContent = "1234567890";
        const { scrollWidth, clientWidth } = document.querySelector(".resources .wide");
        return scrollWidth - clientWidth;
      })()`;
      assert.equal(await page.evaluate(hiddenPixels), 0, `${width} pixels`);
    }
    await page.resize(1280, 860);
  });

  it("sorts by a column, scrolls to any row, and follows changes", async () => {
    await open("#/api/v1/pods");
    await until(firstName, "web-0");
    const restarts =
      `[...document.querySelectorAll(".grid-head button")].find((b) => b.textContent === "Restarts")`;
    await page.evaluate(`${restarts}.click()`);
    await until(`location.hash`, "#/api/v1/pods?sort=Restarts");
    await page.evaluate(`${restarts}.click()`);
    await until(firstName, "web-4321");
    server.update("v1/pods", pod(1_234, "ready", 12));
    await until(firstName, "web-1234");
    await page.evaluate(`history.go(-2)`);
    await until(firstName, "web-0");
    await page.evaluate(`document.getElementById("rows").scrollTop = 1e9`);
    await until(`${SEEN}.at(-1).querySelector("a").textContent`, "web-4999");
    assert.ok(await page.evaluate<number>(`document.querySelectorAll(".grid-row").length`) < 100);
    await until(text("badge-text"), "Live");
    await page.evaluate(`document.getElementById("rows").scrollTop = 400`);
    await until(firstName, "web-5");
    await page.evaluate(`void (location.hash = "#")`);
    await page.evaluate(`new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn)))`);
    assert.deepEqual(page.exceptions, []);
  });

  it("shows all namespaces again once the search for one is removed, and those of another search", async () => {
    await open("#/api/v1/pods?q=ns%3Ashop");
    await until(text("table-total"), "2,500 of 5,000");
    await page.evaluate(`void (location.hash = "#/api/v1/pods")`);
    await until(text("table-total"), "5,000");
    await page.evaluate(`void (location.hash = "#/api/v1/pods?q=ns%3Ashop+web-8")`);
    await until(`${SEEN}.length > 0 && ${SEEN}.every((row) => row.textContent.includes("shop"))`, true);
    await page.evaluate(`void (location.hash = "#/api/v1/pods?q=ns%3Ablog")`);
    await until(text("table-total"), "2,500 of 5,000");
    await until(`${SEEN}.length > 0 && ${SEEN}.every((row) => row.textContent.includes("blog"))`, true);
  });

  it("is used by the keyboard: search, rows, an object, and back", async () => {
    await open("#/api/v1/pods");
    await until(firstName, "web-0");
    await page.press("/");
    await page.type("ns:shop crash");
    await until(`document.querySelector("#results [aria-selected=true] .key")?.textContent`, "1 pod");
    await page.press("Enter");
    await until(`location.hash`, "#/api/v1/namespaces/shop/pods?q=crash");
    await until(firstName, "web-8");
    await page.evaluate(`document.getElementById("rows").focus()`);
    await page.press("ArrowDown");
    await page.press("Enter");
    await until(text("object-name"), "web-8");
    await until(`document.activeElement.id`, "object-text");
    await until(`document.getElementById("object-text").textContent.includes("CrashLoopBackOff")`, true);
    server.update("v1/pods", pod(8, "ready", 1));
    const changed = `[...document.querySelectorAll("#object-changes .path")].map((path) => path.textContent)`;
    await until(changed, [
      "status.conditions[type=Ready].status",
      "status.containerStatuses[name=main].ready",
      "status.containerStatuses[name=main].restartCount",
      "status.containerStatuses[name=main].state.waiting",
      "status.containerStatuses[name=main].state.running",
    ]);
    await page.press("Escape");
    await until(`location.hash`, "#/api/v1/namespaces/shop/pods?q=crash");
    await until(`document.activeElement.id`, "rows");
    await until(
      `document.getElementById("table-message").textContent.startsWith("No pods in namespace shop")`,
      true,
    );
  });

  it("opens the first result of what was typed when Enter comes before the results", async () => {
    await open("");
    await until(text("badge-text"), "Live");
    await page.press("/");
    await page.type("ns:shop web-4");
    await until(`document.querySelector("#results .key")?.textContent`, "shop / web-4");
    await page.type("0");
    await page.press("Enter");
    await until(`location.hash`, "#/api/v1/namespaces/shop/pods/web-40");
    assert.equal(await page.evaluate(`document.getElementById("results-panel").hidden`), true);
  });

  it("shows no columns of the resource before where it has none to show", async () => {
    await open("#/api/v1/pods");
    await until(firstName, "web-0");
    await page.evaluate(`void (location.hash = "#/api/v1/nodes?q=ns%3Ashop")`);
    await until(text("table-message"), "nodes cannot be searched by this.Remove the filter");
    assert.equal(await page.evaluate(`document.querySelector(".grid-head").textContent`), "");
    await page.evaluate(`void (location.hash = "#/api/v1/nodes")`);
    await until(firstName, "worker-0");
  });

  it("keeps what it shows apart on a page of little height", async () => {
    await page.resize(720, 450);
    await open("#/api/v1/pods");
    await until(`document.querySelectorAll("#states a").length > 0`, true);
    const [filter, states] = ["filter", "states"].map((id) =>
      `document.getElementById("${id}").getBoundingClientRect()`
    );
    assert.ok(await page.evaluate<boolean>(`${filter}.bottom <= ${states}.top`));
    await page.resize(1280, 860);
  });

  it("reads what is cached, and sends no request to the API server for it", async () => {
    await open("");
    await until(`document.querySelectorAll("#nodes li").length`, 3);
    server.clearRequests();
    await page.press("/");
    await page.type("worker-1");
    await until(`document.querySelector("#results .key")?.textContent`, "worker-1");
    assert.deepEqual(server.requests, []);
  });

  it("reads the text of an object again where it could not be read, and copies the text that is shown", async () => {
    await open("#/api/v1/namespaces/shop/pods/web-12");
    const hasRestarts = (count: number) =>
      `document.getElementById("object-text")?.textContent.includes("restartCount: ${count}")`;
    await until(hasRestarts(0), true);
    await page.evaluate(`{
      const send = fetch;
      let left = 1;
      window.fetch = (request, init) => String(request.url ?? request).includes("/pods/web-12") && left-- > 0
        ? Promise.resolve(new Response("too many requests", { status: 429 }))
        : send(request, init);
      navigator.clipboard.writeText = (text) => Promise.resolve(window.copied = text);
    }`);
    const { metadata, ...rest } = pod(12, "ready", 5);
    server.update("v1/pods", { ...rest, metadata: { ...metadata, managedFields: [{ manager: "test" }] } });
    await until(hasRestarts(5), true);
    await page.evaluate(`document.getElementById("object-copy").click()`);
    await until(text("object-copy"), "Copied");
    await until(`copied === document.getElementById("object-text").textContent`, true);
    assert.equal(await page.evaluate(`copied.includes("managedFields")`), false);
    await page.evaluate(`document.getElementById("object-managed").click()`);
    await page.evaluate(`document.getElementById("object-copy").click()`);
    await until(`copied.includes("managedFields")`, true);
  });

  it("begins at the top of another object", async () => {
    await page.resize(390, 400);
    await open("#/api/v1/nodes/worker-1");
    const link = `document.querySelector("#object-owned a:not(.count)")`;
    await until(`${link}?.textContent`, "web-1");
    await page.evaluate(`scrollTo(0, 200)`);
    assert.ok(await page.evaluate<number>(`scrollY`) > 0);
    await page.evaluate(`${link}.click()`);
    await until(text("object-name"), "web-1");
    assert.deepEqual(await page.evaluate(`[scrollY, document.activeElement.id]`), [0, "object-text"]);
    await page.resize(1280, 860);
  });

  it("shows nothing but that of an object that does not exist, and which resource is shown", async () => {
    await page.resize(390, 844);
    await open("#/api/v1/namespaces/shop/pods/none");
    await until(text("object-state"), "It does not exist");
    const cards =
      `[...document.querySelectorAll("#object .card")].filter((card) => card.checkVisibility()).length`;
    assert.equal(await page.evaluate<number>(cards), 0);
    await open("#/api/v1/namespaces/shop/pods/web-8");
    await until(`document.getElementById("object-text")?.textContent.includes("web-8")`, true);
    assert.ok(await page.evaluate<number>(cards) > 2);
    const chosen = `document.querySelector("#menu [aria-current]").getBoundingClientRect()`;
    assert.ok(await page.evaluate<boolean>(`${chosen}.left >= 0 && ${chosen}.right <= innerWidth`));
    await page.resize(1280, 860);
  });

  it("says at its beginning that nothing is cached where a link leads", async () => {
    await open("#/api/v1/namespaces/shop/services?q=web");
    await until(
      text("summary"),
      "Nothing is cached at /api/v1/namespaces/shop/services. All 2 resources are up to date with the server.",
    );
    await page.evaluate(`void (location.hash = "#")`);
    await until(text("summary"), "All 2 resources are up to date with the server.");
  });

  it("says which namespace the newest objects are of, in a cache of several", async () => {
    const source = { kind: "kubeconfig", path: join(folder, "config") } as const;
    server.create("v1/configmaps", { metadata: { name: "a", namespace: "shop" } });
    const resources = ["pods", "configmaps"];
    const token = "a-token-of-some-length";
    const ofTwo = await serve({ source, resources, namespace: ["shop", "blog"], port: 0, token });
    await ofTwo.synced();
    await page.open("about:blank");
    await page.open(ofTwo.url.replace("//", `//reader:${token}@`));
    await until(text("heading-newest"), "Newest pods in shop");
    // A count of none leads nowhere.
    const counts = `[...document.querySelectorAll("#namespaces .number a")]
      .map((link) => link.textContent + (link.hasAttribute("href") ? " link" : ""))`;
    await until(counts, ["2,500 link", "·", "2,500 link", "1 link"]);
    await page.evaluate(`void (location.hash = "#/api/v1/pods")`);
    // The pods of the other one that are not ready are not among the rows.
    const chips = `[...document.querySelectorAll("#states a")].map((link) => link.textContent)`;
    await until(`[${text("table-total")}, ...${chips}]`, ["2,500", "Running2,500"]);
    await page.evaluate(`void (location.hash = "#/api/v1/namespaces/other/pods")`);
    await until(`document.querySelector("#table-message a")?.textContent`, "Namespace shop");
    await until(text("badge-text"), "Refused");
    await ofTwo.stop();
  });

  it("shows no number of rows for a search before they are there", async () => {
    await open("#/api/v1/pods");
    await until(text("table-total"), "5,000");
    await page.evaluate(`{
      const send = fetch;
      const held = new Promise((resolve) => window.release = resolve);
      window.fetch = async (request, init) => {
        if (String(request.url ?? request).includes("watch=true")) await held;
        return await send(request, init);
      };
      location.hash = "#/api/v1/pods?q=none";
    }`);
    const isBusy = `document.getElementById("rows").ariaBusy`;
    await until(`[${text("table-total")}, ${isBusy}]`, ["…", "true"]);
    await page.evaluate(`release()`);
    await until(`[${text("table-total")}, ${isBusy}]`, ["0 of 5,000", "false"]);
    await until(`document.getElementById("table-message").textContent.startsWith("No pods match")`, true);
    server.create("v1/pods", pod(PODS, "ready"));
    await until(text("table-total"), "0 of 5,001");
    server.delete("v1/pods", `shop/web-${PODS}`);
  });

  it("asks again for what was refused once the server answers it again", async () => {
    await open("#/api/v1/pods");
    await until(text("table-total"), "5,000");
    await page.evaluate(`{
      const send = fetch;
      window.fetch = () => Promise.resolve(new Response("no token", { status: 401 }));
      window.allow = () => window.fetch = send;
      location.hash = "#/api/v1/pods?q=web-8";
    }`);
    await until(text("table-message"), "the server answered 401: no tokenRemove the filter");
    // Until the page itself was refused, the badge has no time.
    await until(`/^Refused · /.test(${text("badge-text")})`, true);
    assert.deepEqual(await page.evaluate(`[document.title, ${SEEN}.length]`), [
      "(refused) pods listwatch",
      0,
    ]);
    await page.evaluate(`void allow()`);
    await until(text("table-total"), "111 of 5,000");
    await until(text("badge-text"), "Live");
  });

  it("asks again for what was refused also where the page itself never was", async () => {
    await open("#/api/v1/namespaces/shop/pods/web-2");
    await until(`document.getElementById("object-text")?.textContent.includes("web-2")`, true);
    await page.evaluate(`{
      const send = fetch;
      let refused = 0;
      window.fetch = (request, init) => String(request.url ?? request).includes("watch=true") && refused++ < 2
        ? Promise.resolve(new Response("no token", { status: 401 }))
        : send(request, init);
      location.hash = "#/api/v1/pods?q=web-8";
    }`);
    await until(text("table-message"), "the server answered 401: no tokenRemove the filter");
    await until(`[${text("table-total")}, ${text("badge-text")}]`, ["111 of 5,000", "Live"]);
  });

  it("opens its windows again after it was suspended, as their streams may be dead", async () => {
    await open("#/api/v1/pods?q=web-8");
    await until(text("table-total"), "111 of 5,000");
    await page.evaluate(`{
      const [send, now] = [fetch, Date.now];
      window.opened = 0;
      window.fetch = async (request, init) => {
        if (String(request.url ?? request).includes("watch=true")) window.opened++;
        return await send(request, init);
      };
      Date.now = () => now() + 60_000;
    }`);
    await until(`window.opened`, 1);
    await until(`[${text("table-total")}, ${text("badge-text")}]`, ["111 of 5,000", "Live"]);
  });

  it("holds no connections where it was opened in the background, until it is seen", async () => {
    await page.evaluateFirst(`if (location.search === "?background") {
      window.isSeen = false;
      Object.defineProperty(document, "hidden", { get: () => !window.isSeen });
      ${COUNTED_STREAMS}
    }`);
    await open("?background#/api/v1/pods?q=web-8");
    await until(text("table-name"), "pods");
    await until(`window.streams`, 0);
    await page.evaluate(`{ isSeen = true; document.dispatchEvent(new Event("visibilitychange")); }`);
    await until(text("table-total"), "111 of 5,000");
    assert.equal(await page.evaluate<number>(`streams`), 1);
  });

  it("holds one connection for an object, and shows its events as they come", async () => {
    const source = { kind: "kubeconfig", path: join(folder, "config") } as const;
    const event = (count: number) => ({
      metadata: { name: "web-2.1", namespace: "shop" },
      involvedObject: { kind: "Pod", name: "web-2", namespace: "shop" },
      ...{
        type: "Warning",
        reason: "BackOff",
        message: "Back-off",
        count,
        lastTimestamp: "2026-07-01T00:00:00Z",
      },
    });
    server.create("v1/events", event(1));
    const withEvents = await serve({ source, resources: ["pods", "events"], port: 0 });
    await withEvents.synced();
    await page.evaluateFirst(`if (location.search === "?one") {
      ${COUNTED_STREAMS}
    }`);
    await page.open("about:blank");
    await page.open(`${withEvents.url}/?one#/api/v1/namespaces/shop/pods/web-2`);
    const events = `[...document.querySelectorAll("#object-events li")].map((item) =>
      [...item.children].slice(0, 2).map((part) => part.textContent).join(" "))`;
    await until(events, ["Warning BackOffBack-off"]);
    server.update("v1/events", event(2));
    await until(events, ["2× BackOffBack-off"]);
    assert.equal(await page.evaluate<number>(`streams`), 1);
    await withEvents.stop();
  });

  it("shows the labels that an object has now, and its owners", async () => {
    await open("#/api/v1/namespaces/shop/pods/web-10");
    await until(`document.querySelector("#object-facts .chip")?.textContent`, "app=web");
    await until(text("object-owners"), "ReplicaSet web");
    const before = pod(10, "ready");
    const ownerReferences = before.metadata.ownerReferences.map((owner) => ({ ...owner, name: "other" }));
    const metadata = { ...before.metadata, labels: { app: "other" }, ownerReferences };
    server.update("v1/pods", { ...before, metadata });
    await until(`document.querySelector("#object-facts .chip")?.textContent`, "app=other");
    await until(text("object-owners"), "ReplicaSet other");
  });

  it("says that it is not live while the API server is away", async () => {
    await open("#/api/v1/pods");
    await until(text("badge-text"), "Live");
    const end = server.intercept(answerStatus(503));
    server.closeWatches();
    await until(`${text("badge-text")}?.split(" · ")[0]`, "Stale");
    end();
    await until(text("badge-text"), "Live");
  });
});
