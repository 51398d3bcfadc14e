/* SPDX-License-Identifier: Apache-2.0 */
/* container_spec.h - the container of a kernel, from its create command and its image */
#ifndef AQ_AGENT_KERNEL_CONTAINER_SPEC_H
#define AQ_AGENT_KERNEL_CONTAINER_SPEC_H

#include "agent/image/image.h"
#include "agent/kernel/kernel.h"
#include "agent/runtime/container.h"

#define CONTAINER_WORK "/home/work"           /* the program's directory, inside */
#define CONTAINER_OUTPUT "/opt/kernel/output" /* file for values, which the runner creates */
#define CONTAINER_CONFIG "/home/config"       /* resource.txt and environ.txt, inside */
#define CONTAINER_HOST_FILE "hostfile"        /* of Open MPI, in config */
#define CONTAINER_MACHINE_FILE "machinefile"  /* of MPICH and Intel MPI, in config */

/* Whether the command wants a container, by the settings and the image it
 * names. -ENOTSUP (field "image") if this node does not run what it wants.
 */
int container_is_wanted(const struct agent_daemon *agent, const char *image, bool *ret,
                        struct aq_error *err);

/* The shell of an image, NULL if it has none. */
const char *container_find_shell(const struct image *image);

/* Is a program of this name where the image's PATH leads? */
bool container_has_program(const struct image *image, const char *name);

/* What the container sees of the node beside its network's files: 'config', what time it is, and
 * what its devices bring, with room for 'more'. In the arena.
 */
struct container_mount *container_mounts(const struct local_kernel *k, const char *config,
                                         size_t more, struct arena *arena, size_t *ret_count);

/* The texts of both, for a kernel that is one of several of its session; else false. */
bool container_add_host_files(const struct local_kernel *k, struct strbuf *hosts,
                              struct strbuf *machines);

/* Fill in both, as its command says; they borrow from all arguments and the arena. 'scratch' and
 * 'config' are paths on the node. -ENOTSUP for a command that the image cannot run, -EINVAL
 * with the member as field.
 */
int container_specify(const struct local_kernel *k, const struct image *image, const char *scratch,
                      const char *config, struct arena *arena, struct container_spec *ret_container,
                      struct runtime_spec *ret, struct aq_error *err);

#endif
