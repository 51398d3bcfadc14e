/* SPDX-License-Identifier: Apache-2.0 */
/* fair_share_settings.h - how a resource group weighs what was used
 *
 * The member "fair_share" of its scheduler_opts: half_life_days, lookback_days,
 * default_weight, and weights as "slot:NAME", "domain:NAME", "project:ID",
 * "user:ID" and, of a user in one project, "user:ID/PROJECT-ID".
 */
#ifndef AQ_MANAGER_CORE_FAIR_SHARE_SETTINGS_H
#define AQ_MANAGER_CORE_FAIR_SHARE_SETTINGS_H

#include "manager/core/scheduling/usage_ledger.h"

struct json_t;

#define FAIR_LOOKBACK_MAX_DAYS 366

struct fair_share_settings {
    double half_life_days, lookback_days, default_weight;
    struct json_t *all;
};

/* NULL = none. -EINVAL names the key. */
int fair_share_settings_check(struct json_t *from, struct aq_error *err);

/* Of a resource group; done with fair_share_settings_done(). */
struct fair_share_settings fair_share_settings_read(const struct resource_group *g);
void fair_share_settings_done(struct fair_share_settings *s);

double fair_share_settings_slot_weight(const struct fair_share_settings *s, const char *slot);
double fair_share_settings_weight(const struct fair_share_settings *s, enum core_fair_level level,
                                  const struct usage_ledger_holder *h);

/* Who has a weight of their own: a project and a user of a project without their domain. */
void fair_share_settings_each(const struct fair_share_settings *s,
                              void (*visit)(void *data, const struct core_fair_row *whom),
                              void *data);

#endif
