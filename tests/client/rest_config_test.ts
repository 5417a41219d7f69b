import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  fixedHeaders,
  headerFault,
  newScrubber,
  type RestConfig,
  serverUrl,
  tokenFault,
} from "../../src/client/rest_config.ts";

describe("fixedHeaders", () => {
  const server = "http://127.0.0.1:8001";
  const of = (config: Partial<RestConfig>) => fixedHeaders({ server, ...config });

  it("has the program, what the config adds, and who is impersonated, each group in a header of its own", () => {
    assert.deepEqual(of({}), [["User-Agent", "listwatch-cache"]]);
    assert.deepEqual(of({ userAgent: "mine", headers: { "X-One": "1" } }), [["User-Agent", "mine"], [
      "X-One",
      "1",
    ]]);
    assert.deepEqual(of({ impersonate: { user: "joe" } }).slice(1), [["Impersonate-User", "joe"]]);
    const extra = { "example.com/a b": ["1", "2"], c: [] };
    assert.deepEqual(of({ impersonate: { user: "joe", uid: "u", groups: ["a", "b"], extra } }).slice(1), [
      ["Impersonate-User", "joe"],
      ["Impersonate-Uid", "u"],
      ["Impersonate-Group", "a"],
      ["Impersonate-Group", "b"],
      ["Impersonate-Extra-example.com%2Fa%20b", "1"],
      ["Impersonate-Extra-example.com%2Fa%20b", "2"],
    ]);
  });
});

describe("serverUrl", () => {
  it("is the origin and the path, without slashes at its end", () => {
    assert.equal(serverUrl("https://a:6443"), "https://a:6443");
    assert.equal(serverUrl("http://a/k8s//?b=c#d"), "http://a/k8s");
    assert.equal(serverUrl("HTTPS://A/"), "https://a");
  });

  it("refuses what is no URL of a server, and quotes none with a password", () => {
    const hint = ' as the server: write a URL, such as "https://10.0.0.1:6443"';
    for (const wrong of ["", "a:6443", "10.0.0.1:6443", "ftp://a"]) {
      assert.throws(() => serverUrl(wrong), { name: "TypeError", message: `Cannot use "${wrong}"${hint}` });
    }
    const text = "Cannot use the server: its URL holds a user or password; give them as a header or token";
    for (
      const secret of [
        "https://joe@a",
        "https://joe:secret@a",
        "https://:secret@a",
        "joe:secret@a",
        "joe:secret@a b",
        "@",
      ]
    ) {
      assert.throws(() => serverUrl(secret), { name: "TypeError", message: text });
    }
  });
});

describe("tokenFault", () => {
  it("is one of what is not a word of printable ASCII", () => {
    assert.equal(tokenFault("abc.DEF-~!"), undefined);
    assert.equal(tokenFault(""), undefined);
    assert.equal(tokenFault(undefined), "it is no text");
    for (const wrong of ["a b", "a\n", "é", "\x7f"]) {
      assert.equal(tokenFault(wrong), "it is not one word of printable ASCII");
    }
  });
});

describe("headerFault", () => {
  it("is one of names and values that a runtime would quote in its error", () => {
    for (const fine of [["X-A", "b c\té"], ["!#$%&'*+.^_`|~09", ""]] as const) {
      assert.equal(headerFault(fine), undefined);
    }
    assert.equal(headerFault(["X A", "b"]), '"X A" is no name of a header');
    assert.equal(headerFault(["", "b"]), '"" is no name of a header');
    assert.equal(headerFault([` ${"x".repeat(99)}`, "b"]), `" ${"x".repeat(63)}" is no name of a header`);
    for (const wrong of ["a\n", "ā", "\x7f", 5, undefined]) {
      assert.equal(
        headerFault(["X-A", wrong]),
        "the value of the header X-A is no text that a header can hold",
      );
    }
  });
});

describe("newScrubber", () => {
  const scrub = (name: string, value: string, text: string) => newScrubber([[name, value]])(text);

  it("takes credentials out of a text: tokens by their second word, and every place", () => {
    assert.equal(
      scrub("Authorization", "Bearer abcdef", "a abcdef, abcdef Bearer"),
      "a [redacted], [redacted] Bearer",
    );
    assert.equal(scrub("proxy-authorization", "Bearer abcdef", "abcdef"), "[redacted]");
    for (const name of ["Cookie", "X-Token", "api-key", "X-ApiKey"]) {
      assert.equal(scrub(name, " abc def ", "x abc def y"), "x [redacted] y");
      assert.equal(scrub(name, "abc def", "x abc def y"), "x [redacted] y");
    }
    assert.equal(scrub("Authorization", "abcdef", "abcdef"), "[redacted]");
    assert.equal(scrub("Authorization", "Bearer  abcdef", "abcdef"), "[redacted]");
  });

  it("takes the password out of basic credentials, and both together", () => {
    const basic = `Basic ${btoa("joe:secret!")}`;
    assert.equal(scrub("Authorization", basic, "secret! of joe"), "[redacted] of joe");
    assert.equal(scrub("Authorization", basic, "joe:secret!"), "[redacted]");
    assert.equal(scrub("Authorization", basic, btoa("joe:secret!")), "[redacted]");
    assert.equal(scrub("Authorization", `Basic ${btoa("joe:123456")}`, "123456"), "[redacted]");
    assert.equal(scrub("Authorization", "Basic ******", "no base64"), "no base64");
    assert.equal(scrub("Authorization", `Bearer ${btoa("joe:secret!")}`, "secret!"), "secret!");
  });

  it("leaves everything else: short secrets would take words out of texts", () => {
    assert.equal(scrub("Authorization", "Bearer abcde", "abcde"), "abcde");
    assert.equal(scrub("Authorization", `Basic ${btoa("joe:12345")}`, "joe:12345"), "joe:12345");
    assert.equal(scrub("Accept", "application/json", "application/json"), "application/json");
    assert.equal(scrub("X-Authorization-Mode", "abcdefgh", "abcdefgh"), "abcdefgh");
  });
});
