/**
 * What client-node's own tests promise of its informer (`src/cache_test.ts`,
 * `integration/informerReconnect.ts`), by their titles, of the informer of `./compat/client-node`. There, the
 * watch is a mock; here, an API server in memory answers.
 * @module
 */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import type { ListWatch, ListWatchError } from "@listwatch/cache/compat/client-node";
import { answerStatus } from "@listwatch/cache/testing";
import type { Pod } from "kubernetes-types/core/v1";
import { World } from "./client_node_world.ts";

const names = (objects: readonly Pod[]) => objects.map(({ metadata }) => metadata?.name);

/** What a verb's callback receives from now on. */
function received(informer: ListWatch<Pod>, verb: "add" | "update" | "delete" | "change"): Pod[] {
  const objects: Pod[] = [];
  informer.on(verb as "add", (object) => objects.push(object));
  return objects;
}

/** An informer that has listed, and whose callbacks were called for that. */
async function started(world: World, options: Parameters<World["make"]>[0] = {}): Promise<ListWatch<Pod>> {
  const informer = world.make(options);
  await informer.start();
  await world.received();
  return informer;
}

/** Ends a watch whose history is gone: the next one is answered 410. */
async function endWithExpired(world: World): Promise<void> {
  await world.clock.advance(10_000); // a shorter watch would be followed by a list at once
  world.server.closeWatches();
  world.update("name1", { v: "2" });
  world.server.compact();
  await world.clock.advance(120_000);
}

