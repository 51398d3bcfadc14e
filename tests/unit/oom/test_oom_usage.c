/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is short while accounts change and while what they use is counted: a change is
 * whole or was refused, limits hold, and sums are right.
 */
#include "oom_world.h"

#include <limits.h>

#include "manager/core/loop/key_use.h"
#include "manager/core/statistics/series.h"

#define NIGHT_KEY "AKIANIGHTWATCHEXAMPL"

static struct session_request interactive(const char *name)
{
    return (struct session_request){ .name = name,
                                     .type = SESSION_INTERACTIVE,
                                     .spec.image = "sh",
                                     .access_key = USER_KEY,
                                     .priority = -1 };
}

/* ---- accounts ---- */

static char *copy(const char *text)
{
    char *made = strdup(text);

    assert_non_null(made);
    return made;
}

/* One change, as the API would make it: what it is made of does not count. */
static struct event *begin_change(struct event_batch **batch, enum event_kind kind)
{
    struct event *e;

    oom_pause(true);
    assert_non_null(*batch = event_batch_new());
    assert_non_null(e = event_batch_add(*batch, kind, world_wall));
    return e;
}

static bool commit_change(const char *what, struct event_batch *batch)
{
    struct answer a = { 0 };

    oom_pause(false);
    core_save(world.core, batch, NULL, on_answer, &a);
    settle();
    oom_says(what, &a);
    return a.r == 0;
}

static bool save_domain(const char *name, bool is_active)
{
    struct event_batch *batch;
    struct event *e = begin_change(&batch, EVENT_DOMAIN_SAVED);

    e->domain = (struct domain){ .name = copy(name),
                                 .description = copy("at night"),
                                 .is_active = is_active };
    assert_int_equal(slots_set(&e->domain.total_slots, "cpu", 8 * AMOUNT_ONE), 0);
    return commit_change("domain", batch);
}

static bool save_project(const struct uuid *id, const char *domain, bool is_active)
{
    struct event_batch *batch;
    struct event *e = begin_change(&batch, EVENT_PROJECT_SAVED);

    e->project = (struct project){
        .id = *id, .name = copy("watch"), .domain = copy(domain), .is_active = is_active
    };
    return commit_change("project", batch);
}

static bool save_policy(const char *name, int sessions, bool is_active)
{
    struct event_batch *batch;
    struct event *e = begin_change(&batch, EVENT_KEYPAIR_POLICY_SAVED);

    e->policy = (struct keypair_policy){ .name = copy(name),
                                         .is_active = is_active,
                                         .max_concurrent_sessions = sessions,
                                         .max_pending_sessions = 3,
                                         .unlimited_unspecified = true,
                                         .max_priority = 100 };
    assert_int_equal(slots_set(&e->policy.total_slots, "cpu", 3 * AMOUNT_ONE), 0);
    assert_int_equal(slots_set(&e->policy.max_pending_slots, "cpu", 30 * AMOUNT_ONE), 0);
    return commit_change("policy", batch);
}

static bool save_user(const struct uuid *id, const struct uuid *project, enum user_status status)
{
    struct event_batch *batch;
    struct event *e = begin_change(&batch, EVENT_USER_SAVED);
    struct user *u = &e->user.user;

    *u = (struct user){ .id = *id,
                        .username = copy("owl"),
                        .email = copy("owl@example.org"),
                        .full_name = copy("O W L"),
                        .domain = copy("night"),
                        .role = ROLE_USER,
                        .status = status };
    assert_non_null(u->project_ids = calloc(1, sizeof(*u->project_ids)));
    u->project_ids[0] = *project;
    u->project_count = u->project_cap = 1;
    e->user.password_hash = copy("$");
    return commit_change("user", batch);
}

static bool save_keypair(const struct uuid *user, bool is_active)
{
    struct event_batch *batch;
    struct event *e = begin_change(&batch, EVENT_KEYPAIR_SAVED);

    e->keypair = (struct keypair){ .access_key = NIGHT_KEY,
                                   .secret_key = "secret",
                                   .user_id = *user,
                                   .is_active = is_active,
                                   .policy = copy("watches") };
    return commit_change("keypair", batch);
}

static bool remove_keypair(void)
{
    struct event_batch *batch;
    struct event *e = begin_change(&batch, EVENT_KEYPAIR_REMOVED);

    e->keypair = (struct keypair){ .access_key = NIGHT_KEY };
    return commit_change("remove keypair", batch);
}

