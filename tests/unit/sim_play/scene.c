/* SPDX-License-Identifier: Apache-2.0 */
#include "scene.h"

#include "sim/play/play_disk.h"
#include "store/query.h"

#define USER_KEY "AKIANABBDUSEREXAMPLE"
#define REQUESTS_MAX 256

struct play_manager *manager;
struct play_agent *agents[AGENTS];
simuv_host manager_host;

/* An answer may come after the caller has given up, or, from a manager that crashed, never. */
struct created {
    bool came;
    int r;
    struct uuid id;
    char error[128];
};

static struct created answers[REQUESTS_MAX];
static size_t answer_count;

void run_for(int64_t usec)
{
    simuv_run_until(simuv_now_usec() + usec, NULL, NULL);
}

/* ---- requests ---- */

static void on_created(void *data, int r, const struct aq_error *err,
                       const struct core_created *created)
{
    struct created *a = data;

    a->came = true;
    a->r = r;
    if (r < 0)
        (void)snprintf(a->error, sizeof(a->error), "%.100s", err->text);
    else
        a->id = created->id;
}

static const struct created *request(const char *command, const char *slot, int64_t amount)
{
    AQ_CLEANUP(slots_donep) struct slots wanted = { .items = NULL };
    struct session_request req = { .type = SESSION_BATCH,
                                   .spec.image = "host",
                                   .spec.command = command,
                                   .access_key = USER_KEY,
                                   .priority = -1 };
    const struct session_request *reqs = &req;
    struct created *a;
    char name[32];

    assert_true(answer_count < REQUESTS_MAX);
    a = &answers[answer_count++];
    (void)snprintf(name, sizeof(name), "test-%zu", answer_count);
    req.name = name;
    if (slot)
        assert_int_equal(slots_set(&wanted, slot_name_intern(slot, strlen(slot)), amount), 0);
    req.resources = wanted;
    if (!play_manager_core(manager))
        return a;
    simuv_enter(manager_host);
    core_create_sessions(play_manager_core(manager), &reqs, 1, NULL, NULL, on_created, a);
    simuv_leave();
    run_for(USEC_PER_SEC);
    return a;
}

bool try_to_submit(const char *command, const char *slot, int64_t amount, struct uuid *ret)
{
    const struct created *a = request(command, slot, amount);

    *ret = a->id;
    return a->came && a->r == 0;
}

struct uuid submit_with(const char *command, const char *slot, int64_t amount)
{
    const struct created *a = request(command, slot, amount);

    assert_true(a->came);
    assert_row(a->r == 0, "%s", a->error);
    return a->id;
}

struct uuid submit(const char *command)
{
    return submit_with(command, NULL, 0);
}

static void on_terminated(void *data, int r, const struct aq_error *err)
{
    bool *came = data;

    assert_row(r == 0, "%s", err->text);
    *came = true;
}

void terminate(const struct uuid *id)
{
    static bool came;

    came = false;
    simuv_enter(manager_host);
    core_terminate_session(play_manager_core(manager), id, false, REASON_USER_REQUESTED, NULL,
                           on_terminated, &came);
    simuv_leave();
    run_for(USEC_PER_SEC);
    assert_true(came);
}

/* ---- what has become of them ---- */

bool lives(const struct uuid *id)
{
    struct core *core = play_manager_core(manager);
    const struct session *s = core ? core_find_session(core, id) : NULL;

    return s && !session_is_terminal(s->status);
}

bool runs(const struct uuid *id)
{
    const struct session *s = core_find_session(play_manager_core(manager), id);

    return s && s->status == SESSION_RUNNING;
}

struct reading {
    struct uuid id;
    bool came, is_found;
    struct outcome outcome;
};

static int read_session(struct store_tx *tx, void *data, struct aq_error *err)
{
    const struct store_query query = { .with_kernels = true };
    AQ_CLEANUP(store_page_freep) struct store_page *page = NULL;
    struct reading *reading = data;
    const struct session_row *row;
    char id[UUID_TEXT_MAX];
    int r = store_find_sessions(tx, &query, uuid_format(&reading->id, id), &page, err);

    if (r < 0 || page->count != 1)
        return r;
    row = &page->sessions[0];
    reading->is_found = true;
    reading->outcome.status = row->session.status;
    if (row->session.reason)
        (void)snprintf(reading->outcome.reason, sizeof(reading->outcome.reason), "%s",
                       row->session.reason);
    reading->outcome.has_exit = row->kernels[0].kernel.has_exit;
    reading->outcome.exit_code = row->kernels[0].kernel.exit_code;
    return 0;
}

static void on_read(void *data, int result, const struct aq_error *err)
{
    struct reading *reading = data;

    assert_row(result == 0, "%s", err->text);
    reading->came = true;
}

struct outcome read_outcome(const struct uuid *id)
{
    struct reading reading = { .id = *id };

    simuv_enter(manager_host);
    store_read(core_store(play_manager_core(manager)), read_session, on_read, &reading);
    simuv_leave();
    run_for(USEC_PER_SEC);
    assert_true(reading.came);
    assert_true(reading.is_found);
    return reading.outcome;
}

/* ---- programs ---- */

static void on_program(void *data, const struct play_program *p)
{
    struct count *count = data;

    count->programs++;
    count->running += p->is_running;
    count->most_starts = AQ_MAX(count->most_starts, p->starts);
}

struct count count_programs(void)
{
    struct count count = { 0 };

    play_each_program(on_program, &count);
    return count;
}

/* ---- begin and end ---- */

int scene_begin(void **state)
{
    static const char *const ids[AGENTS] = { "node-1", "node-2", "node-3" };
    static const char *const ips[AGENTS] = { "10.0.1.1", "10.0.1.2", "10.0.1.3" };

    (void)state;
    simuv_begin(7);
    play_disk_register();
    manager_host = simuv_add_host("10.0.0.1");
    manager = play_manager_new(manager_host, "10.0.0.1", 8082);
    for (int i = 0; i < AGENTS; i++)
        agents[i] = play_agent_new(simuv_add_host(ips[i]), ips[i],
                                   &(struct play_agent_spec){ .id = ids[i],
                                                              .cpus = 4,
                                                              .memory = INT64_C(8) << 30,
                                                              .gpus = i == 0,
                                                              .whole_gpus = i == 1 },
                                   manager);
    run_for(MINUTE);
    return 0;
}

int scene_end(void **state)
{
    (void)state;
    for (int i = 0; i < AGENTS; i++)
        play_agent_stop(agents[i]);
    play_manager_free(manager);
    simuv_end();
    return 0;
}
