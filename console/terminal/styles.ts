// SPDX-License-Identifier: Apache-2.0
// Style sheets that xterm.js makes while it runs: the page's policy allows no <style> but its own,
// and sheets that are constructed are not inline.

/** Elements <style> that are made from now on hand their text to a constructed sheet. */
export function constructStyles(): void {
  const create = document.createElement.bind(document);

  document.createElement = (name: string, options?: ElementCreationOptions): HTMLElement => {
    if (name !== "style") return create(name, options);
    const element = create("span");
    const sheet = new CSSStyleSheet();
    element.hidden = true;
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
    Object.defineProperty(element, "textContent", {
      set: (text: string) => sheet.replaceSync(text),
    });
    return element;
  };
}
