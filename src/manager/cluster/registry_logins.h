/* SPDX-License-Identifier: Apache-2.0 */
/* registry_logins.h - what container registries are logged in with, in the configuration tree
 * (cluster.h)
 */
#ifndef AQ_MANAGER_CLUSTER_REGISTRY_LOGINS_H
#define AQ_MANAGER_CLUSTER_REGISTRY_LOGINS_H

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"

struct store_tx;

/* Of all registries of this tree with a user name and a password: the JSON object "auths" of
 * containers-auth.json(5), to be freed; NULL = there is none. A password that does not open is
 * logged and left out. On a thread of the store.
 */
char *registry_logins_read(struct store_tx *tx, const json_t *tree);

#endif
