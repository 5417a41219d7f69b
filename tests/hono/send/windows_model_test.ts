import assert from "node:assert/strict";
import fc from "fast-check";
import { FakeClock } from "../../../src/testing/fake_clock.ts";
import { settle } from "../../../src/util/clock.ts";
import { propertyOptions } from "../../property.ts";
import { FakeInformer, object, type TestObject } from "../fake_informer.ts";
import { readApi } from "../read_api.ts";
import type { Json } from "../reading.ts";
import { changesOf, Screen } from "../screen.ts";
import { describe, it } from "../storages.ts";

/** The order of values, as docs/screens.md describes it, by other means than the code. */
const FACTORS: Record<string, number> = { "": 1, m: 1e-3, k: 1e3, Mi: 2 ** 20, Gi: 2 ** 30 };

function rankOf(value: unknown): [rank: number, of: number | string] {
  if (value === undefined || value === null) return [9, 0];
  const text = String(value);
  const [, number, suffix] = /^(-?[0-9.]+)(|m|k|Mi|Gi)$/.exec(text) ?? [];
  if (typeof value === "boolean") return [0, value ? 1 : 0];
  if (number !== undefined) return [0, Number(number) * FACTORS[suffix]];
  return /^2026-.*Z$/.test(text) ? [1, Date.parse(text)] : [2, text];
}

const collator = new Intl.Collator("en", { numeric: true, sensitivity: "accent" });

function compareValues(a: unknown, b: unknown, { isName }: { isName: boolean }): number {
  const [[rank, x], [otherRank, y]] = isName ? [[2, a], [2, b]] as const : [rankOf(a), rankOf(b)];
  if (rank !== otherRank) return rank - otherRank;
  return rank === 2 ? collator.compare(String(x), String(y)) : Number(x) - Number(y);
}

interface Key {
  readonly text: string;
  readonly isDescending: boolean;
}

function valueOf(text: string, { metadata, spec }: TestObject): unknown {
  if (text === "metadata.name" || text === "column(Name)") return metadata!.name;
  if (text === "metadata.namespace") return metadata!.namespace;
  return (spec as Record<string, unknown>)[text.slice("spec.".length)];
}

function compare(keys: readonly Key[], [a, x]: [string, TestObject], [b, y]: [string, TestObject]): number {
  for (const { text, isDescending } of keys) {
    const [before, after] = [valueOf(text, x), valueOf(text, y)];
    const isLast = [before, after].map((value) => value === undefined || value === null);
    if (isLast[0] !== isLast[1]) return isLast[0] ? 1 : -1;
    const sign = compareValues(before, after, { isName: !text.startsWith("spec.") });
    if (sign !== 0) return isDescending ? -sign : sign;
  }
  return a < b ? -1 : 1;
}

/** Letters in lower case, digits and times, as a collator knows no order of other characters. */
const values = fc.constantFrom<unknown>(
  ...[undefined, null, 0, -3, 7, 100, 0.5, true, false, "5", "100m", "1Gi", "2k", "300Mi"],
  ...["2026-01-02T00:00:00Z", "2026-01-01T12:00:00Z", "web2", "web10", "Web3", "web010", "a", "b1c"],
);
const NAMES = ["web1", "web2", "web10", "db", "5k", "12"];
const KEYS = ["spec.v", "spec.w", "metadata.name", "metadata.namespace", "column(Name)"];

const selections = [
  { query: "", path: "/api/v1/pods", has: () => true },
  { query: "", path: "/api/v1/namespaces/a/pods", has: (key: string) => key.startsWith("a/") },
  {
    query: "&labelSelector=app%3Dx",
    has: (_: string, { metadata }: TestObject) => metadata!.labels?.app === "x",
  },
  { query: "&filter=metadata.name~1", has: (key: string) => key.includes("1") },
  {
    query: "&filter=spec.w",
    has: (_: string, each: TestObject) => (valueOf("spec.w", each) ?? null) !== null,
  },
];

