/**
 * Decoding what an API server sends.
 * @module
 */

export {
  decodeWatch,
  type DecodeWatchOptions,
  DEFAULT_MAX_FRAME_BYTES,
  type ValidateFrame,
} from "./decode_watch.ts";
export { decodeList, type DecodeListOptions, type ListEnvelope } from "./list_decoder.ts";
export { Projection, type ProjectionOptions } from "./projection.ts";
export type { Dropped, Kept, Projected } from "./projected.ts";
