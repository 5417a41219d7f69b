import { join } from "node:path";
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { ROOT } from "../../scripts/lib/gate.ts";
import { type OwnConnection, skipWithoutOwnServer, startOwn } from "./connection.ts";
import { everyResource, type Host, startHost } from "./hosts/host.ts";

const READER_TOKEN = "reader-of-the-edge-0123";
const RESOURCES = [
  "pods",
  "configmaps",
  "secrets",
  "services",
  "namespaces",
  "nodes",
  "deployments",
  "widgets",
  "planets",
];
const GROUPS = ["", "apps", "readapi.example.com"];

describe("readApi in a Worker in front of a ReflectorObject for each resource", {
  skip: skipWithoutOwnServer || await skipWithoutPython(),
}, () => {
  let connection: OwnConnection;
  let host: Host;

  before(async () => {
    connection = await startOwn();
    const { server } = connection;
    await python("seed.py", ["--server", server.server, "--token", server.token]);
    const { resources, version } = await everyResource(connection.cluster);
    host = await startHost("edge", {
      upstream: server,
      resources: resources.filter(({ group, resource }) =>
        GROUPS.includes(group) && RESOURCES.includes(resource)
      ),
      ...(version && { version }),
      readerToken: READER_TOKEN,
    });
  });
  after(async () => {
    await host?.[Symbol.asyncDispose]();
    await connection?.[Symbol.asyncDispose]();
  });

  it("answers each case of readapi/cases.json as kube-apiserver does", { timeout: 300_000 }, async () => {
    const { server } = connection;
    const report = await python("readdiff.py", [
      ...["--server", server.server, "--token", server.token],
      ...["--served", host.url, "--served-token", READER_TOKEN],
      ...["--cases", join(FOLDER, "cases.json"), "--quiet"],
    ]);
    const failed = report.split("\n").filter((line) => line.startsWith("FAIL ") && !DIFFERENT.test(line));
    assert.deepEqual(failed, [], report);
    assert.match(report, /^2[0-9][0-9] passed, [01] failed/m, report);
  });
});

/**
 * kube-apiserver writes U+2028 as it is into an indented block, as a line break of YAML 1.1; a reader of YAML
 * 1.2 takes the indent for text. Here the text is quoted, and each reader finds its value.
 */
const DIFFERENT = /^FAIL yaml: list: items\[\d+\]\.data\.ls is /;

const FOLDER = join(ROOT, "tests/cluster/readapi");

/** Runs a program of `readapi/`, and returns what it prints. */
async function python(program: string, args: readonly string[]): Promise<string> {
  const command = new Deno.Command("python3", { args: [join(FOLDER, program), ...args], stdin: "null" });
  const { stdout, stderr } = await command.output();
  return new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
}

async function skipWithoutPython(): Promise<string | false> {
  const found = await new Deno.Command("python3", { args: ["--version"] }).output().catch(() => undefined);
  return found?.success === true ? false : "needs python3";
}
