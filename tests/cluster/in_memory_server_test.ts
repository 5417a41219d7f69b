import { InMemoryApiServer, seededRandom } from "@listwatch/cache/testing";
import assert from "node:assert/strict";
import process from "node:process";
import { after, before, describe, it } from "node:test";
import { widgetDefinition } from "../widgets.ts";
import { connect, type TestConnection } from "./connection.ts";
import { pause } from "./eventually.ts";
import { type Json, type Kind, KINDS, Random, randomWrite, type Write } from "./random_writes.ts";
import { defineWidgets } from "./widgets.ts";

const REQUESTS = 40;
const STATUS = { subresources: { status: {} } };
const DEFINITIONS = "apiextensions.k8s.io/v1/customresourcedefinitions";

/** Sends a request to one of the servers. */
type Send = (path: string, init: RequestInit) => Promise<Response>;

/** One of the servers, and what it has answered so far: numbers stand for its uids and versions. */
class Side implements Disposable {
  readonly last = new Map<string, Json>();
  readonly versions = new Map<string, string[]>();
  readonly #numbers = new Map<string, number>();
  readonly #send: Send;
  readonly #stop = new AbortController();
  readonly #watches: Json[][] = [];
  readonly #hasVersionOfDelete: boolean;

  constructor(send: Send, { hasVersionOfDelete }: { readonly hasVersionOfDelete: boolean }) {
    this.#send = send;
    this.#hasVersionOfDelete = hasVersionOfDelete;
  }

  async request({ method, path, type, isDryRun, body }: Write, known: string): Promise<Json> {
    const sent = body(this);
    const response = await this.#send(path, {
      method,
      headers: { "Content-Type": type ?? "application/json", "User-Agent": "writer/1" },
      ...(sent !== undefined && { body: JSON.stringify(sent) }),
    });
    const document = await response.json();
    const { metadata = {}, kind } = document;
    if (response.ok && !isDryRun && kind !== "Status" && metadata.name !== undefined) {
      const of = `${known}/${metadata.name}`;
      this.last.set(of, document);
      const versions = this.versions.get(of) ?? [];
      if (versions.at(-1) !== metadata.resourceVersion) versions.push(metadata.resourceVersion);
      this.versions.set(of, versions);
    }
    // A write that removes the last finalizer deletes the object.
    const isGone = metadata.deletionTimestamp !== undefined && metadata.finalizers === undefined;
    const compared = isGone && this.#hasVersionOfDelete
      ? { ...document, metadata: { ...metadata, resourceVersion: "of the delete" } }
      : document;
    return { status: response.status, ...this.#comparable(compared, isDryRun) };
  }

  async watch(path: string): Promise<void> {
    const { body } = await this.#send(path, { signal: this.#stop.signal });
    const events: Json[] = [];
    const read = async () => {
      let rest = "";
      for await (const text of body!.pipeThrough(new TextDecoderStream())) {
        const lines = (rest + text).split("\n");
        rest = lines.pop()!;
        for (const line of lines) events.push(JSON.parse(line));
      }
    };
    this.#watches.push(events);
    read().catch(() => {}); // until the end of the test
  }

  /** The events of all watches, once nothing comes any more. */
  async watched(): Promise<Json[][]> {
    const count = () => this.#watches.reduce((sum, events) => sum + events.length, 0);
    for (let before = -1; before !== count();) {
      before = count();
      // deno-lint-ignore no-await-in-loop -- until nothing comes
      await pause(300);
    }
    return this.#watches.map((events) =>
      events.filter(({ type, object }) => type !== "BOOKMARK" || object.metadata.annotations).map((
        { type, object },
      ) => type === "BOOKMARK" ? { type } : { type, ...this.#comparable(object, false) })
    );
  }

  [Symbol.dispose](): void {
    this.#stop.abort();
  }

  #comparable(document: Json, isDryRun: boolean): Json {
    if (document.kind === "Status") {
      const { status, reason, code, details } = document;
      // A real server names some causes twice.
      const causes = new Set<string>(details?.causes?.map(({ reason, field }: Json) => `${reason} ${field}`));
      return { status, reason, code, causes: [...causes].sort() };
    }
    if (Array.isArray(document.items)) {
      return { items: document.items.map((item: Json) => this.#comparable(item, false)) };
    }
    const { metadata: { uid, resourceVersion, managedFields: _, ...metadata }, ...object } = structuredClone(
      document,
    );
    for (const time of ["creationTimestamp", "deletionTimestamp"]) {
      if (metadata[time] !== undefined) metadata[time] = "a time";
    }
    return {
      uid: isDryRun ? "" : this.#numberOf(uid),
      resourceVersion: isDryRun ? "" : this.#numberOf(resourceVersion),
      metadata,
      ...withoutDefaults(object),
    };
  }

  #numberOf(text: string): number {
    const number = this.#numbers.get(text) ?? this.#numbers.size;
    this.#numbers.set(text, number);
    return number;
  }
}

