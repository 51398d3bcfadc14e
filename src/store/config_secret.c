/* SPDX-License-Identifier: Apache-2.0 */
/* Texts that the store's key file seals: of the configuration tree, and of settings. */
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "store/config_entries.h"
#include "store/store_internal.h"
#include "store/transaction.h"

#define CONFIG_SECRET_PREFIX "sealed:"
#define CONFIG_SECRET_ROW "config_entries"
#define SETTING_SECRET_ROW "settings"
#define CONFIG_SECRET_BASE64 sodium_base64_VARIANT_ORIGINAL

/* free() it. */
static char *config_secret_write(const unsigned char *sealed, size_t len)
{
    size_t prefix = strlen(CONFIG_SECRET_PREFIX);
    size_t size = sodium_base64_encoded_len(len, CONFIG_SECRET_BASE64);
    char *text = aq_alloc(prefix + size);

    memcpy(text, CONFIG_SECRET_PREFIX, prefix);
    sodium_bin2base64(text + prefix, size, sealed, len, CONFIG_SECRET_BASE64);
    return text;
}

static int config_secret_open(const struct seal *seal, const char *row, const char *value,
                              char **ret, struct aq_error *err)
{
    size_t prefix = strlen(CONFIG_SECRET_PREFIX), max = strlen(value), len = 0;
    AQ_CLEANUP(aq_freep) unsigned char *sealed = NULL;
    AQ_CLEANUP(aq_freep) char *text = NULL;
    int r;

    if (strncmp(value, CONFIG_SECRET_PREFIX, prefix) != 0) {
        *ret = aq_strdup(value);
        return 0;
    }
    sealed = aq_alloc(max);
    text = aq_alloc(max);
    if (sodium_base642bin(sealed, max, value + prefix, max - prefix, NULL, &len, NULL,
                          CONFIG_SECRET_BASE64)
            < 0
        || len < SEAL_OVERHEAD)
        return aq_fail(err, EUCLEAN, "begins with '%s', and is no sealed value",
                       CONFIG_SECRET_PREFIX);
    r = seal_reveal(seal, row, sealed, len, text, err);
    if (r == 0)
        *ret = AQ_TAKE(text);
    return r;
}

static int config_secret_close(const struct seal *seal, const char *row, const char *value,
                               char **ret, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) unsigned char *sealed = NULL;
    size_t len = strlen(value);
    int r;

    if (strncmp(value, CONFIG_SECRET_PREFIX, strlen(CONFIG_SECRET_PREFIX)) == 0) {
        AQ_CLEANUP(aq_freep) char *text = NULL;

        r = config_secret_open(seal, row, value, &text, err);
        if (r == 0)
            *ret = aq_strdup(value);
        return r;
    }
    sealed = aq_alloc(len + SEAL_OVERHEAD);
    r = seal_close(seal, row, value, len, sealed, err);
    if (r == 0)
        *ret = config_secret_write(sealed, len + SEAL_OVERHEAD);
    return r;
}

int config_secret_reveal(struct store_tx *tx, const char *value, char **ret, struct aq_error *err)
{
    return config_secret_open(tx->seal, CONFIG_SECRET_ROW, value, ret, err);
}

int config_secret_seal(struct store_tx *tx, const char *value, char **ret, struct aq_error *err)
{
    return config_secret_close(tx->seal, CONFIG_SECRET_ROW, value, ret, err);
}

int setting_secret_reveal(const struct store *store, const char *value, char **ret,
                          struct aq_error *err)
{
    return config_secret_open(store->seal, SETTING_SECRET_ROW, value, ret, err);
}

int setting_secret_seal(const struct store *store, const char *value, char **ret,
                        struct aq_error *err)
{
    return config_secret_close(store->seal, SETTING_SECRET_ROW, value, ret, err);
}
