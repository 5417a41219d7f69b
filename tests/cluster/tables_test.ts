import { type KubernetesObject, parseResource } from "@listwatch/cache";
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import process from "node:process";
import { after, before, describe, it } from "node:test";
import { discover, type DiscoveredResource } from "../../src/client/discovery.ts";
import { servedResource } from "../../src/cli/cluster/select_resources.ts";
import { groupVersion } from "../../src/meta/resource.ts";
import { fieldRules, selectableFields } from "../../src/protocol/selectable_fields.ts";
import { type Cached, startCached } from "./cached.ts";
import { connect, TEST_LABEL, type TestConnection } from "./connection.ts";
import { eventually } from "./eventually.ts";
import { type RichObject, richObjects } from "./rich_objects.ts";

const TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io";

// The API server itself writes these, so they have no label of the test's.
const WRITTEN_BY_SERVER = ["apiservices.apiregistration.k8s.io", "ipaddresses.networking.k8s.io"];

// The groups whose kinds people list by hand: docs/fidelity.md. All others have names and ages.
const LISTED_BY_HAND: ReadonlySet<string> = new Set([
  "",
  "apps",
  "autoscaling",
  "batch",
  "networking.k8s.io",
  "policy",
  "rbac.authorization.k8s.io",
  "storage.k8s.io",
]);

// Fields of one kind or another, and of none.
const FIELDS = [
  "metadata.name",
  "metadata.namespace",
  "metadata.uid",
  "name",
  "type",
  "reason",
  "source",
  "spec.nodeName",
  "spec.host",
  "spec.signerName",
  "status.phase",
  "status.replicas",
  "status.successful",
  'no"thing',
];

interface Table {
  readonly columnDefinitions: readonly Record<string, unknown>[] | null;
  readonly rows: readonly Row[];
}

interface Row {
  readonly cells: readonly unknown[];
  readonly conditions?: unknown;
  readonly object: KubernetesObject;
}

