import { FakeClock } from "@listwatch/cache/testing";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { newResponseError } from "../../src/client/response_error.ts";

const errorOf = (response: Response) =>
  newResponseError("Cannot get it", response, { clock: new FakeClock(), scrub: (text) => text });

const status = (more: object) =>
  JSON.stringify({ kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", ...more });

describe("newResponseError", () => {
  it("says the message of the server, or else its reason, or else that it is unknown", async () => {
    const body = status({ code: 404, reason: "NotFound", message: "no such pod" });
    const error = await errorOf(new Response(body, { status: 404 }));
    assert.equal(error.message, "Cannot get it: the server answered 404: no such pod");
    const bare = await errorOf(new Response(status({ code: 404, reason: "NotFound" }), { status: 404 }));
    assert.equal(bare.message, "Cannot get it: the server answered 404: NotFound");
    const empty = await errorOf(new Response(status({ code: 404 }), { status: 404 }));
    assert.equal(empty.message, "Cannot get it: the server answered 404: Unknown");
  });

  it("has a reason for each code of an answer without a Status", async () => {
    const reasons: Readonly<Record<number, string>> = {
      404: "NotFound",
      499: "Unknown",
      500: "InternalError",
      599: "InternalError",
    };
    for (const [code, reason] of Object.entries(reasons)) {
      // deno-lint-ignore no-await-in-loop -- one after the other
      const error = await errorOf(new Response("", { status: Number(code) }));
      assert.equal(error.status.reason, reason, code);
      assert.equal(error.message, `Cannot get it: the server answered ${code}: ${reason}`);
    }
  });

  it("names the place of a redirect without what may hold credentials, and of nothing else", async () => {
    const said = async (code: number, location?: string) => {
      const headers = new Headers(location === undefined ? [] : [["Location", location]]);
      const error = await errorOf(new Response(null, { status: code, headers }));
      return error.message.replace(/^Cannot get it: the server answered \d+: /, "");
    };
    const at = (place: string) => `it redirects${place}, which is not followed; use that server's URL`;
    assert.equal(await said(300, "https://joe:secret@a/b?c=d#e"), at(" to https://a/b"));
    assert.equal(await said(302, "/b/c?token=d"), at(" to /b/c"));
    assert.equal(await said(302, "/b/c#token"), at(" to /b/c"));
    for (const location of ["//a/b", "b", "data:a", undefined]) {
      assert.equal(await said(399, location), at(""));
    }
    assert.equal(await said(302, `https://a/${"b".repeat(2_000)}`), at(` to https://a/${"b".repeat(1_014)}`));
    assert.equal(await said(302, `/${"b".repeat(2_000)}`), at(` to /${"b".repeat(1_023)}`));
    assert.equal(await said(400, "https://a"), "BadRequest");
  });

  it("reads a mebibyte of the body, and gives up what comes after it", async () => {
    const piece = new TextEncoder().encode("x".repeat(64 * 1024));
    let pulls = 0;
    let isCancelled = false;
    const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
      pull: (controller) => (pulls++, controller.enqueue(piece)),
      cancel: () => void (isCancelled = true),
    }, { highWaterMark: 0 });
    const error = await errorOf(new Response(body, { status: 500 }));
    assert.equal(error.status.message, "x".repeat(1_024));
    assert.deepEqual([pulls, isCancelled], [17, true]);
  });
});