function withoutDefaults(
  { kind: _kind, apiVersion: _apiVersion, spec = {}, status = {}, ...rest }: Json,
): Json {
  for (const name of ["strategy", "revisionHistoryLimit", "progressDeadlineSeconds"]) delete spec[name];
  if (spec.template !== undefined) {
    const { containers } = spec.template.spec;
    spec.template.spec = { containers: containers.map(({ name, image }: Json) => ({ name, image })) };
  }
  for (const condition of status.conditions ?? []) {
    for (const time of ["lastTransitionTime", "lastUpdateTime"]) delete condition[time];
  }
  return { ...rest, spec, status };
}

describe("InMemoryApiServer, random writes", () => {
  let connection: TestConnection;
  let group: string;
  const seed = Number(process.env.LISTWATCH_PROPERTY_SEED ?? 1);

  before(async () => {
    connection = await connect();
    group = `${connection.uniqueName("writes")}.example.com`;
    await defineWidgets(connection, group, STATUS);
  });
  after(() => connection[Symbol.asyncDispose]());

  for (const kind of KINDS) {
    for (const applies of [false, true]) {
      it(`of ${kind.resource}${applies ? ", applied" : ""}: answers and watches are a real server's`, async () => {
        const random = new Random(seededRandom(seed + KINDS.indexOf(kind) * 2 + Number(applies)));
        const served = kind.isCustom ? { ...kind, apiVersion: `${group}/v1` } : kind;
        await compare(connection, served, { random, applies });
      });
    }
  }
});

async function compare(
  connection: TestConnection,
  kind: Kind,
  { random, applies }: { readonly random: Random; readonly applies: boolean },
): Promise<void> {
  using server = new InMemoryApiServer({ requireNamespaces: true });
  const [group] = kind.apiVersion.split("/");
  if (kind.isCustom) server.create(DEFINITIONS, widgetDefinition({ group, version: STATUS }));
  const [namespace] = await connection.createNamespaces("writes");
  server.create("v1/namespaces", { metadata: { name: namespace } });
  // Since 1.38 the answer to a write that deletes has the version of the delete, up to 1.37 the one before.
  const { minor } = await (await connection.ask("/version")).json();
  const answers = { hasVersionOfDelete: Number.parseInt(minor, 10) >= 38 };
  using ours = new Side((path, init) => server.fetch(`http://in-memory${path}`, init), answers);
  using theirs = new Side((path, init) => connection.ask(path, init), answers);
  const prefix = kind.apiVersion.includes("/") ? "apis" : "api";
  const root = `/${prefix}/${kind.apiVersion}/namespaces/${namespace}/${kind.resource}`;
  const both = async <T>(
    ask: (side: Side) => Promise<T>,
  ): Promise<[T, T]> => [await ask(ours), await ask(theirs)];
  const initial = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
  const selections = [
    "",
    "&labelSelector=app%3Dweb",
    `&fieldSelector=${encodeURIComponent(kind.fieldSelector)}`,
  ];
  for (const selection of selections) {
    // deno-lint-ignore no-await-in-loop -- in the same order on both servers
    await both((side) => side.watch(`${root}?watch=1&${initial}${selection}`));
  }
  const asked: string[] = [];
  for (let i = 0; i < REQUESTS; i++) {
    const write = randomWrite(random, kind, { root, applies });
    asked.push(`${write.method} ${write.path.slice(root.length)} ${JSON.stringify(write.body(ours))}`);
    // deno-lint-ignore no-await-in-loop -- one after the other
    const [inMemory, real] = await both((side) => side.request(write, root));
    assert.deepEqual(inMemory, real, asked.slice(-5).join("\n"));
  }
  const [inMemory, real] = await both((side) => side.watched());
  assert.deepEqual(inMemory, real);
}
