/* SPDX-License-Identifier: Apache-2.0 */
/* image_mutation_gql.h - what mutations of images share */
#ifndef AQ_MANAGER_IMAGE_IMAGE_MUTATION_GQL_H
#define AQ_MANAGER_IMAGE_IMAGE_MUTATION_GQL_H

#include "manager/call/graphql/mutation.h"

/* NULL, or what is wrong with names of images and ids of agents. */
const char *image_mutation_check_lists(struct gql_call *call, const struct gql_value *images,
                                       const struct gql_value *agents);

/* image_preload_gql.c: the mutation preload_image. */
int image_preload(struct gql_call *call);

#endif
