/**
 * README's first programs, as they are printed there, in a folder that has nothing but the built package and
 * what npm installs with it.
 *
 * @module
 */

import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import process from "node:process";
import { after, before, describe, it } from "node:test";

const TIMEOUT_MS = 60_000;
/** What npm installs with the package: its dependencies, and hono as a peer of one of them. */
const INSTALLED = ["@hono/node-server", "hono", "ws", "yaml"];
/** The runtimes of the tests. The driver runs this suite in tests/runtimes. */
const modules = resolve(process.cwd(), "node_modules");

describe("README.md in an empty folder", () => {
  const folder = mkdtempSync(join(tmpdir(), "listwatch-empty-"));
  const programs = readmePrograms();
  let port: number;
  let served: ChildProcess;

  before(async () => {
    const installed = join(folder, "node_modules");
    cpSync(resolve(process.cwd(), "../../npm/dist"), join(installed, "@listwatch/cache"), {
      recursive: true,
    });
    for (const name of INSTALLED) {
      cpSync(join(modules, name), join(installed, name), { recursive: true, dereference: true });
    }
    writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
    port = await freePort();
    const command = join(installed, "@listwatch/cache/bin/listwatch.js");
    served = spawn(process.execPath, [command, "serve", "--port", String(port)], { cwd: folder });
    await lineOf(served, /^Synced +\d+ objects/);
  });

  after(async () => {
    served.kill("SIGKILL");
    await new Promise((ended) => served.once("close", ended));
    rmSync(folder, { recursive: true, force: true });
  });

  // The first lines of README's table: Node 22 runs no TypeScript, and takes `npx tsx` from a registry.
  const node = process.versions.node.startsWith("22.") ? [] : [["Node", process.execPath]];
  for (const [runtime, command] of [...node, ["Bun", bunPath()]]) {
    it(`prints pods by node on ${runtime}`, async () => {
      assert.match(await firstLine(command, programs[0]), /^worker-\d \d+$/);
    });

    it(`prints an event of a pod on ${runtime}`, async () => {
      assert.match(await firstLine(command, programs[1]), /^\+ [a-z0-9-]+ true$/);
    });
  }

  async function firstLine(command: string, program: string): Promise<string> {
    writeFileSync(join(folder, "program.ts"), program.replace("127.0.0.1:8787", `127.0.0.1:${port}`));
    const child = spawn(command, ["program.ts"], { cwd: folder });
    const closed = new Promise((ended) => child.once("close", ended));
    try {
      return await lineOf(child, /./);
    } finally {
      child.kill("SIGKILL");
      await closed;
    }
  }
});

function readmePrograms(): string[] {
  const text = readFileSync(resolve(process.cwd(), "../../README.md"), "utf8");
  return Array.from(text.matchAll(/```ts\n([\s\S]*?)```/g), ([, code]) => code);
}

function bunPath(): string {
  const [folder] = readdirSync(join(modules, "@oven"));
  return join(modules, "@oven", folder, "bin", process.platform === "win32" ? "bun.exe" : "bun");
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((listening) => server.once("listening", listening));
  const { port } = server.address() as { readonly port: number };
  await new Promise((closed) => server.close(closed));
  return port;
}

/** The first line of a process's output that matches. */
function lineOf(child: ChildProcess, pattern: RegExp): Promise<string> {
  return new Promise((found, failed) => {
    let output = "";
    let errors = "";
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const fail = (why: string) => failed(new Error(`${why}: ${output}${errors}`));
    signal.addEventListener("abort", () => fail("it printed no such line"));
    child.stderr!.on("data", (chunk) => (errors += chunk));
    child.once("close", (code) => fail(`it ended with ${code}`));
    child.stdout!.on("data", (chunk) => {
      output += chunk;
      const line = output.split("\n").slice(0, -1).find((one) => pattern.test(one));
      if (line !== undefined) found(line);
    });
  });
}
