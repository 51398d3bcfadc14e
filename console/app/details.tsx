// SPDX-License-Identifier: Apache-2.0
// What one session has beside its row: attempts, what it waits for, when it ends, what it has used.
import { useEffect, useState } from "preact/hooks";
import { bytes, exactBytes, number, plain, time } from "./format";
import { exitText, hasEnded, type Session } from "./model";
import { failure, now, percent, say, timeLeft, use } from "./parts";
import { manager } from "./server";

interface Attempt {
  attempt: number;
  started_at: string | null;
  ended_at: string | null;
  reason: string | null;
  exit_code: number | null;
  agent: string | null;
  text: string | null;
}

interface Summary {
  wall_sec?: number | null;
  cpu_sec?: number | null;
  cpu_asked?: number | null;
  cpu_efficiency?: number | null;
  mem_peak?: number | null;
  mem_asked?: number | null;
  gpu_sec?: number | null;
  gpu_mem_peak?: number | null;
  gpu_mem_asked?: number | null;
  suggested?: { cpu: number | null; mem: number | null } | null;
}

export interface Details {
  retry: { limit: number; on: string; used: number; next_at: string | null } | null;
  attempts: Attempt[];
  summary: Summary | null;
  idle: { reason: string | null; can_extend: boolean; ends_soon: boolean } | null;
}

/** Read again when the row has changed; null = not yet, or of an older manager. */
export function useDetails(session: Session): Details | null {
  const [found, setFound] = useState<{ id: string; details: Details } | null>(null);
  useEffect(() => {
    const gone = new AbortController();
    manager
      .get<Details>(`/aliquot/v1/sessions/${session.id}`, gone.signal)
      .then((details) => setFound({ id: session.id, details }), () => undefined);
    return () => gone.abort();
  }, [session.id, session.status, session.status_changed, session.idle_ends_at]);
  return found?.id === session.id ? found.details : null;
}

/** When an idle session, or one at the end of its lifetime, ends; and a button to extend it. */
export function IdleEnd({ session, details }: { session: Session; details: Details | null }) {
  const at = use(now);
  const [isBusy, setBusy] = useState(false);
  if (!session.idle_ends_at || hasEnded(session)) return null;
  async function extend(): Promise<void> {
    setBusy(true);
    try {
      await manager.post(`/aliquot/v1/sessions/${session.id}/extend`, {});
      say(`${session.name} is extended.`);
    } catch (error) {
      say(failure(error), true);
    }
    setBusy(false);
  }
  const isLifetime = details?.idle?.reason === "idle-session-lifetime";
  return (
    <div class="reason idle" role="alert">
      <p>
        Ends in <span role="timer">{timeLeft(session, at)}</span>
        {isLifetime ? ": its lifetime is over" : " unless it is used"}.{" "}
        {details?.idle?.can_extend !== false && (
          <button type="button" data-key="k" disabled={isBusy} onClick={() => void extend()}>
            Extend
          </button>
        )}
      </p>
    </div>
  );
}

/** "2 of 4" */
export function attemptText(details: Details | null): string {
  const { retry } = details ?? {};
  if (!retry) return "";
  const next = retry.next_at ? `, the next at ${time(retry.next_at)}` : "";
  return `${retry.used + 1} of ${retry.limit + 1}${next}`;
}

export function Attempts({ attempts }: { attempts: readonly Attempt[] }) {
  if (attempts.length < 2) return null;
  return (
    <table class="kernels" aria-label="Attempts">
      <thead>
        <tr>
          <th>Attempt</th>
          <th>Started</th>
          <th>Ended</th>
          <th>Reason</th>
          <th>Exit code</th>
          <th>Node</th>
        </tr>
      </thead>
      <tbody>
        {attempts.map((each) => (
          <tr key={each.attempt}>
            <td>{each.attempt}</td>
            <td>{each.started_at ? time(each.started_at) : ""}</td>
            <td>{each.ended_at ? time(each.ended_at) : ""}</td>
            <td title={plain(each.text)}>{plain(each.reason)}</td>
            <td>{each.exit_code === null ? "" : exitText(each.exit_code)}</td>
            <td>{plain(each.agent)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** What a batch session used of what it asked for: rows of a name and words. */
export function usedRows(summary: Summary | null | undefined): [string, string][] {
  if (!summary) return [];
  const { cpu_efficiency, cpu_asked, mem_peak, mem_asked, gpu_sec, gpu_mem_peak, gpu_mem_asked, suggested } = summary;
  const rows: [string, string][] = [];
  if (cpu_efficiency != null) rows.push(["CPU used", `${percent(cpu_efficiency)} of ${cpu_asked ?? "–"}`]);
  if (mem_peak != null)
    rows.push(["Memory peak", `${bytes(mem_peak)}${mem_asked ? ` of ${bytes(mem_asked)}` : ""}`]);
  if (gpu_sec != null) rows.push(["GPU time", `${number(gpu_sec)} s`]);
  if (gpu_mem_peak != null)
    rows.push(["GPU memory peak", `${bytes(gpu_mem_peak)}${gpu_mem_asked ? ` of ${bytes(gpu_mem_asked)}` : ""}`]);
  const enough = [suggested?.cpu && `-r cpu=${suggested.cpu}`, suggested?.mem && `-r mem=${exactBytes(suggested.mem)}`];
  if (enough.some(Boolean)) rows.push(["Enough next time", enough.filter(Boolean).join(" ")]);
  return rows;
}
