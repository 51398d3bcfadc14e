/* SPDX-License-Identifier: Apache-2.0 */
/* explain.c - the reason why a session waits, as a sentence and as JSON */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/jsonw.h"
#include "sched/snapshot.h"
#include "sched/scheduler_internal.h"

struct explanation {
    struct sched *s;
    const struct slot_types *types;
    const struct sched_session *session;
    struct sched_entry *entry;
    const struct placement_constraints *constraints; /* NULL = any agent will do */
    struct arena *arena;
    struct strbuf text;
    struct jsonw *json;
};

/* 'part' of 'whole' in millionths, without overflow. */
static int64_t explain_millionths(int64_t part, int64_t whole)
{
    return whole > INT64_C(1000000000000) ? part / (whole / 1000000) : part * 1000000 / whole;
}

static int64_t explain_have(const struct explanation *e, uint32_t node, size_t column)
{
    return AQ_MAX(e->s->cluster.nodes[node].free[column], 0);
}

/* How much of the request is missing, as the sum of the missing parts: slots
 * of different units can only be compared by part.
 */
static int64_t explain_shortage(const struct explanation *e, uint32_t node,
                                const struct slot_request *req)
{
    int64_t sum = 0;

    for (size_t c = 0; c < e->s->cluster.width; c++)
        if (req->amounts[c] > explain_have(e, node, c))
            sum += explain_millionths(req->amounts[c] - explain_have(e, node, c), req->amounts[c]);
    return sum;
}

static uint32_t explain_find_nearest(const struct explanation *e, const struct slot_request *req,
                                     size_t *ret_seen)
{
    const struct cluster *c = &e->s->cluster;
    uint32_t nearest = CLUSTER_NONE;
    int64_t least = 0;

    *ret_seen = 0;
    for (uint32_t n = 0; n < c->node_count; n++) {
        int64_t missing, rank;

        if (!c->nodes[n].id || !cluster_matches(c, req, n)
            || (e->constraints && !placement_allows(e->constraints, n, &rank)))
            continue;
        (*ret_seen)++;
        missing = explain_shortage(e, n, req);
        if (nearest == CLUSTER_NONE || missing < least
            || (missing == least && strcmp(c->nodes[n].id, c->nodes[nearest].id) < 0)) {
            nearest = n;
            least = missing;
        }
    }
    return nearest;
}

static enum slot_type explain_type_of(const struct explanation *e, size_t column)
{
    return slot_types_get(e->types, e->s->cluster.names[column]);
}

static void explain_write_amounts(const struct explanation *e, const char *key,
                                  const int64_t *amounts)
{
    char buf[AMOUNT_TEXT_MAX];

    jsonw_key(e->json, key);
    jsonw_object_begin(e->json);
    for (size_t c = 0; c < e->s->cluster.columns; c++)
        if (amounts[c] > 0)
            jsonw_member_str(e->json, e->s->cluster.names[c],
                             slot_amount_format(amounts[c], explain_type_of(e, c), buf));
    jsonw_object_end(e->json);
}

static void explain_add_amounts(struct explanation *e, const int64_t *amounts)
{
    char buf[AMOUNT_TEXT_MAX];
    const char *separator = "";

    for (size_t c = 0; c < e->s->cluster.columns; c++)
        if (amounts[c] > 0) {
            strbuf_addf(&e->text, "%s%s=%s", separator, e->s->cluster.names[c],
                        slot_amount_humanize(amounts[c], explain_type_of(e, c), buf));
            separator = " ";
        }
}

/* What of the devices of a slot 'req' may have. */
struct device_view {
    int64_t most;   /* free on one that divides the amount; -1 = there is none */
    int64_t finest; /* the least quantum; INT64_MAX = there is no device */
};

static struct device_view explain_view_devices(const struct explanation *e,
                                               const struct slot_request *req,
                                               const struct cluster_node *n, size_t column)
{
    struct device_view v = { .most = -1, .finest = INT64_MAX };

    for (uint32_t i = 0; i < n->device_count; i++) {
        const struct cluster_device *d = &n->devices[i];
        int64_t quantum = e->s->cluster.quanta[d->quantum];

        if (d->column != column || !(req->models >> d->model & 1))
            continue;
        v.finest = AQ_MIN(v.finest, quantum);
        if (quantum == 0 || req->amounts[column] % quantum == 0)
            v.most = AQ_MAX(v.most, d->free);
    }
    return v;
}

