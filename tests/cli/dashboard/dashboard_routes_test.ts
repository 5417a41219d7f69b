import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { silentLogger } from "@listwatch/cache";
import { newReadApiState } from "../../../src/hono/read_api_state.ts";
import { dashboardRoutes, resourceState } from "../../../src/cli/dashboard/dashboard.ts";
import { settle } from "../../../src/util/clock.ts";
import { podOn, Reflection } from "./reflected.ts";

/** The routes of a page over an in-memory API server. */
class Routes {
  readonly #reflection = new Reflection(["v1/pods"]);
  readonly #stop = new AbortController();
  readonly state;
  readonly #app;

  constructor(maxReaderBytes: number) {
    const { clock, resources } = this.#reflection;
    this.state = newReadApiState({
      resources,
      allowAnonymous: true,
      clock,
      logger: silentLogger,
      maxReaderBytes,
      signal: this.#stop.signal,
    });
    const asked = [{ verb: "get", path: "/" }] as never;
    const cluster = { name: "test", server: "http://in-memory" };
    const stateNow = () => (
      { nowMs: clock.now(), cluster, resources: resources.map((of) => resourceState(of, 0)) }
    );
    this.#app = dashboardRoutes(this.state, stateNow, asked, ["/api"]);
  }

  static async synced(maxReaderBytes = 100_000_000): Promise<Routes> {
    const routes = new Routes(maxReaderBytes);
    routes.#reflection.server.create("v1/pods", podOn("web-1", "shop", "n1", true));
    await routes.#reflection.sync();
    return routes;
  }

  async request(path: string, init?: RequestInit, completed?: Promise<void>): Promise<Response> {
    return await this.#app.request(path, init, completed && { completed });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#reflection[Symbol.asyncDispose]();
    assert.equal(this.state.readers.count, 0);
  }
}

const html = { headers: { Accept: "text/html" } };
const answers = [
  ["/", html],
  ["/", {}],
  ["/dashboard/style.css", {}],
  ["/dashboard/script.js", {}],
  ["/dashboard/state", {}],
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

  it("answer the state as it is now, to be kept nowhere", async () => {
    await using routes = await Routes.synced();
    const response = await routes.request("/dashboard/state");
    assert.equal(response.headers.get("Cache-Control"), "no-store");
    const { cluster, resources } = await response.json();
    assert.equal(cluster.name, "test");
    assert.deepEqual(
      resources.map(({ name, objects }: { name: string; objects: number }) => [name, objects]),
      [
        ["pods", 1],
      ],
    );
  });
});
