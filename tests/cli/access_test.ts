import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Hono } from "hono";
import { type AccessOptions, isLoopback, newAccess } from "../../src/cli/access.ts";
import { UsageError } from "../../src/cli/errors.ts";

function newApp(options: AccessOptions): Hono {
  const access = newAccess(options);
  const app = new Hono();
  app.use("*", access.hostGuard);
  app.get("/", access.pageGuard, (c) => c.text("the page"));
  return app;
}

async function status(app: Hono, headers: Record<string, string>): Promise<number> {
  return (await app.request("http://127.0.0.1:8787/", { headers })).status;
}

describe("access", () => {
  it("to this machine's own address needs no token; to any other a token or an explicit yes", () => {
    for (const host of ["127.0.0.1", "127.9.9.9", "localhost", "::1", "[::1]"]) newAccess({ host });
    for (const host of ["0.0.0.0", "::", "10.0.0.7", "example.com", "127.0.0.1.example.com"]) {
      assert.throws(() => newAccess({ host }), (error) => {
        assert.ok(error instanceof UsageError);
        assert.match(error.message, /^Refusing to listen on .*--token.*--allow-anonymous$/);
        return true;
      });
      newAccess({ host, token: "t" });
      newAccess({ host, allowAnonymous: true });
    }
  });

  it("cannot both ask for a token and let everybody in, nor ask for a token that no header can carry", () => {
    assert.throws(
      () => newAccess({ host: "::1", token: "t", allowAnonymous: true }),
      /leave one of them out/,
    );
    assert.throws(() => newAccess({ host: "::1", token: "two words" }), /must be one word/);
  });

  it("is refused to requests under another name, with which a web page elsewhere could reach this machine", async () => {
    const app = newApp({ host: "127.0.0.1" });
    assert.equal(await status(app, { Host: "127.0.0.1:8787" }), 200);
    assert.equal(await status(app, { Host: "localhost:8787" }), 200);
    assert.equal(await status(app, { Host: "[::1]:8787" }), 200);
    assert.equal(await status(app, { Host: "evil.example:8787" }), 403);
    assert.equal(await status(app, { Host: "127.0.0.1.evil.example" }), 403);
    assert.equal(
      await status(newApp({ host: "0.0.0.0", allowAnonymous: true }), { Host: "cache.example" }),
      200,
    );
  });

  it("is given for the token, as bearer or as a password, and for nothing else", async () => {
    const app = newApp({ host: "0.0.0.0", token: "s3cret" });
    assert.equal(await status(app, {}), 401);
    assert.equal(await status(app, { Authorization: "Bearer s3cret" }), 200);
    assert.equal(await status(app, { Authorization: "bearer s3cret" }), 200);
    assert.equal(await status(app, { Authorization: "Bearer s3cret2" }), 401);
    assert.equal(await status(app, { Authorization: "Bearer " }), 401);
    assert.equal(await status(app, { Authorization: `Basic ${btoa("me:s3cret")}` }), 200);
    assert.equal(await status(app, { Authorization: `Basic ${btoa("s3cret:me")}` }), 401);
    assert.equal(await status(app, { Authorization: "Basic %%%" }), 401);
    const refused = await app.request("http://127.0.0.1/");
    assert.match(refused.headers.get("WWW-Authenticate") ?? "", /^Basic /);
  });

  it("knows the names of this machine", () => {
    assert.ok(isLoopback("LOCALHOST.") && isLoopback("127.0.0.1"));
    assert.ok(!isLoopback("localhost.evil.example") && !isLoopback("128.0.0.1") && !isLoopback(""));
  });
});
