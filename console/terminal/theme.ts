// SPDX-License-Identifier: Apache-2.0
// Colours of the terminal: those of the page, and sixteen that can be read on them.
import type { ITheme } from "@xterm/xterm";

const light: ITheme = {
  background: "#fcfcfb",
  foreground: "#1d2021",
  cursor: "#0b6b66",
  cursorAccent: "#fcfcfb",
  selectionBackground: "#b9dcd9",
  black: "#1d2021",
  red: "#b3261e",
  green: "#2c6e2f",
  yellow: "#7d5a00",
  blue: "#1f57b5",
  magenta: "#8a2f8f",
  cyan: "#0b6b66",
  white: "#6b7072",
  brightBlack: "#5c6163",
  brightRed: "#c7362d",
  brightGreen: "#357a38",
  brightYellow: "#8f6800",
  brightBlue: "#2f68c9",
  brightMagenta: "#9c42a1",
  brightCyan: "#14807a",
  brightWhite: "#3a3e40",
};

const dark: ITheme = {
  background: "#121517",
  foreground: "#d9dcdd",
  cursor: "#4cc2ba",
  cursorAccent: "#121517",
  selectionBackground: "#2b5754",
  black: "#3a4043",
  red: "#f2756b",
  green: "#7fc97f",
  yellow: "#e0b95c",
  blue: "#7fb0f5",
  magenta: "#d69ad9",
  cyan: "#4cc2ba",
  white: "#c4c8ca",
  brightBlack: "#8b9194",
  brightRed: "#ff9389",
  brightGreen: "#9bdc9b",
  brightYellow: "#f0cf83",
  brightBlue: "#a3c7fa",
  brightMagenta: "#e6b8e8",
  brightCyan: "#7bd8d1",
  brightWhite: "#f3f5f5",
};

const isDark = matchMedia("(prefers-color-scheme: dark)");

/** The theme that the browser's user prefers, now and whenever that changes. */
export function followTheme(use: (theme: ITheme) => void): void {
  const apply = () => use(isDark.matches ? dark : light);
  isDark.addEventListener("change", apply);
  apply();
}
