import assert from "node:assert/strict";
import * as fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { SnapshotInUseError } from "@listwatch/cache/node";
import { FileLock, type LockSystem } from "../../../src/node/snapshots/snapshot_lock.ts";
import { FakeClock } from "../../../src/util/clock.ts";

let folder = "";
before(() => {
  folder = fs.mkdtempSync(join(tmpdir(), "listwatch-lock-"));
});
after(() => fs.rmSync(folder, { recursive: true }));

/** A process that may not learn when processes have started. */
const BLIND: LockSystem = { pid: 1, host: () => "web-0", startOf: () => "", isRunning: () => true };
const SEEING: LockSystem = { ...BLIND, startOf: (pid) => `boot ${pid}` };

let locks = 0;

function newLock(path: string, system: LockSystem, nowMs = Date.now()): FileLock {
  return new FileLock(path, { token: `token-${locks++}`, clock: new FakeClock(nowMs), system });
}

/** Whether a process takes a lock that another one has left. */
function takes(
  system: LockSystem,
  left: { readonly host?: string; readonly pid?: number; readonly started?: string },
  { ageMs = 0 } = {},
): boolean {
  const path = join(folder, `${locks}.snap`);
  fs.writeFileSync(
    `${path}.lock`,
    JSON.stringify({ host: "web-0", pid: 1, started: "", token: "left", ...left }),
  );
  const lock = newLock(path, system, fs.statSync(`${path}.lock`).mtimeMs + ageMs);
  try {
    lock.hold();
  } catch (error) {
    assert.ok(error instanceof SnapshotInUseError);
    return false;
  }
  lock.release();
  assert.ok(!fs.existsSync(`${path}.lock`));
  return true;
}

describe("FileLock", () => {
  it("takes the lock of the process before it that had its number, where start times are not known", () => {
    assert.ok(takes(BLIND, {}));
    assert.ok(takes(SEEING, {}));
    assert.ok(takes(BLIND, { started: "boot 7" }));
    assert.ok(takes(SEEING, { started: "boot 7" }));
  });

  it("leaves the lock of another informer of its process alone, where start times are not known", () => {
    const path = join(folder, "same.snap");
    const first = newLock(path, BLIND);
    first.hold();
    const second = newLock(path, BLIND);
    for (const other of [second, newLock(path, SEEING)]) {
      assert.throws(() => other.hold(), /another informer of this process uses it/);
    }
    first.hold();
    first.release();
    second.hold();
    second.release();
  });

  it("leaves the lock of another running process alone, where a start time is not known", () => {
    const day = { ageMs: 86_400_000 };
    assert.ok(!takes(BLIND, { pid: 2 }, day));
    assert.ok(!takes(SEEING, { pid: 2 }, day));
    assert.ok(!takes(BLIND, { pid: 2, started: "boot 2" }, day));
    assert.ok(takes({ ...BLIND, isRunning: () => false }, { pid: 2 }));
  });

  it("takes a lock after two minutes, where nothing is known about its process", () => {
    const blind: LockSystem = { ...BLIND, isRunning: () => undefined };
    for (
      const [system, left] of [
        [blind, { pid: 2 }],
        [{ ...blind, host: () => "" }, { host: "" }],
      ] as const
    ) {
      assert.ok(!takes(system, left, { ageMs: 119_000 }));
      assert.ok(takes(system, left, { ageMs: 121_000 }));
    }
  });
});