describe("readApi, every kind of a real API server", () => {
  let connection: TestConnection;
  let cached: Cached;
  let resources: DiscoveredResource[];
  let namespace: string;

  before(async () => {
    connection = await connect();
    [namespace] = await connection.createNamespaces("tables");
    const objects = richObjects(namespace, connection.uniqueName("tables"));
    const discovered = (await discover(connection.cluster)).resources;
    for (const object of objects) {
      await create(object, discovered);
    }
    // Custom resources of other tests may be there.
    const groups = new Set(objects.map(({ resource }) => parseResource(resource).group));
    resources = discovered.filter(({ verbs, group }) =>
      verbs.includes("list") && verbs.includes("watch") &&
      (groups.has(group) || !group.includes("example.com"))
    );
    cached = await startCached(connection.cluster, resources.map(servedResource));
  });
  after(async () => {
    await cached?.[Symbol.asyncDispose]();
    await connection?.[Symbol.asyncDispose]();
  });

  it("has the server's columns, cells and conditions in lists", { timeout: 60_000 }, async () => {
    const differences = await ofEach(async (resource) => {
      await eventually(async () => {
        const [expected, actual] = await both(resource, collection(resource), listQuery(resource));
        assert.ok(expected.rows.length > 0, `no object of ${name(resource)} was made`);
        assertTables(resource, actual, expected);
      }, { timeoutMs: 3_000 });
    });
    assert.deepEqual(differences, []);
  });

  it("has the server's columns and cells of one object", { timeout: 60_000 }, async () => {
    const differences = await ofEach(async (resource) => {
      const list = await table(fromServer, collection(resource), listQuery(resource));
      for (const { object } of list.rows) {
        const { name, namespace } = object.metadata!;
        const path = `${collection(resource, namespace)}/${encodeURIComponent(name!)}`;
        await eventually(async () => {
          const [expected, actual] = await both(resource, path, {});
          assertTables(resource, actual, expected);
        }, { timeoutMs: 3_000 });
      }
    });
    assert.deepEqual(differences, []);
  });

  it("has the server's columns and cells in watches", { timeout: 60_000 }, async () => {
    const differences = await ofEach(async (resource) => {
      await eventually(async () => {
        const [expected, actual] = await Promise.all([
          watch(fromServer, resource),
          watch(fromCache, resource),
        ]);
        assertTables(resource, actual, expected);
      }, { timeoutMs: 3_000 });
    });
    assert.deepEqual(differences, []);
  });

  it("has the server's field selectors, and its errors for others", { timeout: 60_000 }, async () => {
    const differences = await ofEach(async (resource) => {
      const list = await table(fromServer, collection(resource), {
        ...listQuery(resource),
        includeObject: "Object",
      });
      const fields = fieldRules(servedResource(resource)).selectableFields;
      const valueOf = selectableFields(resource);
      for (const field of new Set([...FIELDS, ...fields])) {
        const values = new Set(["none", ...list.rows.map(({ object }) => valueOf(object)(field) ?? "")]);
        for (const value of Array.from(values).slice(0, fields.includes(field) ? 6 : 1)) {
          for (const operator of value === "none" ? ["="] : ["=", "!="]) {
            const query = new URLSearchParams({
              ...listQuery(resource),
              fieldSelector: `${field}${operator}${value.replace(/[\\,=]/g, "\\$&")}`,
            });
            const [expected, actual] = await Promise.all(
              [fromServer, fromCache].map(async (from) => {
                const response = await from(`${collection(resource)}?${query}`);
                // Some empty Tables of kube-apiserver have `null` for rows.
                const { code, message, rows } = await response.json();
                return {
                  status: response.status,
                  code,
                  message,
                  // kube-apiserver sorts some kinds by when they came.
                  keys: code ? undefined : (rows ?? []).map(key).sort(),
                };
              }),
            );
            assert.deepEqual(actual, expected, query.get("fieldSelector")!);
          }
        }
      }
    });
    assert.deepEqual(differences, []);
  });

  it("is recorded for the tests without a server", {
    skip: process.env.LISTWATCH_RECORD_TABLES ? false : "LISTWATCH_RECORD_TABLES names no file",
  }, async () => {
    const lines: string[] = [];
    for (const resource of resources) {
      const query = { ...listQuery(resource), includeObject: "Object" };
      if (WRITTEN_BY_SERVER.includes(name(resource))) Object.assign(query, { limit: "2" });
      const { columnDefinitions, rows } = await table(fromServer, collection(resource), query);
      if (LISTED_BY_HAND.has(resource.group)) lines.push(recorded(resource, columnDefinitions!, rows));
    }
    const text = lines.sort().join("\n").replaceAll(connection.labels[TEST_LABEL], "x");
    await writeFile(process.env.LISTWATCH_RECORD_TABLES!, HEADER + text + "\n`;\n");
  });

  /** Runs `check` for each kind; returns what it throws. */
  async function ofEach(check: (resource: DiscoveredResource) => Promise<void>): Promise<string[]> {
    const differences: string[] = [];
    const rest = resources.slice();
    await Promise.all(Array.from({ length: 8 }, async () => {
      for (let resource = rest.pop(); resource !== undefined; resource = rest.pop()) {
        try {
          await check(resource);
        } catch (error) {
          differences.push(`${name(resource)}: ${(error as Error).message}`);
        }
      }
    }));
    return differences;
  }

  async function create(rich: RichObject, discovered: readonly DiscoveredResource[]): Promise<void> {
    const resource = parseResource(rich.resource);
    const found = discovered.find((one) => name(one) === name(resource) && one.version === resource.version);
    assert.ok(found, `the server has no ${rich.resource}`);
    const client = connection.cluster.resource<KubernetesObject>(
      resource,
      found.namespaced ? { namespace } : {},
    );
    const { labels } = connection;
    const { name: objectName, spec, status, isDeleted } = rich;
    const metadata = {
      ...rich.metadata,
      name: objectName,
      labels: { ...labels, ...rich.metadata?.labels as Record<string, string> | undefined },
      ...(isDeleted && { finalizers: ["tables.example.com/keep"] }),
    };
    await client.create({ apiVersion: groupVersion(resource), kind: found.kind, metadata, ...spec });
    if (!found.namespaced) connection.onClose(() => client.delete(objectName));
    if (status !== undefined) {
      await connection.cluster.request(`${collection(found, namespace)}/${objectName}/status`, {
        method: "PATCH",
        headers: { "Content-Type": "application/merge-patch+json" },
        body: { status },
      });
    }
    if (isDeleted) {
      await client.delete(objectName, { gracePeriodSeconds: 0 });
      connection.onClose(() => client.patch(objectName, { metadata: { finalizers: null } }));
    }
  }

  function listQuery(resource: DiscoveredResource): Record<string, string> {
    if (WRITTEN_BY_SERVER.includes(name(resource))) return {};
    return { labelSelector: connection.labelSelector };
  }

  function fromServer(path: string, signal?: AbortSignal): Promise<Response> {
    return connection.ask(path, { headers: { Accept: TABLE }, ...(signal && { signal }) });
  }

  async function fromCache(path: string): Promise<Response> {
    return await cached.api.request(path, { headers: { Accept: TABLE } });
  }

  async function both(
    resource: DiscoveredResource,
    path: string,
    query: Record<string, string>,
  ): Promise<[Table, Table]> {
    const expected = await table(fromServer, path, query);
    assert.ok(expected.columnDefinitions, name(resource));
    return [expected, await table(fromCache, path, query)];
  }

  async function table(
    from: (path: string) => Promise<Response>,
    path: string,
    query: Record<string, string>,
  ): Promise<Table> {
    const response = await from(`${path}?${new URLSearchParams(query)}`);
    const text = await response.text();
    assert.equal(response.status, 200, text);
    return JSON.parse(text);
  }

  /** All initial events as one Table, the bookmark last. */
  async function watch(
    from: (path: string, signal?: AbortSignal) => Promise<Response>,
    resource: DiscoveredResource,
  ): Promise<Table> {
    const query = new URLSearchParams({
      ...listQuery(resource),
      watch: "1",
      sendInitialEvents: "true",
      resourceVersionMatch: "NotOlderThan",
      allowWatchBookmarks: "true",
      timeoutSeconds: "20",
    });
    const end = new AbortController();
    const response = await from(`${collection(resource)}?${query}`, end.signal);
    assert.equal(response.status, 200);
    const events: Table[] = [];
    let rest = "";
    let last: Row | undefined;
    for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
      const lines = (rest + chunk).split("\n");
      rest = lines.pop()!;
      for (const line of lines) {
        const { type, object } = JSON.parse(line);
        assert.ok(type === "ADDED" || type === "BOOKMARK", line);
        if (type === "BOOKMARK") last = object.rows[0];
        events.push(object);
      }
      if (last !== undefined) break;
    }
    end.abort();
    assert.ok(last, "the watch ended without a bookmark");
    // The order of initial events does not count.
    const rows = events.slice(0, -1).flatMap((event) => event.rows).sort((a, b) => key(a) < key(b) ? -1 : 1);
    return { columnDefinitions: events[0].columnDefinitions, rows: [...rows, { ...last, object: {} }] };
  }
});

