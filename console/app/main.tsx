// SPDX-License-Identifier: Apache-2.0
// The console: who is logged in, where they are, and the keys.
import { signal } from "@preact/signals-core";
import { render } from "preact";
import { useEffect } from "preact/hooks";
import { DeployForm } from "./deploy";
import { plain, time } from "./format";
import { LaunchScreen } from "./launch";
import { endedRuns, arrays, follow, forget, isLoaded, lostAt, nodes, runs, sessions, waiting, who } from "./live";
import { Login } from "./login";
import { MapScreen } from "./map";
import { Empty, failure, Said, say, use } from "./parts";
import { Peek } from "./peek";
import { PipelineScreen, PipelinesScreen, shownRuns } from "./pipelines";
import { address, go, place, replace } from "./place";
import { queued, QueueScreen } from "./queue";
import { isLoggedIn, logOut, onExpired } from "./server";
import { ReservationForm, ReservationScreen, ReservationsScreen } from "./reservations";
import { RunScreen } from "./run";
import { ServiceScreen } from "./service";
import { ServicesScreen } from "./services";
import { forgetFigures } from "./serving";
import { countLive, SessionsScreen, shownRows } from "./sessions";

const isIn = signal<boolean | null>(null);
const hasExpired = signal(false);
const unknown = signal(""); // why it is not known whether anybody is logged in
const areKeysShown = signal(false);

/** 'tab' is the entry that stands for it; 'isOwn': the id in the address is of no session. */
interface Screen {
  title: string;
  draw: (id: string) => preact.JSX.Element;
  tab?: string;
  isOwn?: boolean;
}

const SCREENS: Record<string, Screen> = {
  map: { title: "Map", draw: () => <MapScreen /> },
  sessions: { title: "Sessions", draw: () => <SessionsScreen /> },
  queue: { title: "Queue", draw: () => <QueueScreen /> },
  pipelines: { title: "Pipelines", draw: () => <PipelinesScreen /> },
  pipeline: { title: "Pipeline", draw: (id) => <PipelineScreen name={id} />, tab: "pipelines", isOwn: true },
  run: { title: "Run", draw: (id) => <RunScreen id={id} />, tab: "pipelines", isOwn: true },
  reservations: { title: "Reservations", draw: () => <ReservationsScreen /> },
  reservation: {
    title: "Reservation",
    draw: (id) => <ReservationScreen id={id} />,
    tab: "reservations",
    isOwn: true,
  },
  reserve: {
    title: "Reserve",
    draw: () => <ReservationForm of={null} after={() => undefined} />,
    tab: "reservations",
    isOwn: true,
  },
  services: { title: "Services", draw: () => <ServicesScreen /> },
  service: { title: "Service", draw: (id) => <ServiceScreen key={id} id={id} />, tab: "services", isOwn: true },
  serve: {
    title: "Create service",
    draw: () => <DeployForm of={null} after={() => undefined} />,
    tab: "services",
    isOwn: true,
  },
  launch: { title: "Launch", draw: () => <LaunchScreen /> },
};

const KEYS: [string, string][] = [
  ["1 2 3 4 5 6", "map, sessions, queue, pipelines, reservations, services"],
  ["n", "launch a session"],
  ["/", "filter the sessions"],
  ["j k", "the next session, the one before"],
  ["s l", "its summary, its log"],
  ["t", "its terminal"],
  ["x, then y", "end it"],
  ["Esc", "close it"],
  ["?", "these keys"],
];

// ---- keys ----

/** The session after the one that is looked at, or before it. */
function step(by: number): void {
  const { screen, id, query } = place.value;
  if (screen === "pipelines") {
    const first = shownRuns(runs.value.values(), endedRuns.value)[0];
    if (first && !query.has("show")) go("run", first.id);
    return;
  }
  if (SCREENS[screen]?.isOwn) return;
  const inQueue = screen === "queue";
  const rows = inQueue
    ? queued(waiting.value.values(), sessions.value).map(({ row }) => row.id)
    : shownRows(query)
        .filter(({ isInert }) => !isInert)
        .map((row) => row.id);
  const next = rows[Math.max(0, Math.min(rows.length - 1, rows.indexOf(id) + by))];
  const to = inQueue ? "queue" : "sessions";
  // From one session to the next it replaces the place, so that "back" leads out of all of them.
  if (next) (id && screen === to ? replace : go)(to, next, query);
}

/** The focus goes along once the screen is drawn. */
function show(screen: string, focus: string): void {
  if (place.value.screen !== screen) go(screen);
  setTimeout(() => document.querySelector<HTMLElement>(focus)?.focus({ preventScroll: true }));
}

function press(key: string): boolean {
  if (key === "?") areKeysShown.value = !areKeysShown.value;
  else if (key === "Escape" && areKeysShown.value) areKeysShown.value = false;
  else if (key === "n") show("launch", "#image");
  else if (key in SCREEN_KEYS) {
    go(SCREEN_KEYS[key] ?? "map");
    show(place.value.screen, ".screen");
  } else if (key === "j" || key === "k") step(key === "j" ? 1 : -1);
  else if (key === "/") show("sessions", "#filter");
  else {
    const button = document.querySelector<HTMLElement>(`[data-key="${key}"]`);
    button?.click();
    return button !== null;
  }
  return true;
}

