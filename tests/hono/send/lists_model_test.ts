import assert from "node:assert/strict";
import process from "node:process";
import { describe, it } from "node:test";
import { silentLogger } from "@listwatch/cache";
import { FakeClock } from "../../../src/testing/fake_clock.ts";
import { seededRandom } from "../../../src/testing/seeded_random.ts";
import { nextTurn, settle } from "../../../src/util/clock.ts";
import { FakeInformer, object, type TestObject } from "../fake_informer.ts";
import { readApi } from "../read_api.ts";
import type { Json } from "../reading.ts";

const ROUNDS = Math.ceil(8 * Number(process.env.LISTWATCH_PROPERTY_RUNS ?? 1));
const STEPS = 150;

const isOfApp = (app: string) => (_: string, { metadata }: TestObject) => metadata!.labels!.app === app;

/** The lists, and which objects each has. */
const LISTS = [
  { path: "/api/v1/pods", has: () => true },
  { path: "/api/v1/pods?pretty=1", has: () => true },
  { path: "/api/v1/pods?limit=50", has: () => true },
  { path: "/api/v1/pods?sortBy=metadata.name&limit=10", has: () => true },
  { path: "/api/v1/namespaces/a/pods", has: (key: string) => key.startsWith("a/") },
  { path: "/api/v1/pods?labelSelector=app%3Dx", has: isOfApp("x") },
  { path: "/api/v1/pods?filter=metadata.labels.app%3Dy", has: isOfApp("y") },
];
const ACCEPTED = [
  "application/json",
  "application/json;drop=metadata.managedFields",
  "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
  "application/json;as=Table;v=v1;g=meta.k8s.io",
];

