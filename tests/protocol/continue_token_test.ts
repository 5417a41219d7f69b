import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { decodeContinue, encodeContinue, LATEST, listIdentity } from "../../src/protocol/continue_token.ts";

function base64(text: string): string {
  return paddedBase64(text).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

function paddedBase64(text: string): string {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}

describe("listIdentity", () => {
  it("is another one for each list, and stays so", () => {
    const lists = [["pods", "a"], ["pods", "b"], ["podsa"], ["pods", "", "a"], []];
    const identities = lists.map(listIdentity);
    assert.equal(new Set(identities).size, lists.length);
    assert.deepEqual(lists.map(listIdentity), identities);
  });
});

describe("decodeContinue", () => {
  it("returns what encodeContinue was given, whatever the size of the version and the characters of the key", () => {
    for (const resourceVersion of ["1", "18446744073709551615", "1".repeat(512), LATEST]) {
      for (const start of ["shop/web-1\0", "ü/😀", '"rv":7,', "a".repeat(600)]) {
        for (const list of [{}, { list: "0123456789abcdef" }, { epoch: "e1" }]) {
          const token = { resourceVersion, start, ...list };
          assert.match(encodeContinue(token), /^[A-Za-z0-9_-]+$/);
          assert.deepEqual(decodeContinue(encodeContinue(token)), token);
        }
      }
    }
  });

  it("reads the tokens of kube-apiserver", () => {
    const token = "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6NDIsInN0YXJ0Ijoid2ViLTFcdTAwMDAifQ";
    assert.deepEqual(decodeContinue(token), { resourceVersion: "42", start: "web-1\0" });
    const newToken = "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MTg0NCwic3RhcnQiOiIvc2hvcC93ZWItMVx1MDAwMCJ9";
    assert.deepEqual(decodeContinue(newToken), { resourceVersion: "1844", start: "shop/web-1\0" });
  });

  it("continues with the present state where the version has no place in a token", () => {
    for (const resourceVersion of ["", "0", "007", "5a", "-7", "1".repeat(513)]) {
      const token = encodeContinue({ resourceVersion, start: "shop/web-1\0" });
      assert.deepEqual(decodeContinue(token), { resourceVersion: LATEST, start: "shop/web-1\0" });
    }
  });

  const refused: [what: string, token: string, reason: RegExp][] = [
    ["text that is not base64", "%", /continue key is not valid: ./],
    // In the words of Go's base64.RawURLEncoding.
    [
      "padded base64",
      paddedBase64("null"),
      /continue key is not valid: illegal base64 data at input byte 6$/,
    ],
    ["the other alphabet of base64", "ab+c", /illegal base64 data at input byte 2$/],
    ["a wrong first character", "!abc", /illegal base64 data at input byte 0$/],
    ["half a byte", "abcde", /illegal base64 data at input byte 4$/],
    ["bytes that are not JSON", base64("{"), /continue key is not valid: .*JSON/],
    ["JSON that is not an object", base64("null"), /does not recognize this encoded version $/],
    [
      "another version",
      base64('{"v":"v2","rv":1,"start":"a"}'),
      /does not recognize this encoded version v2/,
    ],
    [
      "a version in quotes",
      base64('{"v":"meta.k8s.io/v1","rv":"1","start":"a"}'),
      /incorrect encoded start resourceVersion/,
    ],
    [
      "version 0",
      base64('{"v":"meta.k8s.io/v1","rv":0,"start":"a"}'),
      /incorrect encoded start resourceVersion/,
    ],
    [
      "a version of another field",
      base64('{"v":"meta.k8s.io/v1","rv":0,"x":{"rv":1.5},"start":"a"}'),
      /incorrect encoded/,
    ],
    ["no key", base64('{"v":"meta.k8s.io/v1","rv":1}'), /encoded start key empty/],
    ["an empty key", base64('{"v":"meta.k8s.io/v1","rv":1,"start":""}'), /encoded start key empty/],
    ...["../../", "/..", "shop/./web-1", "shop//web-1", "/"].map((start) => {
      const token = base64(JSON.stringify({ v: "meta.k8s.io/v1", rv: 1, start }));
      return [`the key ${start}`, token, /continue key is not valid: [./]|shop/] as [string, string, RegExp];
    }),
    ["an endless token", "a".repeat(3_000), /longer than 2048 characters/],
  ];
  for (const [what, token, reason] of refused) {
    it(`refuses ${what} with 400`, () => {
      const status = decodeContinue(token);
      assert.ok("code" in status && status.code === 400);
      assert.match(status.message ?? "", /^invalid continue token: /);
      assert.match(status.message ?? "", reason);
    });
  }
});
