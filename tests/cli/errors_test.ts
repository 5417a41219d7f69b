import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { StatusError } from "@listwatch/cache";
import { newStatus } from "@listwatch/cache/client";
import { briefReason, explainServerError, nearNames, oneLine, quote } from "../../src/cli/errors.ts";

// A text that once took a regular expression 14 s.
const BLANKS = " ".repeat(8_000_000);

describe("oneLine and briefReason", () => {
  it("return one line of at most 1,024 characters, in linear time", () => {
    assert.equal(oneLine(`a  \r\n\n  b\n`), "a b");
    assert.equal(oneLine(`a${BLANKS}b`), "a…");
    assert.equal(oneLine(`${"a\n".repeat(4_000_000)}`).length, 1024);
    assert.equal(briefReason({ code: "Other", message: BLANKS }), "…");
    const longest = "x".repeat(200);
    assert.equal(briefReason({ code: "Other", message: longest }), longest);
    assert.equal(briefReason({ code: "Other", message: `${longest}y` }), `${longest.slice(1)}…`);
    const error = explainServerError(new TypeError(`certificate${"certificate".repeat(500_000)}`), "list", {
      server: "https://x",
    });
    assert.ok(error.message.length <= 1024);
  });

  it("say how to log in again after a 401", () => {
    const error = new StatusError(newStatus(401, "Unauthorized", "no"));
    const { message } = explainServerError(error, "list pods", { server: "https://x", context: "dev" });
    assert.match(
      message,
      /401 Unauthorized\. .* try `kubectl --context "dev" get --raw \/version`, then log in/,
    );
  });

  it("say what an error says where the server's own message is empty", () => {
    const status = newStatus(500, "InternalError", "");
    const error = new StatusError(status, { message: "the server answered 500" });
    const { message } = explainServerError(error, "list pods", { server: "https://x" });
    assert.equal(message, "Cannot list pods at https://x: 500 the server answered 500");
  });

  it("say nothing of names that only contain a word of two letters (nearNames)", () => {
    assert.deepEqual(nearNames("no", ["annotations", "nodes"]), []);
    assert.deepEqual(nearNames("nod", ["annotations", "nodes"]), ["nodes"]);
    assert.deepEqual(nearNames("node", ["nodea", "nodeb", "nodec", "noded"]), ["nodea", "nodeb", "nodec"]);
  });

  it("remove terminal control characters and text direction marks", () => {
    assert.equal(oneLine("a\u202eb\x1b[2J\u2066"), "a\\u202eb�[2J\\u2066");
    assert.equal(quote("a\u202e\x9b"), '"a\\u202e\\x9b"');
    assert.equal(oneLine("a\x9b2J"), "a\ufffd2J");
  });

  it("return only the code of credential errors (briefReason)", () => {
    for (const code of ["Credentials", "Kubeconfig", "Unauthorized"]) {
      const text = briefReason({ code, message: "the token is abc" });
      assert.ok(text.includes(code) && !text.includes("abc"), text);
    }
  });
});
