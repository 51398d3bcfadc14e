/* SPDX-License-Identifier: Apache-2.0 */
/* Dotfiles of keypairs, projects and domains, and the bootstrap script of a keypair, for sessions
 * that start.
 */
#include <errno.h>
#include <string.h>

#include "manager/template/template_feature.h"
#include "manager/template/template.h"
#include "manager/rules/domain_check.h"
#include "store/audit_log.h"
#include "store/dotfile.h"

struct dotfile_params {
    const char *owner_access_key, *project, *domain;
    const char *path, *permission, *data;
};

#define AT(member) offsetof(struct dotfile_params, member)
/* clang-format off */
/* 22.03 misspells the first when it lists. */
#define KEYPAIR_FIELD { "owner_access_key|onwer_access_key", FIELD_STR, FIELD_NULLABLE,           \
                        AT(owner_access_key), 1, 64, .doc = "act for this key; administrators" }
#define PROJECT_FIELDS                                                                             \
    { "group", FIELD_STR, FIELD_REQUIRED, AT(project), 1, 64, .doc = "name or id of a project" },  \
    { "domain", FIELD_STR, FIELD_NULLABLE, AT(domain), 1, 64, .doc = "default: the caller's" }
#define DOMAIN_FIELD { "domain", FIELD_STR, FIELD_REQUIRED, AT(domain), 1, 64 }
#define FILE_FIELDS                                                                                \
    { "path", FIELD_STR, FIELD_REQUIRED, AT(path), 1, DOTFILE_PATH_MAX,                              \
      .doc = "below the home directory" },                                                         \
    { "permission", FIELD_STR, FIELD_REQUIRED, AT(permission), 1, 4, .doc = "as in chmod: 644" },  \
    { "data", FIELD_STR, FIELD_REQUIRED, AT(data), 0, DOTFILES_BYTES_MAX }
#define PATH_FIELD(flags) { "path", FIELD_STR, flags, AT(path), 1, DOTFILE_PATH_MAX }

static const struct field keypair_file_fields[] = { KEYPAIR_FIELD, FILE_FIELDS, FIELD_END };
static const struct field keypair_get_fields[] = { KEYPAIR_FIELD, PATH_FIELD(FIELD_NULLABLE), FIELD_END };
static const struct field keypair_path_fields[] = { KEYPAIR_FIELD, PATH_FIELD(FIELD_REQUIRED), FIELD_END };
static const struct field project_file_fields[] = { PROJECT_FIELDS, FILE_FIELDS, FIELD_END };
static const struct field project_get_fields[] = { PROJECT_FIELDS, PATH_FIELD(FIELD_NULLABLE), FIELD_END };
static const struct field project_path_fields[] = { PROJECT_FIELDS, PATH_FIELD(FIELD_REQUIRED), FIELD_END };
static const struct field domain_file_fields[] = { DOMAIN_FIELD, FILE_FIELDS, FIELD_END };
static const struct field domain_get_fields[] = { DOMAIN_FIELD, PATH_FIELD(FIELD_NULLABLE), FIELD_END };
static const struct field domain_path_fields[] = { DOMAIN_FIELD, PATH_FIELD(FIELD_REQUIRED), FIELD_END };
/* clang-format on */

/* A request, while the store works. */
struct dotfile_call {
    struct request *req;
    struct dotfile_owner owner;
    struct dotfile file; /* path NULL = all */
    int (*run)(struct store_tx *tx, struct dotfile_call *call, struct aq_error *err);
    const char *reply;          /* NULL: the files that were read */
    const struct audit_who *by; /* of a change; the request's */
    const char *domain;         /* of the owner */
    struct dotfile *found;
    int count;
};

/* ---- whose they are ---- */

static int dotfile_fail_forbidden(struct aq_error *err)
{
    return aq_fail_kind(err, EPERM, "generic-forbidden",
                        "only its administrators may change these dotfiles");
}

static int dotfile_find_project(const struct api *api, struct request *req,
                                const struct dotfile_params *params, bool changes,
                                struct dotfile_owner *ret, struct aq_error *err)
{
    const struct principal *who = api_principal(req);
    const struct user *user = core_find_user(api->core, &who->user_id);
    const char *domain = params->domain ? params->domain : who->domain ? who->domain : "default";
    char id_text[UUID_TEXT_MAX];
    const struct project *project;
    bool is_member = false;
    struct uuid id;

