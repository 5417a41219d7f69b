import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { KubernetesObject } from "@listwatch/cache";
import { defineController, ownedBy } from "@listwatch/cache/controller";
import { type DefineControllers, testController } from "@listwatch/cache/testing";
import { type Widget, widgetController } from "../../../examples/widget_controller.ts";
import { WIDGET_RESOURCE, WIDGETS } from "../../widgets.ts";

type ConfigMap = KubernetesObject & { readonly data?: Readonly<Record<string, string>> };

const customResources = [WIDGET_RESOURCE];
const newWorld = (define: DefineControllers = widgetController) =>
  testController(define, { customResources });
const widget = (name: string, color: string): Widget => ({ metadata: { name }, spec: { color } });

describe("testController", () => {
  it("runs until nothing is left to do, without time going by", async () => {
    await using world = await newWorld();
    const startMs = world.clock.now();
    world.create(WIDGETS, widget("a", "red"));
    assert.equal(world.get("v1/configmaps", "widget-a"), undefined);
    await world.idle();
    assert.equal(world.get<ConfigMap>("v1/configmaps", "widget-a")?.data?.color, "red");
    assert.equal(world.get<Widget>(WIDGETS, "a")?.status?.ready, true);
    assert.equal(world.clock.now(), startMs);
  });

  it("fails a reconcile that changes an object of the cache, unless it must not", async () => {
    for (const freezeObjects of [undefined, false]) {
      let calls = 0;
      const define: DefineControllers = (cluster) =>
        defineController({
          name: "widgets",
          for: cluster.resource<KubernetesObject & { spec: { color?: string } }>(WIDGETS),
          reconcile({ spec }) {
            if (calls++ === 0) spec.color = "blue";
          },
        });
      const manager = freezeObjects === undefined ? {} : { freezeObjects };
      await using world = await testController(define, { customResources, manager });
      world.create(WIDGETS, widget("a", "red"));
      await world.idle();
      const failed = world.lines.filter((line) => line.startsWith("warn Cannot reconcile default/a"));
      assert.deepEqual([calls, failed.length], freezeObjects === undefined ? [2, 1] : [1, 0]);
    }
  });

  it("reconciles the objects of before the start", async () => {
    await using world = await newWorld();
    world.crash();
    world.create(WIDGETS, widget("a", "red"));
    await world.restart();
    assert.equal(world.list("v1/configmaps").length, 1);
  });

  it("shows the writes and the events", async () => {
    await using world = await newWorld();
    world.create(WIDGETS, widget("a", "red"));
    await world.idle();
    assert.deepEqual(
      world.writes.map(({ method, resource, name, subresource }) =>
        [method, resource, name, subresource].join(" ").trim()
      ),
      [
        `PATCH ${WIDGETS} default/a`,
        "PATCH v1/configmaps default/widget-a",
        `PATCH ${WIDGETS} default/a status`,
      ],
    );
    assert.deepEqual(world.events, [
      { type: "Normal", reason: "Configured", note: "color red", about: "default/a", count: 1 },
    ]);
  });

  it("fails requests of one method and resource, as often as is said", async () => {
    await using world = await newWorld();
    world.fail("PATCH", 503, { times: 2, resource: "v1/configmaps" });
    world.fail("PATCH", 409, { times: 3, resource: WIDGETS });
    world.create(WIDGETS, widget("a", "red"));
    await world.idle();
    assert.equal(world.writes.length, 3 + 5);
    assert.equal(world.lines.filter((line) => line.startsWith("warn Cannot reconcile default/a")).length, 2);
    assert.equal(world.get<Widget>(WIDGETS, "a")?.status?.message, "red");
  });

  it("waits as the server says before it tries again", async () => {
    await using world = await newWorld();
    const startMs = world.clock.now();
    world.fail("PATCH", 429, { retryAfterSeconds: 7 });
    world.create(WIDGETS, widget("a", "red"));
    await world.idle();
    assert.equal(world.clock.now() - startMs, 7_000);
  });

  it("keeps a program that was killed from doing anything", async () => {
    await using world = await newWorld();
    world.create(WIDGETS, widget("a", "red"));
    world.crash();
    await world.advance(60_000);
    assert.deepEqual(world.writes, []);
    await world.restart();
    assert.equal(world.get<Widget>(WIDGETS, "a")?.status?.message, "red");
  });

  it("deletes what has no owner any more, as a cluster does", async () => {
    await using world = await newWorld((cluster) =>
      defineController({
        name: "widgets",
        for: cluster.resource<Widget>(WIDGETS),
        owns: { configMaps: cluster.resource<ConfigMap>("v1/configmaps") },
        async reconcile(object, { configMaps }) {
          await configMaps.apply({ metadata: { name: "one", ...ownedBy(object) } });
        },
      })
    );
    world.create(WIDGETS, widget("a", "red"));
    await world.idle();
    assert.equal(world.list("v1/configmaps").length, 1);
    world.delete(WIDGETS, "a");
    await world.idle();
    assert.equal(world.list("v1/configmaps").length, 0);
  });

  it("does not wait for a delay that a reconcile has asked for", async () => {
    let count = 0;
    await using world = await newWorld((cluster) =>
      defineController({
        name: "widgets",
        for: cluster.resource<Widget>(WIDGETS),
        reconcile: () => (count++, { requeueAfterMs: 60_000 }),
      })
    );
    world.create(WIDGETS, widget("a", "red"));
    await world.idle();
    assert.equal(count, 1);
    await world.advance(60_000);
    assert.equal(count, 2);
  });

  it("says what is still to do if that never ends", async () => {
    await using world = await newWorld((cluster) =>
      defineController({
        name: "widgets",
        for: cluster.resource<Widget>(WIDGETS),
        reconcile: () => Promise.reject(new Error("there is no paint")),
      })
    );
    world.create(WIDGETS, widget("a", "red"));
    await assert.rejects(
      world.idle(),
      /not idle after an hour: 1 keys wait or are tried again\. The last lines:(\n|.)*there is no paint/,
    );
  });

  it("elects a leader if the options say so", async () => {
    await using world = await testController(widgetController, {
      customResources,
      manager: { leader: { lease: "widgets", namespace: "default" } },
    });
    assert.equal(world.list("coordination.k8s.io/v1/leases").length, 1);
    assert.deepEqual(world.writes, []);
  });
});
