import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { newStatus } from "../../src/meta/status.ts";
import { indentedText } from "../../src/protocol/representations.ts";
import { jsonResponse, statusResponse } from "../../src/testing/api_errors.ts";

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

describe("indentedText", () => {
  it("indents as JSON.stringify does, whatever white space there was", () => {
    const values = [null, 1, "a", [], {}, [[]], [{}, { a: [] }], {
      a: { b: [1, "{[,:]}", '\\"', { c: {} }] },
      d: "",
    }];
    for (const value of values) {
      const indented = JSON.stringify(value, undefined, 2);
      assert.equal(indentedText(JSON.stringify(value)), indented);
      assert.equal(indentedText(JSON.stringify(value, undefined, "\t")), indented);
      const spaced = JSON.stringify(value).replaceAll("[]", "[ \n]").replaceAll("{}", "{\t}");
      assert.equal(indentedText(spaced), indented);
    }
  });

  it("changes nothing within strings and numbers, but for what Go escapes", () => {
    const text = '{"a":1.0,"b":9007199254740993,"a":"\\u00e9\\/<\u2028"}';
    assert.equal(
      indentedText(text),
      '{\n  "a": 1.0,\n  "b": 9007199254740993,\n  "a": "\\u00e9\\/\\u003c\\u2028"\n}',
    );
  });

  it("leaves a text of more than 200 levels on its line, as each level indents all below it", () => {
    const nested = (levels: number) => "[".repeat(levels) + "1" + "]".repeat(levels);
    assert.equal(indentedText(nested(201)), nested(201));
    assert.ok(indentedText(nested(200)).includes("\n"));
  });
});

describe("jsonResponse", () => {
  it("is indented only by request, and ends with a line break only if it is not", async () => {
    assert.equal(await jsonResponse({ a: [1] }).text(), '{"a":[1]}\n');
    assert.equal(
      await jsonResponse({ a: [1] }, new Request("http://x/?pretty=1")).text(),
      '{\n  "a": [\n    1\n  ]\n}',
    );
  });
});
