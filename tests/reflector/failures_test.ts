import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { NetworkError, StatusError } from "@listwatch/cache";
import { newStatus } from "@listwatch/cache/client";
import { codeOf, delayAfter, NO_FAILURES, VeryShortWatchError } from "../../src/reflector/failures.ts";

const expired = new StatusError(newStatus(410, "Expired", "too old resource version"));
const unavailable = new StatusError(newStatus(503, "ServiceUnavailable", "down"));

/** The delays after one failure and the next, that double from 800 ms. */
function newPacing(): { delayAfter: (failure: unknown) => number } {
  let doubledMs = 400;
  const backoff = { nextDelayMs: () => (doubledMs *= 2), reset: () => void (doubledMs = 400) };
  let failures = NO_FAILURES;
  return {
    delayAfter: (failure) => {
      const paced = delayAfter({ ...failures, failure }, 0, { backoff, random: () => 0 });
      failures = paced.failures;
      return paced.delayMs;
    },
  };
}

describe("codeOf", () => {
  it("is the reason of a Status, else its HTTP code; the failure of the network; or the code of an error", () => {
    const coded = new Error("outer", { cause: new NetworkError("DeadPeer", "silence") });
    const errors = [expired, new StatusError(newStatus(503, "", "down")), coded, new Error("odd"), "odd"];
    assert.deepEqual(errors.map(codeOf), ["Expired", "503", "DeadPeer", "Other", "Other"]);
    assert.equal(codeOf(new VeryShortWatchError("pods")), "VeryShortWatch");
  });
});

describe("delayAfter: delays", () => {
  it("are short after a 410, however long they have grown: the server is well, and waits for a list", () => {
    const pacing = newPacing();
    for (let i = 0; i < 5; i++) pacing.delayAfter(unavailable);
    assert.equal(pacing.delayAfter(expired), 800);
    assert.equal(pacing.delayAfter(unavailable), 51_200);
  });

  it("are short for three 410 in a row, and grow when it continues", () => {
    const pacing = newPacing();
    for (let i = 0; i < 5; i++) pacing.delayAfter(unavailable);
    const delays = [1, 2, 3, 4].map(() => pacing.delayAfter(expired));
    assert.deepEqual(delays, [800, 800, 800, 204_800]);
  });

  it("are what the server asks for, up to ten minutes", () => {
    const asked = (retryAfterMs: number) =>
      newPacing().delayAfter(new StatusError(unavailable.status, { retryAfterMs }));
    assert.deepEqual([0, 20_000, 600_000, 600_001, 1e23, Infinity].map(asked), [
      800,
      20_000,
      600_000,
      600_000,
      600_000,
      600_000,
    ]);
  });
});
