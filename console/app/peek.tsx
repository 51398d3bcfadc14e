// SPDX-License-Identifier: Apache-2.0
// One session beside the list: what it is, its log, its apps, its end.
import { computed } from "@preact/signals-core";
import { useEffect, useRef, useState } from "preact/hooks";
import { type App, Apps, appTitle, useApps } from "./apps";
import { ArrayFound } from "./arrays";
import { Attempts, attemptText, type Details, IdleEnd, useDetails, usedRows } from "./details";
import { age, bytes, number, plain, quote, reason, slots, time } from "./format";
import { arrays, ended, endedArrays, keepSession, sessions, waiting, who } from "./live";
import { KernelChoice, KernelTable, MAIN, useKernels } from "./kernels";
import { LogView } from "./log";
import type { Session } from "./model";
import { exitText, hasEnded, isEndedByUser, isStarting, pullText, stateOf, stateOfArray } from "./model";
import { cardShare, Commands, Confirm, Facts, Meter, now, percent, say, share, State, use } from "./parts";
import { address, go, place } from "./place";
import { manager } from "./server";
import { cpuShare } from "./sessions";

interface Why {
  reason: string | null;
  text: string | null;
}

// ---- the end ----

function End({ session }: { session: Session }) {
  async function end(forced: boolean): Promise<void> {
    await manager.remove("/aliquot/v1/sessions", { sessions: [session.id], forced });
    const { id, name } = session;
    say(computed(() => (ended.value.has(id) ? `${name} has ended.` : `${name} is being ended.`)));
  }
  return (
    <Confirm
      verb={session.status === "PENDING" || isStarting(session) ? "Cancel" : "End"}
      name={session.name}
      act={() => end(false)}
      kill={who.value?.is_admin ? () => end(true) : undefined}
    />
  );
}

// ---- what it is ----

/** The name of a reservation in a sentence of the scheduler leads to it. */
function WithReservation({ text }: { text: string }) {
  const found = /^(.*?reservation ')([^']+)('.*)$/s.exec(text);
  if (!found) return <>{text}</>;
  const [, before, name = "", after] = found;
  return (
    <>
      {before}
      <a href={address("reservation", name)}>{name}</a>
      {after}
    </>
  );
}

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
  const others = row?.waits_for ?? [];
  if (!text && !place && !others.length) return null;
  return (
    <div class="reason">
      {others.length > 0 ? (
        <p>
          Waits for{" "}
          {others.map(({ id, name, condition }, i) => (
            <span key={id}>
              {i > 0 && ", "}
              the {condition} of <a href={address("sessions", id)}>{plain(name ?? id)}</a>
            </span>
          ))}
          .
        </p>
      ) : (
        <>
          {place} <WithReservation text={text} />
        </>
      )}
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

function Summary({ session, details }: { session: Session; details: Details | null }) {
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
    ["Attempt", attemptText(details)],
    ["Starts", session.starts_at ? time(session.starts_at) : ""],
    [changeName(session), `${time(session.status_changed)} (${ago}${how})`],
    ["Exit code", session.exit_code === null ? "" : exitText(session.exit_code)],
    ...(hasEnded(session) ? usedRows(details?.summary) : []),
    ["ID", session.id],
  ];
  return <Facts rows={rows} />;
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
  const details = useDetails(session);
  useEffect(() => setKernel(MAIN), [session.id]);
  return (
    <>
      <Reason session={session} />
      <IdleEnd session={session} details={details} />
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
          <Summary session={session} details={details} />
          <Attempts attempts={details?.attempts ?? []} />
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

const LISTED_MSEC = 1500; // in which what has just ended is listed again

/** One that is not listed, such as the session of a task of an old run, is asked for once. */
function useFound(id: string, isListed: boolean): Session | null {
  const [found, setFound] = useState<Session | null>(null);
  useEffect(() => {
    if (isListed) return;
    const gone = new AbortController();
    setFound(null);
    const ask = () =>
      manager.get<Session>(`/aliquot/v1/sessions/${id}`, gone.signal).then(
        (session) => {
          setFound(session);
          keepSession(session);
        },
        () => undefined, // it says that it is not there
      );
    const timer = window.setTimeout(() => void ask(), LISTED_MSEC);
    return () => {
      gone.abort();
      window.clearTimeout(timer);
    };
  }, [id, isListed]);
  return found?.id === id ? found : null;
}

export function Peek({ id }: { id: string }) {
  const [living, over] = [use(sessions), use(ended)]; // hooks: each time all of them
  const [livingArrays, overArrays] = [use(arrays), use(endedArrays)];
  const listed = living.get(id) ?? over.get(id);
  const array = livingArrays.get(id) ?? overArrays.get(id);
  const found = useFound(id, Boolean(listed ?? array));
  const session = listed ?? found;
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    heading.current?.focus({ preventScroll: true });
    return () =>
      document.querySelector<HTMLElement>(`[data-of="${CSS.escape(id)}"]`)?.focus({ preventScroll: true });
  }, [id]);
  const close = () => go(place.value.screen, "", place.value.query);
  const name = array?.label ?? session?.name ?? "Session";
  return (
    <aside class="peek" aria-label={name}>
      <header>
        <h2 ref={heading} tabIndex={-1}>
          {name}
        </h2>
        {array ? <State {...stateOfArray(array)} /> : session && <State {...stateOf(session)} />}
        <button type="button" class="plain close" onClick={close} aria-label="Close" data-key="Escape">
          ×
        </button>
      </header>
      {array && <ArrayFound array={array} />}
      {!session && !array && <p class="empty">It is not among the sessions that are shown here.</p>}
      {session && !array && <Found session={session} />}
    </aside>
  );
}
