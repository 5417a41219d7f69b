/** Faults of snapshots. */

import type { SuiteMutation } from "../mutant.ts";

export const SNAPSHOTS_FAULTS: readonly SuiteMutation[] = [
  {
    name: "snapshots: a change that could not be saved is missing in the next save",
    file: "src/snapshots/chunked_storage.ts",
    find: "    this.#manifest = undefined;\n    const identity",
    replace: "    const identity",
    test: "tests/snapshots/chunked_storage_test.ts",
  },
  {
    name: "snapshots: the chunks of the manifest before are removed, which a reader may still see",
    file: "src/snapshots/chunked_storage.ts",
    find: "!named.has(name) && !unnamed.includes(name)",
    replace: "!named.has(name)",
    test: "tests/snapshots/chunked_storage_test.ts",
  },
  {
    name: "snapshots: records are never joined, however many there are",
    file: "src/snapshots/chunked_storage.ts",
    find: "since.length + 1 < MAX_RECORDS && sinceLength",
    replace: "sinceLength",
    test: "tests/snapshots/chunked_storage_test.ts",
  },
  {
    name: "snapshots: records are joined by their number only",
    file: "src/snapshots/chunked_storage.ts",
    find: "since.length + 1 < MAX_RECORDS && sinceLength <= base.length",
    replace: "since.length + 1 < MAX_RECORDS",
    test: "tests/snapshots/chunked_storage_test.ts",
  },
  {
    name: "snapshots: all chunks of a save are in memory at a time",
    file: "src/snapshots/chunked_storage.ts",
    find: "if (chunks.length === CHUNKS_AT_ONCE) await put();",
    replace: "",
    test: "tests/snapshots/chunked_storage_test.ts",
  },
  {
    name: "snapshots: each save lists all chunks",
    file: "src/snapshots/chunked_storage.ts",
    find: "this.#hasSwept ? undefined : await",
    replace: "await",
    test: "tests/snapshots/chunked_storage_test.ts",
  },
  {
    name: "snapshots: the first save after a restart fails in Deno KV",
    file: "src/snapshots/deno_kv_snapshot.ts",
    find: "      known = versionstamp;\n",
    replace: "",
    test: "tests/snapshots/deno_kv_snapshot_test.ts",
  },
  {
    name: "snapshots: an informer replaces what another one has saved in Deno KV",
    file: "src/snapshots/deno_kv_snapshot.ts",
    find: "kv.atomic().check({ key, versionstamp: known });",
    replace: "kv.atomic();",
    test: "tests/snapshots/deno_kv_snapshot_test.ts",
  },
  {
    name: "chunks: a start has the first objects of a snapshot only",
    file: "src/snapshots/chunked_storage.ts",
    find: "    yield batch;\n    batch = [];\n",
    replace: "    batch = [];\n",
    test: "tests/snapshots/chunked_storage_test.ts",
  },
  {
    name: "chunks: objects come back without their heads",
    file: "src/snapshots/chunked_storage.ts",
    find: "batch.push({ key, head: head as ObjectHead, json })",
    replace: "batch.push({ key, head: undefined, json })",
    test: "tests/snapshots/chunked_storage_test.ts",
  },
  {
    name: "chunks: a line of a record may be anything",
    file: "src/snapshots/chunked_storage.ts",
    find: '        if (!Array.isArray(value)) throw corrupt("a line of a record in it is no list");\n',
    replace: "",
    test: "tests/snapshots/chunked_storage_test.ts",
  },
  {
    name: "snapshots: what is no version is taken for one",
    file: "src/snapshots/saved_values.ts",
    find: '  throw corrupt("a version in it is none");\n',
    replace: "  return versionOf(version);\n",
    test: "tests/snapshots/saved_values_test.ts",
  },
];
