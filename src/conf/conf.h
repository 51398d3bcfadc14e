/* SPDX-License-Identifier: Apache-2.0 */
/* conf.h - a program's settings: a table of items over TOML files
 *
 * A program declares one struct for its settings and one table of items that
 * says where each belongs. Sources, later ones win: the table's defaults, the
 * file, the "*.toml" files of the directory beside it that is named as the file
 * with "conf.d" for "toml" (agent.toml: agent.conf.d/) in name order, then
 * environment variables ALIQUOT_SECTION_KEY ("-" and "." become "_"; without
 * section ALIQUOT_KEY; not for PAIRS and TABLES). An unknown section or key is refused with
 * file, line and the nearest known name. Files are TOML 1.0, at most CONF_FILE_MAX bytes.
 */
#ifndef AQ_CONF_CONF_H
#define AQ_CONF_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strbuf.h"

#define CONF_FILE_MAX (1u << 20)

enum conf_type {
    CONF_END,      /* closes the table */
    CONF_STR,      /* char *: NULL or owned */
    CONF_PATH,     /* char *: absolute, or "~/..."; NULL or owned */
    CONF_INT,      /* int64_t within min..max */
    CONF_BOOL,     /* bool */
    CONF_DURATION, /* int64_t microseconds; "3s", "5m", or a number of seconds */
    CONF_SIZE,     /* int64_t bytes; "16m", "1g" (powers of 1024), or a number of bytes */
    CONF_LISTEN,   /* struct conf_listen; "127.0.0.1:8081", "[::1]:8081", ":8081" (any address) */
    CONF_MICRO,    /* int64_t in units of 10^-6; 0.25 or "0.25", at most 6 decimals */
    CONF_LIST,     /* struct conf_list: texts; as one text separated by blanks or commas */
    CONF_PAIRS,    /* struct conf_pairs: a table of texts, numbers and booleans of any name */
    CONF_TABLES,   /* struct conf_tables: an array of tables, or a table of named tables */
};

#define CONF_REQUIRED \
    (1u << 0)                     /* loading fails if nobody sets it; STR, PATH, LISTEN, LIST,
                                 PAIRS, TABLES only */
#define CONF_SECRET (1u << 1)     /* the value never appears in a message */
#define CONF_OR_FOREVER (1u << 2) /* DURATION: also "forever" or 0, whatever 'min'; both give 0 */

struct conf_listen {
    char *host; /* numeric address or name; owned; NULL = not set */
    uint16_t port;
};

struct conf_list {
    char **items;
    size_t count, cap;
};

struct conf_pair {
    char *name, *value;
};

struct conf_pairs {
    struct conf_pair *items;
    size_t count, cap;
};

/* 'items' is an array of 'count' structs of table->size bytes. */
struct conf_tables {
    void *items;
    size_t count, cap;
};

struct conf_table;

/* Unlike a struct field (model/field.h) it has a section, a default in the form of a setting, and
 * tables of structs that grow as they are read.
 */
struct conf_item {
    const char *section; /* "" = top level; "a.b" = table b in table a */
    const char *key;
    enum conf_type type;
    size_t offset;       /* of the member in the program's struct */
    const char *initial; /* default in the form of an environment variable; NULL = zero */
    int64_t min, max;    /* INT, DURATION, SIZE, MICRO; both 0 = 0..INT64_MAX */
    unsigned flags;
    const char *doc;                /* one line for the sample and the manual page */
    const struct conf_table *table; /* TABLES */
};

/* What each table of a CONF_TABLES is read into. Its items' sections are
 * within it. CONF_REQUIRED in it is checked for every table.
 */
struct conf_table {
    size_t size; /* of the struct */
    const struct conf_item *items;
    bool is_named;      /* a table of tables; the struct begins with 'char *name' */
    bool may_have_more; /* unknown keys are passed over */
};

#define CONF_TABLE_END   \
    {                    \
        .type = CONF_END \
    }

/* Fill 'target' (zeroed by the caller) from all sources. 'file' NULL or a
 * missing file when 'may_be_missing' leaves defaults and environment. On
 * failure 'target' is as after conf_done(); err->field is "section.key".
 */
int conf_load(const struct conf_item *items, const char *file, bool may_be_missing, void *target,
              struct aq_error *err);

/* The same from TOML text, without files and environment; 'name' stands for
 * the file in messages.
 */
int conf_load_text(const struct conf_item *items, const char *name, const char *text, size_t len,
                   void *target, struct aq_error *err) AQ_UNTRUSTED;

/* Release what the target owns and zero all its items. */
void conf_done(const struct conf_item *items, void *target);

/* The path from the root, of one that may be relative to the working directory: it goes to other
 * processes and outlives a change of it. Caller frees; NULL = no such directory.
 */
char *conf_absolute_path(const char *path);

/* Set one item from text as an environment variable would. -EINVAL. */
int conf_set(const struct conf_item *item, const char *text, void *target,
             struct aq_error *err) AQ_UNTRUSTED;

/* A commented sample file with every item, its default and its doc. */
void conf_write_sample(const struct conf_item *items, struct strbuf *out);

/* "host:port", "[v6]:port", ":port" -> *ret (host owned). 'default_port' 0 = a
 * port must be given. Returns 0 or -EINVAL.
 */
int conf_parse_address(const char *text, uint16_t default_port, struct conf_listen *ret,
                       struct aq_error *err) AQ_UNTRUSTED;

/* The file that a program reads without --config: $XDG_CONFIG_HOME/aliquot/NAME.toml
 * if it exists, else /etc/aliquot/NAME.toml. Caller frees.
 */
char *conf_default_file(const char *name);

#endif
