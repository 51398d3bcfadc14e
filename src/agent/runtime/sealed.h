/* SPDX-License-Identifier: Apache-2.0 */
/* sealed.h - a program in sealed memory (memfd), from which it is executed
 *
 * An OCI runtime that is started from a file copies itself into sealed memory
 * first and starts again from there, lest a container writes to the runtime's
 * file. A program that starts many of them makes that copy once, for all.
 */
#ifndef AQ_AGENT_RUNTIME_SEALED_H
#define AQ_AGENT_RUNTIME_SEALED_H

#include <sys/stat.h>

struct sealed {
    int fd;         /* -1 = there is no copy */
    struct stat of; /* the file that was copied */
};

#define SEALED_NONE \
    {               \
        .fd = -1    \
    }

/* The copy of the file as it is now, borrowed, or -1: then the file itself has
 * to do. The file is read only when it has changed.
 */
int sealed_get(struct sealed *sealed, const char *path);

void sealed_done(struct sealed *sealed);

#endif
