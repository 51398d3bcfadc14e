// SPDX-License-Identifier: Apache-2.0
// One session beside the list: what it is, its log, its apps, its end.
import { computed } from "@preact/signals-core";
import { useEffect, useRef, useState } from "preact/hooks";
import { type App, Apps, appTitle, useApps } from "./apps";
import { age, bytes, number, plain, quote, reason, slots, time } from "./format";
import { ended, sessions, waiting, who } from "./live";
import { KernelChoice, KernelTable, MAIN, useKernels } from "./kernels";
import { LogView } from "./log";
import type { Session } from "./model";
import { exitText, hasEnded, isEndedByUser, isStarting, pullText, stateOf } from "./model";
import { cardShare, Commands, failure, Meter, now, percent, say, share, State, use } from "./parts";
import { go, place } from "./place";
import { manager } from "./server";
import { cpuShare } from "./sessions";

interface Why {
  reason: string | null;
  text: string | null;
}

// ---- the end ----

function End({ session }: { session: Session }) {
  const [isAsking, ask] = useState(false);
  const keep = useRef<HTMLButtonElement>(null);
  useEffect(() => keep.current?.focus(), [isAsking]);
  async function end(forced: boolean): Promise<void> {
    ask(false);
    try {
      await manager.remove("/aliquot/v1/sessions", { sessions: [session.id], forced });
      const { id, name } = session;
      say(computed(() => (ended.value.has(id) ? `${name} has ended.` : `${name} is being ended.`)));
    } catch (error) {
      say(failure(error), true);
    }
  }
  const verb = session.status === "PENDING" || isStarting(session) ? "Cancel" : "End";
  if (!isAsking)
    return (
      <button type="button" class="danger" data-key="x" onClick={() => ask(true)}>
        {verb}…
      </button>
    );
  return (
    <span class="confirm" role="group" aria-label={`${verb} ${session.name}?`}>
      {verb} {session.name}?
      <button type="button" class="danger" data-key="y" onClick={() => void end(false)}>
        {verb}
      </button>
      {who.value?.is_admin && (
        <button
          type="button"
          class="danger"
          title="Without waiting for its program"
          onClick={() => void end(true)}
        >
          Kill
        </button>
      )}
      <button type="button" ref={keep} onClick={() => ask(false)}>
        Keep
      </button>
    </span>
  );
}

// ---- what it is ----

function Reason({ session }: { session: Session }) {
  const row = use(waiting).get(session.id);
  const [why, setWhy] = useState<Why | null>(null);
  useEffect(() => {
    const gone = new AbortController();
    setWhy(null);
    if (hasEnded(session))
      manager.get<Why>(`/aliquot/v1/sessions/${session.id}/why`, gone.signal).then(setWhy, () => undefined);
    return () => gone.abort();
  }, [session.id, session.status]);
  const text = reason(row?.text ?? why?.text ?? "");
  const place = row?.position
    ? `Place ${row.position} of ${row.queue_length} in ${plain(session.resource_group)}.`
    : "";
  if (!text && !place) return null;
  return (
    <p class="reason">
      {place} {text}
    </p>
  );
}

/** Shows when an idle session, or one at the end of its lifetime, ends, and a button to extend it. */
function IdleEnd({ session }: { session: Session }) {
  const at = use(now);
  if (!session.idle_ends_at || hasEnded(session)) return null;
  async function extend(): Promise<void> {
    try {
      await manager.post(`/aliquot/v1/sessions/${session.id}/extend`, {});
      say(`${session.name} is extended.`);
    } catch (error) {
      say(failure(error), true);
    }
  }
  const left = Math.max(0, Math.round((Date.parse(session.idle_ends_at) - at) / 1000));
  const minutes = Math.floor(left / 60);
  return (
    <div class="reason idle" role="alert">
      <p>
        Ends in {minutes > 0 && `${minutes} min `}
        {left % 60} s unless it is used.{" "}
        <button type="button" data-key="k" onClick={() => void extend()}>
          Extend
        </button>
      </p>
    </div>
  );
}

