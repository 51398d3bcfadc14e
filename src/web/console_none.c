/* SPDX-License-Identifier: Apache-2.0 */
/* console_none.c - the console's place in a program that was built without it */
#include "web/console_files.h"

static const unsigned char index_html[] =
    "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<base href=\"{{base}}\">\n"
    "<title>Aliquot</title>\n<style nonce=\"{{nonce}}\">body{font:13px system-ui;margin:2em}"
    "</style>\n<p>This aliquot-web was built without its console, as there was no Node.js then."
    "\n<p>The command line works: <code>aliquot login</code>. Files of another web interface are "
    "served with <code>static</code> in <code>[web]</code> of <code>web.toml</code>.\n</html>\n";

const struct web_file web_files[] = {
    { "index.html", "text/html; charset=utf-8", index_html, sizeof(index_html) - 1, "\"none\"",
      NULL },
};
const size_t web_file_count = sizeof(web_files) / sizeof(web_files[0]);
