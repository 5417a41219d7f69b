import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { alive, checksOf, ready } from "../../../src/hono/health/health.ts";
import { readApiOf } from "../../../src/hono/read_api.ts";
import { newReadApiState } from "../../../src/hono/read_api_state.ts";
import { parseResource } from "../../../src/meta/resource.ts";
import { FakeClock } from "../../../src/testing/fake_clock.ts";
import { FakeInformer, object } from "../fake_informer.ts";

interface State {
  readonly phase?: string;
  readonly lagMs?: number;
  readonly hasNoBookmarks?: boolean;
  readonly synced?: boolean;
  readonly isRestored?: boolean;
}

function problemOf(state: State, maxLagMs?: number): string | undefined {
  const { phase = "watching", lagMs, hasNoBookmarks = false, synced = true, isRestored = false } = state;
  const informer = Object.assign(new FakeInformer(), {
    synced,
    lagMs: () => lagMs,
    isRestored: () => isRestored,
    status: () => ({ phase, hasNoBookmarks }),
  });
  const resource = { ...parseResource("v1/pods"), kind: "Pod", namespaced: true };
  const served = [{ resource, informer: informer as never }];
  const [{ name, problem }, ...more] = checksOf(served, { isDraining: false }, maxLagMs);
  assert.deepEqual([name, more], ["informer/pods", []]);
  return problem;
}

describe("checksOf", () => {
  it("lets an informer be without news for as long as bookmarks and watches take, or as the options say", () => {
    const bounds: readonly (readonly [state: State, maxLagMs: number | undefined, most: number])[] = [
      [{}, undefined, 120_000],
      [{ phase: "listing" }, undefined, 120_000],
      [{}, 5_000, 5_000],
      [{}, 0, 0],
      // Between two watches, of a server that sends no bookmarks.
      [{ phase: "backing off", hasNoBookmarks: true }, undefined, 660_000],
      [{ phase: "watching", hasNoBookmarks: true }, 5_000, 5_000],
      [{ phase: "backing off", hasNoBookmarks: true }, 5_000, 5_000],
    ];
    for (const [state, maxLagMs, most] of bounds) {
      assert.equal(problemOf({ ...state, lagMs: most }, maxLagMs), undefined);
      const problem = problemOf({ ...state, lagMs: most + 1_000 }, maxLagMs) ?? "";
      assert.match(problem, /^no news from the API server for \S+ s, 1 s more than the maximum of /);
      assert.ok(problem.endsWith(`; ${state.phase ?? "watching"}`), problem);
    }
    assert.equal(
      problemOf({ hasNoBookmarks: true, lagMs: 10 ** 9 }),
      undefined,
      "an open watch is news enough",
    );
    assert.equal(
      problemOf({ lagMs: 23_456 }, 3_456),
      "no news from the API server for 23 s, 20 s more than the maximum of 3.5 s; watching",
    );
    assert.equal(problemOf({ lagMs: 10 ** 9 }, Infinity), undefined);
    assert.equal(problemOf({}), undefined, "nothing is known of the lag");
  });

  it("says of one that has no content of its own yet, or has stopped, what it is", () => {
    assert.equal(problemOf({ synced: false, phase: "listing" }), "not synced, listing");
    assert.equal(
      problemOf({ synced: false, isRestored: true }),
      "a snapshot, not confirmed by the API server, watching",
    );
    assert.equal(problemOf({ phase: "stopped", lagMs: 0 }), "stopped");
  });

  it("says that a server is about to stop", () => {
    assert.deepEqual(
      checksOf([], { isDraining: true }, undefined).map(({ name }) => name),
      ["shutdown"],
    );
  });
});

describe("readApi, its paths of health", () => {
  for (const path of ["/healthz", "/livez", "/readyz", "/readyz/ping", "/version"]) {
    it(`give back the memory of what no reader uses any more, at ${path}`, async () => {
      const clock = new FakeClock();
      const informer = FakeInformer.with([object("a/1", 1)], 1_000);
      const resources = [{ informer, resource: "v1/pods" }];
      const state = newReadApiState({ resources, allowAnonymous: true, clock });
      const api = readApiOf(state);
      const kept = () => state.followers.kept.size;
      for (let i = 0; i < 6; i++) {
        await (await api.request(`/api/v1/pods?limit=1&sortBy=metadata.labels.x${i}`)).text();
      }
      assert.equal(kept(), 6);
      await clock.advance(60_000);
      await (await api.request(path)).text();
      assert.equal(kept(), 4, "the last four are kept for longer");
    });
  }
});

describe("alive", () => {
  it("names what was checked where that is wanted", async () => {
    assert.equal(await alive().text(), "ok");
    assert.equal(await alive("/livez").text(), "[+]ping ok\nlivez check passed\n");
  });
});

describe("ready", () => {
  it("is 200 while nothing has a problem, and shows problems to those only that may see their names", async () => {
    const said = async (problem: string | undefined, verbose: boolean, mayName: boolean) => {
      const response = ready([{ name: "informer/pods", problem }], { verbose, mayName });
      assert.equal(response.headers.get("Cache-Control"), "no-cache, private");
      return `${response.status} ${(await response.text()).trimEnd()}`;
    };
    assert.equal(await said(undefined, false, false), "200 ok");
    const passed = "200 [+]ping ok\n[+]informer/pods ok\nreadyz check passed";
    assert.equal(await said(undefined, true, true), passed);
    for (const verbose of [false, true]) {
      assert.equal(await said("stopped", verbose, false), "503 readyz check failed");
      const failed = "503 [+]ping ok\n[-]informer/pods failed: stopped\nreadyz check failed";
      assert.equal(await said("stopped", verbose, true), failed);
    }
  });

  it("fails while one informer does, whatever those after it say", () => {
    const checks = ["not synced, listing", undefined].map((problem, i) => ({
      name: `informer/${i}`,
      problem,
    }));
    for (const all of [checks, checks.toReversed()]) {
      assert.equal(ready(all, { verbose: false, mayName: false }).status, 503);
    }
  });
});
