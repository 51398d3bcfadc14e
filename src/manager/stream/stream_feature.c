/* SPDX-License-Identifier: Apache-2.0 */
/* Registers connections into sessions with the manager. */
#include "manager/stream/stream_feature.h"

static const struct route_table *const stream_routes[] = {
    &session_files_route_table, &session_ssh_route_table,
    &logs_route_table,          &pty_route_table,
    &app_control_route_table,   &exec_route_table,
    &execute_route_table,       &code_stream_route_table,
    &tunnel_route_table,        NULL
};

const struct feature stream_feature = {
    .name = "stream",
    .routes = stream_routes,
};
