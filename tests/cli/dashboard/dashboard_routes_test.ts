import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { silentLogger } from "@listwatch/cache";
import type { ReadApiOptions } from "@listwatch/cache/hono";
import { newReadApiState } from "../../../src/hono/read_api_state.ts";
import { Dashboard, dashboardRoutes } from "../../../src/cli/dashboard/dashboard.ts";
import { settle } from "../../../src/util/clock.ts";
import { podOn, Reflection } from "./reflected.ts";

/** The routes of a page over an in-memory API server. */
class Routes {
  readonly #reflection = new Reflection(["v1/pods"]);
  readonly clock = this.#reflection.clock;
  readonly #dashboard = new Dashboard(this.#reflection.resources, {
    cluster: { name: "test", server: "http://in-memory" },
    watches: () => 0,
    clock: this.clock,
    logger: silentLogger,
  });
  readonly stream = this.#dashboard.stream;
  readonly #stop = new AbortController();
  readonly state;
  readonly #app;

  constructor(limits: Pick<ReadApiOptions, "maxReaderBytes" | "maxWatches">) {
    const { clock } = this;
    this.state = newReadApiState({
      resources: this.#reflection.resources,
      allowAnonymous: true,
      clock,
      logger: silentLogger,
      ...limits,
      signal: this.#stop.signal,
    });
    const asked = [{ verb: "get", path: "/" }] as never;
    this.#app = dashboardRoutes(this.state, { dashboard: this.#dashboard, asked, paths: ["/api"] });
  }

  static async synced(maxReaderBytes = 100_000_000, maxWatches = 100): Promise<Routes> {
    const routes = new Routes({ maxReaderBytes, maxWatches });
    routes.#reflection.server.create("v1/pods", podOn("web-1", "shop", "n1", true));
    await routes.#reflection.sync();
    return routes;
  }

  /** A pod that changes: there is something to send. */
  async change(name: string): Promise<void> {
    this.#reflection.server.create("v1/pods", podOn(name, "shop", "n1", true));
    await this.#reflection.settle();
    await this.clock.advance(500);
  }

  async request(path: string, init?: RequestInit, completed?: Promise<void>): Promise<Response> {
    return await this.#app.request(path, init, completed && { completed });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    this.#dashboard.close();
    await this.#reflection[Symbol.asyncDispose]();
    assert.deepEqual([this.state.readers.count, this.stream.size, this.clock.pendingTimers], [0, 0, 0]);
  }
}

const html = { headers: { Accept: "text/html" } };
const answers = [
  ["/", html],
  ["/", {}],
  ["/dashboard/style.css", {}],
  ["/dashboard/script.js", {}],
  ["/dashboard/search?q=web", {}],
] as const;

describe("dashboardRoutes", () => {
  for (const [path, init] of answers) {
    const what = init === html ? "the page" : path;
    it(`count the bytes of ${what} for its reader until they are sent, and refuse it once all are spent`, async () => {
      await using routes = await Routes.synced();
      const { readers } = routes.state;
      const { promise: sent, resolve: send } = Promise.withResolvers<void>();
      const text = await (await routes.request(path, init, sent)).text();
      assert.equal(readers.heldBytes, text.length);
      send();
      await settle();
      assert.equal(readers.heldBytes, 0);

      await using poor = await Routes.synced(text.length - 1);
      assert.equal((await poor.request(path, init, sent)).status, 429);
    });
  }

  it("count what waits for a page that does not read, and end its stream once all bytes are spent", async () => {
    await using routes = await Routes.synced(20_000);
    const { readers } = routes.state;
    const response = await routes.request("/dashboard/events");
    assert.ok(readers.heldBytes > 0);
    const reader = response.body!.getReader();
    const read = await reader.read();
    assert.match(new TextDecoder().decode(read.value), /^retry: 1000\n\ndata: \{/);
    assert.equal(readers.heldBytes, 0);
    await routes.change("web-2");
    assert.ok(readers.heldBytes > 0);
    const unread: Promise<Response>[] = [];
    for (let i = 0; i < 100; i++) unread.push(routes.request("/dashboard/events"));
    const all = await Promise.all(unread);
    assert.ok(readers.heldBytes <= 20_000);
    assert.ok(routes.stream.size < 100);
    const ends = await Promise.all(all.map(({ body }) => body!.getReader().read().then(() => "", String)));
    const spent = "Error: the bytes for unread answers are spent, and the client has read least of the page";
    assert.deepEqual(new Set(ends), new Set(["", spent]));
    for (const watch of readers.watches) watch.stop();
    assert.equal(readers.heldBytes, 0);
  });

  it("open no stream for a HEAD, which is no watch, and say what a GET would", async () => {
    await using routes = await Routes.synced(100_000_000, 1);
    const { readers } = routes.state;
    const page = await routes.request("/dashboard/events");
    assert.equal((await routes.request("/dashboard/events")).status, 429);
    const pages = readers.heldBytes;
    const { promise: sent, resolve: send } = Promise.withResolvers<void>();
    const response = await routes.request("/dashboard/events", { method: "HEAD" }, sent);
    assert.equal(response.status, 200);
    const typesOf = ({ headers }: Response) => [headers.get("Content-Type"), headers.get("Cache-Control")];
    assert.deepEqual(typesOf(response), typesOf(page));
    assert.equal(await response.text(), "");
    // The request itself is one until its answer is sent.
    assert.deepEqual([readers.count, readers.watches.size, routes.stream.size], [2, 1, 1]);
    assert.equal(readers.heldBytes, pages);
    send();
    await page.body!.cancel();
    assert.deepEqual([readers.watches.size, readers.heldBytes], [0, 0]);
  });
});
