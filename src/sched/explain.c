/* SPDX-License-Identifier: Apache-2.0 */
/* explain.c - the reason why a session waits, as a sentence and as JSON */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/jsonw.h"
#include "sched/snapshot.h"
#include "sched/scheduler_internal.h"

struct explanation {
    struct sched *s;
    const struct sched_snapshot *snap;
    const struct slot_types *types;
    const struct sched_session *session;
    struct sched_entry *entry;
    const struct placement_constraints *constraints; /* NULL = any agent will do */
    struct arena *arena;
    struct cluster_device *devices; /* room for those of any agent */
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

/* What of a slot is missing on the agent; false if nothing is. */
static bool explain_find_shortage(struct explanation *e, uint32_t node,
                                  const struct slot_request *req, size_t column,
                                  struct shortage *ret)
{
    const struct cluster_node *n = &e->s->cluster.nodes[node];
    int64_t amount = req->amounts[column];
    size_t count = 0;

    *ret = (struct shortage){ .most = -1 };
    if (amount <= 0)
        return false;
    for (uint32_t i = 0; column < e->s->cluster.columns && i < n->device_count; i++)
        if (n->devices[i].column == column) {
            e->devices[count] = n->devices[i];
            e->devices[count++].unused = i;
        }
    if (count)
        (void)fit_find_shortage(&e->s->cluster, req, e->devices, count, amount, ret);
    ret->missing = AQ_MAX(ret->missing, amount - explain_have(e, node, column));
    return ret->missing > 0;
}

/* Has the agent ever as much as that? */
static bool explain_could_hold(const struct cluster_node *n, const struct slot_request *req,
                               size_t column)
{
    return n->is_capacity_known ? n->capacity[column] >= req->amounts[column]
                                : n->free[column] != SCHED_ABSENT;
}

/* How much of the request is missing, as the sum of the missing parts: slots
 * of different units can only be compared by part. What will never be there counts twice.
 */
static int64_t explain_shortage(struct explanation *e, uint32_t node,
                                const struct slot_request *req)
{
    struct shortage shortage;
    int64_t sum = 0;

    for (size_t c = 0; c < e->s->cluster.width; c++)
        if (explain_find_shortage(e, node, req, c, &shortage))
            sum += explain_millionths(shortage.missing, req->amounts[c])
                   + (c < e->s->cluster.columns
                      && !explain_could_hold(&e->s->cluster.nodes[node], req, c))
                         * INT64_C(1000000);
    return sum;
}

static uint32_t explain_find_nearest(struct explanation *e, const struct slot_request *req,
                                     size_t *ret_seen)
{
    const struct cluster *c = &e->s->cluster;
    uint32_t nearest = CLUSTER_NONE;
    int64_t least = 0;

    *ret_seen = 0;
    for (uint32_t n = 0; n < c->node_count; n++) {
        int64_t missing, rank;

        if (!cluster_matches(c, req, n)
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

static const char *explain_device_id(const struct explanation *e, uint32_t node, uint32_t device)
{
    for (size_t i = 0; i < e->snap->agent_count; i++)
        if (strcmp(e->snap->agents[i].id, e->s->cluster.nodes[node].id) == 0
            && device < e->snap->agents[i].device_count)
            return e->snap->agents[i].devices[device].id;
    return NULL;
}

/* The agent has enough in sum: what a session could do about it. */
static void explain_splitting(struct explanation *e, const struct slot_request *req, size_t column,
                              const struct shortage *s)
{
    char sum[AMOUNT_TEXT_MAX];

    if (!req->may_split && !s->is_whole && s->sum >= req->amounts[column])
        strbuf_addf(&e->text,
                    "; %s is free on its devices together: allow splitting with --resource-opts "
                    "allow_fractional_resource_fragmentation=yes",
                    slot_amount_humanize(s->sum, explain_type_of(e, column), sum));
}

/* "2" or "none", of several. */
static const char *explain_count(int64_t count, char buf[24])
{
    (void)snprintf(buf, 24, "%" PRId64, count);
    return count ? buf : "none";
}

/* "needs 0.4 of one device; the most that is free on one is 0.3 (GPU-1)" */
static void explain_devices(struct explanation *e, const struct slot_request *req, uint32_t node,
                            size_t column, const struct shortage *s)
{
    enum slot_type type = explain_type_of(e, column);
    const char *id = s->most >= 0 ? explain_device_id(e, node, s->device) : NULL;
    char each[AMOUNT_TEXT_MAX], most[AMOUNT_TEXT_MAX], ready[24];

    slot_amount_humanize(req->may_split ? req->amounts[column] : s->each, type, each);
    slot_amount_humanize(req->may_split ? s->sum : s->most, type, most);
    if (req->may_split)
        strbuf_addf(&e->text, "%s, also in parts; %s is free on its %" PRId64 " devices together",
                    each, most, s->usable);
    else if (s->is_whole)
        strbuf_addf(&e->text, "%" PRId64 " whole device%s; %s of %" PRId64 " is free", s->parts,
                    s->parts == 1 ? "" : "s", explain_count(s->ready, ready), s->usable);
    else if (s->parts > 1)
        strbuf_addf(&e->text,
                    "%s of each of %" PRId64 " devices; %s of %" PRId64 " has as much free", each,
                    s->parts, explain_count(s->ready, ready), s->usable);
    else if (s->most <= 0)
        strbuf_addf(&e->text, "%s of one device; nothing is free on any of %" PRId64, each,
                    s->usable);
    else
        strbuf_addf(&e->text, "%s of one device; the most that is free on one is %s%s%s%s", each,
                    most, id ? " (" : "", id ? id : "", id ? ")" : "");
    if (!req->may_split && !s->is_whole && s->parts > 1 && s->most > 0)
        strbuf_addf(&e->text, ", the %s has %s%s%s%s", s->ready ? "next" : "best", most,
                    id ? " (" : "", id ? id : "", id ? ")" : "");
    explain_splitting(e, req, column, s);
}

static void explain_write_devices(const struct explanation *e, const struct slot_request *req,
                                  uint32_t node, size_t column, const struct shortage *s)
{
    enum slot_type type = explain_type_of(e, column);
    const char *id = s->most >= 0 ? explain_device_id(e, node, s->device) : NULL;
    char buf[AMOUNT_TEXT_MAX];

    jsonw_object_begin(e->json);
    jsonw_member_str(e->json, "slot", e->s->cluster.names[column]);
    jsonw_member_bool(e->json, "may_split", req->may_split);
    jsonw_member_int(e->json, "parts", s->parts);
    jsonw_member_str(e->json, "each", slot_amount_format(s->each, type, buf));
    jsonw_member_int(e->json, "ready", s->ready);
    jsonw_member_int(e->json, "usable", s->usable);
    jsonw_member_str(e->json, "most", s->most >= 0 ? slot_amount_format(s->most, type, buf) : NULL);
    jsonw_member_str(e->json, "device", id);
    jsonw_member_str(e->json, "together", slot_amount_format(s->sum, type, buf));
    jsonw_object_end(e->json);
}

/* "cpu: 3 missing on i-1: needs 4, 1 is free" */
static void explain_slot(struct explanation *e, const struct slot_request *req, uint32_t node,
                         size_t column, const struct shortage *s)
{
    enum slot_type type = explain_type_of(e, column);
    const char *agent = e->s->cluster.nodes[node].id, *name = e->s->cluster.names[column];
    char missing[AMOUNT_TEXT_MAX], amount[AMOUNT_TEXT_MAX], have[AMOUNT_TEXT_MAX];

    slot_amount_humanize(req->amounts[column], type, amount);
    if (s->finest) {
        strbuf_addf(&e->text,
                    "\n  - %s: %s is no multiple of %s, the smallest part of a device on %s", name,
                    slot_amount_format(req->amounts[column], type, amount),
                    slot_amount_format(s->finest, type, have), agent);
        return;
    }
    strbuf_addf(&e->text, "\n  - %s: %s missing on %s: ", name,
                slot_amount_humanize(s->missing, type, missing), agent);
    if (req->kernels > 1)
        strbuf_addf(&e->text, "its %" PRIu32 " containers together need ", req->kernels);
    else
        strbuf_adds(&e->text, "needs ");
    if (s->parts && (s->ready < s->parts || req->may_split))
        explain_devices(e, req, node, column, s);
    else
        strbuf_addf(&e->text, "%s, %s is free", amount,
                    slot_amount_humanize(explain_have(e, node, column), type, have));
}

static void explain_missing(struct explanation *e, const struct slot_request *req, uint32_t node)
{
    const struct cluster *c = &e->s->cluster;
    int64_t *missing = arena_array(e->arena, c->width, sizeof(*missing));
    struct shortage *s = arena_array(e->arena, c->width, sizeof(*s));

    for (size_t i = 0; i < c->columns; i++)
        if (explain_find_shortage(e, node, req, i, &s[i])) {
            missing[i] = s[i].finest ? 0 : s[i].missing;
            explain_slot(e, req, node, i, &s[i]);
        }
    if (explain_have(e, node, c->columns) < req->kernels)
        strbuf_addf(&e->text, "\n  - containers: %" PRId64 " missing on %s",
                    req->kernels - explain_have(e, node, c->columns), c->nodes[node].id);
    jsonw_member_str(e->json, "nearest", c->nodes[node].id);
    explain_write_amounts(e, "missing", missing);
    jsonw_key(e->json, "devices");
    jsonw_array_begin(e->json);
    for (size_t i = 0; i < c->columns; i++)
        if (s[i].parts && s[i].missing > 0)
            explain_write_devices(e, req, node, i, &s[i]);
    jsonw_array_end(e->json);
}

/* Which agents count, and what was taken off before. */
static void explain_limits(struct explanation *e, size_t i)
{
    const struct sched_session *s = e->session;

    for (size_t k = 0; s->designated_strict && k < s->designated_count; k++)
        strbuf_addf(&e->text, "%s%s",
                    k ? ", " : "\n  - only agents that it names count: ", s->designated[k]);
    if (s->group && s->grouping_strict && s->grouping == SCHED_SPREAD)
        strbuf_adds(&e->text, "\n  - agents that have a session of its group do not count");
    if (s->group && s->grouping_strict && s->grouping == SCHED_PACK && e->constraints
        && e->constraints->group_node_count)
        strbuf_adds(&e->text, "\n  - only agents that have a session of its group count");
    for (size_t k = 0; k < i; k++)
        if (e->entry->holds[k].node != CLUSTER_NONE) {
            strbuf_adds(&e->text, "\n  - amounts are what its other containers would leave");
            return;
        }
}

/* Agents that mount these volumes, whatever else they are. */
static bool explain_is_mounted(const struct explanation *e, uint64_t volumes)
{
    const struct cluster *c = &e->s->cluster;

    if (!volumes)
        return true;
    for (uint32_t n = 0; n < c->node_count; n++)
        if (!(volumes & ~c->nodes[n].volumes))
            return true;
    return false;
}

static void explain_add_volume(struct explanation *e, const char *volume)
{
    if (strcmp(volume, SCHED_SFTP) == 0)
        strbuf_adds(&e->text, "offers SFTP: its node needs networks for containers and the "
                              "packages dropbear-bin and openssh-sftp-server");
    else if (strcmp(volume, SCHED_RDMA) == 0)
        strbuf_adds(&e->text, "offers RDMA devices: its administrator may set [network] rdma in "
                              "agent.toml");
    else if (strcmp(volume, SCHED_HOST_NETWORK) == 0)
        strbuf_adds(&e->text, "offers the host network: its administrator may set [network] host "
                              "in agent.toml");
    else
        strbuf_addf(&e->text, "mounts %s", volume);
}

/* Which hosts of its folders stand in the way, or SFTP. */
static void explain_volumes(struct explanation *e, const struct slot_request *req)
{
    const struct sched_session *s = e->session;
    bool is_found = true;

    for (size_t i = 0; i < s->volume_count; i++) {
        if (explain_is_mounted(e, cluster_volumes(&e->s->cluster, &s->volumes[i], 1)))
            continue;
        strbuf_adds(&e->text, "\n  - no agent ");
        explain_add_volume(e, s->volumes[i]);
        is_found = false;
    }
    if (!is_found || explain_is_mounted(e, req->volumes))
        return;
    for (size_t i = 0; i < s->volume_count; i++) {
        strbuf_adds(&e->text, i ? ", and " : "\n  - no single agent ");
        explain_add_volume(e, s->volumes[i]);
    }
}

/* One requirement that found no agent. */
static void explain_requirement(struct explanation *e, size_t i)
{
    const struct slot_request *req = e->entry->reqs[i];
    size_t seen;
    uint32_t nearest = explain_find_nearest(e, req, &seen);

    strbuf_addf(&e->text, "\n- requirement #%zu (", i + 1);
    explain_add_amounts(e, req->amounts);
    if (e->session->architecture)
        strbuf_addf(&e->text, ", architecture %s", e->session->architecture);
    if (req->kernels > 1)
        strbuf_addf(&e->text, ", %" PRIu32 " containers on one agent", req->kernels);
    strbuf_addf(&e->text, "): no agents passed the '%s' filter",
                nearest != CLUSTER_NONE                ? "resource"
                : !explain_is_mounted(e, req->volumes) ? "volume"
                : e->entry->booking                    ? "reservation"
                : !entry_has_agent(e->s, e->entry, i)  ? "architecture"
                : e->constraints->designated_count     ? "designated"
                                                       : "session group");
    explain_volumes(e, req);
    explain_limits(e, i);
    jsonw_object_begin(e->json);
    explain_write_amounts(e, "slots", req->amounts);
    jsonw_member_int(e->json, "agents", (int64_t)seen);
    if (req->unknown)
        strbuf_addf(&e->text, "\n  - %s: no agent has it", req->unknown);
    if (nearest != CLUSTER_NONE)
        explain_missing(e, req, nearest);
    jsonw_object_end(e->json);
}

/* When the first booking begins on an agent that has room now; NULL if that is not known. */
static const struct booked *explain_find_booking(struct explanation *e)
{
    struct cluster *c = &e->s->cluster;
    const struct booked *first = NULL;

    for (size_t i = 0; i < e->s->booking_count; i++) {
        const struct booked *b = &e->s->bookings[i];

        if (b->is_active || b->is_over || (first && b->starts_usec >= first->starts_usec))
            continue;
        for (uint32_t k = 0; k < b->place_count; k++) {
            uint32_t node = b->places[k].node;

            if (node != CLUSTER_NONE && cluster_matches(c, e->entry->reqs[0], node)
                && cluster_fit(c, e->entry->reqs[0], c->nodes[node].state, &e->s->options.selector)
                       ->has_room) {
                first = b;
                break;
            }
        }
    }
    return first;
}

/* There is room, but a booking begins before it would end. */
static enum sched_verdict explain_booked(struct explanation *e)
{
    const struct booked *b = explain_find_booking(e);
    char iso[CLOCK_ISO_MAX];

    strbuf_adds(&e->text, "There is room, but not for as long as it may run");
    if (b) {
        strbuf_addf(&e->text, ": at %.19sZ ", clock_format_iso(b->starts_usec, iso));
        if (b->name[0])
            strbuf_addf(&e->text, "reservation '%s' begins.", b->name);
        else
            strbuf_adds(&e->text, "another reservation begins.");
        jsonw_member_str(e->json, "booked_from", iso);
    } else {
        strbuf_adds(&e->text, ": reservations begin before.");
    }
    strbuf_adds(&e->text, e->session->lifetime_usec
                              ? " Its time limit is longer."
                              : " It has no time limit (--timeout); one that ends before lets it "
                                "start.");
    return SCHED_BOOKED;
}

/* Has it room, but none that lasts as long as it does? */
static bool explain_is_booked(struct explanation *e)
{
    struct forecast *forecast;
    bool has_room;

    if (!booked_is_near(e->s, e->entry, e->snap->now_usec))
        return false;
    has_room = place_entry(e->s, e->entry, e->arena) == SCHED_PLACED;
    for (uint32_t i = 0; i < e->entry->req_count; i++)
        entry_release(e->s, e->entry, i);
    if (!has_room)
        return false;
    forecast = forecast_new(e->s, e->snap->now_usec, false, e->arena);
    has_room = forecast_schedule(forecast, e->entry, true) <= e->snap->now_usec;
    for (uint32_t i = 0; i < e->entry->req_count; i++)
        entry_release(e->s, e->entry, i);
    return !has_room;
}

/* Place as far as it goes, so that each requirement is checked after those
 * before it, and tell about those that do not fit.
 */
static enum sched_verdict explain_room(struct explanation *e)
{
    size_t mark = e->text.len, failed = 0;
    struct strbuf rest = STRBUF_INIT;
    bool is_placed = place_entry(e->s, e->entry, e->arena) == SCHED_PLACED;
    enum sched_verdict verdict;

    e->constraints = entry_constraints(e->s, e->entry, e->arena);
    jsonw_key(e->json, "requirements");
    jsonw_array_begin(e->json);
    for (uint32_t i = 0; !is_placed && i < e->entry->req_count; i++) {
        int32_t device;
        uint32_t node = select_node(&e->s->cluster, e->entry->reqs[i], &e->s->options.selector,
                                    e->constraints, &device);

        if (node != CLUSTER_NONE) {
            entry_hold(e->s, e->entry, i, node, device);
        } else {
            explain_requirement(e, i);
            failed++;
        }
    }
    jsonw_array_end(e->json);
    verdict = is_placed ? SCHED_PLACED : place_find_obstacle(e->s, e->entry, e->arena);
    strbuf_add(&rest, e->text.data + mark, e->text.len - mark);
    strbuf_truncate(&e->text, mark);
    if (verdict == SCHED_NO_CAPACITY)
        strbuf_adds(&e->text, "It waits aside, without blocking others, for an agent that "
                              "could hold it: the agents that take sessions now could not, "
                              "even if they were empty. ");
    if (failed) {
        strbuf_addf(&e->text, "%zu requirement%s could not be placed:", failed,
                    failed == 1 ? "" : "s");
        strbuf_add(&e->text, rest.data, rest.len);
    } else if (is_placed) {
        strbuf_adds(&e->text, "There is room; it starts with the next pass.");
    } else {
        for (uint32_t i = 0; i < e->entry->req_count; i++)
            entry_release(e->s, e->entry, i);
        explain_network(e->s, e->entry, &e->text);
    }
    strbuf_done(&rest);
    return verdict;
}

/* Clients of Backend.AI look for their manager's sentence about dependencies on success. */
static void explain_dependencies(struct explanation *e, enum sched_verdict verdict)
{
    const char *separator = "";
    bool all_success = true;

    for (size_t i = 0; i < e->session->dependency_count; i++)
        all_success &= e->session->dependencies[i].condition == DEPENDENCY_SUCCESS;
    strbuf_adds(&e->text, verdict == SCHED_DOOMED ? (
                              all_success ? "A session that this one depends on did not succeed. ("
                                          : "A dependency of this session cannot be met. (")
                          : all_success ? "Waiting dependency sessions to finish as success. ("
                                        : "Waiting for other sessions. (");
    jsonw_key(e->json, "dependencies");
    jsonw_array_begin(e->json);
    for (size_t i = 0; i < e->session->dependency_count; i++) {
        const struct session_dependency *d = &e->session->dependencies[i];
        AQ_CLEANUP(strbuf_donep) struct strbuf target = STRBUF_INIT;

        if (dependency_state(d) == DEPENDENCY_MET)
            continue;
        dependency_write_target(d, &target);
        strbuf_adds(&e->text, separator);
        if (!all_success)
            strbuf_addf(&e->text, "%s of ", dependency_condition_name(d->condition));
        strbuf_adds(&e->text, target.data);
        jsonw_str(e->json, target.data);
        separator = ", ";
    }
    jsonw_array_end(e->json);
    strbuf_addc(&e->text, ')');
}

static void explain_quota(struct explanation *e, const struct sched_account *named,
                          uint32_t account)
{
    static const char *const names[] = { [SCHED_KEYPAIR] = "keypair",
                                         [SCHED_USER] = "user",
                                         [SCHED_PROJECT] = "project",
                                         [SCHED_DOMAIN] = "domain" };
    const struct cluster *cluster = &e->s->cluster;
    const struct account_state *a = &e->s->accounts[account];
    char used[AMOUNT_TEXT_MAX], wanted[AMOUNT_TEXT_MAX], limit[AMOUNT_TEXT_MAX];

    strbuf_addf(&e->text, "The limit of %s %s is exceeded.", names[a->kind],
                named->label ? named->label : named->name);
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

/* A request above the limit waits in vain: no session of the account that ends makes it smaller. */
static void explain_never(struct explanation *e, uint32_t account)
{
    char limit[AMOUNT_TEXT_MAX];

    for (size_t c = 0; c < e->s->cluster.columns; c++) {
        int64_t max = account_limit(&e->s->accounts[account], c), more = entry_amount(e->entry, c);

        if (more <= 0 || max == AMOUNT_INFINITE || more <= max)
            continue;
        strbuf_addf(&e->text,
                    "\nIt never starts: the limit allows %s=%s at most. Request less, or let an "
                    "administrator raise the limit.",
                    e->s->cluster.names[c],
                    slot_amount_humanize(max, explain_type_of(e, c), limit));
        jsonw_member_bool(e->json, "never", true);
        return;
    }
}

static bool explain_waits_for_booking(struct explanation *e)
{
    const struct booked *b = booked_find(e->s, e->entry->booking);
    char iso[CLOCK_ISO_MAX];

    if (!b || b->is_active || b->is_over || e->session->starts_usec > b->starts_usec)
        return false;
    strbuf_addf(&e->text, "It waits for the start of reservation '%s' at %.19sZ.", b->name,
                clock_format_iso(b->starts_usec, iso));
    jsonw_member_str(e->json, "starts_at", iso);
    return true;
}

/* Its time limit goes beyond the end of its reservation. */
static void explain_cut(struct explanation *e)
{
    const struct booked *b = booked_find(e->s, e->entry->booking);
    char iso[CLOCK_ISO_MAX];

    strbuf_addf(&e->text,
                "Its time limit goes beyond the end of reservation '%s' at %.19sZ. A shorter time "
                "limit (--timeout) or a later end of the reservation lets it start; with --signal "
                "it starts and gets the signal before the end.",
                b->name, clock_format_iso(b->ends_usec, iso));
    jsonw_member_str(e->json, "reservation_ends", iso);
}

/* The verdict, after a look for room if no rule is against it. */
static enum sched_verdict explain_verdict(struct explanation *e, const struct sched_snapshot *snap,
                                          enum sched_verdict verdict, uint32_t account)
{
    char iso[CLOCK_ISO_MAX];

    switch (verdict) {
    case SCHED_PLACED:
        booked_limit_lifetime(e->s, e->entry, snap->now_usec);
        return explain_is_booked(e) ? explain_booked(e) : explain_room(e);
    case SCHED_TOO_EARLY:
        if (explain_waits_for_booking(e))
            break;
        strbuf_addf(&e->text, "Before start time (%s)",
                    clock_format_iso(e->session->starts_usec, iso));
        jsonw_member_str(e->json, "starts_at", iso);
        break;
    case SCHED_CUT:
        explain_cut(e);
        break;
    case SCHED_DEPENDENCY:
    case SCHED_DOOMED:
        explain_dependencies(e, verdict);
        break;
    case SCHED_CONCURRENCY:
        strbuf_addf(&e->text, "You cannot run more than %" PRId64 " concurrent sessions",
                    snap->accounts[account].max_sessions);
        break;
    case SCHED_QUOTA:
        explain_quota(e, &snap->accounts[account], account);
        explain_never(e, account);
        break;
    case SCHED_NO_ROOM:
    case SCHED_NO_AGENT:
    case SCHED_NO_CAPACITY:
    case SCHED_PREEMPTING:
    case SCHED_BOOKED:
    case SCHED_BEHIND:
        break; /* no validator says so */
    }
    if (account != SCHED_NO_ACCOUNT)
        jsonw_member_str(e->json, "account", snap->accounts[account].name);
    return verdict;
}

static struct cluster_device *explain_reserve_devices(const struct explanation *e)
{
    size_t most = 0;

    for (size_t i = 0; i < e->snap->agent_count; i++)
        most = AQ_MAX(most, e->snap->agents[i].device_count);
    return arena_array(e->arena, most + 1, sizeof(struct cluster_device));
}

/* The sessions before 'index' start, as far as they fit. */
static int explain_start_before(struct sched *s, const struct sched_snapshot *snap, uint32_t index,
                                struct arena *arena, struct aq_error *err)
{
    struct sched_result result;
    uint32_t handle;
    int r = 0;

    for (uint32_t i = 0; i < index && r == 0; i++)
        r = sched_add(s, &snap->sessions[i], &handle, err);
    if (r == 0 && index > 0)
        sched_pass(s, snap->now_usec, arena, &result);
    return r;
}

int sched_explain(const struct sched_snapshot *snap, uint32_t index, struct arena *arena,
                  struct strbuf *text, struct strbuf *json, struct aq_error *err)
{
    AQ_CLEANUP(sched_freep) struct sched *s = NULL;
    struct strbuf members = STRBUF_INIT;
    struct jsonw w = jsonw_make(&members), top;
    struct explanation e = { .types = snap->types,
                             .snap = snap,
                             .session = &snap->sessions[index],
                             .arena = arena,
                             .text = STRBUF_INIT,
                             .json = &w };
    enum sched_verdict verdict;
    uint32_t account, handle;
    int r = sched_from_snapshot(snap, &s, err);

    if (r == 0)
        r = explain_start_before(s, snap, index, arena, err);
    if (r == 0)
        r = sched_add(s, e.session, &handle, err);
    if (r < 0)
        return r;
    e.s = s;
    e.entry = &s->entries[handle];
    e.devices = explain_reserve_devices(&e);
    jsonw_object_begin(&w);
    verdict = validate_entry(s, e.entry, snap->now_usec, &account);
    verdict = explain_verdict(&e, snap, verdict, account);
    jsonw_member_str(&w, "kind", sched_verdict_name(verdict));
    jsonw_member_str(&w, "text", e.text.data);
    jsonw_object_end(&w);
    if (text)
        strbuf_add(text, e.text.data, e.text.len);
    if (json) {
        top = jsonw_make(json);
        jsonw_raw(&top, members.data, members.len);
    }
    strbuf_done(&e.text);
    strbuf_done(&members);
    return (int)verdict;
}
