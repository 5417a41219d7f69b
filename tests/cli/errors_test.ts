import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { briefReason, explainServerError, oneLine, quote } from "../../src/cli/errors.ts";

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

  it("remove terminal control characters and text direction marks", () => {
    assert.equal(oneLine("a\u202eb\x1b[2J\u2066"), "a\\u202eb�[2J\\u2066");
    assert.equal(quote("a\u202e\x9b"), '"a\\u202e\\x9b"');
  });

  it("return only the code of credential errors (briefReason)", () => {
    for (const code of ["Credentials", "Kubeconfig", "Unauthorized"]) {
      const text = briefReason({ code, message: "the token is abc" });
      assert.ok(text.includes(code) && !text.includes("abc"), text);
    }
  });
});
