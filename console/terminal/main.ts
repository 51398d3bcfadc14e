// SPDX-License-Identifier: Apache-2.0
// The terminal of a session in a page of its own.
import { FitAddon } from "@xterm/addon-fit";
import { Terminal } from "@xterm/xterm";
import { Connection } from "./connection";
import { findReason } from "./reason";
import { Retry } from "./retry";
import { continueBelow } from "./screen";
import { constructStyles } from "./styles";
import { followTheme } from "./theme";

const FONT_KEY = "aliquot-terminal-font-size";
const FONT_USUAL = 14;
// Rows as high as the font's own box clip what lies below the letters: DejaVu's underscores.
const LINE_HEIGHT = 1.2;

function find<T extends Element>(selector: string): T {
  const element = document.querySelector<T>(selector);
  if (!element) throw new Error(`the page has no ${selector}`);
  return element;
}

const place = find<HTMLElement>("#terminal");
const bar = find<HTMLElement>("#bar");
const barText = find<HTMLElement>("#bar span");
const barButton = find<HTMLButtonElement>("#bar button");

// A page may be forbidden to keep anything.
function readFontSize(): number {
  try {
    return Number(localStorage.getItem(FONT_KEY)) || FONT_USUAL;
  } catch {
    return FONT_USUAL;
  }
}

function keepFontSize(size: number): void {
  try {
    localStorage.setItem(FONT_KEY, String(size));
  } catch {
    // it is as usual the next time
  }
}

constructStyles();
const fit = new FitAddon();
const terminal = new Terminal({
  cursorBlink: true,
  minimumContrastRatio: 4.5,
  fontFamily: 'ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace',
  fontSize: readFontSize(),
  lineHeight: LINE_HEIGHT,
  scrollback: 10000,
});
let connection: Connection | undefined;
let session = "Terminal";
let isOver = false; // the session has ended: there is no other shell
let isAsking = false; // the proxy, why there is no connection
let lostAt: Date | undefined; // when an open connection was lost, until another is open
const retry = new Retry(connect);

function name(title: string): void {
  document.title = title && title !== session ? `${title} · ${session}` : session;
}

function tell(text: string, action = ""): void {
  bar.hidden = !text;
  barText.textContent = text;
  barButton.textContent = action;
  fit.fit();
}

// The former shell's screen stays above the new one.
function opened(): void {
  if (lostAt) continueBelow(terminal, `connection lost at ${lostAt.toLocaleTimeString()}; new shell`);
  lostAt = undefined;
  retry.opened();
  tell("");
}

function tellLost(detail = ""): void {
  const text = lostAt ? "Connection lost, reconnecting…" : "No connection, trying again…";
  tell(detail ? `${text} (${detail})` : text, retry.isWaiting ? "Now (Enter)" : "");
}

async function recover(): Promise<void> {
  isAsking = true;
  const reason = await findReason();
  isAsking = false;
  isOver = reason.kind === "over";
  if (isOver) tell("The session has ended.");
  else if (reason.kind === "refused") tell(`No connection: ${reason.text}.`, "New shell (Enter)");
  else {
    retry.later();
    tellLost(reason.text);
  }
}

function connect(): void {
  let wasOpen = false;
  connection = new Connection(terminal, {
    output: (bytes, done) => terminal.write(bytes, done),
    title: (text) => {
      session = text;
      name("");
    },
    open: () => {
      wasOpen = true;
      opened();
    },
    closed: (why) => {
      connection = undefined;
      if (why) {
        tell(`${why.charAt(0).toUpperCase()}${why.slice(1)}.`, "New shell (Enter)");
        return;
      }
      if (wasOpen) {
        lostAt = new Date();
        tellLost();
      }
      void recover();
    },
  });
  terminal.focus();
}

/** By a key or a click. Modes that an ended shell has left, such as the mouse's, are not the next one's. */
function connectAgain(): void {
  if (retry.isWaiting) {
    retry.now();
  } else if (!connection && !isAsking && !isOver) {
    if (!lostAt) terminal.reset();
    tell("Connecting…");
    connect();
  }
}

function zoom(key: string): boolean {
  const now = terminal.options.fontSize ?? FONT_USUAL;
  const size = key === "0" ? FONT_USUAL : key === "-" ? now - 1 : now + 1;
  terminal.options.fontSize = Math.min(Math.max(size, 6), 40);
  keepFontSize(terminal.options.fontSize);
  fit.fit();
  return false;
}

/** False: the terminal does not get the key. Ctrl-C copies what is selected, as elsewhere. */
function passKey(event: KeyboardEvent): boolean {
  if (event.type !== "keydown" || !(event.ctrlKey || event.metaKey) || event.altKey) return true;
  if (event.key.toLowerCase() === "c" && terminal.hasSelection()) {
    setTimeout(() => terminal.clearSelection()); // after it was copied
    return false;
  }
  if (event.key === "C") {
    event.preventDefault(); // nothing is selected; the browser would open its tools
    return false;
  }
  if (event.key === "V") return false; // the browser pastes
  if (["=", "+", "-", "0"].includes(event.key)) {
    event.preventDefault();
    return zoom(event.key);
  }
  return true;
}

terminal.loadAddon(fit);
terminal.open(place);
followTheme((theme) => (terminal.options.theme = theme));
terminal.attachCustomKeyEventHandler(passKey);
terminal.onData((text) => {
  if (connection) connection.typeText(text);
  else if (text === "\r") connectAgain();
});
terminal.onBinary((text) => connection?.type(Uint8Array.from(text, (c) => c.charCodeAt(0))));
terminal.onResize((size) => connection?.resize(size));
terminal.onTitleChange(name);
barButton.onclick = connectAgain;
new ResizeObserver(() => fit.fit()).observe(place);
fit.fit();
tell("Connecting…");
connect();
