// Runs a bundled suite inside workerd and prints the lines that it answers.
// Arguments: the bundle; `worker` or `object` (a Durable Object): which of them runs it; then compatibility flags (none, or
// `nodejs_compat`). Needs Node >= 22.
import { Miniflare } from "miniflare";

const [bundle, host, ...compatibilityFlags] = process.argv.slice(2);
const worker = new Miniflare({
  modules: true,
  scriptPath: bundle,
  // Before the date at which Node compatibility is on by default, so that the flag alone decides.
  compatibilityDate: "2026-07-01",
  compatibilityFlags,
  durableObjects: { SUITES: { className: "Suites", useSQLite: true } },
});
try {
  const response = await worker.dispatchFetch(`http://suite.test/${host}`);
  for await (const chunk of response.body) process.stdout.write(chunk);
} finally {
  await worker.dispose();
}