const windows = fc.record({
  keys: fc.array(fc.record({ text: fc.constantFrom(...KEYS), isDescending: fc.boolean() }), {
    minLength: 1,
    maxLength: 3,
  }),
  limit: fc.integer({ min: 1, max: 6 }),
  place: fc.oneof(fc.integer({ min: 0, max: 9 }), fc.constantFrom("a/web1", "b/db")),
  selection: fc.constantFrom(...selections),
  /** Before which change it is opened. */
  at: fc.integer({ min: 0, max: 30 }),
});

const changes = fc.record({
  key: fc.tuple(fc.constantFrom("a", "b"), fc.constantFrom(...NAMES)).map((parts) => parts.join("/")),
  kind: fc.constantFrom("put", "put", "put", "put", "remove", "relist", "wait"),
  spec: fc.record({ v: values, w: values }),
  app: fc.constantFrom("x", "y"),
});

describe("readApi, windows of any orders", () => {
  it("show, in each frame, the rows that a sorted list of all objects has there", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(changes, { minLength: 10, maxLength: 60 }),
        fc.array(windows, { minLength: 1, maxLength: 4 }),
        async (steps, wanted) => {
          let version = 100;
          const informer = FakeInformer.with([], version);
          const clock = new FakeClock();
          const api = readApi({
            resources: [{ informer, resource: "v1/pods" }],
            allowAnonymous: true,
            clock,
          });
          const content = new Map<string, TestObject>();
          const apply = changesOf(informer, content);
          const were = new Map<string, [string, TestObject][]>([[String(version), []]]);
          const open: { screen: Screen; check(): void; isUpToDate(): boolean }[] = [];
          const add = async ({ keys, limit, place, selection }: (typeof wanted)[number]) => {
            const { query, path = "/api/v1/pods", has } = selection;
            const rowsAt = (resourceVersion: string) =>
              were.get(resourceVersion)!.filter(([key, each]) => has(key, each)).sort((a, b) =>
                compare(keys, a, b)
              );
            const isAround = typeof place === "string";
            if (isAround && !rowsAt(String(version)).some(([key]) => key === place)) return;
            const sortBy = keys.map(({ text, isDescending }) => text + (isDescending ? ":desc" : "")).join();
            const where = isAround ? `around=${encodeURIComponent(place)}` : `offset=${place}`;
            const text = `sortBy=${sortBy}&limit=${limit}&${where}${query}`;
            const screen = await Screen.open(api, text, undefined, path);
            let before = 0;
            const modelAt = (resourceVersion: string) => {
              const rows = rowsAt(resourceVersion);
              const at = rows.findIndex(([key]) => key === place);
              const around = Math.max(0, Math.min(at - Math.floor(limit / 2), rows.length - limit));
              const offset = isAround && at >= 0 ? around : Math.min(isAround ? before : place, rows.length);
              const shown = rows.slice(offset, offset + limit).map(([, each]) => each);
              return { total: rows.length, offset, shown };
            };
            const shown = () => ({
              ...screen.window,
              shown: screen.items.map(({ kind: _, apiVersion: __, ...rest }: Json) => rest),
            });
            const json = (value: unknown) => JSON.parse(JSON.stringify(value));
            const check = () => {
              assert.deepEqual(shown(), json(modelAt(screen.resourceVersion)), `${path}?${text}`);
              before = screen.window.offset;
            };
            const isUpToDate = () =>
              JSON.stringify(json(modelAt(String(version)))) === JSON.stringify(json(shown()));
            check();
            open.push({ screen, check, isUpToDate });
          };
          for (const [i, { key, kind, spec, app }] of steps.entries()) {
            for (const each of wanted) if (each.at === i) await add(each);
            if (kind === "wait") {
              await clock.advance(100);
              continue;
            }
            version++;
            apply(kind, key, object(key, version, { spec, labels: { app } }));
            were.set(String(version), [...content]);
          }
          await clock.advance(200);
          await settle();
          for (const { screen, check, isUpToDate } of open) {
            while (!isUpToDate()) {
              await screen.next();
              check();
            }
            await screen.cancel();
          }
        },
      ),
      propertyOptions(100),
    );
  });
});
