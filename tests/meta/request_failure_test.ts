import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  DecodeError,
  failureInWords,
  isConnectionRefused,
  NetworkError,
  networkErrorOf,
  refusesStale,
  requiresEachEvent,
  retryAfterMs,
} from "../../src/meta/request.ts";
import { newStatus, StatusError } from "../../src/meta/status.ts";
import { FakeClock } from "@listwatch/cache/testing";

describe("NetworkError", () => {
  it("is distinguished from refusals, also as a cause", () => {
    const refused = new NetworkError("ConnectionRefused", "connection refused");
    assert.equal(isConnectionRefused(new Error("outer", { cause: refused })), true);
    assert.equal(isConnectionRefused(new NetworkError("Unreachable", "no")), false);
    assert.equal(isConnectionRefused(new StatusError(newStatus(503, "ServiceUnavailable", "no"))), false);
    assert.equal(networkErrorOf(new Error("outer", { cause: refused })), refused);
    assert.equal(networkErrorOf(new DecodeError("no JSON")), undefined);
    assert.equal(refused.code, "Network");
  });
});

describe("failureInWords", () => {
  it("describes refusals and network failures in the same words on every runtime, then in those of the error", () => {
    const texts: [error: unknown, text: string][] = [
      [new NetworkError("ConnectionReset", "ECONNRESET"), "the connection was reset (ECONNRESET)"],
      [
        new Error("outer", { cause: new NetworkError("DeadPeer", "silence") }),
        "the connection is dead (outer)",
      ],
      [new StatusError(newStatus(410, "Expired", "too old")), "the server answered 410 Expired (too old)"],
      [new StatusError(newStatus(410, "", "too old")), "the server answered 410 (too old)"],
      [new StatusError({ message: "odd" }), "odd"],
      [new DecodeError("no JSON"), "no JSON"],
      ["text", "text"],
    ];
    for (const [error, text] of texts) assert.equal(failureInWords(error), text);
  });
});

describe("refusesStale", () => {
  it("finds its part among others, in any case and with white space and quotation marks", () => {
    for (const text of ["stale-if-error=0", 'no-cache, Stale-If-Error = "0"', "max-age=0,stale-if-error=0"]) {
      assert.ok(refusesStale(text), text);
    }
    for (const text of [undefined, "", "stale-if-error=01", "stale-if-error", "x-stale-if-error=0"]) {
      assert.ok(!refusesStale(text), text);
    }
    assert.ok(requiresEachEvent("respond-async; Handling=strict"));
    assert.ok(!requiresEachEvent("handling=lenient"));
  });
});

describe("retryAfterMs", () => {
  const sentMs = Date.parse("2026-01-31T12:00:00Z");
  const at = (seconds: number) => new Date(sentMs + 1_000 * seconds).toUTCString();
  const clock = new FakeClock(sentMs + 5_000);

  it("reads seconds, or a date by the clock of the server, or else by one's own", () => {
    const cases: [headers: Record<string, string>, ms: number | undefined][] = [
      [{}, undefined],
      [{ "Retry-After": "120" }, 120_000],
      [{ "Retry-After": "0" }, 0],
      [{ "Retry-After": "soon" }, undefined],
      [{ "Retry-After": at(60), Date: at(0) }, 60_000],
      [{ "Retry-After": at(60), Date: "today" }, 55_000],
      [{ "Retry-After": at(60) }, 55_000],
      [{ "Retry-After": at(-60), Date: at(0) }, 0],
    ];
    for (const [headers, ms] of cases) {
      assert.equal(retryAfterMs(new Headers(headers), clock), ms, JSON.stringify(headers));
    }
  });
});
