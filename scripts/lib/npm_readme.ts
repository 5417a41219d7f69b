/**
 * The Markdown files of the package, whose readers have the files of the package only.
 *
 * @module
 */

import { posix } from "node:path";

/** A link or a picture: its text, and its target. Fences of code have none. */
const LINK = /(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)/g;

/**
 * A README with links that work outside of the repository: those to files that are packed stay, the others
 * lead to the repository's page; without one they become plain text.
 *
 * @param packed The files and folders of the package.
 * @param repository The repository's page: `https://host/owner/name`.
 * @param folder The folder of the README, from the root of the repository.
 */
export function linkedReadme(
  readme: string,
  packed: readonly string[],
  repository?: string,
  folder: string = "",
): string {
  return readme.replace(LINK, (link, picture: string, text: string, target: string) => {
    if (isAbsolute(target)) return link;
    const path = posix.join(folder, target);
    if (isPacked(path, packed)) return link;
    if (repository === undefined) return picture === "" ? text : "";
    const kind = picture === "" ? "blob" : "raw";
    return `${picture}[${text}](${repository}/${kind}/main/${path})`;
  });
}

/** The targets of README's links that are no whole URLs. */
export function relativeLinks(readme: string): string[] {
  return Array.from(readme.matchAll(LINK), ([, , , target]) => target).filter((target) =>
    !isAbsolute(target)
  );
}

/** Whether it is a whole URL, or a place on the same page. */
function isAbsolute(target: string): boolean {
  return /^(?:[a-z]+:|#)/.test(target);
}

function isPacked(target: string, packed: readonly string[]): boolean {
  const [path] = target.split("#");
  return packed.some((one) => path === one || path.startsWith(`${one}/`));
}
