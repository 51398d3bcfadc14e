/* SPDX-License-Identifier: Apache-2.0 */
/* Specs of sessions as a database or a message may have them: what is read is written so that it
 * reads as the same, and a copy is its like.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/session_spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
    if (!condition)
        abort();
}

static void check(const struct session_spec *spec)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct jsonw w = jsonw_make(&text);
    struct session_spec *copy = session_spec_copy(spec), again;

    require(copy != NULL && session_spec_equals(copy, spec));
    jsonw_object_begin(&w);
    session_spec_write(copy, SESSION_SPEC_ALL, &w);
    jsonw_object_end(&w);
    require(session_spec_parse(text.data, &arena, &again, NULL) == 0);
    require(session_spec_equals(&again, spec));
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    char *text = calloc(1, size + 1);
    struct aq_error err = { 0 };
    struct session_spec spec;
    int r;

    if (!text)
        return 0;
    if (size)
        memcpy(text, data, size);
    r = session_spec_parse(text, &arena, &spec, &err);
    require(r == 0 || (err.text[0] && err.field[0]));
    if (r == 0) {
        check(&spec);
        r = session_spec_check(&spec, &err);
        require(r == 0 || (err.text[0] && err.field[0]));
    }
    free(text);
    return 0;
}
