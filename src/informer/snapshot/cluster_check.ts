import type { ListerWatcher } from "../../reflector/lister_watcher.ts";
import { DecodeError } from "../../meta/request.ts";
import { isTooManyRequests, statusErrorOf } from "../../meta/status.ts";
import type { Clock } from "../../util/clock.ts";
import { errorMessage } from "../../util/errors.ts";
import { inTime, TOO_SLOW } from "./progress.ts";
import type { SnapshotStatus } from "./storage.ts";

/** What identifies the cluster of a content, and the one that responds. */
export class ClusterCheck {
  readonly #source: Pick<ListerWatcher<unknown>, "clusterUid">;
  readonly #clock: Clock;
  /** Of the snapshot that was loaded, if it says that. */
  #savedUid: string | undefined;
  /** Of the cluster that responds, or why that cannot be read. */
  #uid: string | undefined;
  #unknown: string | undefined;

  constructor({ source, clock }: { readonly source: ListerWatcher<unknown>; readonly clock: Clock }) {
    this.#source = source;
    this.#clock = clock;
  }

  /** A snapshot of this cluster was loaded. */
  loaded(uid: string | undefined): void {
    this.#savedUid = uid;
  }

  /** What identifies the cluster of the content, as far as that is known. */
  get uid(): string | undefined {
    return this.#uid ?? this.#savedUid;
  }

  /** Whether the snapshot is of another cluster than the one that responds. */
  get isOther(): boolean {
    return this.#uid !== undefined && this.#savedUid !== undefined && this.#uid !== this.#savedUid;
  }

  /** Whether that is not known, and may be known later. */
  get isUndecided(): boolean {
    return this.#source.clusterUid !== undefined && this.#savedUid !== undefined && this.#uid === undefined &&
      this.#unknown === undefined;
  }

  /**
   * Reads what identifies the cluster that responds, if the source and the server permit that and it is not
   * known yet.
   */
  async read(signal: AbortSignal): Promise<void> {
    if (this.#uid === undefined) await this.#ask(signal);
  }

  /**
   * Reads it after a list, which another cluster may have answered than the one before.
   * @returns Whether it is another one than that of the content was.
   * @throws As {@linkcode ClusterCheck.read}.
   */
  async readAgain(signal: AbortSignal): Promise<boolean> {
    const before = this.uid;
    await this.#ask(signal);
    return this.uid !== before;
  }

  async #ask(signal: AbortSignal): Promise<void> {
    const source = this.#source;
    if (source.clusterUid === undefined) return;
    try {
      this.#uid = await inTime((limited) => source.clusterUid!(limited), { clock: this.#clock, signal });
      this.#unknown = undefined;
    } catch (error) {
      const { httpStatus = 0 } = statusErrorOf(error) ?? {};
      const isForGood = error === TOO_SLOW || error instanceof DecodeError ||
        (httpStatus >= 400 && httpStatus < 500 && !isTooManyRequests(error));
      if (!isForGood) throw error;
      this.#unknown = errorMessage(error);
    }
  }

  status(): Pick<SnapshotStatus, "clusterUid" | "clusterUnknown"> {
    return {
      ...(this.#uid !== undefined && { clusterUid: this.#uid }),
      ...(this.#unknown !== undefined && { clusterUnknown: this.#unknown }),
    };
  }
}
