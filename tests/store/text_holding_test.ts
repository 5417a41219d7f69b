import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type KeyFunc, type KubernetesObject, metaNamespaceKey } from "@listwatch/cache";
import type { Held } from "../../src/store/holding.ts";
import { newCache } from "../../src/store/cache.ts";
import { TextHolding } from "../../src/store/text_holding.ts";
import { FieldCut } from "../../src/text/field_cut.ts";

/** The text of an object with some members beside its metadata, and white space between them. */
const textOf = (members: string, blank = "") =>
  `{"metadata":{"name":"a","namespace":"shop","resourceVersion":"1"}${members.replaceAll("@", blank)}}`;

function newHolding(keyFunc: KeyFunc = metaNamespaceKey) {
  const holding = new TextHolding<KubernetesObject>(keyFunc);
  const held = (text: string) => holding.holdText.hold(text, JSON.parse(text)) as Held<KubernetesObject>;
  return { holding, held };
}

describe("TextHolding.isSameContent", () => {
  /** Whether two texts of the same members, with other white space, are the same. */
  function isSame(members: string, others = members): boolean {
    const { holding, held } = newHolding();
    const [a, b] = [held(textOf(members)), held(textOf(others, " "))];
    const same = holding.isSameContent(a, b);
    assert.equal(holding.isSameContent(b, a), same);
    assert.ok(holding.isSameContent(a, held(textOf(members))), "letter for letter");
    return same;
  }

  it("is true of the same values, however they are written", () => {
    assert.ok(isSame(',@"n":@1,@"s":@"x"'));
    assert.ok(isSame(',@"n":@1,@"s":@"x"', ',@"s":@"x",@"n":@1'));
    assert.ok(!isSame(',@"n":@1', ',@"n":@2'));
    assert.ok(!isSame(',@"n":@1', ""));
  });

  it("is false of numbers with more digits than JavaScript's have, unless they are written the same", () => {
    const members: [members: string, same: boolean][] = [
      [',@"n":@123456789012345', true],
      [',@"n":@1234567890123456', false],
      [',@"n":@12345678901234567890,@"s":@"x"', false],
      [',@"s":@"x",@"n":@[1.234567890123456]', false],
      [',@"n":@1e99', true],
      [',@"n":@1e100', false],
      [',@"n":@1E-100', false],
      [',@"s":@"12345678901234567890"', true],
      [',@"s":@"\\"12345678901234567890"', true],
      [',@"12345678901234567890":@1', true],
    ];
    for (const [member, same] of members) assert.equal(isSame(member), same, member);
  });

  it("compares the objects where their texts were dropped", () => {
    const { holding, held } = newHolding();
    const long = (end: string) => held(textOf(`,"spec":{"note":"${"x".repeat(300)}${end}"}`));
    const [a, b, another] = [long("1"), long("1"), long("2")];
    for (const one of [a, b, another]) {
      JSON.stringify(holding.open(one));
      assert.equal(holding.json(one), undefined);
    }
    assert.deepEqual([holding.isSameContent(a, b), holding.isSameContent(a, another)], [true, false]);
  });

  it("compares objects with texts, and with each other", () => {
    const { holding, held } = newHolding();
    const object = (members: string) => JSON.parse(textOf(members)) as Held<KubernetesObject>;
    for (
      const [a, b, same] of [["", "", true], [',"n":1', ',"n":1', true], [',"n":1', ',"n":2', false]] as const
    ) {
      assert.equal(holding.isSameContent(object(a), held(textOf(b))), same);
      assert.equal(holding.isSameContent(held(textOf(a)), object(b)), same);
      assert.equal(holding.isSameContent(object(a), object(b)), same);
    }
    const long = ',"n":12345678901234567890';
    assert.equal(holding.isSameContent(object(long), held(textOf(long))), false, "digits were lost");
    const circle = object("") as unknown as Record<string, unknown>;
    circle["self"] = circle;
    assert.equal(holding.isSameContent(circle as unknown as Held<KubernetesObject>, held(textOf(""))), false);
  });
});

