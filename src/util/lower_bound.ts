/**
 * Binary search in sorted keys.
 * @module
 */

/**
 * The index of the first of the ascending `keys` that is not less than `bound`; their number if there is
 * none.
 */
export function lowerBound(keys: readonly string[], bound: string): number {
  let low = 0;
  let high = keys.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (keys[middle] < bound) low = middle + 1;
    else high = middle;
  }
  return low;
}
