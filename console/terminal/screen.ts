// SPDX-License-Identifier: Apache-2.0
// The screen of a shell whose connection was lost, below which the next shell goes on.
import type { Terminal } from "@xterm/xterm";

const LEAVE_ALTERNATE = "\x1b[?1049l";
// The programs that set these have ended: colours, margins, modes of keys and cursor (DECSTR), the mouse.
const RESET_MODES = "\x1b[!p\x1b[?1003l\x1b[?1006l\x1b[?1004l\x1b[?2004l";

function findLastRow(terminal: Terminal): number {
  const { normal } = terminal.buffer;
  let row = terminal.rows;
  while (row > 1 && !normal.getLine(normal.baseY + row - 1)?.translateToString(true)) row--;
  return row;
}

/** All is given to the terminal in one piece, before the next shell has written anything. */
export function continueBelow(terminal: Terminal, note: string): void {
  const leave = terminal.buffer.active.type === "alternate" ? LEAVE_ALTERNATE : "";
  const row = findLastRow(terminal);
  terminal.write(`${leave}${RESET_MODES}\x1b[${row};1H\r\n\x1b[2m[${note}]\x1b[0m\r\n`);
}
