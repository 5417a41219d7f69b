import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { describe, it } from "node:test";
import { KubeconfigError, loadCluster, restConfigFromKubeconfig } from "@listwatch/cache/node";
import {
  environmentIsInTheWay,
  explainingProxy,
  parseProxy,
  type Proxy,
  proxyFromEnvironment,
} from "../../src/node/fetch/proxy.ts";

const PROXY = "http://proxy.example:3128";

/** Whether a server is reached through the proxy, by the entries of NO_PROXY. */
const EXCEPTIONS: readonly (readonly [server: string, exceptions: string, isProxied: boolean])[] = [
  ["https://a.example", "", true],
  // This machine never is.
  ["https://localhost:6443", "", false],
  ["https://127.0.0.1:6443", "", false],
  ["https://127.9.9.9", "", false],
  ["https://[::1]:6443", "", false],
  ["https://[::ffff:127.0.0.1]", "", false],
  ["https://sub.localhost", "", true],
  ["https://127.128.0.1", "", false],
  ["https://126.0.0.1", "", true],
  ["https://128.0.0.1", "", true],
  ["https://a.example.", "", true],
  // A name is that host, and those below it.
  ["https://a.example", "a.example", false],
  ["https://b.a.example", "a.example", false],
  ["https://ba.example", "a.example", true],
  ["https://example", "a.example", true],
  ["https://A.Example", " A.EXAMPLE ", false],
  ["https://a.example", ".a.example", true],
  ["https://b.a.example", ".a.example", false],
  ["https://a.example", "*.a.example", true],
  ["https://b.a.example", "*.a.example", false],
  ["https://a.example", "*example", true],
  ["https://bücher.example", "bücher.example", false],
  ["https://x.bücher.example", ".bücher.example", false],
  // With a port
  ["https://a.example", "a.example:443", false],
  ["https://a.example:6443", "a.example:443", true],
  ["https://a.example:6443", "a.example:6443", false],
  ["http://a.example", "a.example:80", false],
  ["https://b.a.example:6443", ".a.example:6443", false],
  ["https://a.example", "a.example:", false],
  // Addresses
  ["https://10.0.0.1", "10.0.0.1", false],
  ["https://10.0.0.1", "10.0.0.1:443", false],
  ["https://10.0.0.1", "10.0.0.1:6443", true],
  ["https://110.0.0.1", "10.0.0.1", true],
  ["https://10.0.0.1", ".0.0.1", true],
  ["https://10.0.0.1", "0.0.1", true],
  ["https://[fd00::1]", "fd00::1", false],
  ["https://[fd00::1]", "FD00:0:0::1", false],
  ["https://[fd00::1]:6443", "[fd00::1]:6443", false],
  ["https://[fd00::1]:6443", "[fd00::1]:443", true],
  ["https://[::ffff:10.0.0.1]", "10.0.0.1", false],
  // Networks
  ["https://10.1.2.3", "10.0.0.0/8", false],
  ["https://11.1.2.3", "10.0.0.0/8", true],
  ["https://10.1.2.3", "10.1.2.0/30", false],
  ["https://10.1.2.4", "10.1.2.0/30", true],
  ["https://10.1.2.3", "0.0.0.0/0", false],
  ["https://[fd00::1]", "0.0.0.0/0", true],
  ["https://[fd00::1]", "fd00::/8", false],
  ["https://[fe80::1]", "fd00::/8", true],
  ["https://a.example", "10.0.0.0/8", true],
  ["https://[fd00:1::2]", "fd00:1:0:0:0:5::/32", false],
  ["https://10.1.2.3", "10.1.2.3/32", false],
  ["https://10.1.2.3", "10.1.2.3/33", true],
  ["https://10.1.2.3", "10.0.0/8", true],
  // Lists
  ["https://a.example", "*", false],
  ["https://10.0.0.1", "*", false],
  ["https://a.example", "b.example, ,a.example", false],
  ["https://a.example", "b.example,:443,,*", false],
  ["https://a.example", ":443", true],
  // What is neither a name nor an address
  ["https://10.0.0.1", "10.0.0.256,10.0.0.256/8", true],
  ["https://a.example", "[,a example,a.example", false],
];

