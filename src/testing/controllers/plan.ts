/** Plans of simulated worlds, made from their seeds beforehand, so that parts of them can be left out. */

import { seededRandom } from "../seeded_random.ts";

export type TimedStep = { readonly atMs: number } & TimedEvent;

type TimedEvent =
  /** A user changes something. */
  | { readonly kind: "act"; readonly name: string; readonly seed: number }
  /**
   * A copy of the program dies and is started again: on an API server that is behind, if `lagMs` is not 0.
   */
  | { readonly kind: "kill"; readonly copy: number; readonly forMs: number; readonly lagMs: number }
  /** Nothing of a copy runs. */
  | { readonly kind: "freeze"; readonly copy: number; readonly forMs: number }
  /** The watches of a copy are late; `isLost`: late events never come, and the server has forgotten them. */
  | { readonly kind: "delay events"; readonly copy: number; readonly forMs: number; readonly isLost: boolean }
  /** The server forgets its history: watches from before end with 410. */
  | { readonly kind: "compact" }
  /** Every watch breaks, and for a while nothing listens at the server's address. */
  | { readonly kind: "server away"; readonly forMs: number };

export interface WriteFault {
  readonly kind: "write";
  /** The number of the write, from 1. */
  readonly nth: number;
  readonly fault:
    | "die before"
    | "die after"
    | "lose request"
    | "lose answer"
    | "refuse"
    | "meddle"
    | "delay";
  readonly status: number;
  readonly delayMs: number;
}

export type Step = TimedStep | WriteFault;

export interface Plan {
  readonly seed: number;
  /** How many copies of the program run; one of two leads. */
  readonly copies: 1 | 2;
  /** Whether the API server streams initial lists; if not, lists come from its cache, which may be behind. */
  readonly streamsLists: boolean;
  readonly steps: readonly Step[];
}

const WRITE_FAULTS = [
  "die before",
  "die after",
  "die after",
  "lose request",
  "lose answer",
  "lose answer",
  "refuse",
  "meddle",
  "delay",
] as const;

const STATUSES = [409, 409, 429, 500, 503, 504];

export function newPlan(seed: number, acts: readonly string[]): Plan {
  const random = seededRandom(seed);
  const below = (n: number) => Math.floor(random() * n);
  const copies = random() < 0.3 ? 2 : 1;
  const streamsLists = random() < 0.5;
  const steps: Step[] = [];
  let atMs = 0;
  for (let left = 5 + below(12); left > 0; left--) {
    // Changes that come together are seen as one, or in part.
    if (random() < 0.6) atMs += random() < 0.5 ? below(50) : below(6_000);
    steps.push({ kind: "act", atMs, name: acts[below(acts.length)], seed: below(2 ** 31) });
  }
  const endMs = atMs + 3_000;
  // Most happens around changes.
  const time = () => {
    const near = steps[below(steps.length)];
    return random() < 0.7 && "atMs" in near ? Math.max(near.atMs + below(60) - 20, 0) : below(endMs);
  };
  for (let left = 1 + below(6); left > 0; left--) {
    const at = { atMs: time() };
    const copy = below(copies);
    switch (below(8)) {
      case 0:
      case 1:
      case 2:
        steps.push({
          ...at,
          kind: "kill",
          copy,
          forMs: below(5_000),
          lagMs: random() < 0.6 ? below(20_000) : 0,
        });
        break;
      case 3:
        steps.push({ ...at, kind: "freeze", copy, forMs: below(30_000) });
        break;
      case 4:
      case 5:
        steps.push({ ...at, kind: "delay events", copy, forMs: below(12_000), isLost: random() < 0.5 });
        break;
      case 6:
      case 7: {
        // Changes of an object meanwhile look like one change, if the server does not know the steps any
        // more.
        const forMs = random() < 0.5 ? 0 : below(8_000);
        steps.push({ ...at, kind: "server away", forMs });
        if (random() < 0.7) steps.push({ kind: "compact", atMs: at.atMs + Math.max(forMs, 1_000) - 1 });
        break;
      }
    }
  }
  for (let left = 1 + below(4); left > 0; left--) {
    steps.push({
      kind: "write",
      nth: 1 + below(16),
      fault: WRITE_FAULTS[below(WRITE_FAULTS.length)],
      status: STATUSES[below(STATUSES.length)],
      // A request on its way for longer may arrive when another leads: leases leave five seconds.
      delayMs: below(4_500),
    });
  }
  return { seed, copies, streamsLists, steps };
}