/* The agent has enough in sum, but its devices are too full one by one, or too coarse. */
static void explain_devices(struct explanation *e, const struct slot_request *req, uint32_t node)
{
    const struct cluster_node *n = &e->s->cluster.nodes[node];
    char buf[AMOUNT_TEXT_MAX], asked[AMOUNT_TEXT_MAX];

    for (size_t c = 0; c < e->s->cluster.columns; c++) {
        struct device_view v = explain_view_devices(e, req, n, c);
        const char *name = e->s->cluster.names[c];

        if (req->amounts[c] <= 0 || v.finest == INT64_MAX)
            continue;
        if (v.most < 0)
            strbuf_addf(&e->text,
                        "\n  - %s: %s is no multiple of %s, the smallest part of a device"
                        " on %s",
                        name, slot_amount_format(req->amounts[c], explain_type_of(e, c), asked),
                        slot_amount_format(v.finest, explain_type_of(e, c), buf), n->id);
        else if (v.most < req->amounts[c])
            strbuf_addf(&e->text, "\n  - %s: no device has more than %s free on %s", name,
                        slot_amount_humanize(v.most, explain_type_of(e, c), buf), n->id);
    }
}

static void explain_missing(struct explanation *e, const struct slot_request *req, uint32_t node)
{
    const struct cluster *c = &e->s->cluster;
    int64_t *missing = arena_array(e->arena, c->width, sizeof(*missing));
    char buf[AMOUNT_TEXT_MAX];

    for (size_t i = 0; missing && i < c->columns; i++)
        if (req->amounts[i] > explain_have(e, node, i)) {
            missing[i] = req->amounts[i] - explain_have(e, node, i);
            strbuf_addf(&e->text, "\n  - %s: missing=%s on %s", c->names[i],
                        slot_amount_humanize(missing[i], explain_type_of(e, i), buf),
                        c->nodes[node].id);
        }
    if (explain_have(e, node, c->columns) < req->kernels)
        strbuf_addf(&e->text, "\n  - containers: missing=%" PRId64 " on %s",
                    req->kernels - explain_have(e, node, c->columns), c->nodes[node].id);
    if (explain_shortage(e, node, req) == 0)
        explain_devices(e, req, node);
    jsonw_member_str(e->json, "nearest", c->nodes[node].id);
    if (missing)
        explain_write_amounts(e, "missing", missing);
}

/* One requirement that found no agent. */
static void explain_requirement(struct explanation *e, size_t i)
{
    const struct slot_request *req = e->entry->reqs[i];
    size_t seen;
    uint32_t nearest = explain_find_nearest(e, req, &seen);

    strbuf_addf(&e->text, "\n- requirement #%zu (containers=%" PRIu32 ", arch=%s, slots=", i + 1,
                req->kernels, e->session->architecture ? e->session->architecture : "any");
    explain_add_amounts(e, req->amounts);
    strbuf_addf(&e->text, "): no agents passed the '%s' filter",
                nearest != CLUSTER_NONE               ? "resource"
                : !entry_has_agent(e->s, e->entry, i) ? "architecture"
                : e->constraints->designated_count    ? "designated"
                                                      : "session group");
    jsonw_object_begin(e->json);
    explain_write_amounts(e, "slots", req->amounts);
    jsonw_member_int(e->json, "agents", (int64_t)seen);
    if (req->unknown)
        strbuf_addf(&e->text, "\n  - %s: no agent has it", req->unknown);
    if (nearest != CLUSTER_NONE)
        explain_missing(e, req, nearest);
    jsonw_object_end(e->json);
}

/* Place as far as it goes, so that each requirement is checked after those
 * before it, and tell about those that do not fit.
 */
