import { describe, it } from "node:test";
import assert from "node:assert/strict";
import { fieldIndex, type KubernetesObject, metaNamespaceKey } from "@listwatch/cache";
import { type SnapshotChange, type SnapshotEntry, SnapshotRefusedError } from "@listwatch/cache/informer";
import { newStore } from "@listwatch/cache/store";
import { pod } from "@listwatch/cache/testing";
import { DiskObjects } from "@listwatch/cache/workers";
import type { ObjectText } from "../../src/text/object_text_reader.ts";
import type { TextObject } from "../../src/text/lazy_object.ts";
import { newCache } from "../../src/store/cache.ts";
import { heldStoreOf } from "../../src/store/holding.ts";
import { FakeClock } from "../../src/testing/fake_clock.ts";
import { BodySweep, DiskBodies, DiskContent } from "../../src/workers/disk_content.ts";
import { createTables, readState } from "../../src/workers/sql_database.ts";
import { NodeSql } from "./node_sql.ts";

const IDENTITY = { resource: "v1/pods", source: "http://server" };

/** A store on a database, and what saves it. */
function openStore(sql: NodeSql, disk: DiskObjects = new DiskObjects(sql)) {
  const store = newStore<KubernetesObject>(metaNamespaceKey, { storage: disk.texts });
  const { held } = heldStoreOf<KubernetesObject, typeof store>(store);
  const save = (keys: readonly string[], change: Partial<SnapshotChange> = {}) => {
    disk.save({
      resourceVersion: "1",
      savedAtMs: 1_000,
      needsList: false,
      replaces: false,
      deletes: [],
      puts: keys.map((key) => ({
        key,
        held: held.getByKey(key),
        head: {},
        json: () => JSON.stringify(store.getByKey(key)),
      })),
      ...change,
    });
  };
  return { disk, store, save };
}

function loaded(sql: NodeSql) {
  const disk = new DiskObjects(sql);
  const snapshot = disk.load(IDENTITY);
  return {
    disk,
    snapshot,
    entries: snapshot && Array.from(snapshot.entries() as Iterable<SnapshotEntry[]>).flat(),
  };
}

const count = (sql: NodeSql, table: string) =>
  Number([...sql.exec(`SELECT count(*) FROM listwatch_${table}`).raw()][0][0]);

