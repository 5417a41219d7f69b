import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { defineController } from "@listwatch/cache/controller";
import { simulateController, SimulationError } from "@listwatch/cache/testing";
import { CORRECT } from "./controllers.ts";
import { WIDGET_RESOURCE, WIDGETS } from "../../widgets.ts";

describe("simulateController", () => {
  it("says that a controller never comes to rest", async () => {
    const restless: typeof CORRECT[number]["define"] = (cluster) =>
      defineController({
        name: "restless",
        for: cluster.resource(WIDGETS),
        reconcile: () => Promise.reject(new Error("no")),
      });
    const options = { ...CORRECT[0].expected, customResources: [WIDGET_RESOURCE], worlds: 20, from: 1 };
    await assert.rejects(
      simulateController(restless, options),
      (error) => error instanceof SimulationError && error.what === "it never comes to rest",
    );
  });

  it("does not pass when nothing was tested", async () => {
    const { define, expected } = CORRECT[0];
    const customResources = [WIDGET_RESOURCE];
    await assert.rejects(
      simulateController(define, { ...expected, customResources, worlds: 2, act: { nothing: () => {} } }),
      /wrote nothing in 2 worlds/,
    );
    await assert.rejects(simulateController(define, { ...expected, act: {} }), TypeError);
    await assert.rejects(simulateController(define, { act: expected.act }), /nothing is looked at/);
    await assert.rejects(simulateController(define, { ...expected, worlds: 0 }), RangeError);
    const later = (() => Promise.resolve(false)) as never;
    for (const wrong of [{ act: { later } }, { eventually: { later } }, { never: { later } }]) {
      // deno-lint-ignore no-await-in-loop -- one after the other
      await assert.rejects(
        simulateController(define, { ...expected, customResources, worlds: 2, ...wrong }),
        /Cannot simulate (act|eventually|never) "later": the function returns a promise/,
      );
    }
  });
});