static bool save_rgroup(const char *name, const char *scheduler, const char *opts, bool is_active)
{
    struct event_batch *batch;
    struct event *e = begin_change(&batch, EVENT_RESOURCE_GROUP_SAVED);

    e->resource_group = (struct resource_group){ .name = copy(name),
                                                 .is_active = is_active,
                                                 .scheduler = copy(scheduler),
                                                 .scheduler_opts = copy(opts),
                                                 .selection = copy("concentrated"),
                                                 .agent_loss_policy = copy("wait") };
    return commit_change("resource group", batch);
}

static bool purge(enum purge_kind kind, const struct uuid *id, const char *name)
{
    struct event_batch *batch;
    struct event *e = begin_change(&batch, EVENT_ACCOUNT_PURGED);

    e->purge_account.kind = kind;
    if (id)
        e->purge_account.id = *id;
    e->purge_account.name = name ? copy(name) : NULL;
    return commit_change("purge", batch);
}

static bool allow_night(const struct uuid *project)
{
    const char *night = "night";
    struct answer a = { 0 };
    char id[UUID_TEXT_MAX];

    core_change_access(world.core,
                       &(struct core_access_change){ .resource_groups = &night,
                                                     .count = 1,
                                                     .domain = "night",
                                                     .project_id = uuid_format(project, id),
                                                     .access_key = NIGHT_KEY,
                                                     .is_allowed = true },
                       NULL, on_answer, &a);
    settle();
    oom_says("allow", &a);
    return a.r == 0;
}

static void on_audit(void *data, int r, const struct aq_error *err, const char *findings)
{
    on_audited(data, r, err, findings);
    oom_check("audit", r, err);
}

/* It finds so much, or says that it could not look. */
static void audit_finds(int wanted)
{
    int count = INT_MIN;

    core_audit(world.core, on_audit, &count);
    settle();
    assert_row(count == wanted || count == -ENOMEM, "audit: %d", count);
}

static void watch(const struct uuid *user, const struct uuid *project)
{
    struct session_request req = interactive("watches");
    struct answer a;

    req.domain = "night";
    req.group = "watch";
    req.resource_group = "night";
    req.access_key = NIGHT_KEY;
    if (!save_user(user, project, USER_ACTIVE) || !save_keypair(user, true)
        || !allow_night(project))
        return;
    core_note_key_use(world.core, NIGHT_KEY);
    a = oom_create(&req);
    if (a.r == 0)
        oom_terminate(&a.created.id, false);
    audit_finds(0);
    if (a.r == 0 && status_of(&a.created.id) != GONE)
        return;
    (void)save_user(user, project, USER_INACTIVE);
    (void)save_keypair(user, false);
    (void)save_user(user, project, USER_ACTIVE); /* restored */
    (void)save_keypair(user, true);
    key_use_tick(world.core, world_mono);
    (void)remove_keypair();
    if (save_user(user, project, USER_DELETED))
        (void)purge(PURGE_USER, user, NULL);
}

static void run_accounts(const char *dir)
{
    struct uuid user = { { 7 } }, project = { { 8 } };

    oom_world_open(dir);
    oom_begin();
    if (save_domain("night", true) && save_project(&project, "night", true)
        && save_policy("watches", 2, true) && save_rgroup("night", "lifo", "{}", true)) {
        watch(&user, &project);
        if (!core_find_user(world.core, &user)) {
            if (save_project(&project, "night", false))
                (void)purge(PURGE_PROJECT, &project, NULL);
            if (save_policy("watches", 3, false))
                (void)purge(PURGE_POLICY, NULL, "watches");
            if (save_domain("night", false))
                (void)purge(PURGE_DOMAIN, NULL, "night");
        }
        if (save_rgroup("night", "fifo", "{\"backfill\":true}", false)
            && !core_next_session(world.core, NULL))
            (void)purge(PURGE_RESOURCE_GROUP, NULL, "night");
    }
    oom_world_pass();
}

/* ---- limits, positions, fair share ---- */

static void keep_row(void *data, const struct core_fair_row *row)
{
    (void)row;
    ++*(int *)data;
}

static void keep_weight(void *data, const char *slot, double weight)
{
    assert_true(slot && weight > 0);
    ++*(int *)data;
}

