/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions as JSON, in the forms that clients read. */
#include "manager/session/session_view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/memory.h"
#include "model/cluster_role.h"

/* No status has this bit: a list of states that never occur selects nothing. */
#define STATUS_NONE (1u << 31)

const char *session_view_status(const struct principal *who, enum session_status status)
{
    return principal_is_old(who) ? session_status_name_2203(status) : session_status_name(status);
}

const char *kernel_view_status(const struct principal *who, enum kernel_status status)
{
    return principal_is_old(who) ? kernel_status_name_2203(status) : kernel_status_name(status);
}

void session_view_note_seen(struct core *core, const struct principal *who,
                            const struct session_row *row)
{
    const struct session *s = &row->session;

    if (s->status == SESSION_ERROR && !row->dismissed_usec
        && uuid_equals(&who->user_id, &s->user_id))
        core_dismiss_sessions(core, &(struct core_dismissal){ s->id, s->name, s->domain }, 1, NULL,
                              NULL, NULL);
}

/* ---- states as clients list them ---- */

/* In use in 22.03, or in 26, but no session of ours is ever in them. */
static bool session_view_is_foreign_status(const char *name)
{
    static const char *const names[] = { "BUILDING", "RESIZING", "SUSPENDED" };

    for (size_t i = 0; i < AQ_COUNT(names); i++)
        if (strcasecmp(name, names[i]) == 0)
            return true;
    return false;
}

static int session_view_status_bits(const struct principal *who, const char *name, uint32_t *ret,
                                    struct aq_error *err)
{
    enum session_status exact;

    if (session_view_is_foreign_status(name)) {
        *ret |= STATUS_NONE;
        return 0;
    }
    if (session_status_parse(name, &exact) < 0)
        return api_fail_param(err, "status",
                              "'%.40s' is no session status, as PENDING, RUNNING, TERMINATED or "
                              "ERROR are; what failed has the result FAILURE",
                              name);
    *ret |= 1u << exact;
    for (unsigned s = 0; s < SESSION_STATUS_COUNT && principal_is_old(who); s++)
        if (strcasecmp(session_status_name_2203((enum session_status)s), name) == 0)
            *ret |= 1u << s;
    return 0;
}

int session_view_read_statuses(const struct principal *who, const char *text, uint32_t *ret,
                               struct aq_error *err)
{
    uint32_t bits = 0;
    char name[32];
    int r;

    while (*text) {
        size_t len = strcspn(text, ",");

        if (len >= sizeof(name))
            return api_fail_param(err, "status", "'%.40s...' is no session status", text);
        memcpy(name, text, len);
        name[len] = '\0';
        if (len && (r = session_view_status_bits(who, name, &bits, err)) < 0)
            return r;
        text += len + (text[len] == ',');
    }
    *ret = bits;
    return 0;
}

/* ---- amounts ---- */

void session_view_slots(const struct session_row *row, struct slots *ret_occupied,
                        struct slots *ret_requested)
{
    int r = 0;

    for (size_t i = 0; i < row->kernel_count && row->kernels && r == 0; i++) {
        const struct kernel *kernel = &row->kernels[i].kernel;

        r = slots_add(ret_requested, &kernel->requested);
        if (r == 0 && kernel->agent_id
            && (kernel_is_holding(kernel->status) || kernel_is_terminal(kernel->status)))
            r = slots_add(ret_occupied, &kernel->requested);
    }
}

/* ---- sessions of several kernels ---- */

struct session_view_cluster session_view_cluster(const struct session_row *row)
{
    struct session s = row->session;

    s.kernel_count = row->kernel_count; /* kernels are not read for every row */
    return (struct session_view_cluster){
        .least = (int64_t)session_least_kernels(&s),
        .on_failure = s.kernel_count > 1 ? session_on_failure(&s) : NULL,
        .on_node_loss = session_on_node_loss(&s),
    };
}

/* Resources of the role are those of its first kernel: all of a role ask for the same. */
static const struct kernel *session_view_find_of_role(const struct session_row *row,
                                                      const char *role)
{
    for (size_t i = 0; row->kernels && i < row->kernel_count; i++)
        if (strcmp(row->kernels[i].kernel.role, role) == 0)
            return &row->kernels[i].kernel;
    return NULL;
}

