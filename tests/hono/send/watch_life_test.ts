import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { silentLogger, StatusError } from "@listwatch/cache";
import { newStatus } from "@listwatch/cache/client";
import type { ReadApiOptions, UserInfo } from "@listwatch/cache/hono";
import type { Permission } from "../../../src/hono/request/gate.ts";
import { WatchLife } from "../../../src/hono/send/watch_life.ts";
import type { Status } from "../../../src/meta/status.ts";
import { FakeClock } from "../../../src/testing/fake_clock.ts";
import { settle } from "../../../src/util/clock.ts";
import { FakeInformer, object } from "../fake_informer.ts";
import { WatchReader } from "../reading.ts";
import { readApi } from "../read_api.ts";

const WATCH = "/api/v1/pods?watch=1&resourceVersion=10";
const START_MS = 1_700_000_000_000;

function apiOf(options: Partial<ReadApiOptions> = {}) {
  const clock = new FakeClock(START_MS);
  const informer = FakeInformer.with([object("shop/a", 5)], 10);
  const api = readApi({
    resources: [{ informer, resource: "v1/pods" }],
    ...(options.authorize === undefined && { allowAnonymous: true }),
    logger: silentLogger,
    random: () => 0,
    clock,
    ...options,
  });
  return { api, informer, clock };
}

/** A watch, and whether it has ended. */
async function open(api: ReturnType<typeof apiOf>["api"], path = WATCH, token = "jane") {
  const response = await api.request(path, { headers: { Authorization: token } });
  assert.equal(response.status, 200);
  const watch = new WatchReader(response);
  const state = { watch, lines: [] as string[], ended: false };
  watch.toEnd().then((lines) => {
    state.lines.push(...lines);
    state.ended = true;
  }, () => state.ended = true);
  return state;
}

describe("WatchLife", () => {
  it("ends after an hour, in good order: with the remaining events, and a last bookmark if requested", async () => {
    const { api, informer, clock } = apiOf();
    const plain = await open(api);
    const asked = await open(api, `${WATCH}&allowWatchBookmarks=1&timeoutSeconds=90000`);
    informer.put(object("shop/b", 11));
    await clock.advance(3_599_999);
    assert.deepEqual([plain.ended, asked.ended], [false, false]);
    informer.bookmark(15);
    await clock.advance(1);
    assert.deepEqual([plain.ended, asked.ended], [true, true]);
    assert.deepEqual(plain.lines, ["ADDED shop/b 11"]);
    assert.equal(asked.lines.at(-1), "BOOKMARK 15");
    assert.equal(clock.pendingTimers, 0);
  });

  it("is as long as the option says, less up to a random fifth; timeoutSeconds only shortens it", async () => {
    const values = [0, 0.5, 0.999];
    const { api, clock } = apiOf({ watchLifetimeMs: 100_000, random: () => values.shift() ?? 0 });
    const watches = [
      await open(api),
      await open(api),
      await open(api),
      await open(api, `${WATCH}&timeoutSeconds=7`),
    ];
    const ends: number[] = [];
    for (let second = 1; second <= 100; second++) {
      await clock.advance(1_000);
      watches.forEach(({ ended }, i) => ended && (ends[i] ??= second));
    }
    assert.deepEqual(ends, [100, 90, 81, 7]);
    assert.equal(clock.pendingTimers, 0);
  });

  it("has no end of its own if the option says so", async () => {
    const { api, clock } = apiOf({ watchLifetimeMs: Infinity });
    const watch = await open(api);
    assert.equal(clock.pendingTimers, 0);
    await clock.advance(100 * 3_600_000);
    assert.equal(watch.ended, false);
  });
});

