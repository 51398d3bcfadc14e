// SPDX-License-Identifier: Apache-2.0
// How much of each slot somebody wants: a slider whose stops are parts of what a node has.
import { useMemo } from "preact/hooks";
import { formatAmount, parseAmount, stopAt, stopsOf } from "./amount";
import type { Range } from "./form";
import { bytes, number, slotName } from "./format";

function Amount({
  slot,
  range,
  text,
  set,
}: {
  slot: string;
  range: Range;
  text: string;
  set: (text: string) => void;
}) {
  const { most, free, quantum } = range;
  const stops = useMemo(() => stopsOf(slot, most, quantum), [slot, most, quantum]);
  const value = parseAmount(slot, text);
  const id = `amount-${slot}`;
  return (
    <div class="amount">
      <label for={id}>{slotName(slot)}</label>
      <input
        type="range"
        min={0}
        max={stops.length - 1}
        value={stopAt(stops, value ?? 0)}
        aria-label={`${slotName(slot)}, by slider`}
        aria-valuetext={text}
        onInput={(event) => set(formatAmount(slot, stops[Number(event.currentTarget.value)] ?? 0))}
      />
      <input
        id={id}
        value={text}
        size={7}
        inputMode={slot === "mem" ? "text" : "decimal"}
        aria-invalid={value === null}
        onInput={(event) => set(event.currentTarget.value.trim())}
      />
      <span class="dim" title="The most that one node has free, and that one node has">
        {amountText(slot, free)} free of {amountText(slot, most)}
      </span>
    </div>
  );
}

function amountText(slot: string, value: number): string {
  return slot === "mem" ? bytes(value) : number(value);
}

export function Resources({
  slots,
  amounts,
  set,
}: {
  slots: Record<string, Range>;
  amounts: Record<string, string>; // as they are typed
  set: (amounts: Record<string, string>) => void;
}) {
  return (
    <fieldset>
      <legend>Resources</legend>
      {Object.entries(slots).map(([slot, range]) => (
        <Amount
          key={slot}
          slot={slot}
          range={range}
          text={amounts[slot] ?? "0"}
          set={(text) => set({ ...amounts, [slot]: text })}
        />
      ))}
    </fieldset>
  );
}
