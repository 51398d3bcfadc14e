/* SPDX-License-Identifier: Apache-2.0 */
/* manifests.h - `aliquot-k8s manifests`: all objects of an installation, as YAML
 *
 * The texts are those of the Helm chart (packaging/helm): what its templates use is little enough
 * to be filled in here.
 */
#ifndef AQ_K8S_MANIFESTS_MANIFESTS_H
#define AQ_K8S_MANIFESTS_MANIFESTS_H

#include "base/error.h"
#include "base/strbuf.h"

/* The words after the sub-command; the process's exit status. */
int manifests_command(int count, char *const *words);

#endif
