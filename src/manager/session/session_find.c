/* SPDX-License-Identifier: Apache-2.0 */
/* Which session "{name}" in a path means. */
#include "manager/session/session.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "manager/session/session_view.h"
#include "model/session_array.h"
#include "store/query.h"

#define MATCHES_SHOWN 10

const struct field owner_fields[] = {
    OWNER_FIELD(struct owner_params, owner_access_key),
    FIELD_END,
};

const struct field kernel_fields[] = {
    OWNER_FIELD(struct kernel_params, owner_access_key),
    KERNEL_FIELD(struct kernel_params, kernel),
    FIELD_END,
};

static const char *session_find_shown_status(const struct request *req, enum session_status status)
{
    return principal_is_old(api_principal(req)) ? session_status_name_2203(status)
                                                : session_status_name(status);
}

static void session_find_write_match(const struct request *req, const struct session *s,
                                     struct jsonw *w)
{
    jsonw_object_begin(w);
    api_write_uuid(w, "id", &s->id);
    jsonw_member_str(w, "name", s->name);
    jsonw_member_str(w, "status", session_find_shown_status(req, s->status));
    api_write_time(w, "created_at", s->created_usec);
    jsonw_object_end(w);
}

static void session_find_fail_none(const struct api *api, const struct request *req,
                                   const char *access_key, struct aq_error *err)
{
    bool is_own = strcmp(access_key, api_principal(req)->access_key) == 0;
    const struct keypair *owner = core_find_keypair(api->core, access_key);
    const char *name = request_get_param(req, "name");
    const struct session_array *array = owner ? core_find_array_named(api->core, &owner->user_id,
                                                                      name)
                                              : NULL;

    if (array)
        problem_no_such(err, "session",
                        "'%.100s' is an array; name one of its elements, such as '%.100s[%" PRId64
                        "]'",
                        name, name, array_set_min(&array->indices));
    else
        problem_no_such(err, "session", "%s no session '%.100s'",
                        is_own ? "you have" : "this owner has", name);
}

/* The one that was found, or NULL after an answer that says why not. */
static const struct session *session_find_pick(const struct api *api, struct request *req,
                                               const char *access_key,
                                               const struct session *const *found, size_t count)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf data = STRBUF_INIT;
    struct jsonw w = jsonw_make(&data);
    struct aq_error err = { 0 };

    if (count == 1)
        return found[0];
    if (count == 0) {
        session_find_fail_none(api, req, access_key, &err);
        request_fail(req, &err);
        return NULL;
    }
    jsonw_object_begin(&w);
    jsonw_key(&w, "matches");
    jsonw_array_begin(&w);
    for (size_t i = 0; i < count && i < MATCHES_SHOWN; i++)
        session_find_write_match(req, found[i], &w);
    jsonw_array_end(&w);
    jsonw_object_end(&w);
    aq_fail_kind(&err, ENOTUNIQ, "too-many-sessions-matched",
                 "'%.100s' is the beginning of several; give more of it",
                 request_get_param(req, "name"));
    request_fail_data(req, &err, data.data);
    return NULL;
}

bool session_find_is_live(const struct api *api, const struct request *req,
                          const char *owner_access_key)
{
    const struct session *found[CORE_MATCH_MAX];
    const struct keypair *owner;

    return api_owner(api, req, owner_access_key, &owner, NULL) == 0
           && core_match_sessions(api->core, owner->access_key, request_get_param(req, "name"),
                                  found)
                  > 0;
}

const struct session *session_find_live(const struct api *api, struct request *req,
                                        const char *owner_access_key)
{
    const struct session *found[CORE_MATCH_MAX];
    const struct keypair *owner;
    struct aq_error err = { 0 };
    size_t count;

    if (api_owner(api, req, owner_access_key, &owner, &err) < 0) {
        request_fail(req, &err);
        return NULL;
    }
    count = core_match_sessions(api->core, owner->access_key, request_get_param(req, "name"),
                                found);
    return session_find_pick(api, req, owner->access_key, found, count);
}

/* ---- also among the dead ---- */

struct session_find_search {
    const struct api *api;
    struct request *req;
    struct store_query query;
    struct uuid id; /* nil: search by the path's text */
    bool is_prefix; /* only the beginning of a live one's name: the dead may have that name */
    session_found_fn *fn;
    void *data;
    struct store_page *page;
};

/* The last session of exactly this name. */
static int session_find_search_name(struct store_tx *tx, struct session_find_search *search,
                                    struct aq_error *err)
{
    struct store_query query = search->query;

    query.name = request_get_param(search->req, "name");
    query.limit = 1;
    return store_list_sessions(tx, &query, &search->page, err);
}

