/* SPDX-License-Identifier: Apache-2.0 */
/* Ending what waits for sessions and arrays that are ended ("recursive"). */
#include "manager/session/session.h"

#include "model/array_range.h"

size_t session_end_dependents(const struct api *api, struct request *req,
                              const struct session_dependency *roots, size_t root_count,
                              bool forced, core_done_fn done, void *data)
{
    AQ_CLEANUP(core_dependents_done) struct core_dependents found = { .sessions = NULL };
    const char *reason = forced ? REASON_FORCE_TERMINATED : REASON_USER_REQUESTED;

    core_find_dependents(api->core, roots, root_count, &found);
    for (size_t i = 0; i < found.session_count; i++)
        core_terminate_session(api->core, &found.sessions[i], forced, reason, api_who(api, req),
                               done, data);
    for (size_t i = 0; i < found.array_count; i++) {
        AQ_CLEANUP(array_set_done) struct array_set elements = { 0 };
        const struct core_dependent_array *array = &found.arrays[i];

        if (!array->is_whole)
            (void)array_set_parse(array->indices.data, INT32_MAX, &elements, NULL, NULL);
        core_cancel_array(api->core, &array->id, array->is_whole ? NULL : &elements, forced,
                          api_who(api, req), done, data);
    }
    return found.session_count + found.array_count;
}