    project = uuid_parse(params->project, &id) == 0
                  ? core_find_project(api->core, &id)
                  : core_find_project_named(api->core, domain, params->project);
    for (size_t i = 0; project && user && i < user->project_count; i++)
        is_member |= uuid_equals(&user->project_ids[i], &project->id);
    if (!project || (!is_member && !principal_sees_domain(who, project->domain)))
        return problem_no_such(err, "user group (or project)", "there is no project '%.64s'",
                               params->project);
    if (changes && !principal_sees_domain(who, project->domain))
        return dotfile_fail_forbidden(err);
    ret->kind = DOTFILE_PROJECT;
    ret->name = arena_strdup(request_get_arena(req), uuid_format(&project->id, id_text));
    return 0;
}

static int dotfile_find_domain(const struct api *api, struct request *req,
                               const struct dotfile_params *params, bool changes,
                               struct dotfile_owner *ret, struct aq_error *err)
{
    const struct principal *who = api_principal(req);
    bool is_own = who->domain && strcmp(who->domain, params->domain) == 0;

    if (!core_find_domain(api->core, params->domain)
        || (!is_own && !principal_sees_domain(who, params->domain)))
        return problem_no_such(err, "domain", "there is no domain '%.64s'", params->domain);
    if (changes && !principal_sees_domain(who, params->domain))
        return dotfile_fail_forbidden(err);
    *ret = (struct dotfile_owner){ DOTFILE_DOMAIN, params->domain };
    return 0;
}

static int dotfile_find_owner(const struct api *api, struct request *req, enum dotfile_kind kind,
                              const struct dotfile_params *params, bool changes,
                              struct dotfile_owner *ret, struct aq_error *err)
{
    const struct keypair *key;
    int r;

    if (kind == DOTFILE_PROJECT)
        return dotfile_find_project(api, req, params, changes, ret, err);
    if (kind == DOTFILE_DOMAIN)
        return dotfile_find_domain(api, req, params, changes, ret, err);
    if ((r = api_owner(api, req, params->owner_access_key, &key, err)) < 0)
        return r;
    ret->kind = kind;
    ret->name = arena_strdup(request_get_arena(req), key->access_key);
    return 0;
}

/* NULL = none. */
static const char *dotfile_domain_of(const struct core *core, const struct dotfile_owner *owner)
{
    const struct keypair *key;
    const struct project *project;
    const struct user *user;
    struct uuid id;

    if (owner->kind == DOTFILE_DOMAIN)
        return owner->name;
    if (owner->kind == DOTFILE_PROJECT) {
        project = uuid_parse(owner->name, &id) == 0 ? core_find_project(core, &id) : NULL;
        return project ? project->domain : NULL;
    }
    key = core_find_keypair(core, owner->name);
    user = key ? core_find_user(core, &key->user_id) : NULL;
    return user ? user->domain : NULL;
}

/* Who changes them, and whose they are, for the audit log. */
static void dotfile_note_who(const struct api *api, struct dotfile_call *call)
{
    const char *domain = dotfile_domain_of(api->core, &call->owner);

    call->by = api_who(api, call->req);
    if (domain)
        call->domain = arena_strdup(request_get_arena(call->req), domain);
}

/* ---- what may be one ---- */

static int dotfile_check_file(const struct dotfile_params *params, struct aq_error *err)
{
    int r = params->permission ? dotfile_check_permission(params->permission, err) : 0;

    return r < 0 || !params->path ? r : dotfile_check_path(params->path, err);
}

/* ---- the store's part ---- */

static int dotfile_run_list(struct store_tx *tx, struct dotfile_call *call, struct aq_error *err)
{
    int r = dotfile_list(tx, &call->owner, request_get_arena(call->req), &call->found, err);

    call->count = r;
    return AQ_MIN(r, 0);
}

static int dotfile_run_create(struct store_tx *tx, struct dotfile_call *call, struct aq_error *err)
{
    return domain_check(dotfile_create(tx, &call->owner, &call->file, err), err);
}

static int dotfile_run_change(struct store_tx *tx, struct dotfile_call *call, struct aq_error *err)
{
    return dotfile_change(tx, &call->owner, &call->file, err);
}

static int dotfile_run_remove(struct store_tx *tx, struct dotfile_call *call, struct aq_error *err)
{
    return dotfile_remove(tx, &call->owner, call->file.path, err);
}

static int dotfile_run_script(struct store_tx *tx, struct dotfile_call *call, struct aq_error *err)
{
    return dotfile_set_script(tx, call->owner.name, call->file.data, err);
}

/* store_tx_fn */
static int dotfile_run(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct dotfile_call *call = data;

    return call->run(tx, call, err);
}

