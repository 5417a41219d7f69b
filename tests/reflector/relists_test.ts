import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  afterLoss,
  NO_LOSSES,
  NO_RHYTHM,
  rhythmAfterList,
  rhythmAfterWatch,
} from "../../src/reflector/relists.ts";

describe("afterLoss", () => {
  it("makes a relist due after a minute, and twice as long each time that losses continue, up to half an hour", () => {
    let losses = NO_LOSSES;
    const delays: number[] = [];
    for (let nowMs = 0; nowMs < 7_000; nowMs += 1_000) {
      losses = afterLoss(afterLoss(losses, nowMs, false), nowMs + 1, false); // one list replaces all
      delays.push(losses.relistDueMs! - nowMs);
      losses = { ...losses, relistDueMs: undefined };
    }
    assert.deepEqual(delays, [60_000, 120_000, 240_000, 480_000, 960_000, 1_800_000, 1_800_000]);
  });

  it("makes a relist due after a minute again when nothing was lost for an hour", () => {
    let losses = NO_LOSSES;
    for (let i = 0; i < 3; i++) losses = { ...afterLoss(losses, 0, false), relistDueMs: undefined };
    assert.equal(afterLoss(losses, 3_600_001, false).relistDueMs, 3_660_001);
  });

  it("makes a relist due at once where objects are missing, and then as before", () => {
    const losses = afterLoss(NO_LOSSES, 5, true);
    assert.equal(losses.relistDueMs, 5);
    assert.equal(afterLoss({ ...losses, relistDueMs: undefined }, 5, false).relistDueMs, 60_005);
  });
});

describe("rhythmAfterList", () => {
  it("expects bookmarks once more where tries had failed: that explains the silence", () => {
    const silent = { bookmarks: 0, lastedMs: 90_000, silenceMs: 90_000 };
    const { rhythm } = rhythmAfterWatch(NO_RHYTHM, silent);
    assert.equal(rhythm.isExpected, false);
    const byBookmark = true;
    assert.equal(rhythmAfterList(rhythm, { byBookmark, wasAway: false }).isExpected, false);
    const back = rhythmAfterList(rhythm, { byBookmark, wasAway: true });
    assert.equal(back.isExpected, true);
    assert.equal(rhythmAfterWatch(back, silent).rhythm.isExpected, false, "one silent watch is enough");
  });
});