void session_view_write_roles(const struct slot_types *types, const struct session_row *row,
                              struct jsonw *w)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    const struct session_spec *spec = row->session.spec;
    struct cluster_role *roles;
    size_t count = 0;

    if (!spec || !spec->roles
        || cluster_roles_parse(spec->roles, &arena, &roles, &count, NULL) < 0) {
        jsonw_null(w);
        return;
    }
    jsonw_array_begin(w);
    for (size_t i = 0; i < count; i++) {
        const struct kernel *kernel = session_view_find_of_role(row, roles[i].name);

        jsonw_object_begin(w);
        jsonw_member_str(w, "role", roles[i].name);
        jsonw_member_int(w, "count", roles[i].count);
        jsonw_member_str(w, "image", roles[i].image);
        jsonw_key(w, "resources");
        if (kernel)
            slots_write_json(&kernel->requested, types, w);
        else
            jsonw_null(w);
        jsonw_object_end(w);
    }
    jsonw_array_end(w);
}

/* ---- Backend.AI's form ---- */

/* JSON text of what 'write' writes, as a text member. */
static void session_view_write_slots_text(struct jsonw *w, const char *key,
                                          const struct slots *slots, const struct slot_types *types)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct jsonw inner = jsonw_make(&text);

    slots_write_json(slots, types, &inner);
    jsonw_member_str(w, key, text.data);
}

/* As the clients have it: an object as text. */
static void session_view_write_environ(const struct session_row *row, struct jsonw *w)
{
    const struct session_spec *spec = row->session.spec;
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct jsonw inner = jsonw_make(&text);

    if (row->session.is_spec_short) {
        jsonw_member_null(w, "environ"); /* the store has it, and is away */
        return;
    }
    jsonw_object_begin(&inner);
    for (size_t i = 0; spec && i < spec->environ.count; i++)
        jsonw_member_str(&inner, spec->environ.items[i].key, spec->environ.items[i].value);
    jsonw_object_end(&inner);
    jsonw_member_str(w, "environ", text.data);
}

void session_view_info(const struct principal *who, const struct slot_types *types,
                       const struct session_row *row, struct jsonw *w)
{
    AQ_CLEANUP(slots_donep) struct slots occupied = { 0 }, requested = { 0 };
    const struct session *s = &row->session;
    int64_t end = row->terminated_usec ? row->terminated_usec : clock_realtime_usec();

    session_view_slots(row, &occupied, &requested);
    jsonw_object_begin(w);
    jsonw_member_str(w, "domainName", s->domain);
    api_write_uuid(w, "groupId", &s->project_id);
    api_write_uuid(w, "userId", &s->user_id);
    jsonw_member_str(w, "lang", row->session.image);
    jsonw_member_str(w, "image", row->session.image);
    jsonw_member_null(w, "registry");
    jsonw_member_str(w, "tag", row->session.tag);
    jsonw_member_null(w, "containerId");
    session_view_write_slots_text(w, "occupiedSlots", &occupied, types);
    jsonw_member_str(w, "occupiedShares", "{}");
    session_view_write_environ(row, w);
    jsonw_member_str(w, "architecture",
                     s->spec && s->spec->architecture ? s->spec->architecture : "x86_64");
    jsonw_member_str(w, "status", session_view_status(who, s->status));
    jsonw_member_str(w, "statusInfo", s->reason);
    api_write_raw(w, "statusData", s->status_data);
    jsonw_member_int(w, "age", (end - s->created_usec) / USEC_PER_MSEC);
    api_write_time(w, "creationTime", s->created_usec);
    api_write_time(w, "terminationTime", row->terminated_usec);
    jsonw_member_int(w, "numQueriesExecuted", 0);
    jsonw_member_null(w, "lastStat");
    jsonw_object_end(w);
}

void session_view_fill_live(const struct session *s, struct kernel_row *main,
                            struct session_row *ret)
{
    *main = (struct kernel_row){ .reason = NULL };
    *ret = (struct session_row){ .session = *s,
                                 .cluster_mode = cluster_mode_name(s->is_multi_node),
                                 .kernels = main,
                                 .kernel_count = s->kernel_count };
    if (s->kernel_count > 1)
        ret->kernels = aq_alloc_array(s->kernel_count, sizeof(*ret->kernels));
    for (size_t i = 0; i < s->kernel_count; i++)
        ret->kernels[i].kernel = s->kernels[i];
}