const SCREEN_KEYS: Record<string, string> = {
  "1": "map",
  "2": "sessions",
  "3": "queue",
  "4": "pipelines",
  "5": "reservations",
  "6": "services",
};

document.addEventListener("keydown", (event) => {
  if (!isIn.value || event.ctrlKey || event.metaKey || event.altKey) return;
  const target = event.target as HTMLElement;
  if (target.closest("input, select, textarea")) {
    if (event.key === "Escape") target.blur();
    return;
  }
  if (/^[\w/?]$|^Escape$/.test(event.key) && press(event.key)) event.preventDefault();
});

function Keys() {
  if (!use(areKeysShown)) return null;
  return (
    <div class="keys" role="dialog" aria-label="Keys">
      <button type="button" class="plain" aria-label="Close" onClick={() => (areKeysShown.value = false)}>
        ×
      </button>
      <dl>
        {KEYS.map(([key, what]) => (
          <div key={key}>
            <dt>{key}</dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <a class="dim" href="licences.txt" target="_blank" rel="noopener">
        Licences
      </a>
    </div>
  );
}

// ---- the frame ----

async function leave(): Promise<void> {
  try {
    await logOut();
  } catch (error) {
    say(failure(error), true);
    return;
  }
  forget();
  forgetFigures();
  isIn.value = false;
}

function Bar() {
  const { screen } = use(place);
  const me = use(who);
  const lost = use(lostAt);
  const areCounted = use(isLoaded);
  use(sessions);
  use(arrays);
  const counts: Record<string, number> = {
    map: use(nodes).size,
    sessions: countLive(),
    queue: use(waiting).size,
    pipelines: use(runs).size,
  };
  const tab = SCREENS[screen]?.tab ?? screen;
  return (
    <header class="bar">
      <h1>aliquot</h1>
      <nav aria-label="Screens">
        {Object.values(SCREEN_KEYS).map((name) => (
          <a key={name} href={address(name)} aria-current={tab === name ? "page" : undefined}>
            {SCREENS[name]?.title} {areCounted && name in counts && <span class="dim">{counts[name]}</span>}
          </a>
        ))}
      </nav>
      <a class="main" href={address("launch")} aria-current={screen === "launch" ? "page" : undefined}>
        Launch
      </a>
      <span class="space" />
      <span class={`link ${lost ? "lost" : ""}`}>{lost ? "not connected" : me ? "live" : ""}</span>
      <span class="who" title={plain(me?.user)}>
        {plain(me?.user)}
      </span>
      <button type="button" class="plain" aria-label="Keys" onClick={() => press("?")}>
        ?
      </button>
      <button type="button" class="plain" onClick={() => void leave()}>
        Log out
      </button>
    </header>
  );
}

function Lost() {
  const lost = use(lostAt);
  const isShown = use(isLoaded);
  if (!lost) return null;
  return (
    <p class="notice" role="alert">
      No connection to the manager since {time(new Date(lost).toISOString())}
      {isShown && "; the last known state is shown"}. Retrying…{" "}
      <button type="button" onClick={follow}>
        Try now
      </button>
    </p>
  );
}

function Unknown() {
  return (
    <Empty>
      There is no such screen. <a href={address("map")}>Map</a>
    </Empty>
  );
}

function Console() {
  const { screen, id } = use(place);
  const shown = SCREENS[screen];
  useEffect(() => {
    document.title = `${shown?.title ?? "Console"} · aliquot`;
  }, [screen]);
  return (
    <>
      <Bar />
      <Lost />
      <main class={id && !shown?.isOwn ? "with-peek" : ""}>
        <div class="screen" tabIndex={-1}>
          {shown ? shown.draw(id) : <Unknown />}
        </div>
        {id && !shown?.isOwn && <Peek id={id} />}
      </main>
      <Keys />
      <Said />
    </>
  );
}

function enter(): void {
  hasExpired.value = false;
  isIn.value = true;
  follow();
}

function App() {
  const inside = use(isIn);
  const note = use(hasExpired)
    ? "This login has ended: it was logged out elsewhere, its password was changed, or it was not used for long. Log in again; what you were at is kept."
    : "";
  const why = use(unknown);
  if (inside === null) return why ? <Empty>{why}</Empty> : null;
  return inside ? <Console /> : <Login note={note} onIn={enter} />;
}

onExpired.call = () => {
  if (!isIn.value) return;
  forget();
  forgetFigures();
  hasExpired.value = true;
  isIn.value = false;
};

const root = document.querySelector("#console");
if (root) render(<App />, root);

function begin(): void {
  isLoggedIn().then(
    (inside) => (inside ? enter() : (isIn.value = false)),
    (error) => {
      unknown.value = `${failure(error).replace(/[.]?$/, ".")} Retrying…`;
      setTimeout(begin, 3000);
    },
  );
}
begin();
