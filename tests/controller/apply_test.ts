import { type Cluster, isConflict } from "@listwatch/cache";
import type { DeleteOptions } from "@listwatch/cache/client";
import {
  type CachedClient,
  type ControllerDefinition,
  defineController,
  ownedBy,
} from "@listwatch/cache/controller";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { FakeClock, InMemoryApiServer } from "@listwatch/cache/testing";
import { type ConfigMap, type Rig, SlowWatches, startRig, type Widget, widget } from "./rig.ts";
import { WIDGET_RESOURCE, WIDGETS } from "../widgets.ts";
import { appliedConfig, AppliedConfigs, isApplied } from "../../src/controller/applied_config.ts";
import { mergePatch } from "../../src/controller/objects.ts";

const MAPS = "v1/configmaps";

type Write = (maps: CachedClient<ConfigMap, never>, object: Widget) => Promise<unknown>;

const writing = (name: string, write: Write) => (cluster: Cluster): ControllerDefinition =>
  defineController({
    name,
    for: cluster.resource<Widget>(WIDGETS),
    owns: { maps: cluster.resource<ConfigMap>(MAPS) },
    when: (before, after) =>
      before.metadata?.annotations?.again !== after.metadata?.annotations?.again ||
      before.spec?.color !== after.spec?.color,
    async reconcile(object, { maps }) {
      await write(maps, object);
    },
  });

const applying = (name: string, data: (object: Widget) => Record<string, string>) =>
  writing(name, (maps, object) => maps.apply({ metadata: { name: "m" }, data: data(object) }));

let count = 0;

/** The writes of reconciles for which nothing has changed. */
async function writesOfAnother(rig: Rig): Promise<string[]> {
  await rig.clock.advance(5_000);
  const before = rig.writes().length;
  rig.server.patch(WIDGETS, "shop/a", { metadata: { annotations: { again: String(count++) } } });
  await rig.clock.advance(5_000);
  return rig.writes().slice(before);
}

const dataOf = (rig: Rig) => rig.server.get<ConfigMap>(MAPS, "shop/m")?.data;

