/**
 * The version that the command line tells.
 * @module
 */

/** The package's version; a test holds it equal to the one in `deno.json`. */
export const VERSION: string = "0.1.0";
