/* SPDX-License-Identifier: Apache-2.0 */
/* console_files.h - the files of Aliquot's console, which are in the program */
#ifndef AQ_WEB_CONSOLE_FILES_H
#define AQ_WEB_CONSOLE_FILES_H

#include <stddef.h>

struct web_file {
    const char *path; /* "index.html", "assets/app.js"; its first page is "index.html" */
    const char *type; /* of its contents */
    const unsigned char *bytes;
    size_t size;
    const char *etag;     /* with its quotes */
    const char *encoding; /* "br" or "gzip": of 'bytes'; NULL = as they are */
};

/* A file may be there in several encodings; one without encoding always is. */
extern const struct web_file web_files[];
extern const size_t web_file_count;

#endif
