import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { metaNamespaceKey, shortTexts, texts } from "@listwatch/cache";

const OBJECT = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "web-1", namespace: "shop", uid: "u", resourceVersion: "7" },
};
const JSON_TEXT = JSON.stringify(OBJECT);

describe("TextHolding.holdText.late", () => {
  for (const [name, storage] of Object.entries({ texts: texts(), shortTexts: shortTexts() })) {
    it(`reads a text once, when it is needed first (${name})`, () => {
      const holding = storage<typeof OBJECT>(metaNamespaceKey);
      let reads = 0;
      const source = {
        get json() {
          reads++;
          return JSON_TEXT;
        },
      };
      const held = holding.holdText!.late!.hold(source, OBJECT, "shop/web-1") as typeof OBJECT;
      assert.equal(holding.keyFunc(held), "shop/web-1");
      assert.deepEqual(holding.head(held).metadata.uid, "u");
      assert.equal(reads, 0);
      assert.equal(holding.json(held), JSON_TEXT);
      assert.deepEqual(holding.open(held), OBJECT);
      holding.holdText!.late!.read(held);
      assert.equal(reads, 1);
    });
  }

  it("is no state that another one equals, if its text is lost", () => {
    const holding = texts()<typeof OBJECT>(metaNamespaceKey);
    const source = {
      get json(): string {
        throw new Error("lost");
      },
    };
    const held = holding.holdText!.late!.hold(source, OBJECT, "shop/web-1") as typeof OBJECT;
    assert.throws(() => holding.open(held), /lost/);
    assert.throws(() => holding.holdText!.late!.read(held), /lost/);
    const same = holding.hold(OBJECT) as typeof OBJECT;
    assert.equal(holding.isSameContent(held, same), false);
    assert.equal(holding.isSameContent(same, held), false);
    assert.equal(holding.isSameContent(OBJECT, held), false);
  });
});
