/* SPDX-License-Identifier: Apache-2.0 */
/* mountinfo.c - see mountinfo.h */
#include "base/mountinfo.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/* mountinfo writes blanks and backslashes as \ooo, see proc(5). */
static void mountinfo_unescape(char *text)
{
    char *out = text;

    for (; *text; text++) {
        if (text[0] == '\\' && text[1] && text[2] && text[3]) {
            *out++ = (char)((text[1] - '0') * 64 + (text[2] - '0') * 8 + (text[3] - '0'));
            text += 3;
        } else {
            *out++ = *text;
        }
    }
    *out = '\0';
}

/* "36 35 0:31 / /sys/fs/cgroup/memory rw,... shared:7 master:1 - cgroup cgroup rw,memory" */
bool mountinfo_parse(char *line, struct mountinfo *ret)
{
    enum { ID, PARENT, DEVICE, ROOT, PATH, FLAGS, FIELDS };
    char *fields[FIELDS], *at = line, *dash = strstr(line, " - "), *source;

    if (!dash)
        return false;
    *dash = '\0';
    for (size_t i = 0; i < AQ_COUNT(fields); i++)
        if (!(fields[i] = strsep(&at, " ")))
            return false;
    mountinfo_unescape(fields[PATH]);
    *ret = (struct mountinfo){ .id = atoi(fields[ID]),
                               .parent = atoi(fields[PARENT]),
                               .path = fields[PATH],
                               .is_slave = at && strstr(at, "master:") };
    at = dash + strlen(" - ");
    ret->type = strsep(&at, " ");
    source = strsep(&at, " ");
    ret->options = strsep(&at, " ");
    return source && ret->options;
}
