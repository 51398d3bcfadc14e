// SPDX-License-Identifier: Apache-2.0
// Lines of what was measured over the last minutes. The words beside a line say it, too.
import { number } from "./format";

const WIDTH = 300; // of the view box; lines are as wide as their place
const SPAN_MSEC = 300_000;

export interface Series {
  name: string;
  kind: "all" | "bad" | "rest";
  values: readonly (number | null)[]; // null = nothing was measured
}

/** A path through the values that there are; a break begins it again. */
function path(
  values: readonly (number | null)[],
  x: (i: number) => number,
  y: (value: number) => number,
  breaks: readonly boolean[],
): string {
  let isDrawing = false;
  return values
    .map((value, i) => {
      if (breaks[i]) isDrawing = false;
      if (value === null) return "";
      const at = `${x(i).toFixed(1)} ${y(value).toFixed(1)}`;
      const step = isDrawing ? `L${at}` : `M${at}h0`;
      isDrawing = true;
      return step;
    })
    .join("");
}

function Lines({
  series,
  times,
  breaks,
  height,
}: {
  series: readonly Series[];
  times: readonly number[];
  breaks: readonly boolean[];
  height: number;
}) {
  const until = times[times.length - 1] ?? 0;
  const most = Math.max(1e-9, ...series.flatMap(({ values }) => values.map((value) => value ?? 0)));
  const x = (i: number) => WIDTH - ((until - (times[i] ?? 0)) / SPAN_MSEC) * WIDTH;
  const y = (value: number) => height - 1 - (value / most) * (height - 2);
  return (
    <svg class="lines-of" viewBox={`0 0 ${WIDTH} ${height}`} preserveAspectRatio="none" aria-hidden="true">
      {series.map(({ name, kind, values }) => (
        <path key={name} class={kind} d={path(values, x, y, breaks)} />
      ))}
    </svg>
  );
}

/** One value, as high as a line of text. */
export function Spark({ times, breaks, values }: { times: number[]; breaks: boolean[]; values: number[] }) {
  return (
    <span class="spark">
      <Lines
        series={[{ name: "", kind: "all", values }]}
        times={times}
        breaks={breaks}
        height={18}
      />
    </span>
  );
}

function last(values: readonly (number | null)[]): number | null {
  for (let i = values.length - 1; i >= 0; i--) if (values[i] != null) return values[i] ?? null;
  return null;
}

export function Chart({
  title,
  unit,
  series,
  times,
  breaks,
}: {
  title: string;
  unit: string;
  series: readonly Series[];
  times: readonly number[];
  breaks: readonly boolean[];
}) {
  const all = series.flatMap(({ values }) => values.filter((value): value is number => value !== null));
  return (
    <figure class="chart">
      <figcaption>
        <span class="dim">{title}</span>
        {series.map(({ name, kind, values }) => {
          const now = last(values);
          return (
            <span key={name} class={`value ${kind}`}>
              {series.length > 1 && <span class="dim">{name} </span>}
              {now === null ? "–" : `${number(now)}${unit}`}
            </span>
          );
        })}
      </figcaption>
      <Lines series={series} times={times} breaks={breaks} height={64} />
      <p class="dim">
        {all.length ? `at most ${number(Math.max(...all))}${unit} in 5 minutes` : "nothing measured yet"}
      </p>
    </figure>
  );
}