static int explain_room(struct explanation *e, enum sched_verdict *ret_verdict)
{
    size_t mark = e->text.len, failed = 0;
    struct strbuf rest = STRBUF_INIT;
    int r;

    e->constraints = entry_constraints(e->s, e->entry, e->arena, &r);
    jsonw_key(e->json, "requirements");
    jsonw_array_begin(e->json);
    for (uint32_t i = 0; r == 0 && i < e->entry->req_count; i++) {
        uint32_t node;
        int32_t device;

        r = select_node(&e->s->cluster, e->entry->reqs[i], &e->s->options.selector, e->constraints,
                        &node, &device);
        if (r == 0 && node != CLUSTER_NONE) {
            r = entry_hold(e->s, e->entry, i, node, device);
        } else if (r == 0) {
            explain_requirement(e, i);
            failed++;
        }
    }
    if (r < 0)
        return r;
    jsonw_array_end(e->json);
    r = failed ? place_find_obstacle(e->s, e->entry, e->arena) : SCHED_PLACED;
    if (r < 0)
        return r;
    *ret_verdict = (enum sched_verdict)r;
    if (failed) {
        strbuf_add(&rest, e->text.data + mark, e->text.len - mark);
        strbuf_truncate(&e->text, mark);
        if (*ret_verdict == SCHED_NO_CAPACITY)
            strbuf_adds(&e->text, "It waits aside, and holds up nobody, for an agent that could "
                                  "hold it: those that take sessions now could not even if "
                                  "they were empty. ");
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
    static const char *const names[] = { [SCHED_KEYPAIR] = "keypair",
                                         [SCHED_USER] = "user",
                                         [SCHED_PROJECT] = "group",
                                         [SCHED_DOMAIN] = "domain" };
    const struct cluster *cluster = &e->s->cluster;
    const struct account_state *a = &e->s->accounts[account];
    char used[AMOUNT_TEXT_MAX], wanted[AMOUNT_TEXT_MAX], limit[AMOUNT_TEXT_MAX];

    strbuf_addf(&e->text, "Your %s resource quota is exceeded.", names[a->kind]);
    for (size_t c = 0; c < cluster->columns; c++) {
        int64_t max = account_limit(a, c), more = entry_amount(e->entry, c);

        if (more <= 0 || max == AMOUNT_INFINITE || a->used[c] <= max - more)
            continue;
        strbuf_addf(&e->text, "\n- %s: used %s + requested %s > limit %s", cluster->names[c],
                    slot_amount_humanize(a->used[c], explain_type_of(e, c), used),
                    slot_amount_humanize(more, explain_type_of(e, c), wanted),
                    slot_amount_humanize(max, explain_type_of(e, c), limit));
    }
}

static int explain_verdict(struct explanation *e, const struct sched_snapshot *snap,
                           enum sched_verdict *verdict, uint32_t account)
{
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
    case SCHED_NO_CAPACITY:
    case SCHED_PREEMPTING:
    case SCHED_BEHIND:
        break; /* no validator says so */
    }
    if (account != SCHED_NO_ACCOUNT)
        jsonw_member_str(e->json, "account", snap->accounts[account].name);
    return 0;
}

int sched_explain(const struct sched_snapshot *snap, uint32_t index, struct arena *arena,
                  struct strbuf *text, struct strbuf *json, struct aq_error *err)
{
    AQ_CLEANUP(sched_freep) struct sched *s = NULL;
    struct strbuf members = STRBUF_INIT;
    struct jsonw w = jsonw_make(&members), top;
    struct explanation e = { .types = snap->types,
                             .session = &snap->sessions[index],
                             .arena = arena,
                             .text = STRBUF_INIT,
                             .json = &w };
    enum sched_verdict verdict;
    uint32_t account, handle;
    int r = sched_from_snapshot(snap, &s, err);

    if (r == 0)
        r = sched_add(s, e.session, &handle, err);
    if (r < 0)
        return r;
    e.s = s;
    e.entry = &s->entries[handle];
    jsonw_object_begin(&w);
    verdict = validate_entry(s, e.entry, snap->now_usec, &account);
    r = explain_verdict(&e, snap, &verdict, account);
    jsonw_member_str(&w, "kind", sched_verdict_name(verdict));
    jsonw_member_str(&w, "text", e.text.data);
    jsonw_object_end(&w);
    if (r == 0 && text)
        strbuf_add(text, e.text.data, e.text.len);
    if (r == 0 && json) {
        top = jsonw_make(json);
        jsonw_raw(&top, members.data, members.len);
    }
    if (r == 0 && (!strbuf_ok(&e.text) || !strbuf_ok(&members)))
        r = -ENOMEM;
    if ((text && !strbuf_ok(text)) || (json && !strbuf_ok(json)))
        r = -ENOMEM;
    strbuf_done(&e.text);
    strbuf_done(&members);
    return r < 0 ? aq_fail_oom(err) : (int)verdict;
}
