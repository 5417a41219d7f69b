/**
 * One writer per snapshot.
 * @module
 */

import * as fs from "node:fs";
import { hostname } from "node:os";
import process from "node:process";
import type { Clock } from "../../util/clock.ts";
import { CacheError } from "../../util/errors.ts";
import { hasCode } from "./files.ts";

/**
 * Another informer, in this process or in another one, has the snapshot.
 *
 * @example
 * ```ts
 * import { SnapshotInUseError } from "@listwatch/cache/node";
 * const error = new SnapshotInUseError("/var/cache/pods.snap", "process 42");
 * console.log(error.message); // Cannot use /var/cache/pods.snap: process 42 uses it; give each its own path
 * ```
 *
 * @category Snapshots
 */
export class SnapshotInUseError extends CacheError {
  /** Makes the error; `owner` is who uses it. */
  constructor(path: string, owner: string) {
    super("SnapshotInUse", `Cannot use ${path}: ${owner} uses it; give each its own path`);
  }
}

/** Makes sure that one owner at a time writes a snapshot. */
export interface SnapshotLock {
  /**
   * Takes the lock, or makes sure that it is still held.
   *
   * @throws {SnapshotInUseError} Another one has it.
   */
  hold(): void;
  /** Gives the lock up, if it is held. */
  release(): void;
}

/** Who holds a lock. */
interface Owner {
  readonly host: string;
  readonly pid: number;
  /** When the process started, as its system counts; process numbers are used again. `""`: not known. */
  readonly started: string;
  /** Distinguishes the owners of one process. */
  readonly token: string;
}

/** What a lock learns about processes. */
export interface LockSystem {
  readonly pid: number;
  /** `""`: not known. */
  host(): string;
  /** `""`: not known, or it has ended. */
  startOf(pid: number): string;
  /** `undefined`: not known. */
  isRunning(pid: number): boolean | undefined;
}

/** Options of {@linkcode FileLock}. */
export interface FileLockOptions {
  readonly token: string;
  readonly clock: Clock;
  /** That of this process by default. */
  readonly system?: LockSystem;
}

/**
 * A lock in a file beside the snapshot, which names its owner. A crash leaves the file behind, but no lock: the next
 * process sees that the owner has ended. (`flock` would end with its process, but Node does not have it.) Whether a
 * process of another host has ended cannot be seen: it loses the lock when it has not saved for two minutes. So does a
 * process about which this one may learn nothing (Deno without `--allow-run` and without `--allow-read=/proc`).
 */
export class FileLock implements SnapshotLock {
  readonly #path: string;
  readonly #lockPath: string;
  readonly #me: Owner;
  readonly #clock: Clock;
  readonly #system: LockSystem;

  /** Makes a lock that is not held. */
  constructor(path: string, { token, clock, system = ownSystem }: FileLockOptions) {
    this.#path = path;
    this.#lockPath = `${path}.lock`;
    this.#me = { host: system.host(), pid: system.pid, started: system.startOf(system.pid), token };
    this.#clock = clock;
    this.#system = system;
  }

