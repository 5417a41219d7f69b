import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as predicates from "../../src/meta/status.ts";
import { newStatus, type Status, StatusError, statusErrorOf } from "../../src/meta/status.ts";
import { CacheError } from "../../src/util/errors.ts";

function statusError(code: number, reason: string, message = "no", rest: Partial<Status> = {}): StatusError {
  return new StatusError({ ...newStatus(code, reason, message), ...rest });
}

describe("newStatus", () => {
  it("is a Failure that a server could send", () => {
    assert.deepEqual(newStatus(404, "NotFound", "no such pod", { name: "a" }), {
      kind: "Status",
      apiVersion: "v1",
      metadata: {},
      status: "Failure",
      message: "no such pod",
      reason: "NotFound",
      code: 404,
      details: { name: "a" },
    });
    assert.equal("details" in newStatus(404, "NotFound", "no"), false);
    assert.equal("reason" in newStatus(500, "", "no"), false);
  });
});

describe("StatusError", () => {
  it("has the server's text, code and reason", () => {
    const error = statusError(404, "NotFound", 'pods "a" not found');
    assert.equal(error.message, 'pods "a" not found');
    assert.deepEqual([error.httpStatus, error.reason, error.code, error.name], [
      404,
      "NotFound",
      "Status",
      "StatusError",
    ]);
    assert.equal(error.retryAfterMs, undefined);
  });

  it("has a message also if the server sent none", () => {
    assert.equal(new StatusError({ reason: "Expired" }).message, "Expired");
    assert.equal(new StatusError({ message: "theirs" }, { message: "ours" }).message, "ours");
    assert.equal(new StatusError({ message: "theirs" }, { message: "" }).message, "theirs");
    assert.equal(new StatusError({ code: 500 }).message, "the server answered 500");
    const empty = new StatusError({});
    assert.equal(empty.message, "the server answered with an error");
    assert.deepEqual([empty.httpStatus, empty.reason], [0, ""]);
  });

  it("has the time to wait from the header, else from the body", () => {
    const status = newStatus(429, "TooManyRequests", "slow down", { retryAfterSeconds: 2 });
    assert.equal(new StatusError(status).retryAfterMs, 2_000);
    assert.equal(new StatusError(status, { retryAfterMs: 500 }).retryAfterMs, 500);
    assert.equal(new StatusError(status, { retryAfterMs: 0 }).retryAfterMs, 0);
    assert.equal(statusError(429, "TooManyRequests").retryAfterMs, undefined);
    const none = newStatus(429, "TooManyRequests", "slow down", { retryAfterSeconds: 0 });
    assert.equal(new StatusError(none).retryAfterMs, undefined);
  });

  it("is found in the causes of an error", () => {
    const inner = statusError(410, "Expired");
    assert.equal(statusErrorOf(new Error("outer", { cause: new Error("middle", { cause: inner }) })), inner);
    assert.equal(statusErrorOf(new Error("outer")), undefined);
    assert.equal(statusErrorOf("text"), undefined);
    const circle = new Error("circle");
    circle.cause = circle;
    assert.equal(statusErrorOf(circle), undefined);
  });
});

/** What each predicate must say yes to: a reason alone, or an HTTP code alone. */
const table: Record<string, { reasons: string[]; code?: number }> = {
  isExpired: { reasons: ["Expired", "Gone"], code: 410 },
  isTooManyRequests: { reasons: ["TooManyRequests"], code: 429 },
  isInternalError: { reasons: ["InternalError"], code: 500 },
  isServiceUnavailable: { reasons: ["ServiceUnavailable"], code: 503 },
  isTimeout: { reasons: ["Timeout"], code: 504 },
  isUnauthorized: { reasons: ["Unauthorized"], code: 401 },
  isForbidden: { reasons: ["Forbidden"], code: 403 },
  isNotFound: { reasons: ["NotFound"], code: 404 },
  isConflict: { reasons: ["Conflict"], code: 409 },
  isInvalid: { reasons: ["Invalid"], code: 422 },
  isBadRequest: { reasons: ["BadRequest"], code: 400 },
  isAlreadyExists: { reasons: ["AlreadyExists"] },
  isResourceExpired: { reasons: ["Expired"] },
};

