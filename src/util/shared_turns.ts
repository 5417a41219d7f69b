/** Turns of the event loop that many tasks share, and shares of them for clients. */

import { laterTurn } from "./clock.ts";
import { Deque } from "./collections.ts";
import { giveWay, Pacer, TURN_UNITS, type Turns } from "./turns.ts";

// A task that has not spent so many turns is a short one, as a page of a list.
const SHORT_TURNS = 4;

// The least cost of a step: it is awaited, and writes something.
const STEP_UNITS = 2_000;

// A step has done its work, or waits for something else, after so many microtasks.
const STEP_MICROTASKS = 10;

/** The tasks of a client that wait: those that have done little yet and the others, one of each by turns. */
class Share {
  readonly client: unknown;
  readonly #short = new Deque<() => void>();
  readonly #long = new Deque<() => void>();
  #isLongNext = false;

  constructor(client: unknown) {
    this.client = client;
  }

  get isEmpty(): boolean {
    return this.#short.length + this.#long.length === 0;
  }

  push(task: () => void, isShort: boolean): void {
    (isShort ? this.#short : this.#long).push(task);
  }

  shift(): (() => void) | undefined {
    const isLong = this.#long.length > 0 && (this.#isLongNext || this.#short.length === 0);
    this.#isLongNext = !isLong;
    return (isLong ? this.#long : this.#short).shift();
  }
}

/**
 * Gives tasks turns of the event loop, which they share until they have spent a budget of work: together they
 * delay timers and the network by that, and where hundreds take small steps, none waits for hundreds of
 * turns.
 *
 * Clients take turns, however many tasks each has. Among the tasks of a client, every second turn is for one
 * that has not done the work of a few whole turns yet: hundreds of long tasks delay no short one.
 */
export class SharedTurns {
  readonly #shares = new Map<unknown, Share>();
  /** The clients with tasks that wait, in the order of their turns. */
  readonly #order = new Deque<Share>();
  readonly #unitsPerTurn: number;
  #isTurning = false;
  /** The units spent in this turn. */
  #spentUnits = 0;

  /** @param unitsPerTurn How much work tasks may do in a turn, as they report it by `spend`. */
  constructor(unitsPerTurn: number = TURN_UNITS) {
    this.#unitsPerTurn = unitsPerTurn;
  }

  /** Whether tasks wait for their turn, or the work of this one is done. */
  get isBusy(): boolean {
    return this.#isTurning || this.#spentUnits >= this.#unitsPerTurn;
  }

  spend(units: number): void {
    // Units spent in one turn of the event loop count in no other.
    if (this.#spentUnits === 0) void laterTurn().then(() => this.#spentUnits = 0);
    this.#spentUnits += units;
  }

  /**
   * Resolves in the next turn that has room for the task of a client.
   *
   * @param spentUnits The units that the task has spent by now.
   */
  next(client?: unknown, spentUnits: number = 0): Promise<void> {
    const share = this.#shares.get(client) ?? this.#enter(client);
    const isShort = spentUnits < SHORT_TURNS * this.#unitsPerTurn;
    const turn = new Promise<void>((resolve) => share.push(resolve, isShort));
    if (!this.#isTurning) this.#turn();
    return turn;
  }

  #enter(client: unknown): Share {
    const share = new Share(client);
    this.#shares.set(client, share);
    this.#order.push(share);
    return share;
  }

  async #turn(): Promise<void> {
    this.#isTurning = true;
    while (this.#order.length > 0) {
      if (this.#spentUnits >= this.#unitsPerTurn) {
        await giveWay();
        this.#spentUnits = 0;
      }
      this.#shift()?.();
      for (let i = 0; i < STEP_MICROTASKS; i++) await undefined;
      this.spend(STEP_UNITS);
    }
    this.#isTurning = false;
  }

  /** Removes the next task of the next client. */
  #shift(): (() => void) | undefined {
    const share = this.#order.shift();
    const task = share?.shift();
    if (share?.isEmpty === false) this.#order.push(share);
    else this.#shares.delete(share?.client);
    return task;
  }
}

class TaskTurns implements Turns {
  readonly #turns: SharedTurns;
  readonly #client: () => unknown;
  #spentUnits = 0;

  constructor(turns: SharedTurns, client: () => unknown) {
    this.#turns = turns;
    this.#client = client;
  }

  get isBusy(): boolean {
    return this.#turns.isBusy;
  }

  next(): Promise<void> {
    return this.#turns.next(this.#client(), this.#spentUnits);
  }

  spend(units: number): void {
    this.#spentUnits += units;
    this.#turns.spend(units);
  }
}

/**
 * Makes a pacer of one task, which counts units of 20 nanoseconds.
 *
 * @param turns Turns of 2 ms, which all work of one kind shares.
 * @param client For whom the task works, which may become known later.
 * @param hasLeft Whether that client has left.
 */
export function newWorkPacer(turns: SharedTurns, client: () => unknown, hasLeft: () => boolean): Pacer {
  return new Pacer({ units: TURN_UNITS, turns: new TaskTurns(turns, client), hasLeft });
}
