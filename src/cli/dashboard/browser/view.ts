/** What the parts of the page show. */

import type { DashboardMessage, ResourceState } from "../dashboard_message.ts";

/** The time without a message after which the connection is lost. The server sends one at least every 5 s. */
export const SILENCE_MS = 12_000;

export interface View {
  readonly state: DashboardMessage;
  /** The time now, by the server's clock. */
  readonly nowMs: number;
  readonly ageMs: number;
  readonly isLost: boolean;
}

/** Whether a resource has content: of a list, or of a snapshot. */
export function isShown(resource: ResourceState): boolean {
  return resource.synced || resource.restored !== undefined;
}

/** Whether a resource of this name is reflected, and has content. */
export function knows({ resources }: DashboardMessage, name: string): boolean {
  return resources.some((resource) => resource.name === name && isShown(resource));
}

/** The reason why resources cannot be read, if all of them have the same one. */
export function commonReason({ resources }: DashboardMessage): string {
  const reasons = new Set<string>();
  for (const { attempt, lastError } of resources) {
    if (attempt > 0 && lastError !== undefined) reasons.add(lastError.message);
  }
  const [reason] = reasons;
  return reasons.size === 1 ? reason : "";
}
