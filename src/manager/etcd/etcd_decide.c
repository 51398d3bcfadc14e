/* SPDX-License-Identifier: Apache-2.0 */
/* A pass over the whole tree. */
#include "manager/etcd/etcd_decide.h"

#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/vec.h"
#include "manager/etcd/etcd_merge.h"
#include "model/config_key.h"
#include "store/setting.h"

/* ---- histories ---- */

void etcd_history_done(struct etcd_history *history)
{
    free(history->witness);
    *history = (struct etcd_history){ .cluster_id = 0 };
}

static char *etcd_history_name(const char *namespace)
{
    return aq_format("etcd.history/%s", namespace);
}

int etcd_history_load(struct store_tx *tx, const char *namespace, struct etcd_history *ret,
                      struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    AQ_CLEANUP(aq_freep) char *name = etcd_history_name(namespace);
    struct etcd_history found = { .cluster_id = 0 };
    int r = setting_get(tx, name, &text, err), at = 0;
    size_t len;

    *ret = found;
    if (r < 0)
        return r == -ENOENT ? 0 : r;
    if (sscanf(text.data, "%" SCNu64 " %" SCNd64 " %" SCNd64 " %n", &found.cluster_id,
               &found.revision, &found.witness_revision, &at)
            < 3
        || !at)
        return aq_fail(err, EUCLEAN, "setting '%s' is damaged: '%.100s'", name, text.data);
    len = text.len - (size_t)at;
    found.witness = aq_alloc(len / 2 + 1);
    if (sodium_hex2bin((unsigned char *)found.witness, len / 2, text.data + at, len, NULL,
                       &found.witness_len, NULL)
            < 0
        || found.witness_len != len / 2) {
        free(found.witness);
        return aq_fail(err, EUCLEAN, "setting '%s' is damaged: '%.100s'", name, text.data);
    }
    *ret = found;
    return 0;
}

/* Both have the same now, at the view's revision. */
static int etcd_history_save(struct store_tx *tx, struct etcd_pass *pass, struct aq_error *err)
{
    const struct map_entry *latest = etcd_view_find_latest(pass->view);
    AQ_CLEANUP(aq_freep) char *name = etcd_history_name(pass->namespace);
    AQ_CLEANUP(aq_freep) char *text = NULL, *hex = NULL;
    struct etcd_history *agreed = &pass->agreed;
    size_t len = latest ? latest->key_len : 0;

    agreed->revision = pass->view->revision;
    agreed->witness_revision = latest ? ((struct etcd_entry *)latest->value)->mod_revision : 0;
    agreed->witness = aq_alloc(len + 1);
    agreed->witness_len = len;
    memcpy(agreed->witness, latest ? latest->key : "", len);
    hex = aq_alloc(2 * len + 1);
    (void)sodium_bin2hex(hex, 2 * len + 1, (const unsigned char *)agreed->witness, len);
    agreed->cluster_id = pass->cluster_id;
    text = aq_format("%" PRIu64 " %" PRId64 " %" PRId64 " %s", agreed->cluster_id, agreed->revision,
                     agreed->witness_revision, hex);
    return setting_set(tx, name, text, err);
}

/* ---- a key ---- */

void etcd_pushes_done(struct etcd_pushes *pushes)
{
    for (size_t i = 0; i < pushes->count; i++) {
        free(pushes->items[i].raw);
        free(pushes->items[i].value);
    }
    free(pushes->items);
    *pushes = (struct etcd_pushes){ 0 };
}

void etcd_pass_done(struct etcd_pass *pass)
{
    etcd_pushes_done(&pass->pushes);
    config_entries_done(&pass->lost);
    config_entries_done(&pass->refused);
    etcd_history_done(&pass->agreed);
    *pass = (struct etcd_pass){ .namespace = NULL };
}

/* The pass at one key. */
struct etcd_step {
    struct store_tx *tx;
    struct config_change *change;
    struct etcd_pass *pass;
    size_t keys, bytes; /* of our tree, with what was taken */
    bool is_recorded;   /* a base was written */
    struct map made;    /* key -> struct etcd_push that etcd has done */

    const char *key;
    const char *ours;             /* NULL = none */
    const char *base_text;        /* NULL = none */
    const struct etcd_item *item; /* in etcd; NULL = none */
    struct etcd_base base;
    const struct etcd_push *push; /* that etcd has done; NULL = none */
    char *sealed;                 /* what is kept in place of theirs; NULL = theirs */
};

static int etcd_step_save_base(struct etcd_step *step, const struct etcd_base *base,
                               struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    AQ_CLEANUP(aq_freep) char *name = aq_format("etcd/%s/%s", step->pass->namespace, step->key);

    step->is_recorded = true;
    if (!base)
        return setting_remove(step->tx, name, err);
    etcd_base_write(&text, base);
    return setting_set(step->tx, name, text.data, err);
}

