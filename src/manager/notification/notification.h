/* SPDX-License-Identifier: Apache-2.0 */
/* notification.h - which addresses callbacks of sessions and notifications may be sent to
 *
 * Loop's thread.
 */
#ifndef AQ_MANAGER_NOTIFICATION_NOTIFICATION_H
#define AQ_MANAGER_NOTIFICATION_NOTIFICATION_H

#include "http/network.h"
#include "manager/call/api.h"

#define DELIVERY_URL_MAX 1024

/* Networks that messages may reach, besides public addresses; borrowed. Before the first request.
 */
void notification_allow(struct api *api, const struct network *networks, size_t count);

/* As deliveries_check_url(): -EINVAL with 'field' for an address that messages may not reach. */
int notification_check_url(const struct api *api, const char *field, const char *url,
                           struct aq_error *err);

#endif
