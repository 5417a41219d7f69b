import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { SearchResult } from "../../../src/cli/dashboard/dashboard_message.ts";
import { findObjects } from "../../../src/cli/dashboard/object_search.ts";
import { podOn, Reflection } from "./reflected.ts";

const EVIL = `<img src=x onerror=alert(1)>"'\u202e`;

describe("findObjects", () => {
  it("ranks whole names before their beginnings, these before parts of names, and these before namespaces", async () => {
    await using reflection = await newReflection();
    assert.deepEqual(keys(findObjects(reflection.resources, "web", { limit: 10 })), [
      "services shop/web",
      "pods shop/web-1",
      "pods shop/web-2",
      "pods shop/old-web",
      "pods web-team/db",
    ]);
    const first = findObjects(reflection.resources, "web", { limit: 2 });
    assert.deepEqual(keys(first), ["services shop/web", "pods shop/web-1"]);
    assert.equal(first.total, 5);
  });

  it("needs every word, in any case; a word that names a resource as kubectl does chooses it", async () => {
    await using reflection = await newReflection();
    const find = (query: string) => keys(findObjects(reflection.resources, query, { limit: 10 }));
    assert.deepEqual(find("  SHOP web-2 "), ["pods shop/web-2"]);
    for (const word of ["services", "service", "svc", "Service"]) {
      assert.deepEqual(find(`${word} web`), ["services shop/web"], word);
    }
    assert.deepEqual(find("nodes"), ["nodes n1"]);
    assert.deepEqual(find("no such"), []);
    assert.deepEqual(find("   "), []);
  });

  it("leaves labels to the read API, and says which lists to read", async () => {
    await using reflection = await newReflection();
    assert.deepEqual(findObjects(reflection.resources, "po Web app=web tier!=back", { limit: 10 }), {
      objects: [],
      total: 0,
      byLabels: {
        labelSelector: "app=web,tier!=back",
        lists: [{ resource: "pods", path: "/api/v1/pods", words: ["web"] }],
      },
    });
    const { byLabels } = findObjects(reflection.resources, "x app=web", { limit: 10 });
    assert.deepEqual(byLabels?.lists.map(({ path, words }) => [path, words]), [
      ["/api/v1/pods", ["x"]],
      ["/api/v1/services", ["x"]],
      ["/api/v1/nodes", ["x"]],
    ]);
  });

  it("finds hostile names as they are, and reads no more than 500 characters of a query", async () => {
    await using reflection = await newReflection();
    reflection.resources[0].informer.indexer.add(podOn(EVIL, "shop", "n1", true));
    const { objects } = findObjects(reflection.resources, "onerror", { limit: 10 });
    assert.equal(objects[0].name, EVIL);
    assert.equal(findObjects(reflection.resources, `${"web ".repeat(125)} nothing`, { limit: 10 }).total, 5);
  });
});

async function newReflection(): Promise<Reflection> {
  const reflection = new Reflection(["v1/pods", "v1/services", "v1/nodes"]);
  const { server } = reflection;
  for (const name of ["old-web", "web-1", "web-2"]) server.create("v1/pods", podOn(name, "shop", "n1", true));
  server.create("v1/pods", podOn("db", "web-team", "n1", true));
  server.create("v1/services", { metadata: { name: "web", namespace: "shop" } });
  server.create("v1/nodes", { metadata: { name: "n1" } });
  await reflection.sync();
  return reflection;
}

function keys({ objects }: SearchResult): string[] {
  return objects.map(({ resource, namespace, name }) =>
    `${resource} ${namespace ? `${namespace}/` : ""}${name}`
  );
}
