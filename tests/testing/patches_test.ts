import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { pod } from "@listwatch/cache/testing";
import { type Json, patch, withServer } from "./helpers.ts";

const POD = "/api/v1/namespaces/default/pods/p";

/** What a patch makes of a pod's spec. */
async function patched(spec: Json, body: unknown, type: Parameters<typeof patch>[3]): Promise<Json> {
  let result: Json;
  await withServer({}, async (server) => {
    server.create("v1/pods", { ...pod("p"), spec });
    const answer = await patch(server, POD, body, type);
    result = answer.status === 200 ? answer.body.spec : answer.body;
  });
  return result;
}

describe("applyPatch: a merge patch", () => {
  it("merges objects, replaces lists, and removes fields that are null", async () => {
    const spec = { a: { b: 1, c: 2 }, list: [1, 2], gone: true };
    const body = { spec: { a: { c: 3, d: { e: null } }, list: [3], gone: null } };
    assert.deepEqual(await patched(spec, body, "merge"), { a: { b: 1, c: 3, d: {} }, list: [3] });
  });

  it("treats __proto__ as any field", async () => {
    const spec = await patched({}, '{"spec":{"__proto__":{"polluted":"yes"}}}', "merge");
    assert.deepEqual(Object.entries(spec), [["__proto__", { polluted: "yes" }]]);
    assert.equal(({} as Json).polluted, undefined);
  });

  it("with a resourceVersion is for that version only", () =>
    withServer({}, async (server) => {
      server.create("v1/pods", pod("p"));
      const labelled = (resourceVersion: string) => ({ metadata: { resourceVersion, labels: { a: "b" } } });
      assert.equal((await patch(server, POD, labelled("1"))).status, 409);
      assert.equal((await patch(server, POD, labelled("2"))).status, 200);
    }));

  it("cannot rename, and must be an object", async () => {
    assert.equal((await patched({}, { metadata: { name: "q" } }, "merge")).code, 400);
    assert.equal(
      (await patched({}, [], "merge")).message,
      "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}",
    );
    assert.match((await patched({}, "{nope", "merge")).message, /^error decoding patch: /);
  });
});

describe("applyPatch: a strategic merge patch", () => {
  const spec = {
    containers: [{ name: "a", image: "a:1" }, { name: "b", image: "b:1", env: [{ name: "X", value: "1" }] }],
    args: ["1", "2"],
  };

  it("merges lists of named items by their key", async () => {
    const body = {
      spec: {
        containers: [{ name: "b", image: "b:2", env: [{ name: "Y", value: "2" }] }, {
          name: "c",
          image: "c:1",
        }],
        args: ["3"],
      },
    };
    assert.deepEqual(await patched(spec, body, "strategic-merge"), {
      containers: [
        { name: "a", image: "a:1" },
        { name: "b", image: "b:2", env: [{ name: "Y", value: "2" }, { name: "X", value: "1" }] },
        { name: "c", image: "c:1" },
      ],
      args: ["3"],
    });
  });

  it("understands its directives", async () => {
    const body = {
      spec: {
        "$setElementOrder/containers": [{ name: "b" }],
        "$deleteFromPrimitiveList/args": ["1"],
        containers: [{ name: "a", $patch: "delete" }, {
          name: "b",
          $retainKeys: ["name", "image"],
          image: "b:9",
        }],
      },
    };
    assert.deepEqual(await patched(spec, body, "strategic-merge"), {
      containers: [{ name: "b", image: "b:9", env: [{ name: "X", value: "1" }] }],
      args: ["2"],
    });
    assert.deepEqual(await patched(spec, { spec: { $patch: "replace", a: 1 } }, "strategic-merge"), { a: 1 });
    assert.deepEqual(
      await patched(
        spec,
        { spec: { containers: [{ $patch: "replace" }, { name: "z" }] } },
        "strategic-merge",
      ),
      { containers: [{ name: "z" }], args: ["1", "2"] },
    );
  });
});

describe("applyPatch: a JSON patch", () => {
  it("adds, removes, replaces, moves, copies and tests", async () => {
    const spec = { list: [1, 3], a: { "b/c": 1, "d~e": 2 }, old: "x", items: [{ image: "a" }, 0] };
    const body = [
      { op: "test", path: "/spec/list/1", value: 3 },
      { op: "add", path: "/spec/list/1", value: 2 },
      { op: "add", path: "/spec/list/-", value: 4 },
      { op: "remove", path: "/spec/list/0" },
      { op: "replace", path: "/spec/a/b~1c", value: 9 },
      { op: "replace", path: "/spec/items/0/image", value: "b" },
      { op: "replace", path: "/spec/items/1", value: { image: "c" } },
      { op: "copy", from: "/spec/a/d~0e", path: "/spec/copied" },
      { op: "move", from: "/spec/old", path: "/spec/new" },
      { op: "test", path: "/spec/a", value: { "d~e": 2, "b/c": 9 } },
    ];
    assert.deepEqual(await patched(spec, body, "json"), {
      list: [2, 3, 4],
      a: { "b/c": 9, "d~e": 2 },
      copied: 2,
      new: "x",
      items: [{ image: "b" }, { image: "c" }],
    });
  });

  it("that cannot be applied is refused as a whole", async () => {
    const refused = [
      { op: "test", path: "/spec/a", value: 2 },
      { op: "remove", path: "/spec/nope" },
      { op: "replace", path: "/spec/nope", value: 1 },
      { op: "add", path: "/spec/nope/deep", value: 1 },
      { op: "add", path: "/spec/list/7", value: 1 },
      { op: "add", path: "/spec/list/01", value: 1 },
      { op: "remove", path: "/spec/list/-1" },
      { op: "copy", from: "/spec/nope", path: "/spec/b" },
      { op: "frob", path: "/spec/a" },
      { op: "add", path: "spec", value: 1 },
      { op: "add", path: "/spec/a/deep", value: 1 },
      { op: "remove", path: "" },
      { op: "remove" },
      "remove",
    ];
    for (const operation of refused) {
      const body = [{ op: "add", path: "/spec/b", value: 1 }, operation];
      // deno-lint-ignore no-await-in-loop
      const { code, message } = await patched({ a: 1, list: [1] }, body, "json");
      const expected = [422, "the server rejected our request due to an error in our request"];
      assert.deepEqual([operation, code, message], [operation, ...expected]);
    }
  });

  it("must be a list", async () => {
    assert.equal((await patched({}, { op: "add" }, "json")).code, 400);
  });
});

it("applyPatch refuses every other media type with 415", () =>
  withServer({}, async (server) => {
    server.create("v1/pods", pod("p"));
    const { status } = await server.fetch(`http://in-memory${POD}`, {
      method: "PATCH",
      headers: { "Content-Type": "application/yaml" },
      body: "spec: {}",
    });
    assert.equal(status, 415);
  }));
