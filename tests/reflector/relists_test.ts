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

  it("counts that hour from the last loss, also of one that a relist which is due repairs", () => {
    let losses = NO_LOSSES;
    for (let i = 0; i < 3; i++) losses = { ...afterLoss(losses, 0, false), relistDueMs: undefined };
    losses = afterLoss(afterLoss(losses, 0, false), 1_000, false);
    const next = afterLoss({ ...losses, relistDueMs: undefined }, 3_600_001, false);
    assert.equal(next.relistDueMs, 3_600_001 + 960_000);
  });

  it("makes a relist due at once where objects are missing, and then as before", () => {
    const losses = afterLoss(NO_LOSSES, 5, true);
    assert.equal(losses.relistDueMs, 5);
    assert.equal(afterLoss({ ...losses, relistDueMs: undefined }, 5, false).relistDueMs, 60_005);
  });
});

describe("rhythmAfterWatch", () => {
  const silenceMs = 90_000;

  /** Whether everything is to be listed after the last of some watches; `list` is a list between two. */
  function isDueAfter(
    ...past: (readonly [bookmarks: number, lastedMs: number] | "list" | "list by bookmark")[]
  ): boolean {
    let rhythm = NO_RHYTHM;
    let isDue = false;
    for (const one of past) {
      if (typeof one === "string") {
        rhythm = rhythmAfterList(rhythm, { byBookmark: one !== "list", wasAway: false });
        continue;
      }
      const [bookmarks, lastedMs] = one;
      ({ rhythm, isDue } = rhythmAfterWatch(rhythm, { bookmarks, lastedMs, silenceMs }));
    }
    return isDue;
  }

  it("lists after one silent watch where bookmarks came, and after two where only one did", () => {
    assert.ok(isDueAfter([2, 90_000], [0, 90_000]));
    assert.ok(isDueAfter([1, 90_000], [1, 90_000], [0, 90_000]), "one on each of two watches");
    assert.ok(!isDueAfter([1, 90_000], [0, 90_000]));
    assert.ok(isDueAfter([1, 90_000], [0, 90_000], [0, 90_000]));
    assert.ok(!isDueAfter([0, 90_000], [0, 90_000], [0, 90_000]), "there were none before");
  });

  it("adds up watches that were too short for a bookmark", () => {
    assert.ok(!isDueAfter([2, 90_000], [0, 89_999]));
    assert.ok(isDueAfter([2, 90_000], [0, 45_000], [0, 45_000]));
  });

  it("counts a list that ended with a bookmark as one, until everything was listed for their silence", () => {
    assert.ok(isDueAfter("list by bookmark", [1, 90_000], [0, 90_000]));
    const silent = [[2, 90_000], [0, 90_000]] as const;
    assert.ok(!isDueAfter(...silent, "list by bookmark", "list by bookmark", [0, 90_000]));
  });

  it("lists once for the silence, and again only when bookmarks came in between", () => {
    const silent = [[2, 90_000], [0, 90_000]] as const;
    assert.ok(!isDueAfter(...silent, "list", [0, 90_000], [0, 90_000]));
    assert.ok(isDueAfter(...silent, "list", [2, 90_000], [0, 90_000]));
  });

  it("starts to count again with a list", () => {
    assert.ok(!isDueAfter([2, 90_000], [0, 45_000], "list", [0, 45_000]), "the time");
    assert.ok(!isDueAfter([1, 90_000], [0, 90_000], "list", [0, 90_000]), "the silent watches");
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
