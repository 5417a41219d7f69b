import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { homedir, tmpdir } from "node:os";
import process from "node:process";
import { delimiter, join } from "node:path";
import { after, describe, it } from "node:test";
import { KubeconfigError, loadKubeconfig, restConfigFromKubeconfig } from "@listwatch/cache/node";
import { FakeClock } from "@listwatch/cache/testing";
import { FileToken } from "../../src/node/kubeconfig/rest_config.ts";
import { ExecCredentials } from "../../src/node/kubeconfig/exec_credentials.ts";
import { LogRecorder } from "../log_recorder.ts";
import { until } from "../until.ts";

const folder = mkdtempSync(join(tmpdir(), "listwatch-kubeconfig-"));
after(() => rmSync(folder, { recursive: true }));

function file(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text, { mode: 0o700 });
  return path;
}

function config(name: string, { server = `https://${name}.example`, user = "token: t" } = {}): string {
  return `apiVersion: v1
kind: Config
current-context: ${name}
clusters: [{name: ${name}, cluster: {server: "${server}"}}]
users: [{name: ${name}, user: {${user}}}]
contexts: [{name: ${name}, context: {cluster: ${name}, user: ${name}, namespace: shop}}]
`;
}

describe("loadKubeconfig", () => {
  it("reads the file of `path`", async () => {
    const path = file("one", config("one"));
    const kubeconfig = await loadKubeconfig({ path });
    assert.deepEqual(kubeconfig.files, [path]);
    assert.equal(kubeconfig["current-context"], "one");
    assert.equal(kubeconfig.clusters.get("one")?.server, "https://one.example");
  });

  it("merges the files of KUBECONFIG: whole entries from the first file that has them, missing files skipped", async () => {
    const first = file("first", "clusters: [{name: two, cluster: {server: 'https://first.example'}}]");
    const second = file("second", config("two", { user: "token: second" }));
    const env = { KUBECONFIG: [first, join(folder, "missing"), second, first].join(delimiter) };
    const kubeconfig = await loadKubeconfig({ env });
    assert.deepEqual(kubeconfig.files, [first, second]);
    assert.deepEqual(kubeconfig.clusters.get("two"), { server: "https://first.example" });
    assert.equal(kubeconfig["current-context"], "two");
  });

  it("reads the default file of the user without a variable, and no entries where there is null", async () => {
    // The machine may have the file.
    const looked = await loadKubeconfig({ env: {} }).then(({ files }) => files.join(), String);
    assert.ok(looked.includes(join(homedir(), ".kube", "config")), looked);
    const { clusters, users } = await loadKubeconfig({ path: file("null", "clusters: null\nusers: ~") });
    assert.equal(clusters.size + users.size, 0);
  });

  it("resolves relative paths from the file's folder", async () => {
    const path = file("relative", config("r", { user: "tokenFile: secrets/token, client-key: /abs/key" }));
    const user = (await loadKubeconfig({ path })).users.get("r");
    assert.equal(user?.tokenFile, join(folder, "secrets/token"));
    assert.equal(user?.["client-key"], "/abs/key");
  });

  it("names the file that is missing, not YAML, or of another shape", async () => {
    await assert.rejects(
      loadKubeconfig({ path: join(folder, "nothing") }),
      /nothing: the file does not exist/,
    );
    await assert.rejects(loadKubeconfig({ path: file("broken", "a: [") }), /broken: it is not YAML/);
    await assert.rejects(loadKubeconfig({ path: file("list", "- a") }), /list: it is not a mapping/);
    await assert.rejects(loadKubeconfig({ path: file("odd", "users: 3") }), /odd: users is not a list/);
    await assert.rejects(loadKubeconfig({ env: { HOME: join(folder, "home") } }), KubeconfigError);
  });
});

