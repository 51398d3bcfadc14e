/* SPDX-License-Identifier: Apache-2.0 */
/* sysfile.c - numbers and lines of files in /sys and /proc, below a root */
#include "common/sysfile.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"

#define FILE_MAX 65536

static bool sysfile_read_file(const char *root, const char *path, struct strbuf *out)
{
    AQ_CLEANUP(aq_freep) char *full = aq_format("%s%s", root, path);

    return fs_read(AT_FDCWD, full, FILE_MAX, out, NULL) == 0;
}

bool sysfile_line(const char *root, const char *path, char *buf, size_t size)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    size_t len;

    if (!sysfile_read_file(root, path, &text))
        return false;
    len = strcspn(text.data, "\n");
    while (len > 0 && (text.data[len - 1] == ' ' || text.data[len - 1] == '\r'))
        len--;
    if (len >= size)
        len = size - 1;
    memcpy(buf, text.data, len);
    buf[len] = '\0';
    return true;
}

static bool sysfile_parse(const char *text, int64_t *ret)
{
    char *end;
    long long value = strtoll(text, &end, 0);

    *ret = value;
    return end != text;
}

int64_t sysfile_number(const char *root, const char *path, int64_t otherwise)
{
    char line[64];
    int64_t value;

    return sysfile_line(root, path, line, sizeof(line)) && sysfile_parse(line, &value) ? value
                                                                                       : otherwise;
}

int64_t sysfile_property(const char *root, const char *path, const char *word, int64_t otherwise)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    size_t len = strlen(word);
    int64_t value;

    if (!sysfile_read_file(root, path, &text))
        return otherwise;
    for (const char *at = text.data; at && *at; at = strchr(at, '\n')) {
        at += *at == '\n';
        if (strncmp(at, word, len) == 0 && (at[len] == ' ' || at[len] == ':' || at[len] == '\t'))
            return sysfile_parse(at + len + 1, &value) ? value : otherwise;
    }
    return otherwise;
}

bool sysfile_exists(const char *root, const char *path)
{
    AQ_CLEANUP(aq_freep) char *full = aq_format("%s%s", root, path);

    return access(full, F_OK) == 0;
}