/* A password is kept sealed here, and etcd may have it in the clear: are they the same? */
static bool etcd_step_is_same_secret(struct etcd_step *step)
{
    AQ_CLEANUP(aq_freep) char *ours = NULL, *theirs = NULL;

    return registry_logins_is_password(step->key) && step->ours && step->item && step->item->value
           && config_secret_reveal(step->tx, step->ours, &ours, NULL) == 0
           && config_secret_reveal(step->tx, step->item->value, &theirs, NULL) == 0
           && strcmp(ours, theirs) == 0;
}

/* Why etcd's value cannot be taken, into 'err'; a password is sealed. */
static int etcd_step_check(struct etcd_step *step, struct aq_error *err)
{
    const char *value = step->item->value;
    size_t keys = step->keys + !step->ours;
    size_t bytes = step->bytes + strlen(value) + (step->ours ? 0 : strlen(step->key));
    int r = config_known_check(step->key, value, err);

    if (r < 0)
        return r;
    if (keys > CONFIG_KEYS_MAX || bytes > CONFIG_SIZE_MAX)
        return aq_fail(err, E2BIG, "the configuration tree is full");
    if (registry_logins_is_password(step->key))
        return config_secret_seal(step->tx, value, &step->sealed, err);
    return 0;
}

static int etcd_step_take(struct etcd_step *step, const struct etcd_sides *sides,
                          struct aq_error *err)
{
    const char *value = step->sealed ? step->sealed : sides->theirs;
    struct etcd_base base = etcd_base_agreed(value, sides->mod_revision);

    step->pass->taken++;
    if (!value) {
        config_entries_add(&step->change->removes, step->key, "");
        return etcd_step_save_base(step, NULL, err);
    }
    step->keys += !step->ours;
    step->bytes += strlen(value) + (step->ours ? 0 : strlen(step->key));
    config_entries_add(&step->change->puts, step->key, value);
    return etcd_step_save_base(step, &base, err);
}

static int etcd_step_push(struct etcd_step *step, const struct etcd_sides *sides,
                          struct aq_error *err)
{
    struct etcd_pass *pass = step->pass;
    const struct etcd_item *item = step->item;
    size_t len = item ? item->raw_len : strlen(step->key);
    struct etcd_push push = { .raw_len = len, .mod_revision = sides->mod_revision };

    push.raw = aq_alloc(len + 1);
    memcpy(push.raw, item ? item->raw : step->key, len);
    push.value = aq_strdup(sides->ours);
    vec_grow(&pass->pushes.items, &pass->pushes.cap, pass->pushes.count + 1, sizeof(push));
    pass->pushes.items[pass->pushes.count++] = push;
    etcd_base_ask(&step->base, sides->ours);
    return etcd_step_save_base(step, &step->base, err);
}

static int etcd_step_act(struct etcd_step *step, const struct etcd_sides *sides,
                         const struct etcd_verdict *verdict, struct aq_error *err)
{
    struct etcd_base base = etcd_base_agreed(sides->ours, sides->mod_revision);
    bool is_taken = verdict->action == ETCD_TAKE;

    if (verdict->is_conflict)
        config_entries_add(&step->pass->lost, step->key,
                           is_taken        ? sides->ours ? "etcd's value replaces the database's"
                                                         : "etcd's value undoes the deletion in the "
                                                           "database"
                           : sides->theirs ? "the database's value replaces etcd's"
                                           : "the database's value undoes the deletion in etcd");
    switch (verdict->action) {
    case ETCD_LEAVE:
        if (!step->push)
            return 0;
        return etcd_step_save_base(step, step->base.mod_revision ? &step->base : NULL, err);
    case ETCD_RECORD:
        return etcd_step_save_base(step, sides->ours ? &base : NULL, err);
    case ETCD_TAKE:
        return etcd_step_take(step, sides, err);
    case ETCD_PUSH:
        return etcd_step_push(step, sides, err);
    }
    return 0;
}

static int etcd_step_run(struct etcd_step *step, struct aq_error *err)
{
    const struct etcd_item *item = step->item;
    struct etcd_sides sides = { .ours = step->ours,
                                .theirs = item ? item->value : NULL,
                                .mod_revision = item ? item->mod_revision : 0,
                                .is_unusable = item && !item->value,
                                .has_history = step->pass->has_history };
    struct aq_error why = { 0 };
    struct etcd_verdict verdict;

    step->base = (struct etcd_base){ .mod_revision = 0 };
    if (step->base_text && etcd_base_parse(step->base_text, &step->base) < 0)
        return aq_fail(err, EUCLEAN, "setting 'etcd/%s/%s' is damaged", step->pass->namespace,
                       step->key);
    step->push = step->pass->has_history ? map_gets(&step->made, step->key) : NULL;
    if (step->push)
        step->base = etcd_base_agreed(step->push->value,
                                      step->push->value ? step->push->made_revision : 0);
    sides.base = step->base_text || step->push ? &step->base : NULL;
    if (etcd_step_is_same_secret(step))
        sides.theirs = step->ours;
    verdict = etcd_merge(&sides);
    if (verdict.action == ETCD_TAKE && sides.theirs && etcd_step_check(step, &why) < 0) {
        config_entries_add(&step->pass->refused, step->key, why.text);
        sides.is_unusable = true;
        sides.theirs = NULL;
        verdict = etcd_merge(&sides);
    }
    return etcd_step_act(step, &sides, &verdict, err);
}

