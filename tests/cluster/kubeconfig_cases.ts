/**
 * Odd kubeconfig files, which kubectl and `loadCluster` are to read alike. In them, `SERVER` is the
 * URL of an API server whose authority is in `ca.crt` beside the file, or in base64 `CA_DATA`;
 * `CERT_DATA` and `KEY_DATA` are of a client certificate, which is in `client.crt` and
 * `client.key`, too; `FOLDER` is where the files are.
 * @module
 */

/** Some files, and how they are named. */
export interface KubeconfigCase {
  /** The files by their paths; one is called `config` as a rule. */
  readonly files: Readonly<Record<string, string>>;
  /** `KUBECONFIG`, whose parts are paths below the folder; `config` by default. */
  readonly list?: readonly string[];
  readonly context?: string;
  /** Why `loadCluster` may read it where kubectl does not, or the other way round. */
  readonly differs?: string;
}

interface Parts {
  readonly cluster?: string;
  readonly user?: string;
  readonly context?: string;
  /** Instead of `current-context: dev`. */
  readonly top?: string;
  readonly more?: string;
}

const CLUSTER = "server: SERVER, certificate-authority: ca.crt";

function config({ cluster = CLUSTER, user = "token: t", context = "", top, more = "" }: Parts = {}): string {
  return `apiVersion: v1
kind: Config
${top ?? "current-context: dev"}
clusters: [{name: c, cluster: {${cluster}}}]
users: [{name: u, user: {${user}}}]
contexts: [{name: dev, context: {cluster: c, user: u${context && `, ${context}`}}}]
${more}
`;
}

const one = (parts: Parts, more: Partial<KubeconfigCase> = {}): KubeconfigCase => ({
  files: { config: config(parts) },
  ...more,
});
const text = (config: string, more: Partial<KubeconfigCase> = {}): KubeconfigCase => ({
  files: { config },
  ...more,
});

const exec = (fields: string) =>
  `exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, ${fields}}`;
const PLUGIN =
  `#!/bin/sh\necho '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"of-'$X$1'"}}'\n`;

const BLOCK = `apiVersion: v1
clusters:
- cluster:
    certificate-authority: ca.crt
    server: SERVER
  name: c
contexts:
- context:
    cluster: c
    namespace: shop
    user: u
  name: dev
current-context: dev
kind: Config
preferences: {}
users:
- name: u
  user:
    token: t
`;

const JSON_CONFIG = JSON.stringify({
  apiVersion: "v1",
  kind: "Config",
  "current-context": "dev",
  clusters: [{ name: "c", cluster: { server: "SERVER", "certificate-authority": "ca.crt" } }],
  users: [{ name: "u", user: { token: "t" } }],
  contexts: [{ name: "dev", context: { cluster: "c", user: "u" } }],
});

const UNUSED = "an entry that the context does not use is not looked into";
const ASKS = "kubectl asks at the terminal for a user name and password; client-go and loadCluster send none";
const TRIMMED = "white space around a token is not sent";
const KEY_ALONE = "a key without a certificate is refused, as it is a mistake; kubectl does without";
const PLUGIN_VERSION = "a plugin is of version v1 if it does not say";
const NO_TERMINAL = "a plugin never gets a terminal, so that it need not say whether it wants one";
const SCHEME = "a server without a scheme has https if there are TLS settings; kubectl sends it plain text";
const NULL_ITEM = "null in a list of texts is refused, as it is a mistake; kubectl reads an empty text";

