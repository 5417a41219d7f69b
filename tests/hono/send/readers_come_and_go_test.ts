import assert from "node:assert/strict";
import process from "node:process";
import { describe, it } from "node:test";
import { silentLogger } from "@listwatch/cache";
import { seededRandom } from "../../../src/testing/seeded_random.ts";
import { FakeClock } from "../../../src/testing/fake_clock.ts";
import { settle } from "../../../src/util/clock.ts";
import { FakeInformer, object } from "../fake_informer.ts";
import { readApi } from "../read_api.ts";

const MAX_READERS = 60;
const STEPS = 3_000;
const USERS = ["jane", "joe", "ann"];
const ACCEPTED = [
  "application/json",
  "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
  "text/event-stream,application/json",
];

describe("Readers that read slowly, vanish, and lose their permission", () => {
  it("leave nothing behind: no timer, no place taken, nothing sent that is not allowed", async () => {
    const seed = Number(process.env.LISTWATCH_FUZZ_SEED ?? Math.floor(Math.random() * 2 ** 31));
    console.log(`LISTWATCH_FUZZ_SEED=${seed}`);
    const random = seededRandom(seed);
    const pick = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)];
    const clock = new FakeClock(1_700_000_000_000);
    const pod = (i: number, version: number) =>
      object(`shop/p-${i}`, version, { spec: { text: "x".repeat(3_000) } });
    const informer = FakeInformer.with(Array.from({ length: 100 }, (_, i) => pod(i, i + 1)), 1_000);
    const allowed = new Set(USERS);
    const api = readApi({
      resources: [{ informer, resource: "v1/pods" }],
      authenticate: (c) => {
        const name = c.req.header("Authorization") ?? "";
        return { name, ...(name === "ann" && { expiresAtMs: clock.now() + 40_000 }) };
      },
      authorize: async ({ user }) => {
        if (random() < 0.2) await settle();
        return allowed.has(user?.name ?? "");
      },
      maxWatches: 2 * MAX_READERS,
      maxRequests: 2 * MAX_READERS,
      watchLifetimeMs: 120_000,
      watchRecheckMs: 30_000,
      watchBufferBytes: 20_000,
      eventWindow: 200,
      logger: silentLogger,
      random,
      clock,
    });
    const readers = new Set<ReadableStreamDefaultReader<Uint8Array>>();
    let version = 1_000;
    const statuses = new Map<number, number>();
    try {
      for (let step = 0; step < STEPS; step++) {
        const kind = random();
        const reader = pick(Array.from(readers));
        if (kind < 0.35) {
          const path = pick([
            "/api/v1/pods",
            "/api/v1/pods?watch=1",
            `/api/v1/pods?watch=1&resourceVersion=${version}`,
            "/api/v1/pods?watch=1&timeoutSeconds=5",
            "/api/v1/pods?limit=60",
            "/api/v1/pods?sortBy=metadata.name:desc",
            "/api/v1/pods?sortBy=metadata.name:desc&limit=20&watch=1",
            "/api/v1/pods?groupBy=spec.text&watch=1",
          ]);
          const headers = {
            "Authorization": pick(USERS),
            "Accept-Encoding": pick(["gzip", "identity"]),
            "Accept": pick(ACCEPTED),
          };
          const response = await api.request(path, { headers });
          statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
          if (response.status === 200) readers.add(response.body!.getReader());
          else await response.text();
        } else if (kind < 0.6 && reader !== undefined) {
          // One piece, or none if there is none yet.
          const read = reader.read().then(
            ({ done }) => done && readers.delete(reader),
            () => readers.delete(reader),
          );
          await Promise.race([read, settle()]);
        } else if (kind < 0.7 && reader !== undefined) {
          readers.delete(reader);
          await reader.cancel().catch(() => {});
        } else if (kind < 0.9) {
          informer.put(pod(step % 100, ++version));
        } else if (kind < 0.95) {
          await clock.advance(random() * 10_000);
        } else if (kind < 0.97) {
          const user = pick(USERS);
          if (allowed.delete(user)) api.endWatches((one) => one?.name === user);
          else allowed.add(user);
        } else {
          api.endWatches(() => random() < 0.3);
        }
      }
      // No client reads any more: all are disconnected in time.
      await clock.advance(300_000);
      assert.equal(clock.pendingTimers, 0);
      assert.equal(api.endWatches(), 0);
      USERS.forEach((user) => allowed.add(user));
      const open = () =>
        api.request(`/api/v1/pods?watch=1&resourceVersion=${version}`, { headers: { Authorization: "joe" } });
      const again = await Promise.all(Array.from({ length: MAX_READERS + 1 }, open));
      assert.deepEqual(
        again.map(({ status }) => status).sort(),
        [...Array.from({ length: MAX_READERS }, () => 200), 429],
      );
      assert.equal(api.endWatches(), MAX_READERS);
      for (const status of [200, 403]) {
        assert.ok((statuses.get(status) ?? 0) > 20, JSON.stringify([...statuses]));
      }
    } catch (error) {
      throw new Error(`seed ${seed}: ${(error as Error).message}`, { cause: error });
    }
  });
});
