// SPDX-License-Identifier: Apache-2.0
// A list, such as of sessions, of which only the rows that can be seen are there.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { address, open } from "./place";

const HEAD = 32;
const ROW = 32;
const NOTE = 28;
const AROUND = 20; // rows above and below, for who scrolls quickly

export interface Column<T> {
  title: string;
  /** Its width; "wide", "wider" and "widest" are left out where there is no room. */
  kind?: string;
  cell: (row: T) => ComponentChildren;
}

export interface Listed {
  id: string;
  isInert?: boolean; // it leads nowhere
}

function useWindow(count: number, height: number, chosen: number) {
  const box = useRef<HTMLDivElement>(null);
  const [range, setRange] = useState<[number, number]>([0, 60]);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const look = () => {
      const first = Math.max(0, Math.floor(element.scrollTop / height) - AROUND);
      setRange([first, first + Math.ceil(element.clientHeight / height) + 2 * AROUND]);
    };
    look();
    element.addEventListener("scroll", look, { passive: true });
    const sizes = new ResizeObserver(look);
    sizes.observe(element);
    return () => {
      element.removeEventListener("scroll", look);
      sizes.disconnect();
    };
  }, []);
  useEffect(() => {
    const element = box.current;
    if (!element || chosen < 0) return;
    const top = chosen * height;
    const bottom = top + height + HEAD - element.clientHeight;
    if (top < element.scrollTop) element.scrollTop = top;
    else if (bottom > element.scrollTop) element.scrollTop = bottom;
  }, [chosen]);
  return { box, first: Math.min(range[0], count), last: Math.min(range[1], count) };
}

/** The second column is the name, which leads to what the row is of; 'note' is a line below each row; the peek has all of it. */
export function List<T extends Listed>({
  label,
  screen,
  id,
  query = "",
  hrefOf = (row) => address(screen, row, query),
  rows,
  columns,
  note,
}: {
  label: string;
  screen: string;
  id: string;
  query?: string;
  hrefOf?: (id: string) => string;
  rows: readonly T[];
  columns: readonly Column<T>[];
  note?: (row: T) => string;
}) {
  const height = note ? ROW + NOTE : ROW;
  const chosen = id ? rows.findIndex((row) => row.id === id) : -1;
  const { box, first, last } = useWindow(rows.length, height, chosen);
  const space = (count: number) => (
    <tbody>
      <tr class="space" style={{ height: `${count * height}px` }} />
    </tbody>
  );
  return (
    <div class={`rows ${note ? "noted" : ""}`} ref={box} tabIndex={0} role="region" aria-label={label}>
      <table>
        <thead>
          <tr>
            {columns.map(({ title, kind }) => (
              <th key={title} scope="col" class={kind}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        {first > 0 && space(first)}
        {rows.slice(first, last).map((row) => (
          <tbody
            key={row.id}
            class={row.isInert ? "" : row.id === id ? "row chosen" : "row"}
            onClick={() => !row.isInert && open(hrefOf(row.id))}
          >
            <tr>
              {columns.map(({ title, kind, cell }, i) =>
                i === 1 ? (
                  <th key={title} scope="row" class={kind}>
                    {row.isInert ? (
                      cell(row)
                    ) : (
                      <a
                        href={hrefOf(row.id)}
                        data-of={row.id}
                        onClick={(event) => event.stopPropagation()}
                      >
                        {cell(row)}
                      </a>
                    )}
                  </th>
                ) : (
                  <td key={title} class={kind}>
                    {cell(row)}
                  </td>
                ),
              )}
            </tr>
            {note && (
              <tr class="why">
                <td>
                  <div>{note(row)}</div>
                </td>
              </tr>
            )}
          </tbody>
        ))}
        {last < rows.length && space(rows.length - last)}
      </table>
    </div>
  );
}
