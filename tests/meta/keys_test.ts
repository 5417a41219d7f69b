import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  DeletedFinalStateUnknown,
  deletionHandlingMetaNamespaceKey,
  metaNamespaceIndex,
  metaNamespaceKey,
  splitMetaNamespaceKey,
} from "@listwatch/cache";
import {
  deletionHandlingObjectToName,
  ExplicitKey,
  formatObjectName,
  indexFuncToKeyFunc,
  IndexKeyError,
  KeyError,
  newStore,
  NoMetaError,
  objectToName,
  parseObjectName,
  UnexpectedKeyFormatError,
} from "@listwatch/cache/store";
import { keyOf } from "../../src/meta/object.ts";

describe("metaNamespaceKey", () => {
  it("joins namespace and name, and leaves out an empty namespace with its slash", () => {
    assert.equal(metaNamespaceKey({ metadata: { namespace: "shop", name: "web-1" } }), "shop/web-1");
    assert.equal(metaNamespaceKey({ metadata: { name: "node-1" } }), "node-1");
    assert.equal(metaNamespaceKey({ metadata: { namespace: "", name: "node-1" } }), "node-1");
    assert.equal(metaNamespaceKey({ metadata: {} }), "");
  });

  it("returns an explicit key as it is, but refuses a plain string", () => {
    assert.equal(metaNamespaceKey(new ExplicitKey("a/b/c")), "a/b/c");
    assert.throws(() => metaNamespaceKey("a/b"), NoMetaError);
  });

  it("describes the value that has no metadata", () => {
    for (
      const [value, words] of [
        [null, /null/],
        [undefined, /type undefined/],
        [42, /type number/],
        ["text", /the string "text"/],
        ["a".repeat(90), /the string "a{80}"/],
        [{}, /type object/],
        [{ metadata: null }, /type object/],
        [{ metadata: "text" }, /type object/],
        [new DeletedFinalStateUnknown("shop/web-1", undefined), /the tombstone of "shop\/web-1"/],
      ] as const
    ) {
      assert.throws(() => metaNamespaceKey(value), (error) => {
        assert.ok(error instanceof NoMetaError);
        assert.equal(error.code, "NoMeta");
        assert.match(error.message, /^object has no meta/);
        assert.match(error.message, words);
        return true;
      });
    }
  });

  it("refuses tombstones, unlike deletionHandlingMetaNamespaceKey", () => {
    const tombstone = new DeletedFinalStateUnknown("shop/web-1", { metadata: { name: "another" } });
    assert.throws(() => metaNamespaceKey(tombstone), NoMetaError);
    assert.equal(deletionHandlingMetaNamespaceKey(tombstone), "shop/web-1");
    assert.equal(deletionHandlingMetaNamespaceKey({ metadata: { name: "a" } }), "a");
    assert.throws(() => deletionHandlingMetaNamespaceKey("a"), NoMetaError);
  });
});

describe("ObjectName", () => {
  it("is the same after formatObjectName and parseObjectName", () => {
    for (const key of ["", "a", "a/b", "node-1", "shop/web-1"]) {
      assert.equal(formatObjectName(parseObjectName(key)), key);
      assert.deepEqual(splitMetaNamespaceKey(key), parseObjectName(key));
    }
    assert.deepEqual(splitMetaNamespaceKey("node-1"), { namespace: "", name: "node-1" });
    assert.deepEqual(objectToName({ metadata: {} }), { namespace: "", name: "" });
    assert.deepEqual(parseObjectName("a/"), { namespace: "a", name: "" });
    assert.deepEqual(parseObjectName("/b"), { namespace: "", name: "b" });
    assert.deepEqual(parseObjectName(""), { namespace: "", name: "" });
  });

  it("has one slash at most", () => {
    for (const key of ["a/b/c", "//", "a//b"]) {
      assert.throws(() => splitMetaNamespaceKey(key), (error) => {
        assert.ok(error instanceof UnexpectedKeyFormatError);
        assert.deepEqual([error.key, error.code], [key, "UnexpectedKeyFormat"]);
        assert.ok(error.message.startsWith(`unexpected key format: ${JSON.stringify(key)}`));
        return true;
      });
    }
  });

  it("has no slash for a cluster-scoped object", () => {
    assert.equal(formatObjectName({ namespace: "", name: "node-1" }), "node-1");
    assert.deepEqual(objectToName({ metadata: { name: "node-1" } }), { namespace: "", name: "node-1" });
  });

  it("objectToName reads objects, deletionHandlingObjectToName also tombstones", () => {
    assert.deepEqual(objectToName({ metadata: { namespace: "shop", name: "web-1" } }), {
      namespace: "shop",
      name: "web-1",
    });
    assert.throws(() => objectToName(new ExplicitKey("shop/web-1")), NoMetaError);
    assert.throws(() => deletionHandlingObjectToName(new ExplicitKey("shop/web-1")), NoMetaError);
    const tombstone = new DeletedFinalStateUnknown("shop/web-1", { metadata: { name: "another" } });
    assert.deepEqual(deletionHandlingObjectToName(tombstone), { namespace: "shop", name: "web-1" });
    assert.throws(() => objectToName(tombstone), NoMetaError);
    assert.throws(() => deletionHandlingObjectToName(7), NoMetaError);
    assert.throws(
      () => deletionHandlingObjectToName(new DeletedFinalStateUnknown("a/b/c", undefined)),
      UnexpectedKeyFormatError,
    );
  });
});

