/* SPDX-License-Identifier: Apache-2.0 */
/* login_end.h - which changes of users and keypairs end their logins by browsers
 *
 * The store removes the logins together with the change (event.ends_logins); the web servers, which
 * keep them in memory, hear of it by core_on_login_end() once the change is durable.
 */
#ifndef AQ_MANAGER_CORE_ACCOUNTS_LOGIN_END_H
#define AQ_MANAGER_CORE_ACCOUNTS_LOGIN_END_H

#include <stdbool.h>

struct core;
struct event;

/* Does a user or keypair that is to be saved lose its logins: blocked, or with another password or
 * secret? Asked before the row is taken into memory.
 */
bool login_end_is_due(const struct core *core, const struct event *e);

/* Call the function of core_on_login_end(), if the event ends logins; before the event's row is
 * taken into memory.
 */
void login_end_tell(const struct core *core, const struct event *e);

#endif
