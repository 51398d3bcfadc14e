/* SPDX-License-Identifier: Apache-2.0 */
/* GET /aliquot/v1/audit-log: who did or tried what */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "manager/cluster/cluster_feature.h"
#include "manager/call/list.h"
#include "store/audit_log.h"

struct audit_log_params {
    struct api_page page;
    const char *since, *until, *user, *action, *object, *domain;
};

static const struct field audit_log_fields[] = {
    API_PAGE_FIELDS(struct audit_log_params),
    { "since", FIELD_STR, FIELD_NULLABLE, offsetof(struct audit_log_params, since), 1, 64,
      .doc = "a date, Unix time in seconds, or how long ago" },
    { "user", FIELD_STR, FIELD_NULLABLE, offsetof(struct audit_log_params, user), 0, 256,
      .doc = "e-mail address, or what was tried as one" },
    { "until", FIELD_STR, FIELD_NULLABLE, offsetof(struct audit_log_params, until), 1, 64,
      .doc = "the same; entries before it" },
    { "action", FIELD_STR, FIELD_NULLABLE, offsetof(struct audit_log_params, action), 1, 64,
      .doc = "e.g. login, create-session, modify-user" },
    { "object", FIELD_STR, FIELD_NULLABLE, offsetof(struct audit_log_params, object), 1, 256,
      .doc = "the kind, id or name of what was changed" },
    { "domain", FIELD_STR, FIELD_NULLABLE, offsetof(struct audit_log_params, domain), 1, 64,
      .doc = "whose what was changed is" },
    FIELD_END,
};

static void audit_log_write_row(const struct api_list *list, const struct store_page *page,
                                size_t i, struct jsonw *w)
{
    const struct audit_entry *e = &page->audit_log[i].entry;

    (void)list;
    jsonw_object_begin(w);
    jsonw_member_int(w, "seq", page->audit_log[i].seq);
    api_write_time(w, "at", e->at_usec);
    jsonw_member_str(w, "user", e->user_name);
    if (uuid_is_nil(&e->user_id))
        jsonw_member_null(w, "user_id");
    else
        api_write_uuid(w, "user_id", &e->user_id);
    jsonw_member_str(w, "domain", e->domain);
    jsonw_member_str(w, "access_key", e->access_key);
    jsonw_member_str(w, "address", e->address);
    jsonw_member_str(w, "action", e->action);
    jsonw_member_str(w, "object_kind", e->object_kind);
    jsonw_member_str(w, "object_id", e->object_id);
    jsonw_member_str(w, "object_name", e->object_name);
    jsonw_member_str(w, "object_domain", e->object_domain);
    jsonw_member_str(w, "outcome", e->outcome);
    jsonw_member_int(w, "times", e->times);
    api_write_raw(w, "detail", e->detail);
    jsonw_member_str(w, "request_id", e->request_id);
    jsonw_object_end(w);
}

/* Wall clock; 0 = not given. */
static int audit_log_read_time(const char *field, const char *text, int64_t *ret,
                               struct aq_error *err)
{
    int64_t ago_usec = 0;

    if (!text)
        return 0;
    if (clock_parse_since(text, ret, &ago_usec) < 0)
        return api_fail_param(err, field, "'%.64s' is no date, no Unix time, and not how long ago",
                              text);
    if (ago_usec)
        *ret = AQ_MAX(clock_realtime_usec() - ago_usec, 1);
    return 0;
}

/* Administrators of a domain see what is theirs. */
static int audit_log_set_domain(const struct principal *who, const char *asked,
                                struct store_query *query, struct aq_error *err)
{
    const char *own = who->domain ? who->domain : "";

    if (principal_is_superadmin(who)) {
        query->domain = asked;
        return 0;
    }
    if (asked && strcmp(asked, own) != 0)
        return aq_fail_kind(err, EPERM, "generic-forbidden",
                            "you see the entries of your own domain only");
    query->domain = own;
    return 0;
}

static int audit_log_decode(struct request *req, struct api_list *list, struct aq_error *err)
{
    struct audit_log_params params = { .page.limit = API_LIST_DEFAULT };
    struct store_query *query = &list->query;

    if (api_decode(req, &params, NULL, err) < 0
        || audit_log_read_time("since", params.since, &query->since_usec, err) < 0
        || audit_log_read_time("until", params.until, &query->until_usec, err) < 0
        || audit_log_set_domain(api_principal(req), params.domain, query, err) < 0)
        return -err->code;
    api_page_apply(&params.page, query);
    query->name = params.user;
    query->action = params.action;
    query->object = params.object;
    return 0;
}

static void audit_log_on_list(struct request *req, void *data)
{
    struct api_list *list = api_list_new(data, req);
    struct aq_error err = { 0 };

    if (audit_log_decode(req, list, &err) < 0) {
        request_fail(req, &err);
        return;
    }
    list->list = store_list_audit_log;
    list->write = audit_log_write_row;
    api_list_start(list);
}

static const struct route audit_log_routes[] = {
    { METHOD_GET, "/aliquot/v1/audit-log", API_ADMIN, audit_log_on_list, audit_log_fields,
      "Who did or tried what, the newest first" },
};
API_ROUTES_END(audit_log);
