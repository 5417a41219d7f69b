/**
 * Writers that are killed at random moments. `LISTWATCH_KILLS` is how many there are of each kind,
 * `LISTWATCH_KILL_SEED` the seed of the moments.
 *
 * @module
 */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import * as fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { after, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import type { SnapshotChange, SnapshotStorage } from "@listwatch/cache/informer";
import { sqliteSnapshot } from "@listwatch/cache/node";
import { change, changed, type Content, loadContent, put } from "../snapshots/saved.ts";

const open = (path: string): SnapshotStorage => sqliteSnapshot(path).storage;

/** Every so many versions a change replaces everything. */
const PERIOD = 50;

/** The change that makes a version of the one before. */
function changeTo(version: number): SnapshotChange {
  const text = (n: number) => "t".repeat((version * 7_919 + n * 104_729) % 3_000 + (n === 3 ? 300_000 : 0));
  const one = (n: number) => put(`shop/web-${n}`, { version: String(version), text: text(n) });
  const isWhole = version % PERIOD === 0;
  return change(version, {
    replaces: isWhole,
    puts: isWhole ? Array.from({ length: 20 }, (_, n) => one(n)) : [one(version % 20), one(version * 3 % 7)],
    deletes: isWhole ? [] : [`shop/web-${version * 11 % 20}`, "never/there"],
  });
}

function contentAt(version: number): Content {
  let content: Content | undefined;
  for (let next = version - version % PERIOD; next <= version; next++) {
    content = changed(content, changeTo(next));
  }
  return content!;
}

/** Saves as fast as it can, and writes each version to standard output when it is saved. */
async function write(path: string): Promise<void> {
  const storage = open(path);
  const loaded = await storage.load({ resource: "v1/pods", source: "https://cluster.example" });
  for (let version = loaded === undefined ? 0 : Number(loaded.resourceVersion) + 1;; version++) {
    await storage.save(changeTo(version));
    fs.writeSync(1, `${version}\n`);
  }
}

const own = process.env.LISTWATCH_KILLED_WRITER;
if (own !== undefined) await write(own);

const kills = Number(process.env.LISTWATCH_KILLS ?? 15);
const seed = Number(process.env.LISTWATCH_KILL_SEED ?? Math.floor(Math.random() * 1e9)); // printed

describe("sqliteSnapshot of a process that is killed", () => {
  const folder = fs.mkdtempSync(join(tmpdir(), "listwatch-kills-"));
  after(() => fs.rmSync(folder, { recursive: true }));

  it(
    `has what was saved last, ${kills} times (seed ${seed})`,
    { timeout: 60_000 + kills * 5_000 },
    async () => {
      const random = randomOf(seed);
      const path = join(folder, "pods.sqlite");
      let least = -1;
      for (let kill = 1; kill <= kills; kill++) {
        const saved = await killedWriter(path, random() * 150);
        least = Math.max(least, saved);
        const storage = open(path);
        const content = await loadContent(storage);
        await storage.close?.();
        const version = content === undefined ? -1 : Number(content.resourceVersion);
        assert.ok(version >= least, `kill ${kill}: ${version} is loaded, and ${least} was saved`);
        if (content !== undefined) assert.deepEqual(content, contentAt(version), `kill ${kill}`);
        least = version;
      }
      assert.ok(least > kills, `only ${least} versions were saved`);
    },
  );

  const hasProc = fs.existsSync("/proc/self/stat");
  it(
    "is refused to another process while it runs, and not once it was killed, though no parent has reaped it",
    {
      skip: !hasProc && "this system does not show zombies",
      timeout: 60_000,
    },
    async () => {
      const path = join(folder, "zombie.sqlite");
      // A parent that never asks how its child has ended.
      const parent = spawn("sh", ["-c", '"$0" "$@" & echo "pid $!"; exec sleep 300', ...WRITER], {
        env: { ...process.env, LISTWATCH_KILLED_WRITER: path },
        stdio: ["ignore", "pipe", "inherit"],
      });
      const ended = once(parent, "close");
      try {
        let output = "";
        const [, pid] = await new Promise<RegExpExecArray>((resolve) => {
          parent.stdout.on("data", (chunk) => {
            const found = /pid (\d+)[^]*\n\d+\n/.exec(output += chunk);
            if (found !== null) resolve(found);
          });
        });
        const second = open(path);
        const identity = { resource: "v1/pods", source: "https://cluster.example" };
        await assert.rejects(
          async () => await second.load(identity),
          /sqlite: another informer uses it, .*\(in-use\)/,
        );
        process.kill(Number(pid), "SIGKILL");
        const isZombie = () =>
          / Z /.test(fs.readFileSync(`/proc/${pid}/stat`, "utf8")) &&
          fs.readdirSync(`/proc/${pid}/task`).length === 1; // its other threads have ended, too
        while (!isZombie()) await new Promise((resolve) => setTimeout(resolve, 1));
        const third = open(path);
        assert.ok(Number((await loadContent(third))?.resourceVersion) >= 0);
        await third.close?.();
        await second.save(changeTo(PERIOD));
        await second.close?.();
        assert.ok(isZombie());
      } finally {
        parent.kill("SIGKILL");
        await ended;
      }
    },
  );
});

const WRITER: readonly string[] = [
  process.execPath,
  ...("Deno" in globalThis ? ["run", "--no-check", "-A"] : []),
  fileURLToPath(import.meta.url),
];

/**
 * Runs a writer until some time after its first save, kills it, and returns the version that it saved last.
 */
async function killedWriter(path: string, afterMs: number): Promise<number> {
  const [program, ...args] = WRITER;
  const child = spawn(program, args, {
    env: { ...process.env, LISTWATCH_KILLED_WRITER: path },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  let errors = "";
  const ended = once(child, "close");
  const first = new Promise<void>((resolve) => {
    child.stdout.on("data", (chunk) => {
      output += chunk;
      resolve();
    });
    child.on("close", () => resolve());
  });
  child.stderr.on("data", (chunk) => errors += chunk);
  await first;
  await new Promise((resolve) => setTimeout(resolve, afterMs));
  child.kill("SIGKILL");
  const [, signal] = await ended;
  assert.equal(signal, "SIGKILL", `the writer ended by itself: ${errors}`);
  const lines = output.split("\n").slice(0, -1);
  return lines.length === 0 ? -1 : Number(lines.at(-1));
}

/** Mulberry32. */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}
