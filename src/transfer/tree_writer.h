/* SPDX-License-Identifier: Apache-2.0 */
/* tree_writer.h - writes what a tar archive has below a folder, and nowhere else
 *
 * A file gets its name when all of it is there; until then it has none, or where the file
 * system cannot do that, one of its own (".aliquot-...") that is removed. Blocks of zeros become holes. Owners are whose
 * process it is; of the modes the permissions count as the umask leaves them, of times those of
 * files.
 *
 * A destination that is a folder, or ends with "/", takes the entries under their names. Else
 * it is the new name of the one file or folder that the archive has; a folder "." gives what is
 * in it. Folders that are missing are made, that of the new name is not. Blocks for the disk only.
 */
#ifndef AQ_TRANSFER_TREE_WRITER_H
#define AQ_TRANSFER_TREE_WRITER_H

#include "transfer/tar.h"

struct tree_writer_options {
    /* The archive is a stranger's: no link is followed, none is made that leads out of what
     * is written (a note says so), and what is no file, folder or link is noted and left out.
     */
    bool is_wary;
    /* A file has a name meanwhile, which costs a file system less than to have none. It is made of the
     * file's own, so that what a killed writer left is replaced by the next one.
     */
    bool is_named;
    const char *top; /* if it is wary: what was asked for, that all names begin with; NULL = any */
    void (*on_note)(void *data, const char *text); /* "skipped: NAME: WHY"; NULL = none */
    void (*on_replaced)(void *data,
                        uint64_t bytes); /* of a file whose name is taken; NULL = none */
    void *data;
};

struct tree_writer;

/* 'root' is borrowed, 'destination' a path below it. -EINVAL for one that leads out. */
int tree_writer_new(int root, const char *destination, const struct tree_writer_options *options,
                    struct tree_writer **ret, struct aq_error *err);

/* ".aliquot-HASH.part": what a file of this name is called in its folder meanwhile, if it is named.
 * Returns 'ret'.
 */
#define TREE_WRITER_PART_MAX 40
char *tree_writer_part_name(const char *name, char ret[TREE_WRITER_PART_MAX]);

/* A file that is not complete is removed. NULL is fine. */
void tree_writer_free(struct tree_writer *writer);
AQ_DEFINE_CLEANUP(struct tree_writer, tree_writer_free)

/* For tar_reader_new(), with the writer as data. Errors name the file and have a kind. */
extern const struct tar_reader_ops tree_writer_ops;

/* Begin the destination itself, which is no folder; its bytes and its end follow as of an
 * archive's entry.
 */
int tree_writer_begin_file(struct tree_writer *writer, struct aq_error *err);

#endif
