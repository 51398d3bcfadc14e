/* SPDX-License-Identifier: Apache-2.0 */
/* A key of the configuration tree that two places keep. */
#include "manager/etcd/etcd_merge.h"

#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#define HASH_BYTES 16
#define NO_VALUE "-"

static void etcd_hash(const char *value, char ret[ETCD_HASH_MAX])
{
    unsigned char hash[HASH_BYTES];

    if (!value) {
        (void)snprintf(ret, ETCD_HASH_MAX, NO_VALUE);
        return;
    }
    (void)crypto_generichash(hash, sizeof(hash), (const unsigned char *)value, strlen(value), NULL,
                             0);
    (void)sodium_bin2hex(ret, ETCD_HASH_MAX, hash, sizeof(hash));
}

static bool etcd_hash_equals(const char *hash, const char *value)
{
    char other[ETCD_HASH_MAX];

    etcd_hash(value, other);
    return strcmp(*hash ? hash : NO_VALUE, other) == 0;
}

/* ---- bases ---- */

void etcd_base_write(struct strbuf *out, const struct etcd_base *base)
{
    strbuf_addf(out, "%" PRId64 " %s", base->mod_revision, *base->ours ? base->ours : NO_VALUE);
    for (size_t i = 0; i < ETCD_ASKED_MAX && *base->asked[i]; i++)
        strbuf_addf(out, " %s", base->asked[i]);
}

static bool etcd_hash_is_valid(const char *text, size_t len)
{
    return (len == 1 && *text == '-')
           || (len == 2 * HASH_BYTES && strspn(text, "0123456789abcdef") >= len);
}

int etcd_base_parse(const char *text, struct etcd_base *ret)
{
    struct etcd_base base = { .mod_revision = 0 };
    size_t digits = strspn(text, "0123456789"), count = 0;

    if (!digits || digits > 18)
        return -EINVAL;
    for (size_t i = 0; i < digits; i++)
        base.mod_revision = base.mod_revision * 10 + (text[i] - '0');
    for (text += digits; *text == ' '; count++) {
        size_t len = strcspn(++text, " ");

        if (count > ETCD_ASKED_MAX || !etcd_hash_is_valid(text, len))
            return -EINVAL;
        memcpy(count ? base.asked[count - 1] : base.ours, text, len);
        text += len;
    }
    if (*text || !count)
        return -EINVAL;
    *ret = base;
    return 0;
}

struct etcd_base etcd_base_agreed(const char *ours, int64_t mod_revision)
{
    struct etcd_base base = { .mod_revision = mod_revision };

    etcd_hash(ours, base.ours);
    return base;
}

static bool etcd_base_was_asked(const struct etcd_base *base, const char *value)
{
    for (size_t i = 0; i < ETCD_ASKED_MAX && *base->asked[i]; i++)
        if (etcd_hash_equals(base->asked[i], value))
            return true;
    return false;
}

void etcd_base_ask(struct etcd_base *base, const char *value)
{
    size_t count = 0;

    if (etcd_base_was_asked(base, value))
        return;
    while (count < ETCD_ASKED_MAX && *base->asked[count])
        count++;
    if (count == ETCD_ASKED_MAX) { /* the oldest goes */
        count--;
        memmove(base->asked[0], base->asked[1], count * ETCD_HASH_MAX);
    }
    etcd_hash(value, base->asked[count]);
}

/* ---- merging ---- */

static struct etcd_verdict etcd_merge_equal(const struct etcd_sides *sides,
                                            const struct etcd_base *base)
{
    bool is_recorded = base->mod_revision == sides->mod_revision && !*base->asked[0]
                       && etcd_hash_equals(base->ours, sides->ours);

    return (struct etcd_verdict){ is_recorded ? ETCD_LEAVE : ETCD_RECORD, false };
}

/* Ours is what counts, unless we never had the key. */
static struct etcd_verdict etcd_merge_without_history(const struct etcd_sides *sides)
{
    if (sides->ours || sides->base)
        return (struct etcd_verdict){ ETCD_PUSH, false };
    return (struct etcd_verdict){ sides->is_unusable ? ETCD_LEAVE : ETCD_TAKE, false };
}

struct etcd_verdict etcd_merge(const struct etcd_sides *sides)
{
    static const struct etcd_base none = { .mod_revision = 0 };
    const struct etcd_base *base = sides->base ? sides->base : &none;
    bool is_ours_changed, is_theirs_changed, was_asked;

    if (!sides->is_unusable
        && (sides->ours && sides->theirs ? strcmp(sides->ours, sides->theirs) == 0
                                         : !sides->ours && !sides->theirs))
        return etcd_merge_equal(sides, base);
    if (!sides->has_history)
        return etcd_merge_without_history(sides);
    was_asked = !sides->is_unusable && etcd_base_was_asked(base, sides->theirs);
    is_ours_changed = !etcd_hash_equals(base->ours, sides->ours);
    is_theirs_changed = !sides->is_unusable && sides->mod_revision != base->mod_revision
                        && !was_asked;
    if (is_theirs_changed && (!is_ours_changed || sides->theirs))
        return (struct etcd_verdict){ ETCD_TAKE, is_ours_changed };
    if (is_ours_changed || was_asked)
        return (struct etcd_verdict){ ETCD_PUSH, is_theirs_changed };
    return (struct etcd_verdict){ ETCD_LEAVE, false }; /* as a password that only we keep sealed */
}
