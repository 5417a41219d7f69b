// Tests of widget_controller.ts: a cluster in memory, no waiting.
// deno test -A examples/widget_controller_test.ts
import assert from "node:assert/strict";
import { test } from "node:test";
import { type BuiltDataObject, simulateController, testController, usersOf } from "@listwatch/cache/testing";
import { type Widget, widgetController } from "./widget_controller.ts";

const WIDGETS = "example.com/v1/widgets";
const MAPS = "v1/configmaps";
const resource = {
  group: "example.com",
  version: "v1",
  resource: "widgets",
  kind: "Widget",
  namespaced: true,
};
const options = { customResources: [resource] };

test("widgetController gives a Widget its ConfigMap and its status, through conflicts and an outage", async () => {
  await using world = await testController(widgetController, options);
  world.fail("PATCH", 409, { times: 3 });
  world.fail("PATCH", 503, { resource: MAPS });
  world.create<Widget>(WIDGETS, { metadata: { name: "a" }, spec: { color: "red" } });
  await world.idle();
  assert.equal(world.get<BuiltDataObject>(MAPS, "widget-a")?.data?.color, "red");
  assert.equal(world.get<Widget>(WIDGETS, "a")?.status?.message, "red");
  world.delete(WIDGETS, "a");
  await world.idle();
  assert.deepEqual([world.list(WIDGETS), world.list(MAPS)], [[], []]);
});

test("widgetController gives each Widget its ConfigMap in the end, whatever happens", async () => {
  await simulateController(widgetController, {
    ...options,
    act: usersOf<Widget>(
      WIDGETS,
      (name, { pick }) => ({ metadata: { name }, spec: { color: pick(["red", "blue"]) } }),
    ),
    eventually: {
      "one each": (server) => {
        const widgets = server.list<Widget>(WIDGETS).items;
        const maps = server.list<BuiltDataObject>(MAPS).items.map(({ metadata, data }) =>
          metadata.name + data.color
        );
        return maps.join() ===
          widgets.map(({ metadata, spec }) => `widget-${metadata?.name}${spec?.color}`).join();
      },
    },
  });
});
