/* SPDX-License-Identifier: Apache-2.0 */
/* unsent.c - what a program sent and closed before it ended, and nobody has received yet */
#include "runner/unsent.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"

#define TABLE_MAX (4u << 20) /* some 25000 connections; nothing is waited for with more */
#define LOOK_USEC (10 * USEC_PER_MSEC)

/* TCP states of the Linux kernel */
#define STATE_FIN_WAIT1 0x04
#define STATE_LAST_ACK 0x09
#define STATE_CLOSING 0x0B

/* "   0: 0100000A:1F90 0200000A:9C40 04 00000001:00000000 ..." */
static bool unsent_is_in(const char *line)
{
    char local[33], remote[33];
    unsigned state, unacknowledged;

    if (sscanf(line, " %*u: %32[0-9A-F]:%*x %32[0-9A-F]:%*x %x %x:", local, remote, &state,
               &unacknowledged)
        != 4)
        return false; /* the heading */
    return (state == STATE_FIN_WAIT1 || state == STATE_LAST_ACK || state == STATE_CLOSING)
           && unacknowledged && strcmp(local, remote) != 0;
}

size_t unsent_count(const char *text)
{
    size_t count = 0;

    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        count += unsent_is_in(line);
    }
    return count;
}

/* Counts are at hand, while the table takes milliseconds: Linux looks for the sockets of this
 * network among those of all. Usually none is left.
 */
static bool unsent_has_sockets(const char *path, const char *counted)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    const char *at;

    if (fs_read(AT_FDCWD, path, 4096, &text, NULL) < 0 || !(at = strstr(text.data, counted)))
        return true;
    return strtol(at + strlen(counted), NULL, 10) > 0;
}

static bool unsent_are_in(const char *path)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    return fs_read(AT_FDCWD, path, TABLE_MAX, &text, NULL) == 0 && unsent_count(text.data);
}

static bool unsent_are_any(void)
{
    return (unsent_has_sockets("/proc/net/sockstat", "TCP: inuse ")
            && unsent_are_in("/proc/net/tcp"))
           || (unsent_has_sockets("/proc/net/sockstat6", "TCP6: inuse ")
               && unsent_are_in("/proc/net/tcp6"));
}

void unsent_wait(int64_t max_usec)
{
    int64_t end_usec = clock_monotonic_usec() + max_usec;

    while (unsent_are_any() && clock_monotonic_usec() < end_usec)
        (void)usleep(LOOK_USEC);
}