interface Started {
  image: string | null;
  scheduled_at: string | null;
  status_changed: string;
}

/** From its placement to its run, in seconds: the median of those that run with this image. */
function useUsualStart(session: Session): number | null {
  const [usual, setUsual] = useState<number | null>(null);
  useEffect(() => {
    const gone = new AbortController();
    const query = "status=RUNNING&limit=200&order=-status_changed&fields=image,scheduled_at,status_changed";
    const all = who.value?.is_admin ? "&all=true" : "";
    manager
      .get<{ items: Started[] }>(`/aliquot/v1/sessions?${query}${all}`, gone.signal)
      .then(({ items }) => {
        const took = items
          .filter((item) => item.image === session.image && item.scheduled_at)
          .map((item) => (Date.parse(item.status_changed) - Date.parse(item.scheduled_at ?? "")) / 1000)
          .sort((a, b) => a - b);
        setUsual(took[took.length >> 1] ?? null);
      })
      .catch(() => undefined); // it is said by the way
    return () => gone.abort();
  }, [session.id]);
  return usual;
}

/** A slow start is not a fault: what is being done, how far it is, and how long it takes as a rule. */
function Start({ session }: { session: Session }) {
  const usual = useUsualStart(session);
  const { pull } = session;
  const stage = pull ? pullText(pull) : stateOf(session).word;
  return (
    <div class="reason" role="group" aria-label="Start">
      <p>
        {pull ? `The image: ${stage}` : `It is ${stage}`}
        {pull && pull.total_bytes > 0 && `, ${bytes(pull.done_bytes)} of ${bytes(pull.total_bytes)}`}, for{" "}
        {age(session.status_changed, use(now))}.
        {usual !== null && ` Sessions with this image usually start in ${number(Math.max(0.1, usual))} s.`}
      </p>
      {pull && <progress max={pull.total_bytes || undefined} value={pull.done_bytes} aria-label={stage} />}
    </div>
  );
}

function Uses({ session }: { session: Session }) {
  const mem = session.use?.mem;
  const util = cardShare(session.use, "util");
  const cardMem = cardShare(session.use, "mem");
  const cardMemory = Object.entries(session.use ?? {}).find(([key]) => key.endsWith("_mem"))?.[1];
  return (
    <div class="uses">
      <Meter label="CPU" value={cpuShare(session)}>
        CPU {percent(cpuShare(session))} of {session.resources.cpu ?? "–"}
      </Meter>
      <Meter label="Memory" value={share(session.use, "mem")}>
        memory {mem ? bytes(mem[0]) : "–"} of {bytes(Number(session.resources.mem ?? 0))}
      </Meter>
      {util !== null && (
        <Meter label="GPU" value={util}>
          GPU {percent(util)}
        </Meter>
      )}
      {cardMem !== null && cardMemory && (
        <Meter label="GPU memory" value={cardMem}>
          GPU memory {bytes(cardMemory[0])} of {bytes(cardMemory[1] ?? 0)}
        </Meter>
      )}
    </div>
  );
}

/** What "status_changed" is the time of. */
function changeName(session: Session): string {
  if (hasEnded(session)) return "Ended";
  if (session.status === "RUNNING") return "Running since";
  return stateOf(session).shape === "open" ? "Waiting since" : "Status since";
}

