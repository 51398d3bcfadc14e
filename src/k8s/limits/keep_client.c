/* SPDX-License-Identifier: Apache-2.0 */
/* keep_client.c - see keep_client.h */
#include "k8s/limits/keep_client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"

#define AGAIN_MSEC_MIN 1000
#define AGAIN_MSEC_MAX 30000
#define SILENT_MSEC 3000 /* a list that is not there by then */

struct keep_client {
    struct keep_client_conf conf;
    struct sockaddr_un address;
    int fd; /* -1 = nobody is there */
    uv_poll_t *poll;
    bool is_listed, is_missed;
    unsigned again_msec;
    uv_timer_t timer; /* its closing frees all this */
};

static void keep_client_try(uv_timer_t *timer);

/* ---- the connection ---- */

/* The descriptor is closed after the handle, which may outlive the client. */
static void keep_client_on_poll_closed(uv_handle_t *handle)
{
    int fd = (int)(intptr_t)handle->data;

    aq_closep(&fd);
    free(handle);
}

static void keep_client_disconnect(struct keep_client *client)
{
    uv_poll_t *poll = AQ_TAKE(client->poll);

    if (!poll)
        return;
    (void)uv_poll_stop(poll);
    poll->data = (void *)(intptr_t)AQ_TAKE_FD(client->fd);
    uv_close((uv_handle_t *)poll, keep_client_on_poll_closed);
}

static void keep_client_fail(struct keep_client *client, const char *why)
{
    bool was_listed = client->is_listed;

    keep_client_disconnect(client);
    if (!client->is_missed)
        log_warning("nobody keeps the memory of slices, which are lost if this ends: %s: %s",
                    client->address.sun_path, why);
    client->is_missed = true;
    client->is_listed = true;
    client->again_msec = AQ_MIN(AQ_MAX(client->again_msec * 2, AGAIN_MSEC_MIN), AGAIN_MSEC_MAX);
    (void)uv_timer_start(&client->timer, keep_client_try, client->again_msec, 0);
    if (!was_listed)
        client->conf.on_listed(client->conf.data, false);
}

static void keep_client_on_end(struct keep_client *client)
{
    if (client->is_missed)
        log_info("the memory of slices is kept again");
    client->is_missed = false;
    client->is_listed = true;
    client->again_msec = 0;
    (void)uv_timer_stop(&client->timer);
    client->conf.on_listed(client->conf.data, true);
}

static void keep_client_on_readable(uv_poll_t *poll, int status, int events)
{
    struct keep_client *client = poll->data;
    struct keep_message message;
    int files[KEEP_FILES];
    int r = status < 0 ? -ECONNRESET : keep_message_receive(client->fd, &message, files);

    (void)events;
    if (r == 0)
        return;
    if (r > 0 && message.kind == KEEP_ENTRY && files[0] >= 0 && files[1] >= 0) {
        client->conf.on_entry(client->conf.data, message.key, message.text, files);
        return;
    }
    for (size_t i = 0; r > 0 && i < KEEP_FILES; i++)
        aq_closep(&files[i]);
    if (r > 0 && message.kind == KEEP_END)
        keep_client_on_end(client);
    else
        keep_client_fail(client, r == -ECONNRESET ? "it has ended" : "it says what cannot be");
}

static int keep_client_connect(struct keep_client *client)
{
    const struct timeval patience = { .tv_sec = 1 };
    AQ_CLEANUP(aq_closep) int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    uv_poll_t *poll;
    int r;

    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) < 0
        || connect(fd, (const struct sockaddr *)&client->address, sizeof(client->address)) < 0)
        return -errno;
    poll = aq_alloc(sizeof(*poll));
    r = uv_poll_init(client->conf.loop, poll, fd);
    if (r < 0) {
        free(poll);
        return r;
    }
    poll->data = client;
    client->poll = poll;
    client->fd = AQ_TAKE_FD(fd);
    (void)uv_poll_start(poll, UV_READABLE, keep_client_on_readable);
    return keep_message_send(client->fd, KEEP_LIST, "", "", NULL);
}

/* Connect; or what was asked for has not come. */
static void keep_client_try(uv_timer_t *timer)
{
    struct keep_client *client = timer->data;
    int r;

    if (client->poll) {
        keep_client_fail(client, "it does not answer");
        return;
    }
    r = keep_client_connect(client);
    if (r < 0)
        keep_client_fail(client, strerror(-r));
    else
        (void)uv_timer_start(timer, keep_client_try, SILENT_MSEC, 0);
}

/* ---- what is kept ---- */

static void keep_client_send(struct keep_client *client, enum keep_kind kind, const char *key,
                             const char *text, const int files[KEEP_FILES])
{
    int r = client->poll ? keep_message_send(client->fd, kind, key, text, files) : 0;

    if (r < 0)
        keep_client_fail(client, strerror(-r));
}

void keep_client_put(struct keep_client *client, const char *key, const char *text,
                     const int files[KEEP_FILES])
{
    keep_client_send(client, KEEP_PUT, key, text, files);
}

void keep_client_drop(struct keep_client *client, const char *key)
{
    keep_client_send(client, KEEP_DROP, key, "", NULL);
}

/* ---- life ---- */

int keep_client_new(const struct keep_client_conf *conf, struct keep_client **ret,
                    struct aq_error *err)
{
    struct keep_client *client = aq_alloc(sizeof(*client));
    int r = keep_address(conf->folder, &client->address, err);

    if (r < 0) {
        free(client);
        return r;
    }
    client->conf = *conf;
    client->fd = -1;
    (void)uv_timer_init(conf->loop, &client->timer);
    client->timer.data = client;
    (void)uv_timer_start(&client->timer, keep_client_try, 0, 0);
    *ret = client;
    return 0;
}

static void keep_client_on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void keep_client_free(struct keep_client *client)
{
    if (!client)
        return;
    keep_client_disconnect(client);
    uv_close((uv_handle_t *)&client->timer, keep_client_on_closed);
}
