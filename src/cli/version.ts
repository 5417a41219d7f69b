/**
 * The version of the command line program.
 * @module
 */

/** The package's version; a test compares it with `deno.json`. */
export const VERSION: string = "0.1.0";