static void list_shares(bool is_fair)
{
    struct aq_error err = { 0 };
    int rows = 0, r = core_list_fair_share(world.core, "default", keep_row, &rows, &err);
    struct core_fair_settings settings;

    if (r != (is_fair ? -EAGAIN : -EINVAL))
        oom_check("fair share", r, &err);
    r = core_read_fair_settings(world.core, "default", &settings, keep_weight, &rows, &err);
    if (r < 0)
        oom_check("settings of fair share", r, &err);
    else
        assert_true(rows > 0 && settings.half_life_days > 0);
}

static void estimate(const struct uuid *id)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct core_start_estimate o;
    struct jsonw w = jsonw_make(&text);
    struct slots held = { .items = NULL };
    size_t count;
    int r;

    if (status_of(id) != SESSION_PENDING)
        return;
    r = core_get_start_estimate(world.core, id, &o);
    assert_true(r == 0 || r == -EAGAIN || r == -ENOMEM);
    if (r == 0)
        core_write_start_estimate(&o, &w);
    r = core_get_usage(world.core, USER_KEY, &held, &count);
    assert_true(r == 0 || r == -ENOMEM);
    slots_done(&held);
    r = core_get_occupied(world.core, "i-001", &held);
    assert_true(r == 0 || r == -ENOMEM || r == -ENOENT);
    slots_done(&held);
}

static void on_dry_run(void *data, int r, const struct aq_error *err,
                       const struct core_dry_run *trial)
{
    if (r == 0)
        assert_true(trial->text[0] && trial->json[0]);
    on_answer(data, r, err);
}

static void try_it(const struct session_request *req)
{
    struct answer a = { 0 };

    core_dry_run_session(world.core, req, 1, on_dry_run, &a);
    settle();
    oom_says("dry run", &a);
}

static void dismiss(const struct uuid *id)
{
    struct answer a = { 0 };

    core_dismiss_sessions(world.core, &(struct core_dismissal){ .id = *id }, 1, NULL, on_answer,
                          &a);
    settle();
    oom_says("dismiss", &a);
}

/* Two hold all that there is, others wait for room or for what they may use. */
static void run_shares(const char *dir)
{
    struct session_request req = { .name = "share1",
                                   .type = SESSION_BATCH,
                                   .spec.image = "sh",
                                   .spec.command = "true",
                                   .access_key = USER_KEY,
                                   .priority = -1,
                                   .spec.batch_timeout_usec = 3600 * USEC_PER_SEC };
    static const char *const names[] = { "share1", "share2", "share3", "share4" };
    struct answer a[AQ_COUNT(names)];
    bool is_fair;

    oom_world_open(dir);
    (void)save_policy("default", 2, true);
    oom_set_slot(&req.resources, "cpu", 2 * AMOUNT_ONE);
    oom_begin();
    is_fair = save_rgroup("default", "fair-share",
                          "{\"fair_share\":{\"half_life_days\":3},\"pending_timeout\":900}", true);
    oom_comes("i-001", FOUR_CPUS);
    for (size_t i = 0; i < AQ_COUNT(names); i++) {
        req.name = names[i];
        req.access_key = i % 2 ? ADMIN_KEY : USER_KEY;
        a[i] = oom_create(&req);
        oom_all_report(MSG_KERNEL_RUNNING, NULL, NULL);
    }
    req.name = "tried";
    try_it(&req);
    list_shares(is_fair);
    audit_finds(0);
    for (size_t i = 0; i < AQ_COUNT(names); i++)
        if (a[i].r == 0) {
            oom_explain(&a[i].created.id);
            estimate(&a[i].created.id);
        }
    if (a[0].r == 0)
        oom_terminate(&a[0].created.id, false);
    oom_all_report(MSG_KERNEL_TERMINATED, NULL, NULL);
    pass(70 * USEC_PER_SEC);
    list_shares(is_fair);
    audit_finds(0);
    for (size_t i = 0; i < AQ_COUNT(names); i++)
        if (a[i].r == 0)
            oom_terminate(&a[i].created.id, true);
    if (a[0].r == 0)
        dismiss(&a[0].created.id);
    oom_end();
    slots_done(&req.resources);
    oom_world_pass();
}

/* ---- the audit ---- */

