import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Projection, type ProjectionOptions } from "@listwatch/cache/client";
import { type FieldNode, FieldTree, TextFields } from "../../src/text/field_tree.ts";

/** The nodes that say something, by their paths. */
function nodesOf(root: FieldNode, path = ""): Record<string, unknown> {
  const { names, nodes, each, places, isCut, cutsOthers } = root;
  const said = {
    ...(places.length > 0 && { places }),
    ...(isCut && { isCut }),
    ...(cutsOthers && { cutsOthers }),
  };
  let all: Record<string, unknown> = Object.keys(said).length === 0 ? {} : { [path]: said };
  names.forEach((name, i) => all = { ...all, ...nodesOf(nodes[i], path === "" ? name : `${path}.${name}`) });
  return each === undefined ? all : { ...all, ...nodesOf(each, `${path}[]`) };
}

function treeOf(fields: TextFields, options?: ProjectionOptions): Record<string, unknown> {
  const tree = new FieldTree(fields, options && new Projection(options));
  tree.update();
  return nodesOf(tree.root);
}

describe("TextFields", () => {
  it("reads the fields that are added, until they are removed, and no other ones in their place", () => {
    const fields = new TextFields();
    const tree = new FieldTree(fields);
    const nodes = () => {
      assert.notEqual(tree.version, fields.version, "there is something to update");
      tree.update();
      assert.equal(tree.version, fields.version);
      return nodesOf(tree.root);
    };
    assert.equal(fields.add("spec.a"), 0);
    assert.deepEqual(nodes(), { "spec.a": { places: [0] } });
    assert.equal(fields.add("spec.b[].c"), 1);
    assert.deepEqual(nodes(), { "spec.a": { places: [0] }, "spec.b[].c": { places: [1] } });
    fields.remove(0);
    assert.deepEqual(nodes(), { "spec.b[].c": { places: [1] } });
    assert.deepEqual(fields.valuesOf({ spec: { a: "x", b: [{ c: 1 }, { c: true }, { c: 1 }] } }), [[], [
      "1",
      "true",
    ]]);
    assert.equal(fields.add("spec.a"), 2);
  });

  it("knows which places are of texts alone, and which are of the type", () => {
    const fields = new TextFields();
    fields.add("kind");
    fields.add("kind.of");
    fields.addText(["apiVersion"]);
    fields.addText(["spec", "kind"]);
    assert.deepEqual(fields.placesOfType, { kind: [0], apiVersion: [2] });
    assert.deepEqual([0, 1, 2, 3].map((place) => fields.isText(place)), [false, false, true, true]);
    assert.deepEqual(fields.valuesOf({ kind: 1, apiVersion: 1, spec: { kind: 1 } }), [["1"], [], [], []]);
    fields.remove(0);
    assert.deepEqual(fields.placesOfType, { kind: [], apiVersion: [2] });
  });

  it("has no value of a name that every object inherits", () => {
    const fields = new TextFields();
    fields.add("constructor.name");
    assert.deepEqual(fields.valuesOf({}), [[]]);
  });
});

describe("FieldTree", () => {
  it("reads no field that is cut out: the objects do not have it", () => {
    const fields = new TextFields();
    for (const path of ["spec.a", "spec.b", "status.phase"]) fields.add(path);
    const kept = treeOf(fields, { keep: ["spec.a"] });
    assert.deepEqual(Object.entries(kept).filter(([, said]) => "places" in (said as object)), [
      ["spec.a", { places: [0] }],
    ]);
    const dropped = treeOf(fields, { drop: ["spec.a"] });
    assert.deepEqual(dropped["spec.a"], { isCut: true });
    assert.deepEqual([dropped["spec.b"], dropped["status.phase"]], [{ places: [1] }, { places: [2] }]);
  });

  it("keeps what the shorter of two paths says, in whatever order they come", () => {
    for (const keep of [["spec", "spec.a"], ["spec.a", "spec"]]) {
      const { spec, "spec.a": part } = treeOf(new TextFields(), { keep });
      assert.deepEqual([spec, part], [undefined, undefined], "nothing is cut out of it");
    }
    const { spec } = treeOf(new TextFields(), { keep: ["spec.a"] });
    assert.deepEqual(spec, { cutsOthers: true });
  });

  it("cuts nothing out where there is no path, and kubectl's annotation where there is one", () => {
    const annotation = "metadata.annotations.kubectl.kubernetes.io/last-applied-configuration";
    assert.deepEqual(treeOf(new TextFields(), {}), {});
    assert.deepEqual(treeOf(new TextFields(), { drop: ["spec.a"] }), {
      "spec.a": { isCut: true },
      [annotation]: { isCut: true },
    });
    assert.deepEqual(treeOf(new TextFields(), { keep: [] }), {
      "": { cutsOthers: true },
      [annotation]: { isCut: true },
    });
  });

  it("takes half of a letter for no other letter", () => {
    const tree = new FieldTree(new TextFields(), new Projection({ drop: ['spec["\ud800"]'] }));
    tree.update();
    const { names, nodes } = tree.root;
    const [key] = nodes[names.indexOf("spec")].keys;
    assert.notDeepEqual(key, new TextEncoder().encode("\ufffd"));
  });
});
