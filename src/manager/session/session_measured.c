/* SPDX-License-Identifier: Apache-2.0 */
/* What a session uses: the sum over its kernels. */
#include "manager/session/session.h"

bool session_sum_metric(const struct core *core, const struct session *s, const char *key,
                        struct metric *ret, struct metric_kind *ret_kind)
{
    bool has_any = false;

    *ret = (struct metric){ .capacity = -1 };
    for (size_t i = 0; i < s->kernel_count; i++) {
        const struct measured *m = core_kernel_measured(core, &s->kernels[i].id);
        const struct measured_item *item = m ? measured_find(m, key) : NULL;
        double capacity = item ? metric_capacity(&item->metric, item->kind) : -1;

        if (!item || !item->metric.at_usec)
            continue;
        ret->value += metric_current(&item->metric, item->kind);
        if (capacity >= 0)
            ret->capacity = AQ_MAX(ret->capacity, 0) + capacity;
        *ret_kind = (struct metric_kind){ item->kind->key, item->kind->unit, METRIC_VALUE, 0 };
        has_any = true;
    }
    return has_any;
}
