/**
 * The cache in Cloudflare Workers.
 *
 * @module
 */

export { DiskObjects, type DiskObjectsOptions } from "./disk_objects.ts";
export type { SqlDatabase, SqlValue } from "./sql_database.ts";
