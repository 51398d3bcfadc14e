/* SPDX-License-Identifier: Apache-2.0 */
/* fault.c - named places where a test may kill the process */
#include "base/fault.h"

#ifdef AQ_FAULTS

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

static void fault_note_passage(const char *name)
{
    const char *path = getenv("ALIQUOT_FAULT_LOG");
    AQ_CLEANUP(aq_closep) int fd = path
                                       ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600)
                                       : -1;
    char line[128];
    size_t len = strnlen(name, sizeof(line) - 2);

    if (fd < 0)
        return;
    memcpy(line, name, len);
    line[len] = '\n';
    if (write(fd, line, len + 1) < 0) {
        /* the suite will miss the line and say so */
    }
}

/* True if this passage is the one to die at. */
static int fault_is_due(const char *name, int passage)
{
    const char *want = getenv("ALIQUOT_FAULT");
    size_t len = strlen(name);

    if (!want || strncmp(want, name, len) != 0)
        return 0;
    if (strcmp(want + len, ":any") == 0)
        return 1;
    if (want[len] == ':')
        return passage == atoi(want + len + 1);
    return want[len] == '\0' && passage == 1;
}

/* The mark is made with O_EXCL: of several processes one dies. */
static int fault_take_mark(void)
{
    const char *path = getenv("ALIQUOT_FAULT_ONCE");
    AQ_CLEANUP(aq_closep) int fd = path ? open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)
                                        : -1;

    return !path || fd >= 0;
}

/* A process that only stops may be woken when others have taken its place. */
static int fault_find_signal(void)
{
    const char *wanted = getenv("ALIQUOT_FAULT_SIGNAL");

    return wanted && strcmp(wanted, "STOP") == 0 ? SIGSTOP : SIGKILL;
}

void fault_point(const char *name, int *passed)
{
    int passage = __atomic_add_fetch(passed, 1, __ATOMIC_RELAXED);

    if (passage == 1)
        fault_note_passage(name);
    if (fault_is_due(name, passage) && fault_take_mark())
        (void)kill(getpid(), fault_find_signal());
}

#else
typedef int fault_points_are_off; /* ISO C forbids an empty file */
#endif