describe("isExpired and the other predicates", () => {
  const allReasons = new Set(Object.values(table).flatMap(({ reasons }) => reasons));

  for (const [name, { reasons, code }] of Object.entries(table)) {
    const predicate = (predicates as unknown as Record<string, (error: unknown) => boolean>)[name];

    it(`${name} uses the reason, whatever the HTTP code`, () => {
      for (const reason of allReasons) {
        assert.equal(predicate(statusError(599, reason)), reasons.includes(reason), reason);
      }
      assert.equal(predicate(new Error("outer", { cause: statusError(599, reasons[0]) })), true);
    });

    it(`${name} uses the HTTP code if the reason is unknown`, () => {
      if (code === undefined) {
        for (const other of [409, 410]) assert.equal(predicate(statusError(other, "")), false);
        return;
      }
      for (const reason of ["", "Unknown", "ReasonOfAProxy"]) {
        assert.equal(predicate(statusError(code, reason)), true);
      }
      assert.equal(predicate(statusError(code, code === 500 ? "NotFound" : "InternalError")), false);
    });

    it(`${name} is false for every other error`, () => {
      for (
        const other of [
          undefined,
          null,
          "410",
          new Error("Expired"),
          new CacheError("Network", "no"),
          statusError(418, "Teapot"),
          statusError(418, ""),
        ]
      ) {
        assert.equal(predicate(other), false);
      }
      // Reasons that share a code with another one.
      for (
        const [code, reason] of [[409, "AlreadyExists"], [410, "Expired"], [500, "ServerTimeout"]] as const
      ) {
        assert.equal(predicate(statusError(code, reason)), reasons.includes(reason), reason);
      }
    });
  }
});

describe("isResourceVersionTooLarge", () => {
  const { isResourceVersionTooLarge } = predicates;

  it("recognizes the answers of three generations of servers", () => {
    const cause = (cause: { reason?: string; message?: string }) => ({ details: { causes: [cause] } });
    assert.equal(
      isResourceVersionTooLarge(
        statusError(504, "Timeout", "no", cause({ reason: "ResourceVersionTooLarge" })),
      ),
      true,
    );
    assert.equal(
      isResourceVersionTooLarge(
        statusError(504, "Timeout", "no", cause({ message: "Too large resource version" })),
      ),
      true,
    );
    assert.equal(
      isResourceVersionTooLarge(
        statusError(504, "Timeout", "Too large resource version: 20, current: 10", { details: {} }),
      ),
      true,
    );
  });

  it("looks at all causes", () => {
    const causes = (...causes: { reason?: string; message?: string }[]) => ({ details: { causes } });
    const reasons = causes({ reason: "Other" }, { reason: "ResourceVersionTooLarge" });
    assert.equal(isResourceVersionTooLarge(statusError(504, "Timeout", "no", reasons)), true);
    const texts = causes({ message: "another" }, { message: "Too large resource version" });
    assert.equal(isResourceVersionTooLarge(statusError(504, "Timeout", "no", texts)), true);
  });

  it("is false for a text without details, which servers never send", () => {
    assert.equal(
      isResourceVersionTooLarge(statusError(504, "Timeout", "Too large resource version: 20, current: 10")),
      false,
    );
  });

  it("is false for other timeouts, and for the text of another refusal", () => {
    assert.equal(isResourceVersionTooLarge(statusError(504, "Timeout", "too slow")), false);
    assert.equal(isResourceVersionTooLarge(statusError(504, "Timeout", "too slow", { details: {} })), false);
    const other = { details: { causes: [{ reason: "Other", message: "another" }] } };
    assert.equal(isResourceVersionTooLarge(statusError(504, "Timeout", "too slow", other)), false);
    assert.equal(
      isResourceVersionTooLarge(statusError(500, "InternalError", "Too large resource version: 20")),
      false,
    );
    const text = "Too large resource version";
    const causes = { details: { causes: [{ message: text }] } };
    assert.equal(isResourceVersionTooLarge(statusError(500, "InternalError", text, causes)), false);
    assert.equal(isResourceVersionTooLarge(new Error("Too large resource version")), false);
  });
});
