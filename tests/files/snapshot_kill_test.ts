/**
 * Writers that are killed at random moments. `LISTWATCH_KILLS` is how many there are of each kind, `LISTWATCH_KILL_SEED` the
 * seed of the moments.
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
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import type { SnapshotChange, SnapshotStorage } from "@listwatch/cache/informer";
import { fileSnapshot, sqliteSnapshot } from "@listwatch/cache/node";
import { change, changed, type Content, loadContent, put } from "../snapshots/saved.ts";

const OPEN = {
  fileSnapshot: (path: string) => fileSnapshot(path).storage,
  sqliteSnapshot: (path: string) => sqliteSnapshot(path).storage,
} satisfies Record<string, (path: string) => SnapshotStorage>;

type Kind = keyof typeof OPEN;

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
async function write(kind: Kind, path: string): Promise<void> {
  const storage = OPEN[kind](path);
  const loaded = await storage.load({ resource: "v1/pods", source: "https://cluster.example" });
  for (let version = loaded === undefined ? 0 : Number(loaded.resourceVersion) + 1;; version++) {
    await storage.save(changeTo(version));
    fs.writeSync(1, `${version}\n`);
  }
}

const own = process.env.LISTWATCH_KILLED_WRITER;
if (own !== undefined) {
  const [kind, path] = own.split(" ");
  await write(kind as Kind, path);
}

const kills = Number(process.env.LISTWATCH_KILLS ?? 15);
const seed = Number(process.env.LISTWATCH_KILL_SEED ?? Math.floor(Math.random() * 1e9)); // printed
const hasSqlite = await import("node:sqlite").then(() => true, () => false);

for (const kind of Object.keys(OPEN) as Kind[]) {
  const skip = kind === "sqliteSnapshot" && !hasSqlite && "this runtime has no SQLite";
  describe(`${kind} of a process that is killed`, { skip }, () => {
    it(
      `has what was saved last, ${kills} times (seed ${seed})`,
      { timeout: 60_000 + kills * 5_000 },
      async () => {
        const random = randomOf(seed);
        const folder = fs.mkdtempSync(join(tmpdir(), "listwatch-kills-"));
        const path = join(folder, "pods.snap");
        let least = -1;
        for (let kill = 1; kill <= kills; kill++) {
          const saved = await killedWriter(kind, path, random() * 150);
          least = Math.max(least, saved);
          const storage = OPEN[kind](path);
          const content = await loadContent(storage);
          await storage.close?.();
          const version = content === undefined ? -1 : Number(content.resourceVersion);
          assert.ok(version >= least, `kill ${kill}: ${version} is loaded, and ${least} was saved`);
          if (content !== undefined) assert.deepEqual(content, contentAt(version), `kill ${kill}`);
          least = version;
        }
        assert.ok(least > kills, `only ${least} versions were saved`);
        fs.rmSync(folder, { recursive: true });
      },
    );
  });
}

/** Runs a writer until some time after its first save, kills it, and returns the version that it saved last. */
async function killedWriter(kind: Kind, path: string, afterMs: number): Promise<number> {
  const file = fileURLToPath(import.meta.url);
  const isDeno = "Deno" in globalThis;
  const args = isDeno ? ["run", "--no-check", "-A", file] : [file];
  const child = spawn(process.execPath, args, {
    env: { ...process.env, LISTWATCH_KILLED_WRITER: `${kind} ${path}` },
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
