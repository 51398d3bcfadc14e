/* SPDX-License-Identifier: Apache-2.0 */
/* The reports: what their fields are, and what they can be narrowed by. */
#include <stdio.h>
#include <string.h>

#include "manager/usage/export_reports.h"
#include "store/audit_log.h"

/* clang-format off */
#define AT(how, type, member) .kind = EXPORT_##how, .offset = offsetof(struct type, member)
#define TEXT(function) .kind = EXPORT_FUNCTION, .text = function
#define AS(name, how) .field = (name), .test = EXPORT_##how
/* clang-format on */

/* ---- users ---- */

static void export_reports_role(const struct api *api, const void *row, struct strbuf *out)
{
    (void)api;
    strbuf_adds(out, user_role_name(((const struct user_row *)row)->user.role));
}

static void export_reports_user_status(const struct api *api, const void *row, struct strbuf *out)
{
    (void)api;
    strbuf_adds(out, user_status_name(((const struct user_row *)row)->user.status));
}

static const struct export_field export_reports_user_fields[] = {
    { "uuid", "UUID", "the user's id", AT(UUID, user_row, user.id) },
    { "username", "Username", "", AT(STRING, user_row, user.username), AS("username", TEXT) },
    { "email", "Email", "", AT(STRING, user_row, user.email), AS("email", TEXT) },
    { "full_name", "Full Name", "", AT(STRING, user_row, user.full_name), AS("full_name", NONE) },
    { "domain_name", "Domain", "", AT(STRING, user_row, user.domain), AS("domain_name", TEXT) },
    { "role", "Role", "user, admin, superadmin or monitor", TEXT(export_reports_role),
      AS("role", ANY) },
    { "status", "Status", "active, inactive, deleted or before-verification",
      TEXT(export_reports_user_status), AS("status", ANY) },
    { "created_at", "Created At", "", AT(TIME, user_row, created_usec), AS("created_at", RANGE) },
};

/* ---- sessions ---- */

static void export_reports_type(const struct api *api, const void *row, struct strbuf *out)
{
    (void)api;
    strbuf_adds(out, session_type_name(((const struct session_row *)row)->session.type));
}

static void export_reports_session_status(const struct api *api, const void *row,
                                          struct strbuf *out)
{
    (void)api;
    strbuf_adds(out, session_status_name(((const struct session_row *)row)->session.status));
}

static void export_reports_cluster_size(const struct api *api, const void *row, struct strbuf *out)
{
    (void)api;
    strbuf_addf(out, "%zu", ((const struct session_row *)row)->kernel_count);
}

/* What its kernels asked for and hold, or held, as JSON. */
static void export_reports_slots(const struct api *api, const void *row, struct strbuf *out)
{
    AQ_CLEANUP(slots_donep) struct slots sum = { 0 };
    const struct session_row *s = row;
    struct jsonw w = jsonw_make(out);
    int r = 0; /* what exceeds the range of an amount is left out */

    for (size_t k = 0; r == 0 && s->kernels && k < s->kernel_count; k++)
        r = slots_add(&sum, &s->kernels[k].kernel.requested);
    slots_write_json(&sum, core_slot_types(api->core), &w);
}

static const struct export_field export_reports_session_fields[] = {
    { "id", "Session ID", "", AT(UUID, session_row, session.id) },
    { "name", "Name", "", AT(CHARS, session_row, session.name), AS("name", TEXT) },
    { "session_type", "Type", "interactive, batch, inference or system", TEXT(export_reports_type),
      AS("session_type", ANY) },
    { "domain_name", "Domain", "", AT(STRING, session_row, session.domain),
      AS("domain_name", TEXT) },
    { "project_name", "Project", "", AT(STRING, session_row, project_name),
      AS("group_name", NONE) },
    { "user_email", "User", "the owner's e-mail address", AT(STRING, session_row, user_email),
      AS("user_email", NONE) },
    { "access_key", "Access Key", "", AT(CHARS, session_row, session.access_key),
      AS("access_key", TEXT) },
    { "status", "Status", "", TEXT(export_reports_session_status), AS("status", ANY) },
    { "status_info", "Status Info", "why it has that status",
      AT(STRING, session_row, session.reason) },
    { "scaling_group_name", "Resource Group", "", AT(STRING, session_row, session.resource_group),
      AS("scaling_group", TEXT) },
    { "cluster_size", "Cluster Size", "containers", TEXT(export_reports_cluster_size),
      AS("cluster_size", NONE) },
    { "occupying_slots", "Slots", "what its containers got, as JSON", TEXT(export_reports_slots) },
    { "created_at", "Created At", "", AT(TIME, session_row, session.created_usec),
      AS("created_at", RANGE) },
    { "terminated_at", "Terminated At", "", AT(TIME, session_row, terminated_usec),
      AS("terminated_at", RANGE) },
    { "user.email", .kind = EXPORT_HIDDEN, AS("user_email", TEXT) },
    { "user.username", .kind = EXPORT_HIDDEN, AS("username", TEXT) },
};

/* ---- projects ---- */

static void export_reports_limits(const struct api *api, const void *row, struct strbuf *out)
{
    struct jsonw w = jsonw_make(out);

    slots_write_json(&((const struct project_row *)row)->project.total_slots,
                     core_slot_types(api->core), &w);
}