describe("indexFuncToKeyFunc", () => {
  it("returns the one value of the index function", () => {
    assert.equal(indexFuncToKeyFunc<string>((text) => [text.toUpperCase()])("a"), "A");
  });

  it("refuses no value and several values, each with a code", () => {
    const refuses = (values: string[], code: string) =>
      assert.throws(
        () => indexFuncToKeyFunc(() => values)({}),
        (error) => error instanceof IndexKeyError && error.code === code,
      );
    refuses([], "EmptyIndexKeys");
    refuses(["a", "b"], "TooManyKeys");
    refuses(["a", "a"], "TooManyKeys");
  });

  it("makes a store whose KeyError has the index function's error as its cause", () => {
    const store = newStore<unknown>(indexFuncToKeyFunc(metaNamespaceIndex));
    assert.throws(
      () => store.add("no object"),
      (error) => error instanceof KeyError && error.cause instanceof NoMetaError,
    );
    store.add({ metadata: { namespace: "shop" } });
    assert.deepEqual(store.listKeys(), ["shop"]);
  });
});

describe("KeyError", () => {
  it("has the kind and name of the object, the operation and the cause", () => {
    const store = newStore<unknown>(() => {
      throw new Error("out of keys");
    });
    const pod = { kind: "Pod", metadata: { namespace: "shop", name: "web-1" } };
    assert.throws(() => store.add(pod), (error) => {
      assert.ok(error instanceof KeyError);
      assert.equal(error.name, "KeyError");
      assert.equal(error.object, pod);
      assert.equal((error.cause as Error).message, "out of keys");
      assert.equal(
        error.message,
        `Cannot add an object: couldn't create key for Pod "shop/web-1": out of keys`,
      );
      return true;
    });
    assert.throws(() => store.add({ metadata: {} }), /for object without a name/);
    const own = new KeyError(pod, "tag", new Error("no tag"));
    const tagged = newStore<unknown>(() => {
      throw own;
    });
    assert.throws(() => tagged.add(pod), (error) => error === own);
    assert.throws(() => store.get(new ExplicitKey("a")), /for the key "a"/);
  });
});

describe("keyOf", () => {
  it("says what is wrong with a key that is none", () => {
    const cases: [keyFunc: (value: unknown) => unknown, cause: RegExp][] = [
      [() => 7, /^TypeError: the key function returned number, not a string$/],
      [() => undefined, /^TypeError: the key function returned undefined, not a string$/],
      [metaNamespaceKey, /^NoMetaError: /],
    ];
    for (const [keyFunc, cause] of cases) {
      assert.throws(() => keyOf(keyFunc as (value: unknown) => string, 5, "add"), (error) => {
        assert.ok(error instanceof KeyError);
        assert.deepEqual([error.code, error.object, error.operation], ["KeyError", 5, "add"]);
        assert.match(error.message, /^Cannot add an object: /);
        assert.match(String(error.cause), cause);
        return true;
      });
    }
  });

  it("hands on a KeyError as it is", () => {
    const thrown = new KeyError(7, "read the key of", new Error("no"));
    assert.throws(() => keyOf(() => assert.fail(thrown), 5, "add"), (error) => error === thrown);
  });
});
