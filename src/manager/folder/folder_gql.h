/* SPDX-License-Identifier: Apache-2.0 */
/* folder_gql.h - what types of folders share */
#ifndef AQ_MANAGER_FOLDER_FOLDER_GQL_H
#define AQ_MANAGER_FOLDER_FOLDER_GQL_H

#include "manager/call/graphql/resolve.h"
#include "model/folder.h"

struct folder_viewer gql_folder_viewer(const struct gql_context *context);
/* "user:ID" or "project:ID" of the owner. */
struct gql_value gql_folder_get_quota_scope(struct gql_get *get, const void *parent);

#endif
