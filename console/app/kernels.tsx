// SPDX-License-Identifier: Apache-2.0
// The kernels of a session that has several: which there are, and the one whose log and apps are shown.
import { useEffect, useState } from "preact/hooks";
import { plain } from "./format";
import { exitText, hasEnded, type Session } from "./model";
import { manager } from "./server";

export interface Kernel {
  hostname: string;
  role: string;
  status: string;
  agent: string | null;
  exit_code: number | null;
}

export const MAIN = "main1";
const AGAIN = 5000; // ms; kernels come and go while the session's status stays
const SHOWN_MAX = 100;

/** None of a session that has one kernel. */
export function useKernels(session: Session): Kernel[] {
  const [kernels, setKernels] = useState<Kernel[]>([]);
  useEffect(() => {
    setKernels([]);
    if (session.cluster_size < 2) return;
    const gone = new AbortController();
    let timer = 0;
    const look = async () => {
      if (!document.hidden)
        await manager
          .get<{ kernels: Kernel[] }>(`/aliquot/v1/sessions/${session.id}`, gone.signal)
          .then((found) => setKernels(found.kernels), () => undefined);
      if (!gone.signal.aborted && !hasEnded(session)) timer = window.setTimeout(() => void look(), AGAIN);
    };
    void look();
    return () => {
      gone.abort();
      window.clearTimeout(timer);
    };
  }, [session.id, session.status, session.cluster_size]);
  return kernels;
}

export function KernelChoice({
  kernels,
  chosen,
  choose,
}: {
  kernels: readonly Kernel[];
  chosen: string;
  choose: (hostname: string) => void;
}) {
  return (
    <label class="kernel">
      Kernel{" "}
      <select value={chosen} onChange={(event) => choose(event.currentTarget.value)}>
        {kernels.map(({ hostname, status }) => (
          <option key={hostname} value={hostname}>
            {plain(hostname)} ({status.toLowerCase()})
          </option>
        ))}
      </select>
    </label>
  );
}

export function KernelTable({ kernels }: { kernels: readonly Kernel[] }) {
  return (
    <table class="kernels" aria-label="Kernels">
      <thead>
        <tr>
          <th>Kernel</th>
          <th>Role</th>
          <th>Status</th>
          <th>Node</th>
          <th>Exit code</th>
        </tr>
      </thead>
      <tbody>
        {kernels.slice(0, SHOWN_MAX).map((kernel) => (
          <tr key={kernel.hostname}>
            <td>{plain(kernel.hostname)}</td>
            <td>{plain(kernel.role)}</td>
            <td>{kernel.status.toLowerCase()}</td>
            <td>{plain(kernel.agent)}</td>
            <td>{kernel.exit_code === null ? "" : exitText(kernel.exit_code)}</td>
          </tr>
        ))}
      </tbody>
      {kernels.length > SHOWN_MAX && (
        <tfoot>
          <tr>
            <td colSpan={5}>and {kernels.length - SHOWN_MAX} more</td>
          </tr>
        </tfoot>
      )}
    </table>
  );
}