describe("CachedClient.apply", () => {
  it("sends nothing after a restart: the managed fields say what was applied before", async () => {
    const clock = new FakeClock(Date.UTC(2026, 0, 1));
    const server = new InMemoryApiServer({ clock, customResources: [WIDGET_RESOURCE] });
    server.create(WIDGETS, widget("a", "red"));
    for (const expected of [1, 0]) {
      const before = server.requests.length;
      const rig = startRig(applying("x", () => ({ a: "1" })), {}, { server, clock });
      // deno-lint-ignore no-await-in-loop -- one after the other
      await clock.advance(5_000);
      const writes = server.requests.slice(before).filter(({ method }) => method !== "GET");
      assert.equal(writes.length, expected);
      // deno-lint-ignore no-await-in-loop -- one after the other
      await rig[Symbol.asyncDispose]();
    }
    server.close();
  });

  it("sends nothing while the object is so, and takes away what is left out", async () => {
    await using rig = startRig(
      applying("x", ({ spec }) => ({ a: "1", ...(spec?.color === "red" && { b: "2" }) })),
    );
    rig.server.create(WIDGETS, widget("a", "red"));
    assert.deepEqual(await writesOfAnother(rig), []);
    assert.deepEqual(dataOf(rig), { a: "1", b: "2" });
    rig.server.patch(WIDGETS, "shop/a", { spec: { color: "blue" } });
    assert.deepEqual(await writesOfAnother(rig), []);
    assert.deepEqual(dataOf(rig), { a: "1" });
  });

  it("sends nothing for what a program before it has applied, and leaves other clients' fields", async () => {
    const define = applying("x", () => ({ a: "1" }));
    await using first = startRig(define);
    first.server.create(WIDGETS, widget("a", "red"));
    await first.clock.advance(1_000);
    first.server.patch(MAPS, "shop/m", { data: { theirs: "2" } });
    const { server, clock } = first;
    await first.manager.stop();
    server.clearRequests();
    await using second = startRig(define, {}, { server, clock });
    assert.deepEqual(await writesOfAnother(second), []);
    assert.deepEqual(dataOf(second), { a: "1", theirs: "2" });
    server.patch(MAPS, "shop/m", { data: { a: "changed" } });
    await writesOfAnother(second);
    assert.deepEqual(dataOf(second), { a: "1", theirs: "2" });
  });

  it("sends nothing when two controllers apply different fields of one object", async () => {
    await using rig = startRig((cluster) => [
      applying("x", () => ({ x: "1" }))(cluster),
      applying("y", () => ({ y: "1" }))(cluster),
    ]);
    rig.server.create(WIDGETS, widget("a", "red"));
    await rig.clock.advance(1_000);
    await writesOfAnother(rig);
    assert.deepEqual(await writesOfAnother(rig), []);
    assert.deepEqual(dataOf(rig), { x: "1", y: "1" });
  });

  it("makes an object again that was deleted", async () => {
    await using rig = startRig(applying("x", () => ({ a: "1" })));
    rig.server.create(WIDGETS, widget("a", "red"));
    await writesOfAnother(rig);
    rig.server.delete(MAPS, "shop/m");
    await writesOfAnother(rig);
    assert.deepEqual(dataOf(rig), { a: "1" });
  });

  it("remembers nothing of objects that were deleted", async () => {
    await using rig = startRig(writing("x", async (maps, { spec: { color = "" } = {} }) => {
      await maps.apply({ metadata: { name: color }, data: { color } });
      for (const { metadata } of await maps.list()) {
        // deno-lint-ignore no-await-in-loop -- one after the other
        if (metadata?.name !== color) await maps.deleteIfExists(metadata?.name ?? "");
      }
    }));
    rig.server.create(WIDGETS, widget("a", "c0"));
    for (let i = 1; i <= 5; i++) {
      // deno-lint-ignore no-await-in-loop -- one after the other
      await rig.clock.advance(1_000);
      rig.server.patch(WIDGETS, "shop/a", { spec: { color: `c${i}` } });
    }
    await rig.clock.advance(1_000);
    assert.deepEqual(rig.server.list(MAPS).items.map(({ metadata }) => metadata?.name), ["c5"]);
    const [cache] = rig.manager.caches.filter(({ name }) => name === MAPS);
    assert.deepEqual(["c0", "c4", "c5"].map((name) => cache.applied.get("x", `shop/${name}`) !== undefined), [
      false,
      false,
      true,
    ]);
  });
});

describe("AppliedConfigs.forget", () => {
  it("drops what every controller has applied to an object, and keeps that of others", () => {
    const applied = new AppliedConfigs();
    for (const manager of ["x", "y"]) {
      for (const key of ["shop/deleted", "shop/there"]) applied.set(manager, key, `${manager} to ${key}`);
    }
    applied.forget("shop/deleted");
    assert.deepEqual(["x", "y"].map((manager) => applied.get(manager, "shop/deleted")), [
      undefined,
      undefined,
    ]);
    assert.deepEqual(["x", "y"].map((manager) => applied.get(manager, "shop/there")), [
      "x to shop/there",
      "y to shop/there",
    ]);
  });
});

describe("CachedClient.delete", () => {
  /** Deletes a ConfigMap that another one has replaced, of which the cache does not know yet. */
  async function deleteReplaced(options: DeleteOptions): Promise<{ error: unknown; isThere: boolean }> {
    const clock = new FakeClock();
    const server = new InMemoryApiServer({ clock, customResources: [WIDGET_RESOURCE] });
    const watches = new SlowWatches(server, (path) => path.endsWith("/configmaps"));
    const map = () => server.create<ConfigMap>(MAPS, { metadata: { name: "m", namespace: "shop" } });
    const before = map();
    let error: unknown;
    const define = writing("x", async (maps) => {
      watches.hold();
      server.delete(MAPS, "shop/m");
      map();
      error = await maps.delete("m", options).catch((error) => error);
    });
    await using rig = startRig(define, {}, { server, clock, fetch: () => watches.fetch });
    server.create(WIDGETS, widget("a", "red"));
    await rig.until(() => error !== undefined || server.get(MAPS, "shop/m") === undefined);
    watches.release();
    const there = server.get(MAPS, "shop/m");
    return { error, isThere: there !== undefined && there.metadata?.uid !== before.metadata?.uid };
  }

  it("deletes the object that was read, and none that has come in its place", async () => {
    const { error, isThere } = await deleteReplaced({});
    assert.equal(isConflict(error), true, String(error));
    assert.equal(isThere, true);
  });

  it("has the preconditions that it is given", async () => {
    const { error, isThere } = await deleteReplaced({ preconditions: { uid: "of-no-object" } });
    assert.match(String(error), /of-no-object/);
    assert.equal(isThere, true);
  });
});