static const struct export_field export_reports_project_fields[] = {
    { "id", "Project ID", "", AT(UUID, project_row, project.id) },
    { "name", "Name", "", AT(STRING, project_row, project.name), AS("name", TEXT) },
    { "description", "Description", "", AT(STRING, project_row, project.description) },
    { "domain_name", "Domain", "", AT(STRING, project_row, project.domain),
      AS("domain_name", TEXT) },
    { "is_active", "Active", "", AT(BOOL, project_row, project.is_active), AS("is_active", FLAG) },
    { "total_resource_slots", "Limits", "of all its sessions together, as JSON",
      TEXT(export_reports_limits) },
    { "created_at", "Created At", "", AT(TIME, project_row, created_usec),
      AS("created_at", RANGE) },
};

/* ---- keypairs: never a secret ---- */

static const struct export_field export_reports_keypair_fields[] = {
    { "access_key", "Access Key", "", AT(CHARS, keypair_row, keypair.access_key),
      AS("access_key", TEXT) },
    { "user_id", "User", "e-mail address", AT(STRING, keypair_row, user_email),
      AS("user_id", TEXT) },
    { "user_uuid", "User UUID", "", AT(UUID, keypair_row, keypair.user_id) },
    { "is_active", "Active", "", AT(BOOL, keypair_row, keypair.is_active), AS("is_active", FLAG) },
    { "is_admin", "Admin", "", AT(BOOL, keypair_row, keypair.is_admin), AS("is_admin", FLAG) },
    { "created_at", "Created At", "", AT(TIME, keypair_row, created_usec),
      AS("created_at", RANGE) },
    { "last_used", "Last Used", "", AT(TIME, keypair_row, used_usec), AS("last_used", NONE) },
    { "resource_policy_name", "Resource Policy", "", AT(STRING, keypair_row, keypair.policy),
      AS("resource_policy", NONE) },
};

/* ---- the audit log ---- */

static const struct export_field export_reports_audit_fields[] = {
    { "id", "ID", "counts up", AT(INT, audit_row, seq), AS("seq", NONE) },
    { "entity_type", "Entity Type", "", AT(STRING, audit_row, entry.object_kind),
      AS("object_kind", TEXT) },
    { "entity_id", "Entity ID", "", AT(STRING, audit_row, entry.object_id), AS("object_id", TEXT) },
    { "entity_name", "Entity Name", "", AT(STRING, audit_row, entry.object_name),
      AS("object_name", TEXT) },
    { "entity_domain", "Entity Domain", "whose administrators see the row",
      AT(STRING, audit_row, entry.object_domain), AS("object_domain", TEXT) },
    { "operation", "Operation", "", AT(STRING, audit_row, entry.action), AS("action", TEXT) },
    { "status", "Status", "how it ended", AT(STRING, audit_row, entry.outcome),
      AS("outcome", ANY) },
    { "times", "Times", "so often in a row", AT(INT, audit_row, entry.times), AS("times", NONE) },
    { "created_at", "Created At", "", AT(TIME, audit_row, entry.at_usec), AS("at", RANGE) },
    { "description", "Description", "what was before and is after, as JSON",
      AT(STRING, audit_row, entry.detail) },
    { "request_id", "Request ID", "", AT(STRING, audit_row, entry.request_id) },
    { "triggered_by", "Triggered By", "e-mail address, or what was tried as one",
      AT(STRING, audit_row, entry.user_name), AS("user", TEXT) },
    { "domain_name", "Domain", "of who did it", AT(STRING, audit_row, entry.domain),
      AS("domain", TEXT) },
    { "access_key", "Access Key", "", AT(STRING, audit_row, entry.access_key),
      AS("access_key", TEXT) },
    { "address", "Address", "from which it came", AT(STRING, audit_row, entry.address) },
    { "request_id", .kind = EXPORT_HIDDEN, AS("request_id", TEXT) },
};

/* ---- all of them ---- */

/* clang-format off */
#define REPORT(word, row, key_, name_, description_, list_)                                        \
    { .key = (key_), .name = (name_), .description = (description_),                               \
      .fields = export_reports_##word##_fields,                                                    \
      .field_count = AQ_COUNT(export_reports_##word##_fields),                                     \
      .row_size = sizeof(struct row), .list = (list_) }
/* clang-format on */

const struct export_report export_reports[] = {
    REPORT(user, user_row, "users", "Users", "Users with their roles and states", store_list_users),
    REPORT(session, session_row, "sessions", "Sessions", "Sessions of all times that are kept",
           store_list_sessions),
    REPORT(project, project_row, "projects", "Projects", "Projects with their limits",
           store_list_projects),
    REPORT(keypair, keypair_row, "keypairs", "Keypairs", "Keypairs without their secrets",
           store_list_keypairs),
    REPORT(audit, audit_row, "audit-logs", "Audit Logs", "Who did or tried what",
           store_list_audit_log),
};
const size_t export_report_count = AQ_COUNT(export_reports);

const struct export_report *export_find_report(const char *key)
{
    for (size_t i = 0; i < export_report_count; i++)
        if (strcmp(export_reports[i].key, key) == 0)
            return &export_reports[i];
    return NULL;
}
