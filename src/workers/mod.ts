/**
 * The cache in Cloudflare Workers: the objects of an informer in the SQLite database of a Durable Object.
 *
 * @module
 */

export { DiskObjects, type DiskObjectsOptions } from "./disk_objects.ts";
export type { SqlDatabase, SqlValue } from "./sql_database.ts";
export { upgradeInWorkers } from "./upgrade_in_workers.ts";
