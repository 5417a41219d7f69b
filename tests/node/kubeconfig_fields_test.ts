import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { KubeconfigError, loadKubeconfig, restConfigFromKubeconfig } from "@listwatch/cache/node";

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

// What kubectl 1.32 makes of each, by `kubectl config view --raw`.
const BOOLEANS: readonly (readonly [yaml: string, read: boolean | "refused"])[] = [
  ...["true", "True", "TRUE", "y", "Y", "yes", "Yes", "YES", "on", "On", "ON"].map((text) =>
    [text, true] as const
  ),
  ...["false", "False", "FALSE", "n", "N", "no", "No", "NO", "off", "Off", "OFF", "null", "~", ""].map((
    text,
  ) => [text, false] as const),
  ...['"no"', "'yes'", '"true"', "''", "0", "1", "disabled", "yEs", "[]", "[true]", "{}", "1.5"].map((text) =>
    [text, "refused"] as const
  ),
];

const ca = readFileSync(new URL("fixtures/ca.crt", import.meta.url), "utf8");

describe("the boolean fields of a kubeconfig", () => {
  for (const [yaml, read] of BOOLEANS) {
    it(`read ${yaml || "nothing"} as ${read}, like kubectl`, async () => {
      // A bare host is reached over TLS if the kubeconfig says anything about TLS: that shows what was read.
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

  it("are read through anchors, aliases and merged mappings", async () => {
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

  it("leave the texts of other fields alone: a cluster may be named n", async () => {
    const path = file(
      "current-context: n\ncontexts: [{name: n, context: {cluster: no, namespace: on}}]\nclusters: [{name: no, cluster: {server: 'https://x.example'}}]",
    );
    assert.equal((await restConfigFromKubeconfig(await loadKubeconfig({ path }))).namespace, "on");
  });

  it("refuse a certificate authority together with verification turned off, as client-go does", async () => {
    const insecure = "insecure-skip-tls-verify: true";
    const text = /certificate-authority.*insecure-skip-tls-verify/;
    const data = `certificate-authority-data: ${btoa(ca)}`;
    assert.match(await refusal({ cluster: `${insecure}, ${data}` }), text);
    assert.match(await refusal({ cluster: `${insecure}, certificate-authority: ${file(ca)}` }), text);
    assert.equal(await refusal({ cluster: `insecure-skip-tls-verify: no, ${data}` }), "");
    assert.equal(await refusal({ cluster: insecure }), "");
  });
});

describe("a field of a kubeconfig that holds something else than it must", () => {
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
    it(`is refused with its name, and without its value: ${JSON.stringify(parts)}`, async () => {
      const message = await refusal(parts);
      assert.match(message, /^Cannot use the context "dev" of \/.*config-[0-9]+: /);
      assert.ok(message.includes(`its ${field} must be`), message);
      assert.ok(!message.includes("123456"), message);
    });
  }

  it("is told with the file it stands in, of several", async () => {
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

  it("is refused in a kubeconfig that a program made, too", async () => {
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

  it("is refused where an entry or a name is none", async () => {
    const load = (text: string) => loadKubeconfig({ path: file(text) });
    await assert.rejects(load("clusters: [{name: c, cluster: text}]"), /the cluster "c" is no mapping/);
    await assert.rejects(load("clusters: [{name: 5, cluster: {}}]"), /the name of a cluster is no text/);
    await assert.rejects(load("users: [5]"), /a user has no name/);
    await assert.rejects(load("current-context: [a]"), /current-context is no text/);
  });
});

describe("the user of a kubeconfig", () => {
  it("that has groups, a uid or more to speak for, and nobody to speak for, is refused, as client-go does", async () => {
    for (const user of ["as-groups: [a]", "as-uid: a", "as-user-extra: {a: [b]}"]) {
      assert.match(await refusal({ user: `token: t, ${user}` }), /as-groups, as-uid or as-user-extra.*no as/);
    }
  });

  it("whose plugin has no command, or an interactiveMode that is not known, is refused", async () => {
    assert.match(await refusal({ user: "exec: {apiVersion: v1}" }), /exec has no command/);
    assert.match(
      await refusal({ user: "exec: {command: x, interactiveMode: Sometimes}" }),
      /interactiveMode.*Never, IfAvailable or Always/,
    );
  });

  it("whose server holds a user or a password is refused without them", async () => {
    for (
      const server of ["https://jane:s3cret@c.example", "https://jane:s3cret@c.example:port", "jane:s3cret@c"]
    ) {
      const message = await refusal({ cluster: `server: "${server}"` }).catch(String);
      assert.match(message, /holds a user or password/);
      assert.ok(!message.includes("s3cret") && !message.includes("jane"), message);
    }
  });
});

describe("a kubeconfig that is no YAML", () => {
  it("is refused with the place, and without a word of its text", async () => {
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
