import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { after, describe, it } from "node:test";
import { newCluster } from "@listwatch/cache";
import { type Kubeconfig, KubeconfigError, restConfigFromKubeconfig } from "@listwatch/cache/node";

const folder = mkdtempSync(join(tmpdir(), "listwatch-exec-"));
after(() => rmSync(folder, { recursive: true }));

async function ask(name: string, script: string, execTimeoutMs: number): Promise<unknown> {
  const command = join(folder, name);
  writeFileSync(command, `#!/bin/sh\n${script}\n`, { mode: 0o700 });
  const kubeconfig: Kubeconfig = {
    files: [],
    "current-context": "dev",
    clusters: new Map([["c", { server: "https://127.0.0.1:1", "tls-server-name": "kubernetes" }]]),
    users: new Map([["u", { exec: { command, provideClusterInfo: true } }]]),
    contexts: new Map([["dev", { cluster: "c", user: "u" }]]),
  };
  const cluster = newCluster(await restConfigFromKubeconfig(kubeconfig, { execTimeoutMs }));
  return await cluster.request("/version").catch((error) => error);
}

async function eventually(condition: () => boolean): Promise<void> {
  for (let i = 0; i < 500 && !condition(); i++) await new Promise((resolve) => setTimeout(resolve, 10));
  assert.ok(condition());
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  // A zombie is dead, too.
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return !existsSync("/proc");
  }
}

describe("restConfigFromKubeconfig with a credential plugin", () => {
  it("kills a plugin that exceeds its time, with its child processes, even if it traps signals", async () => {
    const pids = join(folder, "pids");
    const script = `trap '' TERM HUP\nsleep 300 &\necho $$ $! > ${pids}.new\nmv ${pids}.new ${pids}\nwait`;
    const error = await ask("slow", script, 1_000);
    assert.ok(error instanceof KubeconfigError, String(error));
    assert.match(error.message, /failed: did not end within 1 s$/);
    const started = readFileSync(pids, "utf8").trim().split(" ").map(Number);
    assert.equal(started.length, 2);
    await eventually(() => !started.some(isAlive));
  });

  it("does not wait for a child process that keeps the output of an ended plugin open", async () => {
    const error = await ask("leaving", "sleep 300 &\nexit 0", 500);
    assert.ok(error instanceof KubeconfigError);
    assert.match(error.message, /did not end within 0.5 s/);
  });

  it("kills a plugin that prints without end", async () => {
    const error = await ask("talking", `echo $$ > ${join(folder, "talker")}\nexec yes`, 20_000);
    assert.ok(error instanceof KubeconfigError);
    assert.match(error.message, /printed more than 1048576 bytes$/);
    await eventually(() => !isAlive(Number(readFileSync(join(folder, "talker"), "utf8"))));
  });

  it("reports the exit code of a failed plugin, and not its output", async () => {
    const error = await ask("failing", "echo a secret >&2\nexit 7", 20_000);
    assert.ok(error instanceof KubeconfigError);
    assert.match(error.message, /context "dev": .*failing failed: exited with 7; run it by hand to see why$/);
  });

  it("gives a plugin the cluster of its context", async () => {
    const info = join(folder, "info");
    await ask("asking", `echo "$KUBERNETES_EXEC_INFO" > ${info}\nexit 1`, 20_000);
    const { cluster } = JSON.parse(readFileSync(info, "utf8")).spec;
    assert.deepEqual(cluster, { server: "https://127.0.0.1:1", "tls-server-name": "kubernetes" });
  });
});
