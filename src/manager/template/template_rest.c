/* SPDX-License-Identifier: Apache-2.0 */
/* Templates of sessions and clusters: /template/session and /template/cluster as Backend.AI has
 * them, and /aliquot/v1/templates for both.
 */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_load.h"
#include "manager/template/template_feature.h"
#include "manager/call/list.h"
#include "manager/call/repeat.h"
#include "manager/rules/domain_check.h"
#include "manager/rules/template_find.h"
#include "manager/template/template.h"
#include "store/audit_log.h"

#define LISTED_MAX 1000

struct template_params {
    const char *payload, *group, *domain, *owner_access_key, *format;
    bool all;
    struct api_page page;
};

#define AT(member) offsetof(struct template_params, member)
/* clang-format off */
#define OWNER_FIELD { "owner_access_key", FIELD_STR, FIELD_NULLABLE, AT(owner_access_key), 1, 64,  \
                      .doc = "act for this key; administrators" }
#define PAYLOAD_FIELD { "payload", FIELD_STR, FIELD_REQUIRED, AT(payload), 1, TEMPLATE_BYTES_MAX,  \
                        .doc = "the template, YAML or JSON" }
/* clang-format on */

static const struct field template_create_fields[] = {
    PAYLOAD_FIELD,
    { "group_name|group", FIELD_STR, FIELD_NULLABLE, AT(group), 1, 64,
      .doc = "project whose members may use it, too" },
    { "domain_name|domain", FIELD_STR, FIELD_NULLABLE, AT(domain), 1, 64,
      .doc = "says nothing: it is the owner's" },
    OWNER_FIELD,
    FIELD_END,
};
static const struct field template_change_fields[] = {
    PAYLOAD_FIELD,
    { "group_name|group", FIELD_IGNORED }, /* of Backend.AI's; a template stays where it is */
    { "domain_name|domain", FIELD_IGNORED },
    OWNER_FIELD,
    FIELD_END,
};
static const struct field template_list_fields[] = {
    { "all", FIELD_BOOL, 0, AT(all), .doc = "of others, too; administrators" },
    { "group_id|groupId", FIELD_IGNORED },
    API_PAGE_FIELDS(struct template_params),
    FIELD_END,
};
static const struct field template_get_fields[] = {
    { "format", FIELD_STR, FIELD_NULLABLE, AT(format), 1, 8, .doc = "yaml (default) or json" },
    OWNER_FIELD,
    FIELD_END,
};
static const struct field template_delete_fields[] = { OWNER_FIELD, FIELD_END };

/* A request, while the store works. */
struct template_call {
    struct api *api;
    struct request *req;
    struct template_params params;
    struct folder_viewer who; /* whose templates are looked at */
    const struct audit_who *by;
    enum template_kind kind;
    bool is_ours;                   /* answered as /aliquot/v1 has it */
    struct template_parsed *parsed; /* of the payload */
    size_t parsed_count;
    struct template_row row;
    struct template_row *rows; /* to create, as many */
    const char *answer;        /* with them */
    struct store_page *page;   /* of a list */
    int (*run)(struct store_tx *tx, struct template_call *call, struct aq_error *err);
    void (*reply)(struct template_call *call);
};

/* ---- answers ---- */

/* What the caller may see of it. */
static void template_hide_from(const struct template_call *call, struct template_row *row)
{
    json_auto_t *parsed = NULL;
    AQ_CLEANUP(aq_freep) char *text = NULL, *json = NULL;
    struct arena *arena = request_get_arena(call->req);

    if (uuid_equals(&row->user_id, &api_principal(call->req)->user_id))
        return;
    parsed = json_load_string(row->parsed, 0);
    if (!(text = template_hide(parsed)))
        return;
    json = json_dump_text(parsed, JSON_COMPACT);
    row->text = arena_strdup(arena, text);
    row->parsed = arena_strdup(arena, json);
}