describe("CachedClient.create", () => {
  it("refuses an owner of another namespace, whose object the server would delete", async () => {
    await using rig = startRig(
      writing(
        "x",
        (maps, object) => maps.create({ metadata: { name: "m", namespace: "other", ...ownedBy(object) } }),
      ),
    );
    rig.server.create(WIDGETS, widget("a", "red"));
    await rig.clock.advance(10);
    assert.match(
      rig.lines[0],
      /Cannot make "shop\/a" the owner of "other\/m": an owner is of the same namespace/,
    );
    assert.deepEqual(rig.server.list(MAPS).items, []);
  });
});

describe("CachedClient.createOrUpdate", () => {
  const changes: Readonly<Record<string, (map: ConfigMap, color: string) => ConfigMap>> = {
    "returns another": (map, color) => ({ ...map, data: { ...map.data, color } }),
    "changes it in place": (map, color) => Object.assign(map, { data: { ...map.data, color } }),
  };
  for (const [title, change] of Object.entries(changes)) {
    it(`writes what differs, and nothing otherwise, where the function ${title}`, async () => {
      await using rig = startRig(
        writing("x", (maps, { spec }) => maps.createOrUpdate("m", (map) => change(map, spec?.color ?? ""))),
      );
      rig.server.create(WIDGETS, widget("a", "red"));
      assert.deepEqual(await writesOfAnother(rig), []);
      rig.server.patch(MAPS, "shop/m", { data: { theirs: "2" } });
      rig.server.patch(WIDGETS, "shop/a", { spec: { color: "blue" } });
      assert.deepEqual(await writesOfAnother(rig), []);
      assert.deepEqual(dataOf(rig), { color: "blue", theirs: "2" });
    });
  }

  const odd: readonly (readonly [what: string, returned: unknown])[] = [
    ["nothing", undefined],
    ["null", null],
    ["a list", [{ data: {} }]],
    ["text", "m"],
    ["a promise of nothing", Promise.resolve(undefined)],
  ];
  for (const [what, returned] of odd) {
    it(`sends nothing, and says so, where the function returns ${what}`, async () => {
      await using rig = startRig(
        writing("x", (maps) => maps.createOrUpdate("m", () => returned as ConfigMap)),
      );
      rig.server.create(MAPS, { metadata: { name: "m", namespace: "shop" }, data: { a: "1" } });
      rig.server.create(WIDGETS, widget("a", "red"));
      await rig.clock.advance(10);
      assert.match(rig.lines[0], /Cannot change "m": the function has returned no object; return it/);
      assert.deepEqual(rig.writes(), []);
    });
  }

  it("changes the state that it was given, or none: what others have written meanwhile is not overwritten", async () => {
    const counted = (map: ConfigMap) => ({ data: { count: String(Number(map.data?.count ?? 0) + 1) } });
    let isFirst = true;
    await using rig = startRig(
      writing("x", (maps) =>
        maps.createOrUpdate("m", (map) => {
          if (isFirst) rig.server.patch(MAPS, "shop/m", counted(map));
          isFirst = false;
          return { ...map, ...counted(map) };
        })),
    );
    rig.server.create(MAPS, { metadata: { name: "m", namespace: "shop" }, data: { count: "1" } });
    rig.server.create(WIDGETS, widget("a", "red"));
    await rig.clock.advance(1_000);
    assert.deepEqual(dataOf(rig), { count: "3" });
  });

  it("waits for a function that is asynchronous", async () => {
    await using rig = startRig(
      writing("x", (maps) =>
        maps.createOrUpdate("m", async (map) => {
          await undefined;
          return { ...map, data: { ...map.data, b: "2" } };
        })),
    );
    rig.server.create(MAPS, { metadata: { name: "m", namespace: "shop" }, data: { a: "1" } });
    rig.server.create(WIDGETS, widget("a", "red"));
    await rig.clock.advance(1_000);
    assert.deepEqual(dataOf(rig), { a: "1", b: "2" });
  });
});