describe("proxyFromEnvironment", () => {
  for (const [server, exceptions, isProxied] of EXCEPTIONS) {
    it(`${isProxied ? "uses" : "does not use"} the proxy for ${server}, NO_PROXY=${exceptions}`, () => {
      const env = { HTTPS_PROXY: PROXY, HTTP_PROXY: PROXY, NO_PROXY: exceptions };
      assert.equal(proxyFromEnvironment(server, env), isProxied && PROXY);
    });
  }

  it("reads the variable of the server's scheme, the upper-case name first, and an empty one as none", () => {
    const read = (env: Record<string, string>, server = "https://a.example") =>
      proxyFromEnvironment(server, env);
    assert.equal(read({}), false);
    assert.equal(read({ HTTP_PROXY: PROXY, ALL_PROXY: PROXY }), false);
    assert.equal(read({ HTTPS_PROXY: PROXY }, "http://a.example"), false);
    assert.equal(read({ http_proxy: PROXY }, "http://a.example"), PROXY);
    assert.equal(read({ HTTPS_PROXY: PROXY, https_proxy: "http://other" }), PROXY);
    assert.equal(read({ HTTPS_PROXY: "", https_proxy: PROXY }), PROXY);
    assert.equal(read({ HTTPS_PROXY: PROXY, no_proxy: "a.example" }), false);
    assert.equal(read({ HTTPS_PROXY: PROXY, NO_PROXY: "b.example", no_proxy: "a.example" }), PROXY);
  });

  it("adds http to a proxy without a scheme", () => {
    const read = (value: string) => proxyFromEnvironment("https://a.example", { HTTPS_PROXY: value });
    assert.equal(read("proxy.example:3128"), PROXY);
    assert.equal(read("jane:s3cret@proxy.example:3128"), "http://jane:s3cret@proxy.example:3128");
  });

  it("throws for what is no proxy that is supported, with the variable's name and without its value", () => {
    const read = (env: Record<string, string>, server: string) => () => proxyFromEnvironment(server, env);
    for (const value of ["socks5://jane:s3cret@a", "http://jane:s3cret@[", "s3cret@:"]) {
      assert.throws(read({ https_proxy: value }, "https://a.example"), (error) => {
        assert.ok(error instanceof KubeconfigError);
        assert.match(error.message, /^Cannot use the proxy of https_proxy: /);
        return !error.message.includes("s3cret");
      });
    }
    assert.throws(read({ HTTP_PROXY: PROXY, REQUEST_METHOD: "GET" }, "http://a.example"), /CGI/);
    // No header of a client can set this one.
    assert.equal(read({ HTTPS_PROXY: PROXY, REQUEST_METHOD: "GET" }, "https://a.example")(), PROXY);
  });

  it("says nothing where variables may not be read", () => {
    const env = new Proxy({}, {
      get: () => {
        throw new Error("Requires env access");
      },
    });
    assert.equal(proxyFromEnvironment("https://a.example", env), undefined);
  });
});

describe("environmentIsInTheWay", () => {
  it("says that a variable would lead a runtime's own fetch elsewhere", () => {
    const names = ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY"];
    const variables = [...names, ...names.map((name) => name.toLowerCase())];
    const before = variables.map((name) => [name, process.env[name]] as const);
    try {
      for (const set of variables) {
        for (const name of variables) delete process.env[name];
        for (const proxy of [PROXY, false] as const) assert.equal(environmentIsInTheWay(proxy), false);
        process.env[set] = PROXY;
        const isException = set.toUpperCase() === "NO_PROXY";
        assert.deepEqual([environmentIsInTheWay(PROXY), environmentIsInTheWay(false)], [
          isException,
          !isException,
        ]);
      }
    } finally {
      for (const [name, value] of before) {
        if (value === undefined) delete process.env[name];
        else process.env[name] = value;
      }
    }
  });
});

describe("restConfigFromKubeconfig with a proxy-url", () => {
  const kubeconfig = (url: string) => ({
    files: ["/config"],
    "current-context": "dev",
    clusters: new Map([["c", { server: "https://c.example", "proxy-url": url }]]),
    users: new Map(),
    contexts: new Map([["dev", { cluster: "c" }]]),
  });

  it("refuses one that is not supported, and does not show it", async () => {
    for (const url of ["socks5://jane:s3cret@a", "proxy.example:3128", "s3cret"]) {
      await assert.rejects(restConfigFromKubeconfig(kubeconfig(url)), (error) => {
        assert.ok(error instanceof KubeconfigError);
        assert.match(
          error.message,
          /^Cannot use the context "dev" of \/config: cluster "c": its proxy-url cannot be/,
        );
        return !error.message.includes("s3cret");
      });
    }
  });

  it("does not read the variables then, as client-go", async () => {
    const env = { HTTPS_PROXY: "socks5://unsupported" };
    await restConfigFromKubeconfig(kubeconfig(PROXY), { env });
    await assert.rejects(restConfigFromKubeconfig(kubeconfig(""), { env }), /HTTPS_PROXY: socks5 is not/);
  });

  it("reads the variables of the process where none are given", async () => {
    const { HTTPS_PROXY: before } = process.env;
    process.env.HTTPS_PROXY = "socks5://unsupported";
    try {
      await assert.rejects(restConfigFromKubeconfig(kubeconfig("")), /HTTPS_PROXY: socks5 is not/);
    } finally {
      if (before === undefined) delete process.env.HTTPS_PROXY;
      else process.env.HTTPS_PROXY = before;
    }
  });
});

