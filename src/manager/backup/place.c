/* SPDX-License-Identifier: Apache-2.0 */
/* Where the manager's database is. */
#include "manager/backup/place.h"

#include <stdlib.h>

#include "base/strbuf.h"

int place_find(const char *state_dir, const char *database, struct place *ret, struct aq_error *err)
{
    ret->file = aq_format("%s/aliquot.db", state_dir);
    ret->key = aq_format("%s/aliquot.db.key", state_dir);
    ret->where = database ? database : ret->file;
    (void)err;
    return 0;
}

void place_done(struct place *place)
{
    free(place->file);
    free(place->key);
}
