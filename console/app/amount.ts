// SPDX-License-Identifier: Apache-2.0
// Amounts of slots as people type them, and the places where a slider stops.
import { exactBytes } from "./format";

const UNITS: Record<string, number> = { "": 1, k: 2 ** 10, m: 2 ** 20, g: 2 ** 30, t: 2 ** 40 };

/** null if it is none. */
export function parseAmount(slot: string, text: string): number | null {
  const [, digits, unit = ""] = /^(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?$/i.exec(text) ?? [];
  const factor = UNITS[unit.toLowerCase()];
  if (digits === undefined || factor === undefined || (unit && slot !== "mem")) return null;
  return Number(digits) * factor;
}

export function formatAmount(slot: string, value: number): string {
  return slot === "mem" ? exactBytes(value) : String(Number(value.toFixed(6)));
}

/** 1, 2, 3, 4, 6, 8, 12, 16 … of a unit: steps that grow with the amount. */
function growing(unit: number, most: number): number[] {
  const stops: number[] = [];
  for (let step = unit; step * 2 <= most * 2; step *= 2) {
    stops.push(step);
    if (step * 1.5 < most && step > unit) stops.push(step * 1.5);
  }
  return stops.filter((stop) => stop < most).concat(most);
}

export function stopsOf(slot: string, most: number, quantum: number): number[] {
  if (slot === "mem") return growing(2 ** 28, most);
  if (slot === "cpu") return Array.from({ length: Math.max(1, Math.floor(most)) }, (_, i) => i + 1);
  const stops = [0];
  for (let part = quantum; part < 1 && part <= most; part = Number((part + quantum).toFixed(6)))
    stops.push(part);
  for (let whole = 1; whole <= most; whole++) stops.push(whole);
  return stops;
}

/** The nearest stop. */
export function stopAt(stops: readonly number[], value: number): number {
  let best = 0;
  stops.forEach((stop, i) => {
    if (Math.abs(stop - value) < Math.abs((stops[best] ?? 0) - value)) best = i;
  });
  return best;
}
