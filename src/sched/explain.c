/* explain.c - the reason why a session waits, for people and for programs */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/jsonw.h"
#include "sched/pass.h"

struct explanation {
    struct pass *pass;
    const struct sched_session *session;
    const struct requirement *reqs;
    size_t count;
    struct strbuf text;
    struct jsonw *json;
};

/* 'part' of 'whole' in millionths, without overflow. */
static int64_t millionths(int64_t part, int64_t whole)
{
    return whole > INT64_C(1000000000000) ? part / (whole / 1000000) : part * 1000000 / whole;
}

/* How much of the request is missing, as the sum of the missing parts: slots
 * of different units can only be compared by part.
 */
static int64_t shortage(const struct pass *pass, uint32_t agent, const struct requirement *req)
{
    const int64_t *row = &pass->free[agent * pass->columns];
    int64_t sum = 0;

    for (size_t c = 0; c < pass->columns; c++) {
        int64_t have = row[c] < 0 ? 0 : row[c];

        if (req->amounts[c] > have)
            sum += millionths(req->amounts[c] - have, req->amounts[c]);
    }
    return sum;
}

static uint32_t find_nearest(const struct pass *pass, const struct sched_session *s,
                             const struct requirement *req, size_t *ret_seen)
{
    uint32_t nearest = UINT32_MAX;
    int64_t least = 0;

    *ret_seen = 0;
    for (uint32_t a = 0; a < pass->snap->agent_count; a++) {
        int64_t missing;

        if (!agent_matches(&pass->snap->agents[a], s))
            continue;
        (*ret_seen)++;
        missing = shortage(pass, a, req);
        if (nearest == UINT32_MAX || missing < least ||
            (missing == least &&
             strcmp(pass->snap->agents[a].id, pass->snap->agents[nearest].id) < 0)) {
            nearest = a;
            least = missing;
        }
    }
    return nearest;
}

static void write_amounts(const struct explanation *e, const char *key, const int64_t *amounts)
{
    char buf[AMOUNT_TEXT_MAX];

    jsonw_key(e->json, key);
    jsonw_object_begin(e->json);
    for (size_t c = 0; c < e->pass->columns; c++)
        if (amounts[c] > 0)
            jsonw_member_str(e->json, e->pass->names[c],
                             slot_amount_format(amounts[c],
                                                slot_types_get(e->pass->snap->types,
                                                               e->pass->names[c]), buf));
    jsonw_object_end(e->json);
}

static void add_amounts(struct explanation *e, const int64_t *amounts)
{
    char buf[AMOUNT_TEXT_MAX];
    const char *separator = "";

    for (size_t c = 0; c < e->pass->columns; c++)
        if (amounts[c] > 0) {
            strbuf_addf(&e->text, "%s%s=%s", separator, e->pass->names[c],
                        slot_amount_humanize(amounts[c],
                                             slot_types_get(e->pass->snap->types,
                                                            e->pass->names[c]), buf));
            separator = " ";
        }
}

/* One requirement that found no agent. */
static int explain_requirement(struct explanation *e, size_t i)
{
    const struct requirement *req = &e->reqs[i];
    int64_t *missing = arena_array(e->pass->arena, e->pass->columns, sizeof(*missing));
    size_t seen;
    uint32_t nearest = find_nearest(e->pass, e->session, req, &seen);

    if (!missing)
        return -ENOMEM;
    strbuf_addf(&e->text, "\n- requirement #%zu (containers=%" PRIu32 ", arch=%s, slots=", i + 1,
                req->kernels, e->session->architecture ? e->session->architecture : "any");
    add_amounts(e, req->amounts);
    strbuf_addf(&e->text, "): no agents passed the '%s' filter",
                nearest == UINT32_MAX ? "architecture" : "resource");
    jsonw_object_begin(e->json);
    write_amounts(e, "slots", req->amounts);
    jsonw_member_int(e->json, "agents", (int64_t)seen);
    if (req->unknown)
        strbuf_addf(&e->text, "\n  - %s: no agent has it", req->unknown);
    if (nearest != UINT32_MAX) {
        const int64_t *row = &e->pass->free[nearest * e->pass->columns];

        for (size_t c = 0; c < e->pass->columns; c++)
            if (req->amounts[c] > (row[c] < 0 ? 0 : row[c]))
                missing[c] = req->amounts[c] - (row[c] < 0 ? 0 : row[c]);
        for (size_t c = 0; c < e->pass->columns; c++) {
            char buf[AMOUNT_TEXT_MAX];

            if (missing[c] > 0)
                strbuf_addf(&e->text, "\n  - %s: missing=%s on %s", e->pass->names[c],
                            slot_amount_humanize(missing[c],
                                                 slot_types_get(e->pass->snap->types,
                                                                e->pass->names[c]), buf),
                            e->pass->snap->agents[nearest].id);
        }
        jsonw_member_str(e->json, "nearest", e->pass->snap->agents[nearest].id);
        write_amounts(e, "missing", missing);
    }
    jsonw_object_end(e->json);
    return 0;
}

/* Place as far as it goes, so that each requirement is judged after those
 * before it, and tell about those that do not fit.
 */
