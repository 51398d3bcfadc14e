/* SPDX-License-Identifier: Apache-2.0 */
/* mountinfo.h - lines of /proc/PID/mountinfo, see proc(5) */
#ifndef AQ_BASE_MOUNTINFO_H
#define AQ_BASE_MOUNTINFO_H

#include <stdbool.h>

/* Texts are parts of the line. */
struct mountinfo {
    int id, parent;
    const char *path;
    bool is_slave;              /* what is mounted and unmounted at its master is here as well */
    const char *type, *options; /* of the file system */
};

/* Split a line, without its newline; it is changed. False if it is none of mountinfo. Thread-safe.
 */
bool mountinfo_parse(char *line, struct mountinfo *ret);

#endif