describe("Permission of a watch", () => {
  /** One user, whose credential and permission a test changes. */
  function guarded(user: UserInfo = { name: "jane" }, options: Partial<ReadApiOptions> = {}) {
    const control: { user: UserInfo | undefined; allowed: unknown; asked: number; waiting?: Promise<void> } =
      {
        user,
        allowed: true,
        asked: 0,
      };
    const chain = apiOf({
      authenticate: async () => {
        control.asked++;
        await control.waiting;
        return control.user;
      },
      // deno-lint-ignore no-explicit-any
      authorize: () => control.allowed as any,
      ...options,
    });
    return { ...chain, control };
  }

  it("ends with the credential, at the millisecond, and nothing is sent later", async () => {
    const { api, informer, clock, control } = guarded({ name: "jane", expiresAtMs: START_MS + 60_000 });
    const watch = await open(api);
    await clock.advance(59_999);
    informer.put(object("shop/b", 11));
    await settle();
    assert.equal(watch.ended, false);
    await clock.advance(1);
    informer.put(object("shop/secret", 12));
    await settle();
    assert.deepEqual([watch.ended, watch.lines], [true, ["ADDED shop/b 11"]]);
    assert.equal(control.asked, 2, "once at the start, once before the end");
    assert.equal(clock.pendingTimers, 0);
  });

  it("is renewed before the credential ends, and the watch continues with its successor", async () => {
    const { api, informer, clock, control } = guarded({ name: "jane", expiresAtMs: START_MS + 60_000 });
    const watch = await open(api);
    control.user = { name: "jane", expiresAtMs: START_MS + 120_000 };
    await clock.advance(110_000);
    informer.put(object("shop/b", 11));
    await settle();
    assert.equal(watch.ended, false);
    await clock.advance(10_000);
    assert.deepEqual([watch.ended, watch.lines], [true, ["ADDED shop/b 11"]]);
  });

  it("is not waited for beyond the end of the credential", async () => {
    const { api, informer, clock, control } = guarded({ name: "jane", expiresAtMs: START_MS + 60_000 });
    const watch = await open(api);
    control.waiting = new Promise(() => {});
    await clock.advance(60_000);
    informer.put(object("shop/b", 11));
    await settle();
    assert.deepEqual([watch.ended, watch.lines], [true, []]);
    await clock.advance(60_000);
    assert.equal(clock.pendingTimers, 0);
  });

  it("holds nothing back while the wall clock is ahead of the timers: what has ended has ended", async () => {
    const { api, informer, clock } = guarded({ name: "jane", expiresAtMs: START_MS + 60_000 });
    const watch = await open(api);
    clock.setWallClock(START_MS + 61_000);
    informer.put(object("shop/b", 11));
    await settle();
    assert.deepEqual([watch.ended, watch.lines], [true, []]);
  });

  it("is renewed every five minutes, and the watch ends unless the same user is permitted again", async () => {
    const changes: ((control: ReturnType<typeof guarded>["control"]) => void)[] = [
      (control) => control.allowed = false,
      (control) => control.allowed = undefined,
      (control) => control.allowed = "no more",
      (control) => control.user = undefined,
      (control) => control.user = { name: "joe" },
      (control) => control.waiting = Promise.reject(new Error("down")),
      (control) => control.waiting = new Promise(() => {}),
    ];
    for (const change of changes) {
      const { api, informer, clock, control } = guarded();
      const watch = await open(api);
      await clock.advance(300_000);
      assert.deepEqual([watch.ended, control.asked], [false, 2]);
      change(control);
      control.waiting?.catch(() => {});
      await clock.advance(300_000);
      if (!watch.ended) await clock.advance(10_000); // the hook's own time
      informer.put(object("shop/b", 11));
      await settle();
      assert.deepEqual([watch.ended, watch.lines], [true, []], String(change));
      assert.equal(clock.pendingTimers, 0);
    }
  });

  it("is renewed again where the hooks are too busy to decide, and the watch ends with a no", async () => {
    for (const isHook of [true, false]) {
      const { api, informer, clock, control } = guarded(undefined, {
        authorize: () => {
          if (isBusy && !isHook) throw busy;
          return control.allowed as boolean;
        },
      });
      const busy = new StatusError(newStatus(429, "TooManyRequests", "too many questions"));
      let isBusy = false;
      const watch = await open(api);
      isBusy = true;
      if (isHook) control.waiting = Promise.reject(busy);
      control.waiting?.catch(() => {});
      await clock.advance(300_000);
      assert.equal((await api.request(WATCH)).status, 429, "a new request is refused");
      informer.put(object("shop/b", 11));
      const before = control.asked;
      await clock.advance(60_000);
      assert.deepEqual([watch.ended, control.asked - before], [false, 12]);
      isBusy = false;
      delete control.waiting;
      control.allowed = false;
      await clock.advance(5_000);
      assert.deepEqual([watch.ended, watch.lines], [true, ["ADDED shop/b 11"]]);
      assert.equal(clock.pendingTimers, 0);
    }
  });

  it("leaves no timer when the reader disconnects while it is renewed", async () => {
    const { api, clock, control } = guarded();
    const response = await api.request(WATCH);
    let answer = () => {};
    await clock.advance(299_999);
    control.waiting = new Promise((resolve) => answer = resolve);
    await clock.advance(1);
    await response.body?.cancel();
    answer();
    await settle();
    assert.equal(clock.pendingTimers, 0);
  });
});