describe("DiskObjects", () => {
  it("holds in memory the number of a row, and in the row the text", () => {
    const sql = new NodeSql();
    const { store } = openStore(sql);
    const web = pod("web-1", { namespace: "shop" });
    store.add(web);
    assert.deepEqual([...sql.exec("SELECT id, json FROM listwatch_bodies").raw()], [[
      1,
      JSON.stringify(web),
    ]]);
    assert.deepEqual(store.getByKey("shop/web-1"), web);
  });

  it("loads after a restart what was saved, with its metadata, and reads no text for it", () => {
    const sql = new NodeSql();
    const { disk, store, save } = openStore(sql);
    assert.equal(disk.load(IDENTITY), undefined);
    const labels = { app: "web" };
    for (let i = 0; i < 2_500; i++) {
      store.add(pod(`web-${i}`, { namespace: "shop", labels, resourceVersion: `${i}` }));
    }
    save(store.listKeys(), { replaces: true, resourceVersion: "2500", savedAtMs: 7 });
    store.delete(pod("web-7", { namespace: "shop" }));
    save([], { deletes: ["shop/web-7"], resourceVersion: "2501", savedAtMs: 8 });

    const statements = sql.count;
    const { disk: next, snapshot, entries } = loaded(sql);
    assert.equal(snapshot?.resourceVersion, "2501");
    assert.equal(snapshot?.savedAtMs, 8);
    assert.equal(snapshot?.count, 2_499);
    assert.equal(entries?.length, 2_499);
    assert.ok(sql.count - statements < 20, `${sql.count - statements} statements`);
    const again = newCache<KubernetesObject, never>(metaNamespaceKey, {}, { storage: next.texts });
    const { held } = again;
    for (const entry of entries!) held.add(entry.key, entry.held as KubernetesObject);
    assert.deepEqual(again.getByKey("shop/web-8"), store.getByKey("shop/web-8"));
    const one = held.getByKey("shop/web-9")!.metadata!;
    const other = held.getByKey("shop/web-10")!.metadata!;
    assert.equal(one.resourceVersion, "9");
    assert.equal(one.labels, other.labels, "the same labels are in memory once");
  });

  it("loads an object of no namespace and of no labels as one", () => {
    const sql = new NodeSql();
    const { disk, store, save } = openStore(sql);
    disk.load(IDENTITY);
    store.add({ apiVersion: "v1", kind: "Node", metadata: { name: "n1" } });
    save(["n1"], { replaces: true });
    const [{ key, held }] = loaded(sql).entries!;
    const { namespace, labels, uid } = held as TextObject;
    assert.deepEqual({ key, namespace, labels, uid }, {
      key: "n1",
      namespace: undefined,
      labels: undefined,
      uid: undefined,
    });
  });

  it("loads what could not be held as text with the same metadata", () => {
    const sql = new NodeSql();
    const { disk } = openStore(sql);
    disk.load(IDENTITY);
    const web = pod("web-1", { namespace: "shop", labels: { app: "web" }, resourceVersion: "7" });
    const put = { key: "shop/web-1", held: { ...web }, head: {}, json: () => JSON.stringify(web) };
    disk.save({
      resourceVersion: "7",
      savedAtMs: 1,
      needsList: false,
      replaces: true,
      deletes: [],
      puts: [put as SnapshotChange["puts"][number]],
    });
    const { entries } = loaded(sql);
    const { apiVersion, kind, metadata } = entries![0].held as KubernetesObject;
    const { namespace, labels, resourceVersion } = metadata!;
    assert.deepEqual({ apiVersion, kind }, { apiVersion: "v1", kind: "Pod" });
    assert.deepEqual(
      { namespace, labels, resourceVersion },
      { namespace: "shop", labels: { app: "web" }, resourceVersion: "7" },
    );
  });

  it("loads the metadata of the last state that was saved, and only what a list has", () => {
    const sql = new NodeSql();
    const { disk, store, save } = openStore(sql);
    disk.load(IDENTITY);
    const old = { namespace: "shop", uid: "u-1", labels: { app: "a" } };
    for (const name of ["web-1", "web-2"]) store.add(pod(name, old));
    save(["shop/web-1", "shop/web-2"], { replaces: true });
    const created = pod("web-1", { ...old, uid: "u-2", labels: { app: "b" } });
    store.update({ ...created, apiVersion: "v2", kind: "Web" });
    save(["shop/web-1"], { replaces: true });
    const read = () =>
      loaded(sql).entries!.map(({ key, held }) => {
        const { apiVersion, kind, metadata } = held as KubernetesObject;
        return [key, apiVersion, kind, metadata?.uid, metadata?.labels?.app];
      });
    assert.deepEqual(read(), [["shop/web-1", "v2", "Web", "u-2", "b"]]);
    store.update(pod("web-1", old));
    save(["shop/web-1"]);
    assert.deepEqual(read(), [["shop/web-1", "v1", "Pod", "u-1", "a"]]);
  });

  it("has nothing where what it knows of the content is no JSON", () => {
    const sql = new NodeSql();
    const { disk, save } = openStore(sql);
    disk.load(IDENTITY);
    save([], { replaces: true });
    sql.exec("UPDATE listwatch_state SET value = '{' WHERE name = 'saved'");
    assert.equal(new DiskObjects(sql).load(IDENTITY), undefined);
  });

  it("keeps as many objects open as its options say, and freezes them where its store does", () => {
    for (const [hotObjects, statements] of [[undefined, 0], [0, 2]] as const) {
      const sql = new NodeSql();
      const disk = new DiskObjects(sql, hotObjects === undefined ? {} : { hotObjects });
      const frozen: unknown[] = [];
      const freeze = <V>(value: V) => (frozen.push(value), value);
      const holding = disk.texts<KubernetesObject>(metaNamespaceKey, { freeze });
      const held = holding.hold(pod("web-1", { namespace: "shop" }));
      const before = sql.count;
      for (let i = 0; i < 2; i++) assert.ok(JSON.stringify(holding.open(held)));
      assert.equal(sql.count - before, statements);
      assert.equal(frozen.length > 0, statements > 0);
    }
  });

  it("continues after the last committed turn when the process crashes within a turn", () => {
    const directory = Deno.makeTempDirSync();
    const path = `${directory}/object.sqlite`;
    const sql = new NodeSql(path);
    const { disk, store, save } = openStore(sql);
    disk.load(IDENTITY);
    store.add(pod("web-1", { namespace: "shop", resourceVersion: "1" }));
    save(["shop/web-1"], { replaces: true });
    sql.commit();
    store.update(pod("web-1", { namespace: "shop", resourceVersion: "2" }));
    save(["shop/web-1"], { resourceVersion: "2" });
    sql.crash();

    const { snapshot, entries } = loaded(new NodeSql(path));
    assert.equal(snapshot?.resourceVersion, "1");
    assert.equal(JSON.parse(entries![0].json).metadata.resourceVersion, "1");
    Deno.removeSync(directory, { recursive: true });
  });

  it("refuses the content of another source, and of a later format", () => {
    const sql = new NodeSql();
    const { disk, save } = openStore(sql);
    disk.load(IDENTITY);
    save([], { replaces: true });
    const other = { ...IDENTITY, source: "http://other" };
    assert.throws(
      () => new DiskObjects(sql).load(other),
      (error) => error instanceof SnapshotRefusedError && error.reason === "other-identity",
    );
    sql.exec("UPDATE listwatch_state SET value = json_set(value, '$.format', 99) WHERE name = 'saved'");
    assert.throws(
      () => new DiskObjects(sql).load(IDENTITY),
      (error) => error instanceof SnapshotRefusedError && error.reason === "newer-format",
    );
  });

  it("makes other tables where those that are there have another format, and keeps the name of the object", () => {
    const sql = new NodeSql();
    const { disk, save } = openStore(sql);
    disk.load(IDENTITY);
    save([], { replaces: true });
    sql.exec("INSERT INTO listwatch_state(name, value) VALUES('name', '\"production\"'), ('log', '{}')");
    sql.exec("UPDATE listwatch_state SET value = json_set(value, '$.format', 99) WHERE name = 'saved'");
    for (const table of ["bodies", "objects", "events"]) {
      sql.exec(`DROP TABLE listwatch_${table}`);
      sql.exec(`CREATE TABLE listwatch_${table}(other TEXT PRIMARY KEY, columns TEXT NOT NULL)`);
    }
    const next = openStore(sql);
    assert.equal(readState(sql, "log"), undefined);
    assert.throws(() => next.disk.load(IDENTITY), /it has format 99/);
    next.store.add(pod("web", { namespace: "shop" }));
    next.save(["shop/web"], { replaces: true });
    assert.equal(new DiskObjects(sql).load(IDENTITY)?.count, 1);
    assert.equal(readState(sql, "name"), "production");
  });

  it("loads the values of indexed fields without a text, and reads the texts where the indices are others", () => {
    const sql = new NodeSql();
    const nodePod = (name: string, node: string) => ({
      ...pod(name, { namespace: "shop" }),
      spec: { nodeName: node },
    });
    const open = (path: string, saved?: readonly KubernetesObject[], replaces = true) => {
      const disk = new DiskObjects(sql);
      const indexers = { field: fieldIndex(path) };
      const store = newCache<KubernetesObject, "field">(metaNamespaceKey, indexers, { storage: disk.texts });
      const loaded = disk.load(IDENTITY);
      const entries = Array.from((loaded?.entries() ?? []) as Iterable<SnapshotEntry[]>).flat();
      const before = sql.count;
      for (const { key, held } of entries) store.held.add(key, held as KubernetesObject);
      const statements = sql.count - before;
      const { holdText } = store.holding;
      const puts = (saved ?? []).map((object) => {
        const read = holdText!.reader.read(JSON.stringify(object)) as ObjectText;
        const held = holdText!.hold(read.text, object, read) as KubernetesObject;
        store.held.add(metaNamespaceKey(object), held);
        return { key: metaNamespaceKey(object), held, head: {}, json: () => read.text };
      });
      if (saved) {
        disk.save({
          resourceVersion: "1",
          savedAtMs: 1,
          needsList: false,
          replaces,
          deletes: [],
          puts,
        });
      }
      return { names: (value: string) => store.indexKeys("field", value), statements };
    };
    open("spec.nodeName", [nodePod("web-1", "a"), nodePod("web-2", "b")]);
    const same = open("spec.nodeName");
    assert.deepEqual([same.statements, same.names("b")], [0, ["shop/web-2"]]);
    const other = open("metadata.name");
    assert.deepEqual([other.statements, other.names("web-2")], [2, ["shop/web-2"]]);
    const back = open("spec.nodeName");
    assert.deepEqual([back.statements, back.names("b"), back.names("web-2")], [2, ["shop/web-2"], []]);
    open("spec.nodeName", [nodePod("web-1", "c"), nodePod("web-2", "b")]);
    open("spec.nodeName", [nodePod("web-1", "d")], false);
    const updated = open("spec.nodeName");
    assert.deepEqual(["b", "c", "d"].map(updated.names), [["shop/web-2"], [], ["shop/web-1"]]);
  });

  it("undoes a save of which a part fails", () => {
    const sql = new NodeSql();
    const { disk, store, save } = openStore(sql);
    disk.load(IDENTITY);
    for (const name of ["web-1", "web-2"]) store.add(pod(name, { namespace: "shop" }));
    save(["shop/web-1", "shop/web-2"], { replaces: true });
    let count = 0;
    sql.failsWith = (query) =>
      query.includes("INTO listwatch_objects") && ++count === 2 ? new Error("the disk is full") : undefined;
    assert.throws(
      () => save(["shop/web-1", "shop/web-2"], { replaces: true, resourceVersion: "2" }),
      /disk is full/,
    );
    sql.failsWith = undefined;
    const { snapshot, entries } = loaded(sql);
    assert.deepEqual([snapshot?.resourceVersion, entries?.length], ["1", 2]);
  });

  it("writes the text of what could not be held as text once, also if a save of it fails first", () => {
    for (const table of ["objects", "bodies"]) {
      const sql = new NodeSql();
      const { disk } = openStore(sql);
      disk.load(IDENTITY);
      const web = pod("web-1", { namespace: "shop" });
      const put = { key: "shop/web-1", held: { ...web }, head: {}, json: () => JSON.stringify(web) };
      const change = {
        resourceVersion: "7",
        savedAtMs: 1,
        needsList: false,
        replaces: true,
        deletes: [],
        puts: [put as SnapshotChange["puts"][number]],
      };
      sql.failsWith = (query) => query.includes(`INTO listwatch_${table}`) ? new Error("full") : undefined;
      assert.throws(() => disk.save(change), /full/);
      sql.failsWith = undefined;
      for (let i = 0; i < 2; i++) disk.save(change);
      assert.deepEqual(loaded(sql).entries!.map(({ json }) => JSON.parse(json)), [web]);
      assert.equal(count(sql, "bodies"), 1);
    }
  });

  it("writes a text that could not be written with the next save, once", () => {
    const sql = new NodeSql();
    const { disk, store, save } = openStore(sql);
    disk.load(IDENTITY);
    let writes = 0;
    sql.failsWith = (query) => {
      if (!query.includes("INTO listwatch_bodies")) return undefined;
      return ++writes === 1 ? new Error("full") : undefined;
    };
    store.add(pod("web-1", { namespace: "shop" }));
    for (let i = 0; i < 2; i++) save(["shop/web-1"], { replaces: true });
    assert.equal(writes, 2);
    assert.equal(JSON.parse(loaded(sql).entries![0].json).metadata.name, "web-1");
  });

  it("refuses an object that is longer than a row, in bytes", () => {
    const sql = new NodeSql();
    const { store } = openStore(sql, new DiskObjects(sql, { maxObjectBytes: 1_000 }));
    const annotations = { text: "é".repeat(500) };
    assert.throws(
      () => store.add(pod("web-1", { namespace: "shop", annotations })),
      { name: "RangeError", message: /Cannot store an object of 1\d\d\d bytes: a row takes 1000 at most/ },
    );
    assert.equal(store.size ?? store.listKeys().length, 0);
    const longest = (name: string) => new TextEncoder().encode(JSON.stringify(pod(name, { annotations })));
    const { byteLength: maxObjectBytes } = longest("web-1");
    const other = openStore(sql, new DiskObjects(sql, { maxObjectBytes })).store;
    other.add(pod("web-1", { annotations }));
    assert.throws(() => other.add(pod("web-10", { annotations })), /Cannot store an object/);
  });

  it("refuses to save what could not be held as text and is longer than a row", () => {
    const sql = new NodeSql();
    const { disk } = openStore(sql, new DiskObjects(sql, { maxObjectBytes: 1_000 }));
    disk.load(IDENTITY);
    const put = (length: number) => ({
      key: "shop/web-1",
      held: {},
      head: {},
      json: () => JSON.stringify(pod("web-1", { annotations: { text: "x".repeat(length) } })),
    });
    const change = { resourceVersion: "7", savedAtMs: 1, needsList: false, replaces: true, deletes: [] };
    disk.save({ ...change, puts: [put(100) as SnapshotChange["puts"][number]] });
    assert.throws(
      () => disk.save({ ...change, puts: [put(1_000) as SnapshotChange["puts"][number]] }),
      /Cannot store an object of 1\d\d\d bytes/,
    );
  });

  it("deletes the states that a crash left over, in steps, and no others", () => {
    const sql = new NodeSql();
    const { disk, store, save } = openStore(sql);
    disk.load(IDENTITY);
    for (let i = 0; i < 100; i++) store.add(pod(`web-${i}`, { namespace: "shop" }));
    const stored = store.listKeys().filter((_, i) => i % 3 === 0);
    save(stored, { replaces: true });
    assert.equal(count(sql, "bodies"), 100);

    const { disk: next, entries } = loaded(sql);
    let steps = 1;
    while (next.reclaim({ isListing: true, limit: 10 })) steps++;
    assert.equal(steps, 11);
    assert.equal(count(sql, "bodies"), stored.length);
    for (const entry of entries!) assert.equal(metaNamespaceKey(JSON.parse(entry.json)), entry.key);
  });

  it("sweeps objects of lists that were not stored, once they are older than any list", async () => {
    const sql = new NodeSql();
    const clock = new FakeClock();
    const { disk, store, save } = openStore(sql, new DiskObjects(sql, { clock }));
    disk.load(IDENTITY);
    while (disk.reclaim({ isListing: false }));
    for (let i = 0; i < 1_500; i++) store.add(pod(`web-${i}`, { namespace: "shop" }));
    save(store.listKeys().slice(0, 100), { replaces: true });
    disk.reclaim({ isListing: false });
    assert.equal(count(sql, "bodies"), 1_500);
    await clock.jump(60_000);
    disk.reclaim({ isListing: false });
    await clock.jump(239_000);
    while (disk.reclaim({ isListing: false }));
    assert.equal(count(sql, "bodies"), 1_500);
    await clock.jump(61_000);
    // What arrives now is stored soon.
    for (let i = 0; i < 10; i++) store.add(pod(`new-${i}`, { namespace: "shop" }));
    while (disk.reclaim({ isListing: false }));
    assert.equal(count(sql, "bodies"), 110);
    save(store.listKeys().filter((key) => key.startsWith("shop/new-")));
    const before = sql.count;
    for (let minute = 0; minute < 20; minute++) {
      await clock.jump(60_000);
      while (disk.reclaim({ isListing: false }));
    }
    assert.ok(sql.count - before < 60, `${sql.count - before} statements while nothing happened`);
  });

  it("does not sweep where everything was stored", async () => {
    const sql = new NodeSql();
    const clock = new FakeClock();
    const { disk, store, save } = openStore(sql, new DiskObjects(sql, { clock }));
    disk.load(IDENTITY);
    for (let i = 0; i < 3_000; i++) store.add(pod(`web-${i}`, { namespace: "shop" }));
    save(store.listKeys(), { replaces: true });
    while (disk.reclaim({ isListing: false }));
    const before = sql.count;
    let looks = 0;
    sql.failsWith = (query) => void (looks += Number(query.includes("listwatch_bodies")));
    for (let minute = 0; minute < 20; minute++) {
      await clock.jump(60_000);
      while (disk.reclaim({ isListing: false }));
    }
    assert.ok(sql.count - before < 60, `${sql.count - before} statements while nothing happened`);
    assert.equal(looks, 0);
  });

  /** An object that was updated twice, with the events of it. */
  function updatedTwice() {
    const sql = new NodeSql();
    const clock = new FakeClock();
    const { disk, store, save } = openStore(sql, new DiskObjects(sql, { clock }));
    const { history } = disk;
    disk.load(IDENTITY);
    history.begin({ position: "0", sequence: 0 });
    const { held } = heldStoreOf<KubernetesObject, typeof store>(store);
    for (let i = 0; i < 3; i++) {
      const oldObject = held.getByKey("shop/web-1");
      store.update(pod("web-1", { namespace: "shop", resourceVersion: `${i + 1}` }));
      save(["shop/web-1"], { resourceVersion: `${i + 1}` });
      const object = held.getByKey("shop/web-1");
      const entry = { key: "shop/web-1", position: `${i + 1}`, isLate: false, gapAfter: undefined };
      history.append(i, { ...entry, type: "MODIFIED", object, oldObject });
    }
    const reclaim = () => {
      while (disk.reclaim({ isListing: false, limit: 1 }));
      return [count(sql, "events"), count(sql, "bodies")];
    };
    return { clock, history, reclaim };
  }

  it("deletes the states of events five minutes after the log has dropped them, in as many steps as it takes", async () => {
    const { clock, history, reclaim } = updatedTwice();
    for (let minute = 0; minute < 10; minute++) {
      assert.deepEqual(reclaim(), [3, 3]);
      await clock.jump(60_000);
    }
    history.evicted(2);
    assert.deepEqual(reclaim(), [3, 3]);
    await clock.jump(299_000);
    assert.deepEqual(reclaim(), [3, 3]);
    await clock.jump(61_000);
    assert.deepEqual(reclaim(), [1, 2]);
  });

  it("keeps for five minutes what the log has dropped before the first call, too", async () => {
    const { clock, history, reclaim } = updatedTwice();
    history.evicted(2);
    assert.deepEqual(reclaim(), [3, 3]);
    await clock.jump(299_000);
    assert.deepEqual(reclaim(), [3, 3]);
    await clock.jump(1_000);
    assert.deepEqual(reclaim(), [1, 2]);
  });

  it("sweeps what was not stored also where a crash has left so much that this takes longer", async () => {
    const sql = new NodeSql();
    const crashed = openStore(sql);
    crashed.disk.load(IDENTITY);
    for (let i = 0; i < 20; i++) crashed.store.add(pod(`old-${i}`, { namespace: "shop" }));
    const clock = new FakeClock();
    const { disk, store, save } = openStore(sql, new DiskObjects(sql, { clock }));
    disk.load(IDENTITY);
    for (let i = 0; i < 1_200; i++) store.add(pod(`web-${i}`, { namespace: "shop" }));
    save(store.listKeys().slice(0, 100), { replaces: true });
    assert.equal(disk.reclaim({ isListing: false, limit: 1 }), true);
    await clock.jump(300_000);
    assert.equal(disk.reclaim({ isListing: false, limit: 1 }), true);
    assert.equal(count(sql, "bodies"), 1_218);
    for (let minute = 0; minute < 2; minute++) {
      while (disk.reclaim({ isListing: false }));
      await clock.jump(60_000);
    }
    assert.equal(count(sql, "bodies"), 100);
  });

  it("sweeps nothing of a list that takes ten minutes, before it is stored and after it", async () => {
    const sql = new NodeSql();
    const clock = new FakeClock();
    const { disk, store, save } = openStore(sql, new DiskObjects(sql, { clock }));
    disk.load(IDENTITY);
    while (disk.reclaim({ isListing: false }));
    for (let minute = 0; minute < 10; minute++) {
      for (let i = 0; i < 200; i++) store.add(pod(`web-${minute}-${i}`, { namespace: "shop" }));
      await clock.jump(60_000);
      while (disk.reclaim({ isListing: true }));
    }
    assert.equal(count(sql, "bodies"), 2_000);
    save(store.listKeys(), { replaces: true });
    for (let minute = 0; minute < 10; minute++) {
      await clock.jump(60_000);
      while (disk.reclaim({ isListing: false }));
    }
    assert.equal(count(sql, "bodies"), 2_000);
    const { entries } = loaded(sql);
    for (const entry of entries!) assert.equal(metaNamespaceKey(JSON.parse(entry.json)), entry.key);
  });
});

