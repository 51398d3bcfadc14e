// SPDX-License-Identifier: Apache-2.0
// A run of a pipeline: its graph as it goes on, its tasks, and one of them beside it.
import { useEffect, useRef, useState } from "preact/hooks";
import { Choice } from "./choice";
import { age, plain, quote, time } from "./format";
import { countStates, GraphView, tasksOf } from "./graph";
import { type Column, List } from "./list";
import { endedRuns, followRun, runError, runs, sessions, tasks as allTasks, who } from "./live";
import { LogView } from "./log";
import { type Drawn, hasRunEnded, type Run, stateOfRun, stateOfTask, type Task, type TaskState } from "./model";
import { Bar, Commands, Confirm, Empty, Facts, failure, now, say, State, use } from "./parts";
import { address, amend, place } from "./place";
import { manager } from "./server";

const STATES: TaskState[] = ["failed", "running", "waiting", "succeeded", "skipped", "cancelled"];

// ---- what is read of it ----

type Whole = Run & Drawn & { tasks: Task[] };

/** The run as the store has it, read again when it is another version, has ended or goes on. */
function useRun(id: string): { run: Run | null; whole: Whole | null; why: string } {
  const [found, setWhole] = useState<Whole | null>(null);
  const [why, setWhy] = useState("");
  const whole = found && (found.id === id || found.name === id) ? found : null;
  const live = use(runs).get(whole?.id ?? id);
  const over = use(endedRuns).get(whole?.id ?? id);
  useEffect(() => {
    const gone = new AbortController();
    manager.get<Whole>(`/aliquot/v1/pipeline-runs/${encodeURIComponent(id)}?graph=true`, gone.signal).then(
      (read) => {
        setWhole(read);
        setWhy("");
        followRun(read.id);
      },
      (error) => !gone.signal.aborted && setWhy(failure(error)),
    );
    return () => gone.abort();
  }, [id, live !== undefined, live?.version]);
  useEffect(() => () => followRun(""), [id]);
  // Between the end of a run and its next reading, the list of those that have ended is newer.
  const run = live ?? (whole && !hasRunEnded(whole) && over ? over : whole);
  return { run, whole, why };
}

// ---- its end, and going on ----

function RunActions({ run }: { run: Run }) {
  const path = `/aliquot/v1/pipeline-runs/${run.id}`;
  async function cancel(): Promise<void> {
    await manager.post(`${path}/cancel`, {});
    say(`Run ${run.name} is being cancelled.`);
  }
  async function resume(): Promise<void> {
    try {
      await manager.post(`${path}/resume`, {});
      say(`Run ${run.name} was resumed.`);
    } catch (error) {
      say(failure(error), true);
    }
  }
  if (hasRunEnded(run))
    return run.state === "succeeded" ? null : (
      <button type="button" onClick={() => void resume()}>
        Resume
      </button>
    );
  return run.is_cancelled ? null : <Confirm verb="Cancel" name={run.name} act={cancel} />;
}

function commandsOf(run: Run): [string, string][] {
  const name = quote(run.user_email === who.value?.user ? run.name : run.id);
  const all: [string, string][] = [
    ["Show", `aliquot pipeline show ${name}`],
    ["Graph", `aliquot pipeline graph ${name}`],
  ];
  if (!hasRunEnded(run)) all.push(["Cancel", `aliquot pipeline cancel ${name}`]);
  else if (run.state !== "succeeded") all.push(["Resume", `aliquot pipeline resume ${name}`]);
  return all;
}

// ---- tasks ----

/** While it runs so far, afterwards in all. */
function took(task: Task, at: number): string {
  if (!task.started_at) return "";
  return age(task.started_at, task.ended_at ? Date.parse(task.ended_at) : at);
}

function Took({ task }: { task: Task }) {
  return <>{took(task, use(now))}</>;
}

function TaskStateView({ task }: { task: Task }) {
  const session = use(sessions).get(task.session_id ?? "");
  return <State {...stateOfTask(task, session)} />;
}

function attempts(task: Task): string {
  return task.attempt_max > 1 ? `${task.attempt} of ${task.attempt_max}` : "";
}

interface TaskRow {
  id: string;
  task: Task;
}

const COLUMNS: Column<TaskRow>[] = [
  { title: "State", kind: "status", cell: ({ task }) => <TaskStateView task={task} /> },
  { title: "Task", cell: ({ task }) => plain(task.name) },
  { title: "Attempt", kind: "wide short", cell: ({ task }) => attempts(task) },
  { title: "Reason", kind: "wide", cell: ({ task }) => plain(task.reason) },
  { title: "Time", kind: "age", cell: ({ task }) => <Took task={task} /> },
];

function assignments(values: Record<string, unknown> | null | undefined): string {
  return Object.entries(values ?? {})
    .map(([name, value]) => plain(`${name}=${typeof value === "string" ? value : JSON.stringify(value)}`))
    .join(", ");
}

