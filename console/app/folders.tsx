// SPDX-License-Identifier: Apache-2.0
// Folders that a new session mounts, and a new one among them.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { plain, quote } from "./format";
import type { Mount } from "./form";
import { formatMount, makeFolder, parseMount } from "./form";
import { Copy, failure, say } from "./parts";

function Folder({ text, names, set }: { text: string; names: string[]; set: (text: string | null) => void }) {
  const mount = parseMount(text);
  const change = (part: Partial<Mount>) => set(formatMount({ ...mount, ...part }));
  return (
    <div class="folder">
      <select
        aria-label="Folder"
        value={mount.folder}
        onChange={(event) => change({ folder: event.currentTarget.value })}
      >
        {[...new Set([mount.folder, ...names])].map((name) => (
          <option key={name} value={name}>
            {plain(name)}
          </option>
        ))}
      </select>
      <input
        aria-label={`Where ${mount.folder} is mounted`}
        placeholder={`/home/work/${mount.folder}`}
        value={mount.target}
        autocomplete="off"
        spellcheck={false}
        onInput={(event) => change({ target: event.currentTarget.value.trim() })}
      />
      <label>
        <input
          type="checkbox"
          checked={mount.isReadOnly}
          onChange={(event) => change({ isReadOnly: event.currentTarget.checked })}
        />{" "}
        read-only
      </label>
      <button type="button" class="plain" aria-label={`Leave ${mount.folder} out`} onClick={() => set(null)}>
        ×
      </button>
    </div>
  );
}

/** It is not a form of its own: Enter makes the folder and launches nothing. */
function NewFolder({ onMade, onEnd }: { onMade: (name: string) => void; onEnd: () => void }) {
  const [name, setName] = useState("");
  const [isBusy, setBusy] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => input.current?.focus(), []);
  async function make(): Promise<void> {
    setBusy(true);
    try {
      await makeFolder(name);
      say(`The folder ${name} was created.`);
      onMade(name);
      onEnd();
    } catch (error) {
      say(failure(error), true);
      setBusy(false);
    }
  }
  return (
    <div class="folder new">
      <input
        id="folder"
        aria-label="Name of the new folder"
        placeholder="name"
        value={name}
        maxLength={64}
        autocomplete="off"
        spellcheck={false}
        ref={input}
        onInput={(event) => setName(event.currentTarget.value.trim())}
        onKeyDown={(event) => {
          if (event.key !== "Enter") return;
          event.preventDefault();
          if (name) void make();
        }}
      />
      <button type="button" disabled={isBusy || !name} onClick={() => void make()}>
        Create
      </button>
      <button type="button" class="plain" onClick={onEnd}>
        Cancel
      </button>
      <Copy command={`aliquot folder create ${quote(name || "NAME")}`} />
    </div>
  );
}

export function Folders({
  mounts,
  names,
  set,
  onMade,
}: {
  mounts: string[];
  names: string[];
  set: (mounts: string[]) => void;
  onMade: (name: string) => void;
}) {
  const [isMaking, setMaking] = useState(false);
  const used = mounts.map((text) => parseMount(text).folder);
  const left = names.filter((name) => !used.includes(name));
  return (
    <div class="field">
      <span>Folders</span>
      <div class="folders">
        {mounts.map((text, i) => (
          <Folder
            key={i}
            text={text}
            names={left}
            set={(now) => set(mounts.flatMap((old, k) => (k !== i ? [old] : now === null ? [] : [now])))}
          />
        ))}
        {isMaking ? (
          <NewFolder onMade={onMade} onEnd={() => setMaking(false)} />
        ) : (
          <div class="chips">
            {left[0] !== undefined && (
              <button type="button" id="mount" onClick={() => set([...mounts, left[0] ?? ""])}>
                Mount a folder
              </button>
            )}
            <button type="button" id="new-folder" onClick={() => setMaking(true)}>
              New folder…
            </button>
          </div>
        )}
        <p class="dim">The home directory is deleted when the session ends. Folders are kept.</p>
      </div>
    </div>
  );
}