/* What the audit log has of one: no contents, which may be secrets. */
static void dotfile_write_side(const struct dotfile *file, struct strbuf *out)
{
    struct jsonw w = jsonw_make(out);

    jsonw_object_begin(&w);
    jsonw_member_int(&w, "size", (int64_t)strlen(file->data));
    if (file->permission)
        jsonw_member_str(&w, "permission", file->permission);
    jsonw_object_end(&w);
}

static const char *dotfile_action(const struct dotfile_call *call, const struct dotfile *before)
{
    if (call->owner.kind == DOTFILE_BOOTSTRAP)
        return "set-bootstrap-script";
    return !before ? "create-dotfile" : !call->file.data ? "delete-dotfile" : "modify-dotfile";
}

static int dotfile_audit(struct store_tx *tx, const struct dotfile_call *call,
                         const struct dotfile *before, struct aq_error *err)
{
    static const char *const nouns[] = { [DOTFILE_KEYPAIR] = "keypair",
                                         [DOTFILE_PROJECT] = "project",
                                         [DOTFILE_DOMAIN] = "domain",
                                         [DOTFILE_BOOTSTRAP] = "keypair" };
    AQ_CLEANUP(strbuf_donep) struct strbuf old = STRBUF_INIT, fresh = STRBUF_INIT;
    AQ_CLEANUP(aq_freep) char *owner = aq_format("%s %s", nouns[call->owner.kind],
                                                 call->owner.name);
    bool is_script = call->owner.kind == DOTFILE_BOOTSTRAP;

    if (before)
        dotfile_write_side(before, &old);
    if (call->file.data)
        dotfile_write_side(&call->file, &fresh);
    return audit_log_add_change(tx, call->by,
                                &(struct audit_change){
                                    .action = dotfile_action(call, before),
                                    .object_kind = is_script ? "bootstrap-script" : "dotfile",
                                    .object_id = owner,
                                    .object_name = call->file.path,
                                    .object_domain = call->domain,
                                    .before = before ? old.data : NULL,
                                    .after = call->file.data ? fresh.data : NULL,
                                },
                                err);
}

/* store_tx_fn: a change, with its entry in the audit log. */
static int dotfile_run_audited(struct store_tx *tx, void *data, struct aq_error *err)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct dotfile_call *call = data;
    const struct dotfile *before = NULL;
    struct dotfile *files;
    int count = dotfile_list(tx, &call->owner, &arena, &files, err), r;

    if (count < 0)
        return count;
    for (int i = 0; i < count; i++)
        if (call->owner.kind == DOTFILE_BOOTSTRAP || strcmp(files[i].path, call->file.path) == 0)
            before = &files[i];
    r = call->run(tx, call, err);
    return r < 0 ? r : dotfile_audit(tx, call, before, err);
}

/* ---- replies ---- */

/* One alone has "perm" where the list has "permission", as clients read them. */
static void dotfile_write(const struct dotfile *file, const char *permission, struct jsonw *w)
{
    jsonw_object_begin(w);
    jsonw_member_str(w, "path", file->path);
    jsonw_member_str(w, permission, file->permission);
    jsonw_member_str(w, "data", file->data);
    jsonw_object_end(w);
}

static void dotfile_reply_one(struct dotfile_call *call)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    struct aq_error err = { 0 };

    for (int i = 0; i < call->count; i++)
        if (strcmp(call->found[i].path, call->file.path) == 0) {
            dotfile_write(&call->found[i], "perm", &w);
            request_reply_json(call->req, 200, &out);
            return;
        }
    problem_no_such(&err, "dotfile", "there is no dotfile '%.200s'", call->file.path);
    request_fail(call->req, &err);
}

static void dotfile_reply_found(struct dotfile_call *call)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);

    if (call->owner.kind == DOTFILE_BOOTSTRAP) {
        jsonw_str(&w, call->count ? call->found[0].data : "");
    } else if (call->file.path) {
        dotfile_reply_one(call);
        return;
    } else {
        jsonw_array_begin(&w);
        for (int i = 0; i < call->count; i++)
            dotfile_write(&call->found[i], "permission", &w);
        jsonw_array_end(&w);
    }
    request_reply_json(call->req, 200, &out);
}

static void dotfile_on_done(void *data, int r, const struct aq_error *err)
{
    struct dotfile_call *call = data;
    struct aq_error own = *err;

    if (r == -ENOENT)
        problem_no_such(&own, "dotfile", "%s", err->text);
    if (r < 0)
        request_fail(call->req, &own);
    else if (call->reply)
        request_reply(call->req, 200, "application/json", call->reply, strlen(call->reply));
    else
        dotfile_reply_found(call);
}

/* ---- requests ---- */

