/* places.c - agents where a place is set aside for a session that does not start there yet
 *
 * For one that is moved, from the decision until it has started there; for one
 * that others make room for, until they have gone. What is written is the
 * agent of each kernel, in the status_data of whoever is moved ("moved_to")
 * and in the explanation of whoever waits ("places"): the next manager tells
 * its scheduler (kept.c), so neither has to queue for what it was promised.
 */
#include <jansson.h>
#include <string.h>

#include "base/clock.h"
#include "base/jsonw.h"
#include "manager/core/parts.h"

void places_set(struct live *l, const char *const *agents)
{
    l->rgroup->promised -= l->places != NULL;
    for (size_t k = 0; l->places && k < l->s.kernel_count; k++)
        free(l->places[k]);
    free(AQ_TAKE(l->places));
    l->places_unsaid = false;
    if (!agents || !(l->places = calloc(l->s.kernel_count, sizeof(char *))))
        return;
    l->rgroup->promised++;
    for (size_t k = 0; k < l->s.kernel_count; k++)
        if (!(l->places[k] = strdup(agents[k]))) {
            places_set(l, NULL);
            return;
        }
}

/* An agent for each kernel, or one for all of them, as earlier versions wrote. */
static void read_places(struct live *l, const json_t *from)
{
    const char **agents = calloc(l->s.kernel_count + 1, sizeof(*agents));
    size_t found = 0;

    for (size_t k = 0; agents && k < l->s.kernel_count; k++) {
        const json_t *one = json_is_array(from) ? json_array_get(from, k) : from;

        if ((agents[k] = json_string_value(one)))
            found++;
    }
    if (found == l->s.kernel_count)
        places_set(l, agents);
    free(agents);
}

void places_load(struct live *l)
{
    const char *key = preempt_is_leaving(&l->s) || l->s.status == SESSION_PENDING ? PLACES_MOVED
                                                                                 : NULL;
    json_t *data;

    if (!key || !l->s.status_data)
        return;
    data = json_loads(l->s.status_data, 0, NULL);
    if (l->s.status == SESSION_PENDING && json_object_get(data, PLACES_PROMISED))
        key = PLACES_PROMISED;
    read_places(l, json_object_get(data, key));
    json_decref(data);
}

void places_write(const struct live *l, const char *key, struct jsonw *w)
{
    if (!l->places)
        return;
    jsonw_key(w, key);
    jsonw_array_begin(w);
    for (size_t k = 0; k < l->s.kernel_count; k++)
        jsonw_str(w, l->places[k]);
    jsonw_array_end(w);
}

/* 0 = there is nothing to wait for. */
static int64_t due_of(const struct core *core, const struct live *l, const char *agent_id)
{
    const struct agent_live *a = agent_find(core, agent_id);

    if (!a || !a->is_known || a->a.status != AGENT_ALIVE || !a->a.schedulable || agent_is_ready(a))
        return 0;
    return age_due(core, l, core->conf.agent_timeout_usec);
}

int64_t places_due(const struct core *core, const struct live *l)
{
    int64_t due = 0;

    for (size_t k = 0; l->places && !l->is_preempting && k < l->s.kernel_count; k++)
        due = AQ_MAX(due, due_of(core, l, l->places[k]));
    return due;
}
