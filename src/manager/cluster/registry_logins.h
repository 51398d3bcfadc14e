/* SPDX-License-Identifier: Apache-2.0 */
/* registry_logins.h - what container registries are logged in with, in the configuration tree
 *
 * As Backend.AI keeps them: the value of config/docker/registry/HOST is the registry's address,
 * below it are username and password, which is kept sealed.
 */
#ifndef AQ_MANAGER_CLUSTER_REGISTRY_LOGINS_H
#define AQ_MANAGER_CLUSTER_REGISTRY_LOGINS_H

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"

struct config_entries;
struct store_tx;

#define REGISTRY_KEY "config/docker/registry"

/* Is the key, as config_key_add() writes it, that of a registry's password? */
bool registry_logins_is_password(const char *key);

/* All registries by name, as config_tree_add() makes the tree below REGISTRY_KEY, with their
 * passwords sealed; the caller's (json_decref). On a thread of the store.
 */
int registry_tree_read(struct store_tx *tx, json_t **ret, struct aq_error *err);

/* Is the certificate of this registry of the tree checked when its images are read? */
bool registry_is_verified(const json_t *registry);

/* Of all registries of this tree with a user name and a password: the JSON object "auths" of
 * containers-auth.json(5), to be freed; NULL = there is none. A password that does not open is logged
 * and left out. On a thread of the store.
 */
int registry_logins_read(struct store_tx *tx, const json_t *tree, char **ret, struct aq_error *err);

/* The name of a registry as images' names have it, HOST[:PORT]; to be freed. -EINVAL with field
 * "name".
 */
int registry_name_read(const char *text, char **ret, struct aq_error *err);

/* Put a value of the registry: "" is its address, the others are "username", "password", "type",
 * "project" and "ssl-verify". -EINVAL with that as field: a user name that cannot be.
 */
int registry_put(struct config_entries *puts, const char *name, const char *what, const char *value,
                 struct aq_error *err);

/* The key of a registry; to be freed, NULL if memory is short. */
char *registry_key_of(const char *name);

#endif
