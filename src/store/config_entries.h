/* SPDX-License-Identifier: Apache-2.0 */
/* config_entries.h - the configuration tree as rows of key and value
 *
 * Keys are written as model/config_key.h says. For functions given to store_write() (all)
 * and store_read() (config_entries_read).
 */
#ifndef AQ_STORE_CONFIG_ENTRIES_H
#define AQ_STORE_CONFIG_ENTRIES_H

#include "store/store.h"

struct config_entry {
    char *key, *value;
};

/* Zeroed = none. */
struct config_entries {
    struct config_entry *items;
    size_t count, cap;
};

void config_entries_done(struct config_entries *entries);
/* Both texts are copied. */
void config_entries_add(struct config_entries *entries, const char *key, const char *value);

/* Append what is at 'key' and, with 'below', under it ("" = everything), sorted by key. */
int config_entries_read(struct store_tx *tx, const char *key, bool below,
                        struct config_entries *ret, struct aq_error *err);

int config_entry_put(struct store_tx *tx, const char *key, const char *value, struct aq_error *err);

/* How many there were. */
int config_entries_remove(struct store_tx *tx, const char *key, bool below, struct aq_error *err);

/* A value as only the store's key file opens it: text that begins with "sealed:", which a
 * value that is sealed already stays. *ret is to be freed. -EUCLEAN, -EKEYREJECTED: it says that it
 * is sealed, and does not open.
 */
int config_secret_seal(struct store_tx *tx, const char *value, char **ret, struct aq_error *err);
/* The value again; one that is not sealed is copied. */
int config_secret_reveal(struct store_tx *tx, const char *value, char **ret, struct aq_error *err);

/* The same for members of settings, on any thread. */
int setting_secret_seal(const struct store *store, const char *value, char **ret,
                        struct aq_error *err);
int setting_secret_reveal(const struct store *store, const char *value, char **ret,
                          struct aq_error *err);

/* -E2BIG if there are more, or more text, than the tree may hold. */
int config_entries_check_size(struct store_tx *tx, struct aq_error *err);

#endif
