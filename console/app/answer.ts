// SPDX-License-Identifier: Apache-2.0
// Answers of the manager that are read again while they are shown: the feed has not everything.
import { useEffect, useState } from "preact/hooks";
import { failure } from "./parts";
import { manager } from "./server";

export interface Answered<T> {
  answer: T | null;
  why: string; // the last request failed
  again: () => void;
}

/** Read again 'delay' milliseconds after each answer, while the page can be seen. */
export function useAnswer<T>(path: string, delay: number | ((read: T) => number)): Answered<T> {
  const [found, setFound] = useState<{ path: string; read: T } | null>(null);
  const [why, setWhy] = useState("");
  const [turn, setTurn] = useState(0);
  const answer = found?.path === path ? found.read : null; // never that of another path
  useEffect(() => {
    const gone = new AbortController();
    let timer = 0;
    const later = (msec: number) => {
      timer = window.setTimeout(() => (document.hidden ? later(msec) : setTurn((count) => count + 1)), msec);
    };
    manager.get<T>(path, gone.signal).then(
      (read) => {
        setFound({ path, read });
        setWhy("");
        later(typeof delay === "number" ? delay : delay(read));
      },
      (error) => {
        if (gone.signal.aborted) return;
        setWhy(failure(error));
        later(typeof delay === "number" ? delay : 10000);
      },
    );
    return () => {
      window.clearTimeout(timer);
      gone.abort();
    };
  }, [path, turn]);
  return { answer, why, again: () => setTurn((count) => count + 1) };
}
