/* SPDX-License-Identifier: Apache-2.0 */
/* A manager's answer, whatever it says, shown in every format and as an error. */
#include <stdint.h>
#include <string.h>

#include "cli/client.h"
#include "cli/output/output.h"
#include "cli/verbs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct column columns[] = {
    { "a", "A", COLUMN_TEXT, COLUMN_MAY_SHRINK },
    { "b", "B", COLUMN_TIME, COLUMN_IS_NAME },
    { "c", "C", COLUMN_SLOTS, 0 },
    { "d", "D", COLUMN_STATUS, 0 },
    { "e", "E", COLUMN_NAMES, 0 },
    { "f", "F", COLUMN_BYTES, 0 },
    COLUMN_END,
};

/* Output for users never has a control character but line ends and our own colours. */
static void check_clean(const struct strbuf *out)
{
    for (size_t i = 0; i < out->len; i++)
        if ((unsigned char)out->data[i] < 0x20 && out->data[i] != '\n')
            __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    const struct cli cli = { .verb = &verb_run };
    struct aq_error err = { 0 };
    json_t *rows;

    if (size < 1)
        return 0;
    if (cli_fail_status(&cli, 400 + data[0], text + 1, size - 1, &err) >= 0 || err.code == 0)
        __builtin_trap();
    rows = json_loadb(text + 1, size - 1, JSON_DECODE_ANY, NULL);
    for (int format = OUTPUT_TABLE; rows && format <= OUTPUT_JSONL; format++) {
        struct output o = { .format = format, .width = 20 };
        AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

        if (output_list(&o, columns, rows, &out, &err) == 0 && output_is_human(&o))
            check_clean(&out);
        strbuf_clear(&out);
        (void)output_record(&o, columns, rows, &out, &err);
        if (format == OUTPUT_YAML)
            yaml_write(rows, &out);
    }
    json_decref(rows);
    return 0;
}
