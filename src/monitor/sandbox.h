/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox.h - what surrounds the program of a container
 *
 * The agent says in 'program' what it is to be (protocol.h). The monitor makes
 * it right before the program starts and ends it with the program: it is the
 * one process that lives as long as the container.
 */
#ifndef AQ_MONITOR_SANDBOX_H
#define AQ_MONITOR_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct texts {
    char **items; /* of the program's text */
    size_t count, cap;
};

/* A folder of a user, to be mounted (volume_mounts.h). Texts are of the program's text. */
struct volume_mount {
    const char *volume; /* directory of the node */
    const char *folder; /* in it, by its id */
    const char *path;   /* in the folder; "" = all of it */
    const char *name;   /* of the folder, for messages */
    const char *target; /* path inside */
    bool may_write;
};

struct sandbox {
    struct texts cgroups; /* directories, absolute */
    struct texts limits;  /* "FILE=VALUE" to write, in order; FILE is absolute */
    struct texts devices; /* "c 1:3 rwm": all that may be used, in cgroup version 2 */
    struct texts layers;  /* directories of the root file system, topmost first */
    struct texts hidden;  /* mount points that the program must not see */
    struct texts empty;   /* directories inside that begin empty, whatever the layers have there */
    struct texts files, folders;        /* paths inside that something is mounted at */
    struct texts leftovers;             /* files and directories to remove at the end */
    struct volume_mount *volume_mounts; /* one that is below another comes after it */
    size_t volume_mount_count, volume_mount_cap;
    const char *stage;   /* directory to build the root file system in; NULL = no container */
    const char *scratch; /* directory, or image of a file system, for what is written */
    const char *scratch_template; /* image to begin with; NULL = 'scratch' is a directory */
    const char *runner;           /* file of it on the node; NULL = not known */
    const char *home;       /* path inside of the home directory's user; NULL = no user is added */
    const char *unused;     /* paths that agents of earlier versions gave */
    bool has_runner;        /* process 1 is aliquot-runner */
    bool relays;            /* the runtime passes the container's output on */
    bool uses_host_network; /* of the node: the stage has a sysfs that shows it, "sys" */
    bool is_outside;        /* the program itself stays out of the cgroups, it makes inner ones */
    uint32_t home_uid, home_gid; /* who gets the home directory, as the container counts */
    uint32_t id_base, id_count;  /* users of the container on the host; count 0 = the same */
};

static inline bool sandbox_is_used(const struct sandbox *sandbox)
{
    return sandbox->stage != NULL;
}

#endif