describe("ReadApi.openWatches", () => {
  it("counts the open watches of each resource", async () => {
    const { api } = apiOf();
    assert.deepEqual(api.openWatches(), [0]);
    await open(api);
    await open(api);
    assert.deepEqual(api.openWatches(), [2]);
    api.endWatches();
    await settle();
    assert.deepEqual(api.openWatches(), [0]);
  });
});

describe("ReadApi.endWatches", () => {
  it("ends the watches of one user now, and no others; without an argument all", async () => {
    const { api, informer, clock } = apiOf({
      authenticate: (c) => ({ name: c.req.header("Authorization") ?? "" }),
      authorize: () => true,
    });
    const [jane, again, joe] = [await open(api), await open(api), await open(api, WATCH, "joe")];
    assert.equal(api.endWatches((user) => user?.name === "jane"), 2);
    informer.put(object("shop/b", 11));
    await settle();
    assert.deepEqual([jane.ended, again.ended, joe.ended], [true, true, false]);
    assert.deepEqual([jane.lines, again.lines], [[], []]);
    assert.equal(api.endWatches((user) => user?.name === "jane"), 0);
    assert.equal(api.endWatches(), 1);
    await settle();
    assert.deepEqual([joe.ended, joe.lines], [true, ["ADDED shop/b 11"]]);
    assert.equal(clock.pendingTimers, 0);
  });

  it("ends a watch that is sending its initial events, too", async () => {
    const { api } = apiOf({ watchBufferBytes: 1 });
    const response = await api.request("/api/v1/pods?watch=1");
    assert.equal(api.endWatches(), 1);
    const rest = await response.text();
    assert.ok(rest.split("\n").length <= 2, rest);
  });
});

describe("ReadApi.drain", () => {
  it("fails /readyz, ends watches in good order and refuses new ones, while lists are answered", async () => {
    const { api, informer, clock } = apiOf();
    assert.equal((await api.request("/readyz")).status, 200);
    const plain = await open(api);
    const asked = await open(api, `${WATCH}&allowWatchBookmarks=1`);
    await settle();
    informer.put(object("shop/b", 11));
    informer.bookmark(15);
    api.drain();
    await settle();
    assert.deepEqual([plain.ended, asked.ended], [true, true]);
    assert.deepEqual(plain.lines, ["ADDED shop/b 11"]);
    assert.equal(asked.lines.at(-1), "BOOKMARK 15");
    const ready = await api.request("/readyz?verbose");
    assert.equal(ready.status, 503);
    assert.match(await ready.text(), /\[-\]shutdown failed: the server is about to stop/);
    assert.equal((await api.request("/livez")).status, 200);
    assert.equal((await api.request(WATCH)).status, 429);
    const list = await api.request("/api/v1/pods");
    assert.equal((await list.json()).items.length, 2);
    assert.equal(clock.pendingTimers, 0);
  });
});

