/* SPDX-License-Identifier: Apache-2.0 */
/* The reports: what their fields are, and what they can be narrowed by. */
#include <stdio.h>
#include <string.h>

#include "manager/usage/export_reports.h"
#include "store/audit_log.h"

/* clang-format off */
#define AT(how, type, member) .kind = EXPORT_##how, .offset = offsetof(struct type, member)
#define TEXT(function) .kind = EXPORT_FUNCTION, .text = function
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
    { "username", "Username", "", AT(STRING, user_row, user.username), .order = "username" },
    { "email", "Email", "", AT(STRING, user_row, user.email), .order = "email" },
    { "full_name", "Full Name", "", AT(STRING, user_row, user.full_name), .order = "full_name" },
    { "domain_name", "Domain", "", AT(STRING, user_row, user.domain), .order = "domain_name" },
    { "role", "Role", "user, admin, superadmin or monitor", TEXT(export_reports_role),
      .order = "role" },
    { "status", "Status", "active, inactive, deleted or before-verification",
      TEXT(export_reports_user_status), .order = "status" },
    { "created_at", "Created At", "", AT(TIME, user_row, created_usec), .order = "created_at" },
};

static const struct export_filter export_reports_user_filters[] = {
    { "username", "username", EXPORT_TEXT },
    { "email", "email", EXPORT_TEXT },
    { "domain_name", "domain_name", EXPORT_TEXT },
    { "role", "role", EXPORT_ANY },
    { "status", "status", EXPORT_ANY },
    { "created_at", "created_at", EXPORT_RANGE },
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
    { "name", "Name", "", AT(CHARS, session_row, session.name), .order = "name" },
    { "session_type", "Type", "interactive, batch, inference or system", TEXT(export_reports_type),
      .order = "session_type" },
    { "domain_name", "Domain", "", AT(STRING, session_row, session.domain),
      .order = "domain_name" },
    { "project_name", "Project", "", AT(STRING, session_row, project_name), .order = "group_name" },
    { "user_email", "User", "the owner's e-mail address", AT(STRING, session_row, user_email),
      .order = "user_email" },
    { "access_key", "Access Key", "", AT(CHARS, session_row, session.access_key),
      .order = "access_key" },
    { "status", "Status", "", TEXT(export_reports_session_status), .order = "status" },
    { "status_info", "Status Info", "why it has that status",
      AT(STRING, session_row, session.reason) },
    { "scaling_group_name", "Resource Group", "", AT(STRING, session_row, session.resource_group),
      .order = "scaling_group" },
    { "cluster_size", "Cluster Size", "containers", TEXT(export_reports_cluster_size),
      .order = "cluster_size" },
    { "occupying_slots", "Slots", "what its containers got, as JSON", TEXT(export_reports_slots) },
    { "created_at", "Created At", "", AT(TIME, session_row, session.created_usec),
      .order = "created_at" },
    { "terminated_at", "Terminated At", "", AT(TIME, session_row, terminated_usec),
      .order = "terminated_at" },
};

static const struct export_filter export_reports_session_filters[] = {
    { "name", "name", EXPORT_TEXT },
    { "session_type", "session_type", EXPORT_ANY },
    { "domain_name", "domain_name", EXPORT_TEXT },
    { "access_key", "access_key", EXPORT_TEXT },
    { "user.email", "user_email", EXPORT_TEXT },
    { "user.username", "username", EXPORT_TEXT },
    { "status", "status", EXPORT_ANY },
    { "scaling_group_name", "scaling_group", EXPORT_TEXT },
    { "created_at", "created_at", EXPORT_RANGE },
    { "terminated_at", "terminated_at", EXPORT_RANGE },
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
    { "name", "Name", "", AT(STRING, project_row, project.name), .order = "name" },
    { "description", "Description", "", AT(STRING, project_row, project.description) },
    { "domain_name", "Domain", "", AT(STRING, project_row, project.domain),
      .order = "domain_name" },
    { "is_active", "Active", "", AT(BOOL, project_row, project.is_active), .order = "is_active" },
    { "total_resource_slots", "Limits", "of all its sessions together, as JSON",
      TEXT(export_reports_limits) },
    { "created_at", "Created At", "", AT(TIME, project_row, created_usec), .order = "created_at" },
};

static const struct export_filter export_reports_project_filters[] = {
    { "name", "name", EXPORT_TEXT },
    { "domain_name", "domain_name", EXPORT_TEXT },
    { "is_active", "is_active", EXPORT_FLAG },
    { "created_at", "created_at", EXPORT_RANGE },
};