static json_t *template_show(const struct template_call *call, struct template_row *row)
{
    char id[UUID_TEXT_MAX], user[UUID_TEXT_MAX], project[UUID_TEXT_MAX];
    char created[CLOCK_ISO_MAX], modified[CLOCK_ISO_MAX];
    bool is_shared = !uuid_is_nil(&row->project_id);

    template_hide_from(call, row);
    return json_pack("{s:s, s:s, s:s, s:b, s:s, s:s?, s:s, s:s?, s:s, s:s, s:s, s:s, s:o}", "name",
                     row->name, "id", uuid_format(&row->id, id), "created_at",
                     clock_format_iso(row->created_usec, created), "is_owner",
                     uuid_equals(&row->user_id, &call->who.user_id), "user",
                     uuid_format(&row->user_id, user), "group",
                     is_shared ? uuid_format(&row->project_id, project) : NULL, "user_email",
                     row->user_email, "group_name", row->project_name, "domain_name", row->domain,
                     "type", is_shared ? "group" : "user", "kind", template_kind_name(row->kind),
                     "modified_at", clock_format_iso(row->modified_usec, modified), "template",
                     json_load_string(row->parsed, 0));
}

static void template_reply_json(const struct template_call *call, int status, json_t *body)
{
    AQ_CLEANUP(aq_freep) char *text = json_dump_text(body, JSON_COMPACT);

    json_decref(body);
    request_reply(call->req, status, "application/json", text, strlen(text));
}

static void template_reply_list(struct template_call *call)
{
    json_t *all = json_array();
    struct template_row *rows = call->page->rows;
    json_int_t total = call->page->total;

    for (size_t i = 0; i < call->page->count; i++)
        (void)json_array_append_new(all, template_show(call, &rows[i]));
    store_page_free(call->page);
    template_reply_json(
        call, 200, call->is_ours ? json_pack("{s:o, s:I}", "items", all, "total", total) : all);
}

/* As Backend.AI answers what a session's template is, in JSON. */
static json_t *template_show_session(const struct template_call *call)
{
    const struct template_row *row = &call->row;
    char user[UUID_TEXT_MAX], project[UUID_TEXT_MAX];

    return json_pack("{s:o, s:s, s:s, s:s?, s:s}", "template", json_load_string(row->parsed, 0),
                     "name", row->name, "user_uuid", uuid_format(&row->user_id, user), "group_id",
                     uuid_is_nil(&row->project_id) ? NULL : uuid_format(&row->project_id, project),
                     "domain_name", row->domain);
}

static void template_reply_text(struct template_call *call)
{
    struct template_row *row = &call->row;
    bool wants_json = call->params.format && strcmp(call->params.format, "json") == 0;

    template_hide_from(call, row);
    if (wants_json && call->kind == TEMPLATE_SESSION) {
        template_reply_json(call, 200, template_show_session(call));
        return;
    }
    request_reply(call->req, 200, wants_json ? "application/json" : "text/yaml",
                  wants_json ? row->parsed : row->text,
                  strlen(wants_json ? row->parsed : row->text));
}

/* With its text. */
static void template_reply_one(struct template_call *call)
{
    json_t *shown = template_show(call, &call->row);

    (void)json_object_set_new(shown, "text", json_string(call->row.text));
    template_reply_json(call, 200, shown);
}

static json_t *template_show_created(const struct template_row *row)
{
    char id[UUID_TEXT_MAX], user[UUID_TEXT_MAX];

    return json_pack("{s:s, s:s, s:s}", "id", uuid_format(&row->id, id), "user",
                     uuid_format(&row->user_id, user), "name", row->name);
}

/* The oldest clients take one object, that of the last template. */
static const char *template_write_created(const struct template_call *call)
{
    bool is_one = call->is_ours || api_principal(call->req)->version.major < 7;
    AQ_CLEANUP(aq_freep) char *text = NULL;
    json_auto_t *made = NULL;

    if (is_one) {
        made = template_show_created(&call->rows[call->parsed_count - 1]);
    } else {
        made = json_array();
        for (size_t i = 0; i < call->parsed_count; i++)
            json_array_append_new(made, template_show_created(&call->rows[i]));
    }
    text = json_dump_text(made, JSON_COMPACT);
    return arena_strdup(request_get_arena(call->req), text);
}

static int template_created_status(const struct template_call *call)
{
    return call->is_ours ? 201 : 200;
}

static void template_reply_created(struct template_call *call)
{
    repeat_note_answered(call->api, call->req);
    request_reply(call->req, template_created_status(call), "application/json", call->answer,
                  strlen(call->answer));
}

static void template_reply_success(struct template_call *call)
{
    template_reply_json(call, 200, json_pack("{s:b}", "success", true));
}

/* ---- the store's part ---- */

