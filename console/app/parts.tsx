// SPDX-License-Identifier: Apache-2.0
// What several screens are made of.
import { effect, signal, type ReadonlySignal } from "@preact/signals-core";
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { age } from "./format";
import type { Measured, Shape } from "./model";

/** The value of a signal; the component is drawn again when it is another one than was drawn. */
export function use<T>(source: ReadonlySignal<T>): T {
  const [, draw] = useState(0);
  const drawn = useRef(source.peek());
  drawn.current = source.peek();
  useEffect(
    () =>
      effect(() => {
        if (source.value !== drawn.current) draw((count) => count + 1);
      }),
    [source],
  );
  return drawn.current;
}

/** Now, each second: for ages. */
export const now = signal(Date.now());
setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, 1000);

/** Until an idle session, or one at the end of its lifetime, is ended: "4 min 10 s". */
export function timeLeft({ idle_ends_at }: { idle_ends_at?: string | null }, at: number): string {
  const left = Math.max(0, Math.round((Date.parse(idle_ends_at ?? "") - at) / 1000));
  return left < 60 ? `${left} s` : `${Math.floor(left / 60)} min ${left % 60} s`;
}

export function Age({ from }: { from: string | null }) {
  return <>{age(from, use(now))}</>;
}

// ---- what was said last ----

const said = signal<{ text: ReadonlySignal<string>; isBad: boolean } | null>(null);
let silence: number | undefined;

/** A signal says something else when that has changed. */
export function say(text: string | ReadonlySignal<string>, isBad = false): void {
  said.value = { text: typeof text === "string" ? signal(text) : text, isBad };
  window.clearTimeout(silence);
  silence = window.setTimeout(() => (said.value = null), isBad ? 12000 : 5000);
}

function Text({ of }: { of: ReadonlySignal<string> }) {
  return <>{use(of)}</>;
}

export function Said() {
  const last = use(said);
  return (
    <div class="said" role="status">
      {last && (
        <p class={last.isBad ? "bad" : ""}>
          <Text of={last.text} />
          <button type="button" class="plain" onClick={() => (said.value = null)} aria-label="Hide">
            ×
          </button>
        </p>
      )}
    </div>
  );
}

// ---- states ----

const SHAPES: Record<Shape, string> = {
  open: "M6 1.75a4.25 4.25 0 1 1 0 8.5a4.25 4.25 0 1 1 0-8.5z",
  quarter: "M6 1.75a4.25 4.25 0 1 1 0 8.5a4.25 4.25 0 1 1 0-8.5zM6 1.75v4.25h4.25",
  full: "M6 1.75a4.25 4.25 0 1 1 0 8.5a4.25 4.25 0 1 1 0-8.5z",
  half: "M6 1.75a4.25 4.25 0 1 1 0 8.5a4.25 4.25 0 1 1 0-8.5zM6 1.75v8.5",
  square: "M2.5 2.5h7v7h-7z",
  failed: "M6 1.5l4.75 8.5h-9.5z",
  dash: "M2 6h8",
};

export function ShapePath({ shape }: { shape: Shape }) {
  return <path d={SHAPES[shape]} />;
}

export function State({ word, shape }: { word: string; shape: Shape }) {
  return (
    <span class={`state ${shape}`}>
      <svg viewBox="0 0 12 12" width="12" height="12" aria-hidden="true">
        <ShapePath shape={shape} />
      </svg>
      {word}
    </span>
  );
}

// ---- measures ----

/** How much of what there is; null if that is not known. */
export function share(measured: Measured | undefined, key: string): number | null {
  const value = measured?.[key];
  if (!value || !value[1]) return null;
  return Math.max(0, Math.min(1, value[0] / value[1]));
}

/** What the key of a metric measures: "cuda_util" is "util" of whatever card. */
export function cardShare(measured: Measured | undefined, kind: "util" | "mem"): number | null {
  const key = Object.keys(measured ?? {}).find((name) => name !== "cpu_util" && name.endsWith(`_${kind}`));
  return key ? share(measured, key) : null;
}

export function percent(value: number | null): string {
  return value === null ? "–" : `${Math.round(value * 100)} %`;
}

