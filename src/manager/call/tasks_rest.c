/* SPDX-License-Identifier: Apache-2.0 */
/* GET /events/background-task: server-sent events of a task. */
#include "manager/call/feature.h"
#include "manager/call/tasks.h"

struct background_task_params {
    struct uuid id;
};

static const struct field background_task_fields[] = {
    { "task_id|taskId", FIELD_UUID, FIELD_REQUIRED, offsetof(struct background_task_params, id) },
    FIELD_END,
};

static void tasks_on_follow(struct request *req, void *data)
{
    struct background_task_params params = { .id = { .bytes = { 0 } } };
    struct api *api = data;
    struct aq_error err = { 0 };

    if (api_decode(req, &params, NULL, &err) < 0
        || tasks_follow(api->tasks, &params.id, req, &err) < 0)
        request_fail(req, &err);
}

static const struct route background_task_routes[] = {
    { METHOD_GET, "/events/background-task", API_USER, tasks_on_follow, background_task_fields,
      "How far a background task is, as server-sent events",
      .answer = { .types = "text/event-stream" } },
};
API_ROUTES_END(background_task);

static const struct route_table *const tasks_tables[] = { &background_task_route_table, NULL };

const struct feature tasks_feature = { .name = "tasks", .routes = tasks_tables };
