/* SPDX-License-Identifier: Apache-2.0 */
/* A leader shows that it is alive. */
#include "manager/core/state/lead_beat.h"

#include "base/log.h"
#include "link/link.h"
#include "manager/core/state/state.h"
#include "store/store.h"

static int64_t lead_beat_age(const struct core *core)
{
    return core->has_rivals ? clock_monotonic_usec() - store_get_renewed_usec(core->store) : 0;
}

void lead_beat_check(struct core *core)
{
    bool is_in_doubt = lead_beat_age(core) > LEAD_DOUBT_USEC;

    if (is_in_doubt == core->is_in_doubt || !core->link || core->has_lost)
        return;
    core->is_in_doubt = is_in_doubt;
    link_server_hold(core->link, is_in_doubt);
    if (is_in_doubt)
        log_warning("no commit for %d s: orders to agents wait, as another manager may lead",
                    (int)(LEAD_DOUBT_USEC / USEC_PER_SEC));
    else
        log_info("commits are made again: orders to agents go out");
}

void lead_beat_lose(struct core *core)
{
    core->has_lost = true;
    if (core->link)
        link_server_hold(core->link, true);
}

bool lead_beat_may_renew(const struct core *core)
{
    return !core->has_lost && (lead_beat_age(core) < LEAD_SILENT_USEC || core->stand_by(core));
}

static void lead_beat_on_timer(uv_timer_t *timer)
{
    struct core *core = timer->data;

    lead_beat_check(core);
    store_beat(core->store);
}

void lead_beat_start(struct core *core)
{
    core->has_rivals = core->conf.database && store_is_server(core->conf.database);
    if (core->has_rivals)
        (void)uv_timer_start(&core->beat, lead_beat_on_timer, LEAD_BEAT_USEC / USEC_PER_MSEC,
                             LEAD_BEAT_USEC / USEC_PER_MSEC);
}
