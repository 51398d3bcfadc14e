/* SPDX-License-Identifier: Apache-2.0 */
/* event_write.c - an event becomes rows */
#include <errno.h>

#include "store/request_answer.h"
#include "store/audit_log.h"
#include "store/entity.h"

static int event_write_rows(struct store_tx *tx, struct event *e, struct aq_error *err)
{
    switch (e->kind) {
    case EVENT_SESSION_CREATED:
        return session_insert(tx, &e->session, err);
    case EVENT_SESSION_STATUS:
        return session_set_status(tx, e, err);
    case EVENT_SESSION_RENAMED:
        return session_rename(tx, e, err);
    case EVENT_SESSION_PRIORITY:
        return session_set_priority(tx, e, err);
    case EVENT_SESSION_FORCED:
        return session_force(tx, e, err);
    case EVENT_SESSION_EXPLAINED:
        return session_explain(tx, e, err);
    case EVENT_SESSION_DISMISSED:
        return session_dismiss(tx, e, err);
    case EVENT_SESSION_ACCESSED:
        return session_set_access(tx, e, err);
    case EVENT_SESSION_IDLE:
        return session_idle_save(tx, e, err);
    case EVENT_SESSION_ATTEMPT:
        return attempt_add(tx, e, err);
    case EVENT_RUN_ENDED:
        return session_run_add(tx, e, err);
    case EVENT_ATTEMPTS_PRUNED:
        return attempts_prune(tx, e, err);
    case EVENT_ARRAY_CREATED:
        return array_insert(tx, e->array, err);
    case EVENT_ARRAY_CHANGED:
        return array_change(tx, &e->array_change, err);
    case EVENT_BOOKING_CREATED:
        return booking_insert(tx, e->booking.row, err);
    case EVENT_BOOKING_CHANGED:
        return booking_change(tx, e->booking.row, err);
    case EVENT_SERVICE_CREATED:
        return model_service_insert(tx, e, err);
    case EVENT_SERVICE_CHANGED:
        return model_service_change(tx, e, err);
    case EVENT_SERVICE_TOKEN_ADDED:
        return model_service_token_add(tx, e, err);
    case EVENT_SERVICE_TOKEN_REMOVED:
        return model_service_token_remove(tx, e, err);
    case EVENT_SERVICE_TOKEN_USED:
        return model_service_token_use(tx, e, err);
    case EVENT_REPLICA_CHANGED:
        return replica_change(tx, e, err);
    case EVENT_KERNEL_STATUS:
        return kernel_set_status(tx, e, err);
    case EVENT_KERNEL_RESIZED:
        return kernel_resize(tx, e, err);
    case EVENT_AGENT_SAVED:
        return agent_save(tx, e, err);
    case EVENT_AGENT_STATUS:
        return agent_set_status(tx, e, err);
    case EVENT_AGENT_REMOVED:
        return agent_remove(tx, e, err);
    case EVENT_SLOT_TYPE_KNOWN:
        return slot_type_save(tx, e, err);
    case EVENT_DOMAIN_SAVED:
        return entity_save(tx, &store_domains, &e->domain, e->at_usec, err);
    case EVENT_DOMAIN_RENAMED:
        return domain_rename(tx, e, err);
    case EVENT_PROJECT_SAVED:
        return entity_save(tx, &store_projects, &e->project, e->at_usec, err);
    case EVENT_USER_SAVED:
        return user_save(tx, e, err);
    case EVENT_KEYPAIR_SAVED:
        return keypair_save(tx, e, err);
    case EVENT_KEYPAIR_REMOVED:
        return keypair_remove(tx, e, err);
    case EVENT_KEYPAIR_USED:
        return keypair_set_used(tx, e, err);
    case EVENT_KEYPAIR_POLICY_SAVED:
        return entity_save(tx, &store_keypair_policies, &e->policy, e->at_usec, err);
    case EVENT_RESOURCE_GROUP_SAVED:
        return entity_save(tx, &store_resource_groups, &e->resource_group, e->at_usec, err);
    case EVENT_ACCOUNT_PURGED:
        return account_purge(tx, &e->purge_account, err);
    case EVENT_REQUEST_ANSWERED:
        return request_answer_add(tx, e, err);
    case EVENT_AUDITED:
        return audit_log_add(tx, &e->audited, err);
    case EVENT_ROWS_ADDED:
        return e->rows_added.write(tx, e->rows_added.data, err);
    case EVENT_KIND_COUNT:
        break;
    }
    return aq_fail(err, EINVAL, "event %d has no rows", (int)e->kind);
}

int event_write(struct store_tx *tx, struct event *e, struct aq_error *err)
{
    int r = event_write_rows(tx, e, err);

    return r < 0 ? r : session_events_write(tx, e, err);
}
