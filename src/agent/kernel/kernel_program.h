/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_program.h - a kernel's program: where it runs, what it holds, its command line and environment
 *
 * Of variables, later ones win: a few defaults; what the image and the user ask for, without a choice
 * of devices that the session was not granted (model/device_variable.h); what its accelerators need,
 * and what they are (accelhost/gpu_variables.h); the variables that programs made for Backend.AI look
 * for.
 */
#ifndef AQ_AGENT_KERNEL_KERNEL_PROGRAM_H
#define AQ_AGENT_KERNEL_KERNEL_PROGRAM_H

#include "accelhost/accel.h"
#include "agent/image/config.h"
#include "agent/runtime/container.h"
#include "agent/settings/settings.h"
#include "alloc/grant.h"
#include "base/arena.h"
#include "link/message.h"
#include "model/kernel_spec.h"
#include "model/slot.h"

/* What a kernel got, for its resource.txt; borrowed. */
struct kernel_program_resources {
    const struct slots *slots;
    const struct alloc_grant *grant;
    const struct accel_attachment *attachment;
    const char *container_id;             /* NULL = a process of the node */
    int64_t scratch_bytes;                /* what it may write; 0 = no limit */
    const struct container_mount *mounts; /* those with ',' or ':' in a path cannot be told */
    size_t mount_count;
};

/* The text of config/resource.txt; caller frees. */
int kernel_program_write_resource(const struct kernel_program_resources *held,
                                  const struct slot_types *types, char **ret, struct aq_error *err);

struct host_network;
struct rdma_devices;

/* Where a program runs: what argv and environment depend on beside the command. */
struct kernel_program_context {
    const struct settings *settings;
    const char *output;         /* file for values, as the program sees it; NULL = none */
    const char *work;           /* absolute path of the work directory, as the program sees it */
    const char *shell;          /* of interactive kernels, and for commands; NULL = there is none */
    const char *const *environ; /* of the image, NULL-terminated; NULL = no container */
    const char *const *own;     /* program of the image, run without a command; NULL = a shell is */
    const char *core_names;     /* variables that tell the number of cores, "A,B"; NULL = none */
    int64_t cores;
    const char *runtime_type;                  /* label of the image; NULL = none */
    const char *runtime_path;                  /* label of the image; NULL = none */
    const struct image_config *labels;         /* the image's, for interpreters; NULL = none */
    const char *service_ports;                 /* label of the image; NULL = none */
    const char *preopen_ports;                 /* "8888,9000"; NULL = none */
    const struct accel_attachment *attachment; /* of its devices */
    const struct host_network *host; /* the node's network, which it uses; NULL = it does not */
    const struct rdma_devices *rdma; /* devices of the session; NULL = none */
    const char *interface;    /* by which it reaches other kernels of its session; NULL = none */
    const char *host_file;    /* of MPI, as the program sees it; NULL = none */
    const char *machine_file; /* the same for MPICH and Intel MPI */
    const char *remote_shell; /* what launchers start in place of ssh; NULL = ssh */
};

/* The place of a process of the node. */
struct kernel_program_context kernel_program_host_context(
    const struct settings *settings, const char *work, const struct accel_attachment *attachment);

/* Whether its program gets a terminal, or else an input that is passed on to it. */
bool kernel_program_has_terminal(const struct session_spec *spec);
bool kernel_program_has_input(const struct session_spec *spec);

/* Entrypoint and Cmd of the image (NULL = there is no image), for a kernel without a command that serves
 * a model: NULL for other kernels. In the arena; empty if the image has none.
 */
const char *const *kernel_program_find_own(const struct kernel_spec *spec,
                                           const struct image_config *image, struct arena *arena);

/* NULL-terminated, in the arena. Without a shell a command is taken apart by
 * blanks and quotes alone, and an interactive kernel has nothing to run:
 * argv[0] is NULL. -ENOTSUP for what needs a shell, and for an image without a program.
 */
int kernel_program_argv(const struct session_spec *spec, const struct kernel_program_context *place,
                        struct arena *arena, const char *const **ret, struct aq_error *err);

/* PATH, where the image names none. */
#define KERNEL_DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* "NAME=value", NULL-terminated, in the arena. */
const char *const *kernel_environ_make(const struct msg_kernel_create *create,
                                       const struct kernel_program_context *place,
                                       struct arena *arena);

/* The text of config/environ.txt; caller frees. */
char *kernel_environ_write(const char *const *variables);

#endif
