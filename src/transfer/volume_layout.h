/* SPDX-License-Identifier: Apache-2.0 */
/* volume_layout.h - where the folders of users lie in a volume
 *
 * Folder 8f14e45f-ceea-4671-a3b2-... lies in 8f/14/e45fceea4671a3b2... Storage hosts serve its
 * files, agents mount it into containers.
 */
#ifndef AQ_TRANSFER_VOLUME_LAYOUT_H
#define AQ_TRANSFER_VOLUME_LAYOUT_H

#include "base/uuid.h"

/* A storage host makes it in each volume that it serves: a mount that is missing has none. */
#define VOLUME_MARK ".aliquot-volume"
/* In a folder: where uploads are kept until they are whole. It is not shown, and no path leads
 * there.
 */
#define FOLDER_UPLOADS ".aliquot-uploads"
#define VOLUME_FOLDER_MAX 40 /* of a folder's path in its volume */

/* "8f/14/e45f..."; returns 'ret'. */
char *volume_layout_path(const struct uuid *id, char ret[VOLUME_FOLDER_MAX]);

#endif
