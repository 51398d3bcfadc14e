/* SPDX-License-Identifier: Apache-2.0 */
/* copy_transfer.h - files to a folder and from it, several at a time
 *
 * One token is for all beneath a directory of the folder. Small files go many to a request, as an
 * archive; large ones go on where they ended when the connection, the storage host or this program
 * was cut off: uploads by what the storage has of them, downloads by a ".aliquot-*.part" beside
 * them. Nothing is lost by a kill at any moment, and nothing has to be kept for it.
 */
#ifndef AQ_CLI_FOLDER_COPY_TRANSFER_H
#define AQ_CLI_FOLDER_COPY_TRANSFER_H

#include "cli/folder/copy_list.h"

struct copy_transfer {
    struct cli *cli;
    bool is_upload;
    const char *folder;     /* its name or id */
    const char *base;       /* the directory in it: of an upload, what 'to' is below; else 'path' */
    int root;               /* of a download: the directory here that 'to' is below */
    struct copy_list *list; /* what to copy, with the directories; their order changes */
    /* afterwards: */
    size_t files, failed; /* each failure was told */
    uint64_t bytes;       /* of these, without what was there before */
};

/* -ECANCELED by a signal; failures of single files do not count here. */
int copy_transfer_run(struct copy_transfer *t, struct aq_error *err);

#endif
