/* SPDX-License-Identifier: Apache-2.0 */
/* stat_file.c - files of /proc, /sys and cgroups that are read again and again */
#include "agent/stat/stat_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int stat_file_open(const char *path)
{
    return open(path, O_RDONLY | O_CLOEXEC);
}

bool stat_file_read(int fd, char *buf, size_t size)
{
    size_t len = 0;
    ssize_t got;

    if (fd < 0)
        return false;
    /* files of /proc come in pieces of a page */
    while (len + 1 < size && (got = pread(fd, buf + len, size - 1 - len, (off_t)len)) != 0) {
        if (got < 0 && errno != EINTR)
            return false;
        len += got > 0 ? (size_t)got : 0;
        if (got > 0 && got < 4096 && len < 4096)
            break; /* all of a small file */
    }
    buf[len] = '\0';
    return len > 0;
}

bool stat_file_number(const char *text, uint64_t *ret)
{
    char *end;

    text += strspn(text, " \t");
    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    *ret = strtoull(text, &end, 10);
    return errno == 0;
}

const char *stat_file_next_line(const char *line)
{
    const char *end = strchr(line, '\n');

    return end && end[1] ? end + 1 : NULL;
}

bool stat_file_find(const char *text, const char *key, uint64_t *ret)
{
    size_t len = strlen(key);

    for (const char *line = text; line; line = stat_file_next_line(line)) {
        if (strncmp(line, key, len) != 0 || (line[len] != ' ' && line[len] != ':'))
            continue;
        return stat_file_number(line + len + 1, ret);
    }
    return false;
}
