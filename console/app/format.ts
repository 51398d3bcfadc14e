// SPDX-License-Identifier: Apache-2.0
// Amounts, times and other people's words as they are shown.

const MEMORY = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** Three digits at most, without zeros at the end: "0.25", "12.5", "1280". */
export function number(value: number): string {
  if (!Number.isFinite(value)) return "–";
  return String(Number(value.toPrecision(Math.abs(value) >= 100 ? 4 : 3)));
}

export function bytes(value: number): string {
  let step = 0;
  while (value >= 1024 && step < MEMORY.length - 1) {
    value /= 1024;
    step++;
  }
  return `${number(value)} ${MEMORY[step]}`;
}

/** "4g", as the command line takes it, exactly. */
export function exactBytes(value: number): string {
  for (const [unit, size] of [
    ["g", 2 ** 30],
    ["m", 2 ** 20],
    ["k", 2 ** 10],
  ] as const)
    if (value % size === 0) return `${value / size}${unit}`;
  return String(value);
}

/** Slots for a person, the GPUs first: "0.5 GPU · 2 CPU · 4 GiB". */
export function slots(amounts: Slots | null | undefined): string {
  const entries = Object.entries(amounts ?? {}).filter(([, amount]) => Number(amount) !== 0);
  const rank = (name: string) => (name === "mem" ? 2 : name === "cpu" ? 1 : 0);
  return entries
    .sort(([a], [b]) => rank(a) - rank(b) || (a < b ? -1 : 1))
    .map(([name, amount]) => slot(name, amount))
    .join(" · ");
}

export function slot(name: string, amount: string): string {
  return name === "mem" ? bytes(Number(amount)) : `${amount} ${slotName(name)}`;
}

export function slotName(name: string): string {
  if (name === "cpu") return "CPU";
  if (name === "mem") return "memory";
  const [plugin = "", kind = ""] = name.split(".");
  const device = plugin === "cuda" ? "GPU" : plugin;
  return kind === "shares" ? `f${device}` : kind === "device" ? device : name;
}

export type Slots = Record<string, string>;

export function age(from: string | null | undefined, now: number): string {
  if (!from) return "";
  const seconds = Math.max(0, Math.round((now - Date.parse(from)) / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  return `${Math.floor(seconds / 86400)} d ${Math.floor((seconds % 86400) / 3600)} h`;
}

export function time(iso: string | null | undefined): string {
  if (!iso) return "–";
  const date = new Date(iso);
  const day =
    date.toDateString() === new Date().toDateString() ? {} : ({ month: "short", day: "numeric" } as const);
  return date.toLocaleString(undefined, {
    ...day,
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
    hour12: false,
  });
}

const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb]/g;

/** Other people's words: what would steer a screen or turn the text around is shown by its number. */
export function plain(text: string | null | undefined): string {
  return (text ?? "").replace(
    HIDDEN,
    (c) => `[U+${c.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}]`,
  );
}

// Sequences that steer a terminal: OSC and the like up to their end, CSI, and two-character ones.
const STEERING =
  /\u001b[\]PX^_][^\u0007\u001b]*(?:\u0007|\u001b\\)?|\u001b\[[0-?]*[ -/]*[@-~]?|\u001b[ -/]*[0-~]?/g;

/** A log without colours and steering; a line that was written over is what it was last. */
export function logText(text: string): string {
  return plain(
    text
      .replace(STEERING, "")
      .replace(/\r+\n/g, "\n")
      .replace(/[^\n\r]*\r(?=[^\n])/g, ""),
  );
}

/** Why a session waits, in one line. Of requirements that fit nowhere, what is missing and the agents
 * that take no sessions are enough; "why" has all.
 */
export function reason(text: string | null): string {
  const lines = (text ?? "").split("\n");
  const isMissing = lines.some((line) => /^ +- /.test(line));
  const said = isMissing ? lines.filter((line) => /^( +- |Agents that take no )/.test(line)) : lines;
  return plain(
    said
      .map((line) => line.replace(/^ *- /, ""))
      .reduce((whole, line) => {
        const end = /[.:;]$/.test(whole) ? "" : /^[A-Z]/.test(line) ? "." : ";";
        return `${whole}${end} ${line}`;
      }),
  );
}

/** As text is ordered by machines: for times, ids and numbers of long lists. */
export function compare<T extends string | number>(a: T, b: T): number {
  return a < b ? -1 : Number(a > b);
}

/** A word for a shell. */
export function quote(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

export function image(name: string | null | undefined): string {
  return plain(name).replace(/^.*\/(?=[^/]+$)/, "");
}
