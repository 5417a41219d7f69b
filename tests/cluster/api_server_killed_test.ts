import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { newCluster, type ResourceClient } from "@listwatch/cache";
import type { FetchFunction } from "@listwatch/cache/client";
import { newReflectorBackoff, realClock, type ReflectorOptions } from "@listwatch/cache/reflector";
import { seededRandom } from "@listwatch/cache/testing";
import { type OwnConnection, skipWithoutOwnServer, startOwn } from "./connection.ts";
import { eventually, pause } from "./eventually.ts";
import { assertAllReceived, Reflected, stopAll } from "./reflected.ts";
import { UnreliableNetwork } from "./unreliable_network.ts";
import { type DataObject, MARK, newSeed, runWriters, WriteLog } from "./writers.ts";

const DOWN_MS = 20_000;

describe("SharedIndexInformer and readApi while the API server is killed for 20 seconds", {
  skip: skipWithoutOwnServer,
}, () => {
  let connection: OwnConnection;
  before(async () => {
    // Without a watch cache, a watch of Secrets continues from its version after a restart.
    // One of ConfigMaps that lost an event is refused.
    connection = await startOwn(["--watch-cache-sizes=secrets#0"]);
  });
  after(() => connection?.[Symbol.asyncDispose]());

  it("lose no event and invent none", { timeout: 180_000 }, async () => {
    const { cluster, server, labels } = connection;
    const random = seededRandom(newSeed());
    const namespaces = await connection.createNamespaces("north", "south");
    const kinds = ["configmaps", "secrets"] as const;
    const log = { configmaps: new WriteLog(), secrets: new WriteLog() };
    const write = async (writes: number): Promise<boolean> => {
      const ends = kinds.map((kind) => {
        const options = {
          cluster,
          resource: `v1/${kind}`,
          namespaces,
          labels,
          names: 30,
          log: log[kind],
          random,
        };
        return runWriters(options, { writers: 3, writes });
      });
      return (await Promise.all(ends)).every((isWhole) => isWhole);
    };
    const reflect = (kind: "configmaps" | "secrets", what: string, options: ReflectOptions = {}) =>
      new Witness(connection, kind, { what, random, ...options });

    assert.ok(await write(30));
    const deletedUids = log.secrets.deletedUids();
    using http2 = newHttp2(server.caData);
    const lossy = [
      reflect("configmaps", "losing events"),
      reflect("secrets", "losing events"),
    ];
    const all = [
      ...lossy,
      reflect("configmaps", "streamed"),
      reflect("configmaps", "listed", { useWatchList: false }),
      reflect("configmaps", "in a DeltaFIFO", { deltaFifo: true }),
      reflect("configmaps", "over HTTP/2", { fetch: http2.fetch }),
      reflect("secrets", "streamed"),
      reflect("secrets", "listed", { useWatchList: false }),
    ];
    const allWatch = (): void => {
      for (const { name, informer } of all) assert.equal(informer.status().phase, "watching", name);
    };
    try {
      for (const one of all) await one.synced();
      assert.ok(await write(60));
      await eventually(allWatch);

      for (const { network } of lossy) network.loseEvents();
      assert.ok(await write(30));
      const interrupted = write(Infinity);
      await pause(200);
      for (const one of all) one.mark();
      await server.kill();
      assert.equal(await interrupted, false, "the server was killed amid writes");
      await eventually(() => all.forEach((one) => assert.equal(one.informer.status().phase, "backingOff")));
      const held = all.map(({ informer }) => informer.indexer.list().length);

      await pause(DOWN_MS);
      for (const [i, one] of all.entries()) {
        one.assertTriesPatiently();
        assert.equal(one.informer.indexer.list().length, held[i], `${one.name} can be read`);
        assert.ok(one.informer.hasSynced(), one.name);
      }

      await server.restart();
      assert.ok(await write(60), "the server takes writes while the informers still wait");
      await eventually(allWatch, { timeoutMs: 60_000 });
      assert.ok(await write(30));

      for (const one of all) {
        await one.equalsServer(one.client);
        const phases = one.phases(one.markedStatus);
        assert.deepEqual([phases[0], phases.at(-1)], ["backingOff", "watching"], `${one.name}: ${phases}`);
        assert.equal(one.informer.status().attempt, 0, one.name);
        for (const { object } of one.history.events) {
          const mark = object.metadata?.annotations?.[MARK] ?? "";
          assert.ok(log[one.kind].marks.has(mark), `${one.name}: no writer wrote ${mark}`);
        }
        // Resumed, not relisted: each version was received exactly once.
        if (one.kind === "secrets") assertAllReceived(one, log.secrets, deletedUids);
      }
      const [relisted] = lossy;
      assert.ok(relisted.failures(relisted.markedStatus).includes("Expired"), "its watch was too old");
      assert.ok(relisted.history.count("tombstone") > 0, "it missed deletes");
    } finally {
      await stopAll(all);
    }
  });
});

