import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { SearchResult } from "../../../src/cli/dashboard/dashboard_message.ts";
import { findObjects, ObjectSearch } from "../../../src/cli/dashboard/object_search.ts";
import type { ReflectedResource } from "../../../src/cli/cluster/reflect.ts";
import { newWorkPacer, TurnQueue } from "../../../src/util/turns.ts";
import { podOn, Reflection } from "./reflected.ts";

/** Counts the turns that searches give to other work. */
class CountedTurns extends TurnQueue {
  readonly #onTurn: (count: number) => void;
  count = 0;
  constructor(onTurn: (count: number) => void = () => {}) {
    super();
    this.#onTurn = onTurn;
  }
  override next(): Promise<void> {
    this.#onTurn(++this.count);
    return super.next();
  }
}

function find(reflection: Reflection, query: string, limit = 10): Promise<SearchResult> {
  const { signal } = new AbortController();
  return findObjects(reflection.resources, query, { limit, pacer: newWorkPacer(), signal });
}

const EVIL = `<img src=x onerror=alert(1)>"'\u202e`;

describe("findObjects", () => {
  it("ranks whole names before their beginnings, these before parts of names, and these before namespaces", async () => {
    await using reflection = await newReflection();
    assert.deepEqual(keys(await find(reflection, "web")), [
      "services shop/web",
      "pods shop/web-1",
      "pods shop/web-2",
      "pods shop/old-web",
      "pods web-team/db",
    ]);
    const first = await find(reflection, "web", 2);
    assert.deepEqual(keys(first), ["services shop/web", "pods shop/web-1"]);
    assert.equal(first.total, 5);
  });

  it("needs every word, in any case; a word that names a resource as kubectl does chooses it", async () => {
    await using reflection = await newReflection();
    const keysOf = async (query: string) => keys(await find(reflection, query));
    assert.deepEqual(await keysOf("  SHOP web-2 "), ["pods shop/web-2"]);
    for (const word of ["services", "service", "svc", "Service"]) {
      assert.deepEqual(await keysOf(`${word} web`), ["services shop/web"], word);
    }
    assert.deepEqual(await keysOf("nodes"), ["nodes n1"]);
    assert.deepEqual(await keysOf("no such"), []);
    assert.deepEqual(await keysOf("   "), []);
  });

  it("leaves labels to the read API, and says which lists to read", async () => {
    await using reflection = await newReflection();
    assert.deepEqual(await find(reflection, "po Web app=web tier!=back"), {
      objects: [],
      total: 0,
      byLabels: {
        labelSelector: "app=web,tier!=back",
        lists: [{ resource: "pods", path: "/api/v1/pods", words: ["web"] }],
      },
    });
    const { byLabels } = await find(reflection, "x app=web");
    assert.deepEqual(byLabels?.lists.map(({ path, words }) => [path, words]), [
      ["/api/v1/pods", ["x"]],
      ["/api/v1/services", ["x"]],
      ["/api/v1/nodes", ["x"]],
    ]);
  });

  it("finds hostile names as they are, and reads no more than 200 characters and 10 words of a query", async () => {
    await using reflection = await newReflection();
    reflection.resources[0].informer.indexer.add(podOn(EVIL, "shop", "n1", true));
    const { objects } = await find(reflection, "onerror");
    assert.equal(objects[0].name, EVIL);
    assert.equal((await find(reflection, `${"web ".repeat(50)} nothing`)).total, 5);
    assert.equal((await find(reflection, `${"web ".repeat(10)} nothing`)).total, 5);
    assert.equal((await find(reflection, `${"web ".repeat(9)} nothing`)).total, 0);
  });
});

describe("ObjectSearch.find", () => {
  const all = Array.from({ length: 100_000 }, (_, i) => `shop/web-${i}`);
  const resource = { kind: "Pod", group: "", version: "v1", resource: "pods", namespaced: true };
  const large = [{
    name: "pods",
    resource,
    informer: { indexer: { listKeys: () => all } },
  }] as unknown as readonly ReflectedResource[];

  it("gives other work its turns, however many search among however many objects", async () => {
    const turns = new CountedTurns();
    const pacer = newWorkPacer(turns);
    const search = new ObjectSearch(large);
    const { signal } = new AbortController();
    const queries = Array.from(
      { length: 8 },
      (_, i) => ({ client: `address ${i}`, query: "w e b ".repeat(50) }),
    );
    const found = await Promise.all(
      queries.map(({ client, query }) => search.find(query, { client, pacer, signal })),
    );
    assert.deepEqual(new Set(found.map((result) => result?.total)), new Set([100_000]));
    assert.equal(found[0]?.objects.length, 100);
    // A turn looks at some thousand keys.
    assert.ok(turns.count > 8 * 20, `${turns.count} turns`);
  });

  it("refuses more than four searches of a client at a time, and more than twenty of all", async () => {
    const search = new ObjectSearch(large);
    const common = { pacer: newWorkPacer(), signal: new AbortController().signal };
    const of = (client: string | undefined) => search.find("web", { client, ...common });
    const found = await Promise.all(["a", "a", "a", "a", "a", "b", undefined].map(of));
    assert.deepEqual(found.map((result) => result?.total), [1e5, 1e5, 1e5, 1e5, undefined, 1e5, 1e5]);
    assert.equal((await of("a"))?.total, 100_000);
    const many = await Promise.all(Array.from({ length: 24 }, (_, i) => of(`address ${i}`)));
    assert.deepEqual(many.map((result) => result === undefined), Array.from(many, (_, i) => i >= 20));
  });

  for (const turn of [1, 2, 5]) {
    it(`ends with its reader, that leaves in turn ${turn}`, async () => {
      const client = new AbortController();
      const turns = new CountedTurns((count) => {
        if (count === turn) client.abort(new Error("disconnected"));
      });
      const search = new ObjectSearch(large);
      const common = { client: "a", pacer: newWorkPacer(turns), signal: client.signal };
      await assert.rejects(search.find("w e b", common), /disconnected/);
      assert.equal(turns.count, turn);
    });
  }
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
