/* SPDX-License-Identifier: Apache-2.0 */
/* Where the manager's database is. */
#include "manager/backup/place.h"

#include <stdlib.h>

#include "base/strbuf.h"

struct place place_find(const char *state_dir, const char *database)
{
    struct place place = { .file = aq_format("%s/aliquot.db", state_dir),
                           .key = aq_format("%s/aliquot.db.key", state_dir) };

    place.where = database ? database : place.file;
    return place;
}

void place_done(struct place *place)
{
    free(place->file);
    free(place->key);
}