describe("restConfigFromKubeconfig", () => {
  it("returns the server, the token and the namespace", async () => {
    const kubeconfig = await loadKubeconfig({ path: file("c1", config("c1")) });
    const rest = await restConfigFromKubeconfig(kubeconfig);
    assert.equal(rest.server, "https://c1.example");
    assert.equal(rest.token, "t");
    assert.equal(rest.namespace, "shop");
  });

  it("rejects an unknown context with the names of the known ones", async () => {
    const kubeconfig = await loadKubeconfig({ path: file("c2", config("c2")) });
    await assert.rejects(
      restConfigFromKubeconfig(kubeconfig, { context: "prod" }),
      /Cannot use the context "prod": .*c2 has no such context; its contexts: c2/,
    );
  });

  it("rejects a context whose cluster or user is missing", async () => {
    const kubeconfig = await loadKubeconfig({
      path: file(
        "c3",
        "contexts: [{name: a, context: {cluster: none, user: none}}, {name: b, context: {cluster: k, user: none}}]\n" +
          "clusters: [{name: k, cluster: {server: 'https://k.example'}}]",
      ),
    });
    await assert.rejects(restConfigFromKubeconfig(kubeconfig), /has no current-context; its contexts: a, b/);
    await assert.rejects(
      restConfigFromKubeconfig(kubeconfig, { context: "a" }),
      /its cluster "none" does not exist/,
    );
    await assert.rejects(
      restConfigFromKubeconfig(kubeconfig, { context: "b" }),
      /its user "none" does not exist/,
    );
  });

  it("sends credentials over TLS only", async () => {
    const kubeconfig = await loadKubeconfig({
      path: file("c4", config("c4", { server: "http://plain.example" })),
    });
    assert.equal((await restConfigFromKubeconfig(kubeconfig)).token, undefined);
  });

  it("supports basic auth and impersonation", async () => {
    const kubeconfig = await loadKubeconfig({
      path: file("c5", config("c5", { user: "username: jöe, password: p, as: ann, as-groups: [a, b]" })),
    });
    const rest = await restConfigFromKubeconfig(kubeconfig);
    assert.equal(
      rest.headers?.Authorization,
      `Basic ${btoa(String.fromCharCode(...new TextEncoder().encode("jöe:p")))}`,
    );
    assert.deepEqual(rest.impersonate, { user: "ann", groups: ["a", "b"] });
  });

  it("adds a missing scheme: https if there are TLS settings, else http", async () => {
    const server = async (name: string, cluster: string) => {
      const text = config(name, { server: "10.0.0.1:6443" }).replace('server: "10', `${cluster}server: "10`);
      const rest = await restConfigFromKubeconfig(await loadKubeconfig({ path: file(name, text) }));
      return [rest.server, rest.token];
    };
    assert.deepEqual(await server("s1", ""), ["http://10.0.0.1:6443", undefined]);
    assert.deepEqual(await server("s2", "insecure-skip-tls-verify: true, "), ["https://10.0.0.1:6443", "t"]);
  });

  it("passes on its clock and logger", async () => {
    const kubeconfig = await loadKubeconfig({ path: file("c8", config("c8")) });
    const options = { clock: new FakeClock(), logger: new LogRecorder() };
    const { clock, logger } = await restConfigFromKubeconfig(kubeconfig, options);
    assert.deepEqual([clock, logger], [options.clock, options.logger]);
  });

  it("rejects data that is not base64, a client certificate without a key, and a server that is not a string", async () => {
    const refused = async (name: string, text: string) => {
      const kubeconfig = await loadKubeconfig({ path: file(name, text) });
      const error = await restConfigFromKubeconfig(kubeconfig).catch((error) => error);
      assert.ok(error instanceof KubeconfigError, String(error));
      return error.message;
    };
    assert.match(await refused("d1", config("d1", { user: "client-key-data: '%%%'" })), /is not base64/);
    assert.match(
      await refused("d2", config("d2", { user: `client-key-data: ${btoa("k")}` })),
      /without a client-certificate/,
    );
    assert.match(
      await refused("d3", config("d3", { user: "client-certificate: /no/such" })),
      /Cannot read \/no\/such, which/,
    );
    assert.match(
      await refused("d4", config("d4", { user: `client-certificate-data: ${btoa("c")}` })),
      /without a client-key/,
    );
    const numeric =
      "current-context: n\ncontexts: [{name: n, context: {cluster: n}}]\nclusters: [{name: n, cluster: {server: 7}}]";
    assert.match(await refused("d5", numeric), /its cluster "n" has no server/);
  });

  it("rejects unsupported settings with an alternative", async () => {
    const kubeconfig = await loadKubeconfig({
      path: file("c6", config("c6", { user: "auth-provider: {name: oidc}" })),
    });
    await assert.rejects(
      restConfigFromKubeconfig(kubeconfig),
      /auth-provider oidc is not supported; use an exec/,
    );
  });
});

describe("FileToken", () => {
  it("reads the file again after a minute, or when the token was refused", async () => {
    const path = file("token", "one\n");
    const clock = new FakeClock();
    const token = new FileToken(path, { clock, logger: new LogRecorder() });
    assert.equal(await token.read(), "one");
    writeFileSync(path, "two");
    assert.equal(await token.read(), "one");
    await clock.advance(60_000);
    assert.equal(await token.read(), "two");
    writeFileSync(path, "three");
    token.forget("one");
    assert.equal(await token.read(), "two");
    token.forget("two");
    assert.equal(await token.read(), "three");
  });

  it("keeps the last token when a read fails, and logs a warning", async () => {
    const path = file("token2", "one");
    const log = new LogRecorder();
    const clock = new FakeClock();
    const token = new FileToken(path, { clock, logger: log });
    await token.read();
    writeFileSync(path, "");
    await clock.advance(60_000);
    assert.equal(await token.read(), "one");
    assert.match(log.of("warn")[0], /token2: the file is empty; the last token stays in use/);
  });

  it("rejects when the first read fails", async () => {
    const token = new FileToken(join(folder, "no token"), {
      clock: new FakeClock(),
      logger: new LogRecorder(),
    });
    await assert.rejects(token.read(), KubeconfigError);
  });
});

