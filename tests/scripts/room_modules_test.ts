import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, it } from "node:test";
import { ROOT } from "../../scripts/lib/gate.ts";
import { runDeno } from "../../scripts/lib/process.ts";
import { installTools } from "../../scripts/lib/tools.ts";

/** Bundles an entry, and prints what its room and the room below import, and which names more than once. */
const PROGRAM = `
import { bundleRooms } from "./scripts/lib/room_modules.ts";
import { installTools } from "./scripts/lib/tools.ts";
const [outdir] = Deno.args;
const entries = { "./workqueue": "./src/workqueue/mod.ts" };
await bundleRooms({ tools: await installTools(), entries, external: [], outdir });
for (const room of ["workqueue", "util"]) {
  const text = await Deno.readTextFile(outdir + "/rooms/" + room + ".js");
  console.log(room, ...new Set(Array.from(text.matchAll(/ ?from ?"(.*)";/g), ([, path]) => path)));
  const names = Array.from(text.matchAll(/^import{(.*)}from/gm), ([, names]) => names.split(",")).flat()
    .map((name) => name.split(" as ")[0]);
  console.log("repeated:", ...names.filter((name, i) => names.indexOf(name) !== i));
}
`;

describe("bundleRooms", () => {
  it("bundles the package in a folder that has the name of a room", async () => {
    await installTools();
    const temporary = await Deno.makeTempDir();
    try {
      const root = join(temporary, "util");
      await copyFolder(join(ROOT, "src"), join(root, "src"));
      await copyFolder(join(ROOT, "scripts"), join(root, "scripts"));
      for (const path of ["deno.json", "deno.lock"]) Deno.copyFileSync(join(ROOT, path), join(root, path));
      await Deno.mkdir(join(root, "tests"));
      await Deno.symlink(join(ROOT, "tests", "runtimes"), join(root, "tests", "runtimes"));
      await Deno.writeTextFile(join(root, "program.ts"), PROGRAM);
      const args = ["run", "-A", "--no-check", "program.ts", join(temporary, "lib")];
      const { stdout, output } = await runDeno(args, { cwd: root });
      assert.equal(stdout, "workqueue ./util.js\nrepeated:\nutil\nrepeated:\n", output);
    } finally {
      await Deno.remove(temporary, { recursive: true });
    }
  });
});

async function copyFolder(from: string, to: string): Promise<void> {
  await Deno.mkdir(to, { recursive: true });
  for await (const { name, isDirectory } of Deno.readDir(from)) {
    if (isDirectory) await copyFolder(join(from, name), join(to, name));
    else await Deno.copyFile(join(from, name), join(to, name));
  }
}
