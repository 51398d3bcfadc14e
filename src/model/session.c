/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions and their kernels as the manager holds them in memory. */
#include "model/session.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void session_done(struct session *s)
{
    for (size_t i = 0; i < s->kernel_count; i++) {
        free(s->kernels[i].agent_id);
        free(s->kernels[i].alloc);
        free(s->kernels[i].service_ports);
        slots_done(&s->kernels[i].requested);
    }
    free(s->kernels);
    free(s->dependencies);
    free(s->domain);
    free(s->resource_group);
    free(s->spec);
    free(s->image);
    free(s->tag);
    free(s->reason);
    free(s->status_data);
    free(s->subnet);
    free(s->rerun);
    free(s->replica);
    *s = (struct session){ 0 };
}

int64_t session_started_usec(const struct session *s)
{
    return s->rerun && s->running_usec < s->rerun->next_usec ? 0 : s->running_usec;
}

bool session_is_elastic(const struct session *s)
{
    return s->spec && s->spec->cluster_size_min > 0;
}

size_t session_least_kernels(const struct session *s)
{
    return session_is_elastic(s) ? AQ_MIN((size_t)s->spec->cluster_size_min, s->kernel_count)
                                 : s->kernel_count;
}

bool session_lacks_kernels(const struct session *s)
{
    if (s->status != SESSION_RUNNING && s->status != SESSION_RUNNING_DEGRADED)
        return false;
    for (size_t i = 0; i < s->kernel_count; i++)
        if (s->kernels[i].status == KERNEL_PENDING)
            return true;
    return false;
}

bool session_reason_is_bootstrap(const char *reason)
{
    return reason
           && (strcmp(reason, REASON_BOOTSTRAP_FAILED) == 0
               || strcmp(reason, REASON_BOOTSTRAP_TIMEOUT) == 0);
}

bool session_reason_is_by_user(const char *reason)
{
    return reason
           && (strcmp(reason, REASON_USER_REQUESTED) == 0
               || strcmp(reason, REASON_FORCE_TERMINATED) == 0);
}

const char *cluster_mode_name(bool is_multi_node)
{
    return is_multi_node ? "multi-node" : "single-node";
}

int cluster_mode_parse(const char *text, bool *ret_is_multi_node)
{
    *ret_is_multi_node = strcmp(text, cluster_mode_name(true)) == 0;
    return *ret_is_multi_node || strcmp(text, cluster_mode_name(false)) == 0 ? 0 : -EINVAL;
}

const char *session_on_failure(const struct session *s)
{
    if (s->spec && s->spec->on_failure)
        return s->spec->on_failure;
    return s->type == SESSION_BATCH && s->kernel_count > 1 && !session_is_elastic(s)
               ? SESSION_ON_FAILURE_END
               : SESSION_ON_FAILURE_CONTINUE;
}

const char *session_on_node_loss(const struct session *s)
{
    if (s->spec && s->spec->on_node_loss)
        return s->spec->on_node_loss;
    return session_is_elastic(s) ? SESSION_ON_NODE_LOSS_RESTART_KERNEL : NULL;
}

char *kernel_hostname(const struct kernel *k, char buf[KERNEL_HOSTNAME_MAX])
{
    (void)snprintf(buf, KERNEL_HOSTNAME_MAX, "%s%u", k->role, (unsigned)k->index);
    return buf;
}

const char *kernel_granted(const struct kernel *k)
{
    return k->status >= KERNEL_RUNNING ? k->alloc : NULL;
}

static bool session_is_word_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

int session_name_check(const char *name, struct aq_error *err)
{
    size_t len = strnlen(name, SESSION_NAME_MAX + 1);

    if (len < SESSION_NAME_MIN || len > SESSION_NAME_MAX)
        return aq_fail_field(err, EINVAL, "name", "the name must have %d to %d characters",
                             SESSION_NAME_MIN, SESSION_NAME_MAX);
    for (size_t i = 0; i < len; i++)
        if (!session_is_word_char(name[i])
            && (i == 0 || i == len - 1 || (name[i] != '.' && name[i] != '-')))
            return aq_fail_field(err, EINVAL, "name",
                                 "the name may have letters, digits and '_', and inside it also "
                                 "'.' and '-'; character %zu is none of them",
                                 i + 1);
    return 0;
}

int session_name_check_any(const char *name)
{
    size_t len = strcspn(name, "["), digits;
    char stem[SESSION_NAME_MAX + 1];

    if (!name[len])
        return session_name_check(name, NULL);
    digits = strspn(name + len + 1, "0123456789");
    if (len > SESSION_NAME_MAX || digits == 0 || strcmp(name + len + 1 + digits, "]") != 0)
        return -EINVAL;
    memcpy(stem, name, len);
    stem[len] = '\0';
    return session_name_check(stem, NULL);
}

int session_name_check_new(const char *name, struct aq_error *err)
{
    struct uuid id;
    int r = session_name_check(name, err);

    if (r < 0 || uuid_parse(name, &id) < 0)
        return r;
    return aq_fail_field(err, EINVAL, "name",
                         "'%s' has the form of an id, and would be taken for one; choose another "
                         "name",
                         name);
}
