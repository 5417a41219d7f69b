/**
 * Descriptions of failed requests.
 * @module
 */

import { errorMessage } from "../util/errors.ts";
import { networkErrorOf, type NetworkFailure, statusErrorOf } from "./status.ts";

const NETWORK: Readonly<Record<NetworkFailure, string>> = {
  ConnectionRefused: "the server refused the connection",
  ConnectionReset: "the connection was reset",
  UnexpectedEOF: "the connection ended in the middle of an answer",
  DeadPeer: "the connection is dead",
  Unreachable: "the server cannot be reached",
};

/** Describes why a request failed: in words that are the same on every runtime, then in those of the error. */
export function failureInWords(error: unknown): string {
  const status = statusErrorOf(error);
  const network = networkErrorOf(error);
  const message = errorMessage(error);
  if (status !== undefined) {
    const answer = [status.httpStatus || "", status.reason].filter((part) => part !== "").join(" ");
    return answer === "" ? message : `the server answered ${answer} (${message})`;
  }
  return network === undefined ? message : `${NETWORK[network.reason]} (${message})`;
}
