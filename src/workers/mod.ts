/**
 * The cache in Cloudflare Workers: a Durable Object that follows a resource, and keeps it in its SQLite
 * database.
 *
 * @module
 */

export { contentOf } from "./content_of.ts";
export { DiskObjects, type DiskObjectsOptions } from "./disk_objects.ts";
export { type DurableObjectContext, ReflectorObject, type ReflectorSettings } from "./reflector_object.ts";
export type { SqlDatabase, SqlStorage, SqlValue } from "./sql_database.ts";
export { upgradeInWorkers } from "./upgrade_in_workers.ts";