const HEADER = `/**
 * Objects, and the columns and cells that kube-apiserver has for them in
 * Tables. Written by \`LISTWATCH_RECORD_TABLES=tests/hono/recorded_tables.ts
 * deno task test:cluster tests/cluster/tables_test.ts\`.
 * @module
 */

/** Lines of JSON, one for each resource: columns, rows with \`<age>\` for ages, object. */
export const RECORDED_TABLES: string = String.raw\`
`;

const CREATED = "2026-01-02T03:04:05Z";

function recorded(
  resource: DiscoveredResource,
  columnDefinitions: readonly Record<string, unknown>[],
  rows: readonly Row[],
): string {
  return JSON.stringify({
    resource: `${groupVersion(resource)}/${resource.resource}`,
    columns: columnDefinitions.map(({ name, type, format, priority }) => [name, type, format, priority]),
    rows: rows.map(({ cells, object }) => {
      const { namespace, name, labels, annotations, ownerReferences, ...meta } = object.metadata!;
      const times = {
        creationTimestamp: CREATED,
        ...(meta.deletionTimestamp && { deletionTimestamp: CREATED }),
      };
      return {
        cells: cells.map((cell) =>
          cell === meta.creationTimestamp
            ? CREATED
            : typeof cell === "string"
            ? cell.replace(AGE, "<age>")
            : cell
        ),
        object: { ...object, metadata: { namespace, name, labels, annotations, ownerReferences, ...times } },
      };
    }),
  });
}

