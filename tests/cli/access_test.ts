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
  });

  it("is refused under names that nobody named, wherever no token is asked for; addresses cannot be rebound", async () => {
    const app = newApp({ host: "0.0.0.0", allowAnonymous: true, allowedHosts: ["cache.example"] });
    for (const host of ["Cache.example:8787", "10.0.0.7:8787", "[fd00::7]", "localhost:1"]) {
      assert.equal(await status(app, { Host: host }), 200, host);
    }
    for (
      const host of ["evil.example", "cache.example.evil.example", "10.0.0.7.evil.example", "0x7f.1.evil"]
    ) {
      assert.equal(await status(app, { Host: host }), 403, host);
    }
    const named = newApp({ host: "cache.internal", allowAnonymous: true });
    assert.equal(await status(named, { Host: "cache.internal:1" }), 200);
    const withToken = newApp({ host: "0.0.0.0", token: "s3cret" });
    assert.equal(await status(withToken, { Host: "any.example", Authorization: "Bearer s3cret" }), 200);
  });

  it("is refused on this machine to what a page of another site asks for, another port's too", async () => {
    const app = newApp({ host: "127.0.0.1" });
    for (const site of ["cross-site", "same-site", "odd"]) {
      assert.equal(await status(app, { Host: "127.0.0.1:8787", "Sec-Fetch-Site": site }), 403, site);
    }
    for (const site of ["same-origin", "none"]) {
      assert.equal(await status(app, { Host: "127.0.0.1:8787", "Sec-Fetch-Site": site }), 200, site);
    }
  });

  it("is given by a token that changes, as soon as it has", async () => {
    let token = "first";
    const app = newApp({ host: "0.0.0.0", token: () => Promise.resolve(token) });
    assert.equal(await status(app, { Authorization: "Bearer first" }), 200);
    token = "second";
    assert.equal(await status(app, { Authorization: "Bearer first" }), 401);
    assert.equal(await status(app, { Authorization: "Bearer second" }), 200);
  });

  it("says what contradicts itself", () => {
    const reviewedBy = () => ({ request: () => Promise.resolve({}) });
    assert.throws(() => newAccess({ host: "::1", reviewedBy, token: "t" }), /leave out --token/);
    assert.throws(() => newAccess({ host: "::1", reviewedBy, allowAnonymous: true }), /--allow-anonymous/);
    assert.throws(() => newAccess({ host: "::1", readerResources: ["pods"] }), /name the namespaces, too/);
    assert.throws(
      () => newAccess({ host: "0.0.0.0", allowAnonymous: "false" as unknown as boolean }),
      /must be true or false/,
    );
    newAccess({ host: "0.0.0.0", reviewedBy });
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
