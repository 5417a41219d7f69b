import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { type Context, Hono } from "hono";
import { isTooManyRequests, silentLogger } from "@listwatch/cache";
import type { RequestAttributes } from "@listwatch/cache/hono";
import { FakeClock } from "@listwatch/cache/testing";
import { type AccessOptions, newAccess, readerToken } from "../../../src/cli/readers/access.ts";
import { isLoopback } from "../../../src/cli/serve/serve_options.ts";
import { checkServeOptions, type ServeOptions } from "../../../src/cli/serve/serve_options.ts";
import { dashboardRoutes } from "../../../src/cli/dashboard/dashboard.ts";
import { UsageError } from "../../../src/cli/errors.ts";
import { newReadApiState } from "../../../src/hono/read_api_state.ts";
import { nextTurn } from "../../../src/util/clock.ts";

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

  it("refuses values that are none of their option, where a part would take them for others", () => {
    const refused = (name: keyof ServeOptions, value: unknown, message: RegExp) =>
      assert.throws(() => checkServeOptions({ source: real, [name]: value }), (error) => {
        return error instanceof UsageError && message.test(error.message);
      }, name);
    for (
      const name of [
        "allowAnonymous",
        "allowSecrets",
        "clusterRbac",
        "metrics",
        "passThrough",
        "passThroughWrites",
      ] as const
    ) refused(name, "false", new RegExp(`^${name} must be true or false$`));
    for (const value of ["", true]) refused("snapshot", value, /must be the path of a folder/);
    for (const name of ["keepAliveMs", "shutdownGraceMs", "maxLagMs"] as const) refused(name, -1, /serve/);
    for (const name of ["maxWatches", "maxWatchesPerClient"] as const) refused(name, 0, /serve/);
    assert.throws(() => checkServeOptions({ snapshot: "/run/snapshots" }), /--snapshot needs a real cluster/);
    checkServeOptions({
      source: real,
      snapshot: "/run/snapshots",
      maxWatches: 1,
      maxWatchesPerClient: Infinity,
    });
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

describe("newAccess, its rules,", () => {
  const of = (more: Partial<RequestAttributes> = {}) =>
    ({
      scope: "namespace",
      namespace: "shop",
      verb: "list",
      group: "",
      version: "v1",
      resource: "pods",
      name: "",
      path: "/api/v1/namespaces/shop/pods",
      user: undefined,
      ...more,
    }) as RequestAttributes;
  const cluster = { scope: "cluster", namespace: undefined } as const;
  const context = (headers: Record<string, string> = {}) => {
    const raw = new Request("http://127.0.0.1/api", { headers });
    return { env: {}, req: { raw, header: (name: string) => raw.headers.get(name) ?? undefined } } as Context;
  };
  const resource = (resource: string, namespaced: boolean) => ({
    name: resource,
    resource: { group: "", version: "v1", resource, kind: resource, namespaced },
  });
  const served = [resource("pods", true), resource("services", true), resource("nodes", false)];
  const decide = async (options: Partial<AccessOptions>, attributes: RequestAttributes) =>
    await newAccess({ host: "127.0.0.1", served, ...options }).readApi.authorize!(attributes, context());

  it("are none where all may read everything, and readers are authenticated only for a token", () => {
    assert.deepEqual(newAccess({ host: "127.0.0.1" }).readApi, { allowAnonymous: true });
    const withToken = newAccess({ host: "127.0.0.1", token: TOKEN }).readApi;
    assert.deepEqual(Object.keys(withToken), ["authenticate", "allowAnonymous"]);
  });

  it("let readers read what is in the namespaces that are cached, and say which those are", async () => {
    assert.equal(await decide({ namespace: "shop" }, of()), true);
    assert.equal(await decide({ namespace: "shop" }, of(cluster)), true);
    assert.equal(
      await decide({ namespace: "shop" }, of({ namespace: "blog" })),
      'only namespace "shop" is cached here',
    );
    assert.equal(await decide({ namespace: ["shop", "blog"] }, of({ namespace: "blog" })), true);
    assert.equal(
      await decide({ namespace: ["shop", "blog"] }, of({ namespace: "shops" })),
      'only namespaces "shop", "blog" are cached here',
    );
  });

  it("let readers of some namespaces read there the resources that they may, and the others as a whole", async () => {
    const readerNamespaces = ["shop"];
    assert.equal(await decide({ readerNamespaces }, of()), true);
    assert.equal(await decide({ readerNamespaces }, of({ resource: "secrets" })), true);
    assert.equal(
      await decide({ readerNamespaces }, of({ namespace: "blog" })),
      'only the namespace "shop" may be read',
    );
    const nodes = of({ ...cluster, resource: "nodes" });
    assert.notEqual(await decide({ readerNamespaces }, nodes), true);
    const some = { readerNamespaces, readerResources: ["pods", "nodes"] };
    assert.equal(await decide(some, of()), true);
    assert.equal(await decide(some, nodes), true);
    assert.equal(await decide(some, of({ resource: "services" })), "only pods may be read");
    assert.equal(await decide(some, of(cluster)), 'only the namespace "shop" may be read');
    const both = { ...some, namespace: "blog" };
    assert.equal(await decide(both, of()), 'only namespace "blog" is cached here');
  });

  it("are the cluster's own, too, with tokens of the cluster: bearer tokens, or passwords", async () => {
    const clock = new FakeClock();
    const specs: Record<string, unknown>[] = [];
    const signals: AbortSignal[] = [];
    const reviewedBy: AccessOptions["reviewedBy"] = {
      request: (path, { body, signal }) => {
        specs.push((body as { spec: Record<string, unknown> }).spec);
        if (path.endsWith("tokenreviews")) {
          return Promise.resolve({ status: { authenticated: true, user: { username: "jane" } } });
        }
        signals.push(signal);
        return new Promise(() => {});
      },
    };
    const noted: unknown[] = [];
    const access = newAccess({
      host: "127.0.0.1",
      reviewedBy,
      clock,
      noting: (hook) => async (c) => {
        const user = await hook(c);
        noted.push(user?.name);
        return user;
      },
    });
    const { authenticate, authorize } = access.readApi;
    for (
      const Authorization of ["Bearer one", `Basic ${btoa("me:two")}`, `basic  ${btoa("me:three:four")} `]
    ) {
      assert.equal((await authenticate!(context({ Authorization })))?.name, "jane");
    }
    assert.deepEqual(specs.splice(0), [{ token: "one" }, { token: "two" }, { token: "three:four" }]);
    for (const headers of [{}, { Authorization: "Basic %%%" }, { Authorization: "Token one" }]) {
      assert.equal(await authenticate!(context(headers as Record<string, string>)), undefined);
    }
    assert.deepEqual(specs, []);
    assert.deepEqual(noted, ["jane", "jane", "jane", undefined, undefined, undefined]);
    const answer = assert.rejects(async () => await authorize!(of({ user: { name: "jane" } }), context()));
    await clock.advance(5_000);
    await answer;
    assert.equal(signals[0].aborted, true);
  });

  it("are looked up for each client in its turn, whatever tokens another one guesses", async () => {
    const reviewedBy: AccessOptions["reviewedBy"] = { request: () => new Promise(() => {}) };
    const { authenticate } = newAccess({ host: "0.0.0.0", reviewedBy, clock: new FakeClock() }).readApi;
    const present = async (token: string, hostname: string) => {
      const of = { ...context({ Authorization: `Bearer ${token}` }), env: { remoteAddr: { hostname } } };
      return await authenticate!(of as unknown as Context);
    };
    const refused: unknown[] = [];
    for (let i = 0; i < 100; i++) present(`guessed-${i}`, "10.0.0.1").catch((error) => refused.push(error));
    await nextTurn();
    const others: unknown[] = [];
    present("hers", "10.0.0.2").catch((error) => others.push(error));
    await nextTurn();
    assert.ok(refused.length > 0 && refused.every(isTooManyRequests), String(refused));
    assert.deepEqual(others, []);
  });

  it("are described in a line", () => {
    const described = (options: Partial<AccessOptions>) =>
      newAccess({ host: "127.0.0.1", ...options }).description;
    const request = () => Promise.resolve({});
    assert.equal(described({}), "everyone on this machine (loopback only)");
    assert.equal(described({ host: "0.0.0.0" }), "everyone who can reach this address");
    assert.equal(described({ token: TOKEN, reviewedBy: { request } }), "everyone with the token");
    assert.equal(
      described({ reviewedBy: { request }, readerNamespaces: ["shop", "blog"] }),
      "everyone with a token of the cluster, as far as its RBAC allows; only namespaces shop, blog",
    );
    assert.equal(
      described({ namespace: "shop" }),
      'everyone on this machine (loopback only); only namespace "shop" is cached',
    );
  });

  it("and the page: all that it shows must be permitted, as it is shown", () => {
    const asked = (options: Partial<AccessOptions>) => newAccess({ host: "127.0.0.1", ...options }).pageAsked;
    assert.deepEqual(asked({}).map(({ scope, path }) => [scope, path]), [["path", "/"]]);
    const [pods, , nodes] = served;
    const common = { group: "", version: "v1", name: "", path: "/" };
    assert.deepEqual(asked({ served: [pods, nodes], namespace: "shop" }), [
      ...["list", "watch"].map((verb) => ({
        ...common,
        verb,
        resource: "pods",
        scope: "namespace",
        namespace: "shop",
      })),
      ...["list", "watch"].map((verb) => ({ ...common, verb, resource: "nodes", ...cluster })),
    ]);
    assert.deepEqual(asked({ served: [pods] }), [
      ...["list", "watch"].map((verb) => ({ ...common, verb, resource: "pods", ...cluster })),
    ]);
  });
});

describe("newAccess, the guard of hosts,", () => {
  const answer = async (options: Partial<AccessOptions>, headers: Record<string, string>) => {
    const response = await newApp({ host: "127.0.0.1", ...options }).request("http://127.0.0.1:8787/", {
      headers,
    });
    return [response.status, response.status === 403 ? await response.text() : ""];
  };

  it("says for which names the server answers, whatever their case", async () => {
    const text = (known: string, hint: string) =>
      `This server only answers requests for ${known}; this request is for "evil.example"${hint}.\n`;
    const evil = { Host: "evil.example:8787" };
    assert.deepEqual(await answer({}, evil), [403, text("localhost", "")]);
    assert.deepEqual(await answer({ host: "0.0.0.0" }, evil), [
      403,
      text("IP addresses and known host names", "; --allow-host adds a name"),
    ]);
    // Addresses of others, and a name that is the server's on an interface, say nothing on loopback.
    for (const Host of ["10.0.0.7", "[fd00::7]"]) assert.equal((await answer({}, { Host }))[0], 403, Host);
    for (const Host of ["CACHE.example", "cache.EXAMPLE:80"]) {
      assert.equal((await answer({ allowedHosts: ["Cache.Example"] }, { Host }))[0], 200, Host);
      assert.equal((await answer({ host: "Cache.Example" }, { Host }))[0], 200, Host);
    }
    assert.equal((await answer({}, { Host: "a b" }))[0], 403);
    assert.equal((await answer({ token: TOKEN }, evil))[0], 401);
  });

  it("answers pages of other sites that may read, and no page of another one", async () => {
    const page = (Origin: string | undefined, site: string) => ({
      "Sec-Fetch-Site": site,
      ...(Origin !== undefined && { Origin }),
    });
    const own = "https://dashboard.example";
    for (const corsOrigins of [[own], [own, "https://other.example"], ["*"]]) {
      assert.equal((await answer({ corsOrigins }, page(own, "cross-site")))[0], 200);
      assert.deepEqual(await answer({ corsOrigins }, page(undefined, "cross-site")), [
        403,
        "This server does not answer requests from pages of other sites.\n",
      ]);
    }
    assert.equal((await answer({ corsOrigins: [own] }, page("https://evil.example", "cross-site")))[0], 403);
    assert.equal((await answer({}, page(own, "cross-site")))[0], 403);
    const isOpen = { host: "0.0.0.0", token: TOKEN };
    assert.equal((await answer(isOpen, page("https://evil.example", "cross-site")))[0], 401);
  });
});

describe("readerToken", () => {
  it("is a token, or what a file has in it at the time, if that is a token", async () => {
    const options = { clock: new FakeClock(), logger: silentLogger };
    assert.equal(await readerToken(options), undefined);
    assert.equal(await readerToken({ ...options, token: TOKEN }), TOKEN);
    const folder = await mkdtemp(join(tmpdir(), "listwatch-token-"));
    const tokenFile = join(folder, "token");
    try {
      await assert.rejects(readerToken({ ...options, tokenFile }));
      await writeFile(tokenFile, "short");
      await assert.rejects(
        readerToken({ ...options, tokenFile }),
        /^UsageError: The token in .* is shorter than 16/,
      );
      await writeFile(tokenFile, `${TOKEN}\n`);
      const read = await readerToken({ ...options, tokenFile });
      assert.equal(await (read as () => Promise<string>)(), TOKEN);
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});

it("isLoopback knows the names and addresses of this machine", () => {
  assert.ok(isLoopback("LOCALHOST.") && isLoopback("127.0.0.1"));
  assert.ok(!isLoopback("localhost.evil.example") && !isLoopback("128.0.0.1") && !isLoopback(""));
});
