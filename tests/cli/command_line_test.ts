import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type Command, parseCommandLine } from "../../src/cli/command_line.ts";
import { UsageError } from "../../src/cli/errors.ts";
import type { ServeOptions } from "../../src/cli/serve_options.ts";

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

describe("the command line", () => {
  it("serves the embedded cluster when no kubeconfig flag is given, whatever KUBECONFIG says", () => {
    assert.deepEqual(serveOptions([], { KUBECONFIG: "/somewhere" }).source, {
      kind: "embedded",
      seed: undefined,
    });
    assert.deepEqual(serveOptions(["--seed", "7"]).source, { kind: "embedded", seed: 7 });
  });

  it("serves a real cluster when a kubeconfig or a context is named", () => {
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

  it("takes resources separated by commas, and the flag more than once", () => {
    const options = serveOptions(["--resource", "pods, nodes,", "-r", "deploy", "--resource=jobs.batch"]);
    assert.deepEqual(options.resources, ["pods", "nodes", "deploy", "jobs.batch"]);
    assert.equal(serveOptions([]).resources, undefined);
  });

  it("takes every other flag, long and short", () => {
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

  it("reads who may read, how it is served, and what is left out", () => {
    const options = serveOptions([
      "--token-file=/t",
      "--reader-namespaces=shop,blog",
      "--reader-namespaces=docs",
      "--reader-resources=pods",
      "--allow-host=a.example,b.example",
      "--tls-cert=/c",
      "--tls-key=/k",
      "--drop=spec.containers[].env,status",
    ], { LISTWATCH_TOKEN: "e" });
    assert.equal(options.token, undefined);
    assert.equal(options.tokenFile, "/t");
    assert.deepEqual(options.readerNamespaces, ["shop", "blog", "docs"]);
    assert.deepEqual(options.readerResources, ["pods"]);
    assert.deepEqual(options.allowedHosts, ["a.example", "b.example"]);
    assert.deepEqual([options.tlsCert, options.tlsKey], ["/c", "/k"]);
    assert.deepEqual(options.drop, ["spec.containers[].env", "status"]);
    assert.equal(serveOptions(["--cluster-rbac"], { LISTWATCH_TOKEN: "e" }).token, undefined);
    const command = parseCommandLine(["serve", "--access-log", "json"], {});
    assert.equal(command.name === "serve" && command.accessLog, "json");
    refuses(["serve", "--access-log", "xml"], /takes line or json, and was given "xml"/);
    refuses(["serve", "--drop", ","], /--drop names nothing: --drop 'spec/);
  });

  it("takes the token from the environment when no flag names one", () => {
    assert.equal(serveOptions([], { LISTWATCH_TOKEN: "e" }).token, "e");
    assert.equal(serveOptions(["--token", "f"], { LISTWATCH_TOKEN: "e" }).token, "f");
    assert.equal(serveOptions([], { LISTWATCH_TOKEN: "" }).token, undefined);
  });

  it("tells help and version, by word and by flag", () => {
    assert.deepEqual(parse("--help"), { name: "help", topic: "listwatch" });
    assert.deepEqual(parse("help", "serve"), { name: "help", topic: "serve" });
    assert.deepEqual(parse("serve", "-h"), { name: "help", topic: "serve" });
    assert.deepEqual(parse("version"), { name: "version" });
    assert.deepEqual(parse("--version"), { name: "version" });
  });

  it("refuses a flag nobody knows, and names the one that is likely meant", () => {
    refuses(["serve", "--prot", "80"], /^Unknown flag --prot: did you mean --port\?/);
    refuses(["serve", "--kubeconf", "x"], /did you mean --kubeconfig\?/);
    refuses(["serve", "--resources=pods"], /did you mean --resource\?/);
    refuses(["serve", "--frobnicate"], /^Unknown flag --frobnicate: See listwatch serve --help$/);
    refuses(["serve", "-x"], /^Unknown flag -x/);
  });

  it("refuses a flag without its value, with one it does not take, and given twice", () => {
    refuses(["serve", "--port"], /--port needs a value: --port 8787/);
    refuses(["serve", "--context", "--port", "1"], /--context needs a value/);
    refuses(["serve", "--kubeconfig="], /--kubeconfig needs a value/);
    refuses(["serve", "--allow-secrets=yes"], /--allow-secrets takes no value, and was given "yes"/);
    refuses(["serve", "--port", "1", "--port", "2"], /--port is given twice: "1" and "2"/);
    refuses(["serve", "--resource", ","], /names no resource/);
  });

  it("refuses a port that is none", () => {
    for (const port of ["80a", "-1", "65536", "1.5", "1e3"]) {
      refuses(["serve", `--port=${port}`], /--port needs a whole number from 0 to 65535, and was given/);
    }
  });

  it("refuses words that are no flags, a command nobody knows, and none at all", () => {
    refuses(["serve", "pods", "nodes"], /serve takes flags only.*--resource pods,nodes/);
    refuses(["sevre"], /Unknown command "sevre": did you mean serve\?/);
    refuses([], /No command given: try listwatch serve/);
  });

  it("refuses a seed for a real cluster", () => {
    refuses(["serve", "--context", "prod", "--seed", "3"], /--seed is for the embedded cluster/);
  });
});
