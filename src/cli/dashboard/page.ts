/**
 * The document of the page.
 * @module
 */

import type { DashboardMessage } from "./dashboard_message.ts";
import { PAGE } from "./page_bundle.ts";

/**
 * Allows no other origin, no inline script or style, and no frame. The state in the document is data: a script element
 * of a type that is not executed.
 */
export const CONTENT_SECURITY_POLICY: string = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** Renders the document with the present state, so that the first paint is complete. */
export function renderPage(message: DashboardMessage): string {
  return PAGE.replace(STATE, () => inScript(message));
}

/** What stands in the document for the state: a text of JSON. */
const STATE = '"STATE"';

/** JSON that can neither end its script element nor start a comment in it. */
function inScript(value: unknown): string {
  return JSON.stringify(value).replace(/</g, "\\u003c").replace(/\u2028/g, "\\u2028").replace(
    /\u2029/g,
    "\\u2029",
  );
}
