import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { freshnessOf, type Shown } from "../../../src/cli/dashboard/browser/freshness.ts";
import type { ResourceState } from "../../../src/cli/dashboard/dashboard_message.ts";

function resource(change: Partial<ResourceState> = {}): ResourceState {
  return { name: "pods", synced: true, attempt: 0, lagMs: 1_000, ...change } as ResourceState;
}

const LIVE: Shown = {
  ageMs: 500,
  isLost: false,
  isRefused: false,
  resources: [resource()],
  window: "live",
  nowMs: 1_000_000,
};

describe("freshnessOf", () => {
  it("is live only while everything that is shown is", () => {
    assert.deepEqual(freshnessOf(LIVE), { level: "live", text: "Live" });
    const cases: readonly [Partial<Shown>, string, RegExp][] = [
      [{ isLost: true }, "lost", /^Connection lost/],
      [{ isLost: true, isRefused: true }, "lost", /^Refused · 1 s$/],
      [{ ageMs: 11_000 }, "lost", /^Connection lost · 11 s$/],
      [{ window: "refused" }, "lost", /^Refused$/],
      [{ window: "stale" }, "stale", /^Stale$/],
      [{ window: "closed" }, "stale", /^Stale$/],
      [{ window: "connecting" }, "loading", /^Loading$/],
      [{ resources: [resource(), resource({ attempt: 1, lagMs: 30_000 })] }, "stale", /^Stale · 31 s old$/],
      [{ resources: [resource({ lagMs: 130_000 })] }, "stale", /^Stale · 2 min old$/],
      [{ resources: [resource({ synced: false })] }, "loading", /^Syncing$/],
      [{ resources: [resource({ synced: false, attempt: 2 })] }, "stale", /^No contact$/],
      [
        { resources: [resource({ synced: false, restored: { resourceVersion: "1", savedAtMs: 940_000 } })] },
        "stale",
        /^Snapshot · 1 min old$/,
      ],
    ];
    for (const [change, level, text] of cases) {
      const found = freshnessOf({ ...LIVE, ...change });
      assert.equal(found.level, level, JSON.stringify(change));
      assert.match(found.text, text);
    }
  });
});
