/* fair_settings.h - how a resource group weighs what was used
 *
 * The member "fair_share" of its scheduler_opts: half_life_days, lookback_days,
 * default_weight, and weights as "slot:NAME", "domain:NAME", "project:ID" and
 * "user:ID".
 */
#ifndef AQ_MANAGER_CORE_FAIR_SETTINGS_H
#define AQ_MANAGER_CORE_FAIR_SETTINGS_H

#include "manager/core/usage_book.h"

struct json_t;

#define FAIR_LOOKBACK_MAX_DAYS 366

struct fair_settings {
    double half_life_days, lookback_days, default_weight;
    struct json_t *all;
};

/* NULL = none. -EINVAL names the key. */
int fair_settings_check(struct json_t *from, struct aq_error *err);

/* Of a resource group; done with fair_settings_done(). */
void fair_settings_read(const struct resource_group *g, struct fair_settings *ret);
void fair_settings_done(struct fair_settings *s);

double fair_settings_slot_weight(const struct fair_settings *s, const char *slot);
double fair_settings_weight(const struct fair_settings *s, enum core_fair_level level,
                            const struct usage_holder *h);

#endif
