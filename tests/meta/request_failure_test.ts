import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  DecodeError,
  failureInWords,
  isConnectionRefused,
  NetworkError,
  networkErrorOf,
} from "../../src/meta/request.ts";
import { newStatus, StatusError } from "../../src/meta/status.ts";

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
