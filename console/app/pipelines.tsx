// SPDX-License-Identifier: Apache-2.0
// Runs of pipelines, the pipelines that are kept, and the form that runs one.
import { useEffect, useState } from "preact/hooks";
import { Choice, Whose } from "./choice";
import { age, compare, plain, quote, time } from "./format";
import { GraphView } from "./graph";
import { type Column, List } from "./list";
import { endedRuns, everyone, isLoaded, runs } from "./live";
import { type Drawn, hasRunEnded, type Parameter, type Pipeline, type Run, stateOfRun } from "./model";
import { Age, Copy, Empty, failure, now, say, State, use } from "./parts";
import { address, amend, go, place } from "./place";
import { RunBar } from "./run";
import { manager, Refusal } from "./server";

// ---- the list of runs ----

interface RunRow {
  id: string;
  run: Run;
}

function Took({ run }: { run: Run }) {
  const at = use(now);
  return <>{age(run.created_at, run.ended_at ? Date.parse(run.ended_at) : at)}</>;
}

const RUN_COLUMNS: Column<RunRow>[] = [
  { title: "State", kind: "status", cell: ({ run }) => <State {...stateOfRun(run)} /> },
  { title: "Run", cell: ({ run }) => plain(run.name) },
  { title: "Progress", kind: "progress", cell: ({ run }) => <RunBar run={run} /> },
  { title: "User", kind: "widest", cell: ({ run }) => plain(run.user_email) },
  { title: "Begun", kind: "wide age", cell: ({ run }) => <Age from={run.created_at} /> },
  { title: "Time", kind: "age", cell: ({ run }) => <Took run={run} /> },
];

/** Those that live first, the newest first. */
export function shownRuns(live: Iterable<Run>, over: ReadonlyMap<string, Run>): RunRow[] {
  const rows = [...live];
  const living = new Set(rows.map(({ id }) => id));
  const order = (a: Run, b: Run) =>
    Number(hasRunEnded(a)) - Number(hasRunEnded(b)) || compare(b.created_at, a.created_at) || compare(b.id, a.id);
  return [...rows, ...[...over.values()].filter(({ id }) => !living.has(id))]
    .sort(order)
    .map((run) => ({ id: run.id, run }));
}

// ---- those that are kept ----

interface KeptRow {
  id: string;
  pipeline: Pipeline;
}

const KEPT_COLUMNS: Column<KeptRow>[] = [
  { title: "Version", kind: "short", cell: ({ pipeline }) => pipeline.version },
  { title: "Pipeline", cell: ({ pipeline }) => plain(pipeline.name) },
  { title: "Next", kind: "wide start", cell: ({ pipeline }) => (pipeline.next_at ? time(pipeline.next_at) : "") },
  { title: "User", kind: "widest", cell: ({ pipeline }) => plain(pipeline.user_email) },
  { title: "Saved", kind: "age", cell: ({ pipeline }) => <Age from={pipeline.saved_at} /> },
];

const KEPT_MAX = 500;

function useKept(): { rows: KeptRow[] | null; why: string } {
  const [rows, setRows] = useState<KeptRow[] | null>(null);
  const [why, setWhy] = useState("");
  useEffect(() => {
    const gone = new AbortController();
    manager.get<{ items: Pipeline[] }>(`/aliquot/v1/pipelines?limit=${KEPT_MAX}`, gone.signal).then(
      ({ items }) => setRows(items.map((pipeline) => ({ id: pipeline.name, pipeline }))),
      (error) => !gone.signal.aborted && setWhy(failure(error)),
    );
    return () => gone.abort();
  }, []);
  return { rows, why };
}

function Kept() {
  const { rows, why } = useKept();
  if (!rows) return <Empty>{why || "Asking the manager…"}</Empty>;
  if (!rows.length)
    return (
      <Empty>
        No pipeline is kept. <code>aliquot pipeline save FILE</code> keeps one.
      </Empty>
    );
  return <List label="Kept pipelines" screen="pipeline" id="" rows={rows} columns={KEPT_COLUMNS} />;
}

function Runs() {
  const withUser = use(everyone);
  const rows = shownRuns(use(runs).values(), use(endedRuns));
  if (!use(isLoaded)) return <Empty>Asking the manager…</Empty>;
  if (!rows.length)
    return (
      <Empty>
        No pipeline has run yet. Run one that is <a href={address("pipelines", "", "show=kept")}>kept</a>, or a file:{" "}
        <code>aliquot pipeline run FILE</code>
      </Empty>
    );
  return (
    <List
      label="Runs of pipelines"
      screen="run"
      id=""
      rows={rows}
      columns={withUser ? RUN_COLUMNS : RUN_COLUMNS.filter(({ title }) => title !== "User")}
    />
  );
}

export function PipelinesScreen() {
  const { query } = use(place);
  const isKept = query.get("show") === "kept";
  const show = (what: string) => amend(new URLSearchParams(what ? { show: what } : {}));
  return (
    <section class="sessions" aria-label="Pipelines">
      <div class="filters">
        <Choice
          label="What is listed"
          options={[
            ["", "runs"],
            ["kept", "kept pipelines"],
          ]}
          value={isKept ? "kept" : ""}
          set={show}
        />
        {!isKept && <Whose label="Whose runs" />}
      </div>
      {isKept ? <Kept /> : <Runs />}
    </section>
  );
}

