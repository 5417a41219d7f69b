import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type KubernetesObject, silentLogger } from "@listwatch/cache";
import type { ListWatchContext } from "@listwatch/cache/reflector";
import { FakeClock } from "@listwatch/cache/testing";
import { requestList } from "../../src/reflector/lists.ts";
import { Reflector } from "../../src/reflector/reflector.ts";
import { onAbort } from "../../src/util/abort.ts";
import { at, page, StoreRecorder } from "./scripted_source.ts";

/** A reflector whose one list is read as `read` says; everything else hangs. */
async function listing(
  read: (context: ListWatchContext, clock: FakeClock) => Promise<void>,
  { intake }: { readonly intake?: (item: unknown) => unknown } = {},
) {
  const clock = new FakeClock();
  const store = new StoreRecorder();
  const errors: Error[] = [];
  let lists = 0;
  const hang = (signal: AbortSignal) =>
    new Promise<never>((_, reject) => onAbort(signal, () => reject(signal.reason)));
  const reflector = new Reflector<KubernetesObject>(
    {
      description: "pods",
      list: async (_, context) => {
        if (lists++ > 0) return await hang(context.signal);
        await Promise.race([read(context, clock), hang(context.signal)]);
        return page("a@1", "10");
      },
      watch: (_, { signal }) => hang(signal),
    },
    store,
    {
      clock,
      useWatchList: false,
      logger: silentLogger,
      random: () => 0,
      watchErrorHandler: (error) => errors.push(error),
    },
    intake && { intake },
  );
  const stop = new AbortController();
  const running = reflector.run(stop.signal);
  await clock.advance(0);
  return {
    clock,
    store,
    errors,
    async pass(ms: number) {
      for (let passed = 0; passed < ms; passed += 5_000) await clock.advance(5_000);
    },
    async stop() {
      stop.abort();
      await clock.advance(0);
      await running;
    },
  };
}

/** Calls `act` every ten seconds, so many times. */
async function steadily(clock: FakeClock, times: number, act: () => void): Promise<void> {
  for (let i = 0; i < times; i++) {
    await new Promise<void>((resolve) => void clock.setTimeout(resolve, 10_000));
    act();
  }
}

describe("requestList: a list that takes long", () => {
  it("is waited for as long as its bytes come", async () => {
    const run = await listing(({ onBytes }, clock) => steadily(clock, 60, () => onBytes!(1_000)));
    await run.pass(600_000);
    assert.deepEqual(run.store.operations, ["replace 10: a@1"]);
    assert.equal(run.errors.length, 0);
    await run.stop();
  });

  it("is waited for as long as its items come, from a source that does not report bytes", async () => {
    const run = await listing(
      ({ intake }, clock) => steadily(clock, 60, () => void intake!(at("a@1"))),
      { intake: (item) => item },
    );
    await run.pass(600_000);
    assert.deepEqual(run.store.operations, ["replace 10: a@1"]);
    await run.stop();
  });

  it("is given up when nothing comes for a minute and a half, however much did before", async () => {
    const run = await listing(async ({ onBytes }, clock) => {
      await steadily(clock, 20, () => onBytes!(1_000));
      await new Promise(() => {});
    });
    await run.pass(285_000);
    assert.equal(run.errors.length, 0);
    await run.pass(5_000);
    assert.match(run.errors[0].message, /nothing more than 20000 bytes of a page came for 90000 ms/);
    await run.stop();
  });

  it("is given up after a quarter of an hour, however steadily it trickles", async () => {
    const run = await listing(({ onBytes }, clock) => steadily(clock, 10_000, () => onBytes!(1)));
    await run.pass(895_000);
    assert.equal(run.errors.length, 0);
    await run.pass(5_000);
    assert.match(run.errors[0].message, /no whole page within 900000 ms/);
    await run.stop();
  });

  it("has a minute and a half where its source reports nothing", async () => {
    const run = await listing((_, clock) => steadily(clock, 60, () => {}));
    await run.pass(90_000);
    assert.match(run.errors[0].message, /no whole page within 90000 ms/);
    await run.stop();
  });
});

describe("requestList", () => {
  /** A list of which bytes come at some times; when they came last, and how many. */
  async function receivedOf(
    ...timesMs: number[]
  ): Promise<readonly [atMs: number, bytes: number]> {
    const clock = new FakeClock();
    const startMs = clock.monotonicNow();
    let bytes = 0;
    const list = async (_: unknown, { onBytes }: ListWatchContext) => {
      for (const atMs of timesMs) {
        // deno-lint-ignore no-await-in-loop -- one after the other
        await clock.jump(startMs + atMs - clock.monotonicNow());
        onBytes?.(10);
      }
      return page("a@1", "10");
    };
    const source = { list, watch: () => Promise.reject(new Error("unused")) };
    const { received } = await requestList<KubernetesObject>(source, {}, {
      name: "pods",
      clock,
      listTimeoutMs: 90_000,
    }, { signal: new AbortController().signal, onBytes: (more) => (bytes += more) });
    return [received.monotonicMs - startMs, bytes];
  }

  it("has the time of its last bytes, and passes on how many came", async () => {
    assert.deepEqual(await receivedOf(1_000, 20_000, 40_000), [40_000, 30]);
    assert.deepEqual(await receivedOf(), [0, 0], "none: the time of its end");
  });

  it("is no news of a later moment than a long silence within it: the program may have been suspended", async () => {
    assert.deepEqual(await receivedOf(1_000, 61_000, 62_000), [1_000, 30]);
  });
});
