/* SPDX-License-Identifier: Apache-2.0 */
/* Does etcd answer? For "aliquot doctor". */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "manager/etcd/etcd_client.h"
#include "manager/etcd/etcd_wire.h"

#define TICK_MSEC 500

struct etcd_trial {
    struct etcd_client *client;
    const char *namespace;
    bool is_done;
    struct aq_error err;
};

static void etcd_trial_end(struct etcd_trial *trial, const struct aq_error *err)
{
    trial->is_done = true;
    trial->err = *err;
}

static void etcd_trial_on_range(void *data, int status, const char *text, size_t len,
                                const struct aq_error *failure)
{
    struct etcd_range_answer answer = { .count = 0 };
    struct aq_error err = *failure;

    if (!err.code && etcd_read_range(status, text, len, &answer, &err) == 0)
        etcd_pairs_done(&answer.pairs);
    etcd_trial_end(data, &err);
}

static void etcd_trial_read(struct etcd_trial *trial)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf body = STRBUF_INIT, key = STRBUF_INIT, end = STRBUF_INIT;
    struct aq_error err = { 0 };

    strbuf_addf(&key, "/sorna/%s/", trial->namespace);
    strbuf_addf(&end, "/sorna/%s0", trial->namespace);
    etcd_write_range(
        &body,
        &(struct etcd_range){
            .key = key.data, .key_len = key.len, .end = end.data, .limit = 1, .keys_only = true });
    if (etcd_client_call(trial->client, "/v3/kv/range", &body, etcd_trial_on_range, trial, &err)
        < 0)
        etcd_trial_end(trial, &err);
}

static void etcd_trial_on_login(void *data, const struct aq_error *err)
{
    if (err->code)
        etcd_trial_end(data, err);
    else
        etcd_trial_read(data);
}

static void etcd_trial_on_tick(uv_timer_t *timer)
{
    struct etcd_trial *trial = timer->data;

    etcd_client_end_late(trial->client);
}

/* One endpoint. */
static int etcd_trial_run(struct etcd_trial *trial, uv_loop_t *loop, struct aq_error *err)
{
    int r;

    trial->is_done = false;
    r = etcd_client_login(trial->client, etcd_trial_on_login, trial, err);
    if (r == -ENODATA)
        etcd_trial_read(trial);
    else if (r < 0)
        return r;
    while (!trial->is_done)
        (void)uv_run(loop, UV_RUN_ONCE);
    *err = trial->err;
    return -err->code;
}

int etcd_try(const struct etcd_settings *settings, struct aq_error *err)
{
    struct etcd_trial trial = { .namespace = settings->namespace };
    size_t failed = 0, count = settings->endpoints.count;
    struct aq_error problem = { 0 };
    uv_timer_t tick;
    uv_loop_t loop;
    int r;

    (void)uv_loop_init(&loop);
    if ((r = etcd_client_new(&loop, settings, &trial.client, err)) == 0) {
        (void)uv_timer_init(&loop, &tick);
        tick.data = &trial;
        (void)uv_timer_start(&tick, etcd_trial_on_tick, TICK_MSEC, TICK_MSEC);
        for (size_t i = 0; i < count; i++) {
            struct aq_error one = { 0 };

            if (etcd_trial_run(&trial, &loop, &one) < 0) {
                failed++;
                (void)aq_fail(&problem, EIO, "%s: %.250s", etcd_client_get_endpoint(trial.client),
                              one.text);
            }
            etcd_client_leave(trial.client);
        }
        if (failed) {
            *err = problem;
            err->code = failed < count ? EAGAIN : EIO;
            r = -err->code;
        }
        uv_close((uv_handle_t *)&tick, NULL);
        etcd_client_free(trial.client);
    }
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&loop);
    return r;
}
