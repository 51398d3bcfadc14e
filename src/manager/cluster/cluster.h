/* SPDX-License-Identifier: Apache-2.0 */
/* cluster.h - the configuration tree, and container registries, which it keeps
 *
 * A change is written whole or not at all, with its entry in the audit log; then the keys
 * that mean something take effect.
 * Loop's thread only.
 */
#ifndef AQ_MANAGER_CLUSTER_CLUSTER_H
#define AQ_MANAGER_CLUSTER_CLUSTER_H

#include "manager/call/api.h"
#include "store/config_entries.h"

struct config_audit;
struct config_settings;
struct store_tx;

#define CONFIG_NAMED_MAX 100 /* keys without effect that a result names */

struct config_result {
    size_t added, changed, same, removed;
    size_t without_effect;
    json_t *named; /* array of these keys */
};

/* 'result' is there when r is 0. */
typedef void config_done_fn(void *data, const struct config_result *result, int r,
                            const struct aq_error *err);

/* From config_change_new(), filled by the caller. Keys are as config_key_add() writes them. */
struct config_change {
    char *from; /* removed; NULL = nothing */
    bool below; /* with what is below it */
    char *to;   /* it goes there with what is below it; NULL = nowhere */
    struct config_entries puts;
    char *object; /* the key of what is changed, which must be there; NULL = of nothing */
    bool is_new;  /* it must not be there */
    bool dry_run; /* find out what would be, and change nothing */
    /* Adds to 'puts' and 'removes' by what the tree is in the transaction, whose part it is; on the
     * store's thread. NULL = nothing is added.
     */
    int (*decide)(struct store_tx *tx, struct config_change *change, void *data,
                  struct aq_error *err);
    void *decide_data;
    struct config_entries removes; /* keys, each without what is below it */
    const char *action;            /* static: in the audit log, in place of its own name */

    /* config_change.c's own */
    struct api *api;
    struct config_settings *settings; /* afterwards */
    struct config_audit *audit;
    struct config_result result;
    config_done_fn *done;
    void *data;
};

/* By who asks. */
struct config_change *config_change_new(struct api *api, struct request *req);
/* The same of what no request asks for. */
struct config_change *config_change_new_by(struct api *api, const struct audit_who *by);
void config_change_free(struct config_change *change);
AQ_DEFINE_CLEANUP(struct config_change, config_change_free)

/* Takes the change, also if it fails. Results: -EINVAL
 * names a key with a value that it cannot have, -E2BIG, -ENOENT nothing to be moved, or no such
 * object, -EEXIST there is one.
 */
void config_change_start(struct config_change *change, config_done_fn *done, void *data);

/* Set a single key. */
void config_change_put(struct api *api, struct request *req, const char *key, const char *value,
                       config_done_fn *done, void *data);

/* Does a key mean something, 1 or 0? -EINVAL with the key as field if it does and cannot have
 * this value.
 */
int config_known_check(const char *key, const char *value, struct aq_error *err);
/* Is the key that of a registry's password, which is kept sealed? */
bool registry_logins_is_password(const char *key);

/* Call 'changed' after each change of the tree; NULL = no more. */
void cluster_follow_tree(struct api *api, void (*changed)(void *data), void *data);

/* ---- what the tree says ---- */

/* Which web pages may use the API as long as the configuration tree says no others; the list is
 * borrowed. Returns the rules in effect, which change, for server_options.
 */
const struct origin_rules *cluster_set_origins(struct api *api, const struct origin_rules *own);

/* The container registries of the tree by name, as registry_tree_read() gives them; borrowed until
 * the loop runs again.
 */
const json_t *cluster_registries(const struct api *api);

/* ---- container registries ----
 *
 * As Backend.AI keeps them: the value of config/docker/registry/HOST is the registry's address,
 * below it are username and password, which is kept sealed.
 */

#define REGISTRY_KEY "config/docker/registry"

/* All registries by name, as config_tree_add() makes the tree below REGISTRY_KEY, with their
 * passwords sealed; the caller's (json_decref). On a thread of the store.
 */
int registry_tree_read(struct store_tx *tx, json_t **ret, struct aq_error *err);

/* Is the certificate of this registry of the tree checked when its images are read? */
bool registry_is_verified(const json_t *registry);

/* The name of a registry as images' names have it, HOST[:PORT]; to be freed. -EINVAL with field
 * "name".
 */
int registry_name_read(const char *text, char **ret, struct aq_error *err);

/* Put a value of the registry: "" is its address, the others are "username", "password", "type",
 * "project" and "ssl-verify". -EINVAL with that as field: a user name that cannot be.
 */
int registry_put(struct config_entries *puts, const char *name, const char *what, const char *value,
                 struct aq_error *err);

/* The key of a registry; to be freed. */
char *registry_key_of(const char *name);

#endif
