// SPDX-License-Identifier: Apache-2.0
// Apps of a session, which open in tabs of their own.
import { useEffect, useState } from "preact/hooks";
import { plain } from "./format";
import { who } from "./live";
import type { Session } from "./model";
import { failure, say } from "./parts";
import { manager } from "./server";

export interface App {
  name: string;
  protocol: string;
  ports: number[];
  state?: string;
  why?: string;
}

const APP_NAMES: Record<string, string> = {
  ttyd: "Terminal",
  jupyter: "Jupyter",
  jupyterlab: "JupyterLab",
  vscode: "VS Code",
  tensorboard: "TensorBoard",
};
const IN_BROWSER = ["http", "https", "preopen"];
const AGAIN = 5000; // ms; a program may listen only some time after the session's start

/** A port that a session opens has its number as its name. */
export function appTitle({ name }: App): string {
  return APP_NAMES[name] ?? (/^\d+$/.test(name) ? `Port ${name}` : plain(name));
}

/** Nothing starts a port's program, so nobody answers until it listens. */
function isSilent({ protocol, state }: App): boolean {
  return protocol === "preopen" && state !== "running" && state !== "unknown";
}

/** Those that a browser can open, the terminal first; they are asked for again while they are shown.
 * Only a session's own user may open them. */
export function useApps(session: Session, kernel: string): App[] {
  const [apps, setApps] = useState<App[]>([]);
  useEffect(() => {
    const canOpen = session.status === "RUNNING" && session.user === who.value?.user;
    setApps(canOpen ? [{ name: "ttyd", protocol: "http", ports: [] }] : []);
    if (!canOpen) return;
    const gone = new AbortController();
    let timer = 0;
    const look = async () => {
      if (!document.hidden)
        await manager
          .get<App[]>(`/stream/session/${session.id}/apps?kernel=${encodeURIComponent(kernel)}`, gone.signal)
          .then(setApps, () => undefined);
      if (!gone.signal.aborted) timer = window.setTimeout(() => void look(), AGAIN);
    };
    void look();
    return () => {
      gone.abort();
      window.clearTimeout(timer);
    };
  }, [session.id, session.status, kernel]);
  return apps
    .filter((app) => IN_BROWSER.includes(app.protocol))
    .sort((a, b) => Number(b.name === "ttyd") - Number(a.name === "ttyd"));
}

/** A tab has to be opened before the answer is there: a browser allows it by a click alone. */
async function openApp(session: Session, kernel: string, app: string): Promise<void> {
  const tab = window.open("about:blank", "_blank");
  if (tab) tab.opener = null;
  try {
    const started = await manager.post<{ token: string | null; wsproxy_addr: string | null; target_id?: string }>(
      `/session/${session.id}/start-service`,
      { app, kernel },
    );
    if (!started.token || !started.wsproxy_addr) throw new Error("No proxy is connected that leads to apps.");
    const query = new URLSearchParams({ token: started.token, session_id: started.target_id ?? session.id, app });
    const address = `${started.wsproxy_addr}/v2/proxy/auth?${query}`;
    if (tab) tab.location.replace(address);
    else location.assign(address);
  } catch (error) {
    tab?.close();
    say(failure(error), true);
  }
}

export function Apps({
  session,
  kernel,
  apps,
}: {
  session: Session;
  kernel: string;
  apps: readonly App[];
}) {
  return (
    <ul class="apps" aria-label="Apps">
      {apps.map((app) => {
        const silent = isSilent(app);
        const why = silent ? `Nothing listens on port ${app.ports[0] ?? app.name} yet.` : plain(app.why);
        return (
          <li key={app.name}>
            <button
              type="button"
              title={why || undefined}
              aria-disabled={silent}
              data-key={app.name === "ttyd" ? "t" : undefined}
              onClick={() => (silent ? say(why) : void openApp(session, kernel, app.name))}
            >
              {appTitle(app)}
            </button>
          </li>
        );
      })}
    </ul>
  );
}
