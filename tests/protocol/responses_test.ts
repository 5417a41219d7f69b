import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { newStatus } from "../../src/meta/status.ts";
import { jsonResponse, statusResponse } from "../../src/protocol/responses.ts";

describe("statusResponse", () => {
  it("has the code of the Status, and Retry-After where the details say so", async () => {
    const status = newStatus(429, "TooManyRequests", "slow down", { retryAfterSeconds: 5 });
    const response = statusResponse(status);
    assert.equal(response.status, 429);
    assert.equal(response.headers.get("Retry-After"), "5");
    assert.equal(response.headers.get("Content-Type"), "application/json");
    // The order of the fields is that of an API server.
    assert.equal(
      await response.text(),
      '{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"slow down",' +
        '"reason":"TooManyRequests","details":{"retryAfterSeconds":5},"code":429}\n',
    );
  });
});

describe("jsonResponse", () => {
  it("is indented only by option, and ends with a line break only if it is not", async () => {
    assert.equal(await jsonResponse({ a: [1] }).text(), '{"a":[1]}\n');
    assert.equal(await jsonResponse({ a: [1] }, { pretty: true }).text(), '{\n  "a": [\n    1\n  ]\n}');
  });
});
