/* SPDX-License-Identifier: Apache-2.0 */
/* settings.h - k8s.toml */
#ifndef AQ_K8S_SETTINGS_H
#define AQ_K8S_SETTINGS_H

#include "accelhost/accel_settings.h"

struct webhook_settings {
    char *listen;                        /* "" = off */
    char *scheduler;                     /* that pods with a part of a GPU get */
    int64_t default_memory, card_memory; /* units; 0 = none, not known */
    bool hami, allow_node_name, allow_privileged;
    struct conf_list capabilities, host_paths; /* allowed besides the usual ones */
    int64_t days;                              /* of its certificate */
    int64_t check_usec;
};

struct settings {
    char *log_level;
    char *url, *token, *ca; /* of the API server; NULL: as api_server.h says */
    char *node;
    char *space;         /* namespace of what is ours */
    char *kubelet;       /* the folder of its socket and of plugins' */
    char *pod_resources; /* its socket for that */
    char *run;           /* folder on the node of what containers are given */
    char *memory_name, *compute_name;
    int64_t memory_unit; /* bytes */
    int64_t compute_units;
    char *gpu_library, *gpu_watch; /* NULL = beside the program */
    char *on_violation;            /* "tell" or "evict" */
    bool gpu_conserving;
    char *scheduler_listen, *scheduler_metrics, *scheduler_policy;
    char *metrics_listen;
    struct accel_settings accel;
    struct webhook_settings webhook;
};

extern const struct conf_item settings_items[];

/* 'file' NULL = the usual one, which may be missing. -EINVAL with the setting as field. */
int settings_load(const char *file, struct settings *ret, struct aq_error *err);
void settings_done(struct settings *settings);

#endif
