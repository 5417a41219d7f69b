import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { resourceState, shownName } from "../../../src/cli/dashboard/dashboard.ts";
import { podOn, Reflection } from "./reflected.ts";

describe("resourceState", () => {
  it("says what a resource is, how many objects and readers it has, and how it is doing", async () => {
    await using reflection = new Reflection(["v1/pods", "v1/nodes", "apps/v1/deployments"]);
    reflection.server.create("v1/pods", podOn("a", "shop", "n1", true));
    const [pods, nodes, deployments] = reflection.resources;
    assert.deepEqual([resourceState(pods, 0).synced, resourceState(pods, 0).phase], [false, "idle"]);
    await reflection.sync();
    const { path, kind, shortNames, namespaced, objects, synced, phase, watches } = resourceState(pods, 3);
    assert.deepEqual(
      { path, kind, shortNames, namespaced, objects, synced, phase, watches },
      {
        path: "/api/v1/pods",
        kind: "Pod",
        shortNames: ["po"],
        namespaced: true,
        objects: 1,
        synced: true,
        phase: "watching",
        watches: 3,
      },
    );
    assert.equal(resourceState(nodes, 0).namespaced, false);
    assert.equal(resourceState(deployments, 0).path, "/apis/apps/v1/deployments");
  });
});

describe("shownName", () => {
  it("escapes invisible characters, and shortens", () => {
    const shown = shownName(`${"\u202e".repeat(9)}${"x".repeat(500)}`);
    assert.ok(shown.length <= 128 && !shown.includes("\u202e"));
  });
});
