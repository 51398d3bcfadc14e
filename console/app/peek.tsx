// SPDX-License-Identifier: Apache-2.0
// One session beside the list: what it is, its log, its apps, its end.
import { useEffect, useRef, useState } from "preact/hooks";
import { age, bytes, number, plain, quote, reason, slots, time } from "./format";
import { ended, sessions, waiting, who } from "./live";
import { LogView } from "./log";
import type { Session } from "./model";
import { hasEnded, isStarting, pullText, stateOf } from "./model";
import { cardShare, Copy, failure, Meter, now, percent, say, share, State, use } from "./parts";
import { go, place } from "./place";
import { manager } from "./server";
import { cpuShare } from "./sessions";

/** As a command finds it: a name means a live session of one's own. */
function called(session: Session): string {
  return quote(session.user === who.value?.user && !hasEnded(session) ? session.name : session.id);
}

interface App {
  name: string;
  protocol: string;
  state?: string;
  why?: string;
}

interface Why {
  reason: string | null;
  text: string | null;
}

// ---- apps, in tabs of their own ----

/** A tab has to be opened before the answer is there: a browser allows it by a click alone. */
async function openApp(session: Session, app: string): Promise<void> {
  const tab = window.open("about:blank", "_blank");
  if (tab) tab.opener = null;
  try {
    const started = await manager.post<{ token: string | null; wsproxy_addr: string | null }>(
      `/session/${session.id}/start-service`,
      { app },
    );
    if (!started.token || !started.wsproxy_addr) throw new Error("No proxy is connected that leads to apps.");
    const query = new URLSearchParams({ token: started.token, session_id: session.id, app });
    const address = `${started.wsproxy_addr}/v2/proxy/auth?${query}`;
    if (tab) tab.location.replace(address);
    else location.assign(address);
  } catch (error) {
    tab?.close();
    say(failure(error), true);
  }
}

const APP_NAMES: Record<string, string> = {
  ttyd: "Terminal",
  jupyter: "Jupyter",
  jupyterlab: "JupyterLab",
  vscode: "VS Code",
  tensorboard: "TensorBoard",
};
const IN_BROWSER = ["http", "https", "preopen"];

function Apps({ session }: { session: Session }) {
  const [apps, setApps] = useState<App[] | null>(null);
  useEffect(() => {
    const gone = new AbortController();
    setApps(null);
    if (session.status === "RUNNING")
      manager.get<App[]>(`/stream/session/${session.id}/apps`, gone.signal).then(setApps, () => setApps([]));
    return () => gone.abort();
  }, [session.id, session.status]);
  const shown = (apps ?? [{ name: "ttyd", protocol: "http" }]).filter((app) =>
    IN_BROWSER.includes(app.protocol),
  );
  shown.sort((a, b) => Number(b.name === "ttyd") - Number(a.name === "ttyd"));
  return (
    <ul class="apps" aria-label="Apps">
      {shown.map((app) => (
        <li key={app.name}>
          <button
            type="button"
            title={plain(app.why) || undefined}
            data-key={app.name === "ttyd" ? "t" : undefined}
            onClick={() => void openApp(session, app.name)}
          >
            {APP_NAMES[app.name] ?? plain(app.name)}
          </button>
          <Copy
            label="copy"
            command={
              app.name === "ttyd"
                ? `aliquot session attach ${called(session)}`
                : `aliquot app ${called(session)} ${quote(app.name)}`
            }
          />
        </li>
      ))}
    </ul>
  );
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
      say(`${session.name} is being ended.`);
    } catch (error) {
      say(failure(error), true);
    }
  }
  if (!isAsking)
    return (
      <button type="button" class="danger" data-key="x" onClick={() => ask(true)}>
        {session.status === "PENDING" || isStarting(session) ? "Cancel…" : "End…"}
      </button>
    );
  return (
    <span class="confirm" role="group" aria-label={`End ${session.name}?`}>
      End {session.name}?
      <button type="button" class="danger" data-key="y" onClick={() => void end(false)}>
        End
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
      {who.value?.is_admin && <Copy command={`aliquot session rm --force ${called(session)}`} label="copy" />}
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
        {usual !== null && ` Starts with this image took ${number(Math.max(0.1, usual))} s as a rule.`}
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
        CPU {percent(cpuShare(session))} of {session.requested_slots.cpu ?? "–"}
      </Meter>
      <Meter label="Memory" value={share(session.use, "mem")}>
        memory {mem ? bytes(mem[0]) : "–"} of {bytes(Number(session.requested_slots.mem ?? 0))}
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

function Summary({ session }: { session: Session }) {
  const rows: [string, string][] = [
    ["Image", plain(session.image)],
    ["Has", slots(session.requested_slots)],
    ["Kernels", session.cluster_size > 1 ? number(session.cluster_size) : ""],
    ["Node", session.agents.map(plain).join(", ")],
    ["Type", session.type],
    ["User", plain(session.user)],
    ["Project", plain(session.group)],
    ["Resource group", plain(session.resource_group)],
    ["Priority", session.priority === 10 ? "" : number(session.priority)],
    ["Made", time(session.created_at)],
    ["Starts", session.starts_at ? time(session.starts_at) : ""],
    ["Since", `${time(session.status_changed)} (${age(session.status_changed, use(now))})`],
    ["Exit code", session.exit_code === null ? "" : String(session.exit_code)],
    ["Id", session.id],
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

const TABS = ["summary", "log"] as const;

export function Peek({ id }: { id: string }) {
  const session = use(sessions).get(id) ?? use(ended).get(id);
  const [tab, setTab] = useState<(typeof TABS)[number]>("summary");
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
      {session && (
        <>
          <Reason session={session} />
          {isStarting(session) && <Start session={session} />}
          {session.status === "RUNNING" && <Apps session={session} />}
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
          {tab === "summary" ? <Summary session={session} /> : <LogView session={session} />}
          <footer>
            {!hasEnded(session) && <End session={session} />}
            {!hasEnded(session) && (
              <Copy command={`aliquot session rm ${called(session)}`} label="Copy end as command" />
            )}
            {tab === "log" && (
              <Copy command={`aliquot logs --follow ${called(session)}`} label="Copy log as command" />
            )}
            {tab === "summary" && (
              <Copy command={`aliquot session info ${quote(session.id)}`} label="Copy as command" />
            )}
          </footer>
        </>
      )}
    </aside>
  );
}
