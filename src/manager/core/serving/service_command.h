/* SPDX-License-Identifier: Apache-2.0 */
/* service_command.h - a command that creates or changes a model service
 *
 * service_command.c begins it, service_check.c checks it and service_commit.c takes it to the store.
 */
#ifndef AQ_MANAGER_CORE_SERVING_SERVICE_COMMAND_H
#define AQ_MANAGER_CORE_SERVING_SERVICE_COMMAND_H

#include "manager/core/services.h"
#include "manager/core/serving/service_replica.h"
#include "manager/core/serving/service_rollout.h"

/* A command, from the request to the answer. */
struct service_command {
    struct core *core;
    struct list creation_link;            /* in service_creations while it is being written */
    struct model_service made;            /* what the service becomes */
    bool is_new;                          /* it is created */
    bool has_revision;                    /* the last of its revisions is new */
    struct service_order order;           /* of the trial */
    struct uuid removed;                  /* session of a replica that drains with it; nil = none */
    const struct core_answered *answered; /* with 'write'; NULL = the answer is not kept */
    core_service_write_fn write;
    struct audit_by by;
    const char *action; /* for the audit log */
    char *reason;       /* of the autoscaler or a rollout, for the history; NULL = none */
    char *note;         /* of who asked, for the history; NULL = none */
    enum service_rollout_ask ask;
    core_done_fn done;
    void *data;
};

/* Name the member of a request for a service in an error that names that of one for a session. */
void service_rename_field(struct aq_error *err);

/* Whether the service may become c->made, by what is in memory. -EINVAL, -EEXIST, -EDQUOT. */
int service_check_all(const struct service_command *c, struct aq_error *err);

/* Whether 's', a copy that was changed, may follow 'was', and with which version: changes by rollouts
 * since the copy was made do not conflict. -ENOENT (also for NULL), -EBUSY, -ESTALE.
 */
int service_check_version(const struct model_service_entry *was, struct model_service *s,
                          struct aq_error *err);

/* -ESTALE: another change came first. */
int service_fail_conflict(struct aq_error *err);

/* Write c->made and what goes with it; c->done() follows, after which the command is freed. */
void service_commit(struct service_command *c);

/* End the command without a change: core_done_fn with the command as 'data', for core_defer(). */
void service_command_refuse(void *data, int r, const struct aq_error *err);

#endif