function Summary({ session }: { session: Session }) {
  const ago = age(session.status_changed, use(now));
  const how = hasEnded(session) ? (isEndedByUser(session) ? " ago, on request" : " ago") : "";
  const rows: [string, string][] = [
    ["Image", plain(session.image)],
    ["Resources", slots(session.resources)],
    ["Kernels", session.cluster_size > 1 ? number(session.cluster_size) : ""],
    ["Node", session.agents.map(plain).join(", ")],
    ["Type", session.type],
    ["User", plain(session.user)],
    ["Project", plain(session.group)],
    ["Resource group", plain(session.resource_group)],
    ["Priority", session.priority === 10 ? "" : number(session.priority)],
    ["Created", time(session.created_at)],
    ["Starts", session.starts_at ? time(session.starts_at) : ""],
    [changeName(session), `${time(session.status_changed)} (${ago}${how})`],
    ["Exit code", session.exit_code === null ? "" : exitText(session.exit_code)],
    ["ID", session.id],
  ];
  return (
    <dl>
      {rows
        .filter(([, value]) => value)
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}

// ---- all of it ----

/** As a command finds it: a name means a live session of one's own. */
function called(session: Session): string {
  return quote(session.user === who.value?.user && !hasEnded(session) ? session.name : session.id);
}

/** What can be done with it here, as commands. */
function commandsOf(session: Session, kernel: string, apps: readonly App[]): [string, string][] {
  const it = kernel === MAIN ? called(session) : `--kernel ${quote(kernel)} ${called(session)}`;
  const all: [string, string][] = [
    ["Show", `aliquot session info ${quote(session.id)}`],
    ["Log", `aliquot logs --follow ${it}`],
  ];
  for (const app of apps)
    all.push([
      appTitle(app),
      app.name === "ttyd" ? `aliquot session attach ${it}` : `aliquot app ${it} ${quote(app.name)}`,
    ]);
  if (!hasEnded(session)) all.push(["End", `aliquot session rm ${called(session)}`]);
  if (!hasEnded(session) && who.value?.is_admin) 
    all.push(["Kill", `aliquot session rm --force ${called(session)}`]);
  return all;
}

const TABS = ["summary", "log"] as const;

function Found({ session }: { session: Session }) {
  const [tab, setTab] = useState<(typeof TABS)[number]>("summary");
  const [kernel, setKernel] = useState(MAIN);
  const kernels = useKernels(session);
  const apps = useApps(session, kernel);
  useEffect(() => setKernel(MAIN), [session.id]);
  return (
    <>
      <Reason session={session} />
      <IdleEnd session={session} />
      {isStarting(session) && <Start session={session} />}
      {kernels.length > 1 && <KernelChoice kernels={kernels} chosen={kernel} choose={setKernel} />}
      {apps.length > 0 && <Apps session={session} kernel={kernel} apps={apps} />}
      {session.status === "RUNNING" && <Uses session={session} />}
      <div class="choice tabs" role="group" aria-label="What is shown">
        {TABS.map((each) => (
          <button
            key={each}
            type="button"
            aria-pressed={tab === each}
            data-key={each === "log" ? "l" : "s"}
            onClick={() => setTab(each)}
          >
            {each}
          </button>
        ))}
      </div>
      {tab === "summary" ? (
        <>
          <Summary session={session} />
          {kernels.length > 1 && <KernelTable kernels={kernels} />}
        </>
      ) : (
        <LogView session={session} kernel={kernel} />
      )}
      <footer>
        {!hasEnded(session) && <End session={session} />}
        <Commands commands={commandsOf(session, kernel, apps)} />
      </footer>
    </>
  );
}

export function Peek({ id }: { id: string }) {
  const session = use(sessions).get(id) ?? use(ended).get(id);
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    heading.current?.focus({ preventScroll: true });
    return () =>
      document.querySelector<HTMLElement>(`[data-of="${CSS.escape(id)}"]`)?.focus({ preventScroll: true });
  }, [id]);
  const close = () => go(place.value.screen, "", place.value.query);
  const name = session?.name ?? "Session";
  return (
    <aside class="peek" aria-label={name}>
      <header>
        <h2 ref={heading} tabIndex={-1}>
          {name}
        </h2>
        {session && <State {...stateOf(session)} />}
        <button type="button" class="plain close" onClick={close} aria-label="Close" data-key="Escape">
          ×
        </button>
      </header>
      {!session && <p class="empty">It is not among the sessions that are shown here.</p>}
      {session && <Found session={session} />}
    </aside>
  );
}