static int session_find_search_store(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct session_find_search *search = data;
    int r = search->is_prefix ? session_find_search_name(tx, search, err) : 0;

    if (r < 0 || (search->page && search->page->count))
        return r;
    store_page_free(AQ_TAKE(search->page));
    if (uuid_is_nil(&search->id))
        return store_find_sessions(tx, &search->query, request_get_param(search->req, "name"),
                                   &search->page, err);
    search->query.ids = &search->id;
    search->query.id_count = 1;
    return store_list_sessions(tx, &search->query, &search->page, err);
}

/* A name may have been used again and again: the last of these is meant. */
static size_t session_find_newest_of_name(const struct store_page *page, const char *name)
{
    size_t newest = 0;

    for (size_t i = 0; i < page->count; i++) {
        if (strcmp(page->sessions[i].session.name, name) != 0)
            return SIZE_MAX;
        if (page->sessions[i].session.row > page->sessions[newest].session.row)
            newest = i;
    }
    return newest;
}

/* It lives: as memory has it. */
static void session_find_answer_live(const struct api *api, struct request *req,
                                     const struct session *s, session_found_fn *fn, void *data)
{
    const struct core *core = api->core;
    const struct user *user = core_find_user(core, &s->user_id);
    const struct project *project = core_find_project(core, &s->project_id);
    struct kernel_row main;
    struct session_row row;

    session_view_fill_live(s, &main, &row);
    row.user_email = user ? user->email : NULL;
    row.project_name = project ? project->name : NULL;
    fn(req, &row, data);
    if (row.kernels != &main)
        free(row.kernels);
}

static void session_find_on_searched(void *data, int r, const struct aq_error *err)
{
    struct session_find_search *search = data;
    struct store_page *page = search->page; /* the search goes with the request */
    const struct session *found[CORE_MATCH_MAX];
    size_t count = 0, newest;
    const struct session *live = r == -EHOSTDOWN && !search->is_prefix
                                     ? core_find_session(search->api->core, &search->id)
                                     : NULL;

    if (live) {
        session_find_answer_live(search->api, search->req, live, search->fn, search->data);
        return;
    }
    if (r < 0) {
        request_fail(search->req, err);
        return;
    }
    newest = session_find_newest_of_name(page, request_get_param(search->req, "name"));
    for (; count < page->count && count < CORE_MATCH_MAX; count++)
        found[count] = &page->sessions[count].session;
    if (newest < page->count
        || session_find_pick(search->api, search->req, search->query.access_key, found, count)) {
        const struct session_row *row = &page->sessions[newest < page->count ? newest : 0];

        session_view_note_seen(search->api->core, api_principal(search->req), row);
        search->fn(search->req, row, search->data);
    }
    store_page_free(page);
}

static bool session_find_is_name_prefix(const struct session *s, const char *text)
{
    size_t len = strlen(text);

    return strncmp(s->name, text, len) == 0 && s->name[len];
}

const struct session *session_find_certain(const struct api *api, const struct request *req,
                                           const char *owner_access_key)
{
    const char *text = request_get_param(req, "name");
    const struct session *found[CORE_MATCH_MAX];
    const struct keypair *owner;

    if (api_owner(api, req, owner_access_key, &owner, NULL) < 0
        || core_match_sessions(api->core, owner->access_key, text, found) != 1
        || session_find_is_name_prefix(found[0], text))
        return NULL;
    return found[0];
}

/* Fill the search: a live match wins, unless it only begins so; it is then
 * read by its id.
 */
static int session_find_prepare(const struct api *api, struct session_find_search *search,
                                const char *owner_access_key, bool *ret_answered,
                                struct aq_error *err)
{
    const char *text = request_get_param(search->req, "name");
    const struct session *found[CORE_MATCH_MAX], *live;
    const struct keypair *owner;
    size_t count;
    int r;

    if ((r = api_owner(api, search->req, owner_access_key, &owner, err)) < 0)
        return r;
    session_view_apply_fields(SESSION_FIELDS_ALL, &search->query);
    search->query.access_key = arena_strdup(request_get_arena(search->req), owner->access_key);
    count = core_match_sessions(api->core, owner->access_key, text, found);
    search->is_prefix = count > 0 && session_find_is_name_prefix(found[0], text);
    if (count == 0 || (count > 1 && search->is_prefix))
        return 0;
    live = session_find_pick(search->api, search->req, search->query.access_key, found, count);
    *ret_answered = !live;
    if (live)
        search->id = live->id;
    return 0;
}