// ---- one that is kept, and the form ----

function Field({
  parameter,
  value,
  isWrong,
  set,
}: {
  parameter: Parameter;
  value: string;
  isWrong: boolean;
  set: (value: string) => void;
}) {
  const id = `parameter-${parameter.name}`;
  const isNumber = parameter.type === "integer" || parameter.type === "number";
  return (
    <div class="field">
      <label for={id}>{plain(parameter.name)}</label>
      <div>
        {parameter.type === "boolean" ? (
          <select id={id} value={value} onChange={(event) => set(event.currentTarget.value)}>
            {parameter.default === null && <option value="">choose</option>}
            <option>true</option>
            <option>false</option>
          </select>
        ) : (
          <input
            id={id}
            value={value}
            inputMode={isNumber ? "decimal" : "text"}
            required={parameter.default === null && isNumber}
            aria-invalid={isWrong}
            autocomplete="off"
            spellcheck={false}
            onInput={(event) => set(event.currentTarget.value)}
          />
        )}{" "}
        <span class="dim">{plain(parameter.description ?? parameter.type)}</span>
      </div>
    </div>
  );
}

function RunForm({ name, declared }: { name: string; declared: Parameter[] }) {
  const [values, setValues] = useState<Record<string, string>>(() =>
    Object.fromEntries(declared.map((parameter) => [parameter.name, parameter.default ?? ""])),
  );
  const [isCached, setCached] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const [wrong, setWrong] = useState("");
  const given = declared.filter((parameter) => (values[parameter.name] ?? "") !== parameter.default);
  const command = [
    `aliquot pipeline run ${quote(name)}`,
    ...given.map((parameter) => `-p ${quote(`${parameter.name}=${values[parameter.name] ?? ""}`)}`),
    ...(isCached ? ["--cache"] : []),
  ].join(" ");

  async function submit(event: Event): Promise<void> {
    event.preventDefault();
    setBusy(true);
    setWrong("");
    try {
      const parameters = Object.fromEntries(given.map((parameter) => [parameter.name, values[parameter.name]]));
      const run = await manager.post<Run>("/aliquot/v1/pipeline-runs", { pipeline: name, parameters, cache: isCached });
      say(`Run ${run.name} was started.`);
      go("run", run.id);
    } catch (error) {
      if (error instanceof Refusal) setWrong(error.field.replace(/^parameters\./, ""));
      say(failure(error), true);
      setBusy(false);
    }
  }

  return (
    <form class="launch" aria-label={`Run ${name}`} onSubmit={(event) => void submit(event)}>
      {declared.map((parameter) => (
        <Field
          key={parameter.name}
          parameter={parameter}
          value={values[parameter.name] ?? ""}
          isWrong={wrong === parameter.name}
          set={(value) => setValues({ ...values, [parameter.name]: value })}
        />
      ))}
      <label class="check">
        <input type="checkbox" checked={isCached} onChange={(event) => setCached(event.currentTarget.checked)} /> Reuse
        tasks that succeeded in earlier runs and have not changed
      </label>
      <div class="actions">
        <button type="submit" class="main" disabled={isBusy}>
          Run
        </button>
        <Copy command={command} />
      </div>
    </form>
  );
}

export function PipelineScreen({ name }: { name: string }) {
  const [found, setFound] = useState<(Pipeline & Drawn) | null>(null);
  const [why, setWhy] = useState("");
  useEffect(() => {
    const gone = new AbortController();
    setFound(null);
    manager
      .get<Pipeline & Drawn>(`/aliquot/v1/pipelines/${encodeURIComponent(name)}?graph=true`, gone.signal)
      .then(setFound, (error) => !gone.signal.aborted && setWhy(failure(error)));
    return () => gone.abort();
  }, [name]);
  if (!found) return <Empty>{why || "Asking the manager…"}</Empty>;
  return (
    <section class="run" aria-label={`Pipeline ${found.name}`}>
      <header>
        <h2>
          <a href={address("pipelines", "", "show=kept")}>Kept pipelines</a> / {plain(found.name)}
        </h2>
        <span class="dim">
          version {found.version}
          {found.saved_at ? `, saved ${time(found.saved_at)}` : ""}
          {found.next_at ? `, next run ${time(found.next_at)}` : ""}
        </span>
      </header>
      {found.graph && found.declared ? (
        <>
          <RunForm key={found.id} name={found.name} declared={found.declared} />
          <GraphView graph={found.graph} tasks={null} chosen={-1} hrefOf={() => address("pipeline", name)} />
        </>
      ) : (
        <Empty>This version of the manager cannot read the pipeline; save it again.</Empty>
      )}
      <details class="file">
        <summary>File</summary>
        <pre class="log" tabIndex={0} role="region" aria-label="File">
          {plain(found.text)}
        </pre>
      </details>
    </section>
  );
}
