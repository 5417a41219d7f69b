import { seededRandom } from "@listwatch/cache/testing";
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type Cached, startCached } from "./cached.ts";
import { type OwnConnection, skipWithoutOwnServer, startOwn } from "./connection.ts";
import { everyResource } from "./hosts/host.ts";
import { GROUP, populate } from "./population.ts";
import { newSeed } from "./writers.ts";

const REQUESTS = 500;
const AS = ["Table", "Table", "Table", "PartialObjectMetadata", "PartialObjectMetadataList", "x"];

// What is requested: the path without a namespace, the namespaces, and names.
const KINDS: readonly (readonly [path: string, kind: string, namespaces: string[], names: string[]])[] = [
  ["/api/v1", "pods", ["shop", "back", "none"], ["web-1", "web-2", "db-0", "none"]],
  ["/api/v1", "nodes", [], ["node-1", "none"]],
  ["/api/v1", "configmaps", ["shop", "empty"], ["settings", "binary", "none", "%20", "A"]],
  ["/api/v1", "secrets", ["shop"], ["password", "none"]],
  ["/api/v1", "services", ["shop"], ["web", "outside"]],
  ["/apis/apps/v1", "deployments", ["shop"], ["web", "none"]],
  ["/apis/batch/v1", "jobs", ["back"], ["report"]],
  [`/apis/${GROUP}/v1`, "gadgets", ["shop", "none"], ["alpha", "none"]],
  [`/apis/${GROUP}/v1`, "moons", [], ["io", "none"]],
];

const FIELDS = ["metadata.name", "metadata.namespace", "spec.nodeName", "status.phase", "type", "none"];
const VALUES = ["web", "web-1", "shop", "node-1", "Running", "front", "red", "Opaque", "1", "", "a/b"];
const LABELS = ["app", "app", "tier", "tier", "team", "zone", "in", "a.b/c", "-"];

const BOOLEANS = ["true", "false", "1", "0", "T", "tRuE", "", "no"];
const NUMBERS = ["0", "1", "2", "-1", "01", "+1", "abc", "", "1.5", "9223372036854775808", "0x1"];
const PARAMETERS: readonly (readonly [name: string, values: readonly string[]])[] = [
  ["limit", NUMBERS],
  ["resourceVersion", ["0", "", "abc", "-1", "00", "18446744073709551616", "1.0"]],
  ["resourceVersionMatch", ["Exact", "NotOlderThan", "exact", ""]],
  ["sendInitialEvents", BOOLEANS],
  ["allowWatchBookmarks", BOOLEANS],
  ["pretty", BOOLEANS],
  ["includeObject", ["None", "Metadata", "Object", "none", ""]],
  ["timeoutSeconds", NUMBERS],
  ["timeout", ["1s", "1h", "", "1x", "-1s", "1.5h", "1"]],
  ["continue", ["", "x", "e30", "abc%"]],
  ["Limit", ["1"]],
  ["export", ["true"]],
];

interface Asked {
  readonly path: string;
  readonly accept: string;
}

interface Answered {
  readonly status: number;
  readonly type: string | null;
  readonly warning: string | null;
  readonly body: unknown;
}

/** An answer, and the token of the next page. */
interface Read {
  readonly answer: Answered;
  readonly next: string | undefined;
}

// kube-apiserver's second page begins with the first object again if a field selector names the namespace.
const REPEATS = /metadata\.namespace/;

