import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { after, describe, it } from "node:test";
import { inspect } from "node:util";
import { KubeconfigError, loadKubeconfig, restConfigFromKubeconfig } from "@listwatch/cache/node";
import {
  REDACTED,
  redactedCluster,
  redactedHeaders,
  redactedUser,
} from "../../src/node/kubeconfig/rest_config.ts";

const folder = mkdtempSync(join(tmpdir(), "listwatch-fields-"));
after(() => rmSync(folder, { recursive: true }));

let files = 0;

function file(text: string): string {
  const path = join(folder, `config-${++files}`);
  writeFileSync(path, text);
  return path;
}

interface Parts {
  readonly cluster?: string;
  readonly user?: string;
  readonly context?: string;
}

async function restConfig(parts: Parts) {
  const path = file(`apiVersion: v1
kind: Config
current-context: dev
clusters: [{name: c, cluster: {${parts.cluster?.includes("server: ") ? "" : `server: "https://c.example",`} ${
    parts.cluster ?? ""
  }}}]
users: [{name: u, user: {${parts.user ?? ""}}}]
contexts: [{name: dev, context: {cluster: c, user: u, ${parts.context ?? ""}}}]
`);
  return await restConfigFromKubeconfig(await loadKubeconfig({ path }));
}

async function refusal(parts: Parts): Promise<string> {
  try {
    await restConfig(parts);
  } catch (error) {
    assert.ok(error instanceof KubeconfigError, String(error));
    return error.message;
  }
  return "";
}

// The results of kubectl 1.32, by `kubectl config view --raw`.
const BOOLEANS: readonly (readonly [yaml: string, read: boolean | "refused"])[] = [
  ...["true", "True", "TRUE", "y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "!!bool yes"].map((text) =>
    [text, true] as const
  ),
  ...["false", "False", "FALSE", "n", "N", "no", "No", "NO", "off", "Off", "OFF", "null", "~", ""].map((
    text,
  ) => [text, false] as const),
  ...['"no"', "'yes'", '"true"', "''", "0", "1", "disabled", "yEs", "[]", "[true]", "{}", "1.5"].map((text) =>
    [text, "refused"] as const
  ),
  ...["!!str yes", "!!str true"].map((text) => [text, "refused"] as const),
];

const ca = readFileSync(new URL("fixtures/ca.crt", import.meta.url), "utf8");

