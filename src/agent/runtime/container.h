/* SPDX-License-Identifier: Apache-2.0 */
/* container.h - what a kernel that runs in a container is made of
 *
 * Plain data between the code that decides (kernel/) and the code that writes it
 * down (bundle.h). All paths are absolute; everything is borrowed.
 */
#ifndef AQ_AGENT_RUNTIME_CONTAINER_H
#define AQ_AGENT_RUNTIME_CONTAINER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/text_pair.h"
#include "model/container_part.h"
#include "monitor/sandbox.h"

struct container_spec {
    const char *id; /* of the kernel; unique on the node */
    const char *hostname;
    const char *const *layers; /* of the image, topmost first */
    size_t layer_count;
    bool is_node;              /* the layer is the node's own root: of its users only root is one
                                  inside, so what is for others alone cannot be read */
    const char *const *hidden; /* NULL-terminated paths inside that nobody may see; NULL = none */
    const char *scratch;       /* what is written goes to this file or directory, made if missing */
    bool uses_host_network;    /* it is in the network namespace of the node */
    const char *network;       /* path of a network namespace; NULL = one without any network */
    const char *sysfs;         /* with a network: a sysfs that shows it, mounted on the node */
    const char *cpus;          /* cores "0,2"; NULL = all */
    int64_t cpu_micro;         /* millionths of a core; 0 = no limit */
    int64_t shm_bytes;         /* of /dev/shm; 0 = 64 MiB */
    uid_t uid;                 /* of the program, as the container counts; 0 = its root */
    gid_t gid;
    const char *check;     /* program inside that has to succeed first; NULL = none */
    const char *home_from; /* directory inside whose files the user is given; NULL = none */
    const char *dotfiles;  /* the same, in folders by permission, instead of what he has */
    const char *ssh;       /* directory inside of an SSH server to start; NULL = none */
    uint16_t ssh_port;     /* that it listens on; 0 = the usual one */
    bool is_for_files;     /* which moves files and does nothing else */
    int64_t ssh_idle_sec;  /* without a connection, after which the container ends; 0 = never */
    const gid_t *groups;
    size_t group_count;
    const struct container_mount *mounts;
    size_t mount_count;
    const struct volume_mount *folders; /* of users; one below another comes after it */
    size_t folder_count;
    const struct container_device *devices;
    size_t device_count;
    const struct container_hook *hooks;
    size_t hook_count;
    const struct text_pair *labels;
    size_t label_count;
};

#endif