describe("TextHolding.head", () => {
  it("has the name of the metadata, whatever the key is", () => {
    const text = textOf("");
    for (const keyFunc of [metaNamespaceKey, (object: unknown) => `key of ${metaNamespaceKey(object)}`]) {
      const { holding, held } = newHolding(keyFunc);
      const key = keyFunc(JSON.parse(text));
      for (const one of [held(text), JSON.parse(text) as Held<KubernetesObject>]) {
        const head = holding.head(one);
        assert.equal(head.key, key);
        assert.deepEqual([head.metadata.name, head.metadata.namespace, head.metadata.resourceVersion], [
          "a",
          "shop",
          "1",
        ]);
      }
    }
  });

  it("has an empty name where there is none", () => {
    const { holding, held } = newHolding(() => "key");
    const text = '{"metadata":{"resourceVersion":"1"}}';
    assert.equal(holding.head(held(text)).metadata.name, "");
  });
});

describe("TextHolding.json", () => {
  it("is the text that came, and nothing of an object that is held as it is", () => {
    const { holding, held } = newHolding();
    const text = textOf(',"n":1');
    const object = JSON.parse(textOf(',"text":"x","json":"y"')) as Held<KubernetesObject>;
    assert.deepEqual([holding.json(held(text)), holding.json(object)], [text, undefined]);
    assert.deepEqual([holding.open(held(text)), holding.open(object)], [JSON.parse(text), object]);
    assert.deepEqual([holding.peek(held(text)), holding.peek(object)], [JSON.parse(text), object]);
    const cut = new FieldCut([["n"]]);
    assert.deepEqual([holding.cut(held(text), cut), holding.cut(object, cut)], [{ n: 1 }, undefined]);
    assert.deepEqual([holding.json(held(text), cut), holding.json(object, cut)], ['{"n":1}', undefined]);
  });
});

describe("newCache, of texts", () => {
  const NOTE = "long ".repeat(50);

  /** A store with an object of text, and what of it is held. */
  function stored() {
    const byNote = (object: KubernetesObject) => [object.metadata?.annotations?.note ?? ""];
    const store = newCache<KubernetesObject, "note">(metaNamespaceKey, { note: byNote }, {});
    const hold = (note: string) => {
      const metadata = { name: "a", resourceVersion: "1", annotations: { note } };
      const text = JSON.stringify({ metadata });
      return store.holding.holdText!.hold(text, JSON.parse(text)) as Held<KubernetesObject>;
    };
    const held = hold(NOTE);
    store.held.add("a", held);
    return { store, held, hold };
  }

  it("has the object itself once most of it was read, under the same values", () => {
    const { store, held } = stored();
    const object = store.getByKey("a")!;
    assert.equal(store.held.get("a"), held);
    assert.deepEqual({ ...object.metadata }, {
      name: "a",
      resourceVersion: "1",
      annotations: { note: NOTE },
    });
    assert.equal(store.held.get("a"), object);
    assert.equal(store.getByKey("a"), object);
    assert.deepEqual(store.byIndex("note", NOTE), [object]);
    assert.equal(store.lastStoreSyncResourceVersion(), "1");
    store.delete(object);
    assert.deepEqual([store.size, store.byIndex("note", NOTE)], [0, []]);
  });

  it("has the text still where that is served, and another state that came meanwhile", () => {
    const { store, held, hold } = stored();
    const other = hold(`another ${NOTE}`);
    store.held.update("a", other);
    assert.equal(JSON.stringify(store.holding.open(held)).includes("another"), false);
    assert.equal(store.holding.json(held), undefined);
    assert.equal(store.held.get("a"), other);
    store.holding.keepTexts();
    assert.equal(JSON.stringify(store.getByKey("a")), store.holding.json(other));
    assert.equal(store.held.get("a"), other);
  });
});