  hold(): void {
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      if (this.#create()) return;
      const held = readLock(this.#lockPath);
      if (held === undefined) continue; // it was given up in this moment
      if (held.owner?.token === this.#me.token) return this.#touch();
      if (this.#isAlive(held)) throw new SnapshotInUseError(this.#path, nameOf(held.owner, this.#me));
      this.#takeAway(held.text);
    }
    throw new SnapshotInUseError(this.#path, "another process");
  }

  release(): void {
    if (readLock(this.#lockPath)?.owner?.token === this.#me.token) {
      fs.rmSync(this.#lockPath, { force: true });
    }
    heldHere.delete(this.#me.token);
  }

  /** Whether there was none. */
  #create(): boolean {
    try {
      fs.writeFileSync(this.#lockPath, JSON.stringify(this.#me), { flag: "wx", mode: 0o600 });
      heldHere.add(this.#me.token);
      return true;
    } catch (error) {
      if (hasCode(error, "EEXIST")) return false;
      throw error;
    }
  }

  #touch(): void {
    const nowS = this.#clock.now() / 1_000;
    fs.utimesSync(this.#lockPath, nowS, nowS);
  }

  #isAlive({ owner, writtenMs }: ReadLock): boolean {
    const ageMs = this.#clock.now() - writtenMs;
    // Its owner has made the file in this moment, and has not written its name yet; or was killed between the two.
    if (owner === undefined) return ageMs < NAMELESS_MS;
    if (owner.host !== this.#me.host) return ageMs < UNSEEN_MS;
    const { pid, started, token } = owner;
    if (started !== "" && this.#me.started !== "") {
      return this.#system.isRunning(pid) !== false && this.#system.startOf(pid) === started;
    }
    if (heldHere.has(token)) return true;
    // In a container, each process has the number of the one before. With the number of this one, it has ended.
    if (pid === this.#me.pid) return owner.host === "" && ageMs < UNSEEN_MS;
    return this.#system.isRunning(pid) ?? ageMs < UNSEEN_MS;
  }

  /** Removes an ended owner's lock, unless another process did so, and has made its own, meanwhile. */
  #takeAway(text: string): void {
    const away = `${this.#lockPath}.${this.#me.token}`;
    try {
      fs.renameSync(this.#lockPath, away);
      const taken = fs.readFileSync(away, "utf8");
      if (taken !== text) fs.writeFileSync(this.#lockPath, taken, { flag: "wx", mode: 0o600 });
    } catch (error) {
      if (!hasCode(error, "ENOENT") && !hasCode(error, "EEXIST")) throw error;
    } finally {
      fs.rmSync(away, { force: true });
    }
  }
}

const MAX_TRIES = 5;
const NAMELESS_MS = 5_000;
const UNSEEN_MS = 120_000;

/** The tokens of the locks that this process has taken. */
const heldHere = new Set<string>();

interface ReadLock {
  readonly text: string;
  /** `undefined`: the file does not name one. */
  readonly owner: Owner | undefined;
  readonly writtenMs: number;
}

function readLock(path: string): ReadLock | undefined {
  try {
    const text = fs.readFileSync(path, "utf8");
    return { text, owner: parseOwner(text), writtenMs: fs.statSync(path).mtimeMs };
  } catch (error) {
    if (hasCode(error, "ENOENT")) return undefined;
    throw error;
  }
}

function parseOwner(text: string): Owner | undefined {
  try {
    const { host, pid, started, token } = JSON.parse(text) as Owner;
    const isOwner = [host, started, token].every((value) => typeof value === "string") &&
      Number.isSafeInteger(pid) && pid > 0;
    return isOwner ? { host, pid, started, token } : undefined;
  } catch {
    return undefined;
  }
}

const ownSystem: LockSystem = { pid: process.pid, host: ownHost, startOf, isRunning };

/** Deno allows a program to know it, or does not. */
function ownHost(): string {
  try {
    return hostname();
  } catch {
    return "";
  }
}

/** `undefined`: this process may not know it. */
function isRunning(pid: number): boolean | undefined {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    if (hasCode(error, "ESRCH")) return false;
    return hasCode(error, "EPERM") ? true : undefined; // EPERM: it runs as another user
  }
}

/**
 * When a process started: on Linux, in ticks since the system's start, and which start that was. `""` elsewhere.
 * https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html
 */
function startOf(pid: number): string {
  try {
    const stat = fs.readFileSync(`/proc/${pid}/stat`, "utf8");
    // The second field, the program's name, may have spaces and parentheses.
    const ticks = stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
    return `${fs.readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()} ${ticks}`;
  } catch {
    return "";
  }
}

function nameOf(owner: Owner | undefined, me: Owner): string {
  if (owner === undefined) return "another process";
  if (owner.host !== me.host) return `process ${owner.pid} of ${owner.host}`;
  return owner.pid === me.pid ? "another informer of this process" : `process ${owner.pid}`;
}
