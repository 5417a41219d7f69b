import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { KubernetesObject } from "@listwatch/cache";
import { KeyOwners, type Source } from "../../../src/hono/content/source.ts";

/** A shard of one cluster, as far as the owners of keys look at it. */
class Shard {
  readonly objects = new Map<string, KubernetesObject>();
  readonly isCluster: boolean = false;
  isIn = true;
  position = "0";
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }

  keys(): string[] {
    return [...this.objects.keys()];
  }

  shown(key: string): KubernetesObject | undefined {
    return this.objects.get(key);
  }

  shownChange<C>(change: C): C {
    return change;
  }
}

class Cluster extends Shard {
  override readonly isCluster = true;
}

function ownersOf(...shards: Shard[]): KeyOwners {
  return new KeyOwners(shards as unknown as Source[]);
}

/** What readers see of writes and deletes: each as its type and the version of its object. */
function newStory() {
  const shards: Record<string, Shard> = { a: new Shard("a"), b: new Shard("b") };
  const owners = ownersOf(...Object.values(shards));
  const seen = (changes: ReturnType<KeyOwners["changed"]>) =>
    changes.map(({ type, object }) => `${type} ${(object as KubernetesObject).metadata?.resourceVersion}`);
  return {
    owners,
    write(name: string, resourceVersion: string, uid = "1"): string[] {
      const shard = shards[name];
      const object = { metadata: { name: "web", uid, resourceVersion } };
      const oldObject = shard.objects.get("web");
      shard.objects.set("web", object);
      shard.position = resourceVersion;
      const change = { key: "web", object, oldObject, type: oldObject === undefined ? "added" : "updated" };
      return seen(owners.changed(shard as unknown as Source, change as Parameters<KeyOwners["changed"]>[1]));
    },
    delete(name: string, resourceVersion: string): string[] {
      const shard = shards[name];
      const oldObject = shard.objects.get("web")!;
      shard.objects.delete("web");
      shard.position = resourceVersion;
      const object = { metadata: { ...oldObject.metadata, resourceVersion } };
      return seen(
        owners.changed(shard as unknown as Source, { type: "deleted", key: "web", object, oldObject }),
      );
    },
    move(name: string, resourceVersion: string): string[] {
      shards[name].position = resourceVersion;
      return seen(owners.moved(shards[name] as unknown as Source));
    },
  };
}

describe("KeyOwners", () => {
  it("show the later state of a key that two shards have, and nothing new where it is the same state", () => {
    const story = newStory();
    assert.deepEqual(story.write("a", "5"), ["added 5"]);
    assert.deepEqual(story.write("b", "5"), []);
    assert.deepEqual(story.write("b", "4"), []);
    assert.deepEqual(story.write("b", "6"), ["updated 6"]);
    assert.deepEqual(story.write("b", "7", "another"), ["updated 7"]);
    assert.equal(story.owners.ownerOf("web")?.name, "b");
  });

  it("show what the other shard has after a delete only when that has come as far and still has it", () => {
    const story = newStory();
    story.write("a", "5");
    story.write("b", "4");
    assert.deepEqual(story.delete("a", "8"), ["deleted 8"]);
    assert.deepEqual(story.move("b", "7"), []);
    assert.deepEqual(story.move("b", "8"), ["added 4"]);
    assert.deepEqual(story.move("b", "9"), [], "it is shown already");
  });

  it("show nothing that the other shard has deleted, hidden or waited for", () => {
    const story = newStory();
    story.write("a", "5");
    story.write("b", "4");
    assert.deepEqual(story.delete("b", "9"), []);
    assert.deepEqual(story.delete("a", "8"), ["deleted 8"], "b has come further, and has none");
    story.write("a", "10");
    story.write("b", "9");
    story.delete("a", "12");
    assert.deepEqual(story.delete("b", "11"), []);
    assert.deepEqual(story.move("b", "12"), []);
    assert.deepEqual(story.owners.keys(), []);
  });

  it("show the end of one object and another one where the uid is another", () => {
    const story = newStory();
    story.write("a", "5");
    assert.deepEqual(story.write("b", "6", "2"), ["deleted 5", "added 6"]);
    assert.deepEqual(story.delete("b", "7"), ["deleted 7"]);
  });

  it("have the keys of the clusters that are in, and no owner for those of the others", () => {
    const [eu, us] = [new Cluster("eu"), new Cluster("us")];
    eu.objects.set("shop/eu.web", {});
    us.objects.set("shop/us.web", {});
    us.isIn = false;
    const owners = ownersOf(eu, us);
    assert.deepEqual(owners.keys(), ["shop/eu.web"]);
    assert.equal(owners.ownerOf("shop/eu.web")?.name, "eu");
    assert.equal(owners.ownerOf("shop/us.web"), undefined);
    assert.equal(owners.ownerOf("shop/other.web"), undefined);
  });
});
