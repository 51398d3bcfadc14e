/* SPDX-License-Identifier: Apache-2.0 */
/* folder.h - what types of folders share */
#ifndef AQ_MANAGER_GQL_FOLDER_H
#define AQ_MANAGER_GQL_FOLDER_H

#include "manager/gql/resolve.h"
#include "model/folder.h"

struct folder_viewer gql_folder_viewer(const struct gql_context *context);
/* "user:ID" or "project:ID" of the owner. */
struct gql_value gql_folder_get_quota_scope(struct gql_get *get, const void *parent);

#endif
