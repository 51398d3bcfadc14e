// SPDX-License-Identifier: Apache-2.0
// A rollout as a picture: replicas of both revisions, how requests are divided, the step.
import { plain, quote, time } from "./format";
import { Age, Commands, Confirm, say, State } from "./parts";
import { manager } from "./server";
import { pathOf, type RolloutState, type Service, type Side } from "./serving";

const SHAPES = {
  none: "open",
  running: "quarter",
  ready: "half",
  aborting: "half",
  done: "full",
  aborted: "failed",
} as const;
const WORDS: Partial<Record<RolloutState["phase"], string>> = { ready: "waits to be promoted" };

function isUnderWay({ phase }: RolloutState): boolean {
  return phase === "running" || phase === "ready" || phase === "aborting";
}

/** As wide as the larger side; the filled part is ready. */
function SideBar({ title, side, most, kind }: { title: string; side: Side; most: number; kind: string }) {
  const width = (count: number) => `${(100 * count) / Math.max(1, most)}%`;
  return (
    <div class="side">
      <span>{title}</span>
      <span class="track" aria-hidden="true">
        <span class={`all ${kind}`} style={{ width: width(side.replicas) }} />
        <span class={kind} style={{ width: width(side.ready) }} />
      </span>
      <span class="words">
        {side.ready} of {side.replicas} ready
      </span>
    </div>
  );
}

/** The percentages of a canary; 'step' counts from 1. */
function Steps({ steps, step }: { steps: readonly number[]; step: number }) {
  return (
    <ol class="steps" aria-label="Steps">
      {[...steps, 100].map((percent, i) => (
        <li key={percent} class={i + 1 < step ? "past" : ""} aria-current={i + 1 === step ? "step" : undefined}>
          {percent} %
        </li>
      ))}
    </ol>
  );
}

export function RolloutView({ service, after }: { service: Service; after: () => void }) {
  const { rollout } = service;
  const state = rollout?.state;
  if (!rollout || !state || !(isUnderWay(state) || state.phase === "aborted")) return null;
  const isActive = isUnderWay(state);
  const percent = Math.max(0, Math.min(100, state.percent ?? 0));
  const most = Math.max(state.old.replicas, state.new.replicas);
  const mayPromote = state.phase === "ready" || (state.phase === "running" && rollout.strategy === "canary");
  const name = quote(service.name);

  async function promote(): Promise<void> {
    await manager.post(`${pathOf(service)}/rollout/promote`, {});
    say(`Revision ${state?.to} of ${service.name} is promoted.`);
    after();
  }
  async function abort(): Promise<void> {
    await manager.post(`${pathOf(service)}/rollout/abort`, {});
    say(`The rollout of ${service.name} is aborted.`);
    after();
  }

  return (
    <section class="rollout" aria-label="Rollout">
      <p>
        <State word={WORDS[state.phase] ?? state.phase} shape={SHAPES[state.phase] ?? "open"} />{" "}
        <span class="dim">
          {rollout.strategy} from revision {state.from} to {state.to}
          {isActive && state.since && (
            <>
              , since <Age from={state.since} />
            </>
          )}
          {isActive && state.next_at && `, goes on at ${time(state.next_at)}`}
        </span>
      </p>
      {state.reason && <p class="reason">{plain(state.reason)}</p>}
      {isActive && (
        <>
          <SideBar title={`revision ${state.from}`} side={state.old} most={most} kind="old" />
          <SideBar title={`revision ${state.to}`} side={state.new} most={most} kind="new" />
          <div class="side">
            <span>requests</span>
            <span class="track" aria-hidden="true">
              <span class="new" style={{ width: `${percent}%` }} />
            </span>
            <span class="words">
              {state.percent === null ? "no replica is ready" : `${percent} % to revision ${state.to}`}
            </span>
          </div>
          {rollout.steps && state.step !== null && <Steps steps={rollout.steps} step={state.step} />}
          <div class="actions">
            {mayPromote && (
              <Confirm verb="Promote" name={`revision ${state.to}`} what={`revision ${state.to}`} act={promote} />
            )}
            {state.phase !== "aborting" && <Confirm verb="Abort" name="the rollout" act={abort} />}
            <Commands
              commands={[
                ...(mayPromote ? ([["Promote", `aliquot service promote ${name}`]] as const) : []),
                ["Abort", `aliquot service abort ${name}`],
              ]}
            />
          </div>
        </>
      )}
    </section>
  );
}
