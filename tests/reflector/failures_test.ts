import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { NetworkError, StatusError } from "@listwatch/cache";
import { newStatus } from "@listwatch/cache/client";
import {
  afterInternalError,
  afterRefused,
  codeOf,
  delayAfter,
  type Failures,
  isPermanent,
  NEW_TRIAL,
  NO_FAILURES,
  outageLine,
  recoveryLine,
  SuspendedError,
  trialAfterList,
  tryFailed,
  VeryShortWatchError,
} from "../../src/reflector/failures.ts";

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

describe("tryFailed", () => {
  const tooMany = new StatusError(newStatus(429, "TooManyRequests", "slow down"));
  const causes = [{ reason: "ResourceVersionTooLarge" }];
  const tooLarge = new StatusError(newStatus(504, "Timeout", "Too large resource version: 20", { causes }));

  /** Whether an error is reported that comes at these times. */
  function reported(error: Error, ...timesMs: number[]): boolean[] {
    let failures = NO_FAILURES;
    return timesMs.map((monotonicMs) => {
      const now = { monotonicMs, wallMs: monotonicMs };
      const next = tryFailed(failures, error, { now, endsCycle: false });
      failures = next.failures;
      return next.isReported;
    });
  }

  it("is reported at once, but for what passes as a rule, and that only after half a minute", () => {
    assert.deepEqual(reported(unavailable, 0), [true]);
    assert.deepEqual(reported(tooMany, 0, 29_999, 30_000), [false, false, true]);
    assert.deepEqual(reported(expired, 0, 30_000), [false, false], "an expired version is no outage");
    assert.deepEqual(reported(tooLarge, 0, 30_000), [false, true]);
  });

  it("begins an outage, whose lines say since when, how often, and whether waiting helps", () => {
    const line = (error: Error, delayMs?: number) =>
      outageLine(tryFailed(NO_FAILURES, error, { now, endsCycle: true }).failures, delayMs);
    const now = { monotonicMs: 1_000, wallMs: 5_000 };
    const notFound = new StatusError(newStatus(404, "NotFound", "no such resource"));
    assert.equal(
      line(unavailable, 800).line,
      "lost the server: the server answered 503 ServiceUnavailable (down); next try in 0.8 s, and so on until it is back",
    );
    assert.equal(
      line(notFound, 12_345).line,
      "the server refuses: the server answered 404 NotFound (no such resource); next try in 12 s, but retries cannot fix it",
    );
    const internal = new StatusError(newStatus(500, "InternalError", "etcd"));
    assert.equal(line(internal).line, "lost the server: the server answered 500 InternalError (etcd)");
    assert.equal(
      line(new Error("token() threw: no such file"), 1_000).line,
      "the request failed: token() threw: no such file; next try in 1.0 s, and so on until it is back",
    );
    const { failures, line: busy } = line(tooMany);
    assert.equal(busy, "lost the server: the server answered 429 TooManyRequests (slow down)");
    assert.equal(outageLine(failures, 800).line, undefined, "it was said");
    assert.equal(failures.outage?.sinceTimeMs, 5_000);
    const later = { monotonicMs: 61_000, wallMs: 65_000 };
    assert.equal(recoveryLine(failures, later), "the server is back after 60 s and 1 failed try");
    const again = tryFailed(failures, unavailable, { now: later, endsCycle: true }).failures;
    assert.equal(recoveryLine(again, later), "the server is back after 60 s and 2 failed tries");
    assert.equal(again.outage?.sinceTimeMs, 5_000);
    const silent = tryFailed(NO_FAILURES, tooMany, { now, endsCycle: true }).failures;
    assert.equal(recoveryLine(silent, later), undefined, "its beginning is not in the log");
  });
});

describe("tryFailed with versions that expired", () => {
  const now = { wallMs: 5_000, monotonicMs: 1_000 };
  const after = (before: Partial<Failures>, error: Error) =>
    tryFailed({ ...NO_FAILURES, ...before }, error, { now, endsCycle: true }).failures;

  it("begins an outage with the fourth in a row", () => {
    const tries = [0, 1, 2, 3].map((expiries) => after({ expiries }, expired).outage?.failedTries);
    assert.deepEqual(tries, [undefined, undefined, undefined, 1]);
  });

  it("leaves an outage that is there as it is", () => {
    const { outage } = after({}, unavailable);
    assert.deepEqual(after({ outage }, expired).outage, outage);
  });
});

describe("delayAfter with a failure that names a time", () => {
  it("takes it into account once: the failure belongs to the delay that followed it", () => {
    const busy = new StatusError(newStatus(503, "ServiceUnavailable", "busy"), { retryAfterMs: 5_000 });
    const pacing = { backoff: { nextDelayMs: () => 800 }, random: () => 0 };
    const first = delayAfter({ ...NO_FAILURES, failure: busy }, 0, pacing);
    const second = delayAfter(first.failures, 5_000, pacing);
    assert.deepEqual([first.delayMs, second.delayMs], [5_000, 800]);
  });
});

describe("SuspendedError", () => {
  it("says for how many seconds the program was suspended", () => {
    assert.match(new SuspendedError(90_400).message, /^the program was suspended for 90 s: /);
  });
});