describe("DiskBodies.takeFields", () => {
  it("has none of a store without indices", () => {
    const sql = new NodeSql();
    createTables(sql);
    const bodies = new DiskBodies(sql, 1_000);
    assert.equal(bodies.takeFields(bodies.encode("{}", [])), undefined);
  });

  it("has no values that were read before another field was added: one of them would be missing", () => {
    const sql = new NodeSql();
    createTables(sql);
    const bodies = new DiskBodies(sql, 1_000_000);
    bodies.fieldAdded("spec.nodeName");
    const [first, before] = [bodies.encode("{}", [["n1"]]), bodies.encode("{}", [["n2"]])];
    assert.deepEqual(bodies.takeFields(first), [["n1"]]);
    assert.equal(bodies.takeFields(first), undefined, "an object is stored once");
    bodies.fieldAdded("status.phase");
    const after = bodies.encode("{}", [["n3"], ["Running"]]);
    assert.equal(bodies.takeFields(before), undefined);
    assert.deepEqual(bodies.takeFields(after), [["n3"], ["Running"]]);
    const short = bodies.encode("{}", [["n4"]]);
    assert.equal(bodies.takeFields(short), undefined);
  });

  it("has the values of half a million states at most that were never stored", () => {
    const bodies = new DiskBodies({ exec: () => ({ raw: () => [[0]] }) }, 1_000_000);
    bodies.fieldAdded("spec.nodeName");
    const encode = () => bodies.encode("{}", [["n1"]]);
    const [first, second] = [encode(), encode()];
    for (let i = 2; i < 500_000; i++) encode();
    assert.deepEqual(bodies.takeFields(first), [["n1"]]);
    const [one, more] = [encode(), encode()];
    assert.deepEqual([one, second].map((id) => bodies.takeFields(id)), [undefined, undefined]);
    assert.deepEqual(bodies.takeFields(more), [["n1"]]);
  });
});