/* What the audit log has of one: no contents, which may be secrets. */
static void template_write_side(const struct template_row *row, struct strbuf *out)
{
    struct jsonw w = jsonw_make(out);

    jsonw_object_begin(&w);
    jsonw_member_str(&w, "kind", template_kind_name(row->kind));
    jsonw_member_str(&w, "name", row->name);
    jsonw_member_int(&w, "size", (int64_t)strlen(row->text));
    jsonw_object_end(&w);
}

static int template_audit(struct store_tx *tx, const struct template_call *call, const char *action,
                          const struct template_row *before, const struct template_row *after,
                          struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf old = STRBUF_INIT, fresh = STRBUF_INIT;
    const struct template_row *row = after ? after : before;
    char id[UUID_TEXT_MAX];

    if (before)
        template_write_side(before, &old);
    if (after)
        template_write_side(after, &fresh);
    return audit_log_add_change(tx, call->by,
                                &(struct audit_change){
                                    .action = action,
                                    .object_kind = "template",
                                    .object_id = uuid_format(&row->id, id),
                                    .object_name = row->name,
                                    .object_domain = row->domain,
                                    .before = before ? old.data : NULL,
                                    .after = after ? fresh.data : NULL,
                                },
                                err);
}

/* The templates of a cluster's roles are there, for its owner. */
static int template_check_nodes(struct store_tx *tx, const struct template_call *call,
                                struct aq_error *err)
{
    struct arena *arena = request_get_arena(call->req);
    struct template_cluster *cluster = arena_alloc(arena, sizeof(*cluster));
    int r = template_read_cluster(call->parsed->json, arena, cluster, err);

    if (r < 0)
        return r;
    template_cluster_done(cluster);
    for (size_t i = 0; r == 0 && i < cluster->count; i++) {
        struct template_row found = { .kind = TEMPLATE_SESSION };

        r = template_find(tx, &call->who, cluster->nodes[i].session_template, arena, &found, err);
        if (r == 0 && found.kind != TEMPLATE_SESSION)
            r = aq_fail(err, EINVAL, "'%.64s' is a cluster's", found.name);
        if (r < 0) {
            (void)snprintf(err->field, sizeof(err->field), "spec.nodes.%zu.session_template",
                           cluster->nodes[i].index);
            template_place(call->params.payload, strlen(call->params.payload), err);
            r = -EINVAL;
        }
    }
    return r;
}

static int template_fill(struct store_tx *tx, struct template_call *call, struct template_row *row,
                         const struct template_parsed *parsed, struct aq_error *err)
{
    row->name = parsed->name;
    row->text = parsed->text;
    row->modified_usec = clock_realtime_usec();
    return parsed->kind == TEMPLATE_CLUSTER ? template_check_nodes(tx, call, err) : 0;
}

/* All of a list or none: they are of one transaction. */
static int template_run_create(struct store_tx *tx, struct template_call *call,
                               struct aq_error *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < call->parsed_count; i++) {
        struct template_row *row = &call->rows[i];

        r = template_fill(tx, call, row, &call->parsed[i], err);
        row->created_usec = row->modified_usec;
        if (r == 0 && (r = domain_check(template_insert(tx, row, err), err)) == 0)
            r = template_audit(tx, call, "create-template", NULL, row, err);
    }
    if (r < 0)
        return r;
    call->answer = template_write_created(call);
    return repeat_keep(tx, call->req, template_created_status(call), call->answer, err);
}

static int template_run_list(struct store_tx *tx, struct template_call *call, struct aq_error *err)
{
    struct store_query query = { .limit = 0 };

    api_page_apply(&call->params.page, &query);
    query.limit = call->params.page.limit ? call->params.page.limit : LISTED_MAX;
    return store_list_templates(tx, &call->who, call->kind, call->params.all, &query, &call->page,
                                err);
}

/* By the path; of the path's kind. */
static int template_run_find(struct store_tx *tx, struct template_call *call, struct aq_error *err)
{
    const char *name = request_get_param(call->req, "template");
    int r = template_find(tx, &call->who, name, request_get_arena(call->req), &call->row, err);

    if (r == 0 && call->kind != TEMPLATE_ANY && call->row.kind != call->kind)
        r = aq_fail(err, ENOENT, "'%.64s' is a template of another kind", call->row.name);
    return r;
}

