// SPDX-License-Identifier: Apache-2.0
// Where one is: the part of the address after '#', so that it can be sent to somebody.
import { signal } from "@preact/signals-core";

export interface Place {
  screen: string;
  id: string; // of the session that is looked at; "" = none
  query: URLSearchParams;
}

function read(): Place {
  const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [screen = "", id = ""] = path.split("/");
  return { screen: screen || "map", id: decodeURIComponent(id), query: new URLSearchParams(query) };
}

export const place = signal<Place>(read());

window.addEventListener("hashchange", () => (place.value = read()));

export function address(screen: string, id = "", query: URLSearchParams | string = ""): string {
  const words = String(query);
  return `#/${screen}${id ? `/${encodeURIComponent(id)}` : ""}${words ? `?${words}` : ""}`;
}

export function open(href: string): void {
  location.hash = href;
  place.value = read(); // the next key may come before the event
}

export function go(screen: string, id = "", query: URLSearchParams | string = ""): void {
  open(address(screen, id, query));
}

/** Another place in place of this one in the history. */
export function replace(screen: string, id: string, query: URLSearchParams): void {
  history.replaceState(null, "", address(screen, id, query));
  place.value = { screen, id, query };
}

/** The same place with another query, without a step in the history. */
export function amend(query: URLSearchParams): void {
  replace(place.value.screen, place.value.id, query);
}
