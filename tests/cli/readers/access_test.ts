import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Hono } from "hono";
import { type AccessOptions, newAccess } from "../../../src/cli/readers/access.ts";
import { isLoopback } from "../../../src/cli/serve/serve_options.ts";
import { checkServeOptions, type ServeOptions } from "../../../src/cli/serve/serve_options.ts";
import { dashboardRoutes } from "../../../src/cli/dashboard/dashboard.ts";
import { UsageError } from "../../../src/cli/errors.ts";
import { newReadApiState } from "../../../src/hono/read_api_state.ts";

const TOKEN = "a-token-of-some-length";

function newApp(options: AccessOptions): Hono {
  const access = newAccess(options);
  const app = new Hono();
  app.use("*", access.hostGuard);
  const state = newReadApiState({ resources: [], ...access.readApi });
  const cluster = { name: "test", server: "https://10.0.0.1" };
  const pageState = () => ({ nowMs: 1, cluster, resources: [] });
  app.route("/", dashboardRoutes(state, pageState, access.pageAsked, []));
  return app;
}

async function status(app: Hono, headers: Record<string, string>): Promise<number> {
  return (await app.request("http://127.0.0.1:8787/", { headers })).status;
}

describe("checkServeOptions", () => {
  const real = { kind: "kubeconfig" } as const;

  it("needs a token or an explicit yes for a host other than loopback", () => {
    for (const host of ["127.0.0.1", "127.9.9.9", "localhost", "::1", "[::1]"]) checkServeOptions({ host });
    for (const host of ["0.0.0.0", "::", "10.0.0.7", "example.com", "127.0.0.1.example.com"]) {
      assert.throws(() => checkServeOptions({ host }), (error) => {
        assert.ok(error instanceof UsageError);
        assert.match(error.message, /^Cannot listen on .*--token.*--allow-anonymous$/);
        return true;
      });
      checkServeOptions({ host, token: TOKEN });
      checkServeOptions({ host, tokenFile: "/run/token" });
      checkServeOptions({ host, allowAnonymous: true });
      checkServeOptions({ host, source: real, clusterRbac: true });
    }
  });

  it("refuses a token that can be guessed or that no header can carry, without showing it", () => {
    for (const host of ["127.0.0.1", "0.0.0.0"]) {
      for (
        const token of [
          "",
          "s3cret",
          "fifteen-letters",
          "sixteen or more letters",
          "sixteen-lettérs-and-more",
        ]
      ) {
        assert.throws(() => checkServeOptions({ host, token }), (error) => {
          assert.ok(error instanceof UsageError);
          assert.match(
            error.message,
            /^The token (is shorter than 16|must consist of printable ASCII) characters/,
          );
          assert.ok(token === "" || !error.message.includes(token));
          return true;
        });
      }
    }
  });

  it("refuses options that contradict each other", () => {
    const refused = (options: ServeOptions, message: RegExp) =>
      assert.throws(() => checkServeOptions(options), (error) => {
        assert.ok(error instanceof UsageError);
        assert.match(error.message, message);
        return true;
      });
    refused({ token: TOKEN, allowAnonymous: true }, /--allow-anonymous contradict each other/);
    refused({ tokenFile: "/run/token", allowAnonymous: true }, /--allow-anonymous contradict each other/);
    refused({ token: TOKEN, tokenFile: "/run/token" }, /--token-file contradict each other/);
    refused({ source: real, clusterRbac: true, token: TOKEN }, /remove --token/);
    refused({ source: real, clusterRbac: true, allowAnonymous: true }, /remove .*--allow-anonymous/);
    refused({ clusterRbac: true }, /needs a real cluster/);
    refused({ readerResources: ["pods"] }, /needs --reader-namespaces/);
    refused({ readerNamespaces: ["team-*"] }, /team-\*/);
    refused({ readerNamespaces: [] }, /no namespace/);
    refused({ host: "0.0.0.0", allowAnonymous: "false" as unknown as boolean }, /must be true or false/);
    refused({ drop: ["metadata.name"] }, /Cannot drop "metadata.name"/);
    refused({ tlsCert: "/run/tls.crt" }, /needs its key/);
  });
});