/* ---- keypairs: never a secret ---- */

static const struct export_field export_reports_keypair_fields[] = {
    { "access_key", "Access Key", "", AT(CHARS, keypair_row, keypair.access_key),
      .order = "access_key" },
    { "user_id", "User", "e-mail address", AT(STRING, keypair_row, user_email),
      .order = "user_id" },
    { "user_uuid", "User UUID", "", AT(UUID, keypair_row, keypair.user_id) },
    { "is_active", "Active", "", AT(BOOL, keypair_row, keypair.is_active), .order = "is_active" },
    { "is_admin", "Admin", "", AT(BOOL, keypair_row, keypair.is_admin), .order = "is_admin" },
    { "created_at", "Created At", "", AT(TIME, keypair_row, created_usec), .order = "created_at" },
    { "last_used", "Last Used", "", AT(TIME, keypair_row, used_usec), .order = "last_used" },
    { "resource_policy_name", "Resource Policy", "", AT(STRING, keypair_row, keypair.policy),
      .order = "resource_policy" },
};

static const struct export_filter export_reports_keypair_filters[] = {
    { "access_key", "access_key", EXPORT_TEXT },  { "user_id", "user_id", EXPORT_TEXT },
    { "is_active", "is_active", EXPORT_FLAG },    { "is_admin", "is_admin", EXPORT_FLAG },
    { "created_at", "created_at", EXPORT_RANGE },
};

/* ---- the audit log ---- */

static const struct export_field export_reports_audit_fields[] = {
    { "id", "ID", "counts up", AT(INT, audit_row, seq), .order = "seq" },
    { "entity_type", "Entity Type", "", AT(STRING, audit_row, entry.object_kind),
      .order = "object_kind" },
    { "entity_id", "Entity ID", "", AT(STRING, audit_row, entry.object_id), .order = "object_id" },
    { "entity_name", "Entity Name", "", AT(STRING, audit_row, entry.object_name),
      .order = "object_name" },
    { "entity_domain", "Entity Domain", "whose administrators see the row",
      AT(STRING, audit_row, entry.object_domain), .order = "object_domain" },
    { "operation", "Operation", "", AT(STRING, audit_row, entry.action), .order = "action" },
    { "status", "Status", "how it ended", AT(STRING, audit_row, entry.outcome),
      .order = "outcome" },
    { "times", "Times", "so often in a row", AT(INT, audit_row, entry.times), .order = "times" },
    { "created_at", "Created At", "", AT(TIME, audit_row, entry.at_usec), .order = "at" },
    { "description", "Description", "what was before and is after, as JSON",
      AT(STRING, audit_row, entry.detail) },
    { "request_id", "Request ID", "", AT(STRING, audit_row, entry.request_id) },
    { "triggered_by", "Triggered By", "e-mail address, or what was tried as one",
      AT(STRING, audit_row, entry.user_name), .order = "user" },
    { "domain_name", "Domain", "of who did it", AT(STRING, audit_row, entry.domain),
      .order = "domain" },
    { "access_key", "Access Key", "", AT(STRING, audit_row, entry.access_key),
      .order = "access_key" },
    { "address", "Address", "from which it came", AT(STRING, audit_row, entry.address) },
};

static const struct export_filter export_reports_audit_filters[] = {
    { "entity_type", "object_kind", EXPORT_TEXT },
    { "entity_id", "object_id", EXPORT_TEXT },
    { "entity_name", "object_name", EXPORT_TEXT },
    { "entity_domain", "object_domain", EXPORT_TEXT },
    { "operation", "action", EXPORT_TEXT },
    { "status", "outcome", EXPORT_ANY },
    { "triggered_by", "user", EXPORT_TEXT },
    { "domain_name", "domain", EXPORT_TEXT },
    { "access_key", "access_key", EXPORT_TEXT },
    { "request_id", "request_id", EXPORT_TEXT },
    { "created_at", "at", EXPORT_RANGE },
};

/* ---- all of them ---- */

/* clang-format off */
#define REPORT(word, row, key_, name_, description_, list_)                                        \
    { .key = (key_), .name = (name_), .description = (description_),                               \
      .fields = export_reports_##word##_fields,                                                    \
      .field_count = AQ_COUNT(export_reports_##word##_fields),                                     \
      .filters = export_reports_##word##_filters,                                                  \
      .filter_count = AQ_COUNT(export_reports_##word##_filters),                                   \
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