interface ReflectOptions {
  readonly fetch?: FetchFunction;
  readonly useWatchList?: boolean;
  readonly deltaFifo?: boolean;
}

/** An informer that lives through it, with a network of its own. */
class Witness extends Reflected<DataObject> {
  readonly kind: "configmaps" | "secrets";
  readonly network: UnreliableNetwork;
  /** Sees the same objects as the informer. */
  readonly client: ResourceClient<DataObject>;
  /** How many statuses there were at the mark. */
  markedStatus = 0;
  #markedRequest = 0;

  constructor(
    { cluster, config, labelSelector }: OwnConnection,
    kind: "configmaps" | "secrets",
    { what, random, fetch = config.fetch!, useWatchList, deltaFifo }: ReflectOptions & {
      what: string;
      random: () => number;
    },
  ) {
    const network = new UnreliableNetwork(fetch);
    const options = { labelSelector };
    super(newCluster({ ...config, fetch: network.fetch }).resource<DataObject>(`v1/${kind}`, options), {
      name: `${kind} ${what}`,
      deltaFifo,
      reflector: { useWatchList, ...delays(kind, random) },
    });
    this.kind = kind;
    this.network = network;
    this.client = cluster.resource<DataObject>(`v1/${kind}`, options);
  }

  mark(): void {
    this.markedStatus = this.statuses.length;
    this.#markedRequest = this.network.requests.length;
  }

  /** Asserts that the reflector reported what was wrong and when it would try again, and did not run hot. */
  assertTriesPatiently(): void {
    const status = this.informer.status();
    const { name } = this;
    assert.equal(status.phase, "backingOff", name);
    assert.equal(status.lastError?.code, "ConnectionRefused", `${name}: ${status.lastError?.message}`);
    assert.ok(status.nextRetryTimeMs !== undefined && status.nextRetryTimeMs > Date.now() - 1000, name);
    assert.ok(status.attempt >= 4, `${name} has tried ${status.attempt} times`);
    const tries = this.network.requests.length - this.#markedRequest;
    assert.ok(tries >= 4 && tries <= 7, `${name} made ${tries} requests to a server that is down`);
  }
}

/**
 * The usual delays with less jitter: 0.8, 1.6, 3.2, 6.4, 12.8 seconds and so on. For ConfigMaps no more than
 * 6.4: where the watch is refused after the restart, the list comes after one more delay.
 */
function delays(kind: "configmaps" | "secrets", random: () => number): ReflectorOptions {
  const less = () => random() / 10;
  if (kind === "secrets") return { random: less };
  const backoff = { durationMs: 800, factor: 2, capMs: 6400, jitter: 1 };
  return { backoff: newReflectorBackoff({ clock: realClock, random: less, backoff }) };
}

/** A fetch that puts all its requests on one connection. */
function newHttp2(ca: string): Disposable & { readonly fetch: FetchFunction } {
  const client = Deno.createHttpClient({ caCerts: [ca], http1: false });
  return {
    fetch: (url, init) => fetch(url, { ...init, client }),
    [Symbol.dispose]: () => client.close(),
  };
}
