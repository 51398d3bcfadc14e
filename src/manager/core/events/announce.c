/* SPDX-License-Identifier: Apache-2.0 */
/* announce.c - tells subscribers of sessions and kernels what an applied event has changed
 *
 * The names are listed in bus.h. What an owner sees of a session's way, a
 * preemption too, begins here.
 */
#include "manager/core/events/announce.h"

#include "base/clock.h"
#include "manager/core/bus.h"
#include "manager/core/events/bus_internal.h"
#include "manager/core/lookup.h"
#include "manager/core/state/state.h"

void announce(struct core *core, const char *name, const struct session_entry *l,
              const struct kernel *k, const char *reason, struct session_event_place place)
{
    const struct kernel *exited = k ? k : &l->s.kernels[0];
    struct core_event event = {
        .name = name,
        .session = &l->s,
        .kernel = k,
        .reason = reason ? reason : "",
        .has_exit = exited->has_exit,
        .exit_code = exited->exit_code,
        .at_usec = place.at_usec,
        .number = place.number,
    };

    if (!name || !core->is_started)
        return;
    core->last_event = place;
    bus_publish(core, &event);
}

struct session_event_place core_last_event(const struct core *core)
{
    return core->last_event;
}

void core_announce_execution(struct core *core, const struct uuid *session_id, const char *name,
                             const char *run_id, const int *exit_code)
{
    const struct core_event event = {
        .name = name,
        .session = core_find_session(core, session_id),
        .reason = "",
        .has_exit = exit_code != NULL,
        .exit_code = exit_code ? *exit_code : 0,
        .at_usec = clock_realtime_usec(),
        .run_id = run_id,
    };

    if (event.session)
        bus_publish(core, &event);
}
