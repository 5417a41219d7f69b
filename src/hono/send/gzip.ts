/** Compression of large bodies for readers that accept it. */

/** The least size of a body that is worth it. */
// As kube-apiserver's defaultGzipThresholdBytes:
// https://github.com/kubernetes/apiserver/blob/master/pkg/endpoints/handlers/responsewriters/writers.go
export const GZIP_LEAST_BYTES: number = 128 * 1024;

/** What it takes to compress: zlib's window, its hashes and its buffers (https://zlib.net/zlib_tech.html). */
export const GZIP_STATE_BYTES: number = 320 * 1024;

/** A response whose body is compressed already. */
export function gzipResponse(body: BodyInit, headers: Readonly<Record<string, string>>): Response {
  // Else workerd compresses it again:
  // https://developers.cloudflare.com/workers/runtime-apis/response/#parameters
  const init: ResponseInit & { readonly encodeBody: "manual" } = {
    headers: { ...headers, "Content-Encoding": "gzip" },
    encodeBody: "manual",
  };
  return new Response(body, init);
}

/** Compresses chunks. */
export async function* gzipChunks(
  next: () => Promise<Uint8Array<ArrayBuffer> | undefined>,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const source = new ReadableStream<Uint8Array<ArrayBuffer>>({
    async pull(controller) {
      const chunk = await next();
      if (chunk === undefined) controller.close();
      else controller.enqueue(chunk);
    },
  }, { highWaterMark: 0 });
  const reader = source.pipeThrough(new CompressionStream("gzip")).getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** Compresses bytes, which are not changed. */
export async function gzipBytes(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  let rest: Uint8Array<ArrayBuffer> | undefined = bytes;
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  const next = () => {
    const chunk = rest;
    rest = undefined;
    return Promise.resolve(chunk);
  };
  for await (const chunk of gzipChunks(next)) chunks.push(chunk);
  return new Uint8Array(await new Blob(chunks).arrayBuffer());
}
