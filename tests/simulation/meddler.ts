/**
 * Actions of a program during the long work of its informer.
 * @module
 */

import {
  deletionHandlingMetaNamespaceKey,
  InformerStateError,
  type KeyFunc,
  type SharedIndexInformer,
} from "@listwatch/cache";
import { nextTurn } from "../../src/util/clock.ts";
import { type SimObject, stateOf } from "./cluster_model.ts";
import type { HandlerConfig } from "./handler_probe.ts";
import type { SeededRandom } from "./seeded_random.ts";

/** What a meddler needs. */
export interface MeddlerOptions {
  readonly random: SeededRandom;
  readonly informer: () => SharedIndexInformer<SimObject, string>;
  readonly addHandler: (config: HandlerConfig) => void;
  readonly violate: (text: string) => void;
}

/** The maximum number of its actions. */
const MOST_ACTS = 8;
const CHANCE = 0.04;

/**
 * Adds indices, in one turn and in several, and handlers, a few turns of the event loop after the informer
 * computed the key of an object: by then a list that is stored with a turn per object is half stored.
 */
export class Meddler {
  readonly #options: MeddlerOptions;
  /** The indices that were added. */
  readonly #added: string[] = [];
  #acts = 0;
  #names = 0;

  constructor(options: MeddlerOptions) {
    this.#options = options;
  }

  /** The informer's key function. */
  readonly keyFunc: KeyFunc = (object) => {
    const { random } = this.#options;
    if (this.#acts < MOST_ACTS && random.chance(CHANCE)) {
      this.#acts++;
      this.#actIn(random.int(1, 12));
    }
    return deletionHandlingMetaNamespaceKey(object);
  };

  /** Checks the indices that it added against what is stored. */
  check(): void {
    const { informer, violate } = this.#options;
    const { indexer } = informer();
    for (const name of this.#added) {
      for (const object of indexer.list()) {
        for (const value of valuesOf(object)) {
          // What is stored as text may be another object each time that it is read.
          if (!indexer.byIndex(name, value).some((one) => stateOf(one) === stateOf(object))) {
            violate(`index ${name}, which was added late, lacks ${object.metadata.name} under ${value}`);
          }
        }
      }
      const wanted = new Set(indexer.list().flatMap(valuesOf));
      const values = indexer.listIndexFuncValues(name);
      if (values.length !== wanted.size) {
        violate(`index ${name}, which was added late, has ${values.length} values, not ${wanted.size}`);
      }
    }
  }

  #actIn(turns: number): void {
    nextTurn().then(() => turns > 1 ? this.#actIn(turns - 1) : this.#act());
  }

  #act(): void {
    const { random, informer, addHandler, violate } = this.#options;
    if (informer().isStopped()) return;
    const name = `late-${++this.#names}`;
    const roll = random.next();
    if (roll < 0.3) {
      informer().addIndexers({ [name]: valuesOf });
      this.#added.push(name);
    } else if (roll < 0.6) {
      informer().addIndexersInTurns({ [name]: valuesOf }).then(
        () => this.#added.push(name),
        (error) => {
          if (!(error instanceof InformerStateError)) violate(`index ${name} cannot be added: ${error}`);
        },
      );
    } else {
      addHandler({
        manner: random.pick(["quick", "async", "slow"] as const),
        delayMs: random.int(1, 300),
        mailboxLimit: random.pick([undefined, 1, 3]),
        resyncPeriodMs: 0,
        reads: random.pick(["everything", "metadata"] as const),
      });
    }
  }
}

function valuesOf({ metadata }: SimObject): string[] {
  return [metadata.name, `in ${metadata.namespace}`];
}