describe("ExecCredentials", () => {
  const options = {
    clock: new FakeClock(),
    context: "dev",
    cluster: { server: "https://x.example" },
    tls: {},
  };

  function plugin(name: string, answer: string) {
    const count = join(folder, `${name}.count`);
    const command = file(name, `#!/bin/sh\necho run >> ${count}\ncat <<'END'\n${answer}\nEND\n`);
    return { command, env: [{ name: "X", value: "y" }], apiVersion: "client.authentication.k8s.io/v1" };
  }

  it("runs the plugin once, and again when its token expires or is refused", async () => {
    const clock = new FakeClock();
    const config = plugin(
      "good",
      '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":' +
        '{"token":"abc","expirationTimestamp":"1970-01-01T00:00:10Z"}}',
    );
    const runs = () => readFileSync(join(folder, "good.count"), "utf8").trim().split("\n").length;
    const credentials = new ExecCredentials(config, { ...options, clock });
    assert.deepEqual(await Promise.all([credentials.token(), credentials.token()]), ["abc", "abc"]);
    assert.equal(runs(), 1);
    credentials.forget("another");
    await credentials.token();
    assert.equal(runs(), 1);
    credentials.forget("abc");
    await credentials.token();
    assert.equal(runs(), 2);
    await clock.advance(10_000);
    await credentials.token();
    assert.equal(runs(), 3);
    // While a computer is suspended, its monotonic clock may stop.
    credentials.forget("abc");
    clock.setWallClock(5_000);
    await credentials.token();
    clock.setWallClock(10_000);
    await credentials.token();
    assert.equal(runs(), 5);
  });

  it("counts the time of a token from when the plugin gave it", async () => {
    const clock = new FakeClock();
    const late = plugin(
      "late",
      '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":' +
        '{"token":"abc","expirationTimestamp":"1970-01-01T00:01:50Z"}}',
    );
    const credentials = new ExecCredentials(late, { ...options, clock });
    await clock.advance(100_000);
    for (let i = 0; i < 3; i++) await credentials.token();
    assert.equal(readFileSync(join(folder, "late.count"), "utf8"), "run\n");
  });

  it("keeps a certificate when another one was refused", async () => {
    const status = { clientCertificateData: "new", clientKeyData: "its key" };
    const config = plugin(
      "renewed",
      JSON.stringify({ apiVersion: "client.authentication.k8s.io/v1", status }),
    );
    const runs = () => readFileSync(join(folder, "renewed.count"), "utf8").trim().split("\n").length;
    const credentials = new ExecCredentials(config, options);
    assert.equal(await credentials.token(), "");
    credentials.forget("", { clientCertificateData: "old" });
    await credentials.token();
    assert.equal(runs(), 1);
    credentials.forget("", status);
    await credentials.token();
    assert.equal(runs(), 2);
  });

  it("uses the connections of a certificate again, and gives up the answer that refuses it", async () => {
    const pem = (name: string) => readFileSync(new URL(`./fixtures/${name}`, import.meta.url), "utf8");
    const apiVersion = "client.authentication.k8s.io/v1";
    const command = file("presenting", `#!/bin/sh\ncat ${join(folder, "presented")}\n`);
    const present = (name: string) => {
      const status = { clientCertificateData: pem(`${name}.crt`), clientKeyData: pem(`${name}.key`) };
      file("presented", JSON.stringify({ apiVersion, status }));
    };
    const sockets = new Set<Socket>();
    let refuses = false;
    let closed = 0;
    const server = createServer(({ socket }, response) => {
      sockets.add(socket);
      if (!refuses) return void response.end("yes");
      response.once("close", () => closed++);
      response.writeHead(401).write("no");
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    try {
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      present("client");
      const { fetch } = new ExecCredentials({ command, apiVersion }, options);
      for (let i = 0; i < 3; i++) await (await fetch(url)).text();
      assert.equal(sockets.size, 1);
      refuses = true;
      present("server");
      const refused = await fetch(url);
      await until(() => closed === 1);
      await refused.body?.cancel();
    } finally {
      server.close();
      server.closeAllConnections();
    }
  });

  it("runs the plugin again when its token expires although the wall clock was set back", async () => {
    const clock = new FakeClock();
    const config = plugin(
      "set-back",
      '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":' +
        '{"token":"abc","expirationTimestamp":"1970-01-01T00:00:10Z"}}',
    );
    const runs = () => readFileSync(join(folder, "set-back.count"), "utf8").trim().split("\n").length;
    const credentials = new ExecCredentials(config, { ...options, clock });
    await credentials.token();
    clock.setWallClock(-3_600_000);
    await clock.advance(9_999);
    await credentials.token();
    assert.equal(runs(), 1);
    await clock.advance(1);
    await credentials.token();
    assert.equal(runs(), 2);
  });

  it("names a plugin that is not installed, fails, or prints something unexpected", async () => {
    const asked = (config: ConstructorParameters<typeof ExecCredentials>[0]) =>
      new ExecCredentials(config, options).token();
    await assert.rejects(
      asked({ command: "listwatch-no-such-plugin", installHint: "get it at the shop" }),
      /"dev": listwatch-no-such-plugin failed: is not installed\nget it at the shop/,
    );
    await assert.rejects(asked(plugin("text", "hello")), /something other than JSON/);
    await assert.rejects(
      asked(plugin("empty", '{"apiVersion":"client.authentication.k8s.io/v1","status":null}')),
      /neither a token/,
    );
    const older = '{"apiVersion":"client.authentication.k8s.io/v1beta1","status":{"token":"t"}}';
    await assert.rejects(
      asked(plugin("older", older)),
      /answered in a version other than client.authentication.k8s.io\/v1/,
    );
    const gives = (status: object) =>
      asked(plugin("odd", JSON.stringify({ apiVersion: "client.authentication.k8s.io/v1", status })));
    await assert.rejects(gives({ token: "a secret" }), (error) => {
      return /gave a token that is not valid/.test(String(error)) && !/secret/.test(String(error));
    });
    await assert.rejects(
      gives({ clientCertificateData: 5, clientKeyData: 5 }),
      /or key that is not a string/,
    );
    for (const field of ["clientCertificateData", "clientKeyData"]) {
      await assert.rejects(
        gives({ token: "t", [field]: "x" }),
        /gave a client certificate without its key, or/,
      );
    }
    for (const expirationTimestamp of ["tomorrow", 60]) {
      await assert.rejects(
        gives({ token: "t", expirationTimestamp }),
        /an expirationTimestamp that is not a time/,
      );
    }
    assert.equal(await gives({ token: "t", expirationTimestamp: null }), "t");
    await assert.rejects(
      asked({ command: "listwatch-no-such-plugin", installHint: "get it\n\x1b[1mat the shop" }),
      /is not installed\nget it\n\\x1b\[1mat the shop$/,
    );
    await assert.rejects(asked({ command: "x", apiVersion: "v9" }), /uses the version v9/);
    await assert.rejects(asked({ command: "x", interactiveMode: "Always" }), /needs a terminal/);
  });

  it("gives the plugin KUBERNETES_EXEC_INFO, the variables of the process, its own, and no stdin", async () => {
    process.env.LISTWATCH_PLUGIN_TEST = "the process";
    process.env.LISTWATCH_PLUGIN_OWN = "the process";
    const seen = join(folder, "asking.info");
    const command = file(
      "asking",
      `#!/bin/sh\nread answer\necho "$KUBERNETES_EXEC_INFO$LISTWATCH_PLUGIN_OWN$1$LISTWATCH_PLUGIN_TEST" > ${seen}\n` +
        `echo '{"apiVersion":"client.authentication.k8s.io/v1beta1","status":{"token":"t"}}'\n`,
    );
    const config = {
      command,
      args: ["arg"],
      env: [{ name: "LISTWATCH_PLUGIN_OWN", value: "mine" }],
      apiVersion: "client.authentication.k8s.io/v1beta1",
    };
    const infoOf = async (...[config, options]: ConstructorParameters<typeof ExecCredentials>) => {
      assert.equal(await new ExecCredentials(config, options).token(), "t");
      const [info, rest] = readFileSync(seen, "utf8").split("mine");
      assert.equal(rest, "argthe process\n");
      return JSON.parse(info);
    };
    assert.deepEqual((await infoOf(config, options)).spec, { interactive: false });
    const info = await infoOf({ ...config, provideClusterInfo: true }, {
      ...options,
      cluster: {
        server: "https://x.example",
        "proxy-url": "http://proxy.example",
        extensions: [{ name: "client.authentication.k8s.io/exec", extension: { audience: "a" } }],
      },
      tls: { ca: "CÄ" },
    });
    assert.deepEqual(info, {
      apiVersion: "client.authentication.k8s.io/v1beta1",
      kind: "ExecCredential",
      spec: {
        interactive: false,
        cluster: {
          server: "https://x.example",
          "certificate-authority-data": Buffer.from("CÄ").toString("base64"),
          "proxy-url": "http://proxy.example",
          config: { audience: "a" },
        },
      },
    });
  });
});
