/** Faults of the decoders of watches and lists. */

import type { SuiteMutation } from "../mutant.ts";

export const WATCH_FAULTS: readonly SuiteMutation[] = [];
