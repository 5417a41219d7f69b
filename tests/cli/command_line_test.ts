import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type Command, parseCommandLine } from "../../src/cli/command_line.ts";
import { UsageError } from "../../src/cli/errors.ts";
import type { ServeOptions } from "../../src/cli/serve/serve_options.ts";

function parse(...args: string[]): Command {
  return parseCommandLine(args, {});
}

function serveOptions(args: string[], env: Record<string, string> = {}): ServeOptions {
  const command = parseCommandLine(["serve", ...args], env);
  assert.ok(command.name === "serve");
  return command.options;
}

function refuses(args: string[], message: RegExp): void {
  assert.throws(() => parseCommandLine(args, {}), (error) => {
    assert.ok(error instanceof UsageError);
    assert.equal(error.exitCode, 2);
    assert.match(error.message, message);
    assert.doesNotMatch(error.message, /\n/);
    return true;
  });
}

describe("parseCommandLine", () => {
  it("selects the embedded cluster without a kubeconfig flag, also when KUBECONFIG is set", () => {
    assert.deepEqual(serveOptions([], { KUBECONFIG: "/somewhere" }).source, {
      kind: "embedded",
      seed: undefined,
    });
    assert.deepEqual(serveOptions(["--seed", "7"]).source, { kind: "embedded", seed: 7 });
  });

  it("selects a real cluster with a kubeconfig or a context", () => {
    assert.deepEqual(serveOptions(["--kubeconfig", "a.yaml"]).source, {
      kind: "kubeconfig",
      path: "a.yaml",
      context: undefined,
    });
    assert.deepEqual(serveOptions(["--context=prod"]).source, {
      kind: "kubeconfig",
      path: undefined,
      context: "prod",
    });
  });

  it("accepts resources separated by commas, and repeated flags", () => {
    const options = serveOptions(["--resource", "pods, nodes,", "-r", "deploy", "--resource=jobs.batch"]);
    assert.deepEqual(options.resources, ["pods", "nodes", "deploy", "jobs.batch"]);
    assert.equal(serveOptions([]).resources, undefined);
  });

  it("accepts one namespace or several, and seeds of 32 bits", () => {
    assert.equal(serveOptions(["-n", "shop"]).namespace, "shop");
    assert.deepEqual(serveOptions(["--namespace", "shop,blog"]).namespace, ["shop", "blog"]);
    assert.deepEqual(serveOptions(["--seed", "4294967295"]).source, {
      kind: "embedded",
      seed: 4_294_967_295,
    });
    refuses(["serve", "--seed", "4294967296"], /--seed/);
  });

  it("accepts every other flag, long and short", () => {
    const options = serveOptions([
      "-n",
      "shop",
      "--host",
      "::1",
      "-p",
      "0",
      "--token",
      "t",
      "--allow-secrets",
    ]);
    assert.equal(options.namespace, "shop");
    assert.equal(options.host, "::1");
    assert.equal(options.port, 0);
    assert.equal(options.token, "t");
    assert.equal(options.allowSecrets, true);
    assert.equal(options.allowAnonymous, undefined);
    assert.equal(serveOptions(["--allow-anonymous"]).allowAnonymous, true);
  });

  it("accepts the flags of readers, TLS and dropped fields", () => {
    const options = serveOptions([
      "--token-file=/t",
      "--reader-namespaces=shop,blog",
      "--reader-namespaces=docs",
      "--reader-resources=pods",
      "--allow-host=a.example,b.example",
      "--cors-origin=https://a.example",
      "--cors-origin=https://b.example",
      "--tls-cert=/c",
      "--tls-key=/k",
      "--drop=spec.containers[].env,status",
    ], { LISTWATCH_TOKEN: "e" });
    assert.equal(options.token, undefined);
    assert.equal(options.tokenFile, "/t");
    assert.deepEqual(options.readerNamespaces, ["shop", "blog", "docs"]);
    assert.deepEqual(options.readerResources, ["pods"]);
    assert.deepEqual(options.allowedHosts, ["a.example", "b.example"]);
    assert.deepEqual(options.corsOrigins, ["https://a.example", "https://b.example"]);
    assert.deepEqual([options.tlsCert, options.tlsKey], ["/c", "/k"]);
    assert.deepEqual(options.drop, ["spec.containers[].env", "status"]);
    assert.equal(serveOptions(["--cluster-rbac"], { LISTWATCH_TOKEN: "e" }).token, undefined);
    const command = parseCommandLine(["serve", "--access-log", "json"], {});
    assert.equal(command.name === "serve" && command.accessLog, "json");
    refuses(["serve", "--access-log", "xml"], /must be line or json, not "xml"/);
    assert.deepEqual(
      ["90s", "5m", "1h", "500ms", "0s"].map((text) => serveOptions(["--max-lag", text]).maxLagMs),
      [90_000, 300_000, 3_600_000, 500, 0],
    );
    assert.equal(serveOptions(["--metrics"]).metrics, true);
    assert.equal(serveOptions([]).metrics, undefined);
    for (const text of ["90", "1.5s", "s", "1d"]) {
      refuses(["serve", "--max-lag", text], /--max-lag must be a duration such as 90s or 5m, not /);
    }
    const limited = serveOptions(["--max-watches", "5000", "--max-watches-per-client", "7"]);
    assert.deepEqual([limited.maxWatches, limited.maxWatchesPerClient], [5_000, 7]);
    const times = serveOptions(["--keep-alive", "2m", "--shutdown-grace", "5s"]);
    assert.deepEqual([times.keepAliveMs, times.shutdownGraceMs], [120_000, 5_000]);
    refuses(["serve", "--max-watches", "0"], /--max-watches must be a whole number from 1 to /);
    const passing = serveOptions(["--pass-through", "--pass-through-writes"], { LISTWATCH_TOKEN: "e" });
    assert.deepEqual([passing.passThrough, passing.passThroughWrites, passing.token], [
      true,
      true,
      undefined,
    ]);
    assert.equal(serveOptions(["--freshness", "consistent"]).freshness, "consistent");
    refuses(["serve", "--freshness", "new"], /must be consistent, stale-if-error, as-is, not "new"/);
    assert.equal(serveOptions(["--storage", "short-texts"]).storage, "short-texts");
    assert.equal(serveOptions([]).storage, undefined);
    refuses(["serve", "--storage", "text"], /--storage must be texts or short-texts, not "text"/);
    refuses(["serve", "--drop", ","], /--drop has an empty list: --drop 'spec/);
  });

  it("takes the token from the environment without a flag", () => {
    assert.equal(serveOptions([], { LISTWATCH_TOKEN: "e" }).token, "e");
    assert.equal(serveOptions(["--token", "f"], { LISTWATCH_TOKEN: "e" }).token, "f");
    assert.equal(serveOptions([], { LISTWATCH_TOKEN: "" }).token, undefined);
  });

  it("accepts help and version, as command and as flag", () => {
    assert.deepEqual(parse("--help"), { name: "help", topic: "listwatch" });
    assert.deepEqual(parse("help", "serve"), { name: "help", topic: "serve" });
    assert.deepEqual(parse("serve", "-h"), { name: "help", topic: "serve" });
    assert.deepEqual(parse("version"), { name: "version" });
    assert.deepEqual(parse("--version"), { name: "version" });
  });

  it("refuses help on what is no command", () => {
    refuses(
      ["help", "foo"],
      /^Unknown command "foo": the commands are serve, version and help\. See listwatch --help$/,
    );
    refuses(["help", "server"], /^Unknown command "server": did you mean serve\?/);
    assert.deepEqual(parse("help", "version"), { name: "help", topic: "listwatch" });
  });

  it("refuses an unknown flag, and suggests the nearest one", () => {
    refuses(["serve", "--prot", "80"], /^Unknown flag --prot: did you mean --port\?/);
    refuses(["serve", "--kubeconf", "x"], /did you mean --kubeconfig\?/);
    refuses(["serve", "--resources=pods"], /did you mean --resource\?/);
    refuses(["serve", "--frobnicate"], /^Unknown flag --frobnicate: See listwatch serve --help$/);
    const { source } = serveOptions(["--seed", "4294967295"]);
    assert.deepEqual(source, { kind: "embedded", seed: 4_294_967_295 });
    refuses(["serve", "--constructor"], /^Unknown flag --constructor/);
    refuses(["serve", "-x"], /^Unknown flag -x/);
  });

  it("refuses a missing value, an unexpected value, and a repeated flag", () => {
    refuses(["serve", "--port"], /--port needs a value: --port 8787/);
    refuses(["serve", "--context", "--port", "1"], /--context needs a value/);
    refuses(["serve", "--kubeconfig="], /--kubeconfig needs a value/);
    refuses(["serve", "--allow-secrets=yes"], /--allow-secrets takes no value, but has "yes"/);
    refuses(["serve", "--port", "1", "--port", "2"], /--port is repeated: "1" and "2"/);
    refuses(["serve", "--resource", ","], /--resource has an empty list/);
  });

  it("refuses a port that is not a port number", () => {
    for (const port of ["80a", "-1", "65536", "1.5", "1e3"]) {
      refuses(["serve", `--port=${port}`], /--port must be a whole number from 0 to 65535, not/);
    }
  });

  it("refuses arguments, an unknown command and a missing command", () => {
    refuses(["serve", "pods", "nodes"], /serve takes only flags.*--resource pods,nodes/);
    refuses(["sevre"], /Unknown command "sevre": did you mean serve\?/);
    refuses([], /Missing command: try listwatch serve/);
  });

  it("refuses a seed for a real cluster", () => {
    refuses(["serve", "--context", "prod", "--seed", "3"], /--seed is only for the embedded cluster/);
  });
});