static int explain_room(struct explanation *e, enum sched_verdict *ret_verdict)
{
    size_t mark = e->text.len, failed = 0, seen = 0;
    struct strbuf rest = STRBUF_INIT;

    jsonw_key(e->json, "requirements");
    jsonw_array_begin(e->json);
    for (size_t i = 0; i < e->count; i++) {
        uint32_t agent;

        if (pass_select(e->pass, e->session, &e->reqs[i], &agent, &seen) < 0)
            return -ENOMEM;
        if (agent != UINT32_MAX)
            pass_hold(e->pass, agent, &e->reqs[i], 1);
        else if (explain_requirement(e, i) < 0)
            return -ENOMEM;
        failed += agent == UINT32_MAX;
    }
    jsonw_array_end(e->json);
    *ret_verdict = failed == 0 ? SCHED_PLACED : seen ? SCHED_NO_ROOM : SCHED_NO_AGENT;
    if (failed) {
        strbuf_add(&rest, e->text.data + mark, e->text.len - mark);
        strbuf_truncate(&e->text, mark);
        strbuf_addf(&e->text, "%zu requirement(s) could not be placed:", failed);
        strbuf_add(&e->text, rest.data, rest.len);
    } else {
        strbuf_adds(&e->text, "There is room; it starts with the next pass.");
    }
    strbuf_done(&rest);
    return 0;
}

static void explain_dependencies(struct explanation *e, enum sched_verdict verdict)
{
    const char *separator = "";

    strbuf_adds(&e->text, verdict == SCHED_DOOMED
                              ? "A session that this one depends on did not succeed. ("
                              : "Waiting dependency sessions to finish as success. (");
    jsonw_key(e->json, "dependencies");
    jsonw_array_begin(e->json);
    for (size_t i = 0; i < e->session->dependency_count; i++) {
        const struct session_dependency *d = &e->session->dependencies[i];
        char id[UUID_TEXT_MAX];

        if (d->ended && d->result == RESULT_SUCCESS)
            continue;
        strbuf_addf(&e->text, "%s%s", separator, uuid_format(&d->id, id));
        jsonw_str(e->json, id);
        separator = ", ";
    }
    jsonw_array_end(e->json);
    strbuf_addc(&e->text, ')');
}

static void explain_quota(struct explanation *e, uint32_t account)
{
    static const char *const names[] = { [SCHED_KEYPAIR] = "keypair", [SCHED_GROUP] = "group",
        [SCHED_DOMAIN] = "domain" };
    const struct pass *pass = e->pass;
    char a[AMOUNT_TEXT_MAX], b[AMOUNT_TEXT_MAX], d[AMOUNT_TEXT_MAX];

    strbuf_addf(&e->text, "Your %s resource quota is exceeded.",
                names[pass->snap->accounts[account].kind]);
    for (size_t c = 0; c < pass->columns; c++) {
        enum slot_type type = slot_types_get(pass->snap->types, pass->names[c]);
        int64_t limit = account_limit(pass, account, c);
        int64_t used = pass->used[account * pass->columns + c], wanted = 0;

        for (size_t i = 0; i < e->count; i++)
            wanted += e->reqs[i].amounts[c];
        if (wanted <= 0 || limit == AMOUNT_INFINITE || used + wanted <= limit)
            continue;
        strbuf_addf(&e->text, "\n- %s: used %s + requested %s > limit %s", pass->names[c],
                    slot_amount_humanize(used, type, a), slot_amount_humanize(wanted, type, b),
                    slot_amount_humanize(limit, type, d));
    }
}

static int explain_verdict(struct explanation *e, enum sched_verdict *verdict, uint32_t account)
{
    const struct sched_snapshot *snap = e->pass->snap;
    char iso[CLOCK_ISO_MAX];

    switch (*verdict) {
    case SCHED_PLACED:
        return explain_room(e, verdict);
    case SCHED_TOO_EARLY:
        strbuf_addf(&e->text, "Before start time (%s)",
                    clock_format_iso(e->session->starts_usec, iso));
        jsonw_member_str(e->json, "starts_at", iso);
        break;
    case SCHED_DEPENDENCY:
    case SCHED_DOOMED:
        explain_dependencies(e, *verdict);
        break;
    case SCHED_CONCURRENCY:
        strbuf_addf(&e->text, "You cannot run more than %" PRId64 " concurrent sessions",
                    snap->accounts[account].max_sessions);
        break;
    case SCHED_QUOTA:
        explain_quota(e, account);
        break;
    case SCHED_NO_ROOM:
    case SCHED_NO_AGENT:
    case SCHED_BEHIND:
        break; /* pass_validate() gives none of these */
    }
    if (account != SCHED_NO_ACCOUNT)
        jsonw_member_str(e->json, "account", snap->accounts[account].name);
    return 0;
}

int sched_explain(const struct sched_snapshot *snap, uint32_t index, struct arena *arena,
                  struct strbuf *text, struct strbuf *json, struct aq_error *err)
{
    struct pass pass;
    struct strbuf members = STRBUF_INIT;
    struct jsonw w = jsonw_make(&members), top;
    struct explanation e = { .pass = &pass, .session = &snap->sessions[index],
        .text = STRBUF_INIT, .json = &w };
    struct requirement *reqs;
    enum sched_verdict verdict;
    uint32_t account;
    int r = -ENOMEM;

    if (pass_init(&pass, snap, arena) == 0 &&
        pass_require(&pass, e.session, &reqs, &e.count) == 0) {
        e.reqs = reqs;
        jsonw_object_begin(&w);
        verdict = pass_validate(&pass, e.session, reqs, e.count, &account);
        r = explain_verdict(&e, &verdict, account);
        jsonw_member_str(&w, "kind", sched_verdict_name(verdict));
        jsonw_member_str(&w, "text", e.text.data);
        jsonw_object_end(&w);
    }
    if (r == 0 && text)
        strbuf_add(text, e.text.data, e.text.len);
    if (r == 0 && json) {
        top = jsonw_make(json);
        jsonw_raw(&top, members.data, members.len);
    }
    if (r == 0 && (!strbuf_ok(&e.text) || !strbuf_ok(&members)))
        r = -ENOMEM;
    strbuf_done(&e.text);
    strbuf_done(&members);
    return r < 0 ? aq_fail(err, ENOMEM, "explaining a session") : (int)verdict;
}