/** The cases by what is odd in them. */
export const KUBECONFIG_CASES: Readonly<Record<string, KubeconfigCase>> = {
  // The text
  "blocks, as kubectl writes them": text(BLOCK),
  "JSON": text(JSON_CONFIG),
  "indented JSON": text(JSON.stringify(JSON.parse(JSON_CONFIG), null, 2)),
  "JSON with tabs": text(JSON.stringify(JSON.parse(JSON_CONFIG), null, "\t")),
  "lines that end with CR LF": text(BLOCK.replaceAll("\n", "\r\n")),
  "a BOM": text(`\ufeff${BLOCK}`),
  "a BOM before JSON": text(`\ufeff${JSON_CONFIG}`),
  "tabs that indent": text(BLOCK.replaceAll("    ", "\t")),
  "tabs behind values": text(BLOCK.replace("namespace: shop", "namespace: shop\t\t# the shop")),
  "comments and empty lines": text(`# one\n\n${BLOCK.replaceAll("\n", " # x\n\n")}`),
  "a marker at the beginning": text(`---\n${BLOCK}`),
  "a directive": text(`%YAML 1.1\n---\n${BLOCK}`),
  "an end marker": text(`${BLOCK}...\n`),
  "a second document": text(`${BLOCK}---\n${BLOCK.replace("shop", "second")}`),
  "an empty document first": text(`---\n---\n${BLOCK}`),
  "anchors and aliases": text(
    BLOCK.replace("token: t", "token: &t secret").replace("namespace: shop", "namespace: &n shop\n    # *n") +
      "more: *t\n",
  ),
  "a mapping that is merged": text(
    `base: &base {server: SERVER}\n${BLOCK.replace("    server: SERVER\n", "    <<: *base\n")}`,
  ),
  "a value over several lines": text(BLOCK.replace("token: t", 'token: "a\\\n      b"')),
  "a folded value": text(BLOCK.replace("token: t", "token: >-\n      abc")),
  "a literal value with a line end": text(BLOCK.replace("token: t", "token: |\n      abc"), {
    differs: TRIMMED,
  }),
  "quotes of both kinds": text(
    BLOCK.replace("namespace: shop", "namespace: 'shop'").replace("token: t", 'token: "t\\u0041"'),
  ),
  "a key twice": text(BLOCK.replace("namespace: shop", "namespace: shop\n    namespace: other")),
  "a top key twice": text(`${BLOCK}current-context: other\n`),
  "no YAML": text("clusters: ["),
  "text alone": text("hello"),
  "a list": text("- a"),
  "nothing": text(""),
  "a comment alone": text("# nothing\n"),
  "null": text("null\n"),
  "an empty mapping": text("{}"),
  "an unknown anchor": text(BLOCK.replace("token: t", "token: *t")),
  "keys in upper case": text(BLOCK.replace("current-context", "Current-Context")),
  "unknown fields": one({
    cluster: `${CLUSTER}, colour: red`,
    user: "token: t, colour: red",
    more: "colour: red",
  }),
  "extensions": one({
    cluster: `${CLUSTER}, extensions: [{name: minikube.sigs.k8s.io, extension: {version: v1, provider: x}}]`,
    context: "extensions: [{name: context_info, extension: {a: [1]}}]",
    more: "extensions: [{name: a, extension: {b: c}}]\npreferences: {colors: true}",
  }),
  // What it says it is
  "no apiVersion and kind": text(BLOCK.replace("apiVersion: v1\n", "").replace("kind: Config\n", "")),
  "another kind": text(BLOCK.replace("kind: Config", "kind: Pod")),
  "another version": text(BLOCK.replace("apiVersion: v1", "apiVersion: v2")),
  "an empty kind": text(BLOCK.replace("kind: Config", 'kind: ""')),
  // Contexts
  "no current-context": one({ top: "" }),
  "an empty current-context": one({ top: 'current-context: ""' }),
  "no current-context, and one given": one({ top: "" }, { context: "dev" }),
  "a current-context that is missing": one({ top: "current-context: other" }),
  "a current-context that is missing, and one given": one({ top: "current-context: other" }, {
    context: "dev",
  }),
  "a given context that is missing": one({}, { context: "other" }),
  "a current-context that is a number": one({ top: "current-context: 5" }),
  "a context without a user": text(config().replace(", user: u", ""), { differs: ASKS }),
  "a context with an empty user": text(config().replace(", user: u", ', user: ""'), { differs: ASKS }),
  "a context whose user is missing": text(config().replace("user: u}", "user: other}")),
  "a context whose cluster is missing": text(config().replace("cluster: c,", "cluster: other,")),
  "a context without a cluster": text(config().replace("cluster: c,", "")),
  "a context that is null": text("current-context: dev\ncontexts: [{name: dev, context: null}]"),
  "entries that are null": text("current-context: dev\nclusters: null\nusers:\ncontexts: ~"),
  "entries without names": text(config().replace("name: u, ", "").replace(", user: u", ', user: ""')),
  "an entry that is null": text(config({ more: "" }).replace("users: [", "users: [null, ")),
  "names that look like numbers": text(
    config().replaceAll("name: c", "name: '1'").replace("cluster: c", "cluster: '1'"),
  ),
  "a name that is a number": text(
    config().replaceAll("name: c", "name: 1").replace("cluster: c", "cluster: 1"),
  ),
  "a name with spaces and signs": text(
    config().replaceAll("name: dev", "name: a b@c/d:é").replace(
      "current-context: dev",
      "current-context: a b@c/d:é",
    ),
  ),
  "a namespace": one({ context: "namespace: shop" }),
  "an empty namespace": one({ context: 'namespace: ""' }),
  "a namespace that is null": one({ context: "namespace: ~" }),
  "a namespace that is a number": one({ context: "namespace: 5" }),
  "a namespace that is no name": one({ context: "namespace: Shop_1" }),
  "two clusters of one name": text(
    config().replace("clusters: [", "clusters: [{name: c, cluster: {server: 'https://first.example'}}, "),
  ),
  "two users of one name": text(config().replace("users: [", "users: [{name: u, user: {token: first}}, ")),
  "two contexts of one name": text(
    config().replace("contexts: [", "contexts: [{name: dev, context: {cluster: x}}, "),
  ),
  "a wrong entry that is not used": text(
    config().replace("users: [", "users: [{name: other, user: {token: 5}}, "),
    { differs: UNUSED },
  ),
  // Clusters
  "a cluster without a server": one({ cluster: "certificate-authority: ca.crt" }),
  "a cluster with an empty server": one({ cluster: 'server: ""' }),
  "an empty cluster": one({ cluster: "" }),
  "a server that is a number": one({ cluster: "server: 5" }),
  "a server with a path": one({ cluster: "server: SERVER/k8s/clusters/a, certificate-authority: ca.crt" }),
  "a server with a slash at its end": one({ cluster: "server: SERVER/, certificate-authority: ca.crt" }),
  "a server with a query": one({ cluster: "server: 'SERVER/a?b=c', certificate-authority: ca.crt" }),
  "a server with spaces around": one({ cluster: "server: ' SERVER ', certificate-authority: ca.crt" }),
  "a server in upper case": one({ cluster: "server: UPPER_SERVER, certificate-authority: ca.crt" }),
  "a server without a scheme": one({ cluster: "server: HOST, certificate-authority: ca.crt" }, {
    differs: SCHEME,
  }),
  "a server of another scheme": one({ cluster: "server: ftp://c.example" }),
  "an authority in the file": one({ cluster: "server: SERVER, certificate-authority-data: CA_DATA" }),
  "an authority in the file, on several lines": text(
    BLOCK.replace("certificate-authority: ca.crt", "certificate-authority-data: |\n      CA_LINES"),
  ),
  "an authority in the file and in another": one({
    cluster: "server: SERVER, certificate-authority-data: CA_DATA, certificate-authority: missing.crt",
  }),
  "an authority in both, the other one wrong": one({
    cluster: "server: SERVER, certificate-authority-data: CA_DATA, certificate-authority: client.key",
  }),
  "an empty authority in the file": one({
    cluster: 'server: SERVER, certificate-authority-data: "", certificate-authority: ca.crt',
  }),
  "an authority that is missing": one({ cluster: "server: SERVER, certificate-authority: missing.crt" }),
  "an authority that is no certificate": one({ cluster: "server: SERVER, certificate-authority-data: eHg=" }),
  "an authority that is not base64": one({ cluster: "server: SERVER, certificate-authority-data: '%%%'" }),
  "base64 without its end": one({ cluster: "server: SERVER, certificate-authority-data: eHg" }),
  "no authority": one({ cluster: "server: SERVER" }),
  "insecure-skip-tls-verify": one({ cluster: "server: SERVER, insecure-skip-tls-verify: true" }),
  "insecure-skip-tls-verify with an authority": one({
    cluster: `${CLUSTER}, insecure-skip-tls-verify: true`,
  }),
  "insecure-skip-tls-verify: yes": one({ cluster: "server: SERVER, insecure-skip-tls-verify: yes" }),
  "insecure-skip-tls-verify as text": one({ cluster: 'server: SERVER, insecure-skip-tls-verify: "true"' }),
  "tls-server-name": one({ cluster: `${CLUSTER}, tls-server-name: kubernetes.default.svc` }),
  "a tls-server-name of another": one({ cluster: `${CLUSTER}, tls-server-name: elsewhere.example` }),
  "disable-compression": one({ cluster: `${CLUSTER}, disable-compression: true` }),
  "lines that end with a carriage return": text(config().replaceAll("\n", "\r")),
  "an empty proxy-url": one({ cluster: `${CLUSTER}, proxy-url: ""` }),
  "a proxy-url that is away": one({ cluster: `${CLUSTER}, proxy-url: "http://127.0.0.1:1"` }),
  "a proxy-url of another scheme": one({ cluster: `${CLUSTER}, proxy-url: "ftp://127.0.0.1:1"` }),
  "a proxy-url without a scheme": one({ cluster: `${CLUSTER}, proxy-url: "proxy.example:3128"` }),
  // Users
  "a user without credentials": one({ user: "" }, { differs: ASKS }),
  "an empty token": one({ user: 'token: ""' }, { differs: ASKS }),
  "a token that is a number": one({ user: "token: 123" }),
  "a token with spaces around": one({ user: 'token: " t "' }, { differs: TRIMMED }),
  "a token with a line end within": one({ user: 'token: "a\\nb"' }),
  "a token file": one({ user: "tokenFile: token" }),
  "a token file above": {
    files: {
      "a/b/config": config({
        cluster: "server: SERVER, certificate-authority: ../../ca.crt",
        user: "tokenFile: ../../token",
      }),
    },
    list: ["a/b/config"],
  },
  "a token and a token file": one({ user: "token: t, tokenFile: token" }),
  "a token and a token file that is missing": one({ user: "token: t, tokenFile: missing" }),
  "a token file that is missing": one({ user: "tokenFile: missing" }),
  "a token file that is empty": one({ user: "tokenFile: empty" }),
  "a token file with an absolute path": one({ user: "tokenFile: FOLDER/token" }),
  "a user name and password": one({ user: "username: jane, password: 'p:ä'" }),
  "a user name without a password": one({ user: "username: jane" }),
  "a password without a user name": one({ user: "password: secret" }, { differs: ASKS }),
  "a token and a user name": one({ user: "token: t, username: jane, password: p" }),
  "a client certificate in files": one({ user: "client-certificate: client.crt, client-key: client.key" }),
  "a client certificate in the file": one({
    user: "client-certificate-data: CERT_DATA, client-key-data: KEY_DATA",
  }),
  "a client certificate in the file, its key in another": one({
    user: "client-certificate-data: CERT_DATA, client-key: client.key",
  }),
  "a client certificate in both": one({
    user: "client-certificate-data: CERT_DATA, client-certificate: client.crt, client-key: client.key",
  }),
  "a client certificate without a key": one({ user: "client-certificate: client.crt" }),
  "a key without a client certificate": one({ user: "client-key: client.key" }),
  "a key that is missing, and a token": one({ user: "client-key: missing.key, token: t" }, {
    differs: KEY_ALONE,
  }),
  "a client certificate that is missing": one({
    user: "client-certificate: missing, client-key: client.key",
  }),
  "a client certificate and a token": one({
    user: "token: t, client-certificate: client.crt, client-key: client.key",
  }),
  "a client certificate that is none": one({ user: "client-certificate: token, client-key: client.key" }),
  "impersonation": one({
    user:
      "token: t, as: ann, as-uid: '7', as-groups: [devs, ops], as-user-extra: {Scopes: [a, b], 'acme.example/x y': [z]}",
  }),
  "impersonation of groups alone": one({ user: "token: t, as-groups: [devs]" }),
  "impersonation with empty lists": one({ user: "token: t, as: ann, as-groups: [], as-user-extra: {}" }),
  "impersonation with null in lists": one({ user: "token: t, as: ann, as-groups: [devs, ~]" }, {
    differs: NULL_ITEM,
  }),
  "empty impersonation": one({ user: 'token: t, as: "", as-groups: []' }),
  "groups that are no list": one({ user: "token: t, as: ann, as-groups: devs" }),
  "an auth-provider": one({ user: "auth-provider: {name: oidc}" }),
  "an unknown auth-provider, and a token": one({ user: "token: t, auth-provider: {name: other}" }),
  // Plugins
  "a plugin": { files: { config: config({ user: exec("command: ./plugin, args: [arg]") }), plugin: PLUGIN } },
  "a plugin in a folder, with variables": {
    files: {
      config: config({ user: exec("command: bin/plugin, env: [{name: X, value: env}]") }),
      "bin/plugin": PLUGIN,
    },
  },
  "a plugin that reads its cluster": {
    files: {
      config: config({
        cluster:
          `${CLUSTER}, tls-server-name: kubernetes.default.svc, disable-compression: true, extensions: [{name: client.authentication.k8s.io/exec, extension: {audience: a, list: [1, {b: c}]}}, {name: other, extension: 1}]`,
        user: exec("command: ./plugin, provideClusterInfo: true"),
      }),
      plugin: PLUGIN.replace("\n", '\nprintf %s "$KUBERNETES_EXEC_INFO" > "$(dirname "$0")/info"\n'),
    },
  },
  "a plugin and a token": {
    files: { config: config({ user: `token: t, ${exec("command: ./plugin")}` }), plugin: PLUGIN },
  },
  "a plugin and a user name": {
    files: {
      config: config({ user: `username: jane, password: p, ${exec("command: ./plugin")}` }),
      plugin: PLUGIN,
    },
  },
  "a plugin without a command": one({ user: exec("args: [a]") }),
  "a plugin that is missing": one({ user: exec("command: ./missing") }),
  "a plugin without a version": {
    files: { config: config({ user: "exec: {command: ./plugin, interactiveMode: Never}" }), plugin: PLUGIN },
    differs: PLUGIN_VERSION,
  },
  "a plugin without an interactiveMode": {
    files: {
      config: config({ user: "exec: {apiVersion: client.authentication.k8s.io/v1, command: ./plugin}" }),
      plugin: PLUGIN,
    },
    differs: NO_TERMINAL,
  },
  "a plugin of an old version": {
    files: {
      config: config({
        user:
          "exec: {apiVersion: client.authentication.k8s.io/v1alpha1, command: ./plugin, interactiveMode: Never}",
      }),
      plugin: PLUGIN,
    },
  },
  "a plugin without an interactiveMode, v1beta1": {
    files: {
      config: config({ user: "exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: ./plugin}" }),
      plugin: PLUGIN.replace("/v1", "/v1beta1"),
    },
  },
  "a plugin with an unknown interactiveMode": {
    files: {
      config: config({
        user:
          "exec: {apiVersion: client.authentication.k8s.io/v1, command: ./plugin, interactiveMode: Sometimes}",
      }),
      plugin: PLUGIN,
    },
  },
  "a plugin with a variable without a name": {
    files: { config: config({ user: exec("command: ./plugin, env: [{value: a}]") }), plugin: PLUGIN },
  },
  "a plugin that needs a terminal": {
    files: {
      config: config({
        user:
          "exec: {apiVersion: client.authentication.k8s.io/v1, command: ./plugin, interactiveMode: Always}",
      }),
      plugin: PLUGIN,
    },
  },
  // Several files
  "several files, the first of which has the context": {
    files: {
      a: "current-context: dev\ncontexts: [{name: dev, context: {cluster: c, user: u, namespace: first}}]",
      b: config({ context: "namespace: second" }),
    },
    list: ["a", "b"],
  },
  "several files with the same user, which is not merged": {
    files: { a: "users: [{name: u, user: {username: jane, password: p}}]", b: config() },
    list: ["a", "b"],
  },
  "several files with the same cluster, which is not merged": {
    files: { a: "clusters: [{name: c, cluster: {server: SERVER}}]", b: config() },
    list: ["a", "b"],
  },
  "several files with a current-context each": {
    files: {
      a: config({ top: "current-context: other" }).replaceAll("dev", "other"),
      b: config({ context: "namespace: second" }),
    },
    list: ["a", "b"],
  },
  "several files with an empty current-context first": {
    files: { a: 'current-context: ""', b: config() },
    list: ["a", "b"],
  },
  "several files, and one is missing": { files: { b: config() }, list: ["missing", "b"] },
  "several files, and one is empty": { files: { a: "", b: config() }, list: ["a", "b"] },
  "several files, and one is not YAML": { files: { a: "x: [", b: config() }, list: ["b", "a"] },
  "several files, and one is a folder": { files: { "a/x": "", b: config() }, list: ["b", "a"] },
  "several files, with empty parts and the same twice": { files: { a: config() }, list: ["", "a", "", "a"] },
  "several files in folders, with relative paths": {
    files: {
      "x/a": "current-context: dev\ncontexts: [{name: dev, context: {cluster: c, user: u}}]",
      "y/b": "clusters: [{name: c, cluster: {server: SERVER, certificate-authority: ../ca.crt}}]",
      "z/c": "users: [{name: u, user: {tokenFile: ../token}}]",
    },
    list: ["x/a", "y/b", "z/c"],
  },
  "a file that is missing": { files: {}, list: ["missing"] },
  "a folder": { files: { "a/x": "" }, list: ["a"] },
};