describe("readApi, random requests", { skip: skipWithoutOwnServer }, () => {
  let connection: OwnConnection;
  let cached: Cached;

  before(async () => {
    connection = await startOwn();
    await populate(connection.cluster);
    const { resources } = await everyResource(connection.cluster);
    const served = resources.filter(({ group, version, resource }) =>
      KINDS.some(([path, kind]) =>
        kind === resource && path === (group === "" ? `/api/${version}` : `/apis/${group}/${version}`)
      )
    );
    assert.equal(served.length, KINDS.length);
    cached = await startCached(connection.cluster, served);
  });
  after(async () => {
    await cached?.[Symbol.asyncDispose]();
    await connection?.[Symbol.asyncDispose]();
  });

  it("are answered as kube-apiserver answers them", { timeout: 120_000 }, async () => {
    const random = seededRandom(newSeed());
    const differences: string[] = [];
    for (let i = 0; i < REQUESTS; i++) {
      const asked = randomRequest(random);
      let tokens: readonly (string | undefined)[] = [undefined, undefined];
      do {
        const [expected, actual] = await Promise.all([
          fromServer(asked, tokens[0]),
          fromCache(asked, tokens[1]),
        ]);
        try {
          assert.deepEqual(actual.answer, withTextsOf(actual.answer, expected.answer));
        } catch (error) {
          differences.push(`GET ${asked.path} (Accept: ${asked.accept}): ${(error as Error).message}`);
          break;
        }
        tokens = [expected.next, actual.next];
      } while (tokens[0] !== undefined && !REPEATS.test(asked.path));
    }
    assert.deepEqual(differences, []);
  });

  async function fromServer({ path, accept }: Asked, next?: string): Promise<Read> {
    return await answered(await connection.ask(pageOf(path, next), { headers: { Accept: accept } }));
  }

  async function fromCache({ path, accept }: Asked, next?: string): Promise<Read> {
    return await answered(await cached.api.request(pageOf(path, next), { headers: { Accept: accept } }));
  }
});

function randomRequest(random: () => number): Asked {
  const chance = (probability: number) => random() < probability;
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)];
  const [root, kind, namespaces, names] = pick(KINDS);
  const isOne = chance(0.25);
  const namespace = namespaces.length > 0 && (isOne || chance(0.5)) ? `/namespaces/${pick(namespaces)}` : "";
  let path = `${root}${namespace}/${kind}${isOne ? `/${pick(names)}` : ""}`;
  if (chance(0.05)) path += pick(["/", "/x", "x", "?"]);
  else if (isOne && chance(0.2)) path += pick(["/status", "/scale", "/none"]);

  const query: [name: string, value: string][] = [];
  const rarely = pick([0, 0.02, 0.2]);
  for (const [name, values] of PARAMETERS) {
    if (chance(rarely)) query.push([name, pick(values)]);
  }
  if (chance(0.3)) query.unshift(["limit", pick(["1", "2", "3"])]);
  if (chance(0.4)) query.push(["labelSelector", list(() => labelTerm(pick, chance))]);
  if (chance(0.3)) {
    query.push([
      "fieldSelector",
      list(() => pick(FIELDS) + pick(["=", "==", "!=", "=", "!=", ""]) + pick(VALUES)),
    ]);
  }
  const parameters = query.map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
  if (chance(0.1)) {
    parameters.push(
      pick(["limit", "limit=%zz", "limit=1;x", "&&", "=", "?limit=1", "limit=3&limit=x", "%6cimit=2", "_"]),
    );
  }
  if (parameters.length > 0) path += `?${parameters.join("&")}`;
  return { path, accept: chance(0.4) ? "application/json" : list(clause) };

  function list(one: () => string): string {
    return Array.from({ length: pick([1, 1, 2, 3]) }, one).join(",") + (chance(0.1) ? "," : "");
  }

  function clause(): string {
    const media = pick(["application/json", "application/json", "*/*", "application/*", "text/html"]);
    const parameters = [`as=${pick(AS)}`, `v=${pick(["v1", "v1", "v1", "v1beta1", "v2"])}`, "g=meta.k8s.io"];
    const given = chance(0.3) ? [] : parameters.filter(() => chance(0.95));
    if (chance(0.2)) given.push(`q=${pick(["0", "0.5", "1", "x", "2"])}`);
    return [media, ...given].join(pick([";", "; "]));
  }
}