/* The same for its owner, or who administers the domain. */
static int template_run_find_own(struct store_tx *tx, struct template_call *call,
                                 struct aq_error *err)
{
    const struct folder_viewer *who = &call->who;
    int r = template_run_find(tx, call, err);

    if (r < 0 || who->is_superadmin || uuid_equals(&who->user_id, &call->row.user_id)
        || (who->admin_of && strcmp(who->admin_of, call->row.domain) == 0))
        return r;
    return aq_fail_kind(err, EPERM, "generic-forbidden",
                        "the template '%.64s' belongs to %.64s, who alone may change it",
                        call->row.name, call->row.user_email);
}

/* An entry of a list may repeat the template's project and owner, but not change them. */
static int template_check_stays(const struct template_call *call, struct aq_error *err)
{
    const struct template_parsed *parsed = call->parsed;
    struct uuid id;

    if (parsed->group_id
        && (uuid_parse(parsed->group_id, &id) < 0 || !uuid_equals(&id, &call->row.project_id)))
        return api_fail_param(err, "payload",
                              "group_id: the project of a template cannot be changed; remove "
                              "group_id, or create a template in the other project");
    if (parsed->user_uuid
        && (uuid_parse(parsed->user_uuid, &id) < 0 || !uuid_equals(&id, &call->row.user_id)))
        return api_fail_param(err, "payload",
                              "user_uuid: the owner of a template cannot be changed; remove "
                              "user_uuid, or create a template for the other user");
    return 0;
}

static int template_run_change(struct store_tx *tx, struct template_call *call,
                               struct aq_error *err)
{
    struct template_row before;
    const char *parsed = call->row.parsed; /* the new one */
    int r = template_run_find_own(tx, call, err);

    if (r < 0)
        return r;
    before = call->row;
    if (before.kind != call->parsed->kind)
        return api_fail_param(err, "payload", "the template '%.64s' is a %s's and stays one",
                              before.name, template_kind_name(before.kind));
    if ((r = template_check_stays(call, err)) < 0)
        return r;
    call->row.parsed = parsed;
    call->who.user_id = before.user_id;
    if ((r = template_fill(tx, call, &call->row, call->parsed, err)) < 0
        || (r = template_update(tx, &call->row, err)) < 0)
        return r;
    return template_audit(tx, call, "modify-template", &before, &call->row, err);
}

static int template_run_delete(struct store_tx *tx, struct template_call *call,
                               struct aq_error *err)
{
    int r = template_run_find_own(tx, call, err);

    if (r < 0 || (r = template_remove(tx, &call->row.id, err)) < 0)
        return r;
    return template_audit(tx, call, "delete-template", &call->row, NULL, err);
}

/* store_tx_fn */
static int template_run(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct template_call *call = data;

    return call->run(tx, call, err);
}

/* One that is to be created may be, by an earlier copy of the request. */
static void template_refuse(struct template_call *call, const struct aq_error *err)
{
    if (request_get_method(call->req) == METHOD_POST)
        repeat_fail(call->api, call->req, err, NULL);
    else
        request_fail(call->req, err);
}

static void template_on_done(void *data, int r, const struct aq_error *err)
{
    struct template_call *call = data;
    struct aq_error own = *err;

    template_parsed_free(call->parsed, call->parsed_count);
    if (r == -ENOENT)
        problem_no_such(&own, "task template", "%s", err->text);
    if (r == -EPERM)
        api_note_denied(call->api, call->req, "template", call->row.name);
    if (r < 0)
        template_refuse(call, &own);
    else
        call->reply(call);
}

/* ---- requests ---- */

static int template_read_who(struct template_call *call, struct aq_error *err)
{
    const struct principal *who = api_principal(call->req);
    struct arena *arena = request_get_arena(call->req);
    const struct keypair *key;
    const struct user *owner;
    int r = api_owner(call->api, call->req, call->params.owner_access_key, &key, err);

    if (r < 0)
        return r;
    call->by = api_who(call->api, call->req);
    call->who.user_id = call->row.user_id = key->user_id;
    call->who.is_superadmin = principal_is_superadmin(who);
    owner = core_find_user(call->api->core, &key->user_id);
    call->row.domain = arena_strdup(arena, owner && owner->domain ? owner->domain : "default");
    if (who->role == ROLE_ADMIN && who->domain)
        call->who.admin_of = arena_strdup(arena, who->domain);
    return 0;
}

