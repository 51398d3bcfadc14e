// SPDX-License-Identifier: Apache-2.0
// Pages of Debian's Chromium for browser.py: each line of standard input is [page, method, arguments],
// a method of Playwright's Page such as "click" or "keyboard.type"; the answer is {"value"} or {"error"}.
import readline from "node:readline";
import { chromium } from "playwright-core";

const browser = await chromium.launch({ executablePath: process.argv[2] });
const pages = [];

// What went wrong in a page by itself: errors of the console, among them what its policy forbids,
// and exceptions that nobody caught. Tabs that it opens are pages, too.
function watch(page) {
  const problems = [];
  const opened = [];
  page.on("console", (message) => message.type() === "error" && problems.push(message.text()));
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("popup", (tab) => opened.push(watch(tab)));
  return pages.push({ page, problems, opened }) - 1;
}

async function open(options) {
  return watch(await (await browser.newContext(options)).newPage());
}

async function answer([number, method, args]) {
  if (method === "open") return open(...args);
  const { page, problems, opened } = pages[number];
  if (method === "problems") return problems;
  if (method === "opened") return opened;
  if (method === "close") return page.context().close();
  const names = method.split(".");
  const owner = names.slice(0, -1).reduce((object, name) => object[name], page);
  const value = await owner[names.at(-1)](...args);
  return ["string", "number", "boolean"].includes(typeof value) || method === "evaluate" ? value : null;
}

for await (const line of readline.createInterface({ input: process.stdin })) {
  const reply = await answer(JSON.parse(line)).then(
    (value) => ({ value: value ?? null }),
    (error) => ({ error: String(error) }),
  );
  process.stdout.write(JSON.stringify(reply) + "\n");
}
await browser.close();
