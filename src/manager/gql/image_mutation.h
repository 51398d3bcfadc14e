/* SPDX-License-Identifier: Apache-2.0 */
/* image_mutation.h - what mutations of images share */
#ifndef AQ_MANAGER_GQL_IMAGE_MUTATION_H
#define AQ_MANAGER_GQL_IMAGE_MUTATION_H

#include "manager/gql/mutation.h"

/* NULL, or what is wrong with names of images and ids of agents. */
const char *image_mutation_check_lists(struct gql_call *call, const struct gql_value *images,
                                       const struct gql_value *agents);

/* image_preload.c: the mutation preload_image. */
int image_preload(struct gql_call *call);

#endif
