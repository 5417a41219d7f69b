import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { KubeconfigError, loadKubeconfig, restConfigFromKubeconfig } from "@listwatch/cache/node";
import { FakeClock } from "@listwatch/cache/testing";
import { LogRecorder } from "../log_recorder.ts";

// Each was found by `tests/cluster/kubeconfig_test.ts`, which compares with kubectl itself.

const folder = mkdtempSync(join(tmpdir(), "listwatch-like-kubectl-"));
after(() => rmSync(folder, { recursive: true }));

let files = 0;

function file(text: string): string {
  const path = join(folder, `file-${++files}`);
  writeFileSync(path, text);
  return path;
}

const load = (text: string) => loadKubeconfig({ path: file(text) });

const TOP = "current-context: dev\ncontexts: [{name: dev, context: {cluster: c, user: u}}]\n";

async function restConfig({ cluster = "", user = "" }, options = {}) {
  const text = `${TOP}clusters: [{name: c, cluster: {server: 'https://c.example', ${cluster}}}]\n`;
  return await restConfigFromKubeconfig(await load(`${text}users: [{name: u, user: {${user}}}]`), options);
}

async function refused(reading: Promise<unknown>, why: RegExp): Promise<void> {
  await assert.rejects(reading, (error) => {
    assert.ok(error instanceof KubeconfigError, String(error));
    assert.match(error.message, why);
    return true;
  });
}

describe("loadKubeconfig reads what kubectl reads", () => {
  it("of a key that is there twice, the last one", async () => {
    assert.equal((await load("current-context: a\ncurrent-context: b"))["current-context"], "b");
  });

  it("and lines that end with a carriage return", async () => {
    const { clusters } = await load("clusters:\r- name: c\r  cluster:\r    server: https://c.example\r");
    assert.equal(clusters.get("c")?.server, "https://c.example");
    assert.equal((await load("current-context: a\r\nkind: Config\r\n"))["current-context"], "a");
  });

  it("and refuses another kind or version", async () => {
    await refused(load("kind: Pod"), /file-\d+: its kind is not Config$/);
    await refused(load("apiVersion: v2\nkind: Config"), /its apiVersion is not v1$/);
    await refused(load("kind: 5"), /its kind is not Config$/);
    assert.equal((await load('kind: ""\napiversion: v2')).clusters.size, 0);
  });

  it("and takes an entry without a name, which a context without a user uses", async () => {
    const text = `current-context: dev
contexts: [null, {name: dev, context: {cluster: c}}]
clusters: [{name: c, cluster: {server: "https://c.example"}}]
users: [{user: {token: t}}]`;
    assert.equal((await restConfigFromKubeconfig(await load(text))).token, "t");
  });

  it("and refuses two entries of one name in a file", async () => {
    const text = "clusters: [{name: c, cluster: {server: a}}, {name: c, cluster: {server: b}}]";
    await refused(load(text), /file-\d+: two clusters have the name "c"$/);
    await refused(load("users: [{name: u}, {name: u}]"), /two users have the name "u"$/);
    await refused(load("contexts: [{}, null]"), /two contexts have the name ""$/);
  });
});

describe("restConfigFromKubeconfig reads what kubectl reads", () => {
  it("and refuses data and a file for the same, or a token and a user name", async () => {
    const data = btoa("x");
    const both = (one: string, other: string) =>
      new RegExp(`it has ${one} and ${other}; remove one of them$`);
    await refused(
      restConfig({ cluster: `certificate-authority: a, certificate-authority-data: ${data}` }),
      both("certificate-authority", "certificate-authority-data"),
    );
    await refused(
      restConfig({ user: `client-certificate: a, client-certificate-data: ${data}, client-key: a` }),
      both("client-certificate", "client-certificate-data"),
    );
    await refused(
      restConfig({ user: `client-certificate: a, client-key: a, client-key-data: ${data}` }),
      both("client-key", "client-key-data"),
    );
    await refused(restConfig({ user: "token: t, username: jane" }), both("token", "username"));
    await refused(restConfig({ user: "token: t, password: p" }), both("token", "password"));
    await refused(restConfig({ user: "tokenFile: t, username: jane" }), both("tokenFile", "username"));
    await restConfig({
      cluster: 'certificate-authority: "", certificate-authority-data: ~',
      user: 'token: t, username: ""',
    });
  });

  it("sends the token of a file rather than the one beside it, which is sent until the file can be read", async () => {
    const clock = new FakeClock();
    const logger = new LogRecorder();
    const tokenFile = file("of-a-file");
    const send = async (path: string) => {
      const { token } = await restConfig({ user: `token: beside, tokenFile: ${path}` }, { clock, logger });
      assert.ok(typeof token === "function");
      return token;
    };
    assert.equal(await (await send(tokenFile))(), "of-a-file");
    const missing = join(folder, "token");
    const token = await send(missing);
    assert.equal(await token(), "beside");
    assert.match(logger.of("warn")[0], /Cannot read the token file .*; the last token stays in use/);
    writeFileSync(missing, "of-a-file");
    assert.equal(await token(), "of-a-file");
  });

  it("refuses a variable of a plugin without a name", async () => {
    const exec = "exec: {apiVersion: client.authentication.k8s.io/v1, command: x, env: [{value: a}]}";
    await refused(restConfig({ user: exec }), /its exec has a variable \(env\) without a name/);
  });
});