static int template_read_project(struct template_call *call, const char *text,
                                 struct template_row *row, struct aq_error *err)
{
    const struct project *project;
    int r = text ? api_find_project(call->api, call->req, text, &project, err) : 0;

    if (r == 0 && text)
        row->project_id = project->id;
    return r;
}

/* Another owner than the caller is for administrators, as "owner_access_key" is. */
static int template_read_owner(const struct template_call *call, const char *text,
                               struct template_row *row, struct aq_error *err)
{
    const struct principal *who = api_principal(call->req);
    const struct user *user;
    struct uuid id;

    if (!text || (uuid_parse(text, &id) == 0 && uuid_equals(&id, &row->user_id)))
        return 0;
    if (!principal_may(who->role, API_ADMIN))
        return aq_fail_kind(err, EPERM, "generic-forbidden",
                            "user_uuid: only administrators may create templates for others");
    user = uuid_parse(text, &id) == 0 ? core_find_user(call->api->core, &id) : NULL;
    if (!user)
        return api_fail_param(err, "payload", "user_uuid: there is no user '%.64s'", text);
    if (who->role == ROLE_ADMIN
        && (user->role == ROLE_SUPERADMIN || !user->domain || strcmp(user->domain, who->domain)))
        return aq_fail_kind(err, EPERM, "generic-forbidden",
                            "user_uuid: the user belongs to another domain or is a superadmin");
    row->user_id = user->id;
    row->domain = arena_strdup(request_get_arena(call->req),
                               user->domain ? user->domain : "default");
    return 0;
}

/* The row of one of the payload's templates. */
static void template_set_parsed(struct template_call *call, struct template_row *row,
                                const struct template_parsed *parsed)
{
    AQ_CLEANUP(aq_freep) char *text = json_dump_text(parsed->json, JSON_COMPACT);

    row->kind = parsed->kind;
    row->parsed = arena_strdup(request_get_arena(call->req), text);
}

/* What is stored of the payload's templates, which are of the call's owner and project unless the
 * entry of a list says otherwise.
 */
static int template_build_rows(struct template_call *call, struct aq_error *err)
{
    struct arena *arena = request_get_arena(call->req);
    int r = 0;

    call->rows = arena_array(arena, call->parsed_count, sizeof(*call->rows));
    for (size_t i = 0; r == 0 && i < call->parsed_count; i++) {
        const struct template_parsed *parsed = &call->parsed[i];
        struct template_row *row = &call->rows[i];

        *row = call->row;
        row->id = uuid_random();
        template_set_parsed(call, row, parsed);
        if ((r = template_read_owner(call, parsed->user_uuid, row, err)) < 0)
            return r;
        r = template_read_project(call, parsed->group_id ? parsed->group_id : call->params.group,
                                  row, err);
    }
    return r;
}

/* A payload is checked before the store is asked. */
static int template_read_payload(struct template_call *call, struct aq_error *err)
{
    const char *payload = call->params.payload;
    int r;

    if (!payload)
        return 0;
    r = template_parse(call->kind, payload, strlen(payload), request_get_arena(call->req),
                       &call->parsed, &call->parsed_count, err);
    if (r < 0)
        return r;
    if (request_get_method(call->req) == METHOD_POST)
        return template_build_rows(call, err);
    if (call->parsed_count > 1)
        return api_fail_param(err, "payload", "has %zu templates; send exactly one",
                              call->parsed_count);
    template_set_parsed(call, &call->row, call->parsed);
    return 0;
}

static int template_read(struct template_call *call, struct aq_error *err)
{
    int r = api_decode(call->req, &call->params, NULL, err);

    if (r < 0 || (r = template_read_who(call, err)) < 0
        || (r = template_read_payload(call, err)) < 0)
        return r;
    if (call->params.format && strcmp(call->params.format, "yaml") != 0
        && strcmp(call->params.format, "json") != 0)
        return api_fail_param(err, "format", "must be yaml or json");
    return 0;
}