it("loadCluster in a pod heeds the proxy variables", async () => {
  const env = {
    KUBERNETES_SERVICE_HOST: "10.0.0.1",
    KUBERNETES_SERVICE_PORT: "443",
    HOME: "/nonexistent",
    HTTPS_PROXY: "socks5://unsupported",
  };
  const serviceAccountPath = await mkdtemp(join(tmpdir(), "listwatch-pod-"));
  try {
    await writeFile(`${serviceAccountPath}/token`, "t");
    const logger = { debug() {}, info() {}, warn() {}, error() {} };
    await assert.rejects(loadCluster({ env, serviceAccountPath, logger }), /HTTPS_PROXY: socks5 is not/);
    await loadCluster({ env: { ...env, NO_PROXY: "10.0.0.0/8" }, serviceAccountPath, logger });
  } finally {
    await rm(serviceAccountPath, { recursive: true });
  }
});

describe("parseProxy", () => {
  it("reads a user, a password, or both, and what is not encoded as it is", () => {
    const userOf = (user: string) => parseProxy(`http://${user}@proxy.example:3128`);
    for (
      const [text, name, password] of [
        ["jane", "jane", ""],
        [":secret", "", "secret"],
        ["j%40ne:100%", "j@ne", "100%"],
      ]
    ) {
      assert.deepEqual(userOf(text), { origin: PROXY, user: { name, password } });
    }
    assert.deepEqual(parseProxy(PROXY), { origin: PROXY });
  });
});

describe("explainingProxy", () => {
  const proxy = { origin: PROXY };
  /** What is returned for a response of a status. */
  const explained = async (status: number, url: string, through: Proxy = proxy) =>
    await explainingProxy(() => Promise.resolve(new Response("said", { status })), through)(url);

  it("says that a proxy asks for a user where it answers a plain request with 407", async () => {
    const http = "http://cluster.example/version";
    await assert.rejects(
      explained(407, http),
      /asks for a user and password \(407\)/,
    );
    const user = { name: "jane", password: "secret" };
    await assert.rejects(
      explained(407, http, { ...proxy, user }),
      (error) => /refused the user and password/.test(String(error)) && !/secret/.test(String(error)),
    );
    assert.equal((await explained(200, http)).status, 200);
  });

  it("leaves a 407 of the server itself to the caller: behind a tunnel no proxy answers", async () => {
    const response = await explained(407, "https://cluster.example/version");
    assert.deepEqual([response.status, await response.text()], [407, "said"]);
  });

  it("names the proxy in errors, with the code of their cause, and leaves the reason of an abort as it is", async () => {
    const cause = Object.assign(new Error(""), { code: "ECONNREFUSED" });
    const fetch = () => Promise.reject(new TypeError("fetch failed", { cause }));
    await assert.rejects(async () => await explainingProxy(fetch, proxy)("https://cluster.example"), {
      message: `ECONNREFUSED, by way of the proxy ${PROXY}`,
      code: "ECONNREFUSED",
    });
    const reason = new Error("no longer needed");
    const aborted = () => Promise.reject(reason);
    const signal = AbortSignal.abort();
    const ended = async () => await explainingProxy(aborted, proxy)("https://cluster.example", { signal });
    await assert.rejects(ended, (error) => error === reason);
  });

  it("gives up the body of what the proxy answers itself", async () => {
    let isGivenUp = false;
    const body = new ReadableStream({ cancel: () => void (isGivenUp = true) });
    const fetch = explainingProxy(() => Promise.resolve(new Response(body, { status: 407 })), proxy);
    await assert.rejects(async () => await fetch("http://cluster.example"), /407/);
    assert.ok(isGivenUp);
  });
});