/** A small bar with its words beside it. */
export function Meter({
  label,
  value,
  children,
}: {
  label: string;
  value: number | null;
  children?: ComponentChildren;
}) {
  return (
    <span class="meter" title={`${label}: ${percent(value)}`}>
      <span class="track" aria-hidden="true">
        <span style={{ width: `${(value ?? 0) * 100}%` }} />
      </span>
      <span class="words">{children ?? `${label} ${percent(value)}`}</span>
    </span>
  );
}

/** Parts of a whole: a bar, and beside it how many of each, without those of which there are none. */
export function Bar({
  total,
  parts,
}: {
  total: number;
  parts: { kind: string; word: string; count: number }[];
}) {
  const shown = parts.filter(({ count }) => count > 0);
  const words = shown.map(({ word, count }) => `${count} ${word}`).join(", ");
  return (
    <span class="stack" title={words}>
      <span class="track" aria-hidden="true">
        {shown.map(({ kind, count }) => (
          <span key={kind} class={kind} style={{ width: `${(100 * count) / Math.max(1, total)}%` }} />
        ))}
      </span>
      <span class="words">{words}</span>
    </span>
  );
}

// ---- actions ----

async function copy(command: string, isSecret: boolean): Promise<void> {
  try {
    await navigator.clipboard.writeText(command);
    say(isSecret ? "Copied." : `Copied: ${command}`);
  } catch {
    // A page without TLS may not write to the clipboard.
    say(isSecret ? "The browser refuses to copy on pages without TLS; select the text." : command);
  }
}

/** Each action can be had as a command. A secret is on the page already, and is not said again. */
export function Copy({
  command,
  isSecret = false,
  children = "Copy as command",
}: {
  command: string;
  isSecret?: boolean;
  children?: ComponentChildren;
}) {
  return (
    <button
      type="button"
      class="plain copy"
      title={isSecret ? undefined : command}
      onClick={() => void copy(command, isSecret)}
    >
      {children}
    </button>
  );
}

/** Titles and values below each other; a row without a value is left out. */
export function Facts({ rows }: { rows: readonly (readonly [string, ComponentChildren])[] }) {
  return (
    <dl>
      {rows
        .filter(([, value]) => value)
        .map(([title, value]) => (
          <div key={title}>
            <dt>{title}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}

/** Several commands, by what they do, in one menu. */
export function Commands({ commands }: { commands: readonly (readonly [string, string])[] }) {
  return (
    <details class="commands">
      <summary>Copy as command</summary>
      <ul>
        {commands.map(([what, command]) => (
          <li key={what}>
            <Copy command={command}>
              <span>{what}</span> <code>{command}</code>
            </Copy>
          </li>
        ))}
      </ul>
    </details>
  );
}

/** Asks whether really, with the focus on what changes nothing. The errors of what is done are said. */
export function Confirm({
  verb,
  name,
  what = name,
  act,
  kill,
}: {
  verb: string;
  name: string;
  what?: ComponentChildren;
  act: () => Promise<void>;
  kill?: (() => Promise<void>) | undefined;
}) {
  const [isAsking, ask] = useState(false);
  const keep = useRef<HTMLButtonElement>(null);
  useEffect(() => keep.current?.focus(), [isAsking]);
  async function answer(action: () => Promise<void>): Promise<void> {
    ask(false);
    try {
      await action();
    } catch (error) {
      say(failure(error), true);
    }
  }
  if (!isAsking)
    return (
      <button type="button" class="danger" data-key="x" onClick={() => ask(true)}>
        {verb}…
      </button>
    );
  return (
    <span class="confirm" role="group" aria-label={`${verb} ${name}?`}>
      {verb} {what}?
      <button type="button" class="danger" data-key="y" onClick={() => void answer(act)}>
        {verb}
      </button>
      {kill && (
        <button type="button" class="danger" title="Without waiting for its program" onClick={() => void answer(kill)}>
          Kill
        </button>
      )}
      <button type="button" ref={keep} onClick={() => ask(false)}>
        Keep
      </button>
    </span>
  );
}

export function Empty({ children }: { children: ComponentChildren }) {
  return <p class="empty">{children}</p>;
}

export function failure(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
