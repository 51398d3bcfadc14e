// SPDX-License-Identifier: Apache-2.0
// Arrays of sessions: one row each, which unfolds to its elements, and all of one beside the list.
import { signal } from "@preact/signals-core";
import { useEffect, useRef, useState } from "preact/hooks";
import { age, compare, number, plain, quote, time } from "./format";
import { everyone, ended, sessions, who } from "./live";
import { type Session, type SessionArray, stateOfArray } from "./model";
import { Age, Bar, Commands, Confirm, Facts, failure, now, say, use } from "./parts";
import { manager } from "./server";

const PAGE = 50;
const AGAIN_MSEC = 2000; // between two readings of elements that are shown
const FIELDS =
  "id,name,type,status,result,exit_code,reason,priority,image,user,group,resource_group,cluster_size," +
  "resources,agents,created_at,status_changed,starts_at,array";

/** Elements that are shown: those that were asked for, of so many that are made. */
interface Unfolded {
  items: Session[];
  total: number;
}

export const unfolded = signal<ReadonlyMap<string, Unfolded>>(new Map());

function path(array: SessionArray, rest = ""): string {
  const owner = array.user === who.value?.user ? "" : `?owner_access_key=${array.access_key}`;
  return `/aliquot/v1/arrays/${array.id}${rest}${owner}`;
}

async function load(array: SessionArray, count: number): Promise<void> {
  const query = new URLSearchParams({
    array: array.id,
    order: "array_index",
    limit: String(count),
    fields: FIELDS,
    ...(everyone.value ? { all: "true" } : {}),
  });
  const found = await manager.get<{ items: Session[]; total: number }>(`/aliquot/v1/sessions?${query}`);
  if (unfolded.value.has(array.id))
    unfolded.value = new Map(unfolded.value).set(array.id, { items: found.items, total: found.total });
}

function loadOrSay(array: SessionArray, count: number): void {
  load(array, count).catch((error) => say(failure(error), true));
}

export function fold(array: SessionArray): void {
  const next = new Map(unfolded.value);
  const wasThere = next.delete(array.id);
  if (!wasThere) next.set(array.id, { items: [], total: array.made });
  unfolded.value = next;
  if (!wasThere) loadOrSay(array, PAGE);
}

export function loadMore(array: SessionArray): void {
  loadOrSay(array, (unfolded.value.get(array.id)?.items.length ?? 0) + PAGE);
}

/** The elements as they are now, by index. */
export function elementsOf(array: SessionArray): Session[] {
  const shown = unfolded.value.get(array.id)?.items ?? [];
  return shown
    .map((item) => sessions.value.get(item.id) ?? ended.value.get(item.id) ?? item)
    .sort((a, b) => compare(a.array?.index ?? 0, b.array?.index ?? 0));
}

/** Unfolded elements are read again when the counts of their array have changed. */
export function Reader({ array }: { array: SessionArray }) {
  const counts = [array.made, array.running, array.succeeded, array.failed, array.cancelled].join();
  const read = useRef(counts);
  useEffect(() => {
    if (read.current === counts) return;
    const timer = window.setTimeout(() => {
      read.current = counts;
      const count = unfolded.value.get(array.id)?.items.length ?? 0;
      load(array, Math.max(PAGE, count)).catch(() => undefined); // with the next change
    }, AGAIN_MSEC);
    return () => window.clearTimeout(timer);
  }, [counts]);
  return null;
}

/** How many elements are where, as a bar and as words. */
export function Counts({ array }: { array: SessionArray }) {
  return (
    <Bar
      total={array.size}
      parts={[
        { kind: "succeeded", word: "done", count: array.succeeded },
        { kind: "running", word: "running", count: array.running },
        { kind: "failed", word: "failed", count: array.failed },
        { kind: "cancelled", word: "cancelled", count: array.cancelled },
        { kind: "waiting", word: "waiting", count: array.waiting },
      ]}
    />
  );
}

function Cancel({ array }: { array: SessionArray }) {
  const left = array.waiting + array.running;
  const what = `${number(left)} ${left === 1 ? "session" : "sessions"}`;
  async function cancel(): Promise<void> {
    await manager.remove(path(array), undefined);
    say(`Array ${array.name} is being cancelled.`);
  }
  return <Confirm verb="Cancel" name={array.label} what={what} act={cancel} />;
}

/** Why its first element waits, read again when something of the array has changed. */
function useWhy(array: SessionArray): string {
  const [why, setWhy] = useState("");
  useEffect(() => {
    const gone = new AbortController();
    if (array.waiting && !array.terminated_at)
      manager
        .get<{ text: string | null }>(path(array, "/why"), gone.signal)
        .then(({ text }) => setWhy(text ?? ""), () => undefined);
    else setWhy("");
    return () => gone.abort();
  }, [array.id, array.waiting, array.running, array.terminated_at]);
  return plain(why).trim();
}

export function ArrayFound({ array }: { array: SessionArray }) {
  const why = useWhy(array);
  const at = use(now);
  const isOpen = use(unfolded).has(array.id);
  const { word } = stateOfArray(array);
  const rows: [string, string][] = [
    ["Elements", number(array.size)],
    ["At once", array.limit === null ? "" : `at most ${array.limit}`],
    ["Image", plain(array.image)],
    ["User", plain(array.user)],
    ["Project", plain(array.group)],
    ["Resource group", plain(array.resource_group)],
    ["Created", time(array.created_at)],
    ["Ended", array.terminated_at ? `${time(array.terminated_at)} (${age(array.terminated_at, at)} ago)` : ""],
    ["ID", array.id],
  ];
  const own = array.user === who.value?.user && !array.terminated_at;
  const name = quote(own ? array.name : array.id);
  const commands: [string, string][] = [["Elements", `aliquot ps --all ${name}`]];
  if (!array.terminated_at) commands.push(["Why", `aliquot session why ${name}`], ["Cancel", `aliquot rm ${name}`]);
  return (
    <>
      {why && <p class="reason">{why}</p>}
      <div class="counts" role="group" aria-label={`Elements: ${word}`}>
        <Counts array={array} />
      </div>
      <Facts rows={rows} />
      <footer>
        {!array.terminated_at && <Cancel array={array} />}
        <button type="button" aria-expanded={isOpen} onClick={() => fold(array)}>
          {isOpen ? "Hide elements" : "Show elements"}
        </button>
        <Commands commands={commands} />
      </footer>
    </>
  );
}

export function ArrayAge({ array }: { array: SessionArray }) {
  return <Age from={array.terminated_at ?? array.created_at} />;
}