void session_find(const struct api *api, struct request *req, const char *owner_access_key,
                  session_found_fn *fn, void *data)
{
    struct session_find_search *search = arena_alloc(request_get_arena(req), sizeof(*search));
    bool answered = false;
    struct aq_error err = { 0 };

    *search = (struct session_find_search){ .api = api, .req = req, .fn = fn, .data = data };
    if (session_find_prepare(api, search, owner_access_key, &answered, &err) < 0)
        request_fail(req, &err);
    else if (!answered)
        store_read(core_store(api->core), session_find_search_store, session_find_on_searched,
                   search);
}

const struct session *session_find_live_by_owner(const struct api *api, struct request *req)
{
    struct owner_params params = { 0 };
    struct aq_error err = { 0 };

    if (api_decode(req, &params, NULL, &err) < 0) {
        request_fail(req, &err);
        return NULL;
    }
    return session_find_live(api, req, params.owner_access_key);
}

/* ---- kernels ---- */

/* "main1, sub1 to sub7": kernels of a role come one after the other. */
static void session_find_write_names(const struct session *session, struct strbuf *out)
{
    char first[KERNEL_HOSTNAME_MAX], last[KERNEL_HOSTNAME_MAX];

    for (size_t i = 0, end; i < session->kernel_count; i = end) {
        const struct kernel *kernels = session->kernels;

        for (end = i + 1; end < session->kernel_count; end++)
            if (strcmp(kernels[end].role, kernels[i].role) != 0
                || kernels[end].index != kernels[end - 1].index + 1)
                break;
        strbuf_addf(out, "%s%s", i ? ", " : "", kernel_hostname(&kernels[i], first));
        if (end > i + 1)
            strbuf_addf(out, " to %s", kernel_hostname(&kernels[end - 1], last));
    }
}

struct session session_of_row(const struct session_row *row, struct arena *arena)
{
    struct session session = row->session;

    session.kernels = arena_array(arena, row->kernel_count + 1, sizeof(*session.kernels));
    session.kernel_count = row->kernel_count;
    for (size_t i = 0; i < row->kernel_count; i++)
        session.kernels[i] = row->kernels[i].kernel;
    return session;
}

const struct kernel *session_find_kernel(const struct session *session, const char *hostname,
                                         struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf names = STRBUF_INIT;
    char name[KERNEL_HOSTNAME_MAX];

    if (!hostname)
        hostname = "main1";
    for (size_t i = 0; i < session->kernel_count; i++)
        if (strcmp(kernel_hostname(&session->kernels[i], name), hostname) == 0)
            return &session->kernels[i];
    session_find_write_names(session, &names);
    (void)problem_no_such(err, "kernel", "session '%s' has no kernel '%.64s'; it has %s",
                          session->name, hostname, names.data ? names.data : "none");
    return NULL;
}

const struct kernel *session_find_live_kernel(const struct api *api, struct request *req)
{
    struct kernel_params params = { 0 };
    const struct session *session;
    const struct kernel *kernel = NULL;
    struct aq_error err = { 0 };

    if (api_decode(req, &params, NULL, &err) < 0)
        request_fail(req, &err);
    else if ((session = session_find_live(api, req, params.owner_access_key))
             && !(kernel = session_find_kernel(session, params.kernel, &err)))
        request_fail(req, &err);
    return kernel;
}

int session_check_kernel_runs(const struct kernel *kernel, struct aq_error *err)
{
    char name[KERNEL_HOSTNAME_MAX];

    if (kernel->status == KERNEL_RUNNING && kernel->agent_id)
        return 0;
    if (kernel->session->kernel_count == 1)
        return aq_fail_kind(err, EINVAL, "generic-bad-request",
                            "the session is not running (it is %s)",
                            kernel_status_name(kernel->status));
    return aq_fail_kind(err, EINVAL, "generic-bad-request",
                        "kernel '%s' of the session is not running (it is %s)",
                        kernel_hostname(kernel, name), kernel_status_name(kernel->status));
}

void session_find_by_owner(struct api *api, struct request *req, session_found_fn *fn)
{
    struct owner_params params = { 0 };
    struct aq_error err = { 0 };

    if (api_decode(req, &params, NULL, &err) < 0)
        request_fail(req, &err);
    else
        session_find(api, req, params.owner_access_key, fn, api);
}

void session_find_brief_by_owner(struct api *api, struct request *req, session_found_fn *fn)
{
    struct owner_params params = { 0 };
    const struct session *live;
    struct aq_error err = { 0 };

    if (api_decode(req, &params, NULL, &err) < 0) {
        request_fail(req, &err);
        return;
    }
    live = session_find_certain(api, req, params.owner_access_key);
    if (live && !live->is_spec_short)
        session_find_answer_live(api, req, live, fn, api);
    else
        session_find(api, req, params.owner_access_key, fn, api);
}