static void run_audit(const char *dir)
{
    struct session_request req = interactive("tampered");
    struct session_entry *l;
    struct answer a;

    oom_world_open(dir);
    (void)save_rgroup("default", "fair-share", "{}", true);
    oom_comes("i-001", FOUR_CPUS);
    a = oom_create(&req);
    oom_all_report(MSG_KERNEL_RUNNING, NULL, NULL);
    l = session_entry_find(world.core, &a.created.id);
    l->s.priority++;
    l->s.kernels[0].attempt++;
    pass(30 * USEC_PER_SEC);
    l->kernels[0].held_usec += 20 * USEC_PER_SEC;
    oom_begin();
    audit_finds(5);
    oom_end();
    l->s.priority--;
    l->s.kernels[0].attempt--;
    l->kernels[0].held_usec -= 20 * USEC_PER_SEC;
    oom_world_pass();
}

/* ---- what agents measure ---- */

static struct msg_metric metrics[] = {
    { "cpu_used", METRIC_MSEC, METRIC_DIFF, METRIC_STATS_ALL },
    { "mem", METRIC_BYTES, METRIC_VALUE, METRIC_STATS_ALL },
};

static void agent_measures(const char *id, const struct uuid *session)
{
    struct msg_value values[] = { { 0, 17, -1 }, { 1, 4096, 8192 } };
    struct msg_device_values device = { "GPU-1", values, AQ_COUNT(values) };
    struct msg_kernel_values kernel = { .values = values, .value_count = AQ_COUNT(values) };
    const struct session *s = session ? core_find_session(world.core, session) : NULL;
    struct message msg = { .type = MSG_STATISTICS,
                           .statistics = { .at_usec = world_wall,
                                           .metrics = metrics,
                                           .metric_count = AQ_COUNT(metrics),
                                           .node = values,
                                           .node_count = AQ_COUNT(values),
                                           .devices = &device,
                                           .device_count = 1,
                                           .kernels = &kernel } };

    if (s) {
        kernel.session_id = s->id;
        kernel.kernel_id = s->kernels[0].id;
        kernel.attempt = s->kernels[0].attempt;
        msg.statistics.kernel_count = 1;
    }
    if (oom_is_connected(id))
        inventory_link_ops.on_message(world.core, id, &msg);
}

static void show_measured(void)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);

    agent_measured_write(core_agent_measured(world.core, "i-001"), &w);
}

static void quarter_passes(const char *id, const struct uuid *session)
{
    for (int i = 0; i < 3; i++) {
        agent_measures(id, session);
        pass(USEC_PER_SEC);
    }
    world_wall += 900 * USEC_PER_SEC;
    series_tick(world.core);
    settle();
    series_tick(world.core);
    settle();
}

static void ignore_event(void *data, const struct core_event *event)
{
    (void)data;
    (void)event;
}

static void run_statistics(const char *dir)
{
    struct session_request req = interactive("measured");
    struct core_subscriber *all, *one = NULL;
    struct answer a;

    oom_world_open(dir);
    oom_begin();
    oom_comes("i-001", GPU_NODE);
    all = core_subscribe(world.core, NULL, ignore_event, NULL);
    a = oom_create(&req);
    if (a.r == 0)
        one = core_subscribe(world.core, &a.created.id, ignore_event, NULL);
    oom_all_report(MSG_KERNEL_RUNNING, NULL, NULL);
    quarter_passes("i-001", a.r == 0 ? &a.created.id : NULL);
    show_measured();
    quarter_passes("i-001", NULL);
    agent_measures("i-001", a.r == 0 ? &a.created.id : NULL);
    if (a.r == 0)
        oom_terminate(&a.created.id, false);
    core_unsubscribe(world.core, all);
    core_unsubscribe(world.core, one);
    oom_all_report(MSG_KERNEL_TERMINATED, NULL, NULL);
    pass(2 * USEC_PER_SEC);
    oom_world_pass();
}

static void prepare_measured(const char *dir)
{
    struct session_request req = interactive("measured");
    struct answer a;

    oom_world_open(dir);
    oom_comes("i-001", GPU_NODE);
    a = oom_create(&req);
    oom_all_report(MSG_KERNEL_RUNNING, NULL, NULL);
    quarter_passes("i-001", &a.created.id);
    oom_world_close();
}

int main(void)
{
    static const struct oom_scenario scenarios[] = {
        { "accounts", oom_world_prepare, run_accounts, oom_world_recover },
        { "limits, estimates and fair share", oom_world_prepare, run_shares, oom_world_recover },
        { "an audit that finds something", oom_world_prepare, run_audit, NULL },
        { "statistics", oom_world_prepare, run_statistics, oom_world_recover },
        { "a start with statistics", prepare_measured, oom_world_start, oom_world_recover },
    };

    return oom_main(scenarios, (int)AQ_COUNT(scenarios));
}