describe("newAccess", () => {
  it("refuses requests with an unknown host name on loopback, against DNS rebinding", async () => {
    const app = newApp({ host: "127.0.0.1" });
    assert.equal(await status(app, { Host: "127.0.0.1:8787" }), 200);
    assert.equal(await status(app, { Host: "localhost:8787" }), 200);
    assert.equal(await status(app, { Host: "[::1]:8787" }), 200);
    assert.equal(await status(app, { Host: "evil.example:8787" }), 403);
    assert.equal(await status(app, { Host: "127.0.0.1.evil.example" }), 403);
  });

  it("refuses unknown host names wherever no token is needed, and accepts addresses", async () => {
    const app = newApp({ host: "0.0.0.0", allowedHosts: ["cache.example"] });
    for (const host of ["Cache.example:8787", "10.0.0.7:8787", "[fd00::7]", "localhost:1"]) {
      assert.equal(await status(app, { Host: host }), 200, host);
    }
    for (
      const host of ["evil.example", "cache.example.evil.example", "10.0.0.7.evil.example", "0x7f.1.evil"]
    ) {
      assert.equal(await status(app, { Host: host }), 403, host);
    }
    const named = newApp({ host: "cache.internal" });
    assert.equal(await status(named, { Host: "cache.internal:1" }), 200);
    const withToken = newApp({ host: "0.0.0.0", token: "s3cret" });
    assert.equal(await status(withToken, { Host: "any.example", Authorization: "Bearer s3cret" }), 200);
  });

  it("shows the page to no reader that impersonates a user", async () => {
    const app = newApp({ host: "127.0.0.1" });
    assert.equal(await status(app, {}), 200);
    assert.equal(await status(app, { "Impersonate-User": "jane" }), 403);
  });

  it("shows the page to readers who may list and watch all that it shows, and to no others", async () => {
    const served = ["v1/pods", "v1/nodes", "apps/v1/deployments"].map((name) => {
      const [version, resource] = name.split("/").slice(-2);
      const group = name.startsWith("apps") ? "apps" : "";
      const namespaced = resource !== "nodes";
      return { name: resource, resource: { group, version, resource, kind: resource, namespaced } };
    });
    const asked: string[] = [];
    let refused = "";
    const reviewedBy: AccessOptions["reviewedBy"] = {
      request: (path, { body }) => {
        if (path.endsWith("tokenreviews")) {
          return Promise.resolve({ status: { authenticated: true, user: { username: "jane" } } });
        }
        const { resourceAttributes } =
          (body as { spec: { resourceAttributes: Record<string, string> } }).spec;
        const { namespace, verb, group, resource } = resourceAttributes;
        const what = `${verb} ${resource}.${group} ${namespace}`;
        asked.push(what);
        return Promise.resolve({ status: { allowed: what !== refused } });
      },
    };
    for (const namespace of [undefined, ["shop", "blog"]]) {
      const statusOf = (): Promise<number> =>
        status(
          newApp({ host: "0.0.0.0", reviewedBy, served, ...(namespace && { namespace }) }),
          { Authorization: "Bearer a-token" },
        );
      asked.length = 0;
      refused = "";
      assert.equal(await statusOf(), 200);
      assert.equal(asked.length, namespace === undefined ? 6 : 10, asked.join());
      for (const one of new Set(asked)) {
        refused = one;
        assert.equal(await statusOf(), 403, one);
      }
    }
  });

  it("refuses requests from pages of other sites on loopback, also of another port", async () => {
    const app = newApp({ host: "127.0.0.1" });
    for (const site of ["cross-site", "same-site", "odd"]) {
      assert.equal(await status(app, { Host: "127.0.0.1:8787", "Sec-Fetch-Site": site }), 403, site);
    }
    for (const site of ["same-origin", "none"]) {
      assert.equal(await status(app, { Host: "127.0.0.1:8787", "Sec-Fetch-Site": site }), 200, site);
    }
  });

  it("accepts a changed token at once, and the old one no longer", async () => {
    let token = "first";
    const app = newApp({ host: "0.0.0.0", token: () => Promise.resolve(token) });
    assert.equal(await status(app, { Authorization: "Bearer first" }), 200);
    token = "second";
    assert.equal(await status(app, { Authorization: "Bearer first" }), 401);
    assert.equal(await status(app, { Authorization: "Bearer second" }), 200);
  });

  it("accepts the token as bearer token or as password, and nothing else", async () => {
    const app = newApp({ host: "0.0.0.0", token: "s3cret" });
    assert.equal(await status(app, {}), 401);
    assert.equal(await status(app, { Authorization: "Bearer s3cret" }), 200);
    assert.equal(await status(app, { Authorization: "bearer s3cret" }), 200);
    assert.equal(await status(app, { Authorization: "Bearer s3cret2" }), 401);
    assert.equal(await status(app, { Authorization: "Bearer " }), 401);
    assert.equal(await status(app, { Authorization: `Basic ${btoa("me:s3cret")}` }), 200);
    assert.equal(await status(app, { Authorization: `Basic ${btoa("s3cret:me")}` }), 401);
    assert.equal(await status(app, { Authorization: "Basic %%%" }), 401);
    // The protocols of a page's WebSocket, which can have no headers.
    const protocol = (token: string) =>
      `base64url.bearer.authorization.k8s.io.${btoa(token).replace(/=+$/, "")}`;
    const socket = (protocols: string) => ({ Upgrade: "websocket", "Sec-WebSocket-Protocol": protocols });
    assert.equal(await status(app, socket(`${protocol("s3cret")}, watch`)), 200);
    assert.equal(await status(app, socket(`${protocol("s3cret2")}, watch`)), 401);
    assert.equal(await status(app, socket(protocol("s3cret"))), 401);
    assert.equal(await status(app, { "Sec-WebSocket-Protocol": `${protocol("s3cret")}, watch` }), 401);
    const refused = await app.request("http://127.0.0.1/");
    assert.match(refused.headers.get("WWW-Authenticate") ?? "", /^Basic /);
  });
});

it("isLoopback knows the names and addresses of this machine", () => {
  assert.ok(isLoopback("LOCALHOST.") && isLoopback("127.0.0.1"));
  assert.ok(!isLoopback("localhost.evil.example") && !isLoopback("128.0.0.1") && !isLoopback(""));
});