/* ---- all keys ---- */

/* The first key of three sorted lists, from where each is; NULL at their end. */
static const char *etcd_first_key(const struct config_entries *ours, size_t at_ours,
                                  const struct config_entries *bases, size_t at_base,
                                  const struct etcd_item *items, size_t at_item, size_t item_count)
{
    const char *key = at_ours < ours->count ? ours->items[at_ours].key : NULL;

    if (at_base < bases->count && (!key || strcmp(bases->items[at_base].key, key) < 0))
        key = bases->items[at_base].key;
    if (at_item < item_count && (!key || strcmp(items[at_item].key, key) < 0))
        key = items[at_item].key;
    return key;
}

static int etcd_step_all(struct etcd_step *step, const struct config_entries *ours,
                         const struct config_entries *bases, struct aq_error *err)
{
    size_t at_ours = 0, at_base = 0, at_item = 0, item_count;
    AQ_CLEANUP(aq_freep) struct etcd_item *items = etcd_view_sort(step->pass->view, &item_count);
    int r = 0;

    while (r == 0
           && (step->key = etcd_first_key(ours, at_ours, bases, at_base, items, at_item,
                                          item_count))) {
        bool in_ours = at_ours < ours->count && !strcmp(ours->items[at_ours].key, step->key);
        bool in_base = at_base < bases->count && !strcmp(bases->items[at_base].key, step->key);
        bool in_etcd = at_item < item_count && !strcmp(items[at_item].key, step->key);

        step->ours = in_ours ? ours->items[at_ours].value : NULL;
        step->base_text = in_base ? bases->items[at_base].value : NULL;
        step->item = in_etcd ? &items[at_item] : NULL;
        if (etcd_key_is_carried(step->key))
            r = etcd_step_run(step, err);
        free(AQ_TAKE(step->sealed));
        at_ours += in_ours;
        at_base += in_base;
        at_item += in_etcd;
    }
    return r;
}

/* Has etcd a key as it was when it and a base agreed? */
static bool etcd_find_proof(const struct etcd_view *view, const struct config_entries *bases)
{
    size_t at = 0, count;
    AQ_CLEANUP(aq_freep) struct etcd_item *items = etcd_view_sort(view, &count);

    for (size_t i = 0; i < bases->count; i++) {
        struct etcd_base base;

        while (at < count && strcmp(items[at].key, bases->items[i].key) < 0)
            at++;
        if (at < count && strcmp(items[at].key, bases->items[i].key) == 0 && items[at].value
            && etcd_base_parse(bases->items[i].value, &base) == 0
            && base.mod_revision == items[at].mod_revision
            && strcmp(base.ours, etcd_base_agreed(items[at].value, 0).ours) == 0)
            return true;
    }
    return false;
}

/* By the keys of the tree. */
static void etcd_step_note_made(struct etcd_step *step)
{
    const struct etcd_pushes *made = step->pass->made;

    for (size_t i = 0; i < made->count; i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf key = STRBUF_INIT;

        if (made->items[i].made_revision
            && config_key_add(&key, "key", made->items[i].raw, NULL) == 0)
            (void)map_sets(&step->made, key.data, &made->items[i]);
    }
}

int etcd_decide(struct store_tx *tx, struct config_change *change, void *data, struct aq_error *err)
{
    AQ_CLEANUP(config_entries_done) struct config_entries ours = { 0 }, bases = { 0 };
    struct etcd_pass *pass = data;
    AQ_CLEANUP(aq_freep) char *prefix = aq_format("etcd/%s/", pass->namespace);
    struct etcd_step step = { .tx = tx, .change = change, .pass = pass };
    int r = config_entries_read(tx, "", true, &ours, err);

    if (r == 0)
        r = setting_list(tx, prefix, &bases, err);
    for (size_t i = 0; i < ours.count; i++)
        step.bytes += strlen(ours.items[i].key) + strlen(ours.items[i].value);
    step.keys = ours.count;
    if (r == 0 && pass->needs_proof)
        pass->has_history = etcd_find_proof(pass->view, &bases);
    etcd_step_note_made(&step);
    if (r == 0)
        r = etcd_step_all(&step, &ours, &bases, err);
    map_done(&step.made);
    if (r < 0)
        return r;
    /* An etcd without our history gets one once it has everything: until then, a manager that
     * starts again has to write back the rest.
     */
    if (pass->has_history ? step.is_recorded || !pass->history->cluster_id : !pass->pushes.count)
        r = etcd_history_save(tx, pass, err);
    return r;
}
