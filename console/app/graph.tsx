// SPDX-License-Identifier: Apache-2.0
// The graph of a pipeline: boxes where the manager has placed them, and how far each is.
import { useEffect, useRef, useState } from "preact/hooks";
import type { Box, Graph, Shape, Task, TaskState } from "./model";
import { shapeOf } from "./model";
import { ShapePath } from "./parts";

const WIDTH = 208;
const HEIGHT = 46;
const GAP_X = 56;
const GAP_Y = 18;
const MARGIN = 10;
const LETTERS = 24; // of a name that fit
const SCALES = [0.25, 0.35, 0.5, 0.7, 1, 1.4, 2];
const FIT_MIN = 3; // the place in SCALES of the smallest one at which names can be read

// In this order: what needs somebody's attention first, as `aliquot pipeline graph` has it.
const ORDER: TaskState[] = ["failed", "running", "waiting", "cancelled", "succeeded", "skipped"];

export type Counted = Record<TaskState, number>;

export function countStates(tasks: readonly Task[]): Counted {
  const counts: Counted = { waiting: 0, running: 0, succeeded: 0, failed: 0, skipped: 0, cancelled: 0 };
  for (const task of tasks) counts[task.state]++;
  return counts;
}

/** The tasks of a box, of those of a run by place. */
export function tasksOf(box: Box, tasks: readonly Task[]): Task[] {
  return box.nodes.flatMap(([first, count]) => tasks.slice(first, first + count));
}

function nodesOf(box: Box): number {
  return box.nodes.reduce((sum, [, count]) => sum + count, 0);
}

function words(counts: Counted): string {
  return ORDER.filter((state) => counts[state])
    .map((state) => `${counts[state]} ${state}`)
    .join(", ");
}

const left = (box: Box) => MARGIN + box.column * (WIDTH + GAP_X);
const top = (box: Box) => MARGIN + box.row * (HEIGHT + GAP_Y);

/** A line that passes other columns runs between two rows, where no boxes are. */
function line(from: Box, to: Box): string {
  const [x, y] = [left(from) + WIDTH, top(from) + HEIGHT / 2];
  const [toX, toY] = [left(to), top(to) + HEIGHT / 2];
  const curve = (x0: number, y0: number) => ` C${(x0 + toX) / 2} ${y0} ${(x0 + toX) / 2} ${toY} ${toX} ${toY}`;
  if (to.column - from.column === 1) return `M${x} ${y}${curve(x, y)}`;
  const lane = top(from) + HEIGHT + GAP_Y / 2;
  const end = toX - GAP_X / 2;
  return `M${x} ${y} C${x + GAP_X / 4} ${y} ${x + GAP_X / 4} ${lane} ${x + GAP_X / 2} ${lane} H${end}${curve(end, lane)}`;
}

function shorten(name: string): string {
  return name.length > LETTERS ? `${name.slice(0, LETTERS - 1)}…` : name;
}

/** Several tasks: how much of the box's width each state has. */
function Share({ counts, total }: { counts: Counted; total: number }) {
  let x = 0;
  return (
    <g aria-hidden="true">
      {ORDER.filter((state) => counts[state]).map((state) => {
        const width = ((WIDTH - 2) * counts[state]) / total;
        x += width;
        return <rect key={state} class={`share ${state}`} x={1 + x - width} y={HEIGHT - 5} width={width} height={4} />;
      })}
    </g>
  );
}

function BoxView({
  box,
  graph,
  tasks,
  isChosen,
  href,
}: {
  box: Box;
  graph: Graph;
  tasks: readonly Task[] | null;
  isChosen: boolean;
  href: string;
}) {
  const total = nodesOf(box);
  const own = tasks && tasksOf(box, tasks);
  const counts = own?.length ? countStates(own) : null;
  const state = counts && (ORDER.find((each) => counts[each]) ?? "waiting");
  const shape: Shape | null = state && shapeOf(state);
  const second = total > 1 ? (counts ? words(counts) : `${total} tasks`) : (state ?? "");
  const needs = box.needs.map((need) => graph.boxes[need]?.name).join(", ");
  const says = `${box.name}: ${second || "1 task"}${needs ? `; needs ${needs}` : ""}`;
  return (
    <a
      href={href}
      class={`box ${state ?? "file"}`}
      data-box={box.name}
      aria-current={isChosen ? "true" : undefined}
    >
      <title>{says}</title>
      <rect class="frame" width={WIDTH} height={HEIGHT} rx={3} />
      {shape && (
        <g class={`state ${shape}`} transform="translate(9 8)">
          <ShapePath shape={shape} />
        </g>
      )}
      <text x={shape ? 28 : 10} y={19}>
        {shorten(box.name)}
      </text>
      <text class="second" x={shape ? 28 : 10} y={35}>
        {second.length > LETTERS + 6 ? `${second.slice(0, LETTERS + 5)}…` : second}
      </text>
      {counts && total > 1 && <Share counts={counts} total={total} />}
    </a>
  );
}

/** 'tasks' are those of a run, by place; null = the graph of a file. */
export function GraphView({
  graph,
  tasks,
  chosen,
  hrefOf,
}: {
  graph: Graph;
  tasks: readonly Task[] | null;
  chosen: number;
  hrefOf: (box: number) => string;
}) {
  const box = useRef<HTMLDivElement>(null);
  const [scale, setScale] = useState(4);
  const width = 2 * MARGIN + graph.columns * (WIDTH + GAP_X) - GAP_X;
  const height = 2 * MARGIN + graph.rows * (HEIGHT + GAP_Y);
  const fit = () => {
    const room = box.current?.clientWidth ?? width;
    let fitting = SCALES.indexOf(1);
    while (fitting > FIT_MIN && (SCALES[fitting] ?? 1) * width > room) fitting--;
    setScale(fitting);
  };
  useEffect(fit, [width]);
  const now = SCALES[scale] ?? 1;
  const isNear = (from: number, to: number) => chosen === from || chosen === to;
  return (
    <div class="graph">
      <div class="choice" role="group" aria-label="Size of the graph">
        <button type="button" aria-label="Smaller" disabled={scale === 0} onClick={() => setScale(scale - 1)}>
          −
        </button>
        <button type="button" onClick={fit}>
          {Math.round(now * 100)} %
        </button>
        <button
          type="button"
          aria-label="Larger"
          disabled={scale === SCALES.length - 1}
          onClick={() => setScale(scale + 1)}
        >
          +
        </button>
      </div>
      <div class="canvas" ref={box} tabIndex={0} role="region" aria-label="Graph">
        <svg width={width * now} height={height * now} viewBox={`0 0 ${width} ${height}`}>
          <g class="lines">
            {graph.boxes.flatMap((to, k) =>
              to.needs.map((need) => {
                const from = graph.boxes[need];
                return from && <path key={`${need}-${k}`} class={isNear(need, k) ? "near" : ""} d={line(from, to)} />;
              }),
            )}
          </g>
          {graph.boxes.map((each, k) => (
            <g key={k} transform={`translate(${left(each)} ${top(each)})`}>
              <BoxView box={each} graph={graph} tasks={tasks} isChosen={chosen === k} href={hrefOf(k)} />
            </g>
          ))}
        </svg>
      </div>
    </div>
  );
}