static void template_start(struct request *req, struct template_call call)
{
    struct template_call *kept = arena_alloc(request_get_arena(req), sizeof(*kept));
    struct aq_error err = { 0 };
    bool reads = request_get_method(req) == METHOD_GET;
    struct store *store = core_store(call.api->core);

    call.req = req;
    *kept = call;
    if (template_read(kept, &err) < 0) {
        template_parsed_free(kept->parsed, kept->parsed_count);
        template_refuse(kept, &err);
    } else if (reads) {
        store_read(store, template_run, template_on_done, kept);
    } else {
        store_write(store, template_run, template_on_done, kept);
    }
}

/* Those of one kind: name##_kind and whether it is our own route. */
#define TEMPLATE_HANDLERS(name, which, ours, get)                                                 \
    static void template_on_list_##name(struct request *req, void *data)                          \
    {                                                                                             \
        template_start(req, (struct template_call){ .api = data,                                  \
                                                    .kind = which,                                \
                                                    .is_ours = ours,                              \
                                                    .run = template_run_list,                     \
                                                    .reply = template_reply_list });              \
    }                                                                                             \
    static void template_make_##name(struct request *req, void *data)                             \
    {                                                                                             \
        template_start(req, (struct template_call){ .api = data,                                  \
                                                    .kind = which,                                \
                                                    .is_ours = ours,                              \
                                                    .run = template_run_create,                   \
                                                    .reply = template_reply_created });           \
    }                                                                                             \
    static void template_on_create_##name(struct request *req, void *data)                        \
    {                                                                                             \
        static const struct repeat_handler handler = { template_make_##name, NULL };              \
                                                                                                  \
        repeat_start(data, req, &handler);                                                        \
    }                                                                                             \
    static void template_on_get_##name(struct request *req, void *data)                           \
    {                                                                                             \
        template_start(req,                                                                       \
                       (struct template_call){                                                    \
                           .api = data, .kind = which, .run = template_run_find, .reply = get }); \
    }                                                                                             \
    static void template_on_change_##name(struct request *req, void *data)                        \
    {                                                                                             \
        template_start(req, (struct template_call){ .api = data,                                  \
                                                    .kind = which,                                \
                                                    .run = template_run_change,                   \
                                                    .reply = template_reply_success });           \
    }                                                                                             \
    static void template_on_delete_##name(struct request *req, void *data)                        \
    {                                                                                             \
        template_start(req, (struct template_call){ .api = data,                                  \
                                                    .kind = which,                                \
                                                    .run = template_run_delete,                   \
                                                    .reply = template_reply_success });           \
    }

TEMPLATE_HANDLERS(session, TEMPLATE_SESSION, false, template_reply_text)
TEMPLATE_HANDLERS(cluster, TEMPLATE_CLUSTER, false, template_reply_text)
TEMPLATE_HANDLERS(any, TEMPLATE_ANY, true, template_reply_one)

/* Status of a POST, and media types of a GET of one template, differ. */
#define TEMPLATE_ROUTES(name, path, what, made, shown_as)                       \
    { METHOD_GET,                                                               \
      path,                                                                     \
      API_USER,                                                                 \
      template_on_list_##name,                                                  \
      template_list_fields,                                                     \
      "Templates of " what " that you may use" },                               \
        { METHOD_POST,                                                          \
          path,                                                                 \
          API_USER | API_ANSWERED_ONCE,                                         \
          template_on_create_##name,                                            \
          template_create_fields,                                               \
          "Keep a template of " what,                                           \
          .answer = { made } },                                                 \
        { METHOD_GET,                                                           \
          path "/{template}",                                                   \
          API_USER,                                                             \
          template_on_get_##name,                                               \
          template_get_fields,                                                  \
          "A template of " what ", by name or id",                              \
          .answer = { .types = shown_as } },                                    \
        { METHOD_PUT,                                                           \
          path "/{template}",                                                   \
          API_USER,                                                             \
          template_on_change_##name,                                            \
          template_change_fields,                                               \
          "Replace a template of " what },                                      \
    {                                                                           \
        METHOD_DELETE, path "/{template}", API_USER, template_on_delete_##name, \
            template_delete_fields, "Remove a template of " what                \
    }

static const struct route template_routes[] = {
    TEMPLATE_ROUTES(session, "/template/session", "sessions", 200, "text/yaml|application/json"),
    TEMPLATE_ROUTES(cluster, "/template/cluster", "clusters", 200, "text/yaml|application/json"),
    TEMPLATE_ROUTES(any, "/aliquot/v1/templates", "sessions and clusters", 201, NULL),
};
API_ROUTES_END(template);
