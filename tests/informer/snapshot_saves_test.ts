import assert from "node:assert/strict";
import type { KubernetesObject } from "@listwatch/cache";
import type { SnapshotChange, SnapshotStorage } from "@listwatch/cache/informer";
import { type Disk, Machine, nameAndVersion } from "./snapshot_rig.ts";
import { describe, it } from "./storages.ts";
import { seededRandom } from "../../src/testing/seeded_random.ts";
import { propertyOptions } from "../property.ts";

/** A storage whose saves end when the test says so. */
class SlowStorage implements SnapshotStorage {
  readonly disk: Disk;
  readonly pending: { readonly change: SnapshotChange; end(error?: Error): void }[] = [];
  closed = 0;

  constructor(disk: Disk) {
    this.disk = disk;
  }

  load: SnapshotStorage["load"] = (identity) => this.disk.load(identity);

  save(change: SnapshotChange): Promise<void> {
    assert.equal(this.pending.length, 0, "save is called again before it has settled");
    return new Promise((resolve, reject) => {
      this.pending.push({
        change,
        end: (error) => {
          this.pending.length = 0;
          if (error !== undefined) return reject(error);
          this.disk.save(change);
          resolve();
        },
      });
    });
  }

  close(): void {
    this.closed++;
  }

  get options(): Partial<SnapshotStorage> {
    return { save: (change) => this.save(change), close: () => this.close() };
  }
}