describe("mergePatch", () => {
  it("takes a key named __proto__ for a key, also where that reaches the prototype, as on Node", () => {
    const { prototype } = Object;
    const present = Object.getOwnPropertyDescriptor(prototype, "__proto__");
    Object.defineProperty(prototype, "__proto__", {
      configurable: true,
      get() {
        return Object.getPrototypeOf(this);
      },
      set(value: unknown) {
        if (typeof value === "object") Object.setPrototypeOf(this, value);
      },
    });
    try {
      const one = JSON.parse('{"data":{"a":"1"},"b":{}}');
      const other = JSON.parse('{"data":{"a":"1","__proto__":"2"},"b":{"__proto__":{"c":"3"}}}');
      assert.equal(
        JSON.stringify(mergePatch(one, other)),
        '{"data":{"__proto__":"2"},"b":{"__proto__":{"c":"3"}}}',
      );
      assert.equal(
        JSON.stringify(mergePatch(other, one)),
        '{"data":{"__proto__":null},"b":{"__proto__":null}}',
      );
      assert.equal(appliedConfig(one, other) === appliedConfig(one, one), true);
      assert.equal(appliedConfig(other, other) === appliedConfig(other, one), false);
    } finally {
      if (present === undefined) delete (prototype as { __proto__?: unknown }).__proto__;
      else Object.defineProperty(prototype, "__proto__", present);
    }
  });
});

describe("isApplied", () => {
  const config = { metadata: { name: "m" }, data: { a: "1" } };
  const entry = { manager: "x", operation: "Apply", fieldsV1: { "f:data": { "f:a": {} } } };
  const live = (uid: string, ...managedFields: Record<string, unknown>[]): ConfigMap => ({
    metadata: { name: "m", uid, managedFields },
    data: { a: "1" },
  });

  it("goes by what the manager has applied, not by what it has updated, or applied to a subresource", () => {
    const of = { manager: "x", remembered: undefined };
    const ofStatus = { ...entry, subresource: "status", fieldsV1: { "f:status": { "f:ready": {} } } };
    assert.equal(isApplied(config, live("u-1", entry), of), true);
    assert.equal(isApplied(config, live("u-1", ofStatus, entry), of), true);
    assert.equal(isApplied(config, live("u-1", { ...entry, subresource: "status" }), of), false);
    assert.equal(isApplied(config, live("u-1", { ...entry, operation: "Update" }), of), false);
    assert.equal(isApplied(config, live("u-1", { ...entry, manager: "y" }), of), false);
    assert.equal(isApplied(config, live("u-1"), of), false);
  });

  it("is false where the manager has applied more than the configuration has, of an object as of a list", () => {
    const of = { manager: "x", remembered: undefined };
    const more = { ...entry, fieldsV1: { "f:data": { "f:a": {}, "f:b": {} } } };
    assert.equal(
      isApplied(config, { ...live("u-1", more), data: { a: "1", b: "2" } } as ConfigMap, of),
      false,
    );
    const named = (...names: string[]) => names.map((name) => ({ name }));
    const fields = (...names: string[]) => ({
      "f:ports": Object.fromEntries(names.map((name) => [`k:{"name":"${name}"}`, { "f:name": {} }])),
    });
    const ported = (ports: unknown, ...names: string[]) =>
      isApplied({ metadata: { name: "m" }, ports: named("a") } as ConfigMap, {
        metadata: { name: "m", managedFields: [{ ...entry, fieldsV1: fields(...names) }] },
        ports,
      } as ConfigMap, of);
    assert.equal(ported(named("a"), "a"), true);
    assert.equal(ported(named("a", "b"), "a"), true);
    assert.equal(ported(named("a", "b"), "a", "b"), false);
  });

  it("remembers nothing of another object of the same name: its fields are no one's yet", () => {
    const remembered = appliedConfig(config, live("u-1", entry));
    assert.equal(isApplied(config, live("u-1"), { manager: "x", remembered }), true);
    assert.equal(isApplied(config, live("u-2"), { manager: "x", remembered }), false);
  });
});