describe("DiskBodies.encode", () => {
  it("keeps the texts that cannot be written, up to 8 million characters, until all of them are", () => {
    const sql = new NodeSql();
    createTables(sql);
    const bodies = new DiskBodies(sql, 10_000_000);
    const isWrite = (query: string) => query.startsWith("INSERT INTO listwatch_bodies");
    for (let again = 0; again < 2; again++) {
      sql.failsWith = (query) => isWrite(query) ? new Error("full") : undefined;
      const texts = ["a", "b"].map((letter) => letter.repeat(4_000_000));
      const ids = texts.map((text) => bodies.encode(text));
      assert.throws(() => bodies.encode("{}"), /full/);
      assert.deepEqual(ids.map((id) => bodies.decode(id)), texts);
      let writes = 0;
      sql.failsWith = (query) => isWrite(query) && ++writes === 2 ? new Error("full") : undefined;
      assert.throws(() => bodies.writeAll(), /full/);
      bodies.writeAll();
      bodies.wroteAll();
      assert.deepEqual(ids.map((id) => bodies.decode(id)), texts);
      assert.equal(count(sql, "bodies"), 2 * (again + 1));
      assert.equal(bodies.count, 2 * (again + 1));
    }
  });
});

describe("DiskContent.read", () => {
  it("reads an object without a version as one that has metadata, and one without metadata", () => {
    const sql = new NodeSql();
    createTables(sql);
    const bodies = new DiskBodies(sql, 1_000);
    const content = new DiskContent(sql, bodies);
    const hasMetadata = (object: object) =>
      content.read("a", Number(bodies.encode(JSON.stringify(object)))).metadata !== undefined;
    assert.deepEqual([{ metadata: { name: "a" } }, { name: "a" }].map(hasMetadata), [true, false]);
  });
});