describe("SnapshotStorage.save", () => {
  it("is called within the turn of each change, before observers, for a storage that saves in the turn", async () => {
    await using machine = new Machine();
    machine.create("a");
    const { disk } = machine;
    const process = await machine.start({ storageOptions: { savesInTurn: true } });
    const seen: string[] = [];
    process.informer.observe(() => seen.push(disk.content().join()));
    assert.deepEqual(disk.saves.map(({ replaces, puts }) => [replaces, puts]), [[true, ["default/a"]]]);
    machine.create("b");
    machine.touch("a");
    machine.delete("b");
    await machine.settle();
    assert.deepEqual(seen, ["a@2,b@3", "a@4,b@3", "a@4"]);
    assert.deepEqual(
      disk.saves.slice(1).map(({ puts, deletes, resourceVersion }) => [puts, deletes, resourceVersion]),
      [
        [["default/b"], [], "3"],
        [["default/a"], [], "4"],
        [[], ["default/b"], "5"],
      ],
    );
  });

  it("is called for bookmarks not more often than the interval, in the turn or not", async () => {
    for (const savesInTurn of [false, true]) {
      await using machine = new Machine({ bookmarkIntervalMs: 200 });
      machine.create("a");
      await machine.start({ storageOptions: { savesInTurn } });
      await machine.clock.advance(1_000);
      const before = machine.disk.saves.length;
      machine.server.create("v1/configmaps", { metadata: { name: "other" } });
      await machine.clock.advance(1_000);
      const { meta, saves } = machine.disk;
      assert.ok(saves.length - before <= 1, `${saves.length - before} saves in an interval`);
      await machine.clock.advance(1_000);
      assert.equal(machine.disk.meta?.resourceVersion, "3");
      assert.ok(machine.disk.meta!.savedAtMs > meta!.savedAtMs);
      assert.deepEqual(machine.disk.saves.at(-1)?.puts, []);
    }
  });

  it("is not called where nothing has changed since the restart", async () => {
    await using machine = new Machine({ bookmarkIntervalMs: 10 ** 8 });
    machine.create("a");
    await (await machine.start()).stop();
    assert.equal(machine.disk.saves.length, 1);
    const second = await machine.start();
    await machine.clock.advance(60_000);
    await second.stop();
    assert.equal(machine.disk.saves.length, 1);
  });

  it("is called with what has changed since a restart, and with exactly what a list has changed", async () => {
    await using machine = new Machine({ bookmarkIntervalMs: 10 ** 8 });
    machine.create("a", "b", "c");
    await (await machine.start()).stop();
    await machine.start();
    machine.touch("a");
    await machine.clock.advance(1_000);
    const last = () => {
      const { replaces, puts, deletes } = machine.disk.saves.at(-1)!;
      return { replaces, puts, deletes };
    };
    assert.deepEqual(last(), { replaces: false, puts: ["default/a"], deletes: [] });
    machine.server.closeWatches();
    machine.delete("b");
    machine.touch("c");
    machine.server.compact();
    machine.requests();
    await machine.clock.advance(60_000);
    assert.ok(machine.requests().some((request) => request.startsWith("list")));
    assert.deepEqual(last(), { replaces: false, puts: ["default/c"], deletes: ["default/b"] });
    assert.deepEqual(machine.disk.content(), machine.content());
  });

  it("is counted, measured and shown in the status", async () => {
    await using machine = new Machine({ bookmarkIntervalMs: 10 ** 8 });
    machine.create("a");
    const measured: string[] = [];
    const note = (name: string, value: number, labels: object) => {
      if (name.startsWith("informer_snapshot")) {
        measured.push(`${name} ${value} ${Object.values(labels)}`);
      }
    };
    const slow = new SlowStorage(machine.disk);
    const { informer, log } = await machine.start({
      storageOptions: slow.options,
      metrics: { count: note, observe: note, gauge: () => {} },
    });
    const first = informer.status().snapshot!;
    assert.equal("lastSaveTimeMs" in first, false);
    await machine.clock.advance(1_000);
    await machine.clock.advance(2_500);
    slow.pending[0].end(new Error("disk full"));
    await machine.settle();
    await machine.clock.advance(1_000);
    await machine.clock.advance(500);
    slow.pending[0].end();
    await machine.settle();
    assert.deepEqual(measured, [
      "informer_snapshot_loads_total 1 pods,none",
      "informer_snapshot_save_duration_seconds 2.5 pods",
      "informer_snapshot_saves_total 1 pods,failed",
      "informer_snapshot_save_duration_seconds 0.5 pods",
      "informer_snapshot_saves_total 1 pods,saved",
    ]);
    assert.equal(informer.status().snapshot?.lastSaveTimeMs, machine.clock.now());
    machine.touch("a");
    await machine.clock.advance(1_000);
    slow.pending[0].end();
    await machine.settle();
    assert.deepEqual(log.of("info").filter((line) => line.includes("snapshot")), [
      "info: pods: the snapshot is saved again",
    ]);
  });

  it("is tried again a second after the next failure, however long the one before lasted", async () => {
    await using machine = new Machine({ bookmarkIntervalMs: 10 ** 8 });
    machine.create("a");
    let isFull = true;
    let calls = 0;
    await machine.start({
      storageOptions: {
        save: () => {
          calls++;
          if (isFull) throw new Error("disk full");
        },
      },
    });
    await machine.clock.advance(600_000);
    isFull = false;
    await machine.clock.advance(60_000);
    isFull = true;
    machine.touch("a");
    await machine.clock.advance(1_000);
    const before = calls;
    await machine.clock.advance(1_000);
    assert.equal(calls, before + 1);
  });

  it("is called once at a time; meanwhile only keys are gathered, and the last state is saved", async () => {
    await using machine = new Machine();
    machine.create("a");
    const slow = new SlowStorage(machine.disk);
    const process = await machine.start({ storageOptions: slow.options });
    await machine.clock.advance(1_000);
    assert.equal(slow.pending.length, 1);
    for (let i = 0; i < 100; i++) machine.touch("a");
    machine.create("b");
    await machine.clock.advance(60_000);
    assert.deepEqual(slow.pending[0].change.puts.map((put) => nameAndVersion(JSON.parse(put.json()))), [
      "a@2",
    ]);
    slow.pending[0].end();
    await machine.clock.advance(1_000);
    const { change } = slow.pending[0];
    assert.deepEqual(change.puts.map(({ key }) => key), ["default/a", "default/b"]);
    assert.equal(change.replaces, false);
    slow.pending[0].end();
    await machine.settle();
    assert.deepEqual(machine.disk.content(), machine.content());
    await process.stop();
    assert.equal(slow.closed, 1);
  });

  it("is called again with everything after it has failed, is reported, and stops nothing", async () => {
    for (
      const fails of [() => Promise.reject(new Error("disk full")), () => {
        throw new Error("disk full");
      }]
    ) {
      await using machine = new Machine({ bookmarkIntervalMs: 10 ** 8 });
      machine.create("a", "b");
      let isFull = false;
      const process = await machine.start({
        storageOptions: { save: (change) => isFull ? fails() : machine.disk.save(change) },
      });
      await machine.clock.advance(1_000);
      isFull = true;
      machine.delete("a");
      await machine.clock.advance(1_000);
      const { snapshot } = process.informer.status();
      assert.deepEqual([snapshot?.failedSaves, snapshot?.lastError], [1, "disk full"]);
      assert.equal(snapshot?.savedResourceVersion, "3");
      await machine.clock.advance(600_000);
      assert.deepEqual(process.log.of("error"), ["error: pods: could not save the snapshot: disk full"]);
      const tries = process.informer.status().snapshot!.failedSaves;
      assert.ok(tries > 3 && tries < 20, `${tries} tries`);
      isFull = false;
      machine.touch("b");
      await machine.clock.advance(61_000);
      const last = machine.disk.saves.at(-1)!;
      assert.deepEqual([last.replaces, last.puts], [true, ["default/b"]]);
      assert.deepEqual(machine.disk.content(), machine.content());
      assert.equal(process.informer.status().snapshot?.failedSaves, 0);
      assert.equal(process.informer.hasSynced(), true);
    }
  });

  it("is not called for each change while it fails, though the storage saves in the turn", async () => {
    await using machine = new Machine();
    machine.create("a");
    let calls = 0;
    const process = await machine.start({
      storageOptions: {
        savesInTurn: true,
        save: () => {
          calls++;
          throw new Error("disk full");
        },
      },
    });
    for (let i = 0; i < 50; i++) machine.touch("a");
    await machine.settle();
    assert.equal(calls, 1);
    assert.deepEqual(process.content(), machine.content());
  });

  it("fails if it is asynchronous, though the storage says that it saves in the turn", async () => {
    await using machine = new Machine();
    machine.create("a");
    const { informer } = await machine.start({
      storageOptions: { savesInTurn: true, save: (change) => Promise.resolve(machine.disk.save(change)) },
    });
    assert.match(informer.status().snapshot?.lastError ?? "", /must not be asynchronous/);
  });

  it("does not keep a stop when it hangs", async () => {
    await using machine = new Machine();
    machine.create("a");
    const process = await machine.start({
      storageOptions: { save: () => new Promise(() => {}) },
      snapshotOptions: { stopTimeoutMs: 5_000 },
    });
    await machine.clock.advance(1_000);
    let isStopped = false;
    const stopped = process.stop().then(() => (isStopped = true));
    await machine.clock.advance(4_000);
    assert.equal(isStopped, false);
    await machine.clock.advance(1_000);
    await stopped;
    assert.match(
      process.log.of("error").join(),
      /could not finish the snapshot: it did not finish within 5000 ms/,
    );
  });

  it("is not called again where it ends after a stop that has given up; the storage is closed", async () => {
    await using machine = new Machine();
    machine.create("a");
    const slow = new SlowStorage(machine.disk);
    const process = await machine.start({
      storageOptions: slow.options,
      snapshotOptions: { stopTimeoutMs: 5_000 },
    });
    await machine.clock.advance(1_000);
    machine.touch("a");
    await machine.settle();
    const stopped = process.stop();
    await machine.settle();
    await machine.clock.advance(5_000);
    await stopped;
    assert.equal(slow.closed, 0);
    slow.pending[0].end();
    await machine.settle();
    assert.equal(slow.pending.length, 0);
    assert.equal(slow.closed, 1);
  });

  it("is called at the stop with what is left, after one that is running, before the storage is closed", async () => {
    await using machine = new Machine();
    machine.create("a");
    const slow = new SlowStorage(machine.disk);
    const process = await machine.start({ storageOptions: slow.options });
    await machine.clock.advance(1_000);
    machine.create("b");
    await machine.settle();
    const stopped = process.stop();
    await machine.settle();
    assert.equal(slow.closed, 0);
    slow.pending[0].end();
    await machine.settle();
    assert.equal(slow.closed, 0, "another one is running");
    slow.pending[0].end();
    await stopped;
    assert.equal(slow.closed, 1);
    assert.deepEqual(machine.disk.content(), machine.content());
  });

  it("is followed at the stop by the close, which may take its time", async () => {
    await using machine = new Machine();
    const close = Promise.withResolvers<void>();
    const process = await machine.start({ storageOptions: { close: () => close.promise } });
    let isStopped = false;
    const stopped = process.stop().then(() => (isStopped = true));
    await machine.settle();
    assert.equal(isStopped, false);
    close.resolve();
    await stopped;
  });

  it("fails for an object that would not be the same when it is loaded", async () => {
    await using machine = new Machine();
    machine.create("a");
    const { informer } = await machine.start({
      transform: (object: KubernetesObject) => ({ ...object, status: new Date(0) }),
      snapshotOptions: { identity: "1" },
    });
    await machine.clock.advance(1_000);
    assert.match(
      informer.status().snapshot?.lastError ?? "",
      /Cannot save "default\/a": it is not the same after it was written as JSON/,
    );
  });

  it("is called with everything where not all of the snapshot could be stored", async () => {
    await using machine = new Machine();
    machine.create("a", "b");
    await (await machine.start()).stop();
    const second = await machine.start({
      indexers: {
        byName: ({ metadata }: KubernetesObject) => {
          if (metadata?.name === "a") throw new Error("not this one");
          return [metadata?.name ?? ""];
        },
      } as never,
    });
    assert.deepEqual(second.content(), ["b@3"]);
    machine.touch("b");
    await machine.clock.advance(1_000);
    const last = machine.disk.saves.at(-1)!;
    assert.deepEqual([last.replaces, last.needsList, last.puts], [true, true, ["default/b"]]);
  });

  it("leaves, whenever the process is killed, what the next one resumes from", async () => {
    const { numRuns, seed: first = 1 } = propertyOptions(40);
    for (let seed = first; seed < first + numRuns; seed++) {
      const random = seededRandom(seed);
      const savesInTurn = random() < 0.5;
      await using machine = new Machine();
      let { disk } = machine;
      let process = await machine.start({ disk, storageOptions: { savesInTurn } });
      for (let step = 0; step < 60; step++) {
        const name = `pod-${Math.floor(random() * 5)}`;
        const exists = machine.content().some((line) => line.startsWith(`${name}@`));
        if (!exists) machine.create(name);
        else if (random() < 0.4) machine.delete(name);
        else machine.touch(name);
        if (random() < 0.7) await machine.clock.advance(random() < 0.5 ? 0 : Math.floor(random() * 1_500));
        if (random() < 0.1) {
          disk = disk.copy(); // the rest of the old process writes to nowhere
          await process.stop();
          for (const save of disk.saves) assert.equal(save.needsList, false);
          machine.requests();
          process = await machine.start({ disk, storageOptions: { savesInTurn } });
          await machine.clock.advance(5_000);
          assert.deepEqual(process.content(), machine.content(), `seed ${seed}, step ${step}`);
          assert.equal(process.informer.hasSynced(), true, `seed ${seed}, step ${step}`);
          const requests = machine.requests();
          const hasSnapshot = process.informer.status().snapshot?.load === "restored";
          assert.equal(
            requests.some((line) => line.startsWith("list")),
            !hasSnapshot,
            `seed ${seed}: ${requests}`,
          );
        }
      }
    }
  });
});
