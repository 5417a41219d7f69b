import { silentLogger } from "@listwatch/cache";
import { type ReadApi, readApi } from "@listwatch/cache/hono";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { WatchedStore } from "../../examples/edge/public/store.js";
import { bearerTokenOf } from "../../src/hono/request/bearer_tokens.ts";
import { FakeClock } from "../../src/testing/fake_clock.ts";
import { FakeInformer, object } from "../hono/fake_informer.ts";

const TOKEN = "a-token-of-the-page-0123";

/** A page and a cache, and between them sockets that can be cut. */
class Page {
  readonly clock = new FakeClock();
  readonly informer = FakeInformer.with([object("shop/web-1", 5), object("shop/web-2", 6)], 10);
  readonly api: ReadApi;
  readonly urls: URL[] = [];
  isAway = false;
  isSilent = false;
  #cut = () => {};

  constructor(eventWindow = 100) {
    this.api = readApi({
      resources: [{ informer: this.informer, resource: "v1/pods" }],
      // Not `bearerTokens`: a digest takes real time, and the clock is a fake one.
      authenticate: (c) => bearerTokenOf(c) === TOKEN ? { name: "page" } : undefined,
      allowAnonymous: true,
      clock: this.clock,
      logger: silentLogger,
      eventWindow,
      upgradeWebSocket: () => {
        const response = Object.defineProperty(new Response(), "status", { value: 101 });
        return { response, socket: this.#server! };
      },
    });
  }

  #server: (EventTarget & { readyState: number; send(text: string): void; close(): void }) | undefined;

  newStore(): WatchedStore {
    return new WatchedStore({
      url: "ws://cache.example/api/v1/pods",
      token: TOKEN,
      newSocket: (url: string, protocols: string[]) => this.#newSocket(url, protocols),
      setTimeout: (callback: () => void, ms: number) => this.clock.setTimeout(callback, ms) as number,
      clearTimeout: (timer: number | undefined) => this.clock.clearTimeout(timer ?? -1),
      now: () => this.clock.monotonicNow(),
      random: () => 1,
    });
  }

  /** Cuts the connection. */
  cut(): void {
    this.#cut();
  }

  #newSocket(url: string, protocols: string[]): WebSocket {
    this.urls.push(new URL(url));
    const client: Pick<WebSocket, "onopen" | "onmessage" | "onclose" | "close" | "send"> = {
      onopen: null,
      onmessage: null,
      onclose: null,
      close: () => server.dispatchEvent(new Event("close")),
      send: (data) => server.dispatchEvent(new MessageEvent("message", { data })),
    };
    const server = Object.assign(new EventTarget(), {
      readyState: 1,
      send: (data: string) => {
        if (!this.isSilent) client.onmessage?.call(client as WebSocket, { data } as MessageEvent);
      },
      close: () => this.#cut(),
    });
    this.#cut = () => {
      server.dispatchEvent(new Event("close"));
      client.onclose?.call(client as WebSocket, {} as CloseEvent);
    };
    const headers = { Upgrade: "websocket", "Sec-WebSocket-Protocol": protocols.join(", ") };
    this.clock.setTimeout(() => {
      if (this.isAway) return this.#cut();
      this.#server = server;
      Promise.resolve(this.api.request(url.replace("ws:", "http:"), { headers })).then(({ status }) => {
        if (status !== 101) this.#cut();
        else client.onopen?.call(client as WebSocket, new Event("open"));
      });
    }, 0);
    return client as WebSocket;
  }
}

function keys({ objects }: { readonly objects: ReadonlyMap<string, unknown> }): string[] {
  return Array.from(objects.keys()).sort();
}

describe("WatchedStore of examples/edge", () => {
  it("shows all objects at once, then each change", async () => {
    const page = new Page();
    const store = page.newStore();
    const sizes: number[] = [];
    store.addEventListener("change", () => sizes.push(store.objects.size));
    await page.clock.advance(0);
    assert.deepEqual([store.state, keys(store)], ["live", ["shop/web-1", "shop/web-2"]]);
    assert.equal(sizes[0], 2);
    page.informer.put(object("shop/web-3", 11));
    page.informer.remove("shop/web-1", 12);
    await page.clock.advance(0);
    assert.deepEqual(keys(store), ["shop/web-2", "shop/web-3"]);
    assert.equal(store.resourceVersion, "12");
    store.stop();
    await page.clock.advance(0);
    assert.deepEqual(page.api.openWatches(), [0]);
    assert.equal(page.clock.pendingTimers, 0);
  });

  it("keeps its content while it is cut off, and resumes where it was", async () => {
    const page = new Page();
    const store = page.newStore();
    await page.clock.advance(0);
    page.isAway = true;
    page.cut();
    assert.equal(store.state, "stale");
    page.informer.remove("shop/web-1", 11);
    await page.clock.advance(10_000);
    assert.deepEqual([store.state, keys(store)], ["stale", ["shop/web-1", "shop/web-2"]]);
    assert.ok(store.ageMs >= 10_000);
    page.isAway = false;
    await page.clock.advance(30_000);
    assert.deepEqual([store.state, keys(store)], ["live", ["shop/web-2"]]);
    assert.equal(page.urls.at(-1)!.searchParams.get("resourceVersion"), "10");
    store.stop();
  });

  it("lists again after 410, and shows the old content until it has the new one", async () => {
    const page = new Page(2);
    const store = page.newStore();
    await page.clock.advance(0);
    page.isAway = true;
    page.cut();
    for (let i = 0; i < 10; i++) page.informer.put(object(`shop/new-${i}`, 11 + i));
    page.informer.remove("shop/web-1", 30);
    page.isAway = false;
    const sizes: number[] = [];
    store.addEventListener("change", () => sizes.push(store.objects.size));
    await page.clock.advance(60_000);
    assert.deepEqual([store.state, store.objects.size], ["live", 11]);
    assert.ok(!keys(store).includes("shop/web-1"));
    assert.ok(sizes.every((size) => size === 2 || size === 11), String(sizes));
    store.stop();
  });

  it("confirms what it has read, so that a Worker can send more than 16 MiB", async () => {
    const page = new Page(3_000);
    const note = "x".repeat(10_000);
    for (let i = 0; i < 2_000; i++) page.informer.put(object(`shop/p-${i}`, 11 + i, { note }));
    const store = page.newStore();
    await page.clock.advance(30_000);
    assert.deepEqual([store.state, store.objects.size], ["live", 2_002]);
    assert.equal(page.urls.length, 1);
    store.stop();
  });

  it("opens a new connection when nothing comes, not even bookmarks", async () => {
    const page = new Page();
    const store = page.newStore();
    await page.clock.advance(0);
    page.isSilent = true;
    await page.clock.advance(89_000);
    assert.equal(page.urls.length, 1);
    page.isSilent = false;
    await page.clock.advance(5_000);
    assert.equal(page.urls.length, 2);
    assert.equal(store.state, "live");
    store.stop();
  });
});
