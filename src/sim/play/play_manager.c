/* SPDX-License-Identifier: Apache-2.0 */
/* A real manager's core on a simulated machine: its start, its crashes and boots. */
#include "sim/play/play_manager.h"

#include <fcntl.h>
#include <stdlib.h>
#include <uv.h>

#include "base/fs.h"
#include "base/log.h"
#include "base/memory.h"
#include "manager/core/core.h"
#include "sim/play/play_disk.h"

#define RETRY_USEC (5 * USEC_PER_SEC)

struct play_manager {
    simuv_host host;
    const char *ip;
    uint16_t link_port;
    char *scratch, *state, *address;
    uv_loop_t *loop; /* of this process; those that crashed are abandoned */
    struct core *core;
    play_manager_ended_fn on_ended; /* NULL = nobody listens */
    void *on_ended_data;
    struct aq_error lost; /* why the core asked for its end */
    uint32_t boots;
    bool must_crash, has_crashed, is_retrying, is_free;
};

static void play_manager_on_retry(void *data)
{
    struct play_manager *m = data;

    if (m->is_retrying && !m->is_free)
        play_manager_boot(m);
}

/* As systemd has it: it is started again after some seconds. */
static void play_manager_end(struct play_manager *m, const struct aq_error *why)
{
    play_manager_crash(m, false);
    m->is_retrying = true;
    simuv_at(simuv_now_usec() + RETRY_USEC, play_manager_on_retry, m);
    if (m->on_ended)
        m->on_ended(m->on_ended_data, why->text);
}

static void play_manager_on_lost_later(void *data)
{
    struct play_manager *m = data;

    if (m->must_crash && m->core)
        play_manager_end(m, &m->lost);
}

/* Not while its code runs. */
static void play_manager_on_lost(void *data, const struct aq_error *err)
{
    struct play_manager *m = data;

    if (m->must_crash)
        return;
    log_error("the manager lost its database: %s", err->text);
    m->must_crash = true;
    m->lost = *err;
    simuv_at(simuv_now_usec(), play_manager_on_lost_later, m);
}

static int play_manager_try(struct play_manager *m, struct aq_error *err)
{
    const struct core_conf conf = { .loop = m->loop,
                                    .state_dir = m->state,
                                    .lost = play_manager_on_lost,
                                    .lost_data = m,
                                    .link_host = m->ip,
                                    .link_port = m->link_port,
                                    .link_names = &m->ip,
                                    .link_name_count = 1,
                                    .heartbeat_usec = PLAY_HEARTBEAT_USEC,
                                    .agent_timeout_usec = PLAY_DEAD_USEC,
                                    .ping_usec = PLAY_PING_USEC,
                                    .dead_usec = PLAY_DEAD_USEC,
                                    .dev = true };
    struct core *core = NULL;
    int r = core_new(&conf, &core, err);

    if (r == 0)
        r = core_start(core, err);
    if (r == 0)
        m->core = core;
    return r;
}

void play_manager_boot(struct play_manager *m)
{
    struct aq_error err = { 0 };
    int r;

    if (m->has_crashed)
        simuv_boot(m->host);
    m->has_crashed = m->is_retrying = false;
    m->boots++;
    simuv_enter(m->host);
    m->must_crash = false;
    m->loop = aq_alloc(sizeof(*m->loop));
    (void)uv_loop_init(m->loop);
    r = play_manager_try(m, &err);
    simuv_leave();
    if (r == 0)
        return;
    log_error("the manager cannot start: %s", err.text);
    play_manager_end(m, &err);
}

struct play_manager *play_manager_new(simuv_host host, const char *ip, uint16_t link_port)
{
    const char *below = getenv("TMPDIR");
    struct play_manager *m = aq_alloc(sizeof(*m));

    *m = (struct play_manager){ .host = host, .ip = ip, .link_port = link_port };
    m->scratch = aq_format("%s/aliquot-play-XXXXXX", below ? below : "/dev/shm");
    if (!mkdtemp(m->scratch)) {
        log_error("cannot make '%s'; set TMPDIR to a folder that can be written", m->scratch);
        exit(EXIT_FAILURE);
    }
    m->state = aq_format("%s/manager", m->scratch);
    m->address = aq_format("%s:%u", ip, link_port);
    play_manager_boot(m);
    if (!m->core)
        exit(EXIT_FAILURE);
    return m;
}

struct core *play_manager_core(struct play_manager *m)
{
    return m->must_crash ? NULL : m->core;
}

uint32_t play_manager_boots(const struct play_manager *m)
{
    return m->boots;
}

void play_manager_crash(struct play_manager *m, bool is_silent)
{
    m->is_retrying = false;
    if (m->has_crashed)
        return;
    m->core = NULL;
    m->loop = NULL;
    m->has_crashed = true;
    simuv_crash(m->host, is_silent);
    play_disk_crash(m->host);
}

void play_manager_stop(struct play_manager *m)
{
    if (!m->core)
        return;
    simuv_enter(m->host);
    core_stop(m->core);
    core_free(AQ_TAKE(m->core));
    (void)uv_run(m->loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(m->loop);
    free(AQ_TAKE(m->loop));
    simuv_leave();
}

void play_manager_on_ended(struct play_manager *m, play_manager_ended_fn fn, void *data)
{
    m->on_ended = fn;
    m->on_ended_data = data;
}

const char *play_manager_scratch(const struct play_manager *m)
{
    return m->scratch;
}

const char *play_manager_address(const struct play_manager *m)
{
    return m->address;
}

void play_manager_free(struct play_manager *m)
{
    play_manager_stop(m);
    m->is_free = true; /* an event may still come */
    (void)fs_remove_tree(AT_FDCWD, m->scratch, NULL);
}
