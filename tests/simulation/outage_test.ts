import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { newCluster, SharedIndexInformer, silentLogger } from "@listwatch/cache";
import { ClusterModel, type Scope } from "./cluster_model.ts";
import { calm, NetworkModel, type Refusal } from "./network_model.ts";
import { SeededRandom } from "./seeded_random.ts";
import { ServerModel, type ServerSettings } from "./server_model.ts";
import { VirtualTime } from "./virtual_time.ts";

const HOUR_MS = 3_600_000;
const SCOPE: Scope = { resource: "pods", namespace: "", app: "" };

interface Outage {
  /** The time of each request since the start of the outage, in milliseconds. */
  readonly requestsMs: number[];
  /** How many of the informers equal the server a minute after the outage. */
  equal: number;
  /** The time of the first request of each after the outage, in milliseconds since its end. */
  readonly returnsMs: number[];
}

/** Informers that lose their server together, for an hour in which every request gets this response. */
async function outage(refusal: Refusal, informers: number, useWatchList: boolean): Promise<Outage> {
  const time = new VirtualTime(1_790_000_000_000);
  const random = new SeededRandom(informers);
  const cluster = new ClusterModel(10);
  cluster.put("pods", "a/n0", { app: "web", node: "node-1", value: 1 });
  const settings: ServerSettings = {
    initialEvents: "sent",
    knowsWatch: true,
    bookmarks: true,
    listsFromCache: true,
    tokensExpire: false,
    refusesByHttp: false,
    windowRevisions: 100,
    servesMetadata: true,
    identifiesCluster: true,
  };
  const server = new ServerModel("server", { cluster, time, random, settings });
  cluster.onRevision = (revision) => server.follow(revision);
  const result: Outage = { requestsMs: [], equal: 0, returnsMs: [] };
  let beganMs = 0;
  let endedMs = 0;
  const returned = new Set<number>();
  const network = new NetworkModel({
    time,
    random,
    servers: [server],
    settings,
    observer: {
      onRequest: ({ program }) => {
        if (endedMs > 0) {
          if (!returned.has(program)) result.returnsMs.push(time.worldNow() - endedMs);
          returned.add(program);
        } else if (beganMs > 0) result.requestsMs.push(time.worldNow() - beganMs);
      },
      onAnswer: () => {},
      onGivenUp: () => {},
      onUnavailable: () => {},
      log: () => {},
    },
  });
  const all = Array.from({ length: informers }, (_, index) => {
    const fetch = network.fetchFor(index, SCOPE, { chunking: "send", byteStream: false });
    const source = newCluster({ server: `http://api.example/${index}`, fetch, clock: time }).resource(
      "v1/pods",
    );
    return new SharedIndexInformer(source, {
      clock: time,
      logger: silentLogger,
      reflector: { random: random.fork().next, useWatchList },
    });
  });
  const stop = new AbortController();
  const done = all.map((informer) => informer.run(stop.signal));
  const pass = (ms: number) => time.run(time.worldNow() + ms, () => {});
  await pass(180_000);
  beganMs = time.worldNow();
  network.state.refusals = { list: refusal, watch: refusal };
  network.injure("reset", 1);
  await pass(HOUR_MS);
  endedMs = time.worldNow();
  network.state = calm();
  cluster.put("pods", "a/n1", { app: "web", node: "node-1", value: 2 });
  await pass(60_000);
  result.equal = all.filter((informer) => informer.indexer.listKeys().length === 2).length;
  stop.abort();
  await time.settle();
  await Promise.all(done);
  assert.equal(time.programTimers, 0);
  return result;
}

describe("SharedIndexInformer during an outage of an hour", () => {
  const kinds: readonly Refusal[] = [
    "refused",
    "unreachable",
    "silent",
    "emptyStream",
    "tooManyPlain",
    "tooManySeconds",
    "internalError",
    "badGateway",
    "unavailableSeconds",
    "gatewayTimeout",
    "forbidden",
    "loginPage",
    "closedAtOnce",
  ];
  for (const refusal of kinds) {
    it(`costs an informer at most 0.25 requests a second where requests meet "${refusal}"`, async () => {
      for (const useWatchList of [true, false]) {
        const { requestsMs } = await outage(refusal, 1, useWatchList);
        const perSecond = requestsMs.length / (HOUR_MS / 1_000);
        assert.ok(perSecond <= 0.25, `${perSecond} requests/s`);
        // An open stream that stays empty is ended only after its timeout.
        assert.ok(requestsMs.length >= 6, `it gave up: ${requestsMs.length} requests`);
      }
    });
  }

  it("does not bring a hundred informers back in the same second", async () => {
    const { requestsMs, returnsMs, equal } = await outage("refused", 100, true);
    assert.ok(requestsMs.length <= 0.25 * 100 * 3_600);
    assert.equal(equal, 100);
    assert.equal(returnsMs.length, 100);
    const seconds = new Map<number, number>();
    for (const ms of returnsMs) {
      const second = Math.floor(ms / 1_000);
      seconds.set(second, (seconds.get(second) ?? 0) + 1);
    }
    const most = Math.max(...seconds.values());
    assert.ok(most <= 10, `${most} of 100 came back in the same second`);
  });
});
