/* SPDX-License-Identifier: Apache-2.0 */
/* notification_feature.h - notifications and callbacks: the state that its files share, and their
 * tables of routes
 */
#ifndef AQ_MANAGER_NOTIFICATION_NOTIFICATION_FEATURE_H
#define AQ_MANAGER_NOTIFICATION_NOTIFICATION_FEATURE_H

#include "manager/call/feature.h"

struct notification_state {
    struct deliveries *deliveries;
    struct callbacks *callbacks; /* NULL = stopped */
    struct notifications *notifications;
};

API_ROUTES(notification);
API_ROUTES(notification_channel);
API_ROUTES(notification_rule);

extern const struct feature notification_feature;

#endif
