/* SPDX-License-Identifier: Apache-2.0 */
/* "aliquot-manager backendai-dump". */
#include "manager/backendai_dump.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "store/foreign.h"

#define LINE_MAX_BYTES 4096
#define TABLES_MAX 64

/* Of standard input: 1, or 0 at its end. */
static int backendai_dump_read_line(char line[LINE_MAX_BYTES], struct aq_error *err)
{
    if (!fgets(line, LINE_MAX_BYTES, stdin))
        return 0;
    if (!strchr(line, '\n'))
        return aq_fail(err, EINVAL, "a line of standard input has more than %d bytes",
                       LINE_MAX_BYTES - 2);
    line[strcspn(line, "\n")] = '\0';
    return 1;
}

int backendai_dump(struct aq_error *err)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    const char *tables[TABLES_MAX];
    char uri[LINE_MAX_BYTES], line[LINE_MAX_BYTES];
    size_t count = 0;
    int r = backendai_dump_read_line(uri, err);

    if (r == 0)
        r = aq_fail(err, EINVAL, "standard input names no database");
    while (r > 0 && (r = backendai_dump_read_line(line, err)) > 0) {
        if (count == TABLES_MAX)
            return aq_fail(err, EINVAL, "there are more than %d tables", TABLES_MAX);
        tables[count++] = arena_strdup(&arena, line);
    }
    r = r < 0 ? r : foreign_dump(uri, tables, count, stdout, err);
    explicit_bzero(uri, sizeof(uri));
    return r;
}