static void dotfile_start(struct api *api, struct request *req, enum dotfile_kind kind,
                          int (*run)(struct store_tx *tx, struct dotfile_call *call,
                                     struct aq_error *err),
                          const char *reply)
{
    struct dotfile_call *call = arena_alloc(request_get_arena(req), sizeof(*call));
    struct dotfile_params params = { .path = NULL };
    struct store *store = core_store(api->core);
    struct aq_error err = { 0 };

    if (api_decode(req, &params, NULL, &err) < 0 || dotfile_check_file(&params, &err) < 0
        || dotfile_find_owner(api, req, kind, &params, reply != NULL, &call->owner, &err) < 0) {
        request_fail(req, &err);
        return;
    }
    call->req = req;
    if (reply)
        dotfile_note_who(api, call);
    call->file = (struct dotfile){ params.path, params.permission, params.data };
    call->run = run;
    call->reply = reply;
    if (reply)
        store_write(store, dotfile_run_audited, dotfile_on_done, call);
    else
        store_read(store, dotfile_run, dotfile_on_done, call);
}

/* The four handlers of a kind. */
#define DOTFILE_HANDLERS(name, kind)                                              \
    static void dotfile_on_list_##name(struct request *req, void *data)           \
    {                                                                             \
        dotfile_start(data, req, kind, dotfile_run_list, NULL);                   \
    }                                                                             \
    static void dotfile_on_create_##name(struct request *req, void *data)         \
    {                                                                             \
        dotfile_start(data, req, kind, dotfile_run_create, "{}");                 \
    }                                                                             \
    static void dotfile_on_change_##name(struct request *req, void *data)         \
    {                                                                             \
        dotfile_start(data, req, kind, dotfile_run_change, "{}");                 \
    }                                                                             \
    static void dotfile_on_remove_##name(struct request *req, void *data)         \
    {                                                                             \
        dotfile_start(data, req, kind, dotfile_run_remove, "{\"success\":true}"); \
    }

DOTFILE_HANDLERS(keypair, DOTFILE_KEYPAIR)
DOTFILE_HANDLERS(project, DOTFILE_PROJECT)
DOTFILE_HANDLERS(domain, DOTFILE_DOMAIN)

/* ---- the bootstrap script ---- */

static const struct field script_fields[] = {
    KEYPAIR_FIELD,
    { "script", FIELD_STR, FIELD_REQUIRED, AT(data), 0, DOTFILES_BYTES_MAX,
      .doc = "what interactive sessions run first; empty: nothing" },
    FIELD_END,
};
static const struct field script_get_fields[] = { KEYPAIR_FIELD, FIELD_END };

static void dotfile_on_script(struct request *req, void *data)
{
    dotfile_start(data, req, DOTFILE_BOOTSTRAP, dotfile_run_list, NULL);
}

static void dotfile_on_set_script(struct request *req, void *data)
{
    dotfile_start(data, req, DOTFILE_BOOTSTRAP, dotfile_run_script, "{}");
}

#define DOTFILE_ROUTES(name, path, role, what)                                   \
    { METHOD_GET,        path,                                                   \
      API_USER,          dotfile_on_list_##name,                                 \
      name##_get_fields, "Dotfiles of " what ", or one of them" },               \
        { METHOD_POST,                                                           \
          path,                                                                  \
          role,                                                                  \
          dotfile_on_create_##name,                                              \
          name##_file_fields,                                                    \
          "Make a dotfile of " what },                                           \
        { METHOD_PATCH,                                                          \
          path,                                                                  \
          role,                                                                  \
          dotfile_on_change_##name,                                              \
          name##_file_fields,                                                    \
          "Change a dotfile of " what },                                         \
    {                                                                            \
        METHOD_DELETE, path, role, dotfile_on_remove_##name, name##_path_fields, \
            "Remove a dotfile of " what                                          \
    }

static const struct route dotfile_routes[] = {
    DOTFILE_ROUTES(keypair, "/user-config/dotfiles", API_USER, "a keypair"),
    DOTFILE_ROUTES(project, "/group-config/dotfiles", API_ADMIN, "a project"),
    DOTFILE_ROUTES(domain, "/domain-config/dotfiles", API_ADMIN, "a domain"),
    { METHOD_GET, "/user-config/bootstrap-script", API_USER, dotfile_on_script, script_get_fields,
      "The bootstrap script of a keypair" },
    { METHOD_POST, "/user-config/bootstrap-script", API_USER, dotfile_on_set_script, script_fields,
      "Set the bootstrap script of a keypair" },
};
API_ROUTES_END(dotfile);