function labelTerm(pick: <T>(from: readonly T[]) => T, chance: (probability: number) => boolean): string {
  const space = () => pick(["", "", " "]);
  const key = pick(LABELS);
  if (chance(0.2)) return pick(["", "!", "! "]) + key;
  if (chance(0.4)) {
    const values = Array.from({ length: pick([0, 1, 2, 3]) }, () => space() + pick(VALUES)).join(",");
    return `${key} ${pick(["in", "notin", "IN"])}${space()}(${values}${pick([")", ")", ""])}`;
  }
  return key + space() + pick(["=", "==", "!=", "=", "!=", "<", "==="]) + space() + pick(VALUES);
}

function pageOf(path: string, next: string | undefined): string {
  if (next === undefined) return path;
  const [resource, query] = path.split("?");
  const first = query.split("&").filter((parameter) => !/^(?:continue|resourceVersion)/.test(parameter));
  return `${resource}?${[...first, `continue=${encodeURIComponent(next)}`].join("&")}`;
}

async function answered(response: Response): Promise<Read> {
  const text = await response.text();
  const type = response.headers.get("Content-Type");
  const json = type?.includes("json") ? JSON.parse(text) : undefined;
  const body = json === undefined ? text : compared(json);
  // Whether it is indented.
  const lines = text.trim().split("\n").length > 1;
  const answer = {
    status: response.status,
    type,
    warning: response.headers.get("Warning"),
    body: [lines, body],
  };
  return { answer, next: json?.metadata?.continue || undefined };
}

/** A body without what differs from one moment to the next, and what docs/fidelity.md lists. */
function compared(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(compared);
  if (typeof value !== "object" || value === null) return value;
  const all: Record<string, unknown> = {};
  for (const [name, member] of Object.entries(value)) {
    if (name === "description" && "priority" in value) continue;
    if (name === "continue") all[name] = member !== "";
    else if (
      name === "metadata" && !("uid" in (member as object)) && "resourceVersion" in (member as object)
    ) {
      all[name] = compared({ ...member as object, resourceVersion: "" });
    } else if (name === "cells") {
      all[name] = (member as unknown[]).map((cell) => typeof cell === "string" ? withoutAges(cell) : cell);
    } // Some empty Tables of kube-apiserver have `null` for rows.
    else if (name === "rows") all[name] = compared(member ?? []);
    else all[name] = compared(member);
  }
  return all;
}

function withoutAges(cell: string): string {
  return cell.replace(/\b(?:[0-9]+[smhdy])+\b/g, "<age>");
}

/**
 * What is expected of the cache. The texts of refused selectors and media types are this library's. What an
 * object cannot be converted to is refused before a malformed token, and in all groups alike.
 */
function withTextsOf(actual: Answered, expected: Answered): Answered {
  const [, own] = actual.body as [boolean, { message?: string }];
  const [lines, body] = expected.body as [boolean, { message?: string }];
  const message = own?.message ?? "";
  if (isOlderForm(actual, expected)) return actual;
  if (/^you requested Partial|^Unable to convert to Table/.test(message) && expected.status >= 400) {
    return actual;
  }
  const isOwn = /^Cannot use the (?:label|field) selector|^406: |^only the following media types/;
  if (actual.status !== expected.status || !isOwn.test(message)) return expected;
  return { ...expected, body: [lines, { ...body, message }] };
}

/** Whether the cache answers as kube-apiserver up to 1.37, and kube-apiserver as since 1.38. */
function isOlderForm(actual: Answered, expected: Answered): boolean {
  const [, own] = actual.body as [boolean, string | { message?: string }];
  const { message = "" } = (expected.body as [boolean, { message?: string }])[1];
  if (typeof own === "string") {
    return own === `${message}\n` && own === "404 page not found\n" && actual.status === expected.status;
  }
  return actual.status === 500 && expected.status === 422 && message.endsWith(` is invalid: ${own.message}`);
}
