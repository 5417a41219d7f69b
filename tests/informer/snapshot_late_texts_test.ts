import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  type KubernetesObject,
  newCluster,
  SharedIndexInformer,
  silentLogger,
  texts,
} from "@listwatch/cache";
import { newInformerSnapshot, type SnapshotStorage } from "@listwatch/cache/informer";
import { FakeClock, InMemoryApiServer, pod } from "@listwatch/cache/testing";
import { settle } from "../../src/util/clock.ts";

/** A server with two pods, and a snapshot of it whose texts are read late. */
function setUp(readText: (json: string) => string) {
  const clock = new FakeClock();
  const server = new InMemoryApiServer({ clock });
  for (const name of ["web-1", "web-2"]) server.create("v1/pods", pod(name, { namespace: "shop" }));
  const reads: string[] = [];
  const storage: SnapshotStorage = {
    load: () => ({
      resourceVersion: server.resourceVersion,
      savedAtMs: clock.now(),
      needsList: false,
      count: 2,
      entries: () => [["web-1", "web-2"].map((name) => {
        const object = server.get("v1/pods", `shop/${name}`) as KubernetesObject;
        return {
          key: `shop/${name}`,
          isLate: true,
          head: { apiVersion: "v1", kind: "Pod", metadata: object.metadata! },
          get json() {
            reads.push(name);
            return readText(JSON.stringify(object));
          },
        };
      })],
    }),
    save() {},
  };
  const cluster = newCluster({ server: "http://in-memory", fetch: server.fetch, clock });
  const quarantined: string[] = [];
  const informer = new SharedIndexInformer(cluster.resource<KubernetesObject>("v1/pods"), {
    storage: texts(),
    snapshot: newInformerSnapshot(storage, { identity: "test" }),
    reflector: { onQuarantined: ({ key, reason }) => quarantined.push(`${key}: ${reason}`) },
    clock,
    logger: silentLogger,
  });
  return { clock, server, informer, reads, quarantined };
}

describe("SharedIndexInformer with a snapshot whose texts are read late", () => {
  it("serves reads before it has read the texts, and then reads each of them once", async () => {
    const { server, informer, reads } = setUp((json) => json);
    const running = informer.start();
    await informer.restored();
    assert.equal(informer.indexer.size, 2);
    assert.equal(informer.indexer.getByKey("shop/web-2")?.metadata?.name, "web-2");
    for (let i = 0; i < 20 && reads.length < 2; i++) await settle();
    informer.indexer.list();
    assert.deepEqual(reads.sort(), ["web-1", "web-2"]);
    await running.stop();
    server.close();
  });

  it("quarantines an object whose text is lost, and lists", async () => {
    const { clock, server, informer, quarantined } = setUp((json) => {
      if (json.includes('"web-1"')) throw new Error("it has another checksum");
      return json;
    });
    const running = informer.start();
    await informer.restored();
    assert.throws(() => informer.indexer.getByKey("shop/web-1"), /another checksum/);
    for (let i = 0; i < 50 && quarantined.length === 0; i++) await settle();
    assert.deepEqual(quarantined, ["shop/web-1: it has another checksum"]);
    const isRead = () => {
      try {
        return informer.indexer.getByKey("shop/web-1") !== undefined;
      } catch {
        return false;
      }
    };
    for (let i = 0; i < 200 && !isRead(); i++) {
      await clock.advance(1_000);
      await settle();
    }
    assert.equal(informer.indexer.getByKey("shop/web-1")?.metadata?.name, "web-1");
    await running.stop();
    server.close();
  });
});
