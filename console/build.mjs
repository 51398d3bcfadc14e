// SPDX-License-Identifier: Apache-2.0
// One file of HTML per page, with its script, its style and the licences of what is bundled:
// build.mjs PAGE OUTPUT.
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const [, , page, output] = process.argv;
const here = path.dirname(fileURLToPath(import.meta.url));
const source = path.join(here, page);

async function bundle(file) {
  const result = await build({
    entryPoints: [path.join(source, file)],
    bundle: true,
    minify: true,
    write: false,
    metafile: true,
    charset: "utf8",
    format: "iife",
    target: "es2021",
    legalComments: "none",
  });
  return { text: result.outputFiles[0].text.trim(), inputs: Object.keys(result.metafile.inputs) };
}

// Of the packages that have a file in the bundle.
function licences(inputs) {
  const folders = inputs.map((input) => /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(input)?.[1]);
  return [...new Set(folders.filter(Boolean))]
    .sort()
    .map((folder) => {
      const about = JSON.parse(fs.readFileSync(path.join(folder, "package.json"), "utf8"));
      const text = fs.readFileSync(path.join(folder, "LICENSE"), "utf8").replaceAll("-->", "");
      return `${about.name} ${about.version}\n\n${text.trim()}\n`;
    })
    .join("\n");
}

const script = await bundle(["main.tsx", "main.ts"].find((file) => fs.existsSync(path.join(source, file))));
const style = await bundle("style.css");
const html = fs
  .readFileSync(path.join(source, "index.html"), "utf8")
  .replace("<!-- licences -->", () => `<!--\n${licences([...script.inputs, ...style.inputs])}-->`)
  .replace("<style></style>", () => `<style>${style.text}</style>`)
  .replace("<script></script>", () => `<script>${script.text}</script>`);
fs.writeFileSync(output, html);
