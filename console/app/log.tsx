// SPDX-License-Identifier: Apache-2.0
// What a session's program writes, as it writes it.
import { useEffect, useRef, useState } from "preact/hooks";
import { logText } from "./format";
import type { Session } from "./model";
import { failure } from "./parts";
import { ask } from "./server";

const TAIL = 1000;
const CHARACTERS_MAX = 1 << 19;
const END = "End of the log.";

async function follow(
  id: string,
  kernel: string,
  signal: AbortSignal,
  take: (text: string) => void,
): Promise<void> {
  const reply = await ask(
    "GET",
    `/func/aliquot/v1/sessions/${id}/logs?follow=true&tail=${TAIL}&kernel=${encodeURIComponent(kernel)}`,
    undefined,
    signal,
  );
  const reader = reply.body?.getReader();
  const decoder = new TextDecoder();
  for (;;) {
    const part = await reader?.read();
    if (!part || part.done) return;
    take(decoder.decode(part.value, { stream: true }));
  }
}

export function LogView({ session, kernel }: { session: Pick<Session, "id">; kernel: string }) {
  const [text, setText] = useState("");
  const [note, setNote] = useState("Waiting for output…");
  const box = useRef<HTMLPreElement>(null);
  const isAtEnd = useRef(true);
  useEffect(() => {
    const gone = new AbortController();
    let raw = "";
    let frame = 0;
    const draw = () => {
      frame = 0;
      setText(logText(raw));
    };
    setText("");
    setNote("Waiting for output…");
    follow(session.id, kernel, gone.signal, (more) => {
      raw = (raw + more).slice(-CHARACTERS_MAX);
      frame ||= requestAnimationFrame(draw);
    }).then(
      () => setNote(END),
      (error) => !gone.signal.aborted && setNote(failure(error)),
    );
    return () => {
      gone.abort();
      cancelAnimationFrame(frame);
    };
  }, [session.id, kernel]);
  useEffect(() => {
    if (box.current && isAtEnd.current) box.current.scrollTop = box.current.scrollHeight;
  }, [text]);
  return (
    <>
      <pre
        class="log"
        ref={box}
        tabIndex={0}
        role="log"
        aria-label="Log"
        onScroll={({ currentTarget: it }) =>
          (isAtEnd.current = it.scrollHeight - it.scrollTop - it.clientHeight < 24)
        }
      >
        {text}
      </pre>
      {(!text || note === END) && <p class="dim">{note}</p>}
    </>
  );
}
