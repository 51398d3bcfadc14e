/* SPDX-License-Identifier: Apache-2.0 */
/* Registers connections into sessions with the manager. */
#include "manager/stream/stream_feature.h"

#include <stdlib.h>

#include "base/memory.h"
#include "manager/stream/app_proxy.h"
#include "manager/stream/log_quota.h"

static const struct route_table *const stream_routes[] = {
    &session_files_route_table, &session_ssh_route_table,
    &logs_route_table,          &pty_route_table,
    &app_control_route_table,   &exec_route_table,
    &execute_route_table,       &code_stream_route_table,
    &tunnel_route_table,        NULL
};

static int stream_feature_open(struct api *api, struct aq_error *err)
{
    (void)err;
    api->stream = aq_alloc(sizeof(*api->stream));
    api->stream->log_quota = log_quota_new();
    api->stream->app_proxy = app_proxy_new(api);
    return 0;
}

static void stream_feature_stop(struct api *api)
{
    app_proxy_stop(api->stream->app_proxy);
}

static void stream_feature_close(struct api *api)
{
    if (!api->stream)
        return;
    app_proxy_free(api->stream->app_proxy);
    log_quota_free(api->stream->log_quota);
    free(api->stream);
}

void stream_set_transfer_limits(struct api *api, const struct transfer_limits *limits)
{
    api->stream->transfer_limits = *limits;
}

void stream_set_ticket_lifetime(struct api *api, int64_t usec)
{
    app_proxy_set_ticket_lifetime(api->stream->app_proxy, usec);
}

void stream_set_execution_timeout(struct api *api, int64_t usec)
{
    api->stream->execution_timeout_usec = usec;
}

const struct feature stream_feature = {
    .name = "stream",
    .routes = stream_routes,
    .open = stream_feature_open,
    .stop = stream_feature_stop,
    .close = stream_feature_close,
};