describe("WatchLife, by itself,", () => {
  interface Given {
    readonly limitMs?: number;
    readonly recheckMs?: number;
    readonly user?: UserInfo;
    readonly wantsHeartbeat?: boolean;
    readonly renew?: Permission["renew"];
    readonly onHeartbeat?: (life: WatchLife) => void;
  }

  /** A watch, and what its life demands of it, with the time. */
  function lives(given: Given = {}) {
    const clock = new FakeClock(START_MS);
    const events: string[] = [];
    const note = (what: string) => void events.push(`${what} ${clock.now() - START_MS}`);
    const watch = {
      wantsHeartbeat: given.wantsHeartbeat ?? false,
      heartbeat: () => {
        note("heartbeat");
        given.onHeartbeat?.(life);
      },
      end: () => note("end"),
      stop: () => note("stop"),
    };
    let asked = 0;
    const permission: Permission = {
      user: given.user,
      renew: () => {
        asked++;
        return given.renew?.() ?? Promise.resolve(permission);
      },
    };
    const life = new WatchLife(watch, {
      clock,
      permission,
      limitMs: given.limitMs ?? Infinity,
      recheckMs: given.recheckMs ?? Infinity,
    });
    return { clock, events, life, asked: () => asked };
  }

  it("has a heartbeat at once where it has at most three seconds and wants one, and none otherwise", async () => {
    for (
      const [limitMs, wantsHeartbeat, expected] of [
        [3_000, true, ["heartbeat 0", "end 3000"]],
        [3_001, true, ["end 3001"]],
        [3_000, false, ["end 3000"]],
      ] as const
    ) {
      const { clock, events } = lives({ limitMs, wantsHeartbeat });
      await clock.advance(0);
      await clock.advance(5_000);
      assert.deepEqual(events, expected);
      assert.equal(clock.pendingTimers, 0);
    }
  });

  it("sets no timer once the watch has ended at its heartbeat", async () => {
    const { clock, events } = lives({
      limitMs: 1_000,
      wantsHeartbeat: true,
      onHeartbeat: (life) => life.close(),
    });
    await clock.advance(0);
    assert.deepEqual([events, clock.pendingTimers], [["heartbeat 0"], 0]);
  });

  it("sets no timer, and keeps no request, where nothing ends it", async () => {
    const { clock, life } = lives({ user: { name: "jane" } });
    assert.deepEqual([clock.pendingTimers, life.user, life.expiresAtMs], [0, { name: "jane" }, Infinity]);
    await clock.advance(1e9);
  });

  it("looks for a successor ten seconds before the credential ends, or after half of what is left", async () => {
    for (const [lastsMs, atMs] of [[60_000, 50_000], [20_000, 10_000], [8_000, 4_000]] as const) {
      const user = { name: "jane", expiresAtMs: START_MS + lastsMs };
      const { clock, events, asked } = lives({ user });
      await clock.advance(atMs - 1);
      assert.equal(asked(), 0);
      await clock.advance(1);
      assert.equal(asked(), 1);
      await clock.advance(lastsMs - atMs - 1);
      assert.deepEqual(events, []);
      await clock.advance(1);
      // The same credential is not looked for again once it is in its last ten seconds.
      assert.deepEqual([events, asked()], [[`stop ${lastsMs}`], 1]);
      assert.equal(clock.pendingTimers, 0);
    }
  });

  it("looks again where the hooks gave the same credential long before its end", async () => {
    const user = { name: "jane", expiresAtMs: START_MS + 100_000 };
    const { clock, asked } = lives({ user, recheckMs: 30_000 });
    for (const [atMs, count] of [[30_000, 1], [60_000, 2], [90_000, 3], [99_999, 3]] as const) {
      await clock.advance(START_MS + atMs - clock.now());
      assert.equal(asked(), count, String(atMs));
    }
  });

  it("looks for a successor of each one that ends within ten seconds, too", async () => {
    const userNow = () => ({ name: "jane", expiresAtMs: clock.now() + 8_000 });
    const user = { name: "jane", expiresAtMs: START_MS + 8_000 };
    const renew = (): Promise<Permission> => Promise.resolve({ user: userNow(), renew });
    const { clock, events, asked } = lives({ user, renew });
    await clock.advance(60_000);
    assert.deepEqual([events, asked()], [[], 15]);
  });

  it("belongs to one user, and to the successor of a credential from then on", async () => {
    const successor = { name: "jane", expiresAtMs: START_MS + 500_000 };
    const answers: (Permission | Status)[] = [];
    const renew = () => Promise.resolve(answers.shift()!);
    answers.push({ user: successor, renew }, newStatus(429, "TooManyRequests", "busy"), {
      user: { ...successor, name: "joe" },
      renew,
    });
    const { clock, events, life, asked } = lives({ user: { name: "jane" }, recheckMs: 60_000, renew });
    await clock.advance(60_000);
    assert.equal(life.user, successor);
    assert.equal(life.expiresAtMs, START_MS + 500_000);
    await clock.advance(60_000);
    assert.deepEqual([asked(), events], [2, []]);
    await clock.advance(4_999);
    assert.equal(asked(), 2);
    await clock.advance(1);
    assert.deepEqual([asked(), events], [3, ["stop 125000"]]);
  });

  it("ends with no user where it had one, and with one where it had none", async () => {
    for (const [before, after] of [["jane", undefined], [undefined, "jane"]] as const) {
      const of = (name: string | undefined) => name === undefined ? {} : { user: { name } };
      const renew = () => Promise.resolve({ user: undefined, ...of(after), renew } as Permission);
      const { clock, events } = lives({ ...of(before), recheckMs: 1_000, renew });
      await clock.advance(1_000);
      assert.deepEqual(events, ["stop 1000"]);
    }
  });

  it("ends with a refusal, also of a reader without a user", async () => {
    for (const user of [undefined, { name: "jane" }]) {
      const renew = () => Promise.resolve(newStatus(403, "Forbidden", "no"));
      const { clock, events } = lives({ ...(user && { user }), recheckMs: 1_000, renew });
      await clock.advance(1_000);
      assert.deepEqual([events, clock.pendingTimers], [["stop 1000"], 0]);
    }
  });
});