/** Asserts the same columns and cells, or names and ages for kinds that people do not list by hand. */
function assertTables(resource: DiscoveredResource, actual: Table, expected: Table): void {
  if (hasNamesAndAges(resource)) expected = namesAndAges(expected);
  assert.deepEqual(columns(actual), columns(expected));
  for (const { name, description } of actual.columnDefinitions!) assert.ok(description, String(name));
  assert.deepEqual(actual.rows.map(key), expected.rows.map(key));
  for (const [i, row] of expected.rows.entries()) {
    assert.equal(actual.rows[i].cells.length, row.cells.length, key(row));
    const cells = actual.rows[i].cells.map((cell, c) => isSameAge(cell, row.cells[c]) ? row.cells[c] : cell);
    assert.deepEqual(cells, row.cells, key(row));
    assert.deepEqual(actual.rows[i].conditions, row.conditions, key(row));
  }
}

function hasNamesAndAges({ group }: DiscoveredResource): boolean {
  return !LISTED_BY_HAND.has(group) && !group.includes("example.com");
}

function namesAndAges({ rows }: Table): Table {
  return {
    columnDefinitions: [
      { name: "Name", type: "string", format: "name", priority: 0 },
      { name: "Age", type: "date", format: "", priority: 0 },
    ],
    rows: rows.map(({ object }) => {
      const { name = "", creationTimestamp } = object.metadata ?? {};
      const age = Date.now() - Date.parse(String(creationTimestamp));
      return { cells: [name, Number.isNaN(age) ? "<unknown>" : `${Math.round(age / 1_000)}s`], object };
    }).sort((a, b) => order(a) < order(b) ? -1 : 1),
  };
}

/** Sorts the bookmark, which has no name, last. */
function order(row: Row): string {
  return key(row) === "/" ? "~" : key(row);
}

// Descriptions are this library's own.
function columns({ columnDefinitions }: Table): unknown {
  return columnDefinitions!.map(({ description: _, ...column }) => column);
}

const UNIT_SECONDS: Record<string, number> = { s: 1, m: 60, h: 3_600, d: 86_400, y: 365 * 86_400 };
const AGE = /\b(?:\d+[smhdy])+\b/;

/** Whether two cells differ only by some seconds of an age. */
function isSameAge(a: unknown, b: unknown): boolean {
  if (typeof a !== "string" || typeof b !== "string" || a.replace(AGE, "") !== b.replace(AGE, "")) {
    return false;
  }
  const seconds = (text: string) => {
    let sum = 0;
    for (const [, number, unit] of (AGE.exec(text)?.[0] ?? "").matchAll(/(\d+)([smhdy])/g)) {
      sum += Number(number) * UNIT_SECONDS[unit];
    }
    return sum;
  };
  return Math.abs(seconds(a) - seconds(b)) <= 60;
}

function key({ object }: Row): string {
  return `${object.metadata?.namespace ?? ""}/${object.metadata?.name ?? ""}`;
}

function name({ group, resource }: { readonly group: string; readonly resource: string }): string {
  return group === "" ? resource : `${resource}.${group}`;
}

function collection(resource: DiscoveredResource, namespace?: string): string {
  const { group, version, resource: plural, namespaced } = resource;
  const prefix = group === "" ? `/api/${version}` : `/apis/${group}/${version}`;
  return namespaced && namespace ? `${prefix}/namespaces/${namespace}/${plural}` : `${prefix}/${plural}`;
}