const CASES: Readonly<Record<string, (world: World) => Promise<void> | void>> = {
  "should throw on unknown update": (world) => {
    const informer = world.make();
    assert.throws(() => informer.on("FOOBAR" as "add", () => {}), /"FOOBAR"/);
  },

  "should perform basic caching": async (world) => {
    for (const name of ["name1", "name2"]) world.create(name);
    await using cache = await started(world);
    assert.deepEqual(names(cache.list()), ["name1", "name2"]);
    assert.equal(cache.get("name1", "shop"), cache.list()[0]);
    assert.deepEqual(names(cache.list("shop")), ["name1", "name2"]);
    assert.deepEqual(cache.list("non-existent"), []);
    world.server.create("v1/pods", { metadata: { name: "name3", namespace: "other" } });
    await world.received();
    assert.deepEqual([cache.list().length, cache.list("shop").length, cache.list("other").length], [3, 2, 1]);
    world.update("name1", { v: "2" });
    await world.received();
    assert.equal(cache.get("name1", "shop")?.metadata?.labels?.v, "2");
    assert.equal(cache.list().length, 3);
    world.delete("name2");
    await world.received();
    assert.equal(cache.get("name2", "shop"), undefined);
    assert.deepEqual([cache.list().length, cache.list("shop").length, cache.list("other").length], [2, 1, 1]);
  },

  "should perform work as an informer": async (world) => {
    for (const name of ["name1", "name2"]) world.create(name);
    await using informer = await started(world);
    world.create("name3");
    world.update("name3", { v: "2" });
    world.delete("name2");
    assert.deepEqual(await world.received(), ["add name3", "update name3", "delete name2"]);
    assert.deepEqual(names(informer.list()), ["name1", "name3"]);
  },

  "should handle change events correctly": async (world) => {
    world.create("name2");
    await using informer = await started(world);
    const changes = received(informer, "change");
    world.create("name3");
    world.update("name3", { v: "2" });
    world.delete("name2");
    await world.received();
    assert.deepEqual(names(changes), ["name3", "name3", "name2"]);
  },

  "should perform work as an informer with multiple handlers": async (world) => {
    await using informer = await started(world);
    const [first, second] = [received(informer, "add"), received(informer, "add")];
    world.create("name3");
    await world.received();
    assert.deepEqual([names(first), names(second)], [["name3"], ["name3"]]);
  },

  "should perform work as an informer with initial list": async (world) => {
    for (const name of ["name1", "name2"]) world.create(name);
    await using informer = world.make();
    const [added, updated] = [received(informer, "add"), received(informer, "update")];
    await informer.start();
    assert.deepEqual(names(added), ["name1", "name2"]);
    world.server.closeWatches();
    await world.clock.advance(60_000);
    assert.deepEqual([names(added), updated], [["name1", "name2"], []]);
  },

  "should perform work as an informer with initial list and delete after": async (world) => {
    for (const name of ["name1", "name2"]) world.create(name);
    await using informer = await started(world);
    const [added, updated, deleted] = [
      received(informer, "add"),
      received(informer, "update"),
      received(informer, "delete"),
    ];
    world.server.closeWatches();
    world.delete("name2");
    world.update("name1", { v: "2" });
    world.server.compact();
    await world.clock.advance(120_000);
    assert.deepEqual([names(added), names(updated), names(deleted)], [[], ["name1"], ["name2"]]);
  },

  "should perform namespace caching": async (world) => {
    for (const n of [1, 2]) {
      world.server.create("v1/pods", { metadata: { name: `name${n}`, namespace: `ns${n}` } });
    }
    await using cache = await started(world);
    assert.deepEqual([names(cache.list("ns1")), names(cache.list("ns2"))], [["name1"], ["name2"]]);
    world.server.create("v1/pods", { metadata: { name: "name3", namespace: "ns3" } });
    await world.received();
    assert.equal(cache.get("name3", "ns3")?.metadata?.namespace, "ns3");
    world.server.create("v1/pods", { metadata: { name: "name2", namespace: "other-ns" } });
    world.server.delete("v1/pods", "other-ns/name2");
    await world.received();
    assert.equal(cache.list().length, 3);
    world.server.delete("v1/pods", "ns2/name2");
    await world.received();
    assert.deepEqual([cache.list().length, cache.list("ns2")], [2, []]);
    assert.equal(cache.get("name2", "ns2"), undefined);
  },

  "should perform non-namespace caching": async (world) => {
    for (const name of ["name1", "name2"]) world.server.create("v1/nodes", { metadata: { name } });
    await using cache = await started(world, { path: "/api/v1/nodes" });
    assert.deepEqual(names(cache.list()), ["name1", "name2"]);
    assert.deepEqual(cache.list("ns1"), []);
    world.server.create("v1/nodes", { metadata: { name: "name3" } });
    await world.received();
    assert.equal(cache.get("name3")?.metadata?.name, "name3");
    world.server.delete("v1/nodes", "name2");
    await world.received();
    assert.deepEqual(names(cache.list()), ["name1", "name3"]);
    assert.equal(cache.get("name2", "ns2"), undefined);
  },

  "should not call handlers which have been unregistered": async (world) => {
    await using informer = await started(world);
    const [kept, removed]: [Pod[], Pod[]] = [received(informer, "add"), []];
    const callback = (object: Pod) => void removed.push(object);
    informer.on("add", callback);
    world.create("name1");
    await world.received();
    informer.off("add", callback);
    world.create("name2");
    await world.received();
    assert.deepEqual([names(kept), names(removed)], [["name1", "name2"], ["name1"]]);
  },

  'should unregister three verbs on "change"': async (world) => {
    await using informer = await started(world);
    const [kept, removed]: [Pod[], Pod[]] = [received(informer, "change"), []];
    const callback = (object: Pod) => void removed.push(object);
    informer.on("change", callback);
    for (const name of ["name1", "name2"]) {
      world.create(name);
      world.update(name, { v: "2" });
      world.delete(name);
      await world.received();
      informer.off("change", callback);
    }
    assert.deepEqual([kept.length, removed.length], [6, 3]);
  },

  "should throw on unknown verbs": (world) => {
    const informer = world.make();
    assert.throws(() => informer.on("random" as "add", () => {}), /"random"/);
    assert.throws(() => informer.off("random" as "add", () => {}), /"random"/);
  },

  "should handle off with callbacks that are not registered": (world) => {
    world.make().off("add", () => {});
  },

  "mutating handlers in a callback should not affect those which remain": async (world) => {
    await using informer = await started(world);
    const removeSelf = () => informer.off("add", removeSelf);
    informer.on("add", removeSelf);
    const added = received(informer, "add");
    world.create("name1");
    await world.received();
    assert.deepEqual(names(added), ["name1"]);
  },

  "should resolve start promise after seeding the cache": async (world) => {
    for (const name of ["name1", "name2"]) world.create(name);
    await using cache = world.make();
    const start = cache.start();
    assert.equal(cache.list().length, 0);
    await start;
    assert.equal(cache.list().length, 2);
  },

  "should only call update handlers once": async (world) => {
    await using informer = await started(world);
    let adds = 0;
    informer.on("add", () => void adds++);
    const callback = () => {};
    informer.on("add", callback);
    world.create("name1");
    await world.received();
    informer.off("add", callback);
    world.create("name2");
    await world.received();
    assert.equal(adds, 2);
  },

  "should not auto-restart after explicitly stopping until restarted again": async (world) => {
    await using informer = await started(world);
    const watches = () => world.server.requests.filter(({ isWatch }) => isWatch).length;
    const before = watches();
    await informer.stop();
    world.server.closeWatches();
    await world.clock.advance(120_000);
    assert.deepEqual([watches(), world.server.openWatches], [before, 0]);
    await informer.start();
    await world.received();
    assert.equal(world.server.openWatches, 1);
  },

  "should list if the watch cannot be restarted from the latest resourceVersion": async (world) => {
    world.create("name1");
    await using informer = await started(world);
    const errors: ListWatchError[] = [];
    informer.on("error", (error) => errors.push(error));
    const listed = world.server.requests.length;
    await endWithExpired(world);
    assert.ok(world.server.requests.slice(listed).length >= 2, "a watch, which is refused, and a list");
    assert.equal(informer.get("name1", "shop")?.metadata?.labels?.v, "2");
    assert.deepEqual(errors, []);
  },

  "should list if the watch errors from the last version": async (world) => {
    world.create("name1");
    await using informer = await started(world);
    const errors: ListWatchError[] = [];
    informer.on("error", (error) => errors.push(error));
    world.server.intercept(answerStatus(410, { reason: "Expired" }), {
      match: ({ isWatch }) => isWatch,
      times: 1,
    });
    world.server.closeWatches();
    await world.clock.advance(120_000);
    assert.deepEqual(errors.map(({ statusCode }) => statusCode), []);
    assert.equal(world.server.openWatches, 1);
    world.create("name2");
    assert.ok((await world.received()).includes("add name2"));
    assert.equal(informer.list().length, 2);
  },

  "should list if the watch cannot be restarted from the latest resourceVersion with an ERROR event": async (
    world,
  ) => {
    world.create("name1");
    await using informer = await started(world);
    const errors: ListWatchError[] = [];
    informer.on("error", (error) => errors.push(error));
    const expired = { type: "ERROR", object: { kind: "Status", code: 410, reason: "Expired" } };
    world.server.intercept(() => new Response(`${JSON.stringify(expired)}\n`), {
      match: ({ isWatch }) => isWatch,
      times: 1,
    });
    world.server.closeWatches();
    world.update("name1", { v: "2" });
    await world.clock.advance(120_000);
    assert.deepEqual(errors, []);
    assert.equal(informer.get("name1", "shop")?.metadata?.labels?.v, "2");
  },

  "should send label selector": async (world) => {
    world.create("name1", { app: "foo" });
    world.create("name2", { app: "bar" });
    await using informer = await started(world, { labels: "app=foo" });
    assert.deepEqual(names(informer.list()), ["name1"]);
    world.create("name3", { app: "foo" });
    assert.deepEqual(await world.received(), ["add name3"]);
    assert.ok(world.server.requests.every(({ query }) => query.labelSelector === "app=foo"));
  },

  "should call the connect handler": async (world) => {
    await using informer = world.make();
    await informer.start();
    assert.deepEqual(await world.received(), ["connect"]);
  },

  "does calls connect after a restart after an error": async (world) => {
    await using informer = await started(world);
    await world.clock.advance(10_000);
    world.server.intercept(answerStatus(500), { times: 1 });
    world.server.closeWatches();
    await world.clock.advance(120_000);
    assert.deepEqual(await world.received(), ["error 500", "connect"]);
    assert.equal(informer.status()?.phase, "watching");
  },

  "should correctly handle errors in the initial list": async (world) => {
    await using informer = world.make({ reflector: { useWatchList: false } });
    world.server.intercept(answerStatus(500, { message: "request failed" }), { times: 1 });
    const errors: ListWatchError[] = [];
    informer.on("error", (error) => errors.push(error));
    await informer.start();
    assert.deepEqual(errors.map(({ statusCode }) => statusCode), [500]);
    assert.match(errors[0].message, /request failed/);
  },

  informerReconnect: async (world) => {
    await using informer = world.make({ labels: "run=1" });
    await informer.start();
    world.create("cm1", { run: "1" });
    assert.deepEqual(await world.received(), ["connect", "add cm1"]);
    world.server.closeWatches();
    await world.clock.advance(45_000);
    assert.deepEqual(await world.received(), ["connect"]);
    world.create("cm2", { run: "1" });
    assert.deepEqual(await world.received(), ["add cm2"]);
    assert.deepEqual(names(informer.list()), ["cm1", "cm2"]);
  },
};

describe("ListWatch of ./compat/client-node, by the cases of client-node", () => {
  for (const [title, run] of Object.entries(CASES)) {
    it(title, async () => {
      using world = new World();
      await run(world);
    });
  }
});

describe("from_client_node.md, its table of client-node's cases", () => {
  const page = readFileSync(new URL("../../docs/from_client_node.md", import.meta.url), "utf8");
  const section = page.slice(page.indexOf("## client-node's own cases"));

  it("has each case of theirs: those that pass here, and those that differ, with a reason", () => {
    const rows = Array.from(
      section.matchAll(/^\| `([^`]+)` +\| (.*?) +\|$/gm),
      ([, title, text]) => ({ title, text }),
    );
    const passing = rows.filter(({ text }) => text === "passes").map(({ title }) => title);
    assert.deepEqual(passing, Object.keys(CASES));
    const different = rows.filter(({ text }) => text !== "passes");
    assert.equal(different.length, 5);
    for (const { title, text } of different) assert.match(text, /^differs: .{20,}$/, title);
  });
});