describe("loadKubeconfig, boolean fields", () => {
  for (const [yaml, read] of BOOLEANS) {
    it(`reads ${yaml || "nothing"} as ${read}, like kubectl`, async () => {
      // A server without a scheme gets https if there are TLS settings: the scheme shows the boolean.
      const parts = { cluster: `server: bare.example, insecure-skip-tls-verify: ${yaml}` };
      const path = file(
        `current-context: dev\ncontexts: [{name: dev, context: {cluster: c}}]\nclusters: [{name: c, cluster: {${parts.cluster}}}]`,
      );
      const asked = loadKubeconfig({ path }).then((kubeconfig) => restConfigFromKubeconfig(kubeconfig));
      if (read === "refused") {
        await assert.rejects(asked, (error) => {
          assert.ok(error instanceof KubeconfigError);
          for (const part of [path, '"dev"', "insecure-skip-tls-verify", "true or false"]) {
            assert.ok(error.message.includes(part), `${part} in ${error.message}`);
          }
          return true;
        });
      } else {
        assert.equal((await asked).server, read ? "https://bare.example" : "http://bare.example");
      }
    });
  }

  it("takes a server without a scheme for a secure one where there is a certificate", async () => {
    const fixture = (name: string) => readFileSync(new URL(`fixtures/${name}`, import.meta.url), "utf8");
    const certificate = `client-certificate: ${file(fixture("client.crt"))}`;
    const user = `${certificate}, client-key: ${file(fixture("client.key"))}`;
    assert.equal((await restConfig({ cluster: "server: c.example", user })).server, "https://c.example");
    assert.equal((await restConfig({ cluster: "server: c.example" })).server, "http://c.example");
    const ca = `certificate-authority: ${file(fixture("client.crt"))}`;
    assert.equal((await restConfig({ cluster: `server: c.example, ${ca}` })).server, "https://c.example");
  });

  it("sends credentials where the scheme is in capitals, and takes an empty namespace for none", async () => {
    const parts = { cluster: "server: 'HTTPS://c.example'", user: "token: abcdef", context: "namespace: ''" };
    const config = await restConfig(parts);
    assert.equal(config.token, "abcdef");
    assert.equal("namespace" in config, false);
    assert.equal(config.headers, undefined);
    const plain = await restConfig({ cluster: "disable-compression: true" });
    assert.equal(plain.headers?.["Accept-Encoding"], "identity");
  });

  it("takes the proxy of a cluster, and none of the environment then", async () => {
    const config = `current-context: dev
contexts: [{name: dev, context: {cluster: c}}]
clusters: [{name: c, cluster: {server: "https://c.example", proxy-url: "http://proxy.example:3128"}}]`;
    const kubeconfig = await loadKubeconfig({ path: file(config) });
    const env = { HTTPS_PROXY: "ftp://elsewhere.example" };
    assert.equal((await restConfigFromKubeconfig(kubeconfig, { env })).server, "https://c.example");
  });

  it("refuses a token file with two words, and does not quote them", async () => {
    const loading = restConfig({ user: `tokenFile: ${file("canary words")}` });
    await assert.rejects(loading, (error: Error) => {
      assert.match(error.message, /it holds no valid token: it is not one word/);
      return !error.message.includes("canary");
    });
  });

  it("refuses a token of two words, and does not quote it", async () => {
    const message = await refusal({ user: "token: 'canary words'" });
    assert.match(message, /^Cannot use the context "dev": its user's token is not valid: it is not one word/);
    assert.ok(!message.includes("canary"));
  });

  it("sends a user without a password, over TLS as set, and whom it impersonates as what", async () => {
    const { headers, fetch } = await restConfig({ user: "username: jane" });
    assert.equal(headers?.Authorization, `Basic ${btoa("jane:")}`);
    assert.ok(fetch !== undefined && fetch !== globalThis.fetch);
    const { impersonate } = await restConfig({
      user: "token: t, as: ann, as-uid: '7', as-groups: [devs], as-user-extra: {scopes: [view]}",
    });
    assert.deepEqual(impersonate, { user: "ann", uid: "7", groups: ["devs"], extra: { scopes: ["view"] } });
  });

  it("shows no secrets of headers, plugins and proxies, nor those of a copy", async () => {
    assert.deepEqual(redactedHeaders({ Cookie: "a=b", "X-Team": "c" }), { Cookie: REDACTED, "X-Team": "c" });
    const exec = { command: "aws", args: ["canary"], env: [{ name: "KEY", value: "canary" }] };
    const secrets = { token: "canary", password: "canary", "client-key-data": "canary" };
    const provider = { name: "oidc", config: { "id-token": "canary" } };
    assert.deepEqual(redactedUser({ ...secrets, username: "jane", exec, "auth-provider": provider }), {
      ...{ token: REDACTED, password: REDACTED, "client-key-data": REDACTED, username: "jane" },
      exec: { command: "aws", args: [REDACTED], env: [{ name: "KEY", value: REDACTED }] },
      "auth-provider": { name: "oidc", config: REDACTED },
    });
    assert.deepEqual(redactedUser({ username: "jane" }), { username: "jane" });
    const cluster = { server: "https://x.example", "proxy-url": "http://jane:canary@proxy.example" };
    assert.deepEqual(redactedCluster(cluster), { ...cluster, "proxy-url": REDACTED });
    const path = file(
      "clusters: [{name: c, cluster: {server: x, proxy-url: 'http://jane:canary@p.example'}}]",
    );
    const { clusters } = await loadKubeconfig({ path });
    assert.ok(!(inspect(clusters, { depth: 9 }) + JSON.stringify([...clusters.values()])).includes("canary"));
    const config = await restConfig({ user: "token: canary, as: ann", context: "namespace: shop" });
    const shown = { token: REDACTED, impersonate: { user: "ann" }, namespace: "shop" };
    assert.deepEqual(JSON.parse(JSON.stringify({ ...config })), { server: "https://c.example", ...shown });
    const basic = await restConfig({ user: "username: jane, password: canary" });
    assert.deepEqual(JSON.parse(JSON.stringify(basic)).headers, { Authorization: REDACTED });
  });

  it("names the line of the first alias that has no anchor", async () => {
    const loading = loadKubeconfig({ path: file("kind: Config\nclusters: *one\nusers: *two\n") });
    await assert.rejects(loading, /an alias without an anchor at line 2$/);
  });

  it("reads no file whose aliases make it many times as long, and quotes nothing of it", async () => {
    const [first, ...others] = [..."abcdefgh"];
    const lists = others.map((name, i) => `${name}: &${name} [${Array(9).fill(`*${"abcdefgh"[i]}`)}]\n`);
    const loading = loadKubeconfig({ path: file(`${first}: &${first} [canary]\n${lists.join("")}`) });
    await assert.rejects(loading, /config-[0-9]+: it is not YAML: too many aliases$/);
  });

  it("prints nothing of a file that has a mapping as a key", async () => {
    const printed: unknown[] = [];
    const { warn } = console;
    const { emitWarning } = process;
    console.warn = process.emitWarning = (...of: unknown[]) => void printed.push(...of);
    try {
      await loadKubeconfig({ path: file("preferences: {? {token: canary} : x}") });
    } finally {
      console.warn = warn;
      process.emitWarning = emitWarning;
    }
    assert.deepEqual(printed, []);
  });

  it("looks for a plugin in the folder of the file only where its command is a path", async () => {
    for (
      const [command, found] of [["aws", "aws"], ["./bin/aws", join(folder, "bin/aws")], [
        "/bin/aws",
        "/bin/aws",
      ]]
    ) {
      const path = file(`users: [{name: u, user: {exec: {args: [a], command: "${command}"}}}]`);
      const { users } = await loadKubeconfig({ path });
      assert.deepEqual({ ...users.get("u")?.exec }, { args: ["a"], command: found });
    }
  });

  it("reads them through anchors, aliases and merged mappings", async () => {
    const text = (flag: string) => `
base: &base {insecure-skip-tls-verify: ${flag}}
flag: &flag ${flag}
current-context: merged
contexts: [{name: merged, context: {cluster: merged}}, {name: alias, context: {cluster: alias}}]
clusters:
- {name: merged, cluster: {<<: *base, server: bare.example}}
- {name: alias, cluster: {insecure-skip-tls-verify: *flag, server: bare.example}}
`;
    for (const [flag, scheme] of [["no", "http"], ["yes", "https"]]) {
      for (const context of ["merged", "alias"]) {
        const kubeconfig = await loadKubeconfig({ path: file(text(flag)) });
        const { server } = await restConfigFromKubeconfig(kubeconfig, { context });
        assert.equal(server, `${scheme}://bare.example`, `${context} ${flag}`);
      }
    }
  });

  it("leaves the strings of other fields as they are: a cluster may be named n", async () => {
    const path = file(
      "current-context: n\ncontexts: [{name: n, context: {cluster: no, namespace: on}}]\nclusters: [{name: no, cluster: {server: 'https://x.example'}}]",
    );
    assert.equal((await restConfigFromKubeconfig(await loadKubeconfig({ path }))).namespace, "on");
  });

  it("refuses a certificate authority together with insecure-skip-tls-verify, as client-go does", async () => {
    const insecure = "insecure-skip-tls-verify: true";
    const text = /certificate-authority.*insecure-skip-tls-verify/;
    const data = `certificate-authority-data: ${btoa(ca)}`;
    assert.match(await refusal({ cluster: `${insecure}, ${data}` }), text);
    assert.match(await refusal({ cluster: `${insecure}, certificate-authority: ${file(ca)}` }), text);
    assert.equal(await refusal({ cluster: `insecure-skip-tls-verify: no, ${data}` }), "");
    assert.equal(await refusal({ cluster: insecure }), "");
  });
});

describe("restConfigFromKubeconfig, a field of a wrong type", () => {
  const wrong: readonly (readonly [field: string, parts: Parts])[] = [
    ["tls-server-name", { cluster: "tls-server-name: 7" }],
    ["certificate-authority", { cluster: "certificate-authority: [a]" }],
    ["certificate-authority-data", { cluster: "certificate-authority-data: 5" }],
    ["proxy-url", { cluster: "proxy-url: [x]" }],
    ["disable-compression", { cluster: "disable-compression: 'yes'" }],
    ["disable-compression", { cluster: "disable-compression: 1" }],
    ["token", { user: "token: 123456" }],
    ["token", { user: "token: [abc]" }],
    ["token", { user: "token: {a: b}" }],
    ["token", { user: "token: true" }],
    ["tokenFile", { user: "tokenFile: 5" }],
    ["username", { user: "username: 5" }],
    ["password", { user: "username: u, password: 123456" }],
    ["client-key-data", { user: "client-key-data: 123456" }],
    ["client-certificate", { user: "client-certificate: {}" }],
    ["as", { user: "as: 5" }],
    ["as-uid", { user: "as: ann, as-uid: 5" }],
    ["as-groups", { user: "as: ann, as-groups: devs" }],
    ["as-groups", { user: "as: ann, as-groups: [1]" }],
    ["as-groups", { user: "as: ann, as-groups: [devs, 1]" }],
    ["as-user-extra", { user: "as: ann, as-user-extra: [a]" }],
    ["as-user-extra", { user: "as: ann, as-user-extra: {a: b}" }],
    ["exec", { user: "exec: nope" }],
    ["exec.command", { user: "exec: {command: 5}" }],
    ["exec.args", { user: "exec: {command: x, args: x}" }],
    ["exec.args", { user: "exec: {command: x, args: [1]}" }],
    ["exec.env", { user: "exec: {command: x, env: {a: b}}" }],
    ["exec.env[0]", { user: "exec: {command: x, env: [a]}" }],
    ["exec.env[0].value", { user: "exec: {command: x, env: [{name: a, value: 123456}]}" }],
    ["exec.interactiveMode", { user: "exec: {command: x, interactiveMode: [Never]}" }],
    ["exec.provideClusterInfo", { user: "exec: {command: x, provideClusterInfo: 'false'}" }],
    ["auth-provider", { user: "auth-provider: oidc" }],
    ["namespace", { context: "namespace: 5" }],
  ];
  for (const [field, parts] of wrong) {
    it(`refuses it with its name and without its value: ${JSON.stringify(parts)}`, async () => {
      const message = await refusal(parts);
      assert.match(message, /^Cannot use the context "dev" of \/.*config-[0-9]+: /);
      assert.ok(message.includes(`its ${field} must be`), message);
      assert.ok(!message.includes("123456"), message);
    });
  }

  it("says what each field is instead", async () => {
    const token = "its token must be a string (use quotes if it looks like a number or boolean), and is";
    for (
      const [value, expected] of [
        ["5", `${token} a number`],
        ["true", `${token} a boolean`],
        ["[a]", `${token} a list of something else`],
        ["{a: b}", `${token} a mapping of something else`],
        ["a, as-groups: b", "its as-groups must be a list of strings, and is a string"],
      ]
    ) {
      assert.ok((await refusal({ user: `token: ${value}` })).endsWith(`user "u": ${expected}`), value);
    }
  });

  it("names the file of the field when there are several files", async () => {
    const first = file(
      "current-context: dev\ncontexts: [{name: dev, context: {cluster: c, user: u}}]\nclusters: [{name: c, cluster: {server: 'https://x.example'}}]",
    );
    const second = file("users: [{name: u, user: {token: 5}}]");
    const kubeconfig = await loadKubeconfig({ env: { KUBECONFIG: `${first}:${second}` } });
    await assert.rejects(restConfigFromKubeconfig(kubeconfig), (error) => {
      assert.ok((error as Error).message.includes(`of ${second}: `), (error as Error).message);
      return true;
    });
  });

  it("refuses it in a kubeconfig that a program made, too", async () => {
    const kubeconfig = {
      files: [],
      "current-context": "dev",
      // deno-lint-ignore no-explicit-any
      clusters: new Map([["c", { server: "https://x", "insecure-skip-tls-verify": "no" } as any]]),
      users: new Map(),
      contexts: new Map([["dev", { cluster: "c" }]]),
    };
    await assert.rejects(
      restConfigFromKubeconfig(kubeconfig),
      /insecure-skip-tls-verify must be true or false/,
    );
  });

  it("refuses entries that are not mappings and names that are not strings", async () => {
    const load = (text: string) => loadKubeconfig({ path: file(text) });
    await assert.rejects(load("clusters: [{name: c, cluster: text}]"), /the cluster "c" is not a mapping/);
    await assert.rejects(load("clusters: [{name: 5, cluster: {}}]"), /the name of a cluster is not a string/);
    await assert.rejects(load("users: [5]"), /a user has no name/);
    assert.match(await refusal({ cluster: "server: ''" }), /its cluster "c" has no server$/);
    await assert.rejects(load("current-context: [a]"), /current-context is not a string/);
  });
});

describe("restConfigFromKubeconfig, contradictory fields", () => {
  it("refuses as-groups, as-uid and as-user-extra without as, as client-go does", async () => {
    for (const user of ["as-groups: [a]", "as-uid: a", "as-user-extra: {a: [b]}"]) {
      assert.match(
        await refusal({ user: `token: t, ${user}` }),
        /as-groups, as-uid and as-user-extra need as/,
      );
    }
    assert.equal(await refusal({ user: 'token: t, as-groups: [], as-uid: "", as-user-extra: {}' }), "");
  });

  it("refuses a plugin without a command or with an unknown interactiveMode", async () => {
    assert.match(await refusal({ user: "exec: {apiVersion: v1}" }), /exec has no command/);
    assert.match(
      await refusal({ user: "exec: {command: x, interactiveMode: Sometimes}" }),
      /interactiveMode.*Never, IfAvailable or Always/,
    );
  });

  it("refuses a server URL with a user or password, and does not show them", async () => {
    for (
      const server of ["https://jane:s3cret@c.example", "https://jane:s3cret@c.example:port", "jane:s3cret@c"]
    ) {
      const message = await refusal({ cluster: `server: "${server}"` }).catch(String);
      assert.match(message, /contains a user or password/);
      assert.ok(!message.includes("s3cret") && !message.includes("jane"), message);
    }
  });
});

describe("loadKubeconfig, users whose exec is odd", () => {
  it("shows nothing that may be a credential, and does not fail", async () => {
    for (
      const exec of [
        "args: s3cret",
        "args: {a: s3cret}",
        "env: s3cret",
        "env: [null, s3cret, {name: a}]",
        "command: [a/b]",
      ]
    ) {
      const path = file(`users: [{name: u, user: {exec: {command: x, ${exec}}}}]`);
      const { users } = await loadKubeconfig({ path });
      const shown = inspect(users, { depth: 9 }) + JSON.stringify([...users.values()]);
      assert.match(shown, /command/, exec);
      assert.ok(!shown.includes("s3cret"), shown);
    }
  });
});

describe("loadKubeconfig, a file that is not YAML", () => {
  it("refuses it with the line and without its text", async () => {
    for (
      const text of [
        "users:\n- token: s3cret\n  x: [",
        "token: *s3cret",
        "a: 's3cret",
        "s3cret: a: b: s3cret",
      ]
    ) {
      const error = await loadKubeconfig({ path: file(text) }).catch((error) => error);
      assert.ok(error instanceof KubeconfigError, text);
      assert.match(error.message, /it is not YAML: .* line [0-9]/);
      assert.equal(error.cause, undefined);
      assert.ok(!error.message.includes("s3cret"), error.message);
    }
  });
});