/** Reads lists at any speed, some to their end, while objects change; returns what happened how often. */
async function readWhileObjectsChange(random: () => number): Promise<Record<string, number>> {
  const pick = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)];
  const clock = new FakeClock(1_700_000_000_000);
  const count = pick([5, 60, 300, 300]);
  const size = pick([50, 800, 2_500]);
  const long = pick([-1, -1, 1]);
  const pod = (i: number, version: number) =>
    object(`${i % 3 === 0 ? "a" : "b"}/p-${i}`, version, {
      spec: { text: "xé".repeat(i === long ? 90_000 : size) },
      labels: { app: i % 2 === 0 ? "x" : "y" },
    });
  const keyOf = ({ metadata }: TestObject) => `${metadata!.namespace}/${metadata!.name}`;
  const content = new Map(
    Array.from({ length: count }, (_, i) => pod(i, i + 1)).map((one) => [keyOf(one), one]),
  );
  let version = 1_000;
  const informer = FakeInformer.with([...content.values()], version);
  const states = new Map([[String(version), new Map(content)]]);
  const api = readApi({
    resources: [{ informer, resource: "v1/pods" }],
    allowAnonymous: true,
    maxReaderBytes: pick([300_000, 1_000_000, 4_000_000, 64_000_000]),
    eventWindow: pick([20, 200]),
    logger: silentLogger,
    random,
    clock,
  });
  const happened: Record<string, number> = {};
  const note = (what: string) => happened[what] = (happened[what] ?? 0) + 1;
  const tags: { readonly name: string; readonly tag: string; readonly list: Json }[] = [];

  const read = async (): Promise<void> => {
    const { path, has } = pick(LISTS);
    const accept = pick(ACCEPTED);
    const name = `${path} ${accept}`;
    const tagged = random() < 0.5 ? tags.findLast((one) => one.name === name) : undefined;
    const response = await api.request(path, {
      headers: {
        "Accept": accept,
        "Accept-Encoding": pick(["gzip", "identity"]),
        ...(tagged && { "If-None-Match": tagged.tag }),
      },
    });
    note(String(response.status));
    const namesAt = (resourceVersion: string) =>
      Array.from(states.get(resourceVersion)!).filter(([key, one]) => has(key, one))
        .map(([key, { metadata }]) => `${key} ${metadata!.resourceVersion}`).sort();
    if (response.status === 304) {
      const { resourceVersion } = tagged!.list.metadata;
      assert.deepEqual(namesAt(resourceVersion), namesAt(String(version)), name);
      return;
    }
    if (response.status !== 200) return void await response.text();
    const bytes = await bytesOf(response.body!.getReader());
    if (bytes === undefined) return;
    const isCompressed = response.headers.get("Content-Encoding") === "gzip";
    if (isCompressed) note("gzip");
    const whole = isCompressed ? bytes.pipeThrough(new DecompressionStream("gzip")) : bytes;
    const list = await new Response(whole).json();
    const { resourceVersion, remainingItemCount = 0 } = list.metadata;
    // An empty list of metadata has `null`.
    const shown = (list.items ?? list.rows?.map((row: Json) => row.object) ?? [])
      .map((one: Json) => `${keyOf(one)} ${one.metadata.resourceVersion}`).sort();
    const all = namesAt(resourceVersion);
    assert.equal(shown.length + remainingItemCount, all.length, name);
    assert.deepEqual(shown, remainingItemCount === 0 ? all : all.filter((one) => shown.includes(one)), name);
    const tag = response.headers.get("ETag");
    if (tag !== null) tags.push({ name, tag, list });
  };

  /** Reads a body to its end, unless the client leaves or stalls before. */
  const bytesOf = async (
    reader: ReadableStreamDefaultReader<Uint8Array>,
  ): Promise<ReadableStream<Uint8Array<ArrayBuffer>> | undefined> => {
    const pieces: Uint8Array<ArrayBuffer>[] = [];
    try {
      for (;;) {
        for (let turns = pick([0, 1, 2]); turns > 0; turns--) await settle();
        const kind = random();
        if (kind < 0.06) {
          // Some leave while a piece is made for them.
          const unread = kind < 0.01 ? reader.read() : undefined;
          await Promise.all([reader.cancel(), unread]);
          note("left");
          return undefined;
        }
        if (kind > 0.98) await new Promise<void>((resolve) => void clock.setTimeout(resolve, 40_000));
        const { done, value } = await reader.read();
        if (done) return new Blob(pieces).stream();
        assert.ok(value.byteLength > 0);
        pieces.push(value.slice());
      }
    } catch (error) {
      assert.match(String(error), /the client has read (nothing|least) of the list/);
      note("broken off");
      return undefined;
    }
  };

  const change = () => {
    const next = pod(Math.floor(random() * count), ++version);
    const key = keyOf(next);
    if (random() < 0.2 && content.delete(key)) informer.remove(key, version);
    else {
      content.set(key, next);
      informer.put(next);
    }
    states.set(String(version), new Map(content));
  };

  const reads: Promise<void>[] = [];
  let reading = 0;
  for (let step = 0; step < STEPS; step++) {
    const kind = random();
    if (kind < 0.5) {
      reading++;
      const one = read().finally(() => reading--);
      one.catch(() => {});
      reads.push(one);
    } else if (kind < 0.75) change();
    else if (kind < 0.8) await clock.advance(random() * 12_000);
    else await settle();
  }
  while (reading > 0) {
    await nextTurn();
    await clock.advance(5_000);
  }
  await Promise.all(reads);
  return happened;
}

describe("readApi, lists that are read at any speed while objects change,", () => {
  it("are of one state each, plain, compressed and not modified, and leave nothing behind", async () => {
    const seed = Number(process.env.LISTWATCH_FUZZ_SEED ?? Math.floor(Math.random() * 2 ** 31));
    console.log(`LISTWATCH_FUZZ_SEED=${seed}`);
    const happened: Record<string, number> = {};
    for (let round = 0; round < ROUNDS; round++) {
      const one = await readWhileObjectsChange(seededRandom(seed + round));
      for (const [what, count] of Object.entries(one)) happened[what] = (happened[what] ?? 0) + count;
    }
    for (const what of ["200", "left"]) assert.ok(happened[what] > 0, JSON.stringify(happened));
  });
});
