import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { freezeObject } from "@listwatch/cache/informer";

describe("freezeObject", () => {
  it("freezes all that is in it, and returns it", () => {
    const pod = { metadata: { labels: { app: "web" } }, spec: { containers: [{ name: "main" }] } };
    assert.equal(freezeObject(pod), pod);
    for (
      const part of [pod, pod.metadata, pod.metadata.labels, pod.spec.containers, pod.spec.containers[0]]
    ) {
      assert.equal(Object.isFrozen(part), true);
    }
    assert.throws(() => pod.spec.containers.push({ name: "side" }), TypeError);
  });

  it("freezes what is in an object that was frozen on its surface", () => {
    const inner = { app: "web" };
    freezeObject(Object.freeze({ inner }));
    assert.equal(Object.isFrozen(inner), true);
  });

  it("gets through circles and great depths", () => {
    const circle: Record<string, unknown> = {};
    circle.self = circle;
    assert.equal(Object.isFrozen(freezeObject(circle)), true);
    let deep: unknown = {};
    for (let i = 0; i < 100_000; i++) deep = { deep };
    freezeObject(deep);
  });

  it("leaves values and bytes as they are", () => {
    assert.equal(freezeObject("text"), "text");
    assert.equal(freezeObject(null), null);
    const bytes = { data: new Uint8Array([1]) };
    freezeObject(bytes);
    bytes.data[0] = 2;
    assert.equal(bytes.data[0], 2);
  });
});
