/* SPDX-License-Identifier: Apache-2.0 */
/* keypair_write.c - keypairs, and what is attached to them */
#include <errno.h>

#include "store/entity.h"
#include "store/web_login.h"

int keypair_save(struct store_tx *tx, const struct event *e, struct aq_error *err)
{
    int r = entity_save(tx, &store_keypairs, &e->keypair, e->at_usec, err);

    if (r == 0 && e->ends_logins)
        r = web_login_end_of_key(tx, e->keypair.access_key, err);
    return r;
}

int keypair_set_used(struct store_tx *tx, const struct event *e, struct aq_error *err)
{
    struct sql_stmt *q;
    int r = sql_prepare(tx->db, "UPDATE keypairs SET used_at = ? WHERE access_key = ?", &q, err);

    if (r < 0)
        return r;
    sql_put_int(q, e->at_usec);
    sql_put_text(q, e->keypair.access_key);
    return sql_run(q, err);
}

/* sql_refuse_fn */
static int keypair_refuse_remove(const void *of, int r, struct aq_error *err)
{
    const struct event *e = of;

    return r == -ENODATA ? aq_fail(err, ENOENT, "there is no keypair %s", e->keypair.access_key)
                         : r;
}

int keypair_remove(struct store_tx *tx, const struct event *e, struct aq_error *err)
{
    static const char *const attached[] = {
        "DELETE FROM dotfiles WHERE kind IN ('keypair', 'bootstrap') AND owner = ?",
        "DELETE FROM request_answers WHERE access_key = ?",
        "DELETE FROM logins WHERE access_key = ?",
    };
    struct sql_stmt *q;
    int r = 0;

    for (size_t i = 0; i < AQ_COUNT(attached); i++) {
        if ((r = sql_prepare(tx->db, attached[i], &q, err)) < 0)
            return r;
        sql_put_text(q, e->keypair.access_key);
        if ((r = sql_run(q, err)) < 0)
            return r;
    }
    if ((r = sql_prepare(tx->db, "DELETE FROM keypairs WHERE access_key = ?", &q, err)) < 0)
        return r;
    sql_put_text(q, e->keypair.access_key);
    return sql_change_one(q, keypair_refuse_remove, e, err);
}