describe("afterInternalError", () => {
  it("is answered by a next watch for as long as that is allowed; the error after that begins again", () => {
    const internal = new StatusError(newStatus(500, "InternalError", "etcd"));
    let failures = NO_FAILURES;
    const retries = [0, 10_000, 10_001, 10_002].map((nowMs) => {
      const next = afterInternalError(failures, internal, { nowMs, maxRetryMs: 10_000 });
      failures = next.failures;
      return next.retries;
    });
    assert.deepEqual(retries, [true, true, false, true]);
  });

  it("continues a series for as long as no minute is without an error", () => {
    const internal = new StatusError(newStatus(500, "InternalError", "etcd"));
    const lastOf = (times: readonly number[]) => {
      let failures = NO_FAILURES;
      let isAnswered = true;
      for (const nowMs of times) {
        const next = afterInternalError(failures, internal, { nowMs, maxRetryMs: 100_000 });
        ({ failures, retries: isAnswered } = next);
      }
      return isAnswered;
    };
    assert.equal(lastOf([0, 50_000, 100_000, 100_001]), false);
    assert.equal(lastOf([0, 60_000, 100_001]), true);
  });
});

describe("trialAfterList", () => {
  it("counts the minute of refused streams from the first one since a list was stored, not since one failed", () => {
    const now = { monotonicMs: 30_000, wallMs: 30_000 };
    const afterList = (failed: boolean) => {
      const trial = trialAfterList(afterRefused(NEW_TRIAL, 0, "busy"), now, { failed });
      return afterRefused(trial, 60_000, "busy").suspicion?.cause;
    };
    assert.equal(afterList(false), undefined);
    assert.equal(afterList(true), "refused");
  });
});

describe("isPermanent", () => {
  it("is a request that has to be changed, or a certificate that is not trusted", () => {
    const status = (code: number, reason = "") => new StatusError(newStatus(code, reason, "no"));
    for (const code of [400, 404, 405]) assert.ok(isPermanent(status(code)), `${code}`);
    for (const code of [401, 403, 409, 410, 429, 500, 503]) assert.ok(!isPermanent(status(code)), `${code}`);
    assert.ok(!isPermanent(status(400, "Expired")));
    assert.ok(isPermanent(new NetworkError("UntrustedCertificate", "no")));
    assert.ok(!isPermanent(new NetworkError("ConnectionRefused", "no")));
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

  it("start again after two minutes of health, and no sooner", () => {
    let resets = 0;
    const backoff = { nextDelayMs: () => 800, reset: () => void resets++ };
    const resetsAt = (nowMs: number, healthySinceMs?: number) => {
      resets = 0;
      delayAfter({ ...NO_FAILURES, healthySinceMs }, nowMs, { backoff, random: () => 0 });
      return resets;
    };
    assert.equal(resetsAt(500_000), 0, "no watch was open");
    assert.deepEqual([119_999, 120_000].map((ms) => resetsAt(5_000 + ms, 5_000)), [0, 1]);
  });

  it("grow after the first one that follows health", () => {
    let resets = 0;
    const backoff = { nextDelayMs: () => 800, reset: () => void resets++ };
    let failures: Failures = { ...NO_FAILURES, healthySinceMs: 0 };
    for (const nowMs of [120_000, 121_000, 500_000]) {
      ({ failures } = delayAfter(failures, nowMs, { backoff, random: () => 0 }));
    }
    assert.equal(resets, 1);
  });

  it("are the first one again right after health", () => {
    const calls: string[] = [];
    const backoff = {
      nextDelayMs: () => {
        calls.push("next");
        return 800;
      },
      reset: () => void calls.push("reset"),
    };
    delayAfter({ ...NO_FAILURES, healthySinceMs: 0 }, 120_000, { backoff, random: () => 0 });
    assert.deepEqual(calls, ["reset", "next"]);
  });

  it("start to count 410 in a row again after health", () => {
    const backoff = { nextDelayMs: () => 30_000 };
    const failures = { ...NO_FAILURES, failure: expired, expiries: 3 };
    const delayMs = (healthySinceMs?: number) =>
      delayAfter({ ...failures, healthySinceMs }, 120_000, { backoff, random: () => 0 }).delayMs;
    assert.deepEqual([delayMs(), delayMs(0)], [30_000, 800]);
  });

  it("are spread, where the server asks for them or a version expired, and are at least those that have grown", () => {
    const delayMs = (failure: unknown, grownMs: number) => {
      const options = { backoff: { nextDelayMs: () => grownMs }, random: () => 0.5 };
      return delayAfter({ ...NO_FAILURES, failure }, 0, options).delayMs;
    };
    assert.deepEqual([delayMs(expired, 30_000), delayMs(expired, 1_000)], [1_200, 1_000]);
    const asked = new StatusError(unavailable.status, { retryAfterMs: 20_000 });
    assert.deepEqual([delayMs(asked, 800), delayMs(asked, 60_000)], [20_400, 60_000]);
    const tooLong = new StatusError(unavailable.status, { retryAfterMs: 1e9 });
    assert.equal(delayMs(tooLong, 800), 600_400);
  });
});