/** One task beside the others: why it is so, and what its session says. */
function TaskPeek({ task, drawn, close }: { task: Task; drawn: Drawn | null; close: () => void }) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    heading.current?.focus({ preventScroll: true });
    return () =>
      document.querySelector<HTMLElement>(`[data-of="${CSS.escape(task.name)}"]`)?.focus({ preventScroll: true });
  }, [task.name]);
  const session = task.session_id;
  return (
    <aside class="peek" aria-label={task.name}>
      <header>
        <h2 ref={heading} tabIndex={-1}>
          {plain(task.name)}
        </h2>
        <TaskStateView task={task} />
        <button type="button" class="plain close" onClick={close} aria-label="Close" data-key="Escape">
          ×
        </button>
      </header>
      {task.reason && <p class="reason">{plain(task.reason)}</p>}
      <Facts
        rows={[
          ["Attempt", attempts(task)],
          ["Values", assignments(drawn?.matrix?.[task.name])],
          ["Outputs", assignments(task.outputs)],
          ["Started", task.started_at ? time(task.started_at) : ""],
          ["Ended", task.ended_at ? time(task.ended_at) : ""],
          ["Time", <Took task={task} />],
          [
            "Session",
            session && (
              <a href={address("sessions", session, "show=all")} data-key="s">
                {session}
              </a>
            ),
          ],
        ]}
      />
      {session && <LogView session={{ id: session }} kernel="main1" />}
      {session && (
        <footer>
          <Commands commands={[["Log", `aliquot logs --follow ${session}`], ["Session", `aliquot session info ${session}`]]} />
        </footer>
      )}
    </aside>
  );
}

// ---- all of it ----

function Choices({ counts, shown, set }: { counts: Record<TaskState, number>; shown: string; set: (state: string) => void }) {
  return (
    <Choice
      label="Which tasks"
      options={[
        ["", "all"],
        ...STATES.filter((state) => counts[state] || shown === state).map(
          (state) => [state, `${state} ${counts[state]}`] as const,
        ),
      ]}
      value={shown}
      set={set}
    />
  );
}

/** The tasks of a run by place, as they are now. */
function useTasks(whole: Whole | null): Task[] {
  const followed = use(allTasks);
  return (whole?.tasks ?? []).map((task) => followed.get(task.name) ?? task);
}

export function RunBar({ run }: { run: Run }) {
  const rest = run.task_count - run.succeeded - run.failed - run.running;
  return (
    <Bar
      total={run.task_count}
      parts={[
        { kind: "succeeded", word: "succeeded", count: run.succeeded },
        { kind: "running", word: "running", count: run.running },
        { kind: "failed", word: "failed", count: run.failed },
        { kind: "waiting", word: hasRunEnded(run) ? "not run" : "waiting", count: rest },
      ]}
    />
  );
}

export function RunScreen({ id }: { id: string }) {
  const { query } = use(place);
  const { run, whole: drawn, why } = useRun(id);
  const error = use(runError);
  const tasks = useTasks(drawn);
  const at = use(now);
  const set = (changes: Record<string, string>) => {
    const next = new URLSearchParams(query);
    for (const [name, value] of Object.entries(changes))
      if (value) next.set(name, value);
      else next.delete(name);
    return next;
  };
  if (!run || !drawn) return <Empty>{why || "Asking the manager…"}</Empty>;
  const box = query.has("box") ? Number(query.get("box")) : -1;
  const chosen = drawn.graph?.boxes[box];
  const state = query.get("state") ?? "";
  const among = chosen ? tasksOf(chosen, tasks) : tasks;
  const rows = among.filter((task) => !state || task.state === state).map((task) => ({ id: task.name, task }));
  const task = tasks.find(({ name }) => name === query.get("task"));
  return (
    <div class="with-task">
      <section class="run" aria-label={`Run ${run.name}`}>
        <header>
          <h2>
            <a href={address("pipelines")}>Pipelines</a> / {plain(run.name)}
          </h2>
          <State {...stateOfRun(run)} />
          <RunBar run={run} />
          <span class="dim">
            {time(run.created_at)}, {age(run.created_at, run.ended_at ? Date.parse(run.ended_at) : at)}, version {run.version}
          </span>
          <RunActions run={run} />
          <Commands commands={commandsOf(run)} />
        </header>
        {run.parameters && Object.keys(run.parameters).length > 0 && (
          <p class="dim values">Parameters: {assignments(run.parameters)}</p>
        )}
        {error && <p class="bad values">{error}</p>}
        {drawn.graph ? (
          <GraphView
            graph={drawn.graph}
            tasks={tasks}
            chosen={chosen ? box : -1}
            hrefOf={(k) => {
              const only = drawn.graph?.boxes[k] ? tasksOf(drawn.graph.boxes[k], tasks) : [];
              return address("run", id, set({ box: k === box ? "" : String(k), state: "", task: only.length === 1 && k !== box ? (only[0]?.name ?? "") : "" }));
            }}
          />
        ) : (
          <Empty>This version of the manager cannot read the pipeline's file, so it has no graph.</Empty>
        )}
        <div class="filters">
          <Choices counts={countStates(among)} shown={state} set={(to) => amend(set({ state: to }))} />
          {chosen && (
            <button type="button" onClick={() => amend(set({ box: "", task: "" }))}>
              {plain(chosen.name)} ×<span class="sr"> Show the tasks of all boxes</span>
            </button>
          )}
          <span class="dim count">{rows.length}</span>
        </div>
        <List
          label="Tasks"
          screen="run"
          id={task?.name ?? ""}
          hrefOf={(name) => address("run", id, set({ task: name }))}
          rows={rows}
          columns={COLUMNS}
        />
      </section>
      {task && <TaskPeek task={task} drawn={drawn} close={() => amend(set({ task: "" }))} />}
    </div>
  );
}
