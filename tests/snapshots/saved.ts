/**
 * Saves and loads of snapshot storages, for their tests.
 * @module
 */

import assert from "node:assert/strict";
import {
  type SnapshotChange,
  type SnapshotEntry,
  type SnapshotIdentity,
  type SnapshotPut,
  SnapshotRefusedError,
  type SnapshotStorage,
} from "@listwatch/cache/informer";

/** What the snapshots of these tests are of. */
export const PODS: SnapshotIdentity = { resource: "v1/pods", source: "https://cluster.example" };

/** A content: the version, and the texts of the objects by their keys. */
export interface Content {
  readonly resourceVersion: string;
  readonly savedAtMs: number;
  readonly watchedVersion: string | undefined;
  readonly needsList: boolean;
  readonly clusterUid: string | undefined;
  readonly texts: Readonly<Record<string, string>>;
}

/** An object as an informer saves it. */
export function put(
  key: string,
  fields: { version?: string; labels?: Record<string, string>; text?: string } = {},
): SnapshotPut {
  const { version = "1", labels = { app: "web" }, text = "x" } = fields;
  const slash = key.indexOf("/");
  const namespace = slash < 0 ? undefined : key.slice(0, slash);
  const metadata = {
    name: key.slice(slash + 1),
    namespace,
    uid: `uid of ${key}`,
    resourceVersion: version,
    labels,
  };
  const object = { apiVersion: "v1", kind: "Pod", metadata, spec: { text } };
  return {
    key,
    held: object,
    head: { apiVersion: "v1", kind: "Pod", metadata } as SnapshotPut["head"],
    json: () => JSON.stringify(object),
  };
}

/** A change; one that replaces nothing by default. */
export function change(version: number, fields: Partial<SnapshotChange> = {}): SnapshotChange {
  return {
    resourceVersion: String(version),
    ...(version % 2 === 0 && { watchedVersion: String(version - 1) }),
    savedAtMs: 1_000_000 + version,
    needsList: false,
    ...(version % 3 > 0 && { clusterUid: `uid of ${version % 3}` }),
    replaces: false,
    puts: [],
    deletes: [],
    ...fields,
  };
}

/** What a content is after a change. */
export function changed(before: Content | undefined, after: SnapshotChange): Content {
  const texts = new Map(Object.entries(after.replaces ? {} : before?.texts ?? {}));
  for (const key of after.deletes) texts.delete(key);
  for (const one of after.puts) texts.set(one.key, one.json());
  return {
    resourceVersion: after.resourceVersion,
    watchedVersion: after.watchedVersion,
    savedAtMs: after.savedAtMs,
    needsList: after.needsList,
    clusterUid: after.clusterUid,
    texts: sorted(texts),
  };
}

/** Loads all of a snapshot; `undefined` if there is none. Each head must be that of its text. */
export async function loadContent(
  storage: SnapshotStorage,
  identity: SnapshotIdentity = PODS,
): Promise<Content | undefined> {
  const loaded = await storage.load(identity);
  if (loaded === undefined) return undefined;
  const texts = new Map<string, string>();
  for await (const batch of loaded.entries()) {
    for (const entry of batch) {
      texts.set(entry.key, entry.json);
      checkHead(entry);
    }
  }
  assert.equal(texts.size, loaded.count);
  const { resourceVersion, watchedVersion, savedAtMs, needsList, clusterUid } = loaded;
  return { resourceVersion, watchedVersion, savedAtMs, needsList, clusterUid, texts: sorted(texts) };
}

/** The loaded content, or the reason of the refusal. */
export async function loadOrRefusal(
  storage: SnapshotStorage,
  identity: SnapshotIdentity = PODS,
): Promise<Content | string | undefined> {
  try {
    return await loadContent(storage, identity);
  } catch (error) {
    assert.ok(error instanceof SnapshotRefusedError, `${error instanceof Error ? error.stack : error}`);
    return error.reason;
  }
}

function checkHead({ json, head }: SnapshotEntry): void {
  if (head === undefined) return;
  const { apiVersion, kind, metadata } = JSON.parse(json);
  assert.deepEqual({ apiVersion: head.apiVersion, kind: head.kind }, { apiVersion, kind });
  const { name, namespace, uid, resourceVersion = "", labels } = metadata;
  assert.deepEqual({ ...head.metadata }, { name, namespace, uid, resourceVersion, labels });
}

function sorted(texts: ReadonlyMap<string, string>): Record<string, string> {
  return Object.fromEntries(Array.from(texts).sort(([a], [b]) => a < b ? -1 : 1));
}
