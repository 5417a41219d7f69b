import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { briefReason, explainServerError, oneLine, quote } from "../../src/cli/errors.ts";

// What took 14 s for each state of the page, and more for each twice as long.
const BLANKS = " ".repeat(8_000_000);

describe("what the command line says", () => {
  it("is one line of at most 1,024 characters, whatever a server said, and takes no time for that", () => {
    assert.equal(oneLine(`a  \r\n\n  b\n`), "a b");
    assert.equal(oneLine(`a${BLANKS}b`), "a…");
    assert.equal(oneLine(`${"a\n".repeat(4_000_000)}`).length, 1024);
    assert.equal(briefReason({ code: "Other", message: BLANKS }), "…");
    const error = explainServerError(new TypeError(`certificate${"certificate".repeat(500_000)}`), "list", {
      server: "https://x",
    });
    assert.ok(error.message.length <= 1024);
  });

  it("cannot draw on the terminal, nor turn text around", () => {
    assert.equal(oneLine("a\u202eb\x1b[2J\u2066"), "a\\u202eb�[2J\\u2066");
    assert.equal(quote("a\u202e\x9b"), '"a\\u202e\\x9b"');
  });

  it("gives a code for credentials that fail, and not what is said of them", () => {
    for (const code of ["Credentials", "Kubeconfig", "Unauthorized"]) {
      const text = briefReason({ code, message: "the token is abc" });
      assert.ok(text.includes(code) && !text.includes("abc"), text);
    }
  });
});