describe("DiskContent.deleteState", () => {
  it("deletes a state of an object, unless it is the present one", () => {
    const sql = new NodeSql();
    createTables(sql);
    const bodies = new DiskBodies(sql, 1_000_000);
    const content = new DiskContent(sql, bodies);
    const object = pod("web-1", { namespace: "shop" });
    const before = Number(bodies.encode("{}"));
    content.put("shop/web-1", object, () => JSON.stringify(object));
    content.writeAll();
    for (const id of [before, before + 1]) content.deleteState("shop/web-1", id);
    assert.deepEqual([...sql.exec("SELECT id FROM listwatch_bodies").raw()], [[before + 1]]);
  });
});

describe("BodySweep", () => {
  it("leaves each row that an object or an event refers to, also several times, and all behind its last one", () => {
    for (const last of ["body", "old_body"]) {
      const sql = new NodeSql();
      createTables(sql);
      for (let id = 1; id <= 9; id++) sql.exec("INSERT INTO listwatch_bodies(id, json) VALUES(?, '{}')", id);
      for (const id of [3, 5]) {
        sql.exec("INSERT INTO listwatch_objects(key, body) VALUES(?, ?)", `k${id}`, id);
      }
      const refer = (column: string, id: number) =>
        sql.exec(
          `INSERT INTO listwatch_events(type, position, key, late, ${column}) VALUES('ADDED', '1', 'k', 0, ?)`,
          id,
        );
      for (const id of [3, 5]) for (const column of ["body", "old_body"]) refer(column, id);
      refer(last, 7);
      const sweep = new BodySweep(sql, 7);
      while (sweep.step(2));
      assert.deepEqual(
        [...sql.exec("SELECT id FROM listwatch_bodies ORDER BY id").raw()].flat(),
        [3, 5, 7, 8, 9],
      );
    }
    const sql = new NodeSql();
    createTables(sql);
    sql.exec("INSERT INTO listwatch_bodies(id, json) VALUES(1, '{}')");
    sql.exec("INSERT INTO listwatch_objects(key, body) VALUES('k', 1)");
    assert.equal(new BodySweep(sql, 1).step(2), false);
    assert.equal(count(sql, "bodies"), 1);
  });
});
